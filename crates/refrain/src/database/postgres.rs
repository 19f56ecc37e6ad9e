//! PostgreSQL as a store: the primary only, in a schema of its own, without session state.
//!
//! Nothing outlives a transaction (no advisory session locks, no `SET`, no temporary tables), so a pooler in
//! transaction mode may stand in between. The server ends a transaction whose client is silent well before a
//! lease ends, so a stopped process never blocks a row for the worker that takes over its run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, Postgres, SqlSafeStr as _};

use super::connection::{Connection, Record};
use super::held::{PooledTransaction, answered};
use super::last_used::LastUsed;
use super::statement::Bound;
use super::{Database, DatabaseError, Place};
use crate::failpoint;

/// Every statement of the store finds its rows by an index, in the order of that index. The planner does not
/// know: it relies on statistics, which are missing for a new table and wrong for a queue that fills and
/// empties all day, and then it sorts a million rows to return the first hundred. So these settings force
/// indexes, for the length of the transaction. They go in the same message as `BEGIN` and cost no round trip.
///
/// The server ends our statement before the client stops waiting for it, so the connection stays usable.
pub(crate) fn begin(how: &str, idle: Duration, deadline: Duration) -> Arc<str> {
    format!(
        "begin{how}; set local idle_in_transaction_session_timeout = {}; set local statement_timeout = {}; \
         set local enable_seqscan = off; \
         set local enable_bitmapscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off; \
         set local enable_material = off; set local plan_cache_mode = force_generic_plan; set local jit = off",
        idle.as_millis(),
        (deadline * 4 / 5).as_millis()
    )
    .into()
}

/// A reported commit is on the disk, whatever the database, the role or the pool sets: a reservation that a
/// crash takes back would be a call made twice. A stronger setting (`remote_apply`) is kept.
const DURABLE: &str = "select set_config('synchronous_commit', 'on', true) \
     where current_setting('synchronous_commit') not in ('on', 'remote_apply')";

/// A replica refuses to begin like this, and a primary does not: a read must not see a copy that lags behind.
const ONLY_READS: &str = " read write; set local transaction_read_only = on";

/// Restores the planner's settings, and lifts the limit of a statement.
pub(super) const HAND_OVER: &str = "set local statement_timeout to default; set local enable_seqscan to default; set local enable_bitmapscan to default; \
     set local enable_hashjoin to default; set local enable_mergejoin to default; \
     set local enable_material to default; set local plan_cache_mode to default; set local jit to default";

/// How transactions begin.
#[derive(Debug, Clone)]
pub struct Beginnings {
    pub(super) write: Arc<str>,
    pub(super) write_briefly: Arc<str>,
    pub(super) read: Arc<str>,
    pub(super) read_at_once: Arc<str>,
    pub(super) snapshot: Arc<str>,
    /// How long a writing transaction may be silent before the server ends it.
    pub(super) idle: Duration,
    /// How long the server may take to answer.
    pub(super) deadline: Duration,
    /// Whether all connections are our own: no caller's statement leaves a transaction open on them.
    is_own: bool,
    /// When a statement that is its own transaction was last left without an answer.
    unanswered: Arc<Mutex<Option<Instant>>>,
    /// None in a caller's own pool, which may test or reset a connection whenever it is handed out or
    /// returned.
    pub(super) last_used: Option<LastUsed<Postgres>>,
}

/// The shortest time limit of a statement, however short the lease: a machine that is busy for a moment is
/// not a server that has died.
pub(crate) const SHORTEST_DEADLINE: Duration = Duration::from_secs(5);

/// How long a statement may scan whole tables.
pub(super) const SNAPSHOT_DEADLINE: Duration = Duration::from_hours(1);

/// After one statement without an answer: for how long no statement is its own transaction. Its lock limit is
/// part of its text, which the server reads only after it has locked the tables: behind `vacuum full` or
/// `lock table` it waits without a limit, its backend stays after the client has gone, and each further
/// statement would add another backend.
const RELUCTANCE: Duration = Duration::from_mins(1);

/// How long to wait for a lock when other callers wait for us.
const BRIEFLY: Duration = Duration::from_millis(50);

/// How long a reading transaction may be silent before the server ends it.
const READER_IDLE: Duration = Duration::from_secs(10);

/// How long to wait until the server answers at all.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn open(
    options: &PgConnectOptions,
    connections: u32,
    idle: Duration,
) -> Result<Database, DatabaseError> {
    let persistent = is_persistent(options);
    let last_used = Some(LastUsed::default());
    let begin = Beginnings { is_own: true, last_used, ..Beginnings::new(idle) };
    let options = options.clone().application_name("refrain");
    let timed_out =
        format!("no connection to {}:{} within {PATIENCE:?}", options.get_host(), options.get_port());
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .test_before_acquire(false)
        .connect_with(options)
        .await
        .map_err(|error| match error {
            sqlx::Error::PoolTimedOut => DatabaseError::Unreachable(timed_out),
            error => error.into(),
        })?;
    let database = Database::Postgres { pool, persistent, begin };
    // Each transaction checks by itself that it is on the primary; the first connection reports it in plainer
    // words.
    match database.read().await {
        Ok(transaction) => transaction.rollback().await?,
        Err(DatabaseError::Demoted(_)) => return Err(DatabaseError::Replica),
        Err(error) => return Err(error),
    }
    Ok(database)
}

impl Database {
    /// Sends a notification to the processes that listen at the server; it writes nothing.
    pub(crate) async fn tell(&self, text: &'static str) -> Result<(), DatabaseError> {
        if let Database::Postgres { pool, begin, .. } = self {
            let mut bare = PooledTransaction::bare(pool, begin.last_used.as_ref(), begin.deadline).await?;
            let deadline = bare.speak()?;
            let answer = answered(deadline, bare.execute(sqlx::raw_sql(text))).await;
            bare.heard(answer.map_err(DatabaseError::from))?;
        }
        Ok(())
    }

    /// The rows of a writing statement that is its own transaction: `BEGIN` and `COMMIT` would be two more
    /// round trips. Its text must set durability, need no planner settings, and wait for locks no longer than
    /// its last argument says, in milliseconds. None where this is impossible: in a file; where statements do
    /// not stay prepared, because text and arguments may reach two servers; in a caller's own pool, where a
    /// connection may be in the middle of a transaction; for a while after one was left without an answer.
    pub(crate) async fn alone<T: Record>(
        &self,
        bound: Bound<'_>,
        place: Place,
    ) -> Result<Option<Vec<T>>, DatabaseError> {
        let Database::Postgres { pool, persistent: true, begin } = self else { return Ok(None) };
        if !begin.is_own || begin.is_reluctant() {
            return Ok(None);
        }
        let mut bare = PooledTransaction::bare(pool, begin.last_used.as_ref(), begin.deadline).await?;
        let _guarded = failpoint::guarded();
        failpoint::reach(place.before);
        let deadline = bare.speak()?;
        let bound = bound.bind(begin.lock_limit());
        let answer = answered(deadline, Connection::Postgres(&mut bare, true).fetch_all(bound)).await;
        let rows = bare.heard(answer).map_err(|error| begin.unanswered(DatabaseError::of_commit(error)))?;
        failpoint::reach(place.after);
        if failpoint::is_lost(place.reply) {
            return Err(DatabaseError::Unknown("a test lost it".to_owned()));
        }
        Ok(Some(rows))
    }
}

impl Beginnings {
    pub(super) fn new(idle: Duration) -> Beginnings {
        Beginnings::within((idle * 2).max(SHORTEST_DEADLINE), idle)
    }

    /// Begins a transaction of the store.
    pub(super) async fn begun(
        &self,
        pool: &PgPool,
        how: &Arc<str>,
    ) -> Result<PooledTransaction<Postgres>, DatabaseError> {
        let how = AssertSqlSafe(Arc::clone(how)).into_sql_str();
        let begun = PooledTransaction::begin(pool, self.last_used.as_ref(), how, Some(self.deadline)).await;
        begun.map_err(|error| match DatabaseError::from(error) {
            // The error of a replica for a transaction that may write.
            DatabaseError::Other(sqlx::Error::Database(fault))
                if fault.code().as_deref() == Some("0A000") =>
            {
                DatabaseError::Demoted(fault.message().to_owned())
            }
            error => error,
        })
    }

    /// The same settings for a caller that must notice well before its lease ends that a server is gone.
    pub(super) fn hurried(&self) -> Beginnings {
        let (unanswered, last_used) = (self.unanswered.clone(), self.last_used.clone());
        let others = Beginnings::within(SHORTEST_DEADLINE, self.idle);
        Beginnings { is_own: self.is_own, unanswered, last_used, ..others }
    }

    /// The same settings for a caller that must not write: the server rejects writes.
    pub(super) fn only_reading(self) -> Beginnings {
        let (write, write_briefly) = (Arc::clone(&self.read), Arc::clone(&self.read));
        // A statement that is its own transaction would not be read-only.
        Beginnings { write, write_briefly, is_own: false, ..self }
    }

    /// Remembers an error that leaves the outcome of a statement unknown.
    fn unanswered(&self, error: DatabaseError) -> DatabaseError {
        if let DatabaseError::Unknown(_) = error {
            *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        error
    }

    fn is_reluctant(&self) -> bool {
        let unanswered = *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner);
        unanswered.is_some_and(|at| at.elapsed() < RELUCTANCE)
    }

    /// How long a statement that is its own transaction waits for a lock, in milliseconds.
    fn lock_limit(&self) -> String {
        (self.deadline * 4 / 5).as_millis().to_string()
    }

    fn within(deadline: Duration, idle: Duration) -> Beginnings {
        // Zero means no limit.
        let idle = if failpoint::is_weakened("transaction.patient") { Duration::ZERO } else { idle };
        // Set explicitly, whatever the server's default is: after waiting for a lock, a statement must see
        // what the previous holder wrote.
        let committed = " isolation level read committed";
        let write = format!("{}; {DURABLE}", begin(committed, idle, deadline));
        // A reader blocks no writer, however short the lease is; on a busy machine it may wait for its turn.
        let read = idle.max(READER_IDLE);
        Beginnings {
            write_briefly: format!("{write}; set local lock_timeout = {}", BRIEFLY.as_millis()).into(),
            write: write.into(),
            read: begin(&format!("{committed}{ONLY_READS}"), read, deadline),
            read_at_once: begin(&format!(" isolation level repeatable read{ONLY_READS}"), read, deadline),
            // For statements that scan whole tables, where the planner's own statistics are better.
            snapshot: format!("begin isolation level repeatable read{ONLY_READS}").into(),
            idle,
            deadline,
            is_own: false,
            unanswered: Arc::default(),
            last_used: None,
        }
    }
}

/// Whether statements stay prepared on a connection; behind a pooler that gives each transaction another one,
/// the URL says that they do not.
pub(super) fn is_persistent(options: &PgConnectOptions) -> bool {
    !options.to_url_lossy().as_str().contains("statement-cache-capacity=0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_falls_silent_is_ended_within_its_lease_and_a_reader_has_time() {
        let timeout = |text: &str| text.split("session_timeout = ").nth(1)?.split(';').next()?.parse().ok();
        for (idle, write, read) in [(250, 250, 10_000), (10_000, 10_000, 10_000)] {
            let begin = Beginnings::new(Duration::from_millis(idle));
            let found = [&begin.write, &begin.write_briefly, &begin.read, &begin.read_at_once];
            assert_eq!(found.map(|text| timeout(text)), [write, write, read, read].map(Some), "{idle}");
        }
    }
}
