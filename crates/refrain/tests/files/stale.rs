//! An attempt that was stopped and goes on when a newer one has begun: the newer one's files stay.

use std::fs::{File, TryLockError};

use jiff::Timestamp;
use rustix::process::Signal;

use crate::both_databases;
use crate::export::{WINDOW, is_tidy, seen, stock, stocked, versioned};
use crate::killed::{LEASE, mended, mended_with};
use crate::shop::Shop;
use crate::support::TestDatabase;
use crate::support::children::ChildProcess;
use crate::support::eventually::{DEADLINE, eventually};

/// A worker that was stopped is looked at twice, a third of this apart, before its run is taken over.
const TAKES_OVER: (&str, &str) = ("PROJECT_LEASE", "3000");

/// The lease runs out by the clock of the worker that is stopped, too.
const RUNS_OUT: (&str, &str) = ("PROJECT_LEASE", "4000");

/// One that has version 2 in its hands and is stopped, while the source has version 3 already.
async fn stopped(shop: &Shop, place: &str, weakened: &str) -> ChildProcess {
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

/// On SQLite whoever takes over ends the one before, which might hold the file.
async fn goes_on(shop: &Shop, older: &mut ChildProcess) {
    if !shop.database.is_sqlite() {
        older.signal(Signal::CONT);
    }
    older.wait().await;
}

both_databases! {
    async fn f11_stopped_before_its_last_look_it_moves_nothing_any_more(database) {
        let shop = versioned(database).await;
        let mut older = stopped(&shop, "files.written", "").await;
        mended_with(&shop, TAKES_OVER).await;
        assert_eq!(seen(&shop), Some(stocked(3)));
        goes_on(&shop, &mut older).await;
        assert_eq!(seen(&shop), Some(stocked(3)));
        assert!(is_tidy(&shop));
    }

    async fn f11_stopped_after_its_last_look_it_still_has_the_lock_and_the_newer_one_comes_after_it(database) {
        let shop = versioned(database).await;
        let mut older = stopped(&shop, "files.checked", "").await;
        let lock = File::open(shop.root().join("out/.refrain.lock")).unwrap();
        assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)), "whoever moves a link has the directory's lock");
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

    async fn f11_once_its_lease_is_over_it_moves_nothing_although_nobody_has_taken_over(database) {
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
}

/// On PostgreSQL alone, where a test can read the store beside the shop.
#[tokio::test]
async fn f11_what_an_older_attempt_shows_is_not_recorded_once_a_newer_one_has_begun() {
    let shop = versioned(TestDatabase::postgres().await).await;
    let mut older = stopped(&shop, "files.checked", "").await;
    // As the newer one does, which waits for the lock then.
    shop.at_the_store("update refrain_fences set attempt = attempt + 1").await;
    goes_on(&shop, &mut older).await;
    assert_eq!(seen(&shop), Some(stocked(2)));
    assert_eq!(shop.rows("select cast(attempt as text) from refrain.publishes").await, ["1"]);
}

#[tokio::test]
async fn without_its_last_look_it_would_show_old_files_again() {
    let shop = versioned(TestDatabase::postgres().await).await;
    let mut older = stopped(&shop, "files.written", "files.unfenced=return(weak)").await;
    mended_with(&shop, TAKES_OVER).await;
    goes_on(&shop, &mut older).await;
    assert_eq!(seen(&shop), None, "the link leads to what the newer one has taken away");
}

#[tokio::test]
async fn f11_without_the_lock_it_would_move_the_link_after_the_newer_one() {
    let shop = versioned(TestDatabase::postgres().await).await;
    let mut older = stopped(&shop, "files.checked", "files.unlocked=return(weak)").await;
    mended_with(&shop, TAKES_OVER).await;
    assert_eq!(seen(&shop), Some(stocked(3)), "nothing keeps the newer one waiting");
    goes_on(&shop, &mut older).await;
    assert_ne!(seen(&shop), Some(stocked(3)), "the older one has moved the link since");
}
