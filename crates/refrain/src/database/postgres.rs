//! PostgreSQL as a store: the primary only, in a schema of its own, with no state in the session.
//!
//! Nothing outlives a transaction (no advisory session locks, no `SET`, no temporary tables), so a pooler in
//! transaction mode may stand in between. A transaction whose client has gone quiet is ended by the server well before
//! a lease is, so that a stopped process never keeps a row from whoever takes its run over.

use std::sync::Arc;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::{Database, DatabaseError};
use crate::failpoint;

/// Every statement of the store finds its rows by an index, in the order of that index. The planner does not know: it
/// goes by statistics, which are missing for a new table and wrong for a queue that fills and empties all day, and then
/// it sorts a million rows to give the first hundred. So it is told, for the length of the transaction. All of this is
/// one message and costs no round trip.
pub(crate) fn begin(how: &str, idle: Duration) -> Arc<str> {
    format!(
        "begin{how}; set local idle_in_transaction_session_timeout = {}; set local enable_seqscan = off; \
         set local enable_bitmapscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off; \
         set local enable_material = off; set local plan_cache_mode = force_generic_plan; set local jit = off",
        idle.as_millis()
    )
    .into()
}

/// Takes back what the planner was told.
pub(super) const HAND_OVER: &str = "set local enable_seqscan to default; set local enable_bitmapscan to default; \
     set local enable_hashjoin to default; set local enable_mergejoin to default; \
     set local enable_material to default; set local plan_cache_mode to default; set local jit to default";

/// How transactions begin.
#[derive(Debug, Clone)]
pub struct Beginnings {
    pub(super) write: Arc<str>,
    pub(super) write_briefly: Arc<str>,
    pub(super) read: Arc<str>,
    pub(super) read_at_once: Arc<str>,
    /// For how long nothing may be said in a transaction that writes.
    pub(super) idle: Duration,
}

/// For statements that go through whole tables, where the planner knows better.
pub(super) const BEGIN_SNAPSHOT: &str = "begin isolation level repeatable read read only";

/// How long to wait for a lock if others are kept waiting by that.
const BRIEFLY: Duration = Duration::from_millis(50);

/// How long nothing may be said in a transaction that only reads.
const READER_IDLE: Duration = Duration::from_secs(10);

/// How long to wait for the server to answer at all.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn open(
    options: &PgConnectOptions,
    connections: u32,
    idle: Duration,
) -> Result<Database, DatabaseError> {
    let persistent = is_persistent(options);
    let options = options.clone().application_name("refrain");
    let nobody =
        format!("nobody lets us in at {}:{} within {PATIENCE:?}", options.get_host(), options.get_port());
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .test_before_acquire(false)
        .connect_with(options)
        .await
        .map_err(|error| match error {
            sqlx::Error::PoolTimedOut => DatabaseError::Unreachable(nobody),
            error => error.into(),
        })?;
    let mut transaction = pool.begin().await?;
    let question = sqlx::query_as("select pg_is_in_recovery()").persistent(false);
    let (replica,): (bool,) = question.fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    if replica {
        return Err(DatabaseError::Replica);
    }
    Ok(Database::Postgres { pool, persistent, begin: Beginnings::new(idle) })
}

impl Beginnings {
    pub(super) fn new(idle: Duration) -> Beginnings {
        // Zero is for ever.
        let idle = if failpoint::is_weakened("transaction.patient") { Duration::ZERO } else { idle };
        // Whatever the server's default is: whoever has waited for a lock must see what the one before has written.
        let write = begin(" isolation level read committed", idle);
        // A reader keeps nobody from a row, however short the lease is; a busy machine may let it wait for its turn.
        let read = idle.max(READER_IDLE);
        Beginnings {
            write_briefly: format!("{write}; set local lock_timeout = {}", BRIEFLY.as_millis()).into(),
            write,
            read: begin(" isolation level read committed read only", read),
            read_at_once: begin(" isolation level repeatable read read only", read),
            idle,
        }
    }
}

/// Whether statements stay prepared on a connection; behind a pooler that gives each transaction another one, the
/// address says that they do not.
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
