//! A failed attempt is retried at its time and not before, and every attempt is recorded.

use refrain_harness::every_store;
use std::time::Duration;

use refrain::admin::QueuePosition;
use refrain::core::retry::{Again, AttemptFailure, Backoff, Retry};
use refrain::{Ask, Definition, JobError, Refrain};

use refrain_harness::TestDatabase;
use refrain_harness::work::{Seen, history, is_sound, job, open, run_states, shown};

const RETRY: Retry =
    Retry { attempts: 4, backoff: Backoff { min: Duration::from_hours(1), max: Duration::from_hours(3) } };

/// Fails as its key says: for good, by panicking, by hanging; else until it has been tried as often as its payload
/// says.
fn failing(seen: &Seen) -> Definition {
    let seen = seen.clone();
    job("flaky", move |run| {
        seen.push(format!("{} {}", run.key(), run.attempt()));
        async move {
            match run.key() {
                "for-good" => Err(JobError::for_good("it would fail again")),
                "panic" => panic!("at the disco"),
                "hang" => std::future::pending().await,
                "asked" => Err(JobError::new("429").not_before(Duration::from_hours(30))),
                "nul" => Err(JobError::for_good("a\0b")),
                "long" => Err(JobError::for_good("ä".repeat(1 << 20))),
                _ if Some(run.attempt()) > run.payload()? => Ok(()),
                _ => Err(JobError::new(format!("try {}", run.attempt()))),
            }
        }
    })
}

/// The number of a run, which seeds its waits.
async fn number(database: &TestDatabase, key: &str) -> u64 {
    let id = database.store_numbers(&format!("select id from refrain_runs where key = '{key}'")).await[0];
    id.unsigned_abs()
}

/// When the waiting attempt may begin; it was delayed after the end of the attempt before.
async fn wait_of(database: &TestDatabase, refrain: &Refrain, key: &str) -> (i64, i64, i64) {
    let run = shown(refrain, &format!("flaky#{key}")).await;
    let Some(QueuePosition::Delayed(wake_at)) = run.place else { panic!("{key} stands at {:?}", run.place) };
    let ended_at = refrain.attempts(&run).await.unwrap().last().unwrap().ended_at.as_microsecond();
    let now = database.store_numbers("select now from refrain_clock").await[0];
    (ended_at, wake_at.as_microsecond(), now)
}

/// Lets every waiting attempt begin.
async fn time_passes(database: &TestDatabase) {
    database.store("update refrain_delayed set wake_at = 0").await;
}

#[every_store]
async fn h4_attempts_follow_the_backoff_and_stop_at_the_limit(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [failing(&seen).retry(RETRY)]).await;
    refrain.enqueue("flaky", "always", &9).await.unwrap();
    let run = number(&database, "always").await;
    for attempt in 1..RETRY.attempts {
        let report = refrain.tick().await.unwrap();
        assert_eq!((report.again, report.ended), (1, 0));
        let Again::After(stated) = RETRY.after(&AttemptFailure::of_attempt(attempt), run) else {
            panic!("tries are left")
        };
        let (ended_at, wake_at, now) = wait_of(&database, &refrain, "always").await;
        let planned_at = wake_at - i64::try_from(stated.as_micros()).unwrap();
        assert!((ended_at..=now).contains(&planned_at), "attempt {attempt}: {ended_at} {planned_at} {now}");
        assert_eq!(refrain.tick().await.unwrap().ended, 0, "not before its time");
        assert_eq!(seen.all().len(), attempt as usize);
        time_passes(&database).await;
    }
    assert_eq!(refrain.tick().await.unwrap().ended, 1);
    assert_eq!(run_states(&refrain, "flaky").await, ["always failed 4"]);
    assert_eq!(shown(&refrain, "flaky#always").await.message.as_deref(), Some("try 4"));
    assert_eq!(history(&refrain, "flaky#always").await, ["1 errored", "2 errored", "3 errored"]);
    assert_eq!(seen.all(), ["always 1", "always 2", "always 3", "always 4"]);
    time_passes(&database).await;
    assert_eq!(refrain.tick().await.unwrap(), refrain::Counts::default(), "nothing follows");
    is_sound(&refrain).await;
}

#[every_store]
async fn h4_a_run_that_succeeds_is_not_retried(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [failing(&seen).retry(RETRY)]).await;
    refrain.enqueue("flaky", "twice", &2).await.unwrap();
    for _ in 0..5 {
        refrain.tick().await.unwrap();
        time_passes(&database).await;
    }
    assert_eq!(seen.all(), ["twice 1", "twice 2", "twice 3"]);
    assert_eq!(run_states(&refrain, "flaky").await, ["twice done 3"]);
    let run = shown(&refrain, "flaky#twice").await;
    let past = refrain.attempts(&run).await.unwrap();
    let text: Vec<_> = past.iter().map(|attempt| attempt.message.as_deref().unwrap()).collect();
    assert_eq!(text, ["try 1", "try 2"]);
    assert!(past.iter().all(|attempt| attempt.started_at.is_some() && attempt.worker.is_some()));
    assert!(run.message.is_none() && run.ended_at.unwrap() >= past[1].ended_at);
}

#[every_store]
async fn h4_a_requested_retry_time_is_honoured(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [failing(&seen).retry(RETRY)]).await;
    refrain.enqueue("flaky", "asked", &()).await.unwrap();
    refrain.tick().await.unwrap();
    let (ended_at, wake_at, _) = wait_of(&database, &refrain, "asked").await;
    assert!(wake_at - ended_at >= 30 * 3_600 * 1_000_000, "longer than any backoff");
}

#[every_store]
async fn a_permanent_error_a_panic_and_a_hang_end_the_run_and_not_the_worker(database: TestDatabase) {
    let seen = Seen::default();
    let once = Retry { attempts: 1, ..RETRY };
    let work = failing(&seen).retry(once).timeout(Duration::from_millis(50));
    let refrain = open(&database, [work, failing(&seen).named("patient").unwrap().retry(RETRY)]).await;
    for key in ["panic", "hang", "fine"] {
        refrain.enqueue("flaky", key, &0).await.unwrap();
    }
    refrain.enqueue("patient", "for-good", &()).await.unwrap();
    assert_eq!(refrain.tick().await.unwrap().ended, 4);
    assert_eq!(run_states(&refrain, "flaky").await, ["fine done 1", "hang failed 1", "panic failed 1"]);
    assert_eq!(
        run_states(&refrain, "patient").await,
        ["for-good failed 1"],
        "tries were left, and none would help"
    );
    let text = |name: &'static str| async { shown(&refrain, name).await.message.unwrap_or_default() };
    assert!(text("flaky#panic").await.contains("at the disco"));
    assert!(text("flaky#hang").await.contains("timed out after"));
    is_sound(&refrain).await;
}

#[every_store]
async fn a_message_of_a_job_is_stored_whatever_it_contains(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [failing(&seen)]).await;
    for key in ["nul", "long"] {
        refrain.enqueue("flaky", key, &()).await.unwrap();
    }
    assert_eq!(refrain.tick().await.unwrap().ended, 2);
    let text = shown(&refrain, "flaky#nul").await.message.unwrap();
    assert!(text.starts_with('a') && text.ends_with('b'), "{text:?}");
    let long = shown(&refrain, "flaky#long").await.message.unwrap();
    assert!(long.len() < 5_000 && long.ends_with('…'));
}

#[every_store]
async fn h4_waking_a_due_attempt_wakes_no_other(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [failing(&seen).retry(RETRY)]).await;
    for key in ["early", "late"] {
        refrain.enqueue("flaky", key, &1).await.unwrap();
    }
    assert_eq!(refrain.tick().await.unwrap().again, 2);
    let early = number(&database, "early").await;
    database.store(&format!("update refrain_delayed set wake_at = 0 where run = {early}")).await;
    refrain.tick().await.unwrap();
    assert_eq!(run_states(&refrain, "flaky").await, ["early done 2", "late due 2"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_waiting_caller_skips_the_backoff(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [failing(&seen).retry(RETRY)]).await;
    refrain.enqueue("flaky", "once", &1).await.unwrap();
    refrain.tick().await.unwrap();
    let report = refrain.run("flaky#once", Ask::Once).await.unwrap();
    assert!(report.is_done());
    assert_eq!(run_states(&refrain, "flaky").await, ["once done 2"]);
    assert_eq!(refrain.open_runs().await.unwrap(), 0);
    is_sound(&refrain).await;
}
