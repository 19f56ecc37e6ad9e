//! The one seam between Refrain and its two databases.
//!
//! Everything above speaks of statements and transactions; which database answers is matched here and nowhere else. The
//! whole list of differences, each with one home: how a transaction begins and which connection it gets (this file),
//! locks and lists of rows in texts (`statement.rs`), what a code means (`error.rs`), how a file or a server is opened
//! (`sqlite.rs`, `postgres.rs`), how arguments are given (`connection.rs`), schemas (`migrations/`).
//!
//! There is no door outside a transaction: behind a pooler in transaction mode, a statement prepared outside one
//! may be executed on another server connection than the one that knows it.

pub(crate) mod address;
pub(crate) mod connection;
pub(crate) mod error;
pub(crate) mod file_system;
pub(crate) mod postgres;
pub(crate) mod schema;
mod sqlite;
pub(crate) mod staging;
pub(crate) mod statement;

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Postgres, Sqlite};

pub(crate) use address::Address;
use connection::Connection;
pub(crate) use connection::Record;
pub use error::DatabaseError;
use refrain_core::random::{SystemRandom, duration_up_to};
use statement::Bound;

use crate::failpoint::{self, Guarded};

type Result<T> = std::result::Result<T, DatabaseError>;

/// How often a step that met a lock, a conflict or a lost answer is done again before its caller hears of it.
const RETRIES: u32 = 8;
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A database that is open. Like the other types here it is public only in name: nobody outside can say it.
#[derive(Debug, Clone)]
pub enum Database {
    /// A file.
    Sqlite {
        /// One connection, for whoever writes; a caller's own pool may have more.
        writer: SqlitePool,
        /// For those who read beside it.
        readers: SqlitePool,
    },
    /// A server.
    Postgres {
        /// All connections.
        pool: PgPool,
        /// Whether statements stay prepared; not behind a pooler that gives each transaction another connection.
        persistent: bool,
        /// How transactions begin.
        begin: postgres::Beginnings,
    },
}

/// A transaction; dropped without [`commit`](Self::commit), nothing happened.
pub enum Transaction {
    /// In a file.
    Sqlite(sqlx::Transaction<'static, Sqlite>, Guarded),
    /// On a server, and whether statements stay prepared there.
    Postgres(sqlx::Transaction<'static, Postgres>, bool, Guarded),
}

/// A commit by name, for tests that kill the process before or after it, or lose its answer.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
    pub(crate) reply: &'static str,
}

/// Names a commit.
macro_rules! place {
    ($name:literal) => {
        crate::database::Place {
            before: concat!($name, ".before-commit"),
            after: concat!($name, ".after-commit"),
            reply: concat!($name, ".reply"),
        }
    };
}
pub(crate) use place;

impl Database {
    /// Opens a database. A server ends a transaction in which nothing was said for `idle`.
    pub(crate) async fn open(address: &Address, connections: u32, idle: Duration) -> Result<Database> {
        match address {
            Address::Sqlite { path } => sqlite::open(path).await,
            Address::Postgres { options, .. } => postgres::open(options, connections, idle).await,
        }
    }

    /// A caller's own pool.
    pub(crate) fn of_postgres(pool: PgPool, idle: Duration) -> Database {
        let persistent = postgres::is_persistent(&pool.connect_options());
        Database::Postgres { pool, persistent, begin: postgres::Beginnings::new(idle) }
    }

    /// Whether statements stay prepared.
    pub(crate) fn is_persistent(&self) -> bool {
        match self {
            Database::Sqlite { .. } => true,
            Database::Postgres { persistent, .. } => *persistent,
        }
    }

    /// The same, and a server ends a transaction in which nothing was said for `idle`.
    pub(crate) fn with_idle(self, idle: Duration) -> Database {
        match self {
            Database::Postgres { pool, .. } => Database::of_postgres(pool, idle),
            file @ Database::Sqlite { .. } => file,
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self, Database::Sqlite { .. })
    }

    /// A transaction that writes. SQLite takes its lock at the beginning: one that reads first and is refused when it
    /// writes would have to begin again.
    pub(crate) async fn write(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { writer, .. } => {
                Ok(Transaction::Sqlite(writer.begin_with("BEGIN IMMEDIATE").await?, failpoint::guarded()))
            }
            Database::Postgres { pool, persistent, begin } => {
                Ok(Transaction::Postgres(begun(pool, &begin.write).await?, *persistent, failpoint::guarded()))
            }
        }
    }

    /// The same for whoever must not wait for a lock on a row for long. A file has one lock for all.
    pub(crate) async fn write_briefly(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { .. } => self.write().await,
            Database::Postgres { pool, persistent, begin } => {
                let begun = begun(pool, &begin.write_briefly).await?;
                Ok(Transaction::Postgres(begun, *persistent, failpoint::guarded()))
            }
        }
    }

    /// A transaction that only reads, beside any writer.
    pub(crate) async fn read(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { readers, .. } => {
                Ok(Transaction::Sqlite(readers.begin().await?, Guarded::default()))
            }
            Database::Postgres { pool, persistent, begin } => {
                Ok(Transaction::Postgres(begun(pool, &begin.read).await?, *persistent, Guarded::default()))
            }
        }
    }

    /// All rows of a statement that reads and stands alone. On SQLite a transaction would be two more ways to the connection's
    /// thread and back; behind a pooler it is what keeps a statement and its arguments at one server.
    pub(crate) async fn look<T: Record>(&self, bound: Bound<'_>) -> Result<Vec<T>> {
        match self {
            Database::Sqlite { readers, .. } => {
                Connection::Sqlite(&mut *readers.acquire().await?).fetch_all(bound).await
            }
            Database::Postgres { .. } => self.read().await?.fetch_all(bound).await,
        }
    }

    /// A transaction that only reads, and sees in all its statements the same instant.
    pub(crate) async fn read_at_once(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { .. } => self.read().await,
            Database::Postgres { pool, persistent, begin } => Ok(Transaction::Postgres(
                begun(pool, &begin.read_at_once).await?,
                *persistent,
                Guarded::default(),
            )),
        }
    }

    /// A transaction that goes through whole tables as they were at one instant.
    pub(crate) async fn snapshot(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { .. } => self.read().await,
            Database::Postgres { pool, persistent, .. } => {
                let begun = pool.begin_with(postgres::BEGIN_SNAPSHOT).await?;
                Ok(Transaction::Postgres(begun, *persistent, Guarded::default()))
            }
        }
    }

    /// Copies a file as it is at one instant; false for a server.
    pub(crate) async fn copy_into(&self, path: &std::path::Path) -> Result<bool> {
        let Database::Sqlite { readers, .. } = self else { return Ok(false) };
        let path = path.to_string_lossy().into_owned();
        sqlx::query("vacuum into $1").bind(path).execute(readers).await?;
        Ok(true)
    }

    /// Executes one statement in a file that nobody else uses.
    pub(crate) async fn amend(path: &std::path::Path, bound: Bound<'_>) -> Result<u64> {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let mut connection = sqlx::SqliteConnection::connect_with(&options).await?;
        let changed = Connection::Sqlite(&mut connection).execute(bound).await?;
        sqlx::Connection::close(connection).await?;
        Ok(changed)
    }

    pub(crate) async fn close(&self) {
        match self {
            Database::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Database::Postgres { pool, .. } => pool.close().await,
        }
    }

    /// The pool, for whoever listens for wake-ups; none on SQLite, which has none.
    pub(crate) fn postgres(&self) -> Option<&PgPool> {
        match self {
            Database::Sqlite { .. } => None,
            Database::Postgres { pool, .. } => Some(pool),
        }
    }
}

/// Begins a transaction, and sees that through whatever becomes of whoever asked: one that is dropped before the server has
/// answered would go back to the pool with a transaction open that nobody knows of, and swallow what the next one writes.
async fn begun(pool: &PgPool, how: &Arc<str>) -> Result<sqlx::Transaction<'static, Postgres>> {
    let (pool, how) = (pool.clone(), AssertSqlSafe(Arc::clone(how)));
    let begun = tokio::spawn(async move { pool.begin_with(how).await }).await;
    let gone = |error: tokio::task::JoinError| DatabaseError::Lost(error.to_string());
    Ok(begun.map_err(gone)??)
}

impl Transaction {
    /// Its connection, for statements.
    pub(crate) fn connection(&mut self) -> Connection<'_> {
        match self {
            Transaction::Sqlite(inner, _) => Connection::Sqlite(inner),
            Transaction::Postgres(inner, persistent, _) => Connection::Postgres(inner, *persistent),
        }
    }

    /// Runs a statement; gives how many rows it changed.
    pub(crate) async fn execute(&mut self, bound: Bound<'_>) -> Result<u64> {
        self.connection().execute(bound).await
    }

    /// All rows of a statement.
    pub(crate) async fn fetch_all<T: Record>(&mut self, bound: Bound<'_>) -> Result<Vec<T>> {
        self.connection().fetch_all(bound).await
    }

    /// The row of a statement that has at most one.
    pub(crate) async fn fetch_optional<T: Record>(&mut self, bound: Bound<'_>) -> Result<Option<T>> {
        self.connection().fetch_optional(bound).await
    }

    /// Runs a text of several statements that takes no arguments: a migration.
    pub(crate) async fn script(&mut self, text: &'static str) -> Result<()> {
        match self {
            Transaction::Sqlite(inner, _) => inner.execute(sqlx::raw_sql(text)).await.map(|_| ())?,
            Transaction::Postgres(inner, ..) => inner.execute(sqlx::raw_sql(text)).await.map(|_| ())?,
        }
        Ok(())
    }

    /// Whether it can still be committed. To commit one in which a statement failed is no error to PostgreSQL: it rolls
    /// back and says so in a word that the driver does not read. SQLite ends a transaction by itself when a disk is full
    /// or a trigger says so, and what follows is committed word by word: then another one can be begun.
    pub(crate) async fn is_sound(&mut self) -> Result<()> {
        match self {
            Transaction::Sqlite(inner, ..) => {
                if inner.execute(sqlx::raw_sql("begin")).await.is_err() {
                    return Ok(());
                }
                inner.execute(sqlx::raw_sql("rollback")).await?;
                Err(DatabaseError::Lost("the database ended the transaction in the middle of it".to_owned()))
            }
            Transaction::Postgres(inner, ..) => {
                inner.execute(sqlx::raw_sql("select 1")).await?;
                Ok(())
            }
        }
    }

    /// Whether the database has ended it by itself, on SQLite; what was written since stands alone.
    pub(crate) async fn is_ended(&mut self) -> Option<DatabaseError> {
        match self {
            Transaction::Sqlite(..) => self.is_sound().await.err(),
            Transaction::Postgres(..) => None,
        }
    }

    /// Before somebody else's statements: the planner need not believe any more that there is an index for everything.
    pub(crate) async fn hand_over(&mut self) -> Result<()> {
        match self {
            Transaction::Sqlite(..) => Ok(()),
            Transaction::Postgres(inner, ..) => {
                inner.execute(sqlx::raw_sql(postgres::HAND_OVER)).await?;
                Ok(())
            }
        }
    }

    /// Lets go of everything it held, before this returns.
    pub(crate) async fn rollback(self) -> Result<()> {
        match self {
            Transaction::Sqlite(inner, _guarded) => inner.rollback().await?,
            Transaction::Postgres(inner, _, _guarded) => inner.rollback().await?,
        }
        Ok(())
    }

    /// Makes it so.
    pub(crate) async fn commit(self, place: Place) -> Result<()> {
        failpoint::reach(place.before);
        let made = match self {
            Transaction::Sqlite(inner, _guarded) => inner.commit().await,
            Transaction::Postgres(inner, _, _guarded) => inner.commit().await,
        };
        made.map_err(|error| DatabaseError::from(error).of_commit())?;
        failpoint::reach(place.after);
        if failpoint::is_lost(place.reply) {
            return Err(DatabaseError::Unknown("a test lost it".to_owned()));
        }
        Ok(())
    }
}

/// Does a step again while it meets locks, conflicts and lost answers. The step is a whole transaction that may be
/// done twice.
pub(crate) async fn retried<T, F>(mut step: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut pause = Duration::from_millis(5);
    let mut unknown = None;
    for _ in 0..RETRIES {
        // In a box: a transaction's future is large, and everything that waits for one would be as large.
        match Box::pin(step()).await {
            Err(error) if error.is_worth_a_retry() => {
                if let DatabaseError::Unknown(what) = &error {
                    unknown = Some(what.clone());
                }
                tracing::debug!(%error, "doing it again");
                let drawn = duration_up_to(pause, &mut SystemRandom::new());
                tokio::time::sleep(drawn).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            settled => return settled.map_err(|error| still_unknown(error, unknown)),
        }
    }
    Box::pin(step()).await.map_err(|error| still_unknown(error, unknown))
}

/// Waits a little before something is done again for the so-manieth time.
pub(crate) async fn pause(again: u32) {
    let longest = Duration::from_millis(10) * 2u32.saturating_pow(again.min(6));
    tokio::time::sleep(duration_up_to(longest, &mut SystemRandom::new())).await;
}

/// A step of which one answer was lost, and that could not be asked about since, may have been done.
pub(crate) fn still_unknown(error: DatabaseError, unknown: Option<String>) -> DatabaseError {
    match unknown {
        Some(what) if error.is_transient() => DatabaseError::Unknown(what),
        _ => error,
    }
}
