//! A key that stands for several units: the run is partial and names the key.

use crate::sync::{RUN, Says, Sync};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const LINES: [&str; 3] = [
    "{\"id\":1,\"total\":10,\"at\":\"2020-06-09T01:00:00Z\"}",
    "{\"id\":2,\"total\":20,\"at\":\"2020-06-09T02:00:00Z\"}",
    "{\"id\":3,\"total\":30,\"at\":\"2020-06-09T03:00:00Z\"}",
];

/// The state of the run, its message, and the keys that `show` and `why` name.
async fn shown(sync: &Sync) -> (String, String, Vec<String>) {
    let refrain = sync.shop.open().await;
    let run = refrain.show(RUN).await.unwrap().unwrap();
    let attempts = refrain.units(&run).await.unwrap();
    let why = refrain.why(RUN).await.unwrap();
    refrain.close().await;
    let suspects = attempts.last().unwrap().dedupes.iter().filter(|one| one.reason == "many-contents");
    let keys: Vec<String> = suspects.flat_map(|one| one.keys.clone()).collect();
    assert_eq!(why.names("wide-key"), !keys.is_empty(), "{why:?}");
    (
        run.standing.outcome.map(|one| one.to_string()).unwrap_or_default(),
        run.message.clone().unwrap_or_default(),
        keys,
    )
}

#[both_databases]
async fn a_key_that_binds_only_the_window_makes_a_run_of_three_customers_partial(database: TestDatabase) {
    for unit in ["key = \"crm:{ds}\"", "key = \"crm:{ds}\"\norder = \"at\""] {
        let sync =
            Sync::into_table(TestDatabase::like(&database).await, Says { unit, ..Says::default() }).await;
        sync.source(LINES);
        for number in ["1", "2"] {
            let (became, text) = sync.again().await;
            assert_eq!(became, format!("Ran partial {number}"), "{unit}: {text}");
            let (state, message, keys) = shown(&sync).await;
            assert_eq!((state.as_str(), keys), ("partial", vec!["crm:2020-06-09".to_owned(); 2]), "{unit}");
            assert!(
                message.contains("one key had several contents in this attempt: `crm:2020-06-09` first"),
                "{message}"
            );
        }
    }
}

#[both_databases]
async fn a_run_with_one_unit_may_use_the_window_as_its_key(database: TestDatabase) {
    let sync = Sync::into_table(database, Says { unit: "key = \"digest:{ds}\"", ..Says::default() }).await;
    sync.source([LINES[0], LINES[0]]);
    assert_eq!(sync.run().await.0, "Ran done 1", "the same line twice is one unit");
    assert_eq!(sync.counts().await, [[1, 0, 1, 0]]);
}

#[both_databases]
async fn several_contents_of_one_key_make_a_run_partial_unless_an_order_tells_the_newer(
    database: TestDatabase,
) {
    for (unit, became) in [
        ("key = \"all:{customer}\"", "Ran partial 1"),
        ("key = \"all:{customer}\"\norder = \"at\"", "Ran done 1"),
        ("key = \"all:{customer}\"\non-change = \"first\"", "Ran partial 1"),
    ] {
        let sync =
            Sync::into_table(TestDatabase::like(&database).await, Says { unit, ..Says::default() }).await;
        sync.shop.execute("insert into customers values (5)").await;
        sync.source(LINES.map(|line| line.replace('}', ",\"customer\":5}")));
        assert_eq!(sync.run().await.0, became, "{unit}");
    }
}

#[both_databases]
async fn several_contents_of_one_key_in_two_pages_make_a_run_partial(database: TestDatabase) {
    let more = "[cursor]\n";
    let sync =
        Sync::into_table(database, Says { unit: "key = \"total:{total}\"", more, ..Says::default() }).await;
    sync.source([
        "{\"id\":1,\"total\":10}",
        "{\"$cursor\":\"a\"}",
        "{\"id\":2,\"total\":10}",
        "{\"$cursor\":\"b\"}",
    ]);
    assert_eq!(sync.run().await.0, "Ran partial 1");
    assert_eq!(shown(&sync).await.2, ["total:10"]);
}

#[both_databases]
async fn corrected_content_is_not_taken_for_a_key_that_is_too_wide(database: TestDatabase) {
    let top = "retry = { attempts = 5 }";
    let sync = Sync::into_table(database, Says { top, ..Says::default() }).await;
    sync.source(["{\"id\":1,\"total\":10,\"customer\":5}", "{\"id\":2,\"total\":20}"]);
    assert_eq!(sync.run().await.0, "Ran due 2", "there is no customer 5");
    sync.shop.execute("insert into customers values (5)").await;
    sync.source(["{\"id\":1,\"total\":11,\"customer\":5}", "{\"id\":2,\"total\":20}"]);
    let (became, text) = sync.run().await;
    assert!(became.starts_with("Ran done"), "{became}: {text}");
    assert_eq!(sync.invoices().await, ["1 11", "2 20"]);
}
