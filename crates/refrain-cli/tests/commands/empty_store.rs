//! A store truncated to nothing is not silently created again: everything in it would be done
//! twice.

use std::fs;

use crate::support::Desk;

#[test]
fn f23_every_command_refuses_a_truncated_store() {
    let desk = Desk::of(&[
        ("refrain.toml", "[project]\nname = \"shop\"\n"),
        ("jobs/list.toml", "queue = true\ncommand = [\"./once.sh\"]\n"),
        ("once.sh", "#!/bin/sh\necho done >> executed\n"),
    ]);
    desk.refrain("run list#1").succeeds(&[]);
    let folder = desk.file(".refrain");
    for entry in fs::read_dir(&folder).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    fs::write(folder.join("refrain.db"), "").unwrap();
    for line in ["status", "fsck", "runs", "show list#1", "run list#1", "tick", "enqueue list --key 2"] {
        desk.refrain(line).refuses(2, &["refrain.db is empty", "Restore a backup", "remove the file"]);
    }
    assert_eq!(fs::read_to_string(desk.file("executed")).unwrap(), "done\n");
    assert_eq!(fs::read(folder.join("refrain.db")).unwrap(), b"");
}
