//! Backup: a copy of the store as it is at one instant, while other processes write.
//!
//! A file copied by hand may lack its write-ahead log, or half of a page. This copy is complete, on disk, and readable by
//! its owner alone before it gets its name; after a restore the operator states that with `recover`.
//!
//! It is written in a directory of its own that only its owner may enter. In a directory that other users may write to,
//! they could create or replace the file before SQLite opens it by name.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use refrain_core::random::{Random as _, SystemRandom};

use super::Refrain;
use crate::database::{Database, DatabaseError};
use crate::error::Error;
use crate::store::identity::IdentityDoubt;
use crate::store::{catalog, new_id};

impl Refrain {
    /// Copies a SQLite store into a new file, and returns its size in bytes. A server has its own tools for that.
    pub async fn backup(&self, path: &Path) -> Result<u64, Error> {
        let failed = |source| Error::Backup { path: path.to_owned(), source };
        if path.exists() {
            return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists already")));
        }
        let room = Room::beside(path).map_err(failed)?;
        let copied = self.copied(&room.file()).await;
        match copied {
            Ok(true) => publish(&room.file(), path).map_err(failed),
            Ok(false) => Err(Error::NoBackup),
            Err(error) => Err(error.into()),
        }
    }
}

impl Refrain {
    /// A copy is another store. After a restore it is older than what it has written elsewhere, and an operator must
    /// decide whether it may continue.
    async fn copied(&self, partial: &Path) -> Result<bool, DatabaseError> {
        let is_file = self.store().database.copy_into(partial).await?;
        if is_file {
            Database::amend(partial, catalog::STORE_RENAME.bind(new_id()).bind(IdentityDoubt::Backup.name()))
                .await?;
        }
        Ok(is_file)
    }
}

/// A new directory that only its owner may enter; dropping it removes it with its contents.
struct Room(PathBuf);

impl Room {
    fn beside(path: &Path) -> io::Result<Room> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!(".{name}.{:016x}.partial", SystemRandom::new().next_u64());
        let room = path.with_file_name(name);
        DirBuilder::new().mode(0o700).create(&room)?;
        let room = Room(room);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(room.file())?;
        Ok(room)
    }

    fn file(&self) -> PathBuf {
        self.0.join("store")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn publish(partial: &Path, path: &Path) -> io::Result<u64> {
    let file = File::open(partial)?;
    file.sync_all()?;
    // A link, not a rename: it fails if the file was created meanwhile.
    fs::hard_link(partial, path)?;
    fs::remove_file(partial)?;
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(file.metadata()?.len())
}
