//! The applied content of a key is stored separately from the last try: a failed try of other content does not change
//! it.

use refrain::core::state::UnitStatus;
use refrain::key;
use refrain::ledger::Per;
use refrain_harness::both_shops;

use crate::shop::{Backend, Invoice, Shop, Source, counts, dedupes, invoice, ran, sync, traced};
use refrain_harness::work::open;

/// The table refuses this total.
const BAD: i64 = -1;

fn at(updated: i64, total: i64) -> Invoice {
    Invoice { updated, ..invoice(1, total) }
}

/// Two valid invoices, one of which then gets content that is refused, in a run with this many tries.
async fn one_that_failed<DB: Backend>(shop: &Shop<DB>, source: &Source) -> refrain::Refrain {
    let refrain = open(&shop.store, [sync(shop, source, Per::Ever, |units| units)]).await;
    source.shows(vec![invoice(1, 10), invoice(2, 20)]);
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 1");
    source.shows(vec![invoice(1, BAD), invoice(2, 20)]);
    assert_eq!(ran(&refrain, "sync#tuesday").await, "tuesday due 2");
    assert_eq!((shop.count_of("failed").await, shop.writes().await), (1, vec![1, 1]));
    refrain
}

#[both_shops]
async fn applied_content_stays_done_after_other_content_failed<DB: Backend>(shop: Shop<DB>) {
    let source = Source::default();
    let refrain = one_that_failed(&shop, &source).await;
    let applied = traced(&shop, key!("invoice", 2).unwrap()).await;
    source.shows(vec![invoice(1, 10), invoice(2, 20)]);
    ran(&refrain, "sync#wednesday").await;
    assert_eq!((shop.writes().await, shop.totals().await), (vec![1, 1], vec![10, 20]), "no row again");
    assert_eq!(dedupes(&refrain, "sync#wednesday").await[0], "already-applied 2 invoice:2 invoice:1");
    let record = traced(&shop, key!("invoice", 1).unwrap()).await;
    assert_eq!(
        (record.status, record.input, record.message),
        (UnitStatus::Applied, None, None),
        "nothing is left to do"
    );
    assert_eq!(
        (record.run.as_deref(), record.attempt, record.at),
        (Some("monday"), Some(1), applied.at),
        "the run that applied it"
    );
    assert_eq!(ran(&refrain, "sync#thursday").await, "thursday done 1");
    assert_eq!(counts(&refrain, "sync#thursday").await, [0, 0, 2, 0]);
}

#[both_shops]
async fn parked_content_is_moot_once_the_source_returns_to_applied_content<DB: Backend>(shop: Shop<DB>) {
    let source = Source::default();
    let refrain = one_that_failed(&shop, &source).await;
    for _ in 0..2 {
        ran(&refrain, "sync#tuesday").await;
    }
    assert_eq!(shop.count_of("parked").await, 1, "its tries are used up");
    source.shows(vec![invoice(1, 10), invoice(2, 20)]);
    let report = refrain.run("sync#tuesday", refrain::Ask::Again).await.unwrap();
    assert_eq!(refrain_harness::work::line(&report.run), "tuesday done 4");
    assert_eq!((shop.count_of("parked").await, shop.writes().await), (0, vec![1, 1]));
}

#[both_shops]
async fn failed_content_is_retried_and_other_content_replaces_applied_content<DB: Backend>(shop: Shop<DB>) {
    let source = Source::default();
    let refrain = one_that_failed(&shop, &source).await;
    shop.execute("delete from invoices where id = 1").await;
    source.shows(vec![invoice(1, 30)]);
    ran(&refrain, "sync#wednesday").await;
    assert_eq!((shop.totals().await, shop.count_of("applied").await), (vec![30, 20], 2));
    source.shows(vec![invoice(1, 10)]);
    assert_eq!(ran(&refrain, "sync#thursday").await, "thursday done 1");
    assert_eq!(shop.totals().await, [10, 20], "content from before thirty is not applied any more");
}

#[both_shops]
async fn content_that_returns_has_the_highest_order_it_was_seen_with<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(vec![at(5, 10)]);
    let rules =
        |units: refrain::ledger::Units<_, _>| units.order(|one: &Invoice| one.updated).fields(["total"]);
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, rules)]).await;
    ran(&refrain, "sync#five").await;
    source.shows(vec![at(6, BAD)]);
    ran(&refrain, "sync#six").await;
    source.shows(vec![at(5, 10)]);
    ran(&refrain, "sync#slow").await;
    assert_eq!(shop.count_of("failed").await, 1, "a slow reader does not hide newer content");
    source.shows(vec![at(8, 10)]);
    ran(&refrain, "sync#eight").await;
    assert_eq!((shop.count_of("failed").await, shop.writes().await), (0, vec![1]));
    source.shows(vec![at(7, 20)]);
    ran(&refrain, "sync#seven").await;
    assert_eq!((shop.totals().await, shop.writes().await), (vec![10], vec![1]), "seven is before eight");
}

#[both_shops]
async fn content_is_applied_again_when_the_applied_content_is_unknown<DB: Backend>(shop: Shop<DB>) {
    let source = Source::default();
    let refrain = one_that_failed(&shop, &source).await;
    let before =
        "update refrain_units set applied_version = null, applied_fingerprint = null, applied_at = null,
            applied_fence = null, applied_attempt = null";
    shop.database.store(before).await;
    source.shows(vec![invoice(1, 10), invoice(2, 20)]);
    ran(&refrain, "sync#wednesday").await;
    assert_eq!((shop.writes().await, shop.count_of("applied").await), (vec![2, 1], 2));
}
