//! Maintenance: payloads and output are pruned and keys are kept; leases follow the present time.

use refrain_harness::every_store;
use std::time::Duration;

use refrain::{Ask, Did, Refrain, testing};
use sqlx::Executor;

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{SETTINGS, Seen, is_sound, job, nothing, open, open_with, run_states, shown};

#[every_store]
async fn a_backup_is_one_instant_of_the_store_and_replaces_no_file(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("mails")]).await;
    refrain.run("mails#ada", Ask::Once).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.db");
    if !database.is_sqlite() {
        let refused = refrain.backup(&copy).await.unwrap_err().to_string();
        assert!(refused.contains("pg_dump") && !copy.exists(), "{refused}");
        return;
    }
    assert!(refrain.backup(&copy).await.unwrap() > 0);
    let refused = refrain.backup(&copy).await.unwrap_err().to_string();
    assert!(refused.contains("cannot be written"), "{refused}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing half-made is left");
    refrain.run("mails#grace", Ask::Once).await.unwrap();

    let url = format!("sqlite:{}", copy.display());
    let options = || Refrain::at(&url, "shop").unwrap().job(seen.job("mails"));
    let refused = options().open().await.err().unwrap().to_string();
    assert!(refused.contains("refrain recover"), "a restored store is let in by a person: {refused}");
    let found = options().recover(None).await.unwrap();
    assert_eq!(options().recover(Some(&found)).await.unwrap(), found);
    let restored = options().open().await.unwrap();
    assert_eq!(run_states(&restored, "mails").await, ["ada done 1"]);
    is_sound(&restored).await;
}

#[every_store]
async fn prune_deletes_old_payloads_and_output_at_once(database: TestDatabase) {
    let refrain = open(&database, [nothing("mails")]).await;
    refrain.enqueue_json("mails", "ada", Some("{}")).await.unwrap();
    refrain.tick().await.unwrap();
    assert_eq!(refrain.prune(Duration::from_hours(1), |_| ()).await.unwrap(), 0, "too young");
    assert!(database.store("update refrain_runs set ended_at = 1").await > 0);
    let mut told_rows = Vec::new();
    assert!(refrain.prune(Duration::from_hours(1), |rows| told_rows.push(rows)).await.unwrap() > 0);
    assert!(!told_rows.is_empty());
    assert_eq!(shown(&refrain, "mails#ada").await.payload, None);
}

#[every_store]
async fn open_and_recent_runs_are_not_pruned(database: TestDatabase) {
    let refrain = open(&database, [nothing("mails")]).await;
    refrain.enqueue_json("mails", "again", Some("{}")).await.unwrap();
    refrain.enqueue_json("mails", "young", Some("{}")).await.unwrap();
    refrain.tick().await.unwrap();
    for given in [
        "insert into refrain_outputs (run, attempt, number, stream, at, text)
                select id, 1, 1, 'stdout', 0, 'line' from refrain_runs",
        "insert into refrain_begun (run, attempt, at) select id, 1, 0 from refrain_runs",
        "insert into refrain_attempts (run, number, ended, ended_at)
                select id, 0, 'errored', ended_at from refrain_runs",
        // As if the run had been requested again, years after its end, and cancelled.
        "update refrain_runs set open = true, ended_at = 1 where key = 'again'",
        "insert into refrain_cancellations (run, asked_at) select id, 0 from refrain_runs where open",
    ] {
        assert!(database.store(given).await > 0, "{given}");
    }
    assert_eq!(refrain.prune(Duration::from_hours(1), |_| ()).await.unwrap(), 0);
    let kept = "select count(*) from refrain_outputs union all select count(*) from refrain_begun
            union all select count(*) from refrain_attempts union all select count(*) \
            from refrain_cancellations
            union all select count(*) from refrain_runs where payload = '{}'";
    assert_eq!(database.store_numbers(kept).await, [2, 2, 2, 1, 2]);
}

#[every_store]
async fn old_payloads_are_pruned_and_keys_are_kept(database: TestDatabase) {
    let settings = SETTINGS.keep(Duration::from_hours(1));
    let seen = Seen::default();
    let message = seen.clone();
    let work = job("welcome", move |run| {
        message.push(run.key());
        async move {
            match (run.key(), run.attempt()) {
                ("old", 1) => Err(refrain::JobError::new("not yet")),
                _ => Ok(()),
            }
        }
    });
    let refrain = open_with(&database, settings, [work]).await;
    for key in ["old", "young"] {
        refrain.enqueue_json("welcome", key, Some("{}")).await.unwrap();
        refrain.enqueue_json("welcome", key, Some("{}")).await.unwrap();
        refrain.tick().await.unwrap();
        refrain.run(&format!("welcome#{key}"), Ask::Once).await.unwrap();
    }
    for aged in [
        "update refrain_runs set ended_at = 1 where key = 'old'",
        "update refrain_attempts set ended_at = 1",
        "update refrain_dedupes set at = 1 where run = (select id from refrain_runs where key = 'old')",
    ] {
        assert!(database.store(aged).await > 0, "{aged}");
    }
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    eventually("the old payload is gone", DEADLINE, async || {
        shown(&refrain, "welcome#old").await.payload.is_none()
    })
    .await;
    stop.drain();
    serving.await.unwrap();

    let (old, young) = (shown(&refrain, "welcome#old").await, shown(&refrain, "welcome#young").await);
    assert_eq!(refrain.attempts(&old).await.unwrap(), []);
    assert_eq!(refrain.dedupes(&old).await.unwrap(), []);
    assert_eq!(young.payload.as_deref(), Some("{}"));
    assert!(!refrain.dedupes(&young).await.unwrap().is_empty());
    assert_eq!(run_states(&refrain, "welcome").await, ["old done 2", "young done 1"]);
    assert!(!refrain.enqueue("welcome", "old", &()).await.unwrap().is_new(), "a replay finds it done");
    assert_eq!(refrain.run("welcome#old", Ask::Once).await.unwrap().did, Did::Deduplicated);
    let again = refrain.run("welcome#old", Ask::Again).await.unwrap_err();
    assert!(matches!(again, refrain::Error::Forgotten(_)), "{again}");
    assert_eq!(seen.all(), ["old", "old", "young"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn f48_a_lease_is_counted_from_now_even_in_an_old_transaction(database: TestDatabase) {
    open(&database, [nothing("welcome")]).await;
    let (_, here, there) =
        testing::statements().into_iter().find(|(name, ..)| *name == "sql/worker/register.sql").unwrap();
    let lease = 30_000_000_i64;
    let (began, aged, started, expires): (i64, i64, i64, i64) = match &database {
        TestDatabase::Sqlite { pool, .. } => {
            let mut old = pool.begin().await.unwrap();
            let clock = "select now from refrain_clock";
            let began: i64 = sqlx::query_scalar(clock).fetch_one(&mut *old).await.unwrap();
            let mut aged = began;
            while aged < began + 50_000 {
                aged = sqlx::query_scalar(clock).fetch_one(&mut *old).await.unwrap();
            }
            sqlx::query(here)
                .bind("test")
                .bind(lease)
                .bind(0_i32)
                .bind(0_i32)
                .bind(false)
                .execute(&mut *old)
                .await
                .unwrap();
            let worker = "select started_at, expires_at from refrain_workers where process = 'test'";
            let (started, expires) = sqlx::query_as(worker).fetch_one(&mut *old).await.unwrap();
            (began, aged, started, expires)
        }
        TestDatabase::Postgres { pool, .. } => {
            let mut old = pool.begin().await.unwrap();
            let clock = "select now from refrain.clock";
            let began: i64 = sqlx::query_scalar(clock).fetch_one(&mut *old).await.unwrap();
            let mut aged = began;
            while aged < began + 50_000 {
                aged = sqlx::query_scalar(clock).fetch_one(&mut *old).await.unwrap();
            }
            sqlx::query(there)
                .bind("test")
                .bind(lease)
                .bind(0_i32)
                .bind(0_i32)
                .bind(false)
                .execute(&mut *old)
                .await
                .unwrap();
            let worker = "select started_at, expires_at from refrain.workers where process = 'test'";
            let (started, expires) = sqlx::query_as(worker).fetch_one(&mut *old).await.unwrap();
            old.execute("rollback").await.unwrap();
            (began, aged, started, expires)
        }
    };
    assert!(aged >= began + 50_000 && started >= aged, "{began} {aged} {started}");
    assert!(expires >= aged + lease, "the time that the transaction took is not taken from the lease");
}
