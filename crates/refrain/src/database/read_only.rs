//! How a SQLite file is opened read-only: nothing in it is changed, and no other file is left beside it.
//!
//! A file with a log (`-wal`) is read through an index of the log in shared memory (`-shm`), which even a
//! read-only connection would make or repair, and leave behind. So it depends on what lies beside the file:
//!
//! - *A log without an index*: it cannot be read without making an index, so it is refused. A last writer that ends leaves
//!   the two like that for a moment, so they are checked again first.
//! - *A log with an index*: both are opened read-only. A living writer maintains the index; one that a killed
//!   process left is not repaired, but rebuilt in the memory of this connection (`readonly_shm`).
//! - *No log*, as every last writer leaves it: an ordinary connection that refuses to write (`query_only`).
//!   It takes part in SQLite's locks, so a writer may start meanwhile; a log that it makes for that is empty,
//!   and is removed when it closes.
//! - *No log and no index, a file that uses a log, and this process may not make one*: no writer has it open,
//!   and it is read as if it never changed (`immutable`), the only way that SQLite offers.
//! - *A file without a log mode, which this process may not write*: it is read under SQLite's locks.
//!
//! Rejected: `immutable` for all files without a log. A writer that starts in the middle moves its log into
//! the file, and pages of two snapshots would be read as one.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use sqlx::sqlite::SqliteConnectOptions;

use super::file_system::FileSystemError;

/// How often, and how long apart, a log is checked before it counts as one without an index.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(10);

/// How to open such a file now.
pub(crate) async fn options(path: &Path) -> Result<SqliteConnectOptions, FileSystemError> {
    let has_log = || fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    let has_index = || beside(path, "-shm").exists();
    for _ in 0..LOOKS {
        if !has_log() || has_index() {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let may_write = is_writable(path) && is_writable(directory.unwrap_or(Path::new(".")));
    if has_log() && !has_index() {
        return Err(FileSystemError::NoLogIndex { file: path.to_owned() });
    }
    Ok(options_for(path, has_log(), may_write))
}

fn options_for(path: &Path, has_log: bool, may_write: bool) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new().create_if_missing(false).foreign_keys(false);
    if has_log {
        options.filename(uri(path) + "?readonly_shm=1").read_only(true)
    } else if may_write {
        options.filename(path).pragma("query_only", "1")
    } else {
        let is_left = !beside(path, "-wal").exists() && !beside(path, "-shm").exists();
        options.filename(path).read_only(true).immutable(is_left && keeps_a_log(path))
    }
}

/// Whether the file is in WAL mode: bytes 18 and 19 of its header.
fn keeps_a_log(path: &Path) -> bool {
    let mut header = [0; 20];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header.ends_with(&[2, 2])
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn is_writable(path: &Path) -> bool {
    accessat(CWD, path, Access::WRITE_OK, AtFlags::empty()).is_ok()
}

/// A path as SQLite expects it in a URI.
fn uri(path: &Path) -> String {
    path.as_os_str().as_bytes().iter().fold("file:".to_owned(), |mut uri, byte| {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            byte => drop(write!(uri, "%{byte:02X}")),
        }
        uri
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sqlx::{Connection as _, Executor as _, SqliteConnection};

    use super::*;

    /// Every file of a directory, with its content.
    fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    async fn written(path: &Path) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let options = options.journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
        let mut writer = SqliteConnection::connect_with(&options).await.unwrap();
        writer.execute("create table if not exists t (n); insert into t values (1)").await.unwrap();
        writer
    }

    async fn count(path: &Path) -> i64 {
        let options = options(path).await.unwrap();
        let mut reader = SqliteConnection::connect_with(&options).await.unwrap();
        let count = sqlx::query_scalar("select count(*) from t").fetch_one(&mut reader).await.unwrap();
        let staged = "create temporary table u (n)";
        let writes = reader.execute("insert into t values (2)").await;
        assert!(writes.is_err(), "a look must not write");
        drop(reader.execute("pragma query_only = 0").await);
        reader.execute(staged).await.unwrap();
        reader.close().await.unwrap();
        count
    }

    #[tokio::test]
    async fn a_file_without_a_writer_is_read_and_no_file_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a store?#%.db");
        written(&path).await.close().await.unwrap();
        let before = files(directory.path());
        assert_eq!(before.len(), 1);
        assert_eq!(count(&path).await, 1);
        assert_eq!(files(directory.path()), before);
    }

    #[tokio::test]
    async fn a_log_that_a_killed_process_left_is_read_and_not_repaired() {
        let (directory, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let writer = written(&directory.path().join("a store?#%.db")).await;
        for (path, content) in files(directory.path()) {
            fs::write(copy.path().join(path.file_name().unwrap()), content).unwrap();
        }
        writer.close().await.unwrap();
        let before = files(copy.path());
        assert_eq!(before.len(), 3, "the file, its log and the index of that");
        assert_eq!(count(&copy.path().join("a store?#%.db")).await, 1);
        assert_eq!(files(copy.path()), before);
    }

    #[tokio::test]
    async fn commits_of_a_living_writer_are_seen_and_the_writer_continues() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let mut writer = written(&path).await;
        assert_eq!(count(&path).await, 1);
        writer.execute("insert into t values (2)").await.unwrap();
        assert_eq!(count(&path).await, 2);
    }

    #[tokio::test]
    async fn a_reader_of_a_file_without_a_log_does_not_see_a_later_writer() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        written(&path).await.close().await.unwrap();
        let mut reader = SqliteConnection::connect_with(&options(&path).await.unwrap()).await.unwrap();
        reader.execute("begin; select count(*) from t").await.unwrap();
        written(&path).await.close().await.unwrap();
        let seen: i64 = sqlx::query_scalar("select count(*) from t").fetch_one(&mut reader).await.unwrap();
        reader.execute("commit").await.unwrap();
        let now: i64 = sqlx::query_scalar("select count(*) from t").fetch_one(&mut reader).await.unwrap();
        assert_eq!((seen, now), (1, 2));
    }

    #[tokio::test]
    async fn a_file_that_keeps_no_log_is_read_under_locks_by_a_process_that_may_not_write_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shop.db");
        let file = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let file = file.journal_mode(sqlx::sqlite::SqliteJournalMode::Delete);
        let file = file.busy_timeout(Duration::ZERO);
        let mut writer = SqliteConnection::connect_with(&file).await.unwrap();
        writer.execute("create table t (n); insert into t values (1)").await.unwrap();
        let mut reader = SqliteConnection::connect_with(&options_for(&path, false, false)).await.unwrap();
        reader.execute("begin; select count(*) from t").await.unwrap();
        let refused = writer.execute("insert into t values (2)").await.unwrap_err();
        assert!(refused.to_string().contains("locked"), "the reader must not see half of it: {refused}");
        reader.execute("commit").await.unwrap();
        writer.execute("insert into t values (2)").await.unwrap();
    }

    /// A writer that is gone, or lives on another machine, has left none.
    #[tokio::test]
    async fn a_file_that_kept_a_log_is_read_by_a_process_that_may_not_write_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        written(&path).await.close().await.unwrap();
        let before = files(directory.path());
        let mut reader = SqliteConnection::connect_with(&options_for(&path, false, false)).await.unwrap();
        let count: i64 = sqlx::query_scalar("select count(*) from t").fetch_one(&mut reader).await.unwrap();
        assert_eq!(count, 1);
        assert_eq!(files(directory.path()), before, "not even while it is open");
    }

    /// A file with a log, and without the index of that.
    async fn without_index(directory: &Path) -> PathBuf {
        let origin = tempfile::tempdir().unwrap();
        let path = directory.join("store.db");
        let writer = written(&origin.path().join("store.db")).await;
        for ending in ["", "-wal"] {
            fs::copy(beside(&origin.path().join("store.db"), ending), beside(&path, ending)).unwrap();
        }
        writer.close().await.unwrap();
        path
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_without_an_index_is_refused_and_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = without_index(directory.path()).await;
        let before = files(directory.path());
        let refused = options(&path).await.unwrap_err();
        assert!(matches!(&refused, FileSystemError::NoLogIndex { file } if *file == path), "{refused}");
        assert_eq!(files(directory.path()), before);
    }

    #[tokio::test(start_paused = true)]
    async fn a_last_writer_that_is_still_removing_its_log_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = without_index(directory.path()).await;
        let looking = tokio::spawn({
            let path = path.clone();
            async move { options(&path).await.map(|_| ()) }
        });
        tokio::task::yield_now().await;
        fs::remove_file(beside(&path, "-wal")).unwrap();
        looking.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_file_that_a_writer_has_open_is_read_under_locks_even_before_its_log_has_anything() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let mut writer = written(&path).await;
        writer.execute("pragma wal_checkpoint(truncate)").await.unwrap();
        let mut reader = SqliteConnection::connect_with(&options_for(&path, false, false)).await.unwrap();
        let counts = "select count(*) from t";
        let before: i64 = sqlx::query_scalar(counts).fetch_one(&mut reader).await.unwrap();
        writer.execute("insert into t values (2)").await.unwrap();
        let after: i64 = sqlx::query_scalar(counts).fetch_one(&mut reader).await.unwrap();
        assert_eq!((before, after), (1, 2));
    }
}
