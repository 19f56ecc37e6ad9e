//! A run can be cancelled in every state.

use refrain::admin::{Cancelling, QueuePosition};
use refrain::core::state::{RunNode, RunOutcome};
use refrain::{Ask, JobError};
use refrain_harness::every_store;

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Gate, Seen, history, is_sound, job, nothing, open, run_states, shown};

#[every_store]
async fn a_cancelled_queued_run_never_begins(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("welcome")]).await;
    refrain.enqueue("welcome", "a", &()).await.unwrap();
    refrain.enqueue("welcome", "b", &()).await.unwrap();
    assert_eq!(refrain.cancel("welcome#a").await.unwrap(), Cancelling::Cancelled);
    refrain.tick().await.unwrap();
    assert_eq!(seen.all(), ["b"]);
    assert_eq!(run_states(&refrain, "welcome").await, ["a cancelled 1", "b done 1"]);
    assert!(!refrain.enqueue("welcome", "a", &()).await.unwrap().is_new(), "its key is known all the same");
    assert_eq!(refrain.cancel("welcome#a").await.unwrap(), Cancelling::Deduplicated);
    let refused = refrain.cancel("welcome#b").await.unwrap_err().to_string();
    assert!(refused.contains("nothing to cancel"), "{refused}");
    assert!(
        refrain.run("welcome#a", Ask::Once).await.unwrap().is_done(),
        "the cancelled run is requested again"
    );
    assert_eq!(run_states(&refrain, "welcome").await[0], "a done 2");
    is_sound(&refrain).await;
}

#[every_store]
async fn a_cancelled_run_in_back_off_is_not_retried(database: TestDatabase) {
    let work = job("flaky", |_| async { Err(JobError::new("not yet")) });
    let refrain = open(&database, [work]).await;
    refrain.enqueue("flaky", "a", &()).await.unwrap();
    refrain.tick().await.unwrap();
    assert!(matches!(shown(&refrain, "flaky#a").await.place, Some(QueuePosition::Delayed(_))));
    assert_eq!(refrain.cancel("flaky#a").await.unwrap(), Cancelling::Cancelled);
    assert_eq!(run_states(&refrain, "flaky").await, ["a cancelled 2"]);
    assert_eq!(history(&refrain, "flaky#a").await, ["1 errored"]);
    assert_eq!(refrain.open_runs().await.unwrap(), 0);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_running_attempt_is_told_of_its_cancellation(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("export").concurrency(1)]).await;
    refrain.enqueue("export", "a", &()).await.unwrap();
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    gate.have_begun(1).await;
    assert_eq!(refrain.cancel("export#a").await.unwrap(), Cancelling::Asked);
    assert_eq!(
        refrain.cancel("export#a").await.unwrap(),
        Cancelling::Asked,
        "a second request changes nothing"
    );
    eventually("the run is cancelled", DEADLINE, async || {
        shown(&refrain, "export#a").await.standing.node() == RunNode::Cancelled
    })
    .await;
    let run = shown(&refrain, "export#a").await;
    assert!(run.message.unwrap().contains("while it was running"));
    assert_eq!(
        database.store_numbers("select count(*) from refrain_cancellations").await,
        [0],
        "it was heard"
    );

    refrain.enqueue("export", "b", &()).await.unwrap();
    gate.have_begun(1).await;
    gate.let_through(1);
    eventually("the next one is done", DEADLINE, async || {
        shown(&refrain, "export#b").await.standing.is_done()
    })
    .await;
    stop.drain();
    serving.await.unwrap();
    is_sound(&refrain).await;
}

#[every_store]
async fn a_run_that_ends_first_leaves_no_cancellation_behind(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("export")]).await;
    refrain.enqueue("export", "a", &()).await.unwrap();
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick().await.unwrap() }
    });
    gate.have_begun(1).await;
    assert_eq!(refrain.cancel("export#a").await.unwrap(), Cancelling::Asked);
    gate.let_through(1);
    running.await.unwrap();
    let ended = shown(&refrain, "export#a").await.standing.outcome;
    assert!(matches!(ended, Some(RunOutcome::Done | RunOutcome::Cancelled)), "{ended:?}");
    gate.let_through(1);
    let again = refrain.run("export#a", Ask::Again).await.unwrap();
    assert!(again.is_done(), "the old cancellation does not hit the new attempt");
    assert_eq!(database.store_numbers("select count(*) from refrain_cancellations").await, [0]);
}

#[every_store]
async fn a_done_run_stays_done_when_its_next_attempt_is_cancelled(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    refrain.enqueue("welcome", "a", &()).await.unwrap();
    refrain.tick().await.unwrap();
    refrain.pause("welcome").await.unwrap();
    database.store("update refrain_runs set open = true where key = 'a'").await;
    database
        .store(
            "insert into refrain_attempts (run, number, ended, ended_at)
            select id, attempt, outcome, ended_at from refrain_runs",
        )
        .await;
    database
        .store(
            "insert into refrain_queue (line, run, attempt, spent, suspicion, lane)
            select job, id, 2, 0, 0, false from refrain_runs",
        )
        .await;
    assert_eq!(run_states(&refrain, "welcome").await, ["a due 2"]);
    assert!(shown(&refrain, "welcome#a").await.standing.is_done(), "done and open, never missing");
    assert_eq!(refrain.cancel("welcome#a").await.unwrap(), Cancelling::Cancelled);
    assert_eq!(shown(&refrain, "welcome#a").await.standing.outcome, Some(RunOutcome::Done));
    is_sound(&refrain).await;
}
