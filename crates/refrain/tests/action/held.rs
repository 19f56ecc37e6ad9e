//! A command that must not be executed twice, and one that may.

use rustix::process::Signal;

use crate::both_databases;
use crate::desk::Desk;
use crate::support::TestDatabase;

/// Says that it began, and lasts until there is a gate.
const ONCE: &str = r#"echo "$REFRAIN_ATTEMPT" >> begun; until [ -e gate ]; do sleep 0.01; done; echo fine"#;

/// A worker is killed with a command under way, and another one comes by. Gives the attempts that began.
pub(crate) async fn killed_in_the_middle(desk: &Desk, job: &str, variables: &[(&str, &str)]) -> Vec<String> {
    desk.ask(job, "k", ONCE).await;
    let worker = desk.worker(&["serve"], variables);
    desk.appears("begun").await;
    worker.end(Signal::KILL);
    desk.nobody_is_left().await;
    desk.touch("gate");
    desk.done(&["work"]).await;
    desk.lines("begun")
}

both_databases! {
    async fn a_command_that_may_is_executed_again_after_a_crash(database) {
        let desk = Desk::of(database);
        assert_eq!(killed_in_the_middle(&desk, "script", &[]).await, ["1", "2"]);
        assert_eq!(desk.told("script", "k").await, ("done".to_owned(), 2, String::new()));
    }

    async fn a_command_that_is_held_is_executed_again_only_when_a_person_says_so(database) {
        let desk = Desk::of(database);
        assert_eq!(killed_in_the_middle(&desk, "held", &[]).await, ["1"]);
        let (outcome, attempt, message) = desk.told("held", "k").await;
        assert_eq!((outcome.as_str(), attempt), ("failed", 2));
        assert!(message.starts_with("it was interrupted at attempt 1: it may or may not have done its work"), "{message}");
        assert!(message.ends_with("refrain retry held#k"), "{message}");

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
    desk.appears("begun").await;
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
