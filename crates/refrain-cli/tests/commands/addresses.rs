//! Stores on a server: unreachable, access denied, without tables, of another project.

use sqlx::{Connection, Executor, SqliteConnection};

use crate::support::Desk;
use crate::support::address::unused_port;
use crate::support::postgres::Scratch;
use crate::support::project;

const COMMANDS: [&str; 5] = ["migrate", "fsck", "run noop#1", "tick", "serve"];

#[test]
fn an_unreachable_server_is_a_temporary_failure() {
    let desk = Desk::at(&format!("postgres://ada:hunter2@127.0.0.1:{}/shop", unused_port()));
    let output = desk.refrain("run noop#1");
    output.refuses(75, &["the store cannot be reached", "is the server running"]);
    assert!(!output.stderr.contains("hunter2"), "{output:?}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_no_password_is_shown() {
    let mut scratch = Scratch::create().await;
    let right = std::mem::replace(&mut scratch.address.password, "hunter2".to_owned());
    let desk = Desk::at(&scratch.url());
    for command in COMMANDS {
        let output = desk.refrain(command);
        output
            .refuses(2, &["password authentication failed", "check the user, the password and the database"]);
        assert!(!output.stderr.contains("hunter2") && !output.stderr.contains(&right), "{output:?}");
    }
    let output = desk.refrain("--help");
    output.succeeds(&["REFRAIN_STORE"]);
    assert!(!output.stdout.contains("hunter2"), "{output:?}");
}

#[tokio::test]
async fn no_output_of_a_working_store_contains_the_password() {
    let scratch = Scratch::create().await;
    let desk = Desk::at(&scratch.url());
    for command in ["migrate", "--json migrate", "run noop#1", "tick", "fsck", "--json fsck"] {
        let output = desk.refrain(command);
        output.succeeds(&[]);
        let all = format!("{}{}", output.stdout, output.stderr);
        assert!(!all.contains(&scratch.address.password), "{output:?}");
    }
}

#[tokio::test]
async fn tables_on_a_server_are_created_only_by_migrate() {
    let scratch = Scratch::create().await;
    let desk = Desk::at(&scratch.url());
    for command in ["fsck", "run noop#1", "tick", "serve"] {
        desk.refrain(command).refuses(2, &["there is no store in this database yet", "refrain migrate"]);
    }
    desk.refrain("migrate").succeeds(&[
        "applied 0001_initial",
        "applied 0001_ledger",
        "12 migrations applied",
    ]);
    desk.refrain("migrate").succeeds(&["is up to date, 0 migrations applied"]);
    desk.refrain("run noop#1").succeeds(&["noop#1: done (attempt 1)"]);
    desk.refrain("run noop#1").succeeds(&["noop#1: done already"]);
    desk.refrain("fsck").succeeds(&["0 findings"]);
}

#[tokio::test]
async fn the_printed_script_makes_the_same_tables_by_hand() {
    let scratch = Scratch::create().await;
    let desk = Desk::at(&scratch.url());
    let script = desk.refrain("migrate --print").stdout;
    scratch.connect().await.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(script))).await.unwrap();
    desk.refrain("migrate").succeeds(&["0 migrations applied"]);
    desk.refrain("run noop-hourly@2001-06-09T14:00").succeeds(&[": done"]);
}

#[tokio::test]
async fn a_store_of_another_project_or_a_newer_schema_is_left_unchanged() {
    let scratch = Scratch::create().await;
    for desk in [Desk::sqlite(), Desk::at(&scratch.url())] {
        for (name, text) in project::noop("shop") {
            desk.write(&format!("shop/{name}"), &text);
        }
        desk.refrain("-C shop migrate").succeeds(&[]);
        desk.refrain("-C shop run noop#1").succeeds(&[]);
        for command in ["fsck", "run noop#1", "tick", "serve"] {
            desk.refrain(command).refuses(2, &["belongs to the project `shop`, not to `refrain`"]);
        }
        let statement = "insert into refrain_migrations (number, name, applied_at) values (99, 'later', 0)";
        if desk.file("store.db").exists() {
            let file = desk.file("store.db");
            let mut connection = SqliteConnection::connect(file.to_str().unwrap()).await.unwrap();
            connection.execute(statement).await.unwrap();
            connection.close().await.unwrap();
        } else {
            let statement =
                "insert into refrain.migrations (number, name, applied_at) values (99, 'later', 0)";
            scratch.connect().await.execute(statement).await.unwrap();
        }
        for command in COMMANDS {
            let line = format!("-C shop {command}");
            desk.refrain(&line).refuses(2, &["schema 99", "a newer refrain has upgraded it"]);
        }
    }
}
