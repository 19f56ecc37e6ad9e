//! Decisions of operators: what waits for one, which command to type, and who decided.

use std::sync::mpsc::Receiver;

use serde_json::Value;

use crate::support::books::books;
use crate::support::terminal::{on_a_terminal, sequences};
use crate::support::{CommandOutput, Desk, output_of};

/// A desk with a job that makes a call for each of four invoices, two of which get no answer.
fn calling() -> (Desk, Receiver<String>) {
    let (port, heard) = books(&['2', '4']);
    let unit = format!(
        r#"
            command = ["./list.sh"]
            output = "units"
            [unit]
            key = "invoice:{{id}}"
            http = {{ url = "http://127.0.0.1:{port}/invoices/{{id}}", json = {{ id = "{{id}}" }} }}
        "#
    );
    let hourly = "schedule = \"@hourly\"\nwindow = \"hour\"\ncatch-up = \"latest\"\n";
    let desk = Desk::of(&[
        ("refrain.toml", "[project]\nname = \"shop\"\n"),
        ("jobs/book.toml", &format!("queue = true\n{unit}")),
        ("jobs/hourly.toml", &format!("{hourly}{unit}")),
        ("list.sh", "#!/bin/sh\nfor id in 1 2 3 4; do echo \"{\\\"id\\\":$id}\"; done\n"),
    ]);
    (desk, heard)
}

fn object(output: &CommandOutput) -> Value {
    serde_json::from_str(output.stdout.lines().next().unwrap_or_default())
        .unwrap_or_else(|error| unreachable!("{error}: {output:?}"))
}

#[track_caller]
fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
}

#[test]
fn units_in_doubt_exit_with_4_and_name_the_commands_that_settle_them() {
    let (desk, heard) = calling();
    let ran = desk.refrain("run book#1");
    assert_eq!(ran.code, Some(4), "{ran:?}");
    has(
        &ran.stderr,
        &["an operator must decide about invoice:2, invoice:4", "--done", "refrain retry book#1 --unit KEY"],
    );
    assert!(!ran.stderr.contains("the same command"), "{ran:?}");
    assert_eq!(heard.try_iter().count(), 4, "no other attempt follows by itself");

    let shown = desk.refrain("show book#1");
    has(
        &shown.stdout,
        &["an operator must decide", "unit invoice:2 is in doubt since", "unit invoice:4 is in doubt since"],
    );
    has(&shown.stderr, &["--in-doubt"]);
    let shown = object(&desk.refrain("--json show book#1"));
    assert_eq!((shown["reason"].as_str(), shown["needs_a_person"].as_bool()), (Some("in-doubt"), Some(true)));
    assert_eq!(shown["doubts"][1]["unit"], "invoice:4");
    has(&desk.refrain("status").stderr, &["1 run waits for a decision of an operator", "refrain why book#1"]);
    has(&desk.refrain("why book#1").stdout, &["waits for an operator", "--unit invoice:2 --done"]);

    let all = desk.refrain("effects --in-doubt");
    has(&all.stdout, &["book#1 unit invoice:2  in doubt since", "book#1 unit invoice:4  in doubt since"]);
    has(&all.stderr, &["the commands that settle it: refrain show book#1"]);
    let none = desk.refrain("effects --job hourly");
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    has(&none.stderr, &["nothing waits for a decision of an operator"]);
    desk.refrain("effects --job nope").refuses(2, &["there is no job `nope`"]);

    let again = desk.refrain("run book#1");
    assert_eq!((again.code, heard.try_iter().count()), (Some(4), 0), "{again:?}");
    let retried = object(&desk.refrain("--json retry book#1"));
    assert_eq!(retried["doubts"][0]["unit"], "invoice:2");
}

#[test]
fn all_doubts_are_settled_at_once_with_one_attempt_and_a_reason() {
    let (desk, heard) = calling();
    assert_eq!(desk.refrain("run book#1").code, Some(4));
    assert_eq!(heard.try_iter().count(), 4);
    let mut settle = desk.command_of(&[
        "retry",
        "book#1",
        "--in-doubt",
        "--done",
        "--why",
        "the books have\tboth\u{1b}[2J",
    ]);
    let settled = output_of(&mut settle);
    assert_eq!(settled.code, Some(0), "{settled:?}");
    has(&settled.stdout, &["book#1: done (attempt 2)"]);
    has(&settled.stderr, &["`invoice:2` is recorded as done", "`invoice:4` is recorded as done"]);
    assert_eq!(heard.try_iter().count(), 0);
    let traced = desk.refrain("trace invoice:4");
    has(&traced.stdout, &["applied", "done invoice:4, by ada@office: the books have both"]);
    let drawn = on_a_terminal(&desk.command("trace invoice:4"));
    assert!(drawn.stdout.contains("the books have both"), "{drawn:?}");
    assert_eq!(sequences(&drawn.stdout), [""; 0], "{drawn:?}");
    let decisions = object(&desk.refrain("--json show book#1"))["decisions"].clone();
    let verbs: Vec<&str> =
        decisions.as_array().unwrap().iter().filter_map(|one| one["decided"].as_str()).collect();
    assert_eq!(verbs, ["done", "done", "retry"]);
    desk.refrain("retry book#1 --in-doubt").refuses(2, &["no unit of book#1 is in doubt"]);
}

#[test]
fn a_tick_that_leaves_a_doubt_exits_with_4() {
    let (desk, _heard) = calling();
    let ticked = desk.refrain("tick --now 2001-06-09T14:00:00Z");
    assert_eq!(ticked.code, Some(4), "{ticked:?}");
    has(&ticked.stdout, &["1 waiting for a decision of an operator"]);
    has(&ticked.stderr, &["an operator must decide"]);
    assert_eq!(desk.refrain("tick --now 2001-06-09T14:00:00Z").code, Some(0), "nothing new waits");
}

#[test]
fn what_a_command_prints_does_not_choose_the_exit_code() {
    let words = "it is not retried automatically; timed out after 1s; in doubt";
    let desk = Desk::of(&[
        ("refrain.toml", "[project]\nname = \"shop\"\n"),
        ("jobs/liar.toml", "queue = true\nretry = { attempts = 1 }\ncommand = [\"./liar.sh\"]\n"),
        ("liar.sh", &format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n")),
    ]);
    let ran = desk.refrain("run liar#1");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    has(&ran.stdout, &[words]);
    assert_eq!(desk.refrain("retry liar#1").code, Some(1));
}

#[tokio::test]
async fn the_operator_settles_an_interrupted_command_without_running_it() {
    let desk = Desk::shop().await;
    let ran = desk.refrain("run payment#1");
    assert_eq!(ran.code, Some(4), "{ran:?}");
    has(&ran.stderr, &["refrain retry payment#1 --done", "to execute it again: refrain retry payment#1"]);
    has(
        &desk.refrain("why payment#1").stdout,
        &["payment#1 waits for an operator: its command was interrupted"],
    );
    has(&desk.refrain("show payment#1").stdout, &["its command was cut off since"]);
    has(&desk.refrain("effects").stdout, &["payment#1  its command was cut off since"]);
    desk.enqueue("letter", "1", "{\"to\":\"Bob\"}");
    assert_eq!(desk.refrain("run letter#1").code, Some(1));
    let refused = desk.refrain("retry letter#1 --done");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    has(&refused.stderr, &["no command of `letter#1` waits for a decision: the run is failed"]);

    let mut settle = desk.command("retry payment#1 --done --as bob");
    let settled = output_of(settle.arg("--why").arg("the bank has it"));
    assert_eq!(settled.code, Some(0), "{settled:?}");
    has(&settled.stdout, &["payment#1: done (attempt 2)", "a person said that it was done", "0 processed"]);
    has(&settled.stderr, &["nothing was executed"]);
    has(&desk.refrain("show payment#1").stdout, &["done, by bob: the bank has it"]);
    assert_eq!(desk.refrain("run payment#1").code, Some(0));
    assert_eq!(desk.refrain("retry payment#1 --done").code, Some(1), "another person was faster");
}

#[tokio::test]
async fn a_decision_names_the_system_user_unless_as_names_another() {
    let desk = Desk::shop().await;
    desk.refrain("run totals@2001-06-01").succeeds(&["done"]);
    let mut again = desk.command("run totals@2001-06-01 --again");
    output_of(again.env_remove("REFRAIN_WHO")).succeeds(&["done"]);
    let shown = object(&desk.refrain("--json show totals@2001-06-01"));
    let who = shown["decisions"][0]["who"].as_str().unwrap_or_default().to_owned();
    assert!(who.len() > 2 && who != "ada@office", "{who}");
    for (line, words) in [("--as=", "it is empty"), ("--as=a\nb", "control character")] {
        output_of(&mut desk.command_of(&["pause", "totals", line])).refuses(2, &[words]);
    }
    let long = "w".repeat(2_001);
    output_of(&mut desk.command_of(&["pause", "totals", "--why", &long])).refuses(2, &["the limit is 2000"]);
}

#[tokio::test]
async fn a_recovered_store_shows_who_decided_to_recover() {
    let desk = Desk::shop().await;
    has(&desk.refrain("audit").stderr, &["nothing has run yet"]);
    desk.write(
        "jobs/lines.toml",
        r#"
            queue = true
            command = ["./list.sh"]
            output = "units"
            [unit]
            key = "n:{name}"
            [cursor]
            [publish]
            database = "shop"
            table = "customers"
            mode = "append-once"
        "#,
    );
    desk.write("list.sh", "#!/bin/sh\necho '{\"name\":\"cole\"}'\necho '{\"$cursor\":\"a\"}'\n");
    desk.refrain("run lines#1").succeeds(&["done"]);
    // The state that a copy of the project with a store of its own would find.
    std::fs::remove_dir_all(desk.file(".refrain")).unwrap();
    assert_ne!(desk.refrain("run lines#1").code, Some(0), "the database belongs to another store");
    assert_eq!(desk.refrain("recover").code, Some(4));
    desk.refrain("recover --yes --why restored").succeeds(&["belonged to the store"]);
    has(
        &desk.refrain("audit").stdout,
        &["shop  ", "recover it belonged to the store", "by ada@office: restored"],
    );
    desk.refrain("audit --limit 0").refuses(2, &["--limit"]);
}

#[tokio::test]
async fn decisions_about_jobs_checkpoints_and_the_store_are_listed() {
    let desk = Desk::shop().await;
    desk.write(
        "jobs/lines.toml",
        r#"
            queue = true
            command = ["./list.sh"]
            output = "units"
            [unit]
            key = "n:{name}"
            [cursor]
            [publish]
            database = "shop"
            table = "customers"
            mode = "append-once"
        "#,
    );
    desk.write("list.sh", "#!/bin/sh\necho '{\"name\":\"cole\"}'\necho '{\"$cursor\":\"a\"}'\n");
    desk.refrain("migrate").succeeds(&["is up to date"]);
    desk.refrain("run lines#1").succeeds(&["done"]);
    let name =
        object(&desk.refrain("--json checkpoint show"))["name"].as_str().unwrap_or_default().to_owned();
    let set = format!("checkpoint set lines {name} b");
    for line in ["pause lines --why moving", "pause lines", set.as_str(), "resume lines", "prune"] {
        let output = desk.refrain(line);
        assert_eq!(output.code, Some(0), "{line}: {output:?}");
    }
    let printed = desk.refrain("--json audit");
    let printed: Vec<Value> =
        printed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verbs: Vec<&str> = printed.iter().filter_map(|one| one["decided"].as_str()).collect();
    assert_eq!(verbs, ["prune", "resume", "set-checkpoint", "pause", "migrate", "migrate"]);
    assert!(printed.iter().all(|one| one["who"] == "ada@office"), "{printed:?}");
    assert_eq!(
        (printed[2]["detail"].as_str(), printed[3]["why"].as_str()),
        (Some("from a to b"), Some("moving"))
    );
    assert_eq!(printed[3]["subject"], "lines");
}

#[tokio::test]
async fn redo_asks_for_confirmation_and_names_the_work() {
    let desk = Desk::shop().await;
    desk.refrain("run totals@2001-06-01").succeeds(&["done"]);
    let refused = desk.refrain("run totals@2001-06-01 --redo");
    refused
        .refuses(4, &["its statement is executed once more", "refrain run totals@2001-06-01 --redo --yes"]);
    let refused = object(&desk.refrain("--json run totals@2001-06-01 --redo"));
    assert_eq!(refused["exit_code"], 4);
    desk.refrain("run totals@2001-06-01 --redo --yes --why mended").succeeds(&["done (attempt 2)"]);
    has(&desk.refrain("show totals@2001-06-01").stdout, &["redo, by ada@office: mended"]);
    desk.refrain("run totals@2001-06-02 --redo --yes").refuses(2, &["there is no run"]);
    desk.refrain("run export@2001-06-02 --redo").refuses(4, &["`echo` is executed once more"]);
    desk.refrain("run totals@2001-06-01 --redo --again").refuses(2, &["--again"]);

    desk.write(
        "jobs/lines.toml",
        r#"
            queue = true
            command = ["./list.sh"]
            output = "units"
            [unit]
            key = "n:{name}"
            on-change = "first"
            [publish]
            database = "shop"
            table = "customers"
            mode = "append-once"
        "#,
    );
    desk.write("list.sh", "#!/bin/sh\necho '{\"name\":\"cole\"}'\n");
    desk.refrain("run lines#1").succeeds(&["done"]);
    desk.refrain("run lines#1 --redo --yes")
        .refuses(2, &["cannot be repeated: an appended row stays", "merge"]);
}
