//! A disk without room: nothing is half-written, and the same command works when there is room again.
//!
//! The disk is a small one in memory that only the commands of one script see. Where such a thing may not be mounted,
//! files that may not grow stand in for it.

use std::process::Command;

use crate::support::{Desk, PROGRAM, said};

const MOUNT: &str = "mount -t tmpfs -o size=1m tmpfs /mnt && cd /mnt";

/// Each command's code, in the order of the script.
const STORY: &str = r#"
set -u
say() { echo "$1"; shift; "$@" >out 2>&1; echo "code $?"; cat out >&2; }
mkdir -p "$LOGS"
say before "$REFRAIN" run noop#1
say quiet "$REFRAIN" migrate
fill
say full "$REFRAIN" run noop#2
say full "$REFRAIN" tick
make_room
say after "$REFRAIN" run noop#2
say again "$REFRAIN" run noop#2
say before-still "$REFRAIN" run noop#1
say clean "$REFRAIN" fsck
"#;

fn story(before: &str) -> String {
    before.to_owned() + &STORY.replace(">out", ">\"$LOGS/out\"").replace("cat out", "cat \"$LOGS/out\"")
}

#[test]
fn a_full_disk_stops_a_command_and_leaves_the_store_sound() {
    let desk = Desk::new();
    // Root needs no user namespace, and in one would not be let into a directory of somebody else.
    let may_mount = |how: &&str| {
        let tried = Command::new("unshare").args([how, "sh", "-c", MOUNT]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let how = ["-m", "-rm"].into_iter().find(may_mount);
    let may_mount = how.is_some();
    let script = if may_mount {
        let fill = "fill() { dd if=/dev/zero of=filler bs=1k 2>/dev/null; }\nmake_room() { rm filler; }\n";
        story(&format!("{MOUNT}\n{fill}"))
    } else {
        // No file may grow beyond 64 blocks; the signal that would end the process is not wanted.
        let fill = "trap '' XFSZ\nfill() { ulimit -S -f 64; }\nmake_room() { ulimit -S -f unlimited; }\n";
        story(fill)
    };
    let mut shell = if may_mount { Command::new("unshare") } else { Command::new("sh") };
    if let Some(how) = how {
        shell.args([how, "sh"]);
    }
    shell.args(["-c", &script]).current_dir(desk.path());
    shell
        .env("REFRAIN", PROGRAM)
        .env("REFRAIN_PROJECT", desk.path())
        .env("REFRAIN_STORE", "sqlite:store.db")
        .env("LOGS", desk.path().join("logs"));
    let told = said(&mut shell);
    let expected = "before\ncode 0\nquiet\ncode 0\nfull\ncode 75\nfull\ncode 75\nafter\ncode 0\nagain\ncode 0\n\
                    before-still\ncode 0\nclean\ncode 0\n";
    assert_eq!(told.stdout, expected, "{}", told.stderr);
    if may_mount {
        assert!(told.stderr.contains("there is no room left for the store"), "{}", told.stderr);
    }
    assert!(told.stderr.contains("noop#2: done (attempt 1)"), "{}", told.stderr);
    assert!(told.stderr.contains("noop#2: done already"), "{}", told.stderr);
    assert!(told.stderr.contains("0 findings"), "{}", told.stderr);
}
