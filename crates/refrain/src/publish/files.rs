//! Publishes files in a directory that changes as a whole.
//!
//! The visible name, for example `out/dt=2026-06-09`, is a symbolic link. An attempt writes to a directory of its own beside
//! it, syncs it, and moves the link in one step. A file system cannot replace a directory that is not empty, and files that are
//! replaced one by one are a mixture for a while: hence the link.
//!
//! The fence of the run is in the store. It is checked once more before the link is moved, under a lock on the parent
//! directory, because the store cannot hold a fence during a file operation. An attempt that was suspended after its check
//! still has the lock; the attempt that has raised the fence meanwhile waits for the lock, and moves the link afterwards.

pub(crate) mod directory;
pub(crate) mod format;
pub(crate) mod lock;
pub(crate) mod tree;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain_core::project::Sql;
use refrain_core::publish::{FileFormat, FilesPublish};
use refrain_core::{Per, Values};

use self::directory::VisibleDirectory;
use self::format::RowFormat;
use self::lock::DirectoryLock;
use super::error::WriteError;
use super::query_rows::QueryRows;
use super::record::PublishRecord;
use crate::bind::context::About;
use crate::database::{place, retried};
use crate::failpoint;
use crate::ledger::LedgerError;
use crate::ledger::fence::{self, Footing, raise};
use crate::run::Run;
use crate::user_database::UserDatabase;

/// The name of the only file that rows are written to, without its extension.
const FILE_STEM: &str = "part-0";

/// A directory of an attempt that is about to be published.
#[derive(Debug)]
pub(crate) struct Publication {
    place: Arc<VisibleDirectory>,
    /// The name of the directory of this attempt.
    hidden: String,
    /// The directory as the job file names it.
    target: String,
    /// The fence of the run in the store.
    footing: Footing,
    run: Run,
}

impl Publication {
    /// Raises the fence, removes what earlier attempts left, and creates an empty directory.
    pub(crate) async fn begin(
        run: &Run,
        about: &About,
        files: &FilesPublish,
        values: &Values,
    ) -> Result<Publication, WriteError> {
        let target = files.directory(values).map_err(|error| WriteError::Refused(error.to_string()))?;
        let place = Arc::new(VisibleDirectory::of(&about.root.join(&target), run)?);
        let footing = raise(&run.surroundings.store.database, &run.facts).await?;
        let around = Arc::clone(&place);
        blocking(move || around.create_parent()).await?;
        let lock = DirectoryLock::take(&place.parent).await?;
        let made = Arc::clone(&place);
        let hidden = blocking(move || {
            let _lock = lock;
            let shown = made.shown()?;
            made.sweep(shown.as_deref());
            made.make()
        })
        .await?;
        Ok(Publication { place, hidden, target, footing, run: run.clone() })
    }

    /// The directory of this attempt.
    pub(crate) fn directory(&self) -> PathBuf {
        self.place.parent.join(&self.hidden)
    }

    /// Syncs the directory and its files to disk. Returns the number of files.
    pub(crate) async fn seal(&self) -> Result<u64, WriteError> {
        let (directory, parent) = (self.directory(), self.place.parent.clone());
        let files = blocking(move || {
            let files = tree::seal(&directory)?;
            tree::sync(&parent)?;
            Ok(files)
        })
        .await?;
        failpoint::reach("files.written");
        Ok(files)
    }

    /// Points the visible name to this directory, unless a newer attempt has begun.
    pub(crate) async fn publish(&self, rows: u64) -> Result<(), WriteError> {
        let lock = if failpoint::is_weakened("files.unlocked") {
            None
        } else {
            Some(DirectoryLock::take(&self.place.parent).await?)
        };
        let database = &self.run.surroundings.store.database;
        if !failpoint::is_weakened("files.unfenced") {
            fence::stands(database, &self.run.facts).await?;
            failpoint::reach("files.fenced");
            if !self.run.lease.is_good() {
                return Err(LedgerError::Expired.into());
            }
        }
        failpoint::reach("files.checked");
        let (place, hidden) = (Arc::clone(&self.place), self.hidden.clone());
        // The lock moves into the thread: if this future is dropped, the link is still moved before another publish begins.
        let before = blocking(move || {
            let _lock = lock;
            place.point(&hidden)
        })
        .await?;
        self.record(rows).await?;
        let (place, hidden) = (Arc::clone(&self.place), self.hidden.clone());
        blocking(move || {
            place.sweep(Some(&hidden));
            // If it was made with a store that is lost, its attempt number may be higher, and `sweep` would keep it.
            if let Some(before) = before {
                place.remove(&before);
            }
            Ok(())
        })
        .await?;
        let (job, target) = (self.run.job(), &self.target);
        tracing::info!(%job, run = self.run.key(), target, rows, "published");
        let rows = usize::try_from(rows).unwrap_or_default();
        self.run.tally.discovered(rows);
        self.run.tally.processed(rows);
        Ok(())
    }

    /// Removes the directory, unless it is visible already.
    pub(crate) async fn abandon(self) {
        let (place, hidden) = (self.place, self.hidden);
        let abandoned = blocking(move || {
            if is_unread(&place.shown(), &hidden) {
                place.remove(&hidden);
            }
            Ok(())
        });
        // The error that came before is the one that is reported.
        let _ = abandoned.await;
    }

    /// Records the publish. This comes after it: a record that came before could be about files that never became visible.
    async fn record(&self, rows: u64) -> Result<(), LedgerError> {
        let (surroundings, facts) = (&self.run.surroundings, &self.run.facts);
        let database = &surroundings.store.database;
        let per = if self.run.window().is_some() { Per::Window } else { Per::Ever };
        let ledger = surroundings.ledgers.find(database, facts.book(per)?).await?;
        let published = PublishRecord { target: &self.target, mode: "files", rows };
        retried(|| async {
            let mut transaction = database.write().await?;
            if fence::held(&mut transaction, self.footing, facts).await?.is_ok() {
                published.record(&mut transaction, ledger, self.footing.fence, facts).await?;
            }
            transaction.commit(place!("files")).await
        })
        .await?;
        Ok(())
    }
}

/// Whether a directory is certainly not visible.
fn is_unread(shown: &Result<Option<String>, WriteError>, hidden: &str) -> bool {
    match shown {
        Ok(shown) => shown.as_deref() != Some(hidden),
        Err(WriteError::File { .. }) => false,
        // Another program put that directory there.
        Err(_) => true,
    }
}

/// Writes the rows of a query to a file, and publishes it.
pub(crate) async fn publish_rows(
    run: &Run,
    about: &About,
    source: &UserDatabase,
    query: &Sql,
    files: &FilesPublish,
) -> Result<(), WriteError> {
    let values = about.values(run);
    let publication = Publication::begin(run, about, files, &values).await?;
    let published = async {
        let source = QueryRows::sorted(source, about, query, &values).await?;
        let rows = write(&publication.directory(), source, files.format).await?;
        publication.seal().await?;
        publication.publish(rows).await
    };
    let published = published.await;
    if published.is_err() {
        publication.abandon().await;
    }
    published
}

async fn write(directory: &Path, mut source: QueryRows, format: FileFormat) -> Result<u64, WriteError> {
    let path = directory.join(format!("{FILE_STEM}.{format}"));
    let lines = RowFormat::new(format, &source.columns)?;
    let mut text = lines.head();
    let (made, told) = (path.clone(), path.clone());
    let mut file = blocking(move || {
        let file = OpenOptions::new().write(true).create_new(true).open(&made);
        file.map_err(|error| unwritten(&made, error))
    })
    .await?;
    let mut rows = 0;
    loop {
        let page = source.next().await?;
        for row in page.iter().flatten() {
            lines.row(row, &mut text);
        }
        rows += page.as_ref().map_or(0, Vec::len) as u64;
        let (path, written) = (told.clone(), std::mem::take(&mut text));
        file = blocking(move || {
            file.write_all(written.as_bytes()).map_err(|error| unwritten(&path, error))?;
            Ok(file)
        })
        .await?;
        if page.is_none() {
            return Ok(rows);
        }
    }
}

fn unwritten(path: &Path, source: io::Error) -> WriteError {
    WriteError::File { what: "cannot be written", path: path.to_owned(), source }
}

/// Runs file operations on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WriteError> + Send + 'static,
) -> Result<T, WriteError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(WriteError::Unfit(format!("the files could not be written: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_removed_only_when_it_is_certainly_not_visible() {
        let unreadable = WriteError::File {
            what: "cannot be read",
            path: PathBuf::from("out"),
            source: io::Error::other("the disk fails"),
        };
        for (shown, is_gone) in [
            (Ok(Some(".a.1".to_owned())), false),
            (Ok(Some(".a.2".to_owned())), true),
            (Ok(None), true),
            (Err(WriteError::Refused("it belongs to another run".to_owned())), true),
            (Err(unreadable), false),
        ] {
            assert_eq!(is_unread(&shown, ".a.1"), is_gone, "{shown:?}");
        }
    }
}
