//! SQLite as a store: one file on a local disk, one writer in each process, readers beside it.
//!
//! Every commit is on the disk before it is reported (`synchronous = FULL`): a reservation that a power cut takes back
//! would be a duplicate later. One connection writes, because SQLite has one writer anyway and a queue inside the
//! process is fairer than its lock; readers see the last commit and wait for nobody.

use std::path::Path;
use std::time::Duration;

use libsqlite3_sys::SQLITE_VERSION_NUMBER;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::{Database, DatabaseError, file_system};

/// Older ones can lose what was committed when the log is reset.
const OLDEST: (i32, &str) = (3_051_003, "3.51.3");
const _: () = assert!(SQLITE_VERSION_NUMBER >= OLDEST.0, "the SQLite inside is too old");

/// How long a writer waits for the lock before it begins again.
const BUSY: Duration = Duration::from_secs(10);
const READERS: u32 = 4;
/// Pages in the log before they are moved into the file: scattered writes gain from moving many at once.
const CHECKPOINT_PAGES: &str = "4000";
/// A log that a long reader has made larger than this is cut back when it begins anew; without a limit it never is.
const LOG_BYTES_MAX: &str = "33554432";
/// Rows that the thread of a connection may be ahead of its reader: waking one another for every few rows costs more than
/// the rows. The largest batch that is read is a claim.
const ROWS: usize = 4_000;

pub(super) async fn open(path: &Path) -> Result<Database, DatabaseError> {
    let path = file_system::prepare(path)?;
    let options = SqliteConnectOptions::new()
        .filename(&path)
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
    let writer = pool(1).connect_with(writing).await?;
    let (version,): (String,) = sqlx::query_as("select sqlite_version()").fetch_one(&writer).await?;
    if number(&version) < OLDEST.0 {
        return Err(DatabaseError::TooOld(version));
    }
    let readers = pool(READERS).connect_with(options.read_only(true)).await?;
    Ok(Database::Sqlite { writer, readers })
}

fn pool(connections: u32) -> SqlitePoolOptions {
    // A writer waits for its turn as long as others take theirs; it is the lock's own limit that counts. Nobody hangs up.
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
    use super::*;

    #[test]
    fn versions_are_numbers_as_sqlite_writes_them() {
        assert_eq!(number("3.51.3"), OLDEST.0);
        assert_eq!(number(OLDEST.1), OLDEST.0);
        assert!(number("3.40.1") < OLDEST.0);
    }
}
