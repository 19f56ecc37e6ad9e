//! SQLite files that are not stores, are damaged, or are read-only.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::children::unprivileged;
use crate::support::{CommandOutput, Desk, PROGRAM, output_of};

/// A store with one done run, all of it in its main file.
fn with_a_run() -> Desk {
    let desk = Desk::sqlite();
    desk.refrain("run noop#once-and-only").succeeds(&[": done"]);
    desk.refrain("migrate").succeeds(&[]);
    assert!(!desk.file("store.db-wal").exists());
    desk
}

fn change(desk: &Desk, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(desk.file("store.db")).unwrap();
    change(&mut bytes);
    fs::write(desk.file("store.db"), bytes).unwrap();
}

#[test]
fn a_damaged_file_is_reported_as_damaged() {
    let desk = with_a_run();
    change(&desk, |bytes| bytes[100..4096].fill(0xff));
    for command in ["migrate", "fsck", "run noop#2", "tick", "serve"] {
        desk.refrain(command).refuses(1, &["the store is damaged", "restore a backup"]);
    }
}

#[test]
fn a_truncated_file_is_reported_as_truncated() {
    let desk = with_a_run();
    change(&desk, |bytes| bytes.truncate(bytes.len() / 2));
    desk.refrain("fsck").refuses(1, &["the store is damaged"]);
}

#[test]
fn fsck_finds_damage_that_no_statement_has_met() {
    let desk = with_a_run();
    change(&desk, |bytes| {
        let key = b"once-and-only";
        let at = bytes.windows(key.len()).position(|window| window == key).unwrap();
        bytes[at] = b'O';
    });
    let found = desk.refrain("fsck");
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.stdout.contains("the file is damaged") && found.stdout.contains("1 finding"), "{found:?}");
}

#[test]
fn a_file_of_another_program_is_left_unchanged() {
    let desk = Desk::sqlite();
    let letter = "Dear Sir or Madam, this is not a database at all.\n".repeat(100);
    fs::write(desk.file("store.db"), &letter).unwrap();
    for command in ["migrate", "fsck", "run noop#1", "tick", "serve"] {
        desk.refrain(command).refuses(1, &["is not a SQLite file", "check the URL"]);
    }
    assert_eq!(fs::read_to_string(desk.file("store.db")).unwrap(), letter);
}

#[test]
fn a_directory_named_by_the_user_is_not_created() {
    let desk = Desk::at("sqlite:no/such/store.db");
    desk.refrain("run noop#1").refuses(2, &["its directory is missing", "mkdir -p 'no/such'"]);
    assert!(!desk.file("no").exists());
    desk.refrain("fsck").refuses(2, &["there is no store at sqlite:no/such/store.db"]);
}

#[test]
fn the_default_directory_is_created_with_permissions_for_its_owner_only() {
    let desk = Desk::new();
    let made = desk.refrain("run noop#1");
    made.succeeds(&[": done"]);
    assert!(made.stderr.contains(".refrain"), "{made:?}");
    assert_eq!(fs::metadata(desk.file(".refrain")).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!desk.refrain("run noop#2").stderr.contains("made"));

    let desk = Desk::new();
    fs::write(desk.file(".refrain"), "in the way").unwrap();
    desk.refrain("run noop#1").refuses(2, &[".refrain"]);
}

#[test]
fn fsck_creates_no_store() {
    let desk = Desk::sqlite();
    let files = || fs::read_dir(desk.path()).unwrap().count();
    let before = files();
    desk.refrain("fsck").refuses(2, &["there is no store at sqlite:store.db"]);
    assert_eq!(files(), before);
}

/// Runs a command as a user who is subject to permissions, with these permissions of the store's file and directory.
fn restricted(desk: &Desk, file: u32, directory: u32) -> CommandOutput {
    let program = desk.file("refrain");
    if !program.exists() {
        fs::copy(PROGRAM, &program).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(["run", "noop#2"]).env("REFRAIN_STORE", "sqlite:store.db");
    unprivileged(&mut command, desk.path());
    let set = |path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(desk.file("store.db"), file);
    set(desk.path().to_owned(), directory);
    let output = output_of(&mut command);
    set(desk.path().to_owned(), 0o700);
    output
}

#[test]
fn a_read_only_store_is_refused_until_it_is_writable() {
    let desk = with_a_run();
    restricted(&desk, 0o400, 0o700).refuses(2, &["store.db cannot be written", "Give this user the right"]);
    restricted(&desk, 0o600, 0o500).refuses(2, &["cannot be written", "Give this user the right"]);
    restricted(&desk, 0o600, 0o700).succeeds(&["noop#2: done (attempt 1)"]);
    desk.refrain("fsck").succeeds(&["0 findings"]);
}
