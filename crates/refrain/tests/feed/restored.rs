//! Calls of a restored store: a call that the store does not know may have been made, and waits for
//! the operator.

use crate::calls::{FINE, calling};
use crate::receiver::Receiver;
use crate::sync::{RUN, Sync, lines};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

/// The message about the second invoice.
async fn text(sync: &Sync) -> String {
    let refrain = sync.shop.open().await;
    let unit = refrain.trace("invoice:2").await.unwrap().units.pop();
    refrain.close().await;
    unit.and_then(|unit| unit.message).unwrap_or_default()
}

#[both_databases]
async fn f23_a_restored_store_makes_no_call_that_it_may_have_made_before(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let policy = r#"
        per = "ever"
        parallel = 1
        in-doubt = "provider-key"
        provider-ttl = "24h"
    "#;
    let sync = calling(database, &receiver, "", policy).await;
    // Its units are remembered in the store itself.
    let job = sync.shop.lines("jobs/sync.toml").into_iter().filter(|line| !line.starts_with("database"));
    sync.shop.job("sync", &job.collect::<Vec<_>>().join("\n"));
    sync.source(lines(1..=1));
    assert!(sync.run().await.0.contains(" done "));
    // The store was made long before the time that it may have forgotten.
    let restored =
        "update refrain_store set created_at = 1, forgets_before = (select now from refrain_clock)";
    sync.shop.at_the_store(restored).await;

    sync.source(lines(1..=2));
    for _ in 0..2 {
        sync.again().await;
        assert_eq!(receiver.ids(), ["1"], "no policy ends this doubt");
        let text = text(&sync).await;
        assert!(text.starts_with("in doubt: this store was restored"), "{text}");
    }

    let refrain = sync.shop.open().await;
    assert_eq!(refrain.unpark(RUN, "invoice:2").await.unwrap(), 1);
    refrain.close().await;
    assert!(sync.again().await.0.contains(" done "));
    assert_eq!(receiver.ids(), ["1", "2"], "the operator does");

    sync.shop.at_the_store("update refrain_store set forgets_before = null").await;
    sync.source(lines(1..=3));
    assert!(sync.again().await.0.contains(" done "));
    assert_eq!(receiver.ids(), ["1", "2", "3"]);
}

#[both_databases]
async fn f23_after_a_restore_only_a_ledger_elsewhere_knows_earlier_units(database: TestDatabase) {
    // On a server the project's own database is that of the store.
    let elsewhere = if database.is_sqlite() { vec!["1", "1", "2"] } else { vec!["1"] };
    for (is_in_the_store, hears) in [(true, vec!["1"]), (false, elsewhere)] {
        let receiver = Receiver::answering(FINE).await;
        let sync =
            calling(TestDatabase::like(&database).await, &receiver, "", "per = \"ever\"\nparallel = 1").await;
        if is_in_the_store {
            let job =
                sync.shop.lines("jobs/sync.toml").into_iter().filter(|line| !line.starts_with("database"));
            sync.shop.job("sync", &job.collect::<Vec<_>>().join("\n"));
        }
        sync.source(lines(1..=1));
        assert!(sync.run().await.0.contains(" done "));
        let restored =
            "update refrain_store set created_at = 1, forgets_before = (select now from refrain_clock)";
        sync.shop.at_the_store(restored).await;
        // The record of the first call is older than the forgotten time; of the second there is none.
        sync.source(["{\"id\":1,\"total\":11}".to_owned(), lines([2]).concat()]);
        sync.again().await;
        assert_eq!(receiver.ids(), hears, "remembered in the store: {is_in_the_store}");
    }
}
