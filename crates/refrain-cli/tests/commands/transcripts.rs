//! The first minute, a simulated week, failures and refusals, verbatim.

use sqlx::{Connection, Executor, SqliteConnection};

use crate::support::Desk;
use crate::support::transcript::{matches, transcript};

#[test]
fn the_first_minute() {
    let lines = [
        "migrate",
        "migrate",
        "run noop#42",
        "run noop#42",
        "run noop#42 --again",
        "run noop-hourly@2001-06-09T14:00",
        "run noop-hourly@2001-06-09T14:00:00Z",
        "--quiet run noop#43",
        "fsck",
    ];
    matches("transcripts/first-minute.txt", &transcript(&Desk::new(), &lines));
}

#[test]
fn a_simulated_week_and_what_simulation_refuses() {
    let lines = [
        "tick --now 2001-06-09T14:00:00Z",
        "tick --now 2001-06-09T14:00:00Z",
        "tick --now 2001-06-09T17:30:00Z",
        "tick --now 2001-06-09T10:00:00Z",
        "run noop-hourly@2001-06-09T15:00",
        "serve --listen none",
        "fsck",
    ];
    let mut simulated = transcript(&Desk::sqlite(), &lines);
    simulated += &transcript(&Desk::sqlite(), &["run noop#1", "tick --now 2001-06-09T14:00:00Z"]);
    matches("transcripts/simulated.txt", &simulated);
}

#[test]
fn a_store_in_which_nothing_has_run_can_be_simulated() {
    let desk = Desk::sqlite();
    desk.refrain("migrate").succeeds(&["12 migrations"]);
    desk.refrain("fsck").succeeds(&["0 findings"]);
    let refused = desk.refrain("run noop-hourly@2100-01-01T00:00");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    desk.refrain("tick --now 2001-06-09T14:00:00Z").succeeds(&["1 window opened"]);
}

#[test]
fn every_command_as_json() {
    let lines = [
        "--json migrate",
        "--json migrate",
        "--json tick --now 2001-06-09T14:00:00Z",
        "--json tick --now 2001-06-09T17:00:00Z",
        "--json run noop#1",
        "--json run noop#1",
        "--json --quiet run noop#1 --again",
        "--json fsck",
        "--json --quiet run noop",
        "--json --quiet serve --listen none",
    ];
    matches("transcripts/json.txt", &transcript(&Desk::sqlite(), &lines));
}

#[test]
fn a_failed_run_and_a_retried_one() {
    let desk = Desk::sqlite();
    desk.refrain("tick --now 2001-06-09T14:00:00Z").succeeds(&["1 processed"]);
    desk.enqueue("noop-once", "bad", r#"{"error": "no such\ncustomer: \u001b[31m7"}"#);
    desk.enqueue("noop-once", "other", r#"{"for": "another customer"}"#);
    desk.enqueue("noop-once", "ticked", r#"{"error": "also"}"#);
    let first = ["run noop-once#bad", "run noop-once#bad", "--json run noop-once#bad", "run noop-once#other"];
    let mut printed = transcript(&desk, &first);
    printed += &transcript(&desk, &["tick --now 2001-06-09T14:30:00Z"]);
    assert!(!printed.contains('\u{1b}'), "{printed:?}");
    for key in ["shaky", "shaky-too"] {
        desk.enqueue("noop", key, r#"{"error": "the line is bad"}"#);
    }
    printed += &transcript(&desk, &["run noop#shaky", "--json run noop#shaky-too"]);
    matches("transcripts/failures.txt", &printed);
}

#[tokio::test]
async fn fsck_lists_inconsistencies_and_changes_nothing() {
    let desk = Desk::sqlite();
    desk.refrain("run noop#1").succeeds(&[]);
    let mut connection = SqliteConnection::connect(desk.file("store.db").to_str().unwrap()).await.unwrap();
    connection.execute("update refrain_runs set open = 1").await.unwrap();
    connection.close().await.unwrap();
    matches("transcripts/findings.txt", &transcript(&desk, &["fsck", "--json fsck"]));
}

#[test]
fn input_that_cannot_be_parsed() {
    let lines = [
        "run noop",
        "run noop#",
        "run no/op#1",
        "run nope#1",
        "run noop@2001-06-09",
        "run noop-hourly#1",
        "run noop-hourly@2001-06-09T14:30",
        "run noop-hourly@yesterday",
        "run noop-hourly@9999-01-01T00:00",
        "run noop-hourly@2100-01-01T00:00",
        "-C nowhere run noop#1",
        "--store mysql://ada:hunter2@host/shop run noop#1",
        "--store sqlite::memory: run noop#1",
        "tick --now soon",
        "fsck now",
    ];
    matches("transcripts/misunderstood.txt", &transcript(&Desk::new(), &lines));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let desk = Desk::new();
    let mut pipe = std::process::Command::new("sh");
    pipe.args(["-c", "\"$0\" migrate --print | head -n 1"])
        .arg(crate::support::PROGRAM)
        .current_dir(desk.path());
    let output = crate::support::output_of(&mut pipe);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "begin;\n"), "{output:?}");
    assert!(!output.stderr.contains("error"), "{output:?}");
}
