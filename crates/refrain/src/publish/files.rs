//! Files in a directory that changes as a whole.
//!
//! What people read, `out/dt=2026-06-09`, is a symbolic link. An attempt writes into a directory of its own beside it,
//! brings that to the disk, and moves the link in one step. A directory itself cannot be replaced by one that has other
//! files in it, and files that are replaced one by one are a mixture for a while: hence the link.
//!
//! The fence of the run is in the store. It is looked at once more before the link is moved, under a lock on the directory
//! around it, because the store cannot hold a fence while a file system does something. An attempt that looked and was then
//! stopped still has the lock; whoever raised the fence meanwhile waits for it, and moves the link after it.

pub(crate) mod format;
pub(crate) mod lock;
pub(crate) mod place;
pub(crate) mod tree;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain_core::project::Sql;
use refrain_core::publish::{FileFormat, FilesPublish};
use refrain_core::{Per, Values};

use self::format::Lines;
use self::lock::Lock;
use self::place::Place;
use super::error::WriteError;
use super::record::Published;
use super::source::Source;
use crate::action::about::About;
use crate::database::{place, retried};
use crate::failpoint;
use crate::ledger::LedgerError;
use crate::ledger::fence::{self, Footing, raise};
use crate::project::databases::Database;
use crate::run::Run;

/// The first part of the only file that rows go into.
const PART: &str = "part-0";

/// An attempt's own directory, on its way to be the one that people read.
#[derive(Debug)]
pub(crate) struct Publication {
    place: Arc<Place>,
    /// The name of the attempt's directory.
    hidden: String,
    /// The directory as the job file names it.
    target: String,
    /// The fence of the run, at the store.
    footing: Footing,
    run: Run,
}

impl Publication {
    /// Raises the fence, clears away what earlier attempts have left, and makes an empty directory.
    pub(crate) async fn begin(
        run: &Run,
        about: &About,
        files: &FilesPublish,
        values: &Values,
    ) -> Result<Publication, WriteError> {
        let target = files.place(values).map_err(|error| WriteError::Refused(error.to_string()))?;
        let place = Arc::new(Place::of(&about.root.join(&target), run)?);
        let footing = raise(&run.surroundings.store.database, &run.facts).await?;
        let around = Arc::clone(&place);
        blocking(move || around.surround()).await?;
        let lock = Lock::take(&place.parent).await?;
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

    /// The attempt's own directory.
    pub(crate) fn directory(&self) -> PathBuf {
        self.place.parent.join(&self.hidden)
    }

    /// Brings what is in the directory to the disk. Gives how many files there are.
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

    /// Makes it the directory that people read, unless a newer attempt has begun.
    pub(crate) async fn show(&self, rows: u64) -> Result<(), WriteError> {
        let lock = if failpoint::is_weakened("files.unlocked") {
            None
        } else {
            Some(Lock::take(&self.place.parent).await?)
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
        // The lock goes with it: dropped in the middle, this still ends before anybody else begins.
        let before = blocking(move || {
            let _lock = lock;
            place.point(&hidden)
        })
        .await?;
        self.record(rows).await?;
        let (place, hidden) = (Arc::clone(&self.place), self.hidden.clone());
        blocking(move || {
            place.sweep(Some(&hidden));
            // Of a store that is no more it may have a higher number, and nobody else would take it away.
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

    /// Takes the directory away again, unless people read it already.
    pub(crate) async fn abandon(self) {
        let (place, hidden) = (self.place, self.hidden);
        let abandoned = blocking(move || {
            if is_unread(&place.shown(), &hidden) {
                place.remove(&hidden);
            }
            Ok(())
        });
        // It is the failure before that is told.
        let _ = abandoned.await;
    }

    /// After the fact: a record that comes first could be of files that never came.
    async fn record(&self, rows: u64) -> Result<(), LedgerError> {
        let (surroundings, facts) = (&self.run.surroundings, &self.run.facts);
        let database = &surroundings.store.database;
        let per = if self.run.window().is_some() { Per::Window } else { Per::Ever };
        let ledger = surroundings.ledgers.find(database, facts.book(per)?).await?;
        let published = Published { target: &self.target, mode: "files", rows };
        retried(|| async {
            let mut transaction = database.write().await?;
            if fence::is_held(&mut transaction, self.footing, facts).await? {
                published.record(&mut transaction, ledger, self.footing.fence, facts).await?;
            }
            transaction.commit(place!("files")).await
        })
        .await?;
        Ok(())
    }
}

/// Whether it is known that people do not read a directory.
fn is_unread(shown: &Result<Option<String>, WriteError>, hidden: &str) -> bool {
    match shown {
        Ok(shown) => shown.as_deref() != Some(hidden),
        Err(WriteError::File { .. }) => false,
        // Another program put that directory there.
        Err(_) => true,
    }
}

/// Writes the rows of a query into files, and makes them what people read.
pub(crate) async fn rows(
    run: &Run,
    about: &About,
    source: &Database,
    query: &Sql,
    files: &FilesPublish,
) -> Result<(), WriteError> {
    let values = about.values(run);
    let publication = Publication::begin(run, about, files, &values).await?;
    let published = async {
        let source = Source::sorted(source, about, query, &values).await?;
        let rows = write(&publication.directory(), source, files.format).await?;
        publication.seal().await?;
        publication.show(rows).await
    };
    let published = published.await;
    if published.is_err() {
        publication.abandon().await;
    }
    published
}

async fn write(directory: &Path, mut source: Source, format: FileFormat) -> Result<u64, WriteError> {
    let path = directory.join(format!("{PART}.{format}"));
    let lines = Lines::new(format, &source.columns)?;
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

/// Does something that waits for a disk where nobody else waits for it.
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
    fn a_directory_goes_only_when_it_is_known_that_nobody_reads_it() {
        let unreadable = WriteError::File {
            what: "cannot be read",
            path: PathBuf::from("out"),
            source: io::Error::other("the disk fails"),
        };
        for (shown, is_gone) in [
            (Ok(Some(".a.1".to_owned())), false),
            (Ok(Some(".a.2".to_owned())), true),
            (Ok(None), true),
            (Err(WriteError::Refused("it is somebody else's".to_owned())), true),
            (Err(unreadable), false),
        ] {
            assert_eq!(is_unread(&shown, ".a.1"), is_gone, "{shown:?}");
        }
    }
}
