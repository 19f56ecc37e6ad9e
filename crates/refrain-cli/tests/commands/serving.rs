//! A process that serves: changed files, health checks, and its log.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use rustix::process::Signal;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqliteConnection};

use crate::support::children::ChildProcess;
use crate::support::eventually::{DEADLINE, eventually};
use crate::support::postgres::Scratch;
use crate::support::terminal::sequences;
use crate::support::{Desk, project};

const SERVE: &str = "serve --listen none";

/// A desk, and a second project on the same store that stays sound.
fn desk_beside_another() -> Desk {
    let desk = Desk::sqlite();
    for (name, text) in project::noop("refrain") {
        desk.write(&format!("other/{name}"), &text);
    }
    desk
}

/// The same, served.
async fn served(line: &str) -> (Desk, ChildProcess) {
    let desk = desk_beside_another();
    let mut serve = ChildProcess::spawn(&mut desk.command(line));
    serve.wait_for_line("serving").await;
    (desk, serve)
}

pub(crate) async fn becomes_done(desk: &Desk, run: &str) {
    let is_done = async || desk.refrain(&format!("--json show {run}")).stdout.contains(r#""state":"done""#);
    eventually(&format!("{run} is done"), DEADLINE, is_done).await;
}

async fn stops(serve: &mut ChildProcess) -> String {
    serve.signal(Signal::TERM);
    let ended = serve.finish().await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    String::from_utf8(ended.stderr).unwrap()
}

#[tokio::test]
async fn a_changed_file_and_a_hangup_signal_reload_the_project() {
    let (desk, mut serve) = served(SERVE).await;
    desk.write("jobs/late.toml", "queue = true\ncommand = [\"echo\", \"late\"]\n");
    serve.wait_for_line("the project was reloaded").await;
    desk.refrain("enqueue late --key 1").succeeds(&["queued"]);
    becomes_done(&desk, "late#1").await;
    desk.refrain("logs late#1").succeeds(&["late"]);

    serve.signal(Signal::HUP);
    serve.wait_for_line("the project was reloaded").await;

    desk.write("jobs/late.toml", "queue = true\ncommand = [\"echo\", \"later\", \"still\"]\n");
    serve.wait_for_line("the project was reloaded").await;
    desk.refrain("enqueue late --key 2").succeeds(&["queued"]);
    becomes_done(&desk, "late#2").await;
    desk.refrain("logs late#2").succeeds(&["later still"]);
    stops(&mut serve).await;
    desk.refrain("fsck").succeeds(&["0 findings"]);
}

#[tokio::test]
async fn a_broken_file_leaves_every_job_running_as_before() {
    let desk = desk_beside_another();
    let mut serve = ChildProcess::spawn(&mut desk.command("serve --listen 127.0.0.1:0"));
    let address = address_of(&mut serve).await;
    serve.wait_for_line("serving").await;
    let sound = std::fs::read_to_string(desk.file("jobs/noop.toml")).unwrap();
    desk.write("jobs/noop.toml", "queue = true\ntimout = \"5m\"\ncommand = [\"./noop.sh\"]\n");
    let named = serve.wait_for_line("a file is invalid").await;
    assert!(named.contains("jobs/noop.toml") && named.contains("`timout`"), "{named}");
    assert!(named.contains("did you mean `timeout`?"), "{named}");
    serve.wait_for_line("their jobs stay as they were").await;
    desk.refrain("run noop#1").refuses(2, &["1 problem", "timout"]);
    let ready = (200, "ready\nignored, because it is invalid: jobs/noop.toml\n".to_owned());
    eventually("it is ready all the same", DEADLINE, async || get(&address, "/readyz") == ready).await;
    desk.write("jobs/late.toml", "queue = true\ncommand = [\"echo\", \"late\"]\n");
    serve.wait_for_line("their jobs stay as they were").await;
    desk.refrain("enqueue late --key 1").succeeds(&["queued"]);
    becomes_done(&desk, "late#1").await;

    desk.refrain("-C other enqueue noop --key 1").succeeds(&["queued"]);
    let is_done = async || desk.refrain("-C other --json show noop#1").stdout.contains(r#""state":"done""#);
    eventually("the job goes on as it was", DEADLINE, is_done).await;

    desk.write("jobs/noop.toml", &sound);
    let is_whole = async || get(&address, "/readyz").1 == "ready\n";
    eventually("nothing is left out any more", DEADLINE, is_whole).await;
    stops(&mut serve).await;
}

#[tokio::test]
async fn s9_readyz_escapes_the_name_of_a_skipped_file() {
    let desk = Desk::sqlite();
    desk.write("jobs/a\u{1b}[2J\u{202e}\nb.toml", "queue = 1\n");
    let mut serve = ChildProcess::spawn(&mut desk.command("serve --listen 127.0.0.1:0"));
    let address = address_of(&mut serve).await;
    serve.wait_for_line("serving").await;
    let mut printed = String::new();
    let is_ready = async || {
        let (status, body) = get(&address, "/readyz");
        printed = body;
        status == 200
    };
    eventually("it is ready", DEADLINE, is_ready).await;
    assert_eq!(printed.lines().count(), 2, "{printed:?}");
    assert!(printed.contains("ignored, because it is invalid: jobs/a"), "{printed:?}");
    assert_eq!(sequences(&printed), [""; 0], "{printed:?}");
    let logged = stops(&mut serve).await;
    assert_eq!(sequences(&logged), [""; 0], "{logged:?}");
}

#[tokio::test]
async fn f14_a_clock_that_jumps_ahead_opens_no_future_window() {
    let desk = Desk::sqlite();
    let start = (Timestamp::now() - SignedDuration::from_hours(48)).strftime("%Y-%m-%d");
    let past = format!(
        r#"
            schedule = "@daily"
            window = "day"
            start = {start}
            catch-up = "all"
            command = ["true"]
        "#
    );
    desk.write("jobs/past.toml", &past);
    let mut serve = ChildProcess::spawn(&mut desk.command(SERVE));
    serve.wait_for_line("serving").await;
    let file = SqliteConnectOptions::new().filename(desk.file("store.db"));
    let mut store = SqliteConnection::connect_with(&file).await.unwrap();
    // A scheduler that has opened a window has read the clock before.
    eventually("the scheduler has looked", DEADLINE, async || {
        let runs = sqlx::query_scalar::<_, i64>("select count(*) from refrain_runs");
        runs.fetch_one(&mut store).await.unwrap() > 0
    })
    .await;
    let ahead = "begin immediate; drop view refrain_clock; create view refrain_clock as
        select cast(unixepoch('subsec') * 1000000 as integer) + 5 * 3600 * 1000000 as now; commit";
    store.execute(ahead).await.unwrap();
    serve.wait_for_line("schedules wait until the clock can be believed").await;
    let future = "select count(*) from refrain_runs where key > strftime('%Y-%m-%dT%H:%M:%SZ', 'now')";
    let future: i64 = sqlx::query_scalar(future).fetch_one(&mut store).await.unwrap();
    assert_eq!(future, 0);
    stops(&mut serve).await;
}

/// Requests a page; returns the status and the body. The process closes a connection whose request takes too long,
/// which may happen on a busy machine: then the request is repeated.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < DEADLINE, "{path} was not answered");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut answer = String::new();
        let read = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        if read.is_ok() && !answer.is_empty() {
            let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
            return (status, answer.rsplit("\r\n").next().unwrap().to_owned());
        }
    }
}

pub(crate) async fn address_of(serve: &mut ChildProcess) -> String {
    let line = serve.wait_for_line("health endpoint: http://").await;
    let address = line.split("http://").nth(1).unwrap();
    address.split('/').next().unwrap().to_owned()
}

#[tokio::test]
async fn health_is_served_on_the_loopback_address_only() {
    let scratch = Scratch::create().await;
    let desk = Desk::at(&scratch.url());
    desk.refrain("migrate").succeeds(&[]);
    let mut serve = ChildProcess::spawn(&mut desk.command("serve --listen 127.0.0.1:0"));
    let address = address_of(&mut serve).await;
    serve.wait_for_line("serving").await;
    assert_eq!(get(&address, "/healthz"), (200, "alive\n".to_owned()));
    let is_ready = async || get(&address, "/readyz") == (200, "ready\n".to_owned());
    eventually("every loop has looked", DEADLINE, is_ready).await;
    for path in ["/", "/x/healthz", "/healthz/", "/../healthz"] {
        assert_eq!(get(&address, path).0, 404, "{path}");
    }
    let mut server = PgConnection::connect(&std::env::var("REFRAIN_TEST_POSTGRES").unwrap()).await.unwrap();
    for statement in [
        format!("alter database {} with allow_connections false", scratch.name),
        format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{}'", scratch.name),
    ] {
        server.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    let is_away = async || get(&address, "/readyz").0 == 503;
    eventually("it says that the store is away", DEADLINE, is_away).await;
    assert_eq!(get(&address, "/healthz").0, 200, "it lives all the same");
    serve.signal(Signal::TERM);
    serve.signal(Signal::TERM);
    serve.signal(Signal::TERM);
    serve.wait().await;
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let refused = Desk::sqlite().refrain(&format!("serve --listen {address}"));
        refused.refuses(2, &["can be reached from other machines", "listen on 127.0.0.1"]);
    }
    Desk::sqlite().refrain("serve --listen everywhere").refuses(2, &["is not a valid address to listen on"]);
}

#[tokio::test]
async fn a_second_project_is_served_when_the_default_port_is_in_use() {
    let desks = [Desk::sqlite(), Desk::sqlite()];
    let mut lines = Vec::new();
    let mut children = desks.each_ref().map(|desk| ChildProcess::spawn(&mut desk.command("serve")));
    for child in &mut children {
        lines.push(child.wait_for_line("health endpoint").await);
        child.wait_for_line("serving").await;
    }
    assert!(lines.iter().any(|line| line.contains("health endpoint disabled: 127.0.0.1:7717 is in use")));
    for child in &mut children {
        stops(child).await;
    }
}

#[tokio::test]
async fn every_line_of_a_json_log_is_an_object_and_names_its_run() {
    let (desk, mut serve) = served("serve --listen none --log json").await;
    desk.enqueue("noop-once", "bad", r#"{"error": "no such\ncustomer"}"#);
    desk.enqueue("noop", "good", r#"{"for": "a customer"}"#);
    becomes_done(&desk, "noop#good").await;
    serve.wait_for_line("attempt failed").await;
    desk.write("jobs/broken.toml", "queue = 7\n");
    serve.wait_for_line("their jobs stay as they were").await;
    std::fs::remove_file(desk.file("jobs/broken.toml")).unwrap();
    serve.wait_for_line("the project was reloaded").await;
    let log = stops(&mut serve).await;
    let mut about_runs = 0;
    for line in log.lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        for name in ["timestamp", "level", "message"] {
            assert!(object[name].is_string(), "{name} is missing: {line}");
        }
        if object.get("attempt").is_some() {
            assert!(object["job"].is_string() && object["key"].is_string(), "whose is it? {line}");
            about_runs += 1;
        }
    }
    assert!(about_runs >= 2, "{log}");
    assert!(log.contains(r#""key":"bad""#) && log.contains("stopped; open runs continue"), "{log}");
}

#[tokio::test]
async fn an_error_that_prevents_serving_is_a_json_object() {
    let desk = Desk::sqlite();
    desk.write("refrain.toml", "[project]\nname = 7\n");
    let output = desk.refrain("serve --listen none --log json");
    assert_eq!(output.code, Some(2), "{output:?}");
    let lines: Vec<serde_json::Value> =
        output.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["exit_code"] == 2), "{output:?}");
}

#[tokio::test]
async fn idle_health_connections_do_not_slow_jobs_down() {
    let desk = Desk::sqlite();
    let mut serve = ChildProcess::spawn(&mut desk.command("serve --listen 127.0.0.1:0"));
    let address = address_of(&mut serve).await;
    serve.wait_for_line("serving").await;
    let silent: Vec<TcpStream> = (0..150).filter_map(|_| TcpStream::connect(&address).ok()).collect();
    assert!(silent.len() > 32, "{}", silent.len());
    let sockets = || {
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", serve.id())).unwrap().flatten();
        let targets = descriptors.filter_map(|one| std::fs::read_link(one.path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
    };
    assert!(sockets() < 60, "{} sockets are open", sockets());
    desk.enqueue("noop", "1", "{}");
    becomes_done(&desk, "noop#1").await;
    // Connections without a request are closed, one batch after another, and then a real request is answered.
    assert_eq!(get(&address, "/healthz").0, 200);
    drop(silent);
    stops(&mut serve).await;
}

/// The file is moved, or replaced by another one: later writes of the process would be lost.
#[tokio::test]
async fn serve_ends_with_an_error_when_its_store_is_moved() {
    for is_replaced in [false, true] {
        let (desk, mut serve) = served(SERVE).await;
        let other = Desk::sqlite();
        other.refrain("migrate").succeeds(&[]);
        std::fs::rename(desk.file("store.db"), desk.file("moved.db")).unwrap();
        if is_replaced {
            std::fs::copy(other.file("store.db"), desk.file("store.db")).unwrap();
        }
        let ended = serve.finish().await;
        let output = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{output}");
        assert!(output.contains("was moved, removed or replaced while it was in use"), "{output}");
        assert_eq!(desk.file("store.db").exists(), is_replaced, "no file is made where the old one was");
    }
}

/// Writes an intent for a run, in a database beside the store.
async fn intend(desk: &Desk, key: &str) {
    write_intent(desk, "shop.db", key).await;
}

async fn write_intent(desk: &Desk, file: &str, key: &str) {
    let file = SqliteConnectOptions::new().filename(desk.file(file));
    let mut shop = SqliteConnection::connect_with(&file).await.unwrap();
    let intent = "insert into refrain_intents (project, kind, name, key, payload)
        values ('shop', 'run', 'letter', $1, '{\"to\": \"Ada\"}')";
    sqlx::query(intent).bind(key).execute(&mut shop).await.unwrap();
    shop.close().await.unwrap();
}

const AWAY: &str = "database unreachable, nothing is relayed from it: shop\n";

#[tokio::test]
async fn a_database_unreachable_at_startup_is_relayed_once_it_is_back() {
    let desk = Desk::shop().await;
    desk.refrain("migrate").succeeds(&[]);
    std::fs::rename(desk.file("shop.db"), desk.file("away.db")).unwrap();
    let mut serve = ChildProcess::spawn(&mut desk.command("serve --listen 127.0.0.1:0"));
    serve.wait_for_line("until it does, its jobs fail and nothing is relayed from it").await;
    let address = address_of(&mut serve).await;
    let is_said = async || get(&address, "/readyz") == (200, format!("ready\n{AWAY}"));
    eventually("it is said that the database is away", DEADLINE, is_said).await;
    std::fs::rename(desk.file("away.db"), desk.file("shop.db")).unwrap();
    intend(&desk, "1").await;
    serve.wait_for_line("database attached: its intents are relayed").await;
    becomes_done(&desk, "letter#1").await;
    assert_eq!(get(&address, "/readyz"), (200, "ready\n".to_owned()));
    stops(&mut serve).await;
}

/// A copy of the database has replaced it, and the project names the URL of the copy: the old one is not written to
/// any more.
#[tokio::test]
async fn a_database_whose_url_changes_is_relayed_from_the_new_url() {
    let desk = Desk::shop().await;
    desk.refrain("migrate").succeeds(&[]);
    let mut serve = ChildProcess::spawn(&mut desk.command(SERVE));
    serve.wait_for_line("serving").await;
    intend(&desk, "1").await;
    becomes_done(&desk, "letter#1").await;
    std::fs::copy(desk.file("shop.db"), desk.file("moved.db")).unwrap();
    let settings = std::fs::read_to_string(desk.file("refrain.toml")).unwrap();
    desk.write("refrain.toml", &settings.replace("shop.db", "moved.db"));
    serve.wait_for_line("database attached: its intents are relayed").await;
    write_intent(&desk, "moved.db", "2").await;
    becomes_done(&desk, "letter#2").await;
    stops(&mut serve).await;
}

#[tokio::test]
async fn a_database_added_by_a_reload_is_relayed() {
    let desk = Desk::shop().await;
    desk.refrain("migrate").succeeds(&[]);
    let settings = std::fs::read_to_string(desk.file("refrain.toml")).unwrap();
    let mut later = Vec::new();
    for job in ["jobs/totals.toml", "jobs/digest.toml"] {
        later.push((job, std::fs::read_to_string(desk.file(job)).unwrap()));
        std::fs::remove_file(desk.file(job)).unwrap();
    }
    desk.write("refrain.toml", settings.split("[databases]").next().unwrap());
    let mut serve = ChildProcess::spawn(&mut desk.command(SERVE));
    serve.wait_for_line("serving").await;
    desk.write("refrain.toml", &settings);
    for (job, text) in later {
        desk.write(job, &text);
    }
    serve.wait_for_line("database attached: its intents are relayed").await;
    intend(&desk, "1").await;
    becomes_done(&desk, "letter#1").await;
    stops(&mut serve).await;
}
