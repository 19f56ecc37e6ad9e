//! A script that prints JSON lines is a deduplicated sync.

use crate::sync::{LEASE, RUN, Says, Sync, lines, rows, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

#[both_databases]
async fn printed_units_are_written_once_and_again_when_they_change(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.source(lines(1..=3));
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(sync.run().await.0, "Deduplicated done 1");
    assert_eq!(sync.again().await.0, "Ran done 2");
    sync.source([
        "{\"total\":10.0, \"id\":1}",
        "{\"id\":2,\"total\":21}",
        "{\"id\":3,\"total\":30}",
        "{\"id\":4,\"total\":40}",
    ]);
    assert_eq!(sync.again().await.0, "Ran done 3");
    assert_eq!(sync.counts().await, [[3, 0, 0, 0], [0, 0, 3, 0], [2, 0, 2, 0]]);
    assert_eq!(sync.invoices().await, ["1 10", "2 21", "3 30", "4 40"]);
    assert_eq!(sync.writes().await, texts([1, 2, 2, 3, 4]));
}

#[both_databases]
async fn an_empty_source_is_done_and_counts_no_unit(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.source([""; 2]);
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(sync.counts().await, [[0, 0, 0, 0]]);
}

#[both_databases]
async fn standard_error_of_a_source_is_the_log_and_units_are_not(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.source(lines(1..=2));
    sync.shop.program("list", "#!/bin/sh\necho 'reading page 1' >&2\ncat source\n");
    let (became, log) = sync.run().await;
    assert_eq!((became.as_str(), log.as_str()), ("Ran done 1", "reading page 1\n"));
}

#[both_databases]
async fn units_are_separate_per_window_unless_per_is_ever(database: TestDatabase) {
    for (unit, expected) in [("", 4), ("per = \"ever\"", 2)] {
        let sync =
            Sync::into_table(TestDatabase::like(&database).await, Says { unit, ..Says::default() }).await;
        sync.source(lines(1..=2));
        for day in ["09", "10"] {
            assert_eq!(sync.ask(&["run", &format!("sync@2020-06-{day}")]).await.0, "Ran done 1");
        }
        let entries = sync.shop.either("select key from refrain_units", "select key from refrain.units");
        assert_eq!(sync.shop.rows(entries).await.len(), expected, "{unit}");
        assert_eq!(sync.writes().await.len(), 2, "a row with the same content is not rewritten");
    }
}

#[both_databases]
async fn f35_on_change_decides_about_other_content_under_a_known_key(database: TestDatabase) {
    for (policy, became, rows) in [
        ("update", "Ran done 2", ["1 99", "2 20"]),
        ("first", "Ran done 2", ["1 10", "2 20"]),
        ("reject", "Ran failed 2", ["1 10", "2 20"]),
    ] {
        let unit = format!("on-change = \"{policy}\"");
        let says = Says { top: "retry = { attempts = 1 }", unit: &unit, ..Says::default() };
        let sync = Sync::into_table(TestDatabase::like(&database).await, says).await;
        sync.source(lines(1..=2));
        sync.run().await;
        sync.source(["{\"id\":1,\"total\":99}", "{\"id\":2,\"total\":20}"]);
        let (found, message) = sync.again().await;
        assert_eq!(found, became, "{policy}: {message}");
        assert_eq!(sync.invoices().await, rows, "{policy}");
        assert_eq!(message.contains("unit `invoice:1`"), policy == "reject", "{message}");
    }
}

#[both_databases]
async fn older_content_never_overwrites_newer(database: TestDatabase) {
    let unit = "order = \"at\"";
    let sync = Sync::into_table(database, Says { unit, ..Says::default() }).await;
    let line = |total, at| format!("{{\"id\":1,\"total\":{total},\"at\":\"2020-06-09 {at}\"}}");
    sync.source([line(2, "12:00:00")]);
    sync.run().await;
    sync.source([line(1, "11:59:59")]);
    assert_eq!(sync.again().await.0, "Ran done 2");
    assert_eq!(sync.invoices().await, ["1 2"], "a slow reader returned older content");
    sync.source([line(3, "12:00:01"), line(2, "12:00:00")]);
    assert_eq!(sync.again().await.0, "Ran done 3");
    assert_eq!(sync.invoices().await, ["1 3"]);
    assert_eq!(sync.counts().await, [[1, 0, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0]]);
}

#[both_databases]
async fn units_without_an_id_are_identified_by_their_content(database: TestDatabase) {
    let unit = "key = \"{$content}\"\nfields = [\"id\", \"total\"]";
    let sync = Sync::into_table(database, Says { unit, ..Says::default() }).await;
    sync.source(["{\"id\":1,\"total\":10,\"at\":\"a\"}", "{\"id\":2,\"total\":20,\"at\":\"a\"}"]);
    sync.run().await;
    sync.source(["{\"id\":1,\"total\":10,\"at\":\"b\"}", "{\"id\":2,\"total\":25,\"at\":\"b\"}"]);
    sync.again().await;
    assert_eq!(sync.counts().await, [[2, 0, 0, 0], [1, 0, 1, 0]]);
    assert_eq!(sync.invoices().await, ["1 10", "2 25"]);
}

#[both_databases]
async fn units_printed_before_a_failure_stay_and_the_script_is_retried(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.source(lines(1..=2));
    sync.shop
        .program("list", "#!/bin/sh\ncat source\nprintf '{\"id\":3,\"tot'\necho 'no more' >&2\nexit 3\n");
    assert_eq!(sync.run().await, ("Ran due 2".to_owned(), "no more\n".to_owned()));
    assert_eq!(sync.last_message().await, "exit code 3\nno more");
    assert_eq!(sync.invoices().await, rows(1..=2), "the truncated line is not a unit");
    assert_eq!(sync.left().await, [""; 0]);
    sync.shop.program("list", "#!/bin/sh\ncat source\nprintf '{\"id\":3,\"total\":30}'\n");
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(sync.writes().await, texts(1..=3));
}

#[both_databases]
async fn a_script_that_takes_too_long_is_ended(database: TestDatabase) {
    let sync = Sync::into_table(database, Says { top: "timeout = \"2s\"", ..Says::default() }).await;
    sync.shop.program("list", "#!/bin/sh\nsleep 600\n");
    assert_eq!(
        (sync.run().await.0, sync.last_message().await),
        ("Ran due 2".to_owned(), "timed out after 2s".to_owned())
    );
}

#[both_databases]
async fn units_printed_before_a_cancellation_stay(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.source(lines(1..=1_000));
    sync.shop.program("list", "#!/bin/sh\ncat source\nsleep 600\n");
    sync.prepare().await;
    let mut process = sync.shop.process(&["run", RUN], &[LEASE]);
    eventually("all of it is applied", DEADLINE, async || sync.invoices().await.len() == 1_000).await;
    let refrain = sync.shop.open().await;
    refrain.cancel(RUN).await.unwrap();
    refrain.close().await;
    process.finish().await;
    assert_eq!(sync.invoices().await.len(), 1_000);
}
