//! Load from other programs on a database while Refrain works: old snapshots, long readers, and many notifications.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::time::{Duration, Instant};

use refrain::admin::PAYLOAD_BYTES_MAX;
use refrain::{Refrain, Settings, testing};
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{SETTINGS, Seen, is_sound, nothing, open, open_with, run_states};
use sqlx::postgres::PgListener;
use sqlx::{Connection, Executor, PgConnection, SqliteConnection};
use tokio::task::JoinSet;

const RUNS: usize = 20_000;

/// Enqueues many keys and does all of their runs.
async fn drained(refrain: &Refrain, runs: usize) {
    let keys = (0..runs).map(|number| (format!("{number:06}"), ()));
    refrain.enqueue_many("welcome", keys).await.unwrap();
    assert_eq!(refrain.tick().await.unwrap().ended, runs as u64);
    assert_eq!(refrain.open_runs().await.unwrap(), 0);
}

const MANY: Settings = SETTINGS.slots(500).lease(Duration::from_mins(1));

#[tokio::test]
async fn f46_an_old_snapshot_does_not_slow_the_queue_down() {
    let database = TestDatabase::postgres().await;
    let refrain = open_with(&database, MANY, [nothing("welcome")]).await;
    let mut old = PgConnection::connect(&database.url()).await.unwrap();
    old.execute("begin isolation level repeatable read").await.unwrap();
    let count = "select count(*) from refrain.runs";
    let before: i64 = sqlx::query_scalar(count).fetch_one(&mut old).await.unwrap();
    drained(&refrain, RUNS).await;
    let after: i64 = sqlx::query_scalar(count).fetch_one(&mut old).await.unwrap();
    assert_eq!((before, after), (0, 0), "the snapshot was there all the time");
    is_sound(&refrain).await;
}

#[tokio::test]
async fn f28_a_long_reader_makes_the_log_grow_and_the_log_shrinks_after_it() {
    let database = TestDatabase::sqlite().await;
    let refrain = open_with(&database, MANY, [nothing("welcome"), nothing("large")]).await;
    let path = database.url().strip_prefix("sqlite:").unwrap().to_owned();
    let log_bytes = || std::fs::metadata(format!("{path}-wal")).map_or(0, |file| file.len());
    let mut reader = SqliteConnection::connect(&database.url()).await.unwrap();
    let mut old = reader.begin().await.unwrap();
    let count = "select count(*) from refrain_runs";
    let before: i64 = sqlx::query_scalar(count).fetch_one(&mut *old).await.unwrap();
    drained(&refrain, RUNS / 4).await;
    let payload = "x".repeat(PAYLOAD_BYTES_MAX - 2);
    for batch in 0..10 {
        let large = (0..25).map(|number| (format!("{batch}-{number}"), payload.as_str()));
        refrain.enqueue_many("large", large).await.unwrap();
    }
    let after: i64 = sqlx::query_scalar(count).fetch_one(&mut *old).await.unwrap();
    assert_eq!(
        (before, after),
        (0, 0),
        "the snapshot was there all the time, and writers did not wait for it"
    );
    let grown = log_bytes();
    assert!(grown > 60 << 20, "{grown}");

    old.rollback().await.unwrap();
    for number in 0..3 {
        refrain.enqueue("welcome", &format!("after-{number}"), &()).await.unwrap();
    }
    assert!(log_bytes() < grown / 3 * 2, "{} of {grown} bytes", log_bytes());
    is_sound(&refrain).await;
}

/// Opens a file that is not a store yet, this many times at once.
async fn opened_at_once(openers: usize) -> Vec<Result<(), String>> {
    let database = TestDatabase::sqlite().await;
    let mut opening = JoinSet::new();
    for _ in 0..openers {
        let url = database.url();
        opening.spawn(async move {
            Refrain::migrate(&url).await.map_err(|error| error.to_string())?;
            let refrain = Refrain::at(&url, "shop").map_err(|error| error.to_string())?;
            refrain.open().await.map_err(|error| error.to_string())?.close().await;
            Ok(())
        });
    }
    opening.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn f27_many_processes_can_open_a_new_file_at_once() {
    for round in 0..20 {
        let answers = opened_at_once(8).await;
        assert!(answers.iter().all(Result::is_ok), "round {round}: {answers:?}");
    }
}

#[tokio::test]
async fn f45_one_notification_follows_many_commits() {
    let database = TestDatabase::postgres().await;
    let refrain = open(&database, [nothing("welcome")]).await;
    for (name, _, text) in testing::statements() {
        assert!(!text.to_lowercase().contains("notify"), "{name} rings inside its transaction");
    }
    let mut listener = PgListener::connect(&database.url()).await.unwrap();
    listener.listen("refrain").await.unwrap();
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let many = (0..800).map(|number| (format!("many-{number}"), ()));
    refrain.enqueue_many("welcome", many).await.unwrap();
    assert_eq!(listener.recv().await.unwrap().payload(), "");
    pool.execute("select pg_notify('refrain', 'last')").await.unwrap();
    assert_eq!(listener.recv().await.unwrap().payload(), "last", "800 offers at once are rung for once");

    let began = Instant::now();
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let refrain = refrain.clone();
        writers.spawn(async move {
            for number in 0..100 {
                refrain.enqueue("welcome", &format!("{writer}-{number}"), &()).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    // Notifications that were sent before this one were also received before it.
    let mut rings = 0;
    while rings == 0 {
        pool.execute("select pg_notify('refrain', 'last')").await.unwrap();
        while listener.recv().await.unwrap().payload() != "last" {
            rings += 1;
        }
    }
    // Two notifications are at least two milliseconds apart: runs that are enqueued meanwhile share one.
    let most = began.elapsed().as_millis() / 2 + 1;
    assert!(
        (1..=most.min(800)).contains(&rings),
        "{rings} rings for 800 offers, and at most {most} were due"
    );
}

#[tokio::test]
async fn f45_a_notified_worker_does_not_wait_for_its_poll() {
    let database = TestDatabase::postgres().await;
    let seen = Seen::default();
    let patient = SETTINGS.poll(Duration::from_hours(1));
    let worker = open_with(&database, patient, [seen.job("welcome")]).await;
    let serving = worker.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    let listens =
        "select query from pg_stat_activity where datname = current_database() and query ilike 'listen%'";
    eventually("the worker listens", DEADLINE, async || !database.texts(listens).await.is_empty()).await;
    let client = open(&database, [nothing("welcome")]).await;
    client.enqueue("welcome", "42", &()).await.unwrap();
    eventually("it was picked up", DEADLINE, async || run_states(&client, "welcome").await == ["42 done 1"])
        .await;
    stop.drain();
    serving.await.unwrap();
    assert_eq!(seen.all(), ["42"]);
}
