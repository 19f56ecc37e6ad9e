//! The end of an attempt is recorded only for an open run that the attempt still holds.

use refrain::core::state::FailureReason;
use refrain::{Ask, Counts, Error, JobError, Refrain};
use refrain_harness::every_store;
use tokio::task::JoinHandle;

use refrain_harness::TestDatabase;
use refrain_harness::work::{Gate, is_sound, job, open, run_states, shown};

/// A process that has begun the run `export#k`, which waits for its gate.
async fn begun(database: &TestDatabase, gate: &Gate) -> (Refrain, JoinHandle<Result<Counts, Error>>) {
    let refrain = open(database, [gate.job("export")]).await;
    refrain.enqueue("export", "k", &()).await.unwrap();
    let ticking = refrain.clone();
    let ticking = tokio::spawn(async move { ticking.tick().await });
    gate.have_begun(1).await;
    (refrain, ticking)
}

#[every_store]
async fn a_run_closed_behind_its_worker_keeps_its_outcome(database: TestDatabase) {
    let gate = Gate::closed();
    let (refrain, ticking) = begun(&database, &gate).await;
    database.store("update refrain_runs set open = false, outcome = 'cancelled', ended_at = 1").await;
    gate.let_through(1);
    assert_eq!(ticking.await.unwrap().unwrap().ended, 0);
    let run = shown(&refrain, "export#k").await;
    assert_eq!(run.standing.outcome.map(|outcome| outcome.to_string()).as_deref(), Some("cancelled"));
}

#[every_store]
async fn an_attempt_taken_over_is_ended_by_its_new_worker_alone(database: TestDatabase) {
    let gate = Gate::closed();
    let (refrain, ticking) = begun(&database, &gate).await;
    // As if it had been given back: the next worker has it under the same number.
    database.store("update refrain_queue set lease = 999").await;
    gate.let_through(1);
    assert_eq!(ticking.await.unwrap().unwrap().ended, 0);
    assert!(shown(&refrain, "export#k").await.standing.is_open(), "the next worker executes it");
    database.store("update refrain_queue set lease = null").await;
    gate.let_through(1);
    assert_eq!(refrain.tick().await.unwrap().ended, 1);
    assert_eq!(run_states(&refrain, "export").await, ["k done 1"]);
    is_sound(&refrain).await;
}

/// Releases before schema 6 know nothing of `failure`, and leave its value as it is.
#[every_store]
async fn a_reason_recorded_by_an_older_release_counts_before_an_earlier_failure(database: TestDatabase) {
    let fails = job("export", |_| async { Err(JobError::for_good("no")) });
    let refrain = open(&database, [fails]).await;
    refrain.enqueue("export", "k", &()).await.unwrap();
    refrain.run("export#k", Ask::Once).await.unwrap();
    refrain.run("export#k", Ask::Retry).await.unwrap();
    assert_eq!(shown(&refrain, "export#k").await.reason, Some(FailureReason::Error));
    for table in ["refrain_runs", "refrain_attempts"] {
        database.store(&format!("update {table} set reason = 'held' where failure = 'error'")).await;
    }
    let run = shown(&refrain, "export#k").await;
    let attempts = refrain.attempts(&run).await.unwrap();
    let reasons: Vec<_> = attempts.iter().map(|attempt| attempt.reason).collect();
    assert_eq!((run.reason, reasons), (Some(FailureReason::Held), vec![Some(FailureReason::Held)]));
    assert!(refrain.settle_held("export#k").await.unwrap().is_done(), "the operator settles a held run");
}
