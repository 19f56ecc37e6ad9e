//! A store that was copied, restored or created from a backup runs nothing before the operator states what it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::support::Desk;
use crate::support::postgres::Scratch;

const SAYS: [&str; 4] = ["not where it was", "--moved", "--restored", "--copied"];

/// A project with a command that counts its executions.
fn desk() -> Desk {
    Desk::of(&[
        ("refrain.toml", "[project]\nname = \"shop\"\n"),
        ("jobs/list.toml", "queue = true\ncommand = [\"./once.sh\"]\n"),
        ("once.sh", "#!/bin/sh\necho done >> executed\n"),
    ])
}

fn copied(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
}

fn executed(desk: &Desk) -> usize {
    fs::read_to_string(desk.file("executed")).unwrap_or_default().lines().count()
}

/// Asserts that commands that work run nothing and print what to type, and that commands that read continue.
fn waits_for_a_person(desk: &Desk, words: &[&str]) {
    let before = executed(desk);
    for line in ["run list#1 --again", "tick", "enqueue list --key 9", "serve"] {
        desk.refrain(line).refuses(4, words);
    }
    for line in ["status", "show list#1", "runs", "check"] {
        desk.refrain(line).succeeds(&[]);
    }
    let output = desk.refrain("recover");
    assert_eq!(output.code, Some(4), "{output:?}");
    for word in words {
        assert!(output.stdout.contains(word) || output.stderr.contains(word), "{output:?}");
    }
    assert_eq!(executed(desk), before, "nothing was executed");
}

#[test]
fn f23_a_copied_store_runs_nothing_before_the_operator_decides() {
    let (first, second) = (desk(), desk());
    first.refrain("run list#1").succeeds(&[]);
    copied(&first.file(".refrain"), &second.file(".refrain"));
    waits_for_a_person(&second, &SAYS);
    let output = second.refrain("--json recover");
    assert!(output.code == Some(4) && output.stdout.contains("\"doubt\":\"elsewhere\""), "{output:?}");
    second.refrain("recover --copied --yes").succeeds(&["the store is recorded as copied"]);
    second.refrain("run list#2").succeeds(&[]);
    first.refrain("run list#3").succeeds(&[]);
    assert_eq!((executed(&first), executed(&second)), (2, 1));
}

#[test]
fn f23_an_older_file_in_place_of_the_store_waits_for_the_operator() {
    let desk = desk();
    desk.refrain("run list#1").succeeds(&[]);
    copied(&desk.file(".refrain"), &desk.file("older"));
    desk.refrain("run list#2").succeeds(&[]);
    fs::remove_dir_all(desk.file(".refrain")).unwrap();
    fs::rename(desk.file("older"), desk.file(".refrain")).unwrap();
    waits_for_a_person(&desk, &SAYS);
    desk.refrain("recover --restored").succeeds(&["the store is recorded as restored"]);
    desk.refrain("run list#2").succeeds(&[]);
    assert_eq!(executed(&desk), 3, "the operator has let it run again");
}

#[test]
fn a_moved_store_waits_for_the_operator_and_one_in_a_renamed_folder_does_not() {
    let desk = desk();
    desk.refrain("run list#1").succeeds(&[]);
    fs::rename(desk.file(".refrain"), desk.file("elsewhere")).unwrap();
    fs::rename(desk.file("elsewhere"), desk.file(".refrain")).unwrap();
    desk.refrain("run list#2").succeeds(&[]);
    copied(&desk.file(".refrain"), &desk.file("elsewhere"));
    fs::remove_dir_all(desk.file(".refrain")).unwrap();
    fs::rename(desk.file("elsewhere"), desk.file(".refrain")).unwrap();
    desk.refrain("run list#3").refuses(4, &SAYS);
    desk.refrain("recover --moved").succeeds(&["the store is recorded as moved"]);
    desk.refrain("run list#3").succeeds(&[]);
}

#[test]
fn f23_a_restored_backup_runs_nothing_before_the_operator_decides() {
    let desk = desk();
    desk.refrain("run list#1").succeeds(&[]);
    desk.refrain("backup copy.db").succeeds(&[]);
    desk.refrain("--store sqlite:copy.db run list#2").refuses(4, &["made by `refrain backup`", "--restored"]);
    desk.refrain("--store sqlite:copy.db fsck").succeeds(&[]);
    desk.refrain("--store sqlite:copy.db recover --restored --yes")
        .succeeds(&["the store is recorded as restored"]);
    desk.refrain("--store sqlite:copy.db run list#2").succeeds(&[]);
}

#[tokio::test]
async fn f23_a_cloned_database_runs_nothing_before_the_operator_decides() {
    let (database, copy) = (Scratch::create().await, Scratch::create().await);
    let first = desk().with_store(&database.url());
    first.refrain("migrate").succeeds(&[]);
    first.refrain("run list#1").succeeds(&[]);
    let server = std::env::var("REFRAIN_TEST_POSTGRES").unwrap();
    let mut server = PgConnection::connect(&server).await.unwrap();
    let (from, to) = (&database.name, &copy.name);
    for text in [format!("drop database {to} with (force)"), format!("create database {to} template {from}")]
    {
        server.execute(AssertSqlSafe(text)).await.unwrap();
    }
    let second = desk().with_store(&copy.url());
    waits_for_a_person(&second, &SAYS);
    second.refrain("recover --copied --yes").succeeds(&["the store is recorded as copied"]);
    second.refrain("run list#2").succeeds(&[]);
}
