//! Checks a SQLite file before it is opened.
//!
//! SQLite is as safe as the locks below it. On a network file system locks are unreliable, and SQLite's log
//! is shared memory that two machines do not share; and two processes that open one file by two names make
//! two logs. Both end in a damaged database, so they are refused here, and a file has one path: the canonical
//! one.
//!
//! An existing file is inspected with `stat`, never opened: when a process closes *any* handle of a file, the
//! system drops *all* locks that the process holds on it, and another part of this process may be in a
//! transaction.
//!
//! A new file is written under another name and renamed when it is complete (`sqlite.rs`). So an empty file
//! is never a store that is being made: it was truncated, and starting over in it would forget finished work.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, RenameFlags, accessat, renameat_with};

/// Only the owner can read the store, which has the payloads and output of jobs.
const MODE: u32 = 0o600;

/// Why a file cannot hold a SQLite database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileSystemError {
    /// The directory does not exist. Refrain does not make it: a mistyped path would make a second, empty
    /// store.
    #[error("{file} cannot be made: its directory is missing. Make the directory: mkdir -p '{directory}'",
        file = .file.display(), directory = .directory.display())]
    DirectoryMissing {
        /// The requested file.
        file: PathBuf,
        /// Its directory.
        directory: PathBuf,
    },
    /// The file is on a file system whose locks are unreliable.
    #[error("{file} is on {kind}, where SQLite's locks do not hold and the database would be damaged. \
        Put it on a local disk, or use a postgres:// address", file = .file.display())]
    Network {
        /// The requested file.
        file: PathBuf,
        /// The name of the file system.
        kind: &'static str,
    },
    /// The file has several names (hard links). Two processes that use different names would make two logs.
    #[error("{file} has {links} names (hard links), and SQLite would keep a log for each. \
        Leave it one: find the others with find -samefile, or copy the file", file = .file.display())]
    HardLinks {
        /// The requested file.
        file: PathBuf,
        /// How many names it has.
        links: u64,
    },
    /// The path is a directory, a device, a socket, a pipe, or a broken link.
    #[error("{file} is {what}, not a file. Name a file, or a path at which there is nothing yet",
        file = .file.display())]
    NotAFile {
        /// The requested path.
        file: PathBuf,
        /// What the path is instead.
        what: &'static str,
    },
    /// The file exists and is empty.
    #[error("{file} is empty: it is not a store, or it was cut off. Restore a backup; or remove the file, \
        and a new store is made in which nothing has run yet. A program that opens the file by itself makes \
        its own tables first", file = .file.display())]
    Empty {
        /// The requested file.
        file: PathBuf,
    },
    /// The file or its directory cannot be written.
    #[error("{path} cannot be written ({source}): SQLite writes the file and makes others beside it. \
        Give this user the right to, or choose another place", path = .path.display())]
    NotWritable {
        /// The file or the directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file to read does not exist.
    #[error("{} does not exist", .file.display())]
    Missing {
        /// The requested file.
        file: PathBuf,
    },
    /// Reading the file would make a new index and leave it behind.
    #[error("{file} has a log ({file}-wal) whose index ({file}-shm) is missing, as when only some of the files were copied: \
        reading it would make an index, and this command writes nothing. Open the file once with a program that may write it: \
        for a store, refrain migrate; for another database, sqlite3 FILE .tables", file = .file.display())]
    NoLogIndex {
        /// The requested file.
        file: PathBuf,
    },
    /// Any other error of the system.
    #[error("{path} cannot be used: {source}", path = .path.display())]
    Unusable {
        /// The file or the directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Whether the locks of a file system work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A local file system: they work.
    Local,
    /// A network file system, or an unknown one: they may not work. With the name of the file system.
    Network(&'static str),
}

/// Classifies by the number that `statfs` returns. FUSE carries sshfs and a hundred others, and its local
/// file systems look the same; cluster file systems have locks but no memory that two machines share.
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

/// The canonical path of a file, which may exist or not; if it does not exist, it may be made.
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

/// The canonical path of an existing file that is only read.
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

/// Makes a new, empty file in the same directory, readable only by its owner.
pub(crate) fn make_beside(file: &Path, number: u64) -> Result<PathBuf, FileSystemError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(format!(".{name}.{number:016x}.new"));
    make(&beside).map_err(unusable(&beside))?;
    Ok(beside)
}

/// Renames a file unless a file of the new name exists.
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
        return Err(FileSystemError::NotAFile { file: file.to_owned(), what: "a broken link" });
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
    requested: &Path,
    kind: impl Fn(&Path) -> io::Result<Kind>,
) -> Result<(), FileSystemError> {
    match kind(requested).map_err(unusable(requested))? {
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

/// On other systems the numbers have no meaning or another one.
#[cfg(not(target_os = "linux"))]
fn kind(_: &Path) -> io::Result<Kind> {
    Ok(Kind::Local)
}

fn make(file: &Path) -> io::Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(MODE).open(file)?;
    // The umask may have removed the owner's own permissions.
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

/// Uses the effective permissions: the program may run as another user (setuid).
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
