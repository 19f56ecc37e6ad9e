//! The interface between Refrain and its two databases.
//!
//! Everything above uses statements and transactions; only here does the code match on the database. Each difference
//! has one home: how a transaction begins and which connection it gets (this file), locks and lists of rows in
//! statements (`statement.rs`), the meaning of error codes (`error.rs`), how a file or a server is opened
//! (`sqlite.rs`, `postgres.rs`), how arguments are passed (`connection.rs`), schemas (`migrations/`).
//!
//! Statements run in a transaction: behind a pooler in transaction mode, a statement that is prepared outside of one
//! may run on a server connection that does not know it. Exceptions: `look` on a file, and `alone`, `tell` (`postgres.rs`).

pub(crate) mod address;
pub(crate) mod connection;
mod copy;
pub(crate) mod error;
pub(crate) mod file_system;
pub(crate) mod gather;
pub(crate) mod held;
mod last_used;
mod leased;
pub(crate) mod postgres;
pub(crate) mod read_only;
mod retry;
pub(crate) mod schema;
mod sqlite;
pub(crate) mod staging;
pub(crate) mod statement;

use std::time::Duration;

use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{Executor as _, Postgres, SqlSafeStr as _, Sqlite};

pub(crate) use address::Address;
use connection::Connection;
pub(crate) use connection::Record;
pub(crate) use copy::random_id;
pub use error::DatabaseError;
use held::{PooledTransaction, answered};
pub(crate) use held::{begun_in, begun_to_look_in};
pub(crate) use retry::{Repeats, pause, retried, still_unknown};
use statement::Bound;

use crate::failpoint::{self, Guarded};

type Result<T> = std::result::Result<T, DatabaseError>;

/// An open database. Like the other types here it is `pub` only for traits, not outside of this crate.
#[derive(Debug, Clone)]
pub enum Database {
    /// A SQLite file.
    Sqlite {
        /// One connection, for transactions that write; a caller's own pool may have more.
        writer: SqlitePool,
        /// For transactions that read beside it.
        readers: SqlitePool,
    },
    /// A PostgreSQL server.
    Postgres {
        /// All connections.
        pool: PgPool,
        /// Whether statements stay prepared; not behind a pooler that gives each transaction another connection.
        persistent: bool,
        /// How transactions begin.
        begin: postgres::Beginnings,
    },
}

/// A transaction. Dropped without [`commit`](Self::commit), it is rolled back.
pub enum Transaction {
    /// In a file.
    Sqlite(PooledTransaction<Sqlite>, Guarded),
    /// On a server, and whether statements stay prepared there.
    Postgres(PooledTransaction<Postgres>, bool, Guarded),
}

/// A commit with a name, for tests that kill the process before or after it, or lose its answer.
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
    /// Opens a database. A server ends a transaction that receives no statement for `idle`.
    pub(crate) async fn open(address: &Address, connections: u32, idle: Duration) -> Result<Database> {
        match address {
            Address::Sqlite { path } => sqlite::open(path).await,
            Address::Postgres { options, .. } => postgres::open(options, connections, idle).await,
        }
    }

    /// Opens a database read-only.
    pub(crate) async fn open_to_look(
        address: &Address,
        connections: u32,
        idle: Duration,
    ) -> Result<Database> {
        match address {
            Address::Sqlite { path } => sqlite::open_to_look(path).await,
            Address::Postgres { options, .. } => {
                Ok(postgres::open(options, connections, idle).await?.only_reading())
            }
        }
    }

    /// The same database, whose server rejects writes. A file is read-only only if it was opened that way.
    pub(crate) fn only_reading(self) -> Database {
        match self {
            Database::Postgres { pool, persistent, begin } => {
                Database::Postgres { pool, persistent, begin: begin.only_reading() }
            }
            file @ Database::Sqlite { .. } => file,
        }
    }

    /// Wraps a caller's own pool.
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

    /// The same database; a server ends its transactions that receive no statement for `idle`.
    pub(crate) fn with_idle(self, idle: Duration) -> Database {
        match self {
            Database::Postgres { pool, .. } => Database::of_postgres(pool, idle),
            file @ Database::Sqlite { .. } => file,
        }
    }

    /// The same database, for callers that must notice soon that a server is gone.
    pub(crate) fn hurried(self) -> Database {
        match self {
            Database::Postgres { pool, persistent, begin } => {
                Database::Postgres { pool, persistent, begin: begin.hurried() }
            }
            file @ Database::Sqlite { .. } => file,
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self, Database::Sqlite { .. })
    }

    /// Begins a transaction that writes. SQLite takes its lock at the beginning: a transaction that reads first and
    /// is refused when it writes would have to begin again.
    pub(crate) async fn write(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { writer, .. } => {
                let begun =
                    PooledTransaction::begin(writer, None, "BEGIN IMMEDIATE".into_sql_str(), None).await?;
                Ok(Transaction::Sqlite(begun, failpoint::guarded()))
            }
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.write).await?;
                Ok(Transaction::Postgres(begun, *persistent, failpoint::guarded()))
            }
        }
    }

    /// Like [`write`](Self::write), for callers that must not wait long for the lock of a row. A SQLite file has a
    /// single lock.
    pub(crate) async fn write_briefly(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { .. } => self.write().await,
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.write_briefly).await?;
                Ok(Transaction::Postgres(begun, *persistent, failpoint::guarded()))
            }
        }
    }

    /// Begins a transaction that only reads, concurrent with any writer.
    pub(crate) async fn read(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { readers, .. } => {
                let begun = PooledTransaction::begin(readers, None, "BEGIN".into_sql_str(), None).await?;
                Ok(Transaction::Sqlite(begun, Guarded::default()))
            }
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.read).await?;
                Ok(Transaction::Postgres(begun, *persistent, Guarded::default()))
            }
        }
    }

    /// All rows of a single statement that reads. On SQLite a transaction would cost two more switches to the
    /// connection's thread and back; behind a pooler it keeps a statement and its arguments on one server.
    pub(crate) async fn look<T: Record>(&self, bound: Bound<'_>) -> Result<Vec<T>> {
        match self {
            Database::Sqlite { readers, .. } => {
                let mut connection = readers.acquire().await?;
                let looked = Connection::Sqlite(&mut connection).fetch_all(bound).await;
                if looked.as_ref().is_err_and(DatabaseError::spoils_its_connection) {
                    held::cut(connection);
                }
                looked
            }
            Database::Postgres { .. } => self.read().await?.fetch_all(bound).await,
        }
    }

    /// Begins a transaction that only reads; all its statements see the same snapshot.
    pub(crate) async fn read_at_once(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { .. } => self.read().await,
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.read_at_once).await?;
                Ok(Transaction::Postgres(begun, *persistent, Guarded::default()))
            }
        }
    }

    /// Begins a transaction that scans whole tables in one snapshot.
    pub(crate) async fn snapshot(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { .. } => self.read().await,
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.snapshot).await?.within(postgres::SNAPSHOT_DEADLINE);
                Ok(Transaction::Postgres(begun, *persistent, Guarded::default()))
            }
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Database::Sqlite { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
            Database::Postgres { pool, begin, .. } => held::close(pool, begin.last_used.as_ref()).await,
        }
    }

    /// The pool on which notifications are received; none on SQLite, which has no notifications.
    pub(crate) fn postgres(&self) -> Option<&PgPool> {
        match self {
            Database::Sqlite { .. } => None,
            Database::Postgres { pool, .. } => Some(pool),
        }
    }
}

impl Transaction {
    /// The connection of the transaction, for statements.
    pub(crate) fn connection(&mut self) -> Connection<'_> {
        match self {
            Transaction::Sqlite(inner, _) => Connection::Sqlite(inner),
            Transaction::Postgres(inner, persistent, _) => Connection::Postgres(inner, *persistent),
        }
    }

    /// Called before a statement is sent. Returns how long the answer may take.
    fn speak(&mut self) -> Result<Option<Duration>> {
        match self {
            Transaction::Sqlite(inner, _) => inner.speak(),
            Transaction::Postgres(inner, ..) => inner.speak(),
        }
    }

    /// Called when the answer has arrived or timed out; after a timeout the connection is not used again.
    fn heard<T>(&mut self, answer: Result<T>) -> Result<T> {
        match self {
            Transaction::Sqlite(inner, _) => inner.heard(answer),
            Transaction::Postgres(inner, ..) => inner.heard(answer),
        }
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) async fn execute(&mut self, bound: Bound<'_>) -> Result<u64> {
        let deadline = self.speak()?;
        let answer = answered(deadline, self.connection().execute(bound)).await;
        self.heard(answer)
    }

    /// All rows of a statement.
    pub(crate) async fn fetch_all<T: Record>(&mut self, bound: Bound<'_>) -> Result<Vec<T>> {
        let deadline = self.speak()?;
        let answer = answered(deadline, self.connection().fetch_all(bound)).await;
        self.heard(answer)
    }

    /// The row of a statement that returns at most one.
    pub(crate) async fn fetch_optional<T: Record>(&mut self, bound: Bound<'_>) -> Result<Option<T>> {
        Ok(self.fetch_all(bound).await?.pop())
    }

    /// Runs several statements without arguments and without a time limit, as for a migration.
    pub(crate) async fn script(&mut self, text: &'static str) -> Result<()> {
        self.hand_over().await?;
        self.say(text).await
    }

    /// Runs statements without arguments.
    async fn say(&mut self, text: &'static str) -> Result<()> {
        let deadline = self.speak()?;
        let answer = match self {
            Transaction::Sqlite(inner, _) => inner.execute(sqlx::raw_sql(text)).await.map(|_| ()),
            Transaction::Postgres(inner, ..) => {
                answered(deadline, inner.execute(sqlx::raw_sql(text))).await.map(|_| ())
            }
        };
        self.heard(answer.map_err(DatabaseError::from))
    }

    /// Checks that the transaction can still be committed. PostgreSQL does not report an error when a transaction
    /// with a failed statement is committed: it rolls back, which the driver does not notice. SQLite ends a transaction
    /// by itself when a disk is full or a trigger rolls back; in that state a new transaction can be begun.
    pub(crate) async fn is_sound(&mut self) -> Result<()> {
        match self {
            Transaction::Sqlite(inner, ..) => {
                if inner.execute(sqlx::raw_sql("begin")).await.is_err() {
                    return Ok(());
                }
                inner.execute(sqlx::raw_sql("rollback")).await?;
                let ended = "the database ended the transaction in the middle of it".to_owned();
                self.heard(Err(DatabaseError::Lost(ended)))
            }
            Transaction::Postgres(..) => self.say("select 1").await,
        }
    }

    /// Whether SQLite has ended the transaction by itself, so that later statements were committed one by one.
    pub(crate) async fn is_ended(&mut self) -> Option<DatabaseError> {
        match self {
            Transaction::Sqlite(..) => self.is_sound().await.err(),
            Transaction::Postgres(..) => None,
        }
    }

    /// Called before a user's statements: the planner uses its statistics again, and statements may take as long as
    /// their job may.
    pub(crate) async fn hand_over(&mut self) -> Result<()> {
        if let Transaction::Postgres(..) = self {
            self.say(postgres::HAND_OVER).await?;
        }
        if let Transaction::Postgres(inner, ..) = self {
            inner.lift_deadline();
        }
        Ok(())
    }

    /// Rolls back and releases all locks before it returns.
    pub(crate) async fn rollback(self) -> Result<()> {
        match self {
            Transaction::Sqlite(inner, _guarded) => inner.rollback().await?,
            Transaction::Postgres(inner, _, _guarded) => inner.rollback().await?,
        }
        Ok(())
    }

    /// Commits.
    pub(crate) async fn commit(self, place: Place) -> Result<()> {
        failpoint::reach(place.before);
        if !self.is_leased() {
            self.rollback().await?;
            return Err(DatabaseError::Expired);
        }
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
