//! Files, links, pipes and places of every kind, and the error for each.

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

/// A file that is not empty.
fn made(file: &Path) -> PathBuf {
    fs::write(file, "rows").unwrap();
    prepare(file).unwrap()
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
    let file = made(&directory.join("refrain.db"));
    let mounted = |path: &Path| Ok(if path == file { Kind::Network("SMB") } else { Kind::Local });
    assert!(matches!(prepare_on(&file, mounted), Err(FileSystemError::Network { kind: "SMB", .. })));
}

#[test]
fn f26_a_file_with_two_names_is_refused_until_it_has_one() {
    let (_guard, directory) = directory();
    let file = made(&directory.join("refrain.db"));
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
    let file = made(&directory.join("refrain.db"));
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
fn a_new_file_is_readable_by_its_owner_and_an_old_one_keeps_its_mode() {
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
fn a_file_is_renamed_only_if_the_name_is_free() {
    let (_guard, directory) = directory();
    let file = made(&directory.join("refrain.db"));
    let beside = make_beside(&file, 7).unwrap();
    give_name(&beside, &file).unwrap();
    assert_eq!((fs::read_to_string(&file).unwrap(), beside.exists()), ("rows".to_owned(), false));
}

#[test]
fn f23_an_empty_file_is_refused_because_it_may_have_been_a_store() {
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
fn a_path_that_is_not_a_file_is_refused_with_its_kind() {
    let (_guard, directory) = directory();
    let _socket = UnixListener::bind(directory.join("socket")).unwrap();
    symlink("nothing", directory.join("link")).unwrap();
    fs::write(directory.join("file"), "").unwrap();
    for (path, what) in [
        (directory.clone(), "is a directory"),
        (directory.join("socket"), "is a socket"),
        (directory.join("link"), "is a broken link"),
        (PathBuf::from("/dev/null"), "is a device"),
        (directory.join("file/refrain.db"), "cannot be used"),
        (PathBuf::from("/"), "is a directory"),
    ] {
        assert!(refusal(&path).contains(what), "{}", refusal(&path));
    }
    assert!(!directory.join("nothing").exists());
}

/// Paths that refuse even root, who may write any file of mode 0400.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_cannot_be_written_is_refused_with_the_reason() {
    for path in ["/sys/refrain.db", "/proc/sys/kernel/ostype"] {
        let error = prepare(Path::new(path)).and_then(|file| make_beside(&file, 7)).unwrap_err();
        assert!(matches!(error, FileSystemError::NotWritable { .. }), "{error}");
        assert!(error.to_string().contains("Give this user the right to"), "{error}");
    }
}
