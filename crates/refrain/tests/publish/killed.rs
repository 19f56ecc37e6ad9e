//! Killed at every failpoint of a publish and at any moment: the rows are old or new, and in the end as if it had run
//! once.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::warehouse::{MODES, warehouse, well, window, written};
use refrain::Ask;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

/// Long, so that a process reaches the place where it is killed; the test expires it afterwards.
const LEASE: (&str, &str) = ("PROJECT_LEASE", "60000");

fn places(mode: &str) -> Vec<&'static str> {
    let own: &[&str] = match mode {
        "overwrite" => &["publish.deleted"],
        "append" => &["publish.appended"],
        "delta" => &["publish.added"],
        _ => &[],
    };
    let everywhere = [
        "fence-raise.after-commit",
        "publish.staged",
        "publish.before-commit",
        "publish.after-commit",
        "finish.before-commit",
    ];
    everywhere.into_iter().chain(own.iter().copied()).collect()
}

async fn clean(database: &TestDatabase) -> Vec<Vec<String>> {
    let shop = warehouse(TestDatabase::like(database).await).await;
    let mut rows = Vec::new();
    for mode in MODES {
        well(&shop, &window(mode), Ask::Once).await;
        rows.push(written(&shop, mode).await);
    }
    rows
}

async fn killed(shop: &TestProject, mode: &str, place: &str) {
    let failpoints = format!("{place}=return(kill)");
    let mut process = shop.process(&["run", &window(mode)], &[("FAILPOINTS", &failpoints), LEASE]);
    assert_eq!(process.wait().await.signal(), Some(Signal::KILL.as_raw()), "{mode}: {place} was not reached");
    shop.expire().await;
}

#[both_databases]
async fn m4_killed_anywhere_a_window_has_its_old_or_its_new_rows(database: TestDatabase) {
    let expected = clean(&database).await;
    for (mode, expected) in MODES.into_iter().zip(&expected) {
        for place in places(mode) {
            let shop = warehouse(TestDatabase::like(&database).await).await;
            shop.open().await.close().await;
            let before = written(&shop, mode).await;
            killed(&shop, mode, place).await;
            let left = written(&shop, mode).await;
            let is_whole = if place.starts_with("publish.after") || place.starts_with("finish") {
                left == *expected
            } else {
                left == before
            };
            assert!(is_whole, "{mode}, killed at {place}: {left:?}");
            let message = shop.done(&["run", &window(mode)]).await;
            assert!(message.starts_with("did Ran done"), "{mode}, after {place}: {message}");
            assert_eq!(written(&shop, mode).await, *expected, "{mode}, after {place}");
        }
    }
}

#[both_databases]
async fn f4_with_the_reply_to_the_commit_lost_a_publish_happens_once(database: TestDatabase) {
    let expected = clean(&database).await;
    for (mode, expected) in MODES.into_iter().zip(&expected) {
        let shop = warehouse(TestDatabase::like(&database).await).await;
        shop.open().await.close().await;
        let mut process =
            shop.process(&["run", &window(mode)], &[("FAILPOINTS", "publish.reply=1*return(lost)")]);
        let message = String::from_utf8(process.finish().await.stdout).unwrap();
        assert!(message.starts_with("did Ran done 1"), "{mode}: {message}");
        assert_eq!(shop.lines("struck"), ["publish.reply"], "{mode}");
        assert_eq!(written(&shop, mode).await, *expected, "{mode}");
    }
}
