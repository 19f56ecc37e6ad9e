//! Other content under a known key: newer, older, twice in one list, or from another version.

use refrain::core::state::OnChange;
use refrain::key;
use refrain::ledger::Per;
use refrain_harness::both_shops;

use crate::shop::{
    Backend, Invoice, Shop, Source, counts, dedupes, invoice, invoices, ran, sync, traced, work, write_all,
};
use refrain_harness::work::{open, shown};

/// An invoice with the time of its last change.
fn at(updated: i64, id: i64, total: i64) -> Invoice {
    Invoice { updated, ..invoice(id, total) }
}

#[both_shops]
async fn update_overwrites_the_row_with_other_content<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(3));
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, |units| units)]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(vec![invoice(2, 21), invoice(3, 30)]);
    ran(&refrain, "sync#tuesday").await;
    assert_eq!(shop.totals().await, [10, 21, 30]);
    assert_eq!(shop.writes().await, [1, 2, 1]);
    assert_eq!(counts(&refrain, "sync#tuesday").await, [1, 0, 1, 0]);
}

#[both_shops]
async fn reject_is_an_error_and_writes_nothing<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(3));
    let rules = |units: refrain::ledger::Units<_, _>| units.on_change(OnChange::Reject);
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, rules)]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(vec![invoice(2, 21), invoice(3, 30), invoice(4, 40)]);
    assert_eq!(ran(&refrain, "sync#tuesday").await, "tuesday due 2");
    assert_eq!(shop.totals().await, [10, 20, 30]);
    let run = shown(&refrain, "sync#tuesday").await;
    let reported = refrain.attempts(&run).await.unwrap()[0].message.clone().unwrap();
    assert!(reported.contains("invoice:2") && reported.contains("other content"), "{reported}");
}

#[both_shops]
async fn first_keeps_the_first_content_and_shows_ignored_content<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(3));
    let rules = |units: refrain::ledger::Units<_, _>| units.on_change(OnChange::First);
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, rules)]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(vec![invoice(2, 21), invoice(3, 30)]);
    assert_eq!(ran(&refrain, "sync#tuesday").await, "tuesday done 1");
    assert_eq!((shop.totals().await, shop.writes().await), (vec![10, 20, 30], vec![1, 1, 1]));
    assert_eq!(
        dedupes(&refrain, "sync#tuesday").await,
        ["already-applied 1 invoice:3", "first-wins? 1 invoice:2"]
    );
}

#[both_shops]
async fn f40_a_higher_version_applies_everything_again_and_a_lower_one_is_refused<DB: Backend>(
    shop: Shop<DB>,
) {
    let source = Source::of(invoices(3));
    let work = || sync(&shop, &source, Per::Ever, |units| units);
    let old = open(&shop.store, [work()]).await;
    ran(&old, "sync#monday").await;
    let new = open(&shop.store, [work().version(2)]).await;
    for run in ["sync#tuesday", "sync#wednesday"] {
        assert!(ran(&new, run).await.ends_with("done 1"));
        assert_eq!(shop.writes().await, [2, 2, 2]);
    }
    source.shows(vec![invoice(1, 11), invoice(4, 40)]);
    assert_eq!(ran(&old, "sync#thursday").await, "thursday due 2");
    assert_eq!(shop.totals().await, [10, 20, 30], "not even a unit that is new");
    let reported =
        old.attempts(&shown(&old, "sync#thursday").await).await.unwrap()[0].message.clone().unwrap();
    assert!(reported.contains("version 2 was recorded; this worker has version 1"), "{reported}");
}

#[both_shops]
async fn order_keeps_a_slow_reader_from_writing_over_newer_content<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(vec![at(5, 1, 50), at(5, 2, 50)]);
    let rules = |units: refrain::ledger::Units<_, _>| units.order(|one: &Invoice| one.updated);
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, rules)]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(vec![at(4, 1, 40), at(6, 2, 60)]);
    assert_eq!(ran(&refrain, "sync#stale").await, "stale done 1");
    assert_eq!(shop.totals().await, [50, 60]);
    assert_eq!(dedupes(&refrain, "sync#stale").await, ["stale 1 invoice:1"]);
    source.shows(vec![at(i64::MIN, 1, 40), at(i64::MAX, 2, 70)]);
    ran(&refrain, "sync#extreme").await;
    source.shows(vec![at(i64::MAX - 1, 2, 80)]);
    ran(&refrain, "sync#almost").await;
    assert_eq!(shop.totals().await, [50, 70]);
}

#[both_shops]
async fn order_advances_with_content_that_returns<DB: Backend>(shop: Shop<DB>) {
    let rules =
        |units: refrain::ledger::Units<_, _>| units.order(|one: &Invoice| one.updated).fields(["total"]);
    let source = Source::of(vec![at(5, 1, 10)]);
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, rules)]).await;
    ran(&refrain, "sync#at-five").await;
    source.shows(vec![at(9, 1, 10)]);
    ran(&refrain, "sync#at-nine").await;
    source.shows(vec![at(7, 1, 20)]);
    ran(&refrain, "sync#stale").await;
    assert_eq!(shop.totals().await, [10], "content from nine is newer than content from seven");
    assert_eq!(shop.writes().await, [1]);
}

#[both_shops]
async fn one_key_twice_in_a_list_is_one_unit_with_its_last_content<DB: Backend>(shop: Shop<DB>) {
    let list =
        vec![invoice(1, 10), invoice(2, 20), invoice(1, 10), invoice(2, 21), invoice(2, 22), invoice(3, 30)];
    let refrain = open(&shop.store, [sync(&shop, &Source::of(list), Per::Ever, |units| units)]).await;
    assert_eq!(
        ran(&refrain, "sync#monday").await,
        "monday partial 1",
        "without an order, two contents are not one unit"
    );
    assert_eq!((shop.totals().await, shop.writes().await), (vec![10, 22, 30], vec![1, 1, 1]));
    assert_eq!(counts(&refrain, "sync#monday").await, [3, 0, 3, 0]);
    let text = [
        "already-applied 1 invoice:1",
        "many-contents? 2 invoice:2 invoice:2",
        "stale 2 invoice:2 invoice:2",
    ];
    assert_eq!(dedupes(&refrain, "sync#monday").await, text);

    ran(&refrain, "sync#tuesday").await;
    assert_eq!(shop.writes().await, [1, 1, 1], "the same list again changes nothing");
    assert_eq!(counts(&refrain, "sync#tuesday").await, [0, 0, 6, 0]);
}

#[both_shops]
async fn the_newest_of_two_contents_in_a_list_counts_wherever_it_stands<DB: Backend>(shop: Shop<DB>) {
    let list = vec![at(5, 1, 10), at(9, 1, 10), at(7, 1, 20), at(9, 2, 90), at(8, 2, 80)];
    let rules =
        |units: refrain::ledger::Units<_, _>| units.order(|one: &Invoice| one.updated).fields(["total"]);
    let refrain = open(&shop.store, [sync(&shop, &Source::of(list), Per::Ever, rules)]).await;
    for run in ["sync#monday", "sync#tuesday"] {
        assert!(ran(&refrain, run).await.ends_with("done 1"));
        assert_eq!((shop.totals().await, shop.writes().await), (vec![10, 90], vec![1, 1]));
    }
}

#[both_shops]
async fn one_key_in_two_batches_is_one_unit<DB: Backend>(shop: Shop<DB>) {
    let mut list: Vec<Invoice> = (1..1_000).map(|id| invoice(id, 10)).collect();
    // The last of the first thousand and the first of the next, in the order of keys.
    list.extend([invoice(999, 20), invoice(999, 30)]);
    let refrain = open(&shop.store, [sync(&shop, &Source::of(list), Per::Ever, |units| units)]).await;
    for run in ["sync#monday", "sync#tuesday"] {
        assert!(ran(&refrain, run).await.ends_with("partial 1"));
        assert_eq!(shop.numbers("select total from invoices where id = 999").await, [30]);
        assert_eq!(shop.numbers("select max(writes) from invoices").await, [1], "{run}");
    }
}

#[both_shops]
async fn on_change_decides_about_two_contents_of_one_key_in_a_list<DB: Backend>(shop: Shop<DB>) {
    let list = || Source::of(vec![invoice(1, 10), invoice(1, 11), invoice(2, 20)]);
    let first = |units: refrain::ledger::Units<_, _>| units.on_change(OnChange::First);
    let refrain = open(&shop.store, [sync(&shop, &list(), Per::Ever, first)]).await;
    for run in ["sync#monday", "sync#tuesday"] {
        ran(&refrain, run).await;
        assert_eq!((shop.totals().await, shop.writes().await), (vec![10, 20], vec![1, 1]));
        assert!(dedupes(&refrain, run).await.contains(&"first-wins? 1 invoice:1".to_owned()));
    }
    let reject = |units: refrain::ledger::Units<_, _>| units.on_change(OnChange::Reject);
    let strict = sync(&shop, &list(), Per::Ever, reject).named("strict").unwrap();
    let refrain = open(&shop.store, [strict]).await;
    assert_eq!(ran(&refrain, "strict#monday").await, "monday due 2");
    assert_eq!(shop.writes().await, [1, 1]);
}

#[both_shops]
async fn a_key_that_swallows_other_contents_is_a_suspect<DB: Backend>(shop: Shop<DB>) {
    let too_wide = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, |one: &Invoice| key!("invoice", one.id % 2));
        for list in [invoices(4), invoices(4)] {
            write_all(units.apply(&list).await?).await?;
        }
        Ok(())
    });
    let refrain = open(&shop.store, [too_wide]).await;
    ran(&refrain, "sync#monday").await;
    let suspects = dedupes(&refrain, "sync#monday").await;
    assert!(suspects.iter().any(|line| line.starts_with("many-contents?")), "{suspects:?}");
    assert_eq!(counts(&refrain, "sync#monday").await.iter().sum::<u64>(), 8);
    assert_eq!(traced(&shop, key!("invoice", 1).unwrap()).await.run.as_deref(), Some("monday"));
}
