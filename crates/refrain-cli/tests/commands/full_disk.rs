//! A full disk: no partial write, and the same command works once there is room.
//!
//! The disk is a small in-memory one that only the commands of one script see. Where it cannot be
//! mounted, files with a size limit stand in for it.

use std::process::Command;

use crate::support::{Desk, PROGRAM, output_of};

const MOUNT: &str = "mount -t tmpfs -o size=1m tmpfs /mnt && cd /mnt";

/// The exit code of each command, in the order of the script.
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

/// A process that serves meets a full disk; the same process continues when there is room.
const SERVED: &str = r#"
set -u
say() { echo "$1"; shift; "$@" >out 2>&1; echo "code $?"; }
mkdir -p "$LOGS"
until_line() { while ! grep -q "$1" "$LOGS/serve" 2>/dev/null; do kill -0 $serve || exit 1; sleep 0.1; done; }
say before "$REFRAIN" run noop#1
"$REFRAIN" serve --listen none 2>"$LOGS/serve" >"$LOGS/served" &
serve=$!
until_line serving
fill
key=1
while "$REFRAIN" enqueue noop --key "full-$key" >/dev/null 2>&1; do key=$((key + 1)); done
until_line "$FULL"
echo full
make_room
say queued "$REFRAIN" enqueue noop --key after
until "$REFRAIN" --json show noop#after 2>/dev/null | grep -q '"state":"done"'; do kill -0 $serve || exit 1; sleep 0.1; done
echo done
kill -TERM $serve
wait $serve
echo "code $?"
cat "$LOGS/serve" >&2
say clean "$REFRAIN" fsck
"#;

fn script(before: &str, story: &str) -> String {
    before.to_owned() + &story.replace(">out", ">\"$LOGS/out\"").replace("cat out", "cat \"$LOGS/out\"")
}

#[test]
fn a_full_disk_stops_a_command_and_leaves_the_store_sound() {
    let desk = Desk::new();
    let (mut shell, may_mount) = on_a_small_disk(&desk, STORY);
    let output = output_of(&mut shell);
    let expected = "before\ncode 0\nquiet\ncode 0\nfull\ncode 75\nfull\ncode 75\nafter\ncode 0\nagain\ncode 0\n\
                    before-still\ncode 0\nclean\ncode 0\n";
    assert_eq!(output.stdout, expected, "{}", output.stderr);
    if may_mount {
        assert!(output.stderr.contains("there is no room left for the store"), "{}", output.stderr);
    }
    assert!(output.stderr.contains("noop#2: done (attempt 1)"), "{}", output.stderr);
    assert!(output.stderr.contains("noop#2: done already"), "{}", output.stderr);
    assert!(output.stderr.contains("0 findings"), "{}", output.stderr);
}

#[test]
fn f24_serve_survives_a_disk_that_is_full_for_a_while() {
    let desk = Desk::new();
    let (mut shell, _) = on_a_small_disk(&desk, SERVED);
    let output = output_of(&mut shell);
    let expected = "before\ncode 0\nfull\nqueued\ncode 0\ndone\ncode 0\nclean\ncode 0\n";
    assert_eq!(output.stdout, expected, "{}", output.stderr);
}

/// A shell that runs the script on a disk that can be filled; and whether it is a real disk.
fn on_a_small_disk(desk: &Desk, story: &str) -> (Command, bool) {
    // Root needs no user namespace, and inside one could not enter a directory of another user.
    let may_mount = |how: &&str| {
        let tried = Command::new("unshare").args([how, "sh", "-c", MOUNT]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let how = ["-m", "-rm"].into_iter().find(may_mount);
    let may_mount = how.is_some();
    let script = if may_mount {
        let fill = "FULL='no room left'\nfill() { dd if=/dev/zero of=filler bs=1k 2>/dev/null; }\nmake_room() { rm filler; }\n";
        script(&format!("{MOUNT}\n{fill}"), story)
    } else {
        // No file may grow beyond 64 blocks, neither of this shell's commands nor of those it has started; the signal
        // that would end the process is ignored.
        let fill = "FULL='disk I/O error'\ntrap '' XFSZ\nlimit() { ulimit -S -f $1; \
                    [ -z \"${serve-}\" ] || prlimit --pid $serve --fsize=$2:; }\n\
                    fill() { limit 64 32768; }\nmake_room() { limit unlimited unlimited; }\n";
        script(fill, story)
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
    (shell, may_mount)
}
