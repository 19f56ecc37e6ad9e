//! Statements that write a row once: executed again, they find the row and change nothing.

use super::Case;

/// Executes it a second time, after it was executed once.
async fn is_said_once(statement: &str, arguments: &[&str], given: &'static str) {
    let message = Case::of(statement, arguments, given).await;
    assert_eq!(message.met("").await, 1, "{statement}");
    assert_eq!(message.met(&message.text).await, 0, "{statement}, again");
}

const RUN: &str = "insert into refrain_runs (id, job, attempt, opened_at, ended_at, open, key, outcome)
    values (2, 1, 1, 0, 1, false, 'k', 'failed')";

#[tokio::test]
async fn a_statement_repeated_after_a_lost_reply_leaves_one_row() {
    for (statement, arguments) in [
        ("count/insert", &["'[[2, 1, 1, 0, 0, 0]]'"][..]),
        ("unit_dedupe/insert", &[r#"'[[2, 1, "stale", 1, "[]"]]'"#]),
        ("output/append", &["2", "1", r#"'[[1, "stdout", 0, "line"]]'"#]),
        ("begun/mark", &["2", "1"]),
        ("expansion/freeze", &["2", "1", "'hash'"]),
        ("arrival/insert", &["'there'", "'[[1]]'"]),
        ("cancellation/ask", &["2"]),
    ] {
        is_said_once(statement, arguments, RUN).await;
    }
}

#[tokio::test]
async fn an_attempt_is_recorded_once() {
    is_said_once("attempt/keep", &["2"], RUN).await;
    is_said_once("attempt/insert", &["1", r#"'[[2, 1, "errored", 0, null, null, null]]'"#], RUN).await;
}

#[tokio::test]
async fn rows_that_are_unique_by_name_are_created_once() {
    for (statement, arguments) in [
        ("job/name", &["'sync'", "1"][..]),
        ("job/register", &["'sync'", "'sync'"]),
        ("schedule/insert", &["1", "5"]),
        ("store/found", &["'id'", "'shop'", "false"]),
        ("ledger/open", &["'shop'", "'sync'", "''", "''"]),
        ("checkpoint/begin", &["1", "'pages'", "'1'", "7", "2", "9"]),
        ("lane/wait", &["1", "1", r#"'[["", "k", 2, 1, 0, 0]]'"#]),
    ] {
        is_said_once(statement, arguments, RUN).await;
    }
}
