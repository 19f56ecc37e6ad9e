//! One publish at a time in a directory: a lock that the system takes back from whoever dies.
//!
//! It is asked for again and again instead of waited for: a thread that waits cannot be told that the time of its run is up,
//! and would keep the process from ending.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use super::super::error::WriteError;

/// What the lock is called in each directory.
const NAME: &str = ".refrain.lock";
/// After how long it is asked for again, at first and at most.
const WAIT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// The right to change links in a directory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "what is held is that it is open")] File);

impl Lock {
    /// Waits until nobody else has it.
    pub(crate) async fn take(directory: &Path) -> Result<Lock, WriteError> {
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

fn attempt(path: &Path) -> io::Result<Option<Lock>> {
    locked(opened(path)?, path)
}

fn opened(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // Through a link, a file would be made and locked in some other place.
    let nofollow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    options.custom_flags(nofollow).open(path)
}

fn locked(file: File, path: &Path) -> io::Result<Option<Lock>> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Somebody may have removed it before it was locked, and others have made another one.
    let (ours, theirs) = (file.metadata()?, fs::metadata(path));
    let is_it = theirs.is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()));
    Ok(is_it.then_some(Lock(file)))
}

fn unlocked(path: PathBuf, source: io::Error) -> WriteError {
    WriteError::File { what: "cannot be locked", path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_is_had_by_one_and_goes_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let lock = Lock::take(folder.path()).await.unwrap();
        assert!(attempt(&path).unwrap().is_none());
        drop(lock);
        assert!(attempt(&path).unwrap().is_some());
    }

    #[tokio::test]
    async fn a_lock_that_is_a_link_makes_no_file_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, folder.path().join(NAME)).unwrap();
        assert!(Lock::take(folder.path()).await.is_err());
        assert!(!elsewhere.exists());
    }

    #[tokio::test]
    async fn a_lock_that_somebody_removed_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        drop(Lock::take(folder.path()).await.unwrap());
        fs::remove_file(&path).unwrap();
        let _lock = Lock::take(folder.path()).await.unwrap();
        assert!(attempt(&path).unwrap().is_none());
    }

    #[tokio::test]
    async fn a_lock_that_somebody_removed_before_it_was_locked_is_not_had_beside_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let removed = opened(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let _lock = Lock::take(folder.path()).await.unwrap();
        assert!(locked(removed, &path).unwrap().is_none());
    }
}
