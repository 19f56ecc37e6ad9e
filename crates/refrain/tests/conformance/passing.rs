//! Schedulers skip a row that another scheduler holds: none waits, and none repeats the work of the
//! other.
//!
//! On PostgreSQL only: SQLite has one writer at a time.

use std::time::Duration;

use refrain::admin::Cancelling;
use refrain::core::retry::{Backoff, Retry};
use refrain::{CatchUp, JobError};
use sqlx::{Executor as _, PgPool};

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Gate, Seen, daily, is_sound, job, june, nothing, open, run_states, short};

/// A worker that has claimed every queued run.
const LEASED: &str = "insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at)
        select 1, 999, min(line), min(run), max(run), 0 from refrain_queue;
    update refrain_queue set lease = 1";

/// A worker that has claimed runs of several jobs; the first of the runs is cancelled.
const LEASED_BY_LINE: &str = "insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at)
        select min(run), 999, line, min(run), max(run), 0 from refrain_queue group by line;
    update refrain_queue set lease = run;
    insert into refrain_cancellations (run, asked_at) select min(id), 0 from refrain_runs";

/// A database, and connections on which another scheduler holds rows locked.
async fn shared() -> (TestDatabase, PgPool) {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { panic!("this is a PostgreSQL") };
    let other = pool.clone();
    (database, other)
}

/// Whether a transaction waits for another one.
async fn waits(database: &TestDatabase) -> bool {
    let waiting = "select cast(count(*) as text) from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()";
    database.texts(waiting).await == ["1"]
}

async fn is_waiting(database: &TestDatabase) {
    eventually("one waits", DEADLINE, async || waits(database).await).await;
}

#[tokio::test]
async fn a_scheduler_skips_a_schedule_that_another_one_holds() {
    let (database, other) = shared().await;
    let seen = Seen::default();
    let report = seen.job("report").timetable(daily()).catch_up(CatchUp::All);
    let refrain = open(&database, [report]).await;
    let mut held = other.begin().await.unwrap();
    held.execute("select 1 from refrain.schedules for update").await.unwrap();
    assert_eq!(refrain.open_due(june("03T00:01")).await.unwrap().opened, 0, "the other one opens them");
    held.rollback().await.unwrap();
    assert_eq!(refrain.open_due(june("03T00:01")).await.unwrap().opened, 2);
    is_sound(&refrain).await;
}

#[tokio::test]
async fn a_scheduler_skips_an_attempt_that_another_one_wakes() {
    let (database, other) = shared().await;
    let hours = Backoff { min: Duration::from_hours(1), max: Duration::from_hours(1) };
    let flaky =
        job(
            "flaky",
            |run| async move { if run.attempt() == 1 { Err(JobError::new("not yet")) } else { Ok(()) } },
        );
    let refrain = open(&database, [flaky.retry(Retry { attempts: 2, backoff: hours })]).await;
    refrain.enqueue("flaky", "k", &()).await.unwrap();
    assert_eq!(refrain.tick().await.unwrap().again, 1);
    database.store("update refrain_delayed set wake_at = 0").await;
    let mut held = other.begin().await.unwrap();
    held.execute("select 1 from refrain.delayed for update").await.unwrap();
    assert_eq!(refrain.tick().await.unwrap().ended, 0, "the other one wakes it");
    held.rollback().await.unwrap();
    assert_eq!(refrain.tick().await.unwrap().ended, 1);
    assert_eq!(run_states(&refrain, "flaky").await, ["k done 2"]);
    is_sound(&refrain).await;
}

/// A scheduler moves the attempt into the queue and has not committed yet.
#[tokio::test]
async fn an_attempt_woken_while_it_is_cancelled_never_begins() {
    let (database, other) = shared().await;
    let refrain = open(&database, [job("flaky", |_| async { Err(JobError::new("not yet")) })]).await;
    refrain.enqueue("flaky", "k", &()).await.unwrap();
    assert_eq!(refrain.tick().await.unwrap().again, 1);
    let mut woken = other.begin().await.unwrap();
    let move_it = "with woken as (delete from refrain.delayed returning *)
        insert into refrain.queue (line, run, attempt, spent, suspicion, lane)
        select line, run, attempt, spent, suspicion, lane from woken";
    woken.execute(move_it).await.unwrap();
    let cancelling = refrain.clone();
    let cancelling = tokio::spawn(async move { cancelling.cancel("flaky#k").await });
    is_waiting(&database).await;
    woken.commit().await.unwrap();
    assert_eq!(cancelling.await.unwrap().unwrap(), Cancelling::Cancelled);
    assert_eq!(run_states(&refrain, "flaky").await, ["k cancelled 2"]);
    assert_eq!(refrain.open_runs().await.unwrap(), 0);
    is_sound(&refrain).await;
}

/// A run joins the queue of a lane, uncommitted yet, when the run that holds the lane ends.
#[tokio::test]
async fn a_run_that_arrives_while_its_lane_is_freed_begins() {
    let (database, other) = shared().await;
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("report").timetable(daily()).catch_up(CatchUp::All)]).await;
    refrain.open_due(june("03T06:00")).await.unwrap();
    database.store("create table public.coming as select * from refrain_lane_waits").await;
    database.store("delete from refrain_lane_waits").await;
    let ticking = refrain.clone();
    let ticking = tokio::spawn(async move { ticking.tick_at(june("03T06:00")).await.unwrap() });
    gate.have_begun(1).await;
    let mut coming = other.begin().await.unwrap();
    coming.execute("update refrain.lanes set run = run").await.unwrap();
    coming.execute("insert into refrain.lane_waits select * from public.coming").await.unwrap();
    gate.let_through(2);
    is_waiting(&database).await;
    coming.commit().await.unwrap();
    assert_eq!(ticking.await.unwrap().ended, 2);
    is_sound(&refrain).await;
}

/// A worker that was silent for too long ends one of its runs after all, uncommitted yet, when its runs are taken
/// over.
#[tokio::test]
async fn taken_over_runs_begin_again_except_one_that_ended_meanwhile() {
    let (database, other) = shared().await;
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("report")]).await;
    for key in ["k", "l"] {
        refrain.enqueue("report", key, &()).await.unwrap();
    }
    database.store(LEASED).await;
    let mut ending = other.begin().await.unwrap();
    ending
        .execute("update refrain.runs set open = false, outcome = 'done', ended_at = 1 where key = 'k'")
        .await
        .unwrap();
    let leave = "delete from refrain.queue where run = (select id from refrain.runs where key = 'k')";
    ending.execute(leave).await.unwrap();
    let rescuing = refrain.clone();
    let rescuing = tokio::spawn(async move { rescuing.tick().await });
    is_waiting(&database).await;
    ending.commit().await.unwrap();
    rescuing.await.unwrap().unwrap();
    refrain.tick().await.unwrap();
    assert_eq!((seen.all(), refrain.open_runs().await.unwrap()), (vec!["l".to_owned()], 0));
    is_sound(&refrain).await;
}

/// A worker ends its run, uncommitted yet, when the run is cancelled.
#[tokio::test]
async fn a_run_that_ends_while_it_is_cancelled_leaves_no_cancellation() {
    let (database, other) = shared().await;
    let refrain = open(&database, [nothing("report")]).await;
    refrain.enqueue("report", "k", &()).await.unwrap();
    database.store(LEASED).await;
    let mut ending = other.begin().await.unwrap();
    let end = "update refrain.runs set open = false, outcome = 'done', attempt = 1, ended_at = 1;
        delete from refrain.queue;
        delete from refrain.leases";
    ending.execute(end).await.unwrap();
    let cancelling = refrain.clone();
    let cancelling = tokio::spawn(async move { cancelling.cancel("report#k").await });
    let is_answered = || cancelling.is_finished();
    eventually("the caller waits", DEADLINE, async || is_answered() || waits(&database).await).await;
    ending.commit().await.unwrap();
    let refused = cancelling.await.unwrap().unwrap_err().to_string();
    assert!(refused.contains("nothing to cancel"), "{refused}");
    assert_eq!(run_states(&refrain, "report").await, ["k done 1"]);
    let left = "select count(*) from refrain_cancellations";
    assert_eq!(database.store_numbers(left).await, [0], "a cancellation would hit the next attempt");
    is_sound(&refrain).await;
}

/// A due run is cancelled, uncommitted yet, when the run joins its lane.
#[tokio::test]
async fn a_run_cancelled_while_it_joins_its_lane_never_begins() {
    let (database, other) = shared().await;
    let hours = Backoff { min: Duration::from_hours(1), max: Duration::from_hours(1) };
    let seen = Seen::default();
    let message = seen.clone();
    let flaky = job("report", move |run| {
        message.push(format!("{} {}", short(run.key()), run.attempt()));
        async { Err(JobError::new("not yet")) }
    });
    let flaky = flaky.timetable(daily()).catch_up(CatchUp::All).retry(Retry { attempts: 3, backoff: hours });
    let refrain = open(&database, [flaky]).await;
    assert_eq!(refrain.tick_at(june("02T06:00")).await.unwrap().again, 1);
    database.store("update refrain_delayed set wake_at = 0").await;
    let mut calling_off = other.begin().await.unwrap();
    let call_off = "delete from refrain.delayed;
        update refrain.runs set open = false, outcome = 'cancelled', attempt = 2, ended_at = 1";
    calling_off.execute(call_off).await.unwrap();
    let ticking = refrain.clone();
    let ticking = tokio::spawn(async move { ticking.tick_at(june("02T06:00")).await });
    is_waiting(&database).await;
    calling_off.commit().await.unwrap();
    ticking.await.unwrap().unwrap();
    assert_eq!(seen.all(), ["06-01 1"]);
    assert_eq!(run_states(&refrain, "report").await, ["06-01 cancelled 2"]);
    assert_eq!(
        database.store_numbers("select count(*) from refrain_lanes").await,
        [0],
        "no lane is held for it"
    );
    is_sound(&refrain).await;
}

/// An operator cancels a run, uncommitted yet, when its attempt fails and would be followed by another one.
#[tokio::test]
async fn an_attempt_that_fails_while_its_run_is_cancelled_is_the_last_one() {
    let (database, other) = shared().await;
    let gate = Gate::closed();
    let waiting = gate.clone();
    let flaky = job("flaky", move |_| {
        let gate = waiting.clone();
        async move {
            gate.pass().await;
            Err(JobError::new("not yet"))
        }
    });
    let refrain = open(&database, [flaky]).await;
    refrain.enqueue("flaky", "k", &()).await.unwrap();
    let ticking = refrain.clone();
    let ticking = tokio::spawn(async move { ticking.tick().await });
    gate.have_begun(1).await;
    let mut cancelling = other.begin().await.unwrap();
    let cancel = "select 1 from refrain.runs for update;
        insert into refrain.cancellations (run, asked_at) select id, 0 from refrain.runs";
    cancelling.execute(cancel).await.unwrap();
    gate.let_through(1);
    let has_ended = || ticking.is_finished();
    eventually("the ending waits", DEADLINE, async || has_ended() || waits(&database).await).await;
    cancelling.commit().await.unwrap();
    ticking.await.unwrap().unwrap();
    assert_eq!(run_states(&refrain, "flaky").await, ["k cancelled 1"]);
    assert_eq!(refrain.open_runs().await.unwrap(), 0);
    is_sound(&refrain).await;
}

/// Runs of two lanes are taken over together: the first run is cancelled, the second one goes on. Another transaction holds the first
/// row in lock order. It then gets the later rows too, and neither waits for the other.
async fn nothing_is_held_before(first: &'static str, after: &'static str) {
    let (database, other) = shared().await;
    let seen = Seen::default();
    let refrain = open(&database, ["alpha", "beta"].map(|name| seen.job(name).timetable(daily()))).await;
    assert_eq!(refrain.open_due(june("02T06:00")).await.unwrap().opened, 2);
    database.store(LEASED_BY_LINE).await;
    let mut held = other.begin().await.unwrap();
    held.execute(first).await.unwrap();
    let rescuing = refrain.clone();
    let rescuing = tokio::spawn(async move { rescuing.tick_at(june("02T06:00")).await });
    is_waiting(&database).await;
    held.execute(after).await.unwrap();
    held.rollback().await.unwrap();
    rescuing.await.unwrap().unwrap();
    refrain.tick_at(june("02T06:00")).await.unwrap();
    assert_eq!(run_states(&refrain, "alpha").await, ["06-01 cancelled 1"]);
    assert_eq!(run_states(&refrain, "beta").await, ["06-01 done 2"]);
    is_sound(&refrain).await;
}

#[tokio::test]
async fn endings_that_wait_for_a_lane_lock_no_other_lane_and_no_run() {
    nothing_is_held_before(
        "select 1 from refrain.lanes where job = (select min(job) from refrain.lanes) for update",
        "select 1 from refrain.lanes for update nowait; select 1 from refrain.runs for update nowait",
    )
    .await;
}

#[tokio::test]
async fn endings_that_wait_for_a_run_lock_no_other_run() {
    nothing_is_held_before(
        "select 1 from refrain.runs where id = (select min(id) from refrain.runs) for update",
        "select 1 from refrain.runs for update nowait",
    )
    .await;
}
