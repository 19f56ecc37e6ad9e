//! Killed at any moment: readers see all of the old version or all of the new one.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use refrain::core::{Random as _, SeededRandom};
use rustix::process::Signal;
use tokio::time::timeout;

use crate::export::{VISIBLE, WINDOW, is_tidy, seen, stock, stocked, versioned};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::TestProject;

/// Long, so that a process reaches the place where it is killed on a slow machine. A killed process is taken over
/// from at once; the lease of a stopped one is expired by the test.
pub(crate) const LEASE: (&str, &str) = ("PROJECT_LEASE", "60000");
const ROUNDS: u32 = 20;
/// Longer than the take-over and the work.
const MOMENTS: u64 = 1_500;

/// Repeats it until it is done, whatever happened to earlier attempts.
pub(crate) async fn mended(shop: &TestProject) {
    mended_with(shop, LEASE).await;
}

pub(crate) async fn mended_with(shop: &TestProject, lease: (&str, &str)) {
    eventually("it is done", DEADLINE, async || {
        shop.done_with(&["run", WINDOW, "--again"], &[lease])
            .await
            .lines()
            .any(|line| line.contains(" done "))
    })
    .await;
}

/// Reads the published version again and again until it is told to stop. Returns every version that it has seen.
fn reader(shop: &TestProject) -> (Arc<AtomicBool>, std::thread::JoinHandle<BTreeSet<String>>) {
    let (is_over, path) = (Arc::new(AtomicBool::new(false)), shop.root().join(VISIBLE).join("part-0.csv"));
    let text = Arc::clone(&is_over);
    let reading = std::thread::spawn(move || {
        let mut seen = BTreeSet::new();
        while !text.load(Ordering::Relaxed) {
            // The directory may be replaced between resolving the name and reading the file; a retry finds the new one.
            seen.extend(std::fs::read_to_string(&path).ok());
        }
        seen
    });
    (is_over, reading)
}

#[both_databases]
async fn f1_killed_before_the_link_moves_readers_see_the_old_version(database: TestDatabase) {
    for place in ["files.written", "files.checked"] {
        let shop = versioned(TestDatabase::like(&database).await).await;
        stock(&shop, 1).await;
        mended(&shop).await;
        stock(&shop, 2).await;
        killed(&shop, place).await;
        assert_eq!(seen(&shop), Some(stocked(1)), "{place}");
        mended(&shop).await;
        assert_eq!(seen(&shop), Some(stocked(2)), "{place}");
        assert!(is_tidy(&shop), "{place}");
    }
}

#[both_databases]
async fn f2_killed_after_the_link_moved_readers_see_the_new_version(database: TestDatabase) {
    for place in ["files.swapped", "files.before-commit", "files.after-commit", "finish.before-commit"] {
        let shop = versioned(TestDatabase::like(&database).await).await;
        stock(&shop, 1).await;
        mended(&shop).await;
        stock(&shop, 2).await;
        killed(&shop, place).await;
        assert_eq!(seen(&shop), Some(stocked(2)), "{place}");
        mended(&shop).await;
        assert_eq!(seen(&shop), Some(stocked(2)), "{place}");
        assert!(is_tidy(&shop), "{place}");
    }
}

#[both_databases]
async fn a_version_that_readers_see_stays_when_recording_it_fails(database: TestDatabase) {
    let shop = versioned(database).await;
    stock(&shop, 1).await;
    mended(&shop).await;
    stock(&shop, 2).await;
    let hide =
        ("alter table refrain_publishes rename to hidden", "alter table refrain.publishes rename to hidden");
    shop.at_the_store(shop.either(hide.0, hide.1)).await;
    shop.process(&["run", WINDOW, "--again"], &[LEASE]).finish().await;
    assert_eq!(seen(&shop), Some(stocked(2)), "the link is moved, and its directory is there");
    let restore =
        ("alter table hidden rename to refrain_publishes", "alter table refrain.hidden rename to publishes");
    shop.at_the_store(shop.either(restore.0, restore.1)).await;
    mended(&shop).await;
    assert_eq!(seen(&shop), Some(stocked(2)));
    assert!(is_tidy(&shop));
}

#[both_databases]
async fn f1_killed_at_random_readers_see_only_whole_versions(database: TestDatabase) {
    let shop = versioned(database).await;
    stock(&shop, 0).await;
    mended(&shop).await;
    let (is_over, reading) = reader(&shop);
    let mut random = SeededRandom::new(6);
    for version in 1..=ROUNDS {
        stock(&shop, version).await;
        let mut process = shop.process(&["run", WINDOW, "--again"], &[LEASE]);
        let moment = Duration::from_millis(random.next_u64() % MOMENTS);
        // It may have ended before the kill.
        let _ = timeout(moment, process.line_with("did ")).await;
        process.signal(Signal::KILL);
        process.wait().await;
    }
    mended(&shop).await;
    is_over.store(true, Ordering::Relaxed);
    let expected: BTreeSet<String> = (0..=ROUNDS).map(stocked).collect();
    let others: Vec<String> = reading.join().unwrap().difference(&expected).cloned().collect();
    assert_eq!(others, Vec::<String>::new(), "all of one version, always");
    assert_eq!(seen(&shop), Some(stocked(ROUNDS)));
    assert!(is_tidy(&shop));
}

async fn killed(shop: &TestProject, place: &str) {
    let failpoints = format!("{place}=return(kill)");
    let mut process = shop.process(&["run", WINDOW, "--again"], &[("FAILPOINTS", &failpoints), LEASE]);
    assert_eq!(process.wait().await.signal(), Some(Signal::KILL.as_raw()), "{place} was not reached");
    shop.expire().await;
}
