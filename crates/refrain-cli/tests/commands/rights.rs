//! Permissions of processes: the memory of the supervisor, the warning about root, backups.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::Desk;

const PROJECT: (&str, &str) = ("refrain.toml", "[project]\nname = \"shop\"\n");

/// Reads the memory of its parent, the supervisor, with the permissions of an ordinary user.
const LOOK: &str = r#"#!/bin/sh
if [ "$(id -u)" = 0 ] && [ "$1" != dropped ]; then
  exec setpriv --bounding-set=-all --inh-caps=-all "$0" dropped
fi
if cat "/proc/$PPID/environ" >/dev/null 2>&1; then echo it can be read; else echo it is private; fi
"#;

#[test]
#[cfg(target_os = "linux")]
fn s20_a_command_cannot_read_the_memory_of_its_supervisor() {
    let job = "queue = true\ncommand = [\"./look.sh\"]\n";
    let desk = Desk::of(&[PROJECT, ("jobs/look.toml", job), ("look.sh", LOOK)]);
    desk.refrain("run look#1").succeeds(&[]);
    let logged = desk.refrain("logs look#1");
    assert!(logged.stdout.contains("it is private"), "{logged:?}");
}

#[test]
fn s30_a_scheduler_that_runs_as_root_warns_in_one_line() {
    let desk = Desk::of(&[PROJECT, ("jobs/list.toml", "queue = true\ncommand = [\"true\"]\n")]);
    let ticked = desk.refrain("tick");
    let lines = ticked.stderr.lines().filter(|line| line.starts_with("running as root")).count();
    assert_eq!((ticked.code, lines), (Some(0), usize::from(refrain_is_root())), "{ticked:?}");
}

fn refrain_is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn an_unknown_job_is_a_usage_error_even_in_an_empty_store() {
    let desk = Desk::of(&[PROJECT, ("jobs/list.toml", "queue = true\ncommand = [\"true\"]\n")]);
    assert_eq!(desk.refrain("status list").code, Some(0));
    desk.refrain("status bogus").refuses(2, &["bogus", "list"]);
    desk.refrain("runs --job bogus").refuses(2, &["bogus"]);
}

/// Another user has prepared a file and a link under the names that a careless backup would write to.
#[test]
fn a_backup_overwrites_no_existing_file() {
    let desk = Desk::of(&[PROJECT, ("jobs/list.toml", "queue = true\ncommand = [\"true\"]\n")]);
    desk.refrain("run list#1").succeeds(&[]);
    desk.write("copy.db.partial", "of another user");
    fs::set_permissions(desk.file("copy.db.partial"), Permissions::from_mode(0o666)).unwrap();
    desk.write("victim", "not to be overwritten");
    symlink(desk.file("victim"), desk.file("other.db")).unwrap();

    desk.refrain("backup copy.db").succeeds(&[]);
    assert_eq!(desk.refrain("backup other.db").code, Some(2), "a name that is taken is refused");
    assert_eq!(fs::read_to_string(desk.file("copy.db.partial")).unwrap(), "of another user");
    assert_eq!(fs::read_to_string(desk.file("victim")).unwrap(), "not to be overwritten");
    assert_eq!(fs::metadata(desk.file("copy.db")).unwrap().permissions().mode() & 0o777, 0o600);
    let left: Vec<_> = fs::read_dir(desk.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".copy.db")), "{left:?}");
}
