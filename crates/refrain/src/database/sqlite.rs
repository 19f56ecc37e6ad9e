//! SQLite as a store: one file on a local disk, one writer in each process, readers beside it.
//!
//! Every commit is on the disk before it is reported (`synchronous = FULL`): a reservation that a power cut
//! takes back would be a duplicate later. One connection writes, because SQLite has one writer anyway and a
//! queue inside the process is fairer than its lock; readers see the last commit and never wait for a writer.

use std::path::Path;
use std::time::{Duration, Instant};

use libsqlite3_sys::SQLITE_VERSION_NUMBER;
use refrain_core::random::{Random as _, SystemRandom};
use sqlx::Connection as _;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use super::{Address, Database, DatabaseError, file_system, pause, read_only};

/// Older versions can lose committed data when the log is reset.
const OLDEST: (i32, &str) = (3_051_003, "3.51.3");
const _: () = assert!(SQLITE_VERSION_NUMBER >= OLDEST.0, "the SQLite inside is too old");

/// How long a writer waits for the lock before it begins again.
const BUSY: Duration = Duration::from_secs(10);
const READERS: u32 = 4;
/// Pages in the log before they are moved into the file: moving many at once makes scattered writes cheaper.
const CHECKPOINT_PAGES: &str = "4000";
/// A log that has grown beyond this, because of a long reader, is truncated when it restarts; without a limit
/// it never is.
const LOG_BYTES_MAX: &str = "33554432";
/// How many rows the thread of a connection may be ahead of its reader: a switch between the two costs more
/// than a few rows. The largest batch that is read is a claim.
const ROWS: usize = 4_000;

pub(super) async fn open(path: &Path) -> Result<Database, DatabaseError> {
    let path = file_system::prepare(path)?;
    if !path.exists() {
        create(&path).await?;
    }
    connect(&path).await
}

/// Opens a file read-only: it must exist, and is not changed.
pub(super) async fn open_to_look(path: &Path) -> Result<Database, DatabaseError> {
    let path = file_system::prepare_to_look(path)?;
    // A writer that ends in between removes its log: the next try sees the file as it is now.
    let connect = async || {
        let options = read_only::options(&path).await?;
        let readers = pool(READERS).connect_with(options.busy_timeout(BUSY).row_buffer_size(ROWS));
        Ok::<_, DatabaseError>(readers.await?)
    };
    let readers = match connect().await {
        Ok(readers) => readers,
        Err(error @ DatabaseError::File(_)) => return Err(error),
        Err(_) => connect().await?,
    };
    Ok(Database::Sqlite { writer: readers.clone(), readers })
}

impl Database {
    /// Opens a database that was open before. If the file was moved since, no new one is made: the log beside
    /// the old path belongs to the moved file.
    pub(crate) async fn reopen(
        address: &Address,
        connections: u32,
        idle: Duration,
    ) -> Result<Database, DatabaseError> {
        match address {
            Address::Sqlite { path } => connect(&file_system::prepare(path)?).await,
            Address::Postgres { .. } => Database::open(address, connections, idle).await,
        }
    }
}

async fn connect(path: &Path) -> Result<Database, DatabaseError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .busy_timeout(BUSY)
        .foreign_keys(false)
        .row_buffer_size(ROWS)
        .synchronous(SqliteSynchronous::Full);
    let writing = options
        .clone()
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .pragma("journal_size_limit", LOG_BYTES_MAX);
    let writer = patiently(|| pool(1).connect_with(writing.clone())).await?;
    let (version,): (String,) = sqlx::query_as("select sqlite_version()").fetch_one(&writer).await?;
    if number(&version) < OLDEST.0 {
        return Err(DatabaseError::TooOld(version));
    }
    let readers = pool(READERS).connect_with(options.read_only(true)).await?;
    Ok(Database::Sqlite { writer, readers })
}

/// Makes a file that is a database in WAL mode from the moment it has its name: a process that is killed in
/// between leaves only a file with another name.
async fn create(path: &Path) -> Result<(), DatabaseError> {
    let beside = file_system::make_beside(path, SystemRandom::new().next_u64())?;
    let options = SqliteConnectOptions::new().filename(&beside).journal_mode(SqliteJournalMode::Wal);
    let made = sqlx::SqliteConnection::connect_with(&options).await;
    match made {
        Ok(connection) => connection.close().await?,
        Err(error) => {
            drop(std::fs::remove_file(&beside));
            return Err(error.into());
        }
    }
    Ok(file_system::give_name(&beside, path)?)
}

/// Connects, and waits for another process that opens a new file too. To switch a file to WAL mode, SQLite
/// takes the writer's lock while it already reads; it does not wait for that lock, because two processes that
/// did would wait for each other.
async fn patiently<F>(mut connect: impl FnMut() -> F) -> Result<SqlitePool, DatabaseError>
where
    F: Future<Output = Result<SqlitePool, sqlx::Error>>,
{
    let begun = Instant::now();
    let mut again = 0;
    loop {
        match connect().await.map_err(DatabaseError::from) {
            Err(DatabaseError::Busy(_)) if begun.elapsed() < BUSY => pause(again).await,
            settled => return settled,
        }
        again += 1;
    }
}

fn pool(connections: u32) -> SqlitePoolOptions {
    // No timeout of the pool: a writer waits for its turn as long as other writers take; the limit is that of
    // the lock.
    SqlitePoolOptions::new()
        .max_connections(connections)
        .test_before_acquire(false)
        .acquire_timeout(Duration::from_mins(2))
        .idle_timeout(None)
        .max_lifetime(None)
}

fn number(version: &str) -> i32 {
    version.split('.').fold(0, |number, part| number * 1000 + part.parse::<i32>().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use sqlx::{Connection, Executor, SqliteConnection};

    use super::*;

    #[tokio::test]
    async fn f27_a_file_that_another_process_makes_a_store_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let file = SqliteConnectOptions::new().filename(directory.path().join("refrain.db"));
        let mut other = SqliteConnection::connect_with(&file.clone().create_if_missing(true)).await.unwrap();
        other.execute("begin immediate").await.unwrap();
        let other = tokio::sync::Mutex::new(other);
        let refusals = Cell::new(0);
        let connect = async || {
            let connected = pool(1).connect_with(file.clone().journal_mode(SqliteJournalMode::Wal)).await;
            if connected.is_err() {
                refusals.set(refusals.get() + 1);
                other.lock().await.execute("commit").await.unwrap();
            }
            connected
        };
        let writer = patiently(connect).await.unwrap();
        let mode: String = sqlx::query_scalar("pragma journal_mode").fetch_one(&writer).await.unwrap();
        assert_eq!((mode.as_str(), refusals.get()), ("wal", 1));
    }

    #[test]
    fn versions_are_numbers_as_sqlite_writes_them() {
        assert_eq!(number("3.51.3"), OLDEST.0);
        assert_eq!(number(OLDEST.1), OLDEST.0);
        assert!(number("3.40.1") < OLDEST.0);
    }
}
