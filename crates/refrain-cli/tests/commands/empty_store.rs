//! A store that was cut off to nothing is not begun anew in silence: what was done would be done again.

use std::fs;

use crate::support::Desk;

#[test]
fn f23_a_store_that_was_cut_off_is_refused_by_every_command_and_nothing_is_done_again() {
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
