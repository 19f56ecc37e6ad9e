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
        and a new store is made in which nothing has run yet", file = .file.display())]
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
            examine(&canonical)?;
            // A single file can be mounted from elsewhere into a local directory.
            refuse_network(&canonical, &canonical, &kind)?;
        }
    }
    writable(directory, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(canonical)
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

fn examine(file: &Path) -> Result<(), FileSystemError> {
    let metadata = fs::metadata(file).map_err(unusable(file))?;
    if let Some(what) = not_a_file(metadata.file_type()) {
        return Err(FileSystemError::NotAFile { file: file.to_owned(), what });
    }
    if metadata.nlink() > 1 {
        return Err(FileSystemError::HardLinks { file: file.to_owned(), links: metadata.nlink() });
    }
    writable(file, Access::READ_OK | Access::WRITE_OK)?;
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
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{FlockOperation, fcntl_lock};
    use tempfile::{TempDir, tempdir};

    use super::*;

    fn directory() -> (TempDir, PathBuf) {
        let directory = tempdir().unwrap();
        let path = fs::canonicalize(directory.path()).unwrap();
        (directory, path)
    }

    fn mode(file: &Path) -> u32 {
        fs::metadata(file).unwrap().mode() & 0o7777
    }

    /// A file with something in it.
    fn made(file: PathBuf) -> PathBuf {
        fs::write(&file, "rows").unwrap();
        prepare(&file).unwrap()
    }

    fn refusal(file: &Path) -> String {
        prepare(file).unwrap_err().to_string()
    }

    #[test]
    fn f26_network_file_systems_are_known_by_their_numbers() {
        for (magic, name) in [
            (0x6969, "NFS"),
            (0xff53_4d42, "SMB"),
            (0xfe53_4d42, "SMB"),
            (0x6573_5546, "FUSE"),
            (0x0102_1997, "9P"),
            (0x00c3_6400, "Ceph"),
        ] {
            assert_eq!(classify(magic), Kind::Network(name));
        }
        // ext4, XFS, Btrfs, ZFS, tmpfs, overlayfs.
        for magic in [0xef53, 0x5846_5342, 0x9123_683e, 0x2fc1_2fc1, 0x0102_1994, 0x794c_7630] {
            assert_eq!(classify(magic), Kind::Local, "{magic:x}");
        }
    }

    #[test]
    fn f26_a_file_on_a_network_file_system_is_refused_and_not_made() {
        let (_guard, directory) = directory();
        let file = directory.join("refrain.db");
        let error = prepare_on(&file, |_| Ok(Kind::Network("NFS"))).unwrap_err().to_string();
        assert!(error.contains("is on NFS") && error.contains("postgres://"), "{error}");
        assert!(!file.exists());
    }

    #[test]
    fn f26_a_network_file_mounted_into_a_local_directory_is_refused() {
        let (_guard, directory) = directory();
        let file = made(directory.join("refrain.db"));
        let mounted = |path: &Path| Ok(if path == file { Kind::Network("SMB") } else { Kind::Local });
        assert!(matches!(prepare_on(&file, mounted), Err(FileSystemError::Network { kind: "SMB", .. })));
    }

    #[test]
    fn f26_a_file_with_two_names_is_refused_until_it_has_one() {
        let (_guard, directory) = directory();
        let file = made(directory.join("refrain.db"));
        let other = directory.join("other.db");
        fs::hard_link(&file, &other).unwrap();
        for name in [&file, &other] {
            assert!(refusal(name).contains("has 2 names"), "{}", refusal(name));
        }
        fs::remove_file(other).unwrap();
        assert_eq!(prepare(&file).unwrap(), file);
    }

    #[test]
    fn f26_every_way_to_a_file_is_one_path() {
        let (_guard, directory) = directory();
        fs::create_dir(directory.join("data")).unwrap();
        symlink("data", directory.join("by-directory")).unwrap();
        let file = directory.join("data/refrain.db");
        assert_eq!(prepare(&directory.join("by-directory/../by-directory/refrain.db")).unwrap(), file);
        assert!(!file.exists());
        fs::write(&file, "rows").unwrap();
        symlink("data/refrain.db", directory.join("by-file.db")).unwrap();
        for way in ["data/refrain.db", "by-directory/refrain.db", "by-file.db", "./data/./refrain.db"] {
            assert_eq!(prepare(&directory.join(way)).unwrap(), file, "{way}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn f26_looking_at_a_file_again_drops_none_of_its_locks() {
        let (_guard, directory) = directory();
        let file = made(directory.join("refrain.db"));
        let transaction = OpenOptions::new().write(true).open(&file).unwrap();
        fcntl_lock(&transaction, FlockOperation::NonBlockingLockExclusive).unwrap();
        let is_locked = || {
            let held = format!(":{} ", fs::metadata(&file).unwrap().ino());
            fs::read_to_string("/proc/locks").unwrap().lines().any(|lock| lock.contains(&held))
        };
        assert!(is_locked());
        prepare(&file).unwrap();
        assert!(is_locked());
    }

    #[test]
    fn a_new_file_is_its_owners_alone_and_the_mode_of_an_old_one_is_left() {
        let (_guard, directory) = directory();
        let file = directory.join("refrain.db");
        let beside = make_beside(&file, 7).unwrap();
        give_name(&beside, &file).unwrap();
        assert_eq!((mode(&file), beside.exists()), (0o600, false));

        fs::set_permissions(&file, Permissions::from_mode(0o660)).unwrap();
        fs::write(&file, "rows").unwrap();
        prepare(&file).unwrap();
        assert_eq!((mode(&file), fs::read_to_string(&file).unwrap()), (0o660, "rows".to_owned()));
    }

    #[test]
    fn a_file_gets_its_name_only_if_no_other_has_it() {
        let (_guard, directory) = directory();
        let file = made(directory.join("refrain.db"));
        let beside = make_beside(&file, 7).unwrap();
        give_name(&beside, &file).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap(), beside.exists()), ("rows".to_owned(), false));
    }

    #[test]
    fn f23_an_empty_file_is_refused_for_it_may_have_been_a_store() {
        let (_guard, directory) = directory();
        let file = directory.join("refrain.db");
        fs::write(&file, "").unwrap();
        assert!(refusal(&file).contains("is empty"), "{}", refusal(&file));
    }

    #[test]
    fn a_missing_directory_is_named_and_not_made() {
        let (_guard, directory) = directory();
        let error = refusal(&directory.join("no/such/refrain.db"));
        assert!(error.contains(&format!("mkdir -p '{}/no/such'", directory.display())), "{error}");
        assert!(!directory.join("no").exists());
    }

    #[test]
    fn what_is_no_file_is_refused_by_name() {
        let (_guard, directory) = directory();
        let _socket = UnixListener::bind(directory.join("socket")).unwrap();
        symlink("nothing", directory.join("link")).unwrap();
        fs::write(directory.join("file"), "").unwrap();
        for (path, what) in [
            (directory.clone(), "is a directory"),
            (directory.join("socket"), "is a socket"),
            (directory.join("link"), "is a link that leads nowhere"),
            (PathBuf::from("/dev/null"), "is a device"),
            (directory.join("file/refrain.db"), "cannot be used"),
            (PathBuf::from("/"), "is a directory"),
        ] {
            assert!(refusal(&path).contains(what), "{}", refusal(&path));
        }
        assert!(!directory.join("nothing").exists());
    }

    /// Places that refuse even the superuser, who may write any file of mode 0400.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_cannot_be_written_is_refused_with_the_reason() {
        for path in ["/sys/refrain.db", "/proc/sys/kernel/ostype"] {
            let error = prepare(Path::new(path)).unwrap_err();
            assert!(matches!(error, FileSystemError::NotWritable { .. }), "{error}");
            assert!(error.to_string().contains("Give this user the right to"), "{error}");
        }
    }
}
