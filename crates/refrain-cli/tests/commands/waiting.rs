//! A `run` in the foreground that has to wait: it prints what it waits for, gives up in time, and does not count the
//! work of others as its own.

use std::fs::File;
use std::process::Command;

use serde_json::Value;

use crate::support::children::ChildProcess;
use crate::support::eventually::{DEADLINE, eventually};
use crate::support::postgres::Scratch;
use crate::support::{Desk, output_of};

const AT_ONCE: usize = 10;

/// Daily windows whose command goes on when another process opens the pipe.
const GATED: &str = r#"
    schedule = "@daily"
    window = "day"
    start = 2001-06-01
    catch-up = "none"
    command = ["cat", "gate"]
"#;

/// A desk with such a job, and no run of it yet.
fn gated(desk: Desk) -> Desk {
    desk.write("jobs/gated.toml", GATED);
    assert!(Command::new("mkfifo").arg(desk.file("gate")).status().unwrap().success());
    desk.refrain("migrate").succeeds(&[]);
    desk
}

/// Releases one command; waits until there is one.
async fn let_through(desk: &Desk) {
    let gate = desk.file("gate");
    tokio::task::spawn_blocking(move || drop(File::options().write(true).open(gate).unwrap())).await.unwrap();
}

/// Waits until the run is running.
async fn is_running(desk: &Desk, run: &str) {
    let running =
        async || desk.refrain(&format!("--json show {run}")).stdout.contains(r#""state":"running""#);
    eventually("it is running", DEADLINE, running).await;
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn gives_up(desk: Desk) {
    let desk = gated(desk);
    let mut first = ChildProcess::spawn(&mut desk.command("run gated@2001-06-01"));
    is_running(&desk, "gated@2001-06-01").await;
    // One caller waits and prints for what, and another one gives up.
    let mut waiting = ChildProcess::spawn(&mut desk.command("run gated@2001-06-02 --wait 10m"));
    let waits = "waiting: gated@2001-06-02 waits for gated@2001-06-01, which holds their lane";
    let printed = waiting.wait_for_line(waits).await;
    assert!(printed.contains("is running by worker"), "{printed}");
    let behind = desk.refrain("run gated@2001-06-02 --wait 0s");
    assert_eq!(behind.code, Some(75), "{behind:?}");
    assert!(behind.stderr.contains("refrain why gated@2001-06-02"), "{behind:?}");
    assert!(behind.stdout.contains("stopped waiting"), "{behind:?}");
    let beside = desk.refrain("--json run gated@2001-06-01 --again --wait 0s");
    assert_eq!(beside.code, Some(75), "a second attempt follows the one that is there: {beside:?}");
    let object = objects(&beside.stdout).remove(0);
    let text = |place: &str| object.pointer(place).and_then(Value::as_str).unwrap_or_default();
    assert_eq!((text("/did"), text("/waits_for/rule")), ("gave-up", "running"), "{object}");
    assert!(text("/waits_for/said").contains("counts as alive until"), "{object}");
    let_through(&desk).await;
    assert_eq!(first.finish().await.status.code(), Some(0));
    let_through(&desk).await;
    let ended = waiting.finish().await;
    assert_eq!(ended.status.code(), Some(0), "it stayed queued: {ended:?}");
    desk.refrain("fsck").succeeds(&["0 findings"]);
}

#[tokio::test]
async fn a_run_behind_another_says_so_and_exits_75_on_sqlite() {
    gives_up(Desk::sqlite()).await;
}

#[tokio::test]
async fn a_run_behind_another_says_so_and_exits_75_on_postgres() {
    let scratch = Scratch::create().await;
    gives_up(Desk::at(&scratch.url())).await;
}

#[tokio::test]
async fn one_of_ten_processes_runs_the_window() {
    let scratch = Scratch::create().await;
    for desk in [Desk::sqlite(), Desk::at(&scratch.url())] {
        let desk = gated(desk);
        let command = "--json run gated@2001-06-01 --wait 10m";
        let mut children: Vec<ChildProcess> =
            (0..AT_ONCE).map(|_| ChildProcess::spawn(&mut desk.command(command))).collect();
        is_running(&desk, "gated@2001-06-01").await;
        let_through(&desk).await;
        let mut totals = [("processed", 0), ("skipped", 0), ("deduplicated", 0), ("failed", 0)];
        for child in &mut children {
            let ended = child.finish().await;
            assert_eq!(ended.status.code(), Some(0), "{ended:?}");
            let object = &objects(&String::from_utf8(ended.stdout).unwrap())[0];
            for (name, total) in &mut totals {
                *total += object["counts"][*name].as_u64().unwrap();
            }
        }
        let others = AT_ONCE as u64 - 1;
        assert_eq!(totals, [("processed", 1), ("skipped", 0), ("deduplicated", others), ("failed", 0)]);
    }
}

/// The source of units dies after one of them: the unit is done, and the attempt has failed.
#[test]
fn every_list_of_counts_marks_a_failed_attempt() {
    let desk = Desk::sqlite().without_hourly();
    let job = r#"
        queue = true
        output = "units"
        retry = { attempts = 1 }
        command = ["./dies.sh"]
        [unit]
        key = "u:{id}"
        command = ["true"]
    "#;
    desk.write("jobs/dies.toml", job);
    desk.write("dies.sh", "#!/bin/sh\necho '{\"id\":1}'\nexit 7\n");
    let ran = output_of(desk.command("--json run dies#1").env("RUST_LOG", "info"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let counts = &objects(&ran.stdout)[0]["counts"];
    assert_eq!(counts["failed"], 1, "{ran:?}");
    let shown = &objects(&desk.refrain("--json show dies#1").stdout)[0];
    let of_attempt = shown["units"].as_array().unwrap().last().unwrap();
    assert_eq!(&of_attempt["counts"], counts, "{shown}");
    desk.refrain("enqueue dies --key 2").succeeds(&["queued"]);
    let ticked = desk.refrain("--json tick");
    assert_eq!(objects(&ticked.stdout)[0]["counts"]["failed"], 1, "{ticked:?}");
    assert_eq!(objects(&ticked.stdout)[0]["counts"]["processed"], 0, "{ticked:?}");
}

#[test]
fn json_reports_a_different_payload_under_a_known_key() {
    let desk = Desk::sqlite();
    let offer = |payload: &str| {
        let offered = output_of(&mut desk.command_of(&[
            "--json",
            "enqueue",
            "noop",
            "--key",
            "1",
            "--payload",
            payload,
        ]));
        assert_eq!(offered.code, Some(0), "{offered:?}");
        let object = objects(&offered.stdout).remove(0);
        (object["did"].as_str().unwrap().to_owned(), object["payload_differs"].as_bool().unwrap())
    };
    assert_eq!(offer(r#"{"to": "Ada", "sum": 1}"#), ("enqueued".to_owned(), false));
    assert_eq!(
        offer(r#"{"sum":1.0,"to":"Ada"}"#),
        ("deduplicated".to_owned(), false),
        "the same, written otherwise"
    );
    assert_eq!(offer(r#"{"to": "Bob", "sum": 1}"#), ("deduplicated".to_owned(), true));
}
