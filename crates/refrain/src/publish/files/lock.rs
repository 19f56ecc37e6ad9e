//! A lock for one publish at a time in a directory. The system releases it when its process dies.
//!
//! It is polled and not waited for: a thread that blocks on it could not be cancelled when the run times out, and would keep
//! the process from exiting.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::super::error::WriteError;

/// The name of the lock file in each directory.
const NAME: &str = ".refrain.lock";
/// The first and the longest pause between two tries.
const WAIT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// Permission to change links in a directory, until this is dropped.
#[derive(Debug)]
pub(crate) struct DirectoryLock(
    #[expect(dead_code, reason = "the lock is held while the file is open")] File,
);

impl DirectoryLock {
    /// Waits until the lock is free, and takes it.
    pub(crate) async fn take(directory: &Path) -> Result<DirectoryLock, WriteError> {
        let path = directory.join(NAME);
        let (mut wait, most) = WAIT;
        loop {
            match attempt(&path) {
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) => tokio::time::sleep(wait).await,
                Err(source) => return Err(unlocked(path, source)),
            }
            wait = (wait * 2).min(most);
        }
    }
}

fn attempt(path: &Path) -> io::Result<Option<DirectoryLock>> {
    locked(opened(path)?, path)
}

fn opened(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // Following a link would create and lock a file in another directory.
    let nofollow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    options.custom_flags(nofollow).open(path)
}

fn locked(file: File, path: &Path) -> io::Result<Option<DirectoryLock>> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The file may have been removed before it was locked, and another process may have created a new one.
    let (ours, theirs) = (file.metadata()?, fs::metadata(path));
    let is_it = theirs.is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()));
    Ok(is_it.then_some(DirectoryLock(file)))
}

fn unlocked(path: PathBuf, source: io::Error) -> WriteError {
    WriteError::File { what: "cannot be locked", path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_has_one_holder_and_is_released_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let lock = DirectoryLock::take(folder.path()).await.unwrap();
        assert!(attempt(&path).unwrap().is_none());
        drop(lock);
        assert!(attempt(&path).unwrap().is_some());
    }

    #[tokio::test]
    async fn a_lock_file_that_is_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(NAME)).unwrap();
        assert!(DirectoryLock::take(folder.path()).await.is_err());
        assert!(!elsewhere.exists());
    }

    #[tokio::test]
    async fn a_removed_lock_file_is_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        drop(DirectoryLock::take(folder.path()).await.unwrap());
        fs::remove_file(&path).unwrap();
        let _lock = DirectoryLock::take(folder.path()).await.unwrap();
        assert!(attempt(&path).unwrap().is_none());
    }

    #[tokio::test]
    async fn a_file_that_was_removed_before_it_was_locked_is_not_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let removed = opened(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let _lock = DirectoryLock::take(folder.path()).await.unwrap();
        assert!(locked(removed, &path).unwrap().is_none());
    }
}
