//! Every command, as text and as JSON, when it succeeds and when it is refused: verbatim.

use crate::support::transcript::{matches, transcript};
use crate::support::{Desk, output_of};

#[test]
fn a_project_is_created_checked_and_shown() {
    let desk = Desk::of(&[("letter.txt", "Dear Ada,\n")]);
    let lines = [
        "check",
        "--json check",
        "init shop",
        "init shop",
        "--json init other",
        "-C shop check",
        "-C shop --json check",
        "-C shop status",
        "-C shop --json runs",
        "-C shop show hello@2001-06-09",
        "-C shop/jobs next hello --from 2001-06-09T12:00:00Z --count 2",
        "-C shop check --all",
        "-C letter.txt check",
    ];
    matches("transcripts/projects.txt", &transcript(&desk, &lines));
}

#[tokio::test]
async fn next_lists_the_coming_windows() {
    let lines = [
        "check",
        "next export --from 2001-06-09T12:00:00Z --count 3",
        "--json next export --from 2001-06-09T12:00:00Z --count 1",
        "next export --around 2001-10-28",
        "--json next export --around 2001-10-28",
        "next letter",
        "next nope",
        "next export --around tomorrow",
        "next export --count 0",
        "--json next export --from soon",
    ];
    matches("transcripts/next.txt", &transcript(&Desk::shop().await, &lines));
}

#[tokio::test]
async fn runs_shows_what_happened_to_each_window() {
    let desk = Desk::shop().await;
    let lines = [
        "tick --now 2001-06-04T02:00:00Z",
        "status",
        "status export --windows 2",
        "--json status export",
        "status nope",
        "runs",
        "runs --job export --limit 1",
        "runs --state failed",
        "--json runs --state done --limit 1",
        "runs --job nope",
        "runs --state fine",
        "show export@2001-06-02",
        "--json show export@2001-06-02",
        "show export@2001-06-20",
        "show export",
        "logs export@2001-06-02",
        "--json logs export@2001-06-02",
        "logs export@2001-06-20",
        "logs export@2001-06-02 --attempt 2",
        "why export@2001-06-02",
        "--json why export@2001-06-02",
        "why export@2001-06-20",
        "why digest@2001-06-01",
        "why nope@2001-06-01",
    ];
    matches("transcripts/windows.txt", &transcript(&desk, &lines));
}

#[tokio::test]
async fn queued_runs_are_enqueued_shown_and_done() {
    let desk = Desk::shop().await;
    let lines = [
        r#"enqueue letter --key 1 --payload {"to":"Ada"}"#,
        r#"enqueue letter --key 1 --payload {"to":"Ada"}"#,
        r#"--json enqueue letter --key 2 --payload {"to":"Bob"}"#,
        "--json enqueue letter --key 2",
        "enqueue letter --key 3 --payload {to:Bob}",
        "enqueue export --key 1",
        "enqueue nope --key 1",
        "enqueue letter",
        "run letter#1",
        "run letter --key 1",
        "run letter#2",
        "show letter#2",
        "--json show letter#2",
        "retry letter#2",
        "--json retry letter#2",
        "retry letter#1",
        "retry letter#9",
        "retry letter#2 --unit 2",
        "logs letter#2",
        "--json logs letter#2 --attempt 2",
        "why letter#2",
        "why letter#9",
        "--json why 2",
        "trace 2",
        "--json trace 1",
        "trace 9",
        "enqueue slow --key 1",
        "cancel slow#1",
        "--json cancel slow#1",
        "cancel letter#1",
        "cancel slow#9",
        "status slow",
    ];
    matches("transcripts/queue.txt", &transcript(&desk, &lines));
}

#[tokio::test]
async fn commands_that_time_out_or_need_the_operator() {
    let desk = Desk::shop().await;
    let lines = [
        "run slow#1",
        "--json retry slow#1",
        "run payment#1",
        "--json run payment#1",
        "run payment#1 --again",
        "enqueue slow --key 2",
        r#"enqueue letter --key 1 --payload {"to":"Bob"}"#,
    ];
    let mut printed = transcript(&desk, &lines);
    // Windows that are due since 2001 would make the output depend on the date.
    for job in ["export", "digest", "totals"] {
        desk.refrain(&format!("pause {job}")).succeeds(&["paused"]);
    }
    let ticked = desk.refrain("--quiet --json tick");
    assert_eq!(ticked.code, Some(124), "{ticked:?}");
    assert!(ticked.stdout.contains(r#""failed":2"#), "{ticked:?}");
    printed += &transcript(&desk, &["runs --state failed"]);
    matches("transcripts/ends.txt", &printed);
}

#[tokio::test]
async fn decisions_of_the_operator() {
    let desk = Desk::shop().await;
    let lines = [
        "tick --now 2001-06-02T02:00:00Z",
        "pause export",
        "pause export",
        "--json pause export",
        "pause nope",
        "--quiet tick --now 2001-06-04T02:00:00Z",
        "status export",
        "why export@2001-06-03",
        "resume export",
        "--json resume export",
        "run export@2001-06-03",
        "checkpoint show",
        "--json checkpoint show",
        "checkpoint show nope",
        "checkpoint rewind export updated_at --by 2d",
        "checkpoint rewind export updated_at --by soon",
    ];
    matches("transcripts/control.txt", &transcript(&desk, &lines));
}

#[test]
fn an_ambiguous_time_is_printed_with_its_offset() {
    let job = r#"
        schedule = "30 * * * *"
        timezone = "Europe/Berlin"
        window = "tick"
        command = ["true"]
    "#;
    let desk = Desk::of(&[("refrain.toml", "[project]\nname = \"shop\"\n"), ("jobs/half.toml", job)]);
    let next = desk.refrain("next half --from 2001-10-27T23:00:00Z --count 4");
    let opens: Vec<&str> =
        next.stdout.lines().filter_map(|line| line.split_once("  opens ")).map(|(_, at)| at).collect();
    let expected = [
        "2001-10-28 01:30:00 Europe/Berlin",
        "2001-10-28 02:30:00 +02 Europe/Berlin",
        "2001-10-28 02:30:00 +01 Europe/Berlin",
        "2001-10-28 03:30:00 Europe/Berlin",
    ];
    assert_eq!(opens, expected, "{next:?}");
}

#[test]
fn reconcile_compares_a_source_with_its_table() {
    let into = r#"
        [publish]
        database = "shop"
        table = "invoices"
        mode = "merge"
        key = ["id"]
        ledger = false
        owns = "day = :ds"
    "#;
    let sync = format!(
        r#"
            schedule = "@daily"
            window = "day"
            start = 2001-06-01
            catch-up = "all"
            command = ["cat", "source"]
            output = "units"
            [unit]
            key = "invoice:{{id}}"
            {into}
        "#
    );
    let sql = |text: &str| format!("queue = true\ndatabase = \"shop\"\nsql = \"\"\"{text}\"\"\"\n");
    let line = |id: u32| format!("{{\"id\":{id},\"total\":{},\"day\":\"2001-06-01\"}}\n", 10 * id);
    let desk = Desk::of(&[
        (
            "refrain.toml",
            r#"
                [project]
                name = "shop"
                [databases]
                shop = "sqlite:shop.db"
            "#,
        ),
        ("shop.db", ""),
        ("source", &(1..=30).map(line).collect::<String>()),
        ("jobs/sync.toml", &sync),
        (
            "jobs/tables.toml",
            &sql("create table invoices (id integer, total integer, day date); \
             create unique index once on invoices (id)"),
        ),
        (
            "jobs/harm.toml",
            &sql("drop index once; delete from invoices where id <= 22; \
                 update invoices set total = 0 where id = 23;
                 insert into invoices select * from invoices where id = 24;
                 insert into invoices values (31, 1, '2001-06-01'), (32, 1, '2001-06-02')"),
        ),
    ]);
    let lines = [
        "run tables#1",
        "reconcile sync@2001-06-01",
        "run sync@2001-06-01",
        "reconcile sync@2001-06-01",
        "run harm#1",
        "reconcile sync --window 2001-06-01",
        "--json reconcile sync --window 2001-06-01",
        "reconcile harm#1",
        "reconcile nope",
        "reconcile sync --scope eu",
    ];
    matches("transcripts/reconcile.txt", &transcript(&desk, &lines));
}

#[tokio::test]
async fn store_maintenance_commands() {
    let desk = Desk::shop().await;
    let lines = [
        "fsck",
        "backup copy.db",
        "migrate",
        "--json migrate",
        "migrate --print=shop",
        "run totals@2001-06-01",
        "run export@2001-06-01",
        "fsck",
        "--json fsck",
        "backup copy.db",
        "backup copy.db",
        "--json backup nowhere/copy.db",
        "--store sqlite:copy.db fsck",
        "prune",
        "--json prune --older-than 30d",
        "prune --older-than for-ever",
        "recover",
        "--json recover",
    ];
    matches("transcripts/store.txt", &transcript(&desk, &lines));
}

#[tokio::test]
async fn a_restored_store_runs_nothing_before_the_operator_decides() {
    let desk = Desk::shop().await;
    desk.refrain("run totals@2001-06-01").succeeds(&[": done"]);
    std::fs::remove_dir_all(desk.file(".refrain")).unwrap();
    let lines = [
        "run totals@2001-06-01",
        "recover",
        "--json recover",
        "recover --yes",
        "run totals@2001-06-01",
        "recover",
    ];
    let printed = transcript(&desk, &lines);
    matches("transcripts/recover.txt", &nameless(&printed));
}

/// Hides the ids of stores, which are random.
fn nameless(text: &str) -> String {
    let is_name = |word: &str| word.len() >= 16 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let mut shown = String::new();
    for word in text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric()) {
        let (bare, end) = word.split_at(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len());
        shown += if is_name(bare) { "STORE" } else { bare };
        shown += end;
    }
    shown
}

#[test]
fn completions_manual_and_schema_are_well_formed() {
    let desk = Desk::new();
    for (shell, word) in
        [("bash", "complete -F"), ("zsh", "#compdef refrain"), ("fish", "complete -c refrain")]
    {
        desk.refrain(&format!("completions {shell}")).succeeds(&[word, "enqueue"]);
        desk.refrain(&format!("--json completions {shell}")).succeeds(&[r#""script":""#, "enqueue"]);
    }
    desk.refrain("completions tcl").refuses(2, &["possible values: bash"]);
    desk.refrain("man").succeeds(&[".TH refrain 1", "refrain\\-enqueue"]);
    desk.refrain("--json man").succeeds(&[r#""page":""#]);
    desk.refrain("man pages").succeeds(&["pages into pages"]);
    assert!(desk.file("pages/refrain-enqueue.1").exists());
    let plain = desk.refrain("schema");
    plain.succeeds(&["http://json-schema.org/draft-07/schema#", "catch-up"]);
    assert_eq!(desk.refrain("--json schema").stdout, plain.stdout);
}

#[test]
fn json_output_is_one_object_per_line() {
    let desk = Desk::new();
    desk.refrain("run noop#1").succeeds(&[]);
    for line in [
        "check",
        "next noop-hourly",
        "run noop#1",
        "enqueue noop --key 2",
        "tick",
        "status",
        "runs",
        "show noop#1",
        "logs noop#1",
        "trace 1",
        "why noop#1",
        "retry noop#1",
        "cancel noop#1",
        "pause noop",
        "resume noop",
        "checkpoint show",
        "migrate",
        "migrate --print",
        "recover",
        "fsck",
        "prune",
        "completions bash",
        "man",
        "nonsense",
        "show",
        "",
    ] {
        let words: Vec<&str> = ["--json"].into_iter().chain(line.split_whitespace()).collect();
        let output = output_of(&mut desk.command_of(&words));
        for object in output.stdout.lines() {
            let object: serde_json::Value = serde_json::from_str(object).unwrap();
            assert_eq!(object["schema_version"], 1, "{line}: {object}");
            assert!(object["command"].is_string(), "{line}: {object}");
            let is_failure = output.code != Some(0);
            assert_eq!(object["error"].is_string(), is_failure, "{line}: {object}");
            assert_eq!(object["exit_code"].is_number(), is_failure, "{line}: {object}");
        }
        assert!(output.code == Some(0) || output.stdout.lines().count() == 1, "{line}: {output:?}");
    }
}
