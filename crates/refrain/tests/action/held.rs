//! A command that must not be executed twice, and one that may.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::both_databases;
use crate::desk::{Desk, stat};
use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};

/// Says that it began, and lasts until there is a gate.
const ONCE: &str = r#"echo "$REFRAIN_ATTEMPT" >> begun; until [ -e gate ]; do sleep 0.01; done; echo fine"#;

/// Returns when a command has said that it began.
async fn begun(desk: &Desk) {
    eventually("it has begun", DEADLINE, async || desk.lines("begun").len() == 1).await;
}

/// A worker is killed with a command under way, and another one comes by. Gives the attempts that began.
pub(crate) async fn killed_in_the_middle(desk: &Desk, job: &str, variables: &[(&str, &str)]) -> Vec<String> {
    desk.ask(job, "k", ONCE).await;
    let worker = desk.worker(&["serve"], variables);
    begun(desk).await;
    worker.end(Signal::KILL);
    desk.nobody_is_left().await;
    desk.touch("gate");
    desk.done(&["work"]).await;
    desk.lines("begun")
}

/// A worker is stopped right before it marks what it is about to begin; when it goes on, another one has done the run. Gives the
/// marks that are left.
pub(crate) async fn late_mark(desk: &Desk, weak: &str) -> Vec<i64> {
    let failpoints = format!("begun.before-mark=return(stop);{weak}");
    // Its lease is long, and run out by hand: it says only every few minutes that it is alive, and is not stopped at that, in a
    // transaction that would lock the file.
    let mut older = desk.worker(&["serve"], &[("FAILPOINTS", &failpoints), ("PROBE_LEASE", "600000")]);
    desk.done(&["enqueue", "noop", "n", "1"]).await;
    older.wait_for_line("ended noop#n0").await;
    desk.touch("gate");
    desk.ask("held", "k", ONCE).await;
    let has_stopped =
        async || stat(i32::try_from(older.id()).unwrap()).is_some_and(|fields| fields.starts_with('T'));
    eventually("it has stopped", DEADLINE, has_stopped).await;
    // As if it were on another machine: nobody can end it.
    desk.database.store("update refrain_workers set process = 'elsewhere/1/1/1', expires_at = 1").await;
    let newer = desk.worker(&["serve"], &[]);
    eventually("another one has done it", DEADLINE, async || desk.told("held", "k").await.0 == "done").await;
    older.signal(Signal::CONT);
    desk.touch("drain");
    assert!(older.wait().await.success());
    drop(newer);
    desk.database.store_numbers("select attempt from refrain_begun").await
}

both_databases! {
    async fn a_worker_that_lost_its_lease_before_the_command_began_leaves_no_mark(database) {
        let desk = Desk::of(database);
        assert_eq!(late_mark(&desk, "").await, Vec::<i64>::new());
        assert_eq!(desk.lines("begun"), ["2"]);
    }

    async fn a_command_that_may_is_executed_again_after_a_crash(database) {
        let desk = Desk::of(database);
        assert_eq!(killed_in_the_middle(&desk, "script", &[]).await, ["1", "2"]);
        assert_eq!(desk.told("script", "k").await, ("done".to_owned(), 2, String::new()));
    }

    async fn a_command_that_is_held_waits_for_a_person_also_when_the_next_worker_dies_before_it_looks(database) {
        let desk = Desk::of(database);
        desk.ask("held", "k", ONCE).await;
        let worker = desk.worker(&["serve"], &[]);
        begun(&desk).await;
        worker.end(Signal::KILL);
        desk.nobody_is_left().await;
        desk.touch("gate");
        // The second attempt has begun nothing, and so there is no mark of it.
        let mut second = desk.worker(&["serve"], &[("FAILPOINTS", "claim.after-commit=return(kill)")]);
        assert_eq!(second.wait().await.signal(), Some(Signal::KILL.as_raw()));
        desk.done(&["work"]).await;
        assert_eq!(desk.lines("begun"), ["1"]);
        let (outcome, attempt, message) = desk.told("held", "k").await;
        assert_eq!((outcome.as_str(), attempt), ("failed", 3));
        assert!(message.starts_with("it was interrupted at attempt 1: "), "{message}");
    }

    async fn a_command_that_is_held_is_executed_again_only_when_a_person_says_so(database) {
        let desk = Desk::of(database);
        assert_eq!(killed_in_the_middle(&desk, "held", &[]).await, ["1"]);
        let (outcome, attempt, message) = desk.told("held", "k").await;
        assert_eq!((outcome.as_str(), attempt), ("failed", 2));
        assert!(message.starts_with("it was interrupted at attempt 1: it may or may not have done its work"), "{message}");
        assert!(message.ends_with("refrain retry held#k --done; to execute it again: refrain retry held#k"), "{message}");

        desk.done(&["run", "held#k", "--again"]).await;
        assert_eq!(desk.lines("begun"), ["1", "3"]);
        assert_eq!(desk.told("held", "k").await, ("done".to_owned(), 3, String::new()));
        assert!(desk.database.store_numbers("select run from refrain_begun").await.is_empty(), "its end is known");
    }
}

#[tokio::test]
async fn a_command_that_is_held_and_stopped_in_the_middle_waits_for_a_person() {
    let desk = Desk::sqlite().await;
    desk.ask("held", "k", ONCE).await;
    let mut worker = desk.worker(&["serve"], &[]);
    begun(&desk).await;
    desk.touch("stop");
    assert!(worker.wait().await.success());
    desk.touch("gate");
    desk.done(&["work"]).await;
    assert_eq!((desk.lines("begun").len(), desk.told("held", "k").await.0.as_str()), (1, "failed"));
}

#[tokio::test]
async fn a_command_that_is_held_and_says_how_it_ended_is_tried_again_like_any_other() {
    let desk = Desk::sqlite().await;
    desk.ask("held", "k", r#"echo "$REFRAIN_ATTEMPT" >> begun; [ "$REFRAIN_ATTEMPT" -gt 1 ]"#).await;
    desk.done(&["work"]).await;
    assert_eq!(desk.lines("begun"), ["1", "2"]);
    assert_eq!(desk.told("held", "k").await, ("done".to_owned(), 2, String::new()));
}

#[tokio::test]
async fn a_command_that_is_held_and_killed_by_somebody_waits_for_a_person() {
    let desk = Desk::sqlite().await;
    desk.ask("held", "k", r#"echo "$REFRAIN_ATTEMPT" >> begun; kill -9 $$"#).await;
    desk.done(&["work"]).await;
    let (outcome, attempt, message) = desk.told("held", "k").await;
    assert_eq!((outcome.as_str(), attempt), ("failed", 1));
    assert!(message.starts_with("killed by signal 9 (SIGKILL) at attempt 1: it may or may not"), "{message}");
}

#[tokio::test]
async fn a_command_that_is_held_and_never_began_is_no_reason_to_wait() {
    let desk = Desk::sqlite().await;
    let refrain = desk.open([desk.job("held", &[])]).await;
    refrain.enqueue("held", "k", Some(r#"["./absent"]"#)).await.unwrap();
    desk.done(&["work"]).await;
    let (outcome, attempt, message) = desk.told("held", "k").await;
    assert_eq!((outcome.as_str(), attempt), ("failed", 1));
    assert!(message.starts_with("`./absent` could not be started"), "{message}");
    assert!(desk.database.store_numbers("select run from refrain_begun").await.is_empty());
}
