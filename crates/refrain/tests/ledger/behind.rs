//! A store that is older than its own work, and a database that remembers more than the store.

use refrain::admin::{IdentityDoubt, StoreOrigin};
use refrain::error::StoreError;
use refrain::ledger::Per;
use refrain::{Ask, Definition, Error, Refrain};
use refrain_harness::both_shops;

use crate::shop::{Backend, Shop, invoices, key_of, ran, work, write_all};
use refrain_harness::work::{SETTINGS, open};

fn job<DB: Backend>(shop: &Shop<DB>) -> Definition {
    work(shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        write_all(units.apply(&invoices(3)).await?).await
    })
}

/// Records in the shop a later attempt of a run than the store knows of.
async fn outnumber<DB: Backend>(shop: &Shop<DB>, run: &str, attempt: i32) {
    let fence = "insert into refrain_fences (project, job, run, attempt, nonce) values ('shop', 'sync'";
    shop.database
        .store(&format!("{fence}, '{run}', {attempt}, (select now from refrain_clock) * 2048)"))
        .await;
}

fn is_behind<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Store(StoreError::Unsure(IdentityDoubt::Behind))))
}

#[both_shops]
async fn f23_a_store_below_a_fence_runs_nothing_before_the_operator_decides<DB: Backend>(shop: Shop<DB>) {
    let refrain = open(&shop.store, [job(&shop)]).await;
    outnumber(&shop, "monday", 3).await;
    assert!(is_behind(&refrain.run("sync#monday", Ask::Once).await));
    assert!(is_behind(&refrain.run("sync#tuesday", Ask::Once).await), "no other run is begun either");
    assert!(is_behind(&refrain.serve().await));
    refrain.close().await;
    assert_eq!(shop.writes().await, Vec::<i64>::new());

    let options = || Refrain::at(&shop.store.url(), "shop").unwrap().settings(SETTINGS);
    assert!(is_behind(&options().job(job(&shop)).open().await));
    let looking = options().only_looking().open().await.unwrap();
    assert_eq!(looking.runs("sync", "").await.unwrap().len(), 2, "a reader sees everything");
    looking.close().await;

    options().state(StoreOrigin::Restored).await.unwrap();
    let refrain = options().job(job(&shop)).open().await.unwrap();
    assert_eq!(
        ran(&refrain, "sync#monday").await,
        "monday done 4",
        "its number is above every fence of the shop"
    );
    assert_eq!(shop.writes().await, [1, 1, 1]);
}

#[both_shops]
async fn f23_an_open_process_stops_once_another_finds_the_store_behind<DB: Backend>(shop: Shop<DB>) {
    let before = open(&shop.store, [job(&shop)]).await;
    assert_eq!(ran(&before, "sync#sunday").await, "sunday done 1");
    let other = open(&shop.store, [job(&shop)]).await;
    outnumber(&shop, "monday", 3).await;
    assert!(is_behind(&other.run("sync#monday", Ask::Once).await));
    assert!(is_behind(&before.run("sync#tuesday", Ask::Once).await), "it has not noticed by itself");
    assert!(is_behind(&before.serve().await));
}

#[both_shops]
async fn a_restored_store_continues_above_the_fences_of_its_databases<DB: Backend>(shop: Shop<DB>) {
    let refrain = open(&shop.store, [job(&shop)]).await;
    refrain.close().await;
    outnumber(&shop, "monday", 7).await;
    let options = || Refrain::at(&shop.store.url(), "shop").unwrap().settings(SETTINGS);
    options().state(StoreOrigin::Restored).await.unwrap();
    let refrain = options().job(job(&shop)).open().await.unwrap();
    let mut message = ran(&refrain, "sync#monday").await;
    while message.contains(" due ") {
        message = ran(&refrain, "sync#monday").await;
    }
    assert_eq!(message, "monday done 8");
    outnumber(&shop, "tuesday", 7).await;
    assert!(
        is_behind(&refrain.run("sync#tuesday", Ask::Once).await),
        "the operator did not know of this fence"
    );
}
