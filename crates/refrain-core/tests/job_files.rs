//! The parsed values of a project.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::ffi::OsString;
use std::time::Duration;

use proptest::prelude::*;
use refrain_core::feed::{Apply, FeedSource};
use refrain_core::project::{
    Action, Dialect, Files, Interrupted, Problem, ProjectConfig, STORE, SourceFile, TIMEOUT, TimeForm, read,
    secrets,
};
use refrain_core::publish::{FileFormat, Mode, Publish};
use refrain_core::redact::{Redactor, Secret};
use refrain_core::state::OnChange;
use refrain_core::{CatchUp, Per, Retry, WhileRunning};

const PROJECT: &str = r#"
[project]
name = "shop"
[store]
url = "postgres://refrain:${STORE_PASSWORD}@db/refrain"
[databases]
shop = { url = "sqlite:shop.db", time = "unix-ms" }
warehouse = "postgresql://etl:left%2Fright@db/warehouse"
[http]
allow-private = ["hooks.internal"]
"#;

const TOTALS: &str = r#"
schedule = "0 2 * * *"
timezone = "Europe/Berlin"
window = "day"
start = 2026-06-01
catch-up = { within = "3d" }
while-running = "skip"
dst = { gap = "skip", fold = "both" }
version = 3
retry = { attempts = 5, backoff = "10s..5m" }
timeout = "30m"
concurrency = 2
grace = "45m"
formerly = ["sums", "sums-daily"]
database = "warehouse"
scopes = "select id from orgs where since <= :ds"
sql = "totals.sql"
"#;

const TOTALS_SQL: &str =
    "delete from totals where d = :ds and org = :scope;\ninsert into totals select :ds::date, $$;$$;";

const MAIL: &str = r#"
queue = true
command = ["./mail.sh", "--user={payload.user_id}", "{{literal}}"]
env = ["API_TOKEN", "HOME"]
interrupted = "hold"
"#;

fn environment(name: &str) -> Option<OsString> {
    let value = match name {
        "STORE_PASSWORD" => "hunter2",
        "API_TOKEN" => "tok-123456",
        "HOME" => "/home/me",
        _ => return None,
    };
    Some(value.into())
}

fn read_all(project: &str, jobs: &[(&str, &str)]) -> Result<ProjectConfig, Vec<Problem>> {
    let project = SourceFile::new("refrain.toml", project);
    let jobs: Vec<SourceFile> = jobs.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
    let sibling = |name: &str| (name == "totals.sql").then(|| Ok(TOTALS_SQL.to_owned()));
    read(&Files { project: &project, jobs: &jobs, environment: &environment, sibling: &sibling })
}

fn shop() -> ProjectConfig {
    read_all(PROJECT, &[("jobs/totals.toml", TOTALS), ("jobs/mail.toml", MAIL)]).unwrap()
}

#[test]
fn a_scheduled_job_has_the_values_of_its_file() {
    let project = shop();
    let totals = &project.jobs[1];
    assert_eq!((totals.name.as_str(), totals.path.as_str()), ("totals", "jobs/totals.toml"));
    let timetable = totals.timetable.as_ref().unwrap();
    assert_eq!(timetable.start.unwrap().to_string(), "2026-05-31T22:00:00Z");
    assert_eq!(
        (timetable.grid.to_string(), timetable.schedule.to_string()),
        ("day".into(), "0 2 * * *".into())
    );
    assert_eq!(
        (timetable.dst.gap.to_string(), timetable.dst.fold.to_string()),
        ("skip".into(), "both".into())
    );
    assert_eq!(totals.catch_up, CatchUp::Within(Duration::from_hours(72)));
    assert_eq!((totals.while_running, totals.version, totals.concurrency), (WhileRunning::Skip, 3, Some(2)));
    assert_eq!((totals.retry.attempts, totals.retry.backoff.to_string()), (5, "10s..5m".to_owned()));
    assert_eq!((totals.timeout, totals.grace), (Duration::from_mins(30), Some(Duration::from_mins(45))));
    assert_eq!(totals.formerly.iter().map(ToString::to_string).collect::<Vec<_>>(), ["sums", "sums-daily"]);
    assert_eq!(totals.scopes.as_ref().unwrap().names(), ["ds"]);
    assert_eq!(totals.database.as_deref(), Some("warehouse"));
    let Action::Sql(statements) = &totals.action else { panic!("{totals:?}") };
    let names: Vec<Vec<&str>> = statements.iter().map(|sql| sql.names()).collect();
    assert_eq!(names, [vec!["ds", "scope"], vec!["ds"]]);
}

#[test]
fn a_queued_job_has_the_values_of_its_file() {
    let project = shop();
    let mail = &project.jobs[0];
    assert!(mail.queue && mail.timetable.is_none());
    assert_eq!((mail.interrupted, mail.timeout, mail.retry), (Interrupted::Hold, TIMEOUT, Retry::default()));
    assert_eq!(mail.environment, ["API_TOKEN", "HOME"]);
    let Action::Command(arguments) = &mail.action else { panic!("{mail:?}") };
    assert_eq!(arguments[1].names().collect::<Vec<_>>(), ["payload.user_id"]);
}

#[test]
fn urls_are_complete_for_the_driver_and_safe_for_messages() {
    let project = shop();
    assert_eq!(project.store.expose(), "postgres://refrain:hunter2@db/refrain");
    assert_eq!(project.store.to_string(), "postgres://refrain:${STORE_PASSWORD}@db/refrain");
    let (path, span) = project.store.place().unwrap();
    assert_eq!(
        (path, &PROJECT[span]),
        ("refrain.toml", "\"postgres://refrain:${STORE_PASSWORD}@db/refrain\"")
    );
    let warehouse = &project.databases["warehouse"];
    assert_eq!(warehouse.url.to_string(), "postgresql://etl:••••@db/warehouse");
    assert_eq!((warehouse.dialect, project.databases["shop"].dialect), (Dialect::Postgres, Dialect::Sqlite));
    assert_eq!((warehouse.time, project.databases["shop"].time), (TimeForm::Text, TimeForm::UnixMs));
    assert_eq!(project.private_hosts, ["hooks.internal"]);
    let plain = read_all("[project]\nname = \"shop\"\n", &[]).unwrap();
    assert_eq!((plain.store.expose(), plain.store.place()), (STORE, None));
}

#[test]
fn s19_values_from_the_environment_are_never_printed() {
    let project = shop();
    for secret in ["hunter2", "tok-123456", "left%2Fright", "left/right"] {
        assert!(project.secrets.contains(&Secret::new(secret)), "{secret}");
        assert!(!format!("{project:?}").contains(secret), "{secret}");
    }
    assert!(!project.secrets.contains(&Secret::new("/home/me")), "an ordinary value stays readable");
    let shown = Redactor::new(&project.secrets);
    assert_eq!(
        shown.redact("password authentication failed: hunter2"),
        "password authentication failed: ••••"
    );
}

#[test]
fn s19_the_secrets_of_an_invalid_project_are_known_too() {
    let project = SourceFile::new("refrain.toml", "[store]\nurl = \"mysql://me:hidden-word@db\"\nx = ${\n");
    let job = [SourceFile::new("jobs/a.toml", "env = [\"API_TOKEN\"]\ncolour = 5\n")];
    let files = Files { project: &project, jobs: &job, environment: &environment, sibling: &|_| None };
    assert!(read(&files).is_err());
    let redactor = Redactor::new(&secrets(&files));
    assert_eq!(redactor.redact("url = \"mysql://me:hidden-word@db\""), "url = \"mysql://me:••••@db\"");
    assert_eq!(redactor.redact("tok-123456"), "••••");
}

#[test]
fn the_only_database_is_the_default() {
    let project = "[project]\nname = \"shop\"\n[databases]\nmain = \"sqlite:a.db\"\n";
    let jobs = [("jobs/a.toml", "schedule = \"@daily\"\nsql = \"delete from t where d = :ds\"\n")];
    assert_eq!(read_all(project, &jobs).unwrap().jobs[0].database.as_deref(), Some("main"));
}

#[test]
fn a_broken_project_file_does_not_blame_its_jobs() {
    let project = "[project]\nname = \"shop\"\n[databases]\nmain = sqlite:a.db\n";
    let jobs = [(
        "jobs/a.toml",
        "schedule = \"@daily\"\ndatabase = \"main\"\nsql = \"delete from t where d = :ds\"\n",
    )];
    let problems = read_all(project, &jobs).unwrap_err();
    assert!(problems.iter().all(|problem| problem.path == "refrain.toml"), "{problems:?}");
}

/// A job with many keys, in which one part is replaced by another.
fn mangled() -> impl Strategy<Value = String> {
    let pieces =
        ["\"", "[", "]]", "{", "}", "=", "\n", "${A}", "{now}", ":ds", "'''", "\u{0}", "é", "[[effect]]\n"];
    let all = include_str!("projects/every-key/jobs/revenue-daily.toml");
    (0..all.len(), 0_usize..60, prop::sample::select(pieces.to_vec())).prop_map(move |(at, length, piece)| {
        let (from, until) = (all.floor_char_boundary(at), all.ceil_char_boundary(at + length));
        format!("{}{piece}{}", &all[..from], &all[until..])
    })
}

proptest! {
    #[test]
    fn no_file_makes_it_panic(job in mangled(), settings in "\\PC{0,60}|\\[databases\\]\nshop = \\PC{0,20}") {
        let jobs = [("jobs/a.toml", job.as_str()), ("jobs/B c.toml", settings.as_str())];
        for settings in [PROJECT, &settings] {
            let problems = read_all(settings, &jobs).err().unwrap_or_default();
            for problem in problems {
                let text = if problem.path == "refrain.toml" { settings } else { jobs.iter().find(|(path, _)| *path == problem.path).unwrap().1 };
                prop_assert!(text.get(problem.span.clone()).is_some(), "{:?} in {:?}", problem, text);
            }
        }
    }
}

const FEED: &str = r#"
schedule = "@hourly"
command = ["./list-invoices"]
output = "units"
[unit]
key = "invoice:{id}"
order = "updated_at"
fields = ["id", "total"]
[watermark]
field = "updated_at"
overlap = "10m"
[publish]
database = "shop"
table = "billing.invoices"
mode = "merge"
key = ["source_system", "id"]
"#;

#[test]
fn units_are_what_the_file_says() {
    let project = read_all(PROJECT, &[("jobs/feed.toml", FEED)]).unwrap();
    let Action::Units(feed) = &project.jobs[0].action else { panic!("{project:?}") };
    assert!(matches!(&feed.source, FeedSource::Command(words) if words.len() == 1));
    assert_eq!((feed.key.to_string().as_str(), feed.order.as_deref()), ("invoice:{id}", Some("updated_at")));
    assert_eq!(feed.fields.as_deref().map(<[String]>::len), Some(2));
    assert_eq!((feed.per, feed.on_change), (Per::Ever, OnChange::Update), "a watermark remembers for ever");
    let watermark = feed.watermark.as_ref().unwrap();
    assert_eq!((watermark.field.as_str(), watermark.overlap), ("updated_at", Duration::from_mins(10)));
    let Apply::Publish(publish) = &feed.apply else { panic!("{feed:?}") };
    assert_eq!(publish.table.quoted(), "\"billing\".\"invoices\"");
    assert!(publish.has_ledger);
    let bulk = FEED.replace("order = \"updated_at\"\n", "") + "ledger = false\n";
    let project = read_all(PROJECT, &[("jobs/feed.toml", &bulk)]).unwrap();
    let Action::Units(feed) = &project.jobs[0].action else { panic!("{project:?}") };
    assert!(matches!(&feed.apply, Apply::Publish(publish) if !publish.has_ledger));

    let windows = FEED.replace("[watermark]\nfield = \"updated_at\"\noverlap = \"10m\"\n", "");
    let project = read_all(PROJECT, &[("jobs/feed.toml", &windows)]).unwrap();
    let Action::Units(feed) = &project.jobs[0].action else { panic!("{project:?}") };
    assert_eq!(feed.per, Per::Window);
}

#[test]
fn parallel_is_limited_by_the_descriptors_of_a_process() {
    let feed = |parallel: u32| {
        let (top, _) = FEED.split_once("[publish]").unwrap();
        let each = format!("[unit]\nparallel = {parallel}\ncommand = [\"./one\"]");
        read_all(PROJECT, &[("jobs/feed.toml", &top.replace("[unit]", &each))])
    };
    let project = feed(1_000).unwrap();
    assert!(
        matches!(&project.jobs[0].action, Action::Units(feed) if matches!(feed.apply, Apply::Command { parallel: 1_000, .. }))
    );
    for (parallel, reported) in
        [(0, "`parallel` must be at least 1"), (1_001, "`parallel` must be at most 1000")]
    {
        assert_eq!(feed(parallel).unwrap_err()[0].message, reported);
    }
}

#[test]
fn steps_are_published_in_order_and_files_go_into_a_directory() {
    let steps = r#"
schedule = "@daily"
window = "day"
database = "shop"
[[step]]
query = "select :ds as d"
publish = { table = "a", mode = "overwrite", owns = "d = :ds", surrogate = { sk = ["d"] }, stamp = "v" }
[[step]]
query = "select 1 as k, 2 as n"
publish = { database = "warehouse", table = "b", mode = "apply-delta", key = ["k"], columns = ["n"], insert-missing = true }
[[step]]
query = "select 1 as k"
publish = { path = "out/{ds}", format = "jsonl" }
"#;
    let command =
        "schedule = \"@daily\"\nwindow = \"day\"\ncommand = [\"./a.sh\"]\n[publish]\npath = \"out/{ds}\"\n";
    let project = read_all(PROJECT, &[("jobs/a.toml", steps), ("jobs/b.toml", command)]).unwrap();
    let Action::Publish(steps) = &project.jobs[0].action else { panic!("{project:?}") };
    let [Publish::Table(one), Publish::Table(two), Publish::Files(files)] =
        [0, 1, 2].map(|at| &steps[at].publish)
    else {
        panic!("{steps:?}")
    };
    assert_eq!((one.database.as_str(), two.database.as_str()), ("shop", "warehouse"));
    assert_eq!((one.mode, two.mode), (Mode::Overwrite, Mode::ApplyDelta));
    assert_eq!(one.surrogate, [("sk".to_owned(), vec!["d".to_owned()])]);
    assert!(two.insert_missing && one.stamp.as_deref() == Some("v"));
    assert_eq!((files.format, files.path.to_string().as_str()), (FileFormat::JsonLines, "out/{ds}"));
    assert!(project.jobs[1].files.is_some());
}
