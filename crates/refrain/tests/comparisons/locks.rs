//! Each lock of a statement by itself: a competing statement waits, or skips the row.
//!
//! A lock matters between a read and a commit, a moment that another process must hit. Here the
//! moment lasts: one transaction has executed its statement and stays open while another executes
//! the competing one. That statement either waits, as the server reports, or returns; whichever
//! happens first is the answer, so a missing lock shows at once. On PostgreSQL only: a SQLite file
//! has one writer.

use refrain::Refrain;
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use sqlx::{AssertSqlSafe, Executor as _, PgPool, PgTransaction};
use tokio::task::JoinHandle;

use super::{texts, with};

/// What happens to a statement beside an open transaction.
#[derive(Debug, PartialEq, Eq)]
enum Beside {
    /// It waited for the transaction.
    Waited,
    /// It matched this many rows, without waiting.
    Met(u64),
}

use Beside::{Met, Waited};

/// Rows in a database that two transactions want at once.
struct Wanted {
    database: TestDatabase,
}

impl Wanted {
    async fn rows(given: &str) -> Wanted {
        let database = TestDatabase::postgres().await;
        Refrain::migrate(&database.url()).await.unwrap();
        database.store(given).await;
        Wanted { database }
    }

    /// What happens to the second statement while the transaction of the first is open; both are rolled back.
    async fn beside(&self, first: &str, second: &str) -> Beside {
        let TestDatabase::Postgres { pool, .. } = &self.database else { unreachable!() };
        let (mut holder, holding) = begun(pool).await;
        let held = holder.execute(AssertSqlSafe(first)).await.expect(first).rows_affected();
        assert_eq!(held, 1, "there is something to hold: {first}");
        let (asking, waits) = asked(pool, second, holding).await;
        holder.rollback().await.unwrap();
        let met = asking.await.expect(second);
        if waits { Waited } else { Met(met) }
    }

    /// A statement locks two keys at once, the second of them named first; another transaction locks them one by one,
    /// and has the first when the statement begins. The second must be free then, or the two would wait for each
    /// other.
    async fn are_taken_in_order(&self, of: impl Fn(&str, &str) -> String) {
        let TestDatabase::Postgres { pool, .. } = &self.database else { unreachable!() };
        let [both, first, second] = [("'{b,a}'", "'{1,1}'"), ("'{a}'", "'{1}'"), ("'{b}'", "'{1}'")]
            .map(|(keys, ones)| of(keys, ones));
        let (mut holder, holding) = begun(pool).await;
        holder.execute(AssertSqlSafe(first)).await.unwrap();
        let (asking, waits) = asked(pool, &both, holding).await;
        assert!(waits, "{both}");
        holder.execute(AssertSqlSafe(second)).await.expect(&both);
        holder.rollback().await.unwrap();
        assert_eq!(asking.await.expect(&both), 2, "{both}");
    }
}

/// Executes a statement in a transaction of its own, until it waits for that of another process or returns. Returns what will
/// have become of it, and whether it waits.
async fn asked(pool: &PgPool, statement: &str, holding: i32) -> (JoinHandle<u64>, bool) {
    let (mut transaction, waiting) = begun(pool).await;
    let text = AssertSqlSafe(statement.to_owned());
    let asking = tokio::spawn(async move {
        let met = transaction.execute(text).await.unwrap().rows_affected();
        transaction.rollback().await.unwrap();
        met
    });
    let mut waits = false;
    eventually("it waits or returns", DEADLINE, async || {
        waits = is_blocked(pool, waiting, holding).await;
        waits || asking.is_finished()
    })
    .await;
    (asking, waits)
}

/// A transaction, and the process of the server that is at it.
async fn begun(pool: &PgPool) -> (PgTransaction<'static>, i32) {
    let mut transaction = pool.begin().await.unwrap();
    let process = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *transaction).await.unwrap();
    (transaction, process)
}

async fn is_blocked(pool: &PgPool, waiting: i32, holding: i32) -> bool {
    let blocked = sqlx::query_scalar("select $2 = any(pg_blocking_pids($1))").bind(waiting).bind(holding);
    blocked.fetch_one(pool).await.unwrap()
}

/// A statement for PostgreSQL, with its arguments as they are written in SQL.
fn message(statement: &str, arguments: &[&str]) -> String {
    let (_, postgres) = texts(statement);
    with(postgres, arguments)
}

/// The second attempt of a run has raised its fence, and that of its lane.
const FENCED: &str =
    "insert into refrain_fences (project, job, run, attempt, nonce) values ('shop', 'sync', 'monday', 2, 9);
    insert into refrain_lane_fences (project, job, scope, number) values ('shop', 'sync', '', 9)";

#[tokio::test]
async fn fences_are_raised_only_after_the_batches_that_hold_them() {
    let fences = Wanted::rows(FENCED).await;
    let hold = message("fence/hold", &["1", "2", "9", "1"]);
    let raise = message("fence/raise", &["'shop'", "'sync'", "'monday'", "3", "10"]);
    assert_eq!(fences.beside(&hold, &raise).await, Waited);
    let next_holder = message("fence/raise_lane", &["'shop'", "'sync'", "''", "10"]);
    assert_eq!(fences.beside(&hold, &next_holder).await, Waited);
    assert_eq!(fences.beside(&hold, &hold).await, Met(1), "batches do not wait for one another");
}

#[tokio::test]
async fn the_fences_of_a_claim_group_are_raised_only_after_its_commit() {
    let fences = Wanted::rows(FENCED).await;
    let hold = message("fence/hold_many", &["'shop'", "'{sync}'", "'{monday}'", "'{2}'", "'{9}'"]);
    let raise = message("fence/raise_many", &["'shop'", "'{sync}'", "'{monday}'", "'{3}'", "'{10}'"]);
    assert_eq!(fences.beside(&hold, &raise).await, Waited);
    assert_eq!(fences.beside(&hold, &hold).await, Met(1), "companies do not wait for one another");
}

#[tokio::test]
async fn a_worker_registers_only_before_or_after_a_migration() {
    let none = Wanted::rows("delete from refrain_migrations where number > 1").await;
    let hold = message("migration/hold", &[]);
    assert_eq!(none.beside(&hold, &hold).await, Waited);
}

#[tokio::test]
async fn reading_publishes_waits_for_commits_and_blocks_new_ones() {
    let fences = Wanted::rows(FENCED).await;
    let publish = message("fence/hold", &["1", "2", "9", "1"]);
    let look = message("fence/wait", &["1", "2", "9"]);
    assert_eq!(fences.beside(&publish, &look).await, Waited);
    assert_eq!(fences.beside(&look, &publish).await, Waited);
}

#[tokio::test]
async fn a_relay_skips_intents_that_another_relay_is_deleting() {
    let intent = "insert into refrain_intents (project, kind, name, key) values ('shop', 'run', 'mail', 'k')";
    let forget = message("intent/forget", &["'{1}'"]);
    assert_eq!(Wanted::rows(intent).await.beside(&forget, &forget).await, Met(0));
}

/// A run of a job that waits in the queue.
const QUEUED: &str = "insert into refrain_jobs (name, identity) values ('sync', 'sync');
    insert into refrain_runs (job, attempt, opened_at, open, key) values (1, 1, 0, true, 'k');
    insert into refrain_queue (line, run, attempt, spent, suspicion, lane) values (1, 1, 1, 0, 0, false)";

#[tokio::test]
async fn a_claim_skips_runs_that_another_claim_is_taking() {
    let front = message("queue/front", &["1", "10", "0", "1"]);
    assert_eq!(Wanted::rows(QUEUED).await.beside(&front, &front).await, Met(0));
}

#[tokio::test]
async fn an_attempt_holds_its_queue_row_until_its_beginning_is_recorded() {
    let queue = Wanted::rows(QUEUED).await;
    queue.database.store("update refrain_queue set lease = 1").await;
    let begins = message("queue/hold", &["1", "1", "1", "1"]);
    let taken_over = message("queue/leave", &["'{1}'", "'{1}'", "'{1}'", "'{1}'"]);
    assert_eq!(queue.beside(&begins, &taken_over).await, Waited);
    assert_eq!(queue.beside(&taken_over, &begins).await, Waited);
}

#[tokio::test]
async fn cancelling_and_ending_a_run_exclude_each_other() {
    let runs = Wanted::rows(QUEUED).await;
    let call_off = message("run/lock", &["1"]);
    let row = ["'{1}'", "'{1}'", "'{1}'", "'{done}'", "'{0}'", "'{null}'", "'{null}'", "'{null}'"];
    let end = message("run/close", &[&["1"], &row[..]].concat());
    assert_eq!(runs.beside(&call_off, &end).await, Waited);
    assert_eq!(runs.beside(&end, &call_off).await, Waited);
}

#[tokio::test]
async fn the_slots_of_a_job_are_counted_by_one_claim_at_a_time() {
    let job = message("job/lock", &["1"]);
    assert_eq!(Wanted::rows(QUEUED).await.beside(&job, &job).await, Waited);
}

#[tokio::test]
async fn a_rescuer_skips_a_worker_locked_by_another_rescuer_or_a_claim() {
    let worker = "insert into refrain_workers (process, started_at, expires_at) \
         values ('here/1', 0, 9000000000000000000)";
    let worker = Wanted::rows(worker).await;
    let rescue = message("worker/hold", &["1", "true"]);
    assert_eq!(worker.beside(&rescue, &rescue).await, Met(0), "another rescuer");
    let claim = message("worker/claims", &["1"]);
    assert_eq!(worker.beside(&claim, &rescue).await, Met(0), "a claim");
}

#[tokio::test]
async fn a_schedule_edit_waits_for_a_tick_and_a_tick_skips_an_edit() {
    let schedule = "insert into refrain_jobs (name, identity) values ('report', 'report');
        insert into refrain_schedules (job, next_at) values (1, 5)";
    let schedule = Wanted::rows(schedule).await;
    let (edit, tick) = (message("schedule/wait", &["1"]), message("schedule/lock", &["1"]));
    assert_eq!(schedule.beside(&tick, &edit).await, Waited);
    assert_eq!(schedule.beside(&edit, &tick).await, Met(0));
}

#[tokio::test]
async fn statements_take_the_same_keys_in_one_order() {
    let keys = Wanted::rows("select 1").await;
    keys.are_taken_in_order(|keys, ones| {
        message("unit/insert", &["1", "1", "7", "2", "9", "'applied'", keys, ones, ones])
    })
    .await;
    keys.are_taken_in_order(|keys, ones| {
        let first = ["1", "1", "7", "2", "-1", "'tried'", "null", "null", "9", "'parked'"];
        message("unit/blame", &[&first[..], &[keys, ones, ones, keys]].concat())
    })
    .await;
    keys.are_taken_in_order(|keys, ones| {
        message("unit/claim_many", &["'applied'", ones, keys, ones, ones, ones, ones, ones])
    })
    .await;
    keys.are_taken_in_order(|runs, ones| {
        message("fence/raise_many", &["'shop'", &ones.replace('1', "sync"), runs, ones, ones])
    })
    .await;
}

/// A fact with two versions, of which the lower one is reserved by worker 7.
const EFFECTS: &str = "insert into refrain_effects (key, version, name, state, holder, sends, arrived_at)
    values ('mail:7', 1, 'mail', 'reserved', 7, 1, 0), ('mail:7', 2, 'mail', 'pending', null, 0, 0)";

#[tokio::test]
async fn an_effect_is_decided_about_after_its_answer_is_recorded() {
    let effects = Wanted::rows(EFFECTS).await;
    let answer = message("effect/answer", &["1", "7", "1", "'confirmed'", "false", "null", "null"]);
    let decide = message("effect/fact_lock", &["'mail:7'"]);
    let take_over = message("effect/held", &["7"]);
    assert_eq!(effects.beside(&answer, &decide).await, Waited);
    assert_eq!(effects.beside(&answer, &take_over).await, Waited);
    assert_eq!(effects.beside(&take_over, &decide).await, Waited);
    assert_eq!(effects.beside(&take_over, &answer).await, Waited);
}
