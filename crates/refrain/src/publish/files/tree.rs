//! Checks and syncs a directory before it is published: it may contain files and directories, and nothing else.
//!
//! The target of a link can change later, or be unreadable to others; a pipe or a socket is useless after the run.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::super::error::WriteError;

/// Syncs a directory and everything in it to disk. Returns the number of files.
pub(crate) fn seal(directory: &Path) -> Result<u64, WriteError> {
    let is_there = fs::symlink_metadata(directory).map_err(|error| unread(directory, error))?.is_dir();
    if !is_there {
        return Err(unfit(directory, "is no longer a directory"));
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
                    return Err(unfit(&path, "has a second hard link, through which it could change later"));
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

/// Syncs a file, or the entries of a directory, to disk.
pub(crate) fn sync(path: &Path) -> Result<(), WriteError> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| WriteError::File {
        what: "cannot be synced to disk",
        path: path.to_owned(),
        source,
    })
}

fn unread(path: &Path, source: io::Error) -> WriteError {
    WriteError::File { what: "cannot be read", path: path.to_owned(), source }
}

fn unfit(path: &Path, why: &str) -> WriteError {
    WriteError::Unfit(format!("`{}` {why}; only files and directories can be published", path.display()))
}
