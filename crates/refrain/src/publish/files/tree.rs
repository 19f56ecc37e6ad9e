//! What is in a directory that is to be published: files and directories, on the disk, and nothing else.
//!
//! A link would show something that can change later, or that the reader may not see; a pipe or a socket means nothing a day
//! later.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::super::error::WriteError;

/// Brings all of it to the disk. Gives how many files there are.
pub(crate) fn seal(directory: &Path) -> Result<u64, WriteError> {
    let is_there = fs::symlink_metadata(directory).map_err(|error| unread(directory, error))?.is_dir();
    if !is_there {
        return Err(unfit(directory, "is no directory any more"));
    }
    let mut files = 0;
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = fs::read_dir(&directory).map_err(|error| unread(&directory, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unread(&directory, error))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| unread(&path, error))?;
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                let names = entry.metadata().map_err(|error| unread(&path, error))?.nlink();
                if names > 1 {
                    return Err(unfit(
                        &path,
                        "has a second name (a hard link), by which it can change later",
                    ));
                }
                sync(&path)?;
                files += 1;
            } else if kind.is_symlink() {
                return Err(unfit(&path, "is a symbolic link"));
            } else {
                return Err(unfit(&path, "is neither a file nor a directory"));
            }
        }
        sync(&directory)?;
    }
    Ok(files)
}

/// Brings a file, or the names in a directory, to the disk.
pub(crate) fn sync(path: &Path) -> Result<(), WriteError> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| WriteError::File {
        what: "cannot be brought to the disk",
        path: path.to_owned(),
        source,
    })
}

fn unread(path: &Path, source: io::Error) -> WriteError {
    WriteError::File { what: "cannot be read", path: path.to_owned(), source }
}

fn unfit(path: &Path, why: &str) -> WriteError {
    WriteError::Unfit(format!("`{}` {why}; files and directories are published", path.display()))
}
