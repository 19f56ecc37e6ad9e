//! A command that must not run twice (`interrupted = "hold"`), and one that may.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::workspace::{Workspace, stat};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

/// Reports that it began, and runs until the file `gate` exists.
const ONCE: &str = r#"echo "$REFRAIN_ATTEMPT" >> begun; until [ -e gate ]; do sleep 0.01; done; echo fine"#;

/// Returns when a command has reported that it began.
async fn begun(workspace: &Workspace) {
    eventually("it has begun", DEADLINE, async || workspace.lines("begun").len() == 1).await;
}

/// A worker is killed while its command runs, and another one takes over. Returns the attempts that began.
pub(crate) async fn killed_in_the_middle(
    workspace: &Workspace,
    job: &str,
    variables: &[(&str, &str)],
) -> Vec<String> {
    workspace.ask(job, "k", ONCE).await;
    let worker = workspace.worker(&["serve"], variables);
    begun(workspace).await;
    worker.end(Signal::KILL);
    workspace.no_process_is_left().await;
    workspace.touch("gate");
    workspace.done(&["work"]).await;
    workspace.lines("begun")
}

/// A worker is stopped right before it marks a command as begun; when it continues, another one has done the run.
/// Returns the remaining marks.
pub(crate) async fn late_mark(workspace: &Workspace, weak: &str) -> Vec<i64> {
    let failpoints = format!("begun.before-mark=return(stop);{weak}");
    // Its lease is long and expired by hand: it sends a heartbeat only every few minutes, so it is not stopped inside
    // one, in a transaction that would lock the file.
    let mut older = workspace.worker(&["serve"], &[("FAILPOINTS", &failpoints), ("PROBE_LEASE", "600000")]);
    workspace.done(&["enqueue", "noop", "n", "1"]).await;
    older.wait_for_line("ended noop#n0").await;
    workspace.touch("gate");
    workspace.ask("held", "k", ONCE).await;
    let has_stopped =
        async || stat(i32::try_from(older.id()).unwrap()).is_some_and(|fields| fields.starts_with('T'));
    eventually("it has stopped", DEADLINE, has_stopped).await;
    // As if it were on another machine, where no process can end it.
    workspace.database.store("update refrain_workers set process = 'elsewhere/1/1/1', expires_at = 1").await;
    let newer = workspace.worker(&["serve"], &[]);
    eventually("another one has done it", DEADLINE, async || {
        workspace.outcome_of("held", "k").await.0 == "done"
    })
    .await;
    older.signal(Signal::CONT);
    workspace.touch("drain");
    assert!(older.wait().await.success());
    drop(newer);
    workspace.database.store_numbers("select attempt from refrain_begun").await
}

#[both_databases]
async fn a_worker_that_lost_its_lease_before_the_command_records_no_beginning(database: TestDatabase) {
    let workspace = Workspace::of(database);
    assert_eq!(late_mark(&workspace, "").await, Vec::<i64>::new());
    assert_eq!(workspace.lines("begun"), ["2"]);
}

#[both_databases]
async fn a_command_without_hold_runs_again_after_a_crash(database: TestDatabase) {
    let workspace = Workspace::of(database);
    assert_eq!(killed_in_the_middle(&workspace, "script", &[]).await, ["1", "2"]);
    assert_eq!(workspace.outcome_of("script", "k").await, ("done".to_owned(), 2, String::new()));
}

#[both_databases]
async fn a_held_command_waits_for_the_operator_even_if_the_next_worker_dies(database: TestDatabase) {
    let workspace = Workspace::of(database);
    workspace.ask("held", "k", ONCE).await;
    let worker = workspace.worker(&["serve"], &[]);
    begun(&workspace).await;
    worker.end(Signal::KILL);
    workspace.no_process_is_left().await;
    workspace.touch("gate");
    // The second attempt has begun no command, so there is no record of it.
    let mut second = workspace.worker(&["serve"], &[("FAILPOINTS", "claim.after-commit=return(kill)")]);
    assert_eq!(second.wait().await.signal(), Some(Signal::KILL.as_raw()));
    workspace.done(&["work"]).await;
    assert_eq!(workspace.lines("begun"), ["1"]);
    let (outcome, attempt, message) = workspace.outcome_of("held", "k").await;
    assert_eq!((outcome.as_str(), attempt), ("failed", 3));
    assert!(message.starts_with("it was interrupted at attempt 1: "), "{message}");
}

#[both_databases]
async fn a_held_command_runs_again_only_when_the_operator_says_so(database: TestDatabase) {
    let workspace = Workspace::of(database);
    assert_eq!(killed_in_the_middle(&workspace, "held", &[]).await, ["1"]);
    let (outcome, attempt, message) = workspace.outcome_of("held", "k").await;
    assert_eq!((outcome.as_str(), attempt), ("failed", 2));
    assert!(
        message.starts_with("it was interrupted at attempt 1: it may or may not have done its work"),
        "{message}"
    );
    assert!(
        message.ends_with("refrain retry held#k --done; to execute it again: refrain retry held#k"),
        "{message}"
    );

    workspace.done(&["run", "held#k", "--again"]).await;
    assert_eq!(workspace.lines("begun"), ["1", "3"]);
    assert_eq!(workspace.outcome_of("held", "k").await, ("done".to_owned(), 3, String::new()));
    assert!(
        workspace.database.store_numbers("select run from refrain_begun").await.is_empty(),
        "its end is known"
    );
}

#[tokio::test]
async fn a_held_command_stopped_half_way_waits_for_the_operator() {
    let workspace = Workspace::sqlite().await;
    workspace.ask("held", "k", ONCE).await;
    let mut worker = workspace.worker(&["serve"], &[]);
    begun(&workspace).await;
    workspace.touch("stop");
    assert!(worker.wait().await.success());
    workspace.touch("gate");
    workspace.done(&["work"]).await;
    assert_eq!(
        (workspace.lines("begun").len(), workspace.outcome_of("held", "k").await.0.as_str()),
        (1, "failed")
    );
}

#[tokio::test]
async fn a_held_command_that_fails_by_exit_code_is_retried() {
    let workspace = Workspace::sqlite().await;
    workspace.ask("held", "k", r#"echo "$REFRAIN_ATTEMPT" >> begun; [ "$REFRAIN_ATTEMPT" -gt 1 ]"#).await;
    workspace.done(&["work"]).await;
    assert_eq!(workspace.lines("begun"), ["1", "2"]);
    assert_eq!(workspace.outcome_of("held", "k").await, ("done".to_owned(), 2, String::new()));
}

#[tokio::test]
async fn a_held_command_killed_by_a_signal_waits_for_the_operator() {
    let workspace = Workspace::sqlite().await;
    workspace.ask("held", "k", r#"echo "$REFRAIN_ATTEMPT" >> begun; kill -9 $$"#).await;
    workspace.done(&["work"]).await;
    let (outcome, attempt, message) = workspace.outcome_of("held", "k").await;
    assert_eq!((outcome.as_str(), attempt), ("failed", 1));
    assert!(message.starts_with("killed by signal 9 (SIGKILL) at attempt 1: it may or may not"), "{message}");
}

#[tokio::test]
async fn a_held_command_that_never_began_does_not_wait() {
    let workspace = Workspace::sqlite().await;
    let refrain = workspace.open([workspace.job("held", &[])]).await;
    refrain.enqueue_json("held", "k", Some(r#"["./absent"]"#)).await.unwrap();
    workspace.done(&["work"]).await;
    let (outcome, attempt, message) = workspace.outcome_of("held", "k").await;
    assert_eq!((outcome.as_str(), attempt), ("failed", 1));
    assert!(message.starts_with("`./absent` could not be started"), "{message}");
    assert!(workspace.database.store_numbers("select run from refrain_begun").await.is_empty());
}
