//! The one seam between Refrain and its two databases.
//!
//! Everything above speaks of statements and transactions; which database answers is matched here and nowhere else. The
//! whole list of differences, each with one home: how a transaction begins and which connection it gets (this file),
//! locks and lists of rows in texts (`statement.rs`), what a code means (`error.rs`), how a file or a server is opened
//! (`sqlite.rs`, `postgres.rs`), how arguments are given (`connection.rs`), schemas (`migrations/`).
//!
//! Statements are executed in a transaction: behind a pooler in transaction mode, one that is prepared outside may be executed on
//! another server connection than the one that knows it. The doors beside it are for statements that stand alone:
//! `look` on a file, and `alone` and `tell` (`postgres.rs`).

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
use sqlx::{Executor as _, Pool, Postgres, SqlSafeStr as _, Sqlite};

pub(crate) use address::Address;
use connection::Connection;
pub(crate) use connection::Record;
pub(crate) use copy::random_id;
pub use error::DatabaseError;
use held::{Held, Holds, answered};
pub(crate) use retry::{Repeats, pause, retried, still_unknown};
use statement::Bound;

use crate::failpoint::{self, Guarded};

type Result<T> = std::result::Result<T, DatabaseError>;

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
    Sqlite(Held<Sqlite>, Guarded),
    /// On a server, and whether statements stay prepared there.
    Postgres(Held<Postgres>, bool, Guarded),
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

    /// Opens a database to look: what would write in it fails.
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

    /// The same, and on a server what would write fails; a file is opened so.
    pub(crate) fn only_reading(self) -> Database {
        match self {
            Database::Postgres { pool, persistent, begin } => {
                Database::Postgres { pool, persistent, begin: begin.only_reading() }
            }
            file @ Database::Sqlite { .. } => file,
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

    /// The same for whoever must notice soon that a server is gone.
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

    /// A transaction that writes. SQLite takes its lock at the beginning: one that reads first and is refused when it
    /// writes would have to begin again.
    pub(crate) async fn write(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { writer, .. } => {
                let begun = Held::begin(writer, None, "BEGIN IMMEDIATE".into_sql_str(), None).await?;
                Ok(Transaction::Sqlite(begun, failpoint::guarded()))
            }
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.write).await?;
                Ok(Transaction::Postgres(begun, *persistent, failpoint::guarded()))
            }
        }
    }

    /// The same for whoever must not wait for a lock on a row for long. A file has one lock for all.
    pub(crate) async fn write_briefly(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { .. } => self.write().await,
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.write_briefly).await?;
                Ok(Transaction::Postgres(begun, *persistent, failpoint::guarded()))
            }
        }
    }

    /// A transaction that only reads, beside any writer.
    pub(crate) async fn read(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { readers, .. } => {
                let begun = Held::begin(readers, None, "BEGIN".into_sql_str(), None).await?;
                Ok(Transaction::Sqlite(begun, Guarded::default()))
            }
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.read).await?;
                Ok(Transaction::Postgres(begun, *persistent, Guarded::default()))
            }
        }
    }

    /// All rows of a statement that reads and stands alone. On SQLite a transaction would be two more ways to the connection's
    /// thread and back; behind a pooler it is what keeps a statement and its arguments at one server.
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

    /// A transaction that only reads, and sees in all its statements the same instant.
    pub(crate) async fn read_at_once(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { .. } => self.read().await,
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.read_at_once).await?;
                Ok(Transaction::Postgres(begun, *persistent, Guarded::default()))
            }
        }
    }

    /// A transaction that goes through whole tables as they were at one instant.
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

    /// The pool, for whoever listens for wake-ups; none on SQLite, which has none.
    pub(crate) fn postgres(&self) -> Option<&PgPool> {
        match self {
            Database::Sqlite { .. } => None,
            Database::Postgres { pool, .. } => Some(pool),
        }
    }
}

/// Begins a transaction in a pool of any kind, for statements of a job.
pub(crate) async fn begun_in<DB: Holds>(pool: &Pool<DB>) -> std::result::Result<Held<DB>, sqlx::Error> {
    let mut begun = Held::begin(pool, None, "BEGIN".into_sql_str(), Some(held::DEADLINE)).await?;
    begun.lift_deadline();
    Ok(begun)
}

impl Transaction {
    /// Its connection, for statements.
    pub(crate) fn connection(&mut self) -> Connection<'_> {
        match self {
            Transaction::Sqlite(inner, _) => Connection::Sqlite(inner),
            Transaction::Postgres(inner, persistent, _) => Connection::Postgres(inner, *persistent),
        }
    }

    /// Something is about to be said. Gives how long the answer may take.
    fn speak(&mut self) -> Result<Option<Duration>> {
        match self {
            Transaction::Sqlite(inner, _) => inner.speak(),
            Transaction::Postgres(inner, ..) => inner.speak(),
        }
    }

    /// An answer came, or its time ran out: then the connection is not used again.
    fn heard<T>(&mut self, answer: Result<T>) -> Result<T> {
        match self {
            Transaction::Sqlite(inner, _) => inner.heard(answer),
            Transaction::Postgres(inner, ..) => inner.heard(answer),
        }
    }

    /// Runs a statement; gives how many rows it changed.
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

    /// The row of a statement that has at most one.
    pub(crate) async fn fetch_optional<T: Record>(&mut self, bound: Bound<'_>) -> Result<Option<T>> {
        Ok(self.fetch_all(bound).await?.pop())
    }

    /// Runs a text of several statements that takes no arguments: a migration, which takes as long as it does.
    pub(crate) async fn script(&mut self, text: &'static str) -> Result<()> {
        self.hand_over().await?;
        self.say(text).await
    }

    /// Runs a text that takes no arguments.
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
                let ended = "the database ended the transaction in the middle of it".to_owned();
                self.heard(Err(DatabaseError::Lost(ended)))
            }
            Transaction::Postgres(..) => self.say("select 1").await,
        }
    }

    /// Whether the database has ended it by itself, on SQLite; what was written since stands alone.
    pub(crate) async fn is_ended(&mut self) -> Option<DatabaseError> {
        match self {
            Transaction::Sqlite(..) => self.is_sound().await.err(),
            Transaction::Postgres(..) => None,
        }
    }

    /// Before somebody else's statements: the planner need not believe any more that there is an index for everything, and they
    /// may take as long as their job may.
    pub(crate) async fn hand_over(&mut self) -> Result<()> {
        if let Transaction::Postgres(..) = self {
            self.say(postgres::HAND_OVER).await?;
        }
        if let Transaction::Postgres(inner, ..) = self {
            inner.lift_deadline();
        }
        Ok(())
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
