//! What must be true of a SQLite file before it is opened.
//!
//! SQLite is as safe as the locks below it. On a network file system they lie, and its log is shared memory
//! that two machines do not share; by two names for one file two processes make two logs. Both end in a
//! damaged database, so they are refused here, and a file has one path: the canonical one.
//!
//! A file that is there is asked about, never opened: when a process closes *any* handle of a file, the
//! system drops *all* locks that the process holds on it, and another part of this process may be in a
//! transaction.
//!
//! A new file is written beside its place and gets its name when it is whole (`sqlite.rs`). So a file of no bytes is never
//! a store that is just being made: it was cut off, and to begin anew in it would forget what was done.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, RenameFlags, accessat, renameat_with};

/// Only the owner reads what jobs did, and with which input.
const MODE: u32 = 0o600;

/// Why a file cannot hold a SQLite database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileSystemError {
    /// The directory does not exist. It is not made here: a mistyped path would make a second, empty store.
    #[error("{file} cannot be made: its directory is missing. Make it with: mkdir -p '{directory}'",
        file = .file.display(), directory = .directory.display())]
    DirectoryMissing {
        /// The file that was asked for.
        file: PathBuf,
        /// The directory that it would be in.
        directory: PathBuf,
    },
    /// The file is on a file system whose locks do not hold.
    #[error("{file} is on {kind}, where SQLite's locks do not hold and the database would be damaged. \
        Put it on a local disk, or use a postgres:// address", file = .file.display())]
    Network {
        /// The file that was asked for.
        file: PathBuf,
        /// What people call the file system.
        kind: &'static str,
    },
    /// Two names for one file would have two logs.
    #[error("{file} has {links} names (hard links), and SQLite would keep a log for each. \
        Leave it one: find the others with find -samefile, or copy the file", file = .file.display())]
    HardLinks {
        /// The file that was asked for.
        file: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// It is a directory, a device, a socket, a pipe, or a link that leads nowhere.
    #[error("{file} is {what}, not a file. Name a file, or a path at which there is nothing yet",
        file = .file.display())]
    NotAFile {
        /// The path that was asked for.
        file: PathBuf,
        /// What is there instead.
        what: &'static str,
    },
    /// There is a file, and nothing in it.
    #[error("{file} is empty: it is not a store, or it was cut off. Restore a backup; or remove the file, \
        and a new store is made in which nothing has run yet. A program that opens the file by itself makes \
        its own tables first", file = .file.display())]
    Empty {
        /// The file that was asked for.
        file: PathBuf,
    },
    /// It, or its directory, may not be written.
    #[error("{path} cannot be written ({source}): SQLite writes the file and makes others beside it. \
        Give this user the right to, or choose another place", path = .path.display())]
    NotWritable {
        /// The file or the directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no file to look at.
    #[error("{} does not exist", .file.display())]
    Missing {
        /// The file that was asked for.
        file: PathBuf,
    },
    /// Anything else that the system said.
    #[error("{path} cannot be used: {source}", path = .path.display())]
    Unusable {
        /// The file or the directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Whether the locks of a file system hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// They do.
    Local,
    /// They do not, or nobody can tell; with the name of the file system.
    Network(&'static str),
}

/// By the number that `statfs` gives. FUSE carries sshfs and a hundred others, the local ones among them
/// cannot be told apart; cluster file systems have locks but no memory that two machines share.
pub(crate) fn classify(magic: u32) -> Kind {
    let name = match magic {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x564c => "NCP",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x00c3_6400 => "Ceph",
        0x0102_1997 => "9P",
        0x6573_5546 => "FUSE",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x1983_0326 => "BeeGFS",
        0xaad7_aaea => "PanFS",
        0x6163_6673 => "ACFS",
        0xbeef_dead => "StoreNext",
        0x786f_4256 | 0xbacb_acbc | 0x7c7c_6673 => "a folder of the virtual machine's host",
        _ => return Kind::Local,
    };
    Kind::Network(name)
}

/// The canonical path of the file: what is there may be opened, and if nothing is there a file may be made.
pub(crate) fn prepare(file: &Path) -> Result<PathBuf, FileSystemError> {
    prepare_on(file, kind)
}

fn prepare_on(file: &Path, kind: impl Fn(&Path) -> io::Result<Kind>) -> Result<PathBuf, FileSystemError> {
    let canonical = canonical(file)?;
    let directory = canonical.parent().unwrap_or(&canonical);
    refuse_network(&canonical, directory, &kind)?;
    match fs::symlink_metadata(&canonical) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(unusable(&canonical)(error)),
        Ok(_) => {
            examine(&canonical, Access::READ_OK | Access::WRITE_OK)?;
            // A single file can be mounted from elsewhere into a local directory.
            refuse_network(&canonical, &canonical, &kind)?;
        }
    }
    writable(directory, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(canonical)
}

/// The canonical path of a file that is there and is only read.
pub(crate) fn prepare_to_look(file: &Path) -> Result<PathBuf, FileSystemError> {
    let canonical = canonical(file)?;
    let missing = || FileSystemError::Missing { file: file.to_owned() };
    match fs::symlink_metadata(&canonical) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing()),
        Err(error) => Err(unusable(&canonical)(error)),
        Ok(_) => {
            examine(&canonical, Access::READ_OK)?;
            refuse_network(&canonical, &canonical, kind)?;
            Ok(canonical)
        }
    }
}

/// A new, empty file beside the place of another, for its owner alone.
pub(crate) fn make_beside(file: &Path, number: u64) -> Result<PathBuf, FileSystemError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.{number:016x}.new"));
    make(&beside).map_err(unusable(&beside))?;
    Ok(beside)
}

/// Gives a file its name, and leaves a file alone that has the name already.
pub(crate) fn give_name(beside: &Path, file: &Path) -> Result<(), FileSystemError> {
    // A link and a removal would do the same in two steps, and in between the file would have two names.
    match renameat_with(CWD, beside, CWD, file, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::EXIST) => fs::remove_file(beside).map_err(unusable(beside)),
        Err(error) => {
            drop(fs::remove_file(beside));
            Err(unusable(file)(error.into()))
        }
    }
}

fn canonical(file: &Path) -> Result<PathBuf, FileSystemError> {
    match fs::canonicalize(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found.map_err(unusable(file)),
    }
    if file.is_symlink() {
        return Err(FileSystemError::NotAFile { file: file.to_owned(), what: "a link that leads nowhere" });
    }
    let directory = match file.parent() {
        Some(directory) if directory.as_os_str().is_empty() => Path::new("."),
        Some(directory) => directory,
        None => file,
    };
    let name = file.file_name().unwrap_or_default();
    match fs::canonicalize(directory) {
        Ok(directory) => Ok(directory.join(name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(FileSystemError::DirectoryMissing { file: file.to_owned(), directory: directory.to_owned() })
        }
        Err(error) => Err(unusable(directory)(error)),
    }
}

fn refuse_network(
    file: &Path,
    asked: &Path,
    kind: impl Fn(&Path) -> io::Result<Kind>,
) -> Result<(), FileSystemError> {
    match kind(asked).map_err(unusable(asked))? {
        Kind::Local => Ok(()),
        Kind::Network(kind) => Err(FileSystemError::Network { file: file.to_owned(), kind }),
    }
}

#[cfg(target_os = "linux")]
fn kind(path: &Path) -> io::Result<Kind> {
    // The field has a different width and sign on each architecture; the numbers have 32 bits.
    let magic = i128::from(rustix::fs::statfs(path)?.f_type) & 0xffff_ffff;
    Ok(u32::try_from(magic).map_or(Kind::Local, classify))
}

/// Elsewhere the numbers mean nothing, or something else on each machine.
#[cfg(not(target_os = "linux"))]
fn kind(_: &Path) -> io::Result<Kind> {
    Ok(Kind::Local)
}

fn make(file: &Path) -> io::Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(MODE).open(file)?;
    // The umask may have taken the owner's own rights.
    made.set_permissions(Permissions::from_mode(MODE))
}

fn examine(file: &Path, access: Access) -> Result<(), FileSystemError> {
    let metadata = fs::metadata(file).map_err(unusable(file))?;
    if let Some(what) = not_a_file(metadata.file_type()) {
        return Err(FileSystemError::NotAFile { file: file.to_owned(), what });
    }
    if metadata.nlink() > 1 {
        return Err(FileSystemError::HardLinks { file: file.to_owned(), links: metadata.nlink() });
    }
    writable(file, access)?;
    if metadata.len() == 0 {
        return Err(FileSystemError::Empty { file: file.to_owned() });
    }
    Ok(())
}

fn not_a_file(kind: fs::FileType) -> Option<&'static str> {
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a directory"),
        _ if kind.is_socket() => Some("a socket"),
        _ if kind.is_fifo() => Some("a pipe"),
        _ => Some("a device"),
    }
}

/// By the rights in effect, which are not the caller's own when the program runs as another user.
fn writable(path: &Path, access: Access) -> Result<(), FileSystemError> {
    accessat(CWD, path, access, AtFlags::EACCESS).map_err(|error| unusable(path)(error.into()))
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> FileSystemError {
    let path = path.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            FileSystemError::NotWritable { path: path.clone(), source }
        }
        _ => FileSystemError::Unusable { path: path.clone(), source },
    }
}

#[cfg(test)]
mod tests;
