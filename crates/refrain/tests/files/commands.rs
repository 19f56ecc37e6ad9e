//! Files of a command: they become visible together when the command has succeeded.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::export::{VISIBLE, WHEN, WINDOW, is_tidy, names};
use crate::killed::{LEASE, mended};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

/// A job whose command is this script.
fn writes(shop: &TestProject, script: &str, more: &str) {
    shop.program("write.sh", &format!("#!/bin/sh\nset -eu\n{script}\n"));
    let publish = "[publish]\npath = \"out/dt={ds}\"\n";
    let when = WHEN.replace("attempts = 50", "attempts = 1");
    shop.job("export", &format!("{when}{more}command = [\"./write.sh\"]\n{publish}"));
}

const TWO: &str = "cd \"$REFRAIN_OUTPUT\"; mkdir sub; cat \"$REFRAIN_PROJECT/version\" > a; cp a sub/b";

async fn shop(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    shop.write("version", "1");
    writes(&shop, TWO, "");
    shop.open().await.close().await;
    shop
}

fn seen(shop: &TestProject) -> Option<(String, String)> {
    // The link is resolved once, so that both files are of one version.
    let directory = fs::canonicalize(shop.root().join(VISIBLE)).ok()?;
    let read = |name| fs::read_to_string(directory.join(name)).ok();
    read("a").zip(read("sub/b"))
}

fn both(version: &str) -> (String, String) {
    (version.to_owned(), version.to_owned())
}

/// Runs it once more; returns its message.
async fn again(shop: &TestProject) -> String {
    shop.done_with(&["run", WINDOW, "--again"], &[LEASE]).await
}

#[both_databases]
async fn files_of_a_command_are_published_with_their_directories(database: TestDatabase) {
    let shop = shop(database).await;
    mended(&shop).await;
    assert_eq!(seen(&shop).unwrap(), both("1"));
    shop.write("version", "2");
    mended(&shop).await;
    assert_eq!(seen(&shop).unwrap(), both("2"));
    assert!(is_tidy(&shop));
}

#[both_databases]
async fn a_failed_command_publishes_nothing(database: TestDatabase) {
    let shop = shop(database).await;
    mended(&shop).await;
    writes(&shop, "echo half > \"$REFRAIN_OUTPUT/a\"; exit 3", "");
    let message = again(&shop).await;
    assert!(message.contains("exit code 3"), "{message}");
    assert_eq!(seen(&shop).unwrap(), both("1"));
    assert!(is_tidy(&shop));
}

#[both_databases]
async fn a_command_that_times_out_publishes_nothing(database: TestDatabase) {
    let shop = shop(database).await;
    mended(&shop).await;
    writes(&shop, "echo half > \"$REFRAIN_OUTPUT/a\"; exec tail -f /dev/null", "timeout = \"1s\"\n");
    let message = again(&shop).await;
    assert!(message.contains("1s"), "{message}");
    assert_eq!(seen(&shop).unwrap(), both("1"));
    assert!(is_tidy(&shop));
}

#[both_databases]
async fn only_files_and_directories_are_published(database: TestDatabase) {
    let shop = shop(database).await;
    mended(&shop).await;
    for (script, expected) in [
        ("mkdir \"$REFRAIN_OUTPUT/sub\"; ln -s /etc/passwd \"$REFRAIN_OUTPUT/sub/x\"", "is a symbolic link"),
        (
            "echo 1 > \"$REFRAIN_OUTPUT/x\"; ln \"$REFRAIN_OUTPUT/x\" \"$REFRAIN_OUTPUT/y\"",
            "has a second hard link",
        ),
        ("mkfifo \"$REFRAIN_OUTPUT/x\"", "is neither a file nor a directory"),
        ("rmdir \"$REFRAIN_OUTPUT\"; ln -s /etc \"$REFRAIN_OUTPUT\"", "is no longer a directory"),
    ] {
        writes(&shop, script, "");
        let message = again(&shop).await;
        assert!(message.contains(expected), "{message}");
        assert_eq!(seen(&shop).unwrap(), both("1"));
        assert!(is_tidy(&shop));
    }
}

#[both_databases]
async fn a_command_that_writes_nothing_publishes_an_empty_directory(database: TestDatabase) {
    let shop = shop(database).await;
    mended(&shop).await;
    writes(&shop, "true", "");
    mended(&shop).await;
    assert_eq!(names(shop.root().join(VISIBLE)), [""; 0]);
    assert!(is_tidy(&shop));
}

#[both_databases]
async fn a_command_killed_anywhere_shows_one_whole_version(database: TestDatabase) {
    for (place, version) in [("files.written", "1"), ("files.checked", "1"), ("files.swapped", "2")] {
        let shop = shop(TestDatabase::like(&database).await).await;
        mended(&shop).await;
        shop.write("version", "2");
        let failpoints = format!("{place}=return(kill)");
        let mut process = shop.process(&["run", WINDOW, "--again"], &[("FAILPOINTS", &failpoints), LEASE]);
        assert_eq!(process.wait().await.signal(), Some(Signal::KILL.as_raw()), "{place} was not reached");
        shop.expire().await;
        assert_eq!(seen(&shop).unwrap(), both(version), "{place}");
        mended(&shop).await;
        assert_eq!(seen(&shop).unwrap(), both("2"), "{place}");
        assert!(is_tidy(&shop), "{place}");
    }
}
