//! Backup: a copy of the store as it is at one instant, while others go on writing.
//!
//! A file that is copied by hand may lack its log, or half of a page. This one is whole, on the disk, and readable by its
//! owner alone before it gets its name; whoever restores it says so with `recover`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::Refrain;
use crate::database::{Database, DatabaseError};
use crate::error::Error;
use crate::store::{catalog, new_id};

impl Refrain {
    /// Copies a SQLite store into a new file, and gives its size in bytes. A server has tools of its own for that.
    pub async fn backup(&self, path: &Path) -> Result<u64, Error> {
        let failed = |source| Error::Backup { path: path.to_owned(), source };
        if path.exists() {
            return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, "it is there already")));
        }
        let partial = beside(path);
        create(&partial).map_err(failed)?;
        let copied = self.copied(&partial).await;
        let settled = match copied {
            Ok(true) => settle(&partial, path).map_err(failed),
            Ok(false) => Err(Error::NoBackup),
            Err(error) => Err(error.into()),
        };
        if settled.is_err() {
            drop(std::fs::remove_file(&partial));
        }
        settled
    }
}

impl Refrain {
    /// A copy is another store. Restored, it is older than what it has written elsewhere, and must be let in by a person.
    async fn copied(&self, partial: &Path) -> Result<bool, DatabaseError> {
        let is_file = self.store().database.copy_into(partial).await?;
        if is_file {
            Database::amend(partial, catalog::STORE_RENAME.bind(new_id())).await?;
        }
        Ok(is_file)
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Before anything is in it: what a store holds is not for others.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn settle(partial: &Path, path: &Path) -> io::Result<u64> {
    let file = File::open(partial)?;
    file.sync_all()?;
    // A link, not a rename: it refuses to put itself in place of a file that came meanwhile.
    std::fs::hard_link(partial, path)?;
    std::fs::remove_file(partial)?;
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(file.metadata()?.len())
}
