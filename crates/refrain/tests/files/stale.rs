//! An attempt is stopped and continues after a newer one has begun: the files of the newer one
//! stay.

use std::fs::{File, TryLockError};

use jiff::Timestamp;
use rustix::process::Signal;

use crate::export::{WINDOW, is_tidy, seen, stock, stocked, versioned};
use crate::killed::{LEASE, mended, mended_with};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::TestProject;

/// A stopped worker is looked at twice, a third of this lease apart, before its runs are taken over.
const TAKES_OVER: (&str, &str) = ("PROJECT_LEASE", "3000");

/// The lease also expires by the clock of the stopped worker.
const RUNS_OUT: (&str, &str) = ("PROJECT_LEASE", "4000");

/// A process that has read version 2 and is stopped, while the source has version 3 already.
async fn stopped(shop: &TestProject, place: &str, weakened: &str) -> ChildProcess {
    stock(shop, 1).await;
    mended(shop).await;
    stock(shop, 2).await;
    let failpoints = format!("{place}=1*return(stop);{weakened}");
    let older = shop.process(&["run", WINDOW, "--again"], &[("FAILPOINTS", &failpoints), LEASE]);
    eventually("the older one has stopped", DEADLINE, async || shop.lines("struck") == [place]).await;
    shop.expire().await;
    stock(shop, 3).await;
    older
}

/// On SQLite a worker that takes over ends its predecessor, which might have the file locked.
async fn goes_on(shop: &TestProject, older: &mut ChildProcess) {
    if !shop.database.is_sqlite() {
        older.signal(Signal::CONT);
    }
    older.wait().await;
}

#[both_databases]
async fn f11_an_attempt_stopped_before_its_last_check_moves_no_link(database: TestDatabase) {
    let shop = versioned(database).await;
    let mut older = stopped(&shop, "files.written", "").await;
    mended_with(&shop, TAKES_OVER).await;
    assert_eq!(seen(&shop), Some(stocked(3)));
    goes_on(&shop, &mut older).await;
    assert_eq!(seen(&shop), Some(stocked(3)));
    assert!(is_tidy(&shop));
}

#[both_databases]
async fn f11_an_attempt_stopped_after_its_last_check_holds_the_lock(database: TestDatabase) {
    let shop = versioned(database).await;
    let mut older = stopped(&shop, "files.checked", "").await;
    let lock = File::open(shop.root().join("out/.refrain.lock")).unwrap();
    assert!(
        matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
        "moving a link needs the lock of the directory"
    );
    let mut newer = shop.process(&["run", WINDOW, "--again"], &[TAKES_OVER]);
    if !shop.database.is_sqlite() {
        let attempts = "select count(*) from refrain_fences where attempt > 2";
        eventually("the newer one has raised the fence", DEADLINE, async || {
            shop.database.store_numbers(attempts).await == [1]
        })
        .await;
        assert_eq!(seen(&shop), Some(stocked(1)));
    }
    goes_on(&shop, &mut older).await;
    assert!(newer.wait().await.success());
    mended_with(&shop, TAKES_OVER).await;
    assert_eq!(seen(&shop), Some(stocked(3)));
    assert!(is_tidy(&shop));
}

#[both_databases]
async fn f11_an_attempt_with_an_expired_lease_moves_no_link(database: TestDatabase) {
    let shop = versioned(database).await;
    stock(&shop, 1).await;
    mended(&shop).await;
    stock(&shop, 2).await;
    let stops = ("FAILPOINTS", "files.fenced=2*return(stop)");
    let mut worker = shop.process(&["run", WINDOW, "--again"], &[stops, RUNS_OUT]);
    eventually("it has stopped", DEADLINE, async || shop.lines("struck").len() == 1).await;
    let refrain = shop.open().await;
    eventually("its lease is over", DEADLINE, async || {
        refrain.workers().await.unwrap().iter().all(|one| !one.is_alive(Timestamp::now()))
    })
    .await;
    refrain.close().await;
    worker.signal(Signal::CONT);
    eventually("it has ended, or its next attempt has come as far", DEADLINE, async || {
        worker.has_ended() || shop.lines("struck").len() == 2
    })
    .await;
    assert_eq!(seen(&shop), Some(stocked(1)));
    worker.signal(Signal::KILL);
    worker.wait().await;
    shop.expire().await;
    mended(&shop).await;
    assert_eq!(seen(&shop), Some(stocked(2)));
    assert!(is_tidy(&shop));
}

/// On PostgreSQL only, where a test can read the store beside the shop.
#[tokio::test]
async fn f11_an_older_attempt_records_no_version_after_a_newer_one() {
    let shop = versioned(TestDatabase::postgres().await).await;
    let mut older = stopped(&shop, "files.checked", "").await;
    // As the newer attempt does, which waits for the lock then.
    shop.at_the_store("update refrain_fences set attempt = attempt + 1").await;
    goes_on(&shop, &mut older).await;
    assert_eq!(seen(&shop), Some(stocked(2)));
    assert_eq!(shop.rows("select cast(attempt as text) from refrain.publishes").await, ["1"]);
}

#[tokio::test]
async fn without_the_last_check_old_files_reappear() {
    let shop = versioned(TestDatabase::postgres().await).await;
    let mut older = stopped(&shop, "files.written", "files.unfenced=return(weak)").await;
    mended_with(&shop, TAKES_OVER).await;
    goes_on(&shop, &mut older).await;
    assert_eq!(seen(&shop), None, "the link leads to what the newer one has taken away");
}

#[tokio::test]
async fn f11_without_the_lock_an_older_attempt_moves_the_link_last() {
    let shop = versioned(TestDatabase::postgres().await).await;
    let mut older = stopped(&shop, "files.checked", "files.unlocked=return(weak)").await;
    mended_with(&shop, TAKES_OVER).await;
    assert_eq!(seen(&shop), Some(stocked(3)), "nothing keeps the newer one waiting");
    goes_on(&shop, &mut older).await;
    assert_ne!(seen(&shop), Some(stocked(3)), "the older one has moved the link since");
}
