//! Statements of a window: all of them or none, once per version, however often they are requested.

use refrain::core::state::RunNode;
use refrain::{Ask, Did, RunReport};

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

const WINDOW: &str = "total@2020-06-09";
const ONE_TRY: &str = "retry = { attempts = 1 }";

async fn shop(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    shop.execute(
        "create table totals (day date, total integer); create table audit (day date, note text unique)",
    )
    .await;
    shop
}

fn counted(report: &RunReport) -> (RunNode, u64) {
    (report.run.standing.node(), report.attempt)
}

async fn is_empty(shop: &TestProject) -> bool {
    let audit = shop.either("audit", "public.audit");
    shop.rows(&format!("select cast(day as text) from totals union all select note from {audit}"))
        .await
        .is_empty()
}

async fn written(shop: &TestProject) -> Vec<String> {
    shop.rows("select cast(day as text) || ' ' || cast(total as text) from totals order by day, total").await
}

/// The counts of each attempt for the one unit of the window: processed, deduplicated, failed.
async fn units(shop: &TestProject) -> Vec<(u64, u64, u64)> {
    let refrain = shop.open().await;
    let run = refrain.show(WINDOW).await.unwrap().unwrap();
    let units = refrain.units(&run).await.unwrap();
    refrain.close().await;
    units.iter().map(|one| (one.counts.processed, one.counts.deduplicated, one.counts.failed)).collect()
}

#[both_databases]
async fn a_window_is_written_once_however_often_it_is_requested(database: TestDatabase) {
    let shop = shop(database).await;
    shop.daily("total", "insert into totals values (:ds, 1); insert into totals values (:ds, 2)", "");
    assert_eq!(shop.run(WINDOW, Ask::Once).await.did, Did::Ran);
    assert_eq!(shop.run(WINDOW, Ask::Once).await.did, Did::Deduplicated);
    let again = shop.run(WINDOW, Ask::Again).await;
    assert_eq!((again.did, counted(&again)), (Did::Ran, (RunNode::Done, 2)));
    assert_eq!(units(&shop).await, [(1, 0, 0), (0, 1, 0)], "the second attempt found the entry");
    assert_eq!(written(&shop).await, ["2020-06-09 1", "2020-06-09 2"]);

    shop.daily("total", "insert into totals values (:ds, 3)", "");
    shop.run(WINDOW, Ask::Again).await;
    assert_eq!(
        written(&shop).await.len(),
        2,
        "a text that was edited without another version is the same work"
    );
    shop.run("total@2020-06-10", Ask::Once).await;
    assert_eq!(written(&shop).await[2..], ["2020-06-10 3"]);
}

#[both_databases]
async fn a_new_version_executes_a_window_once_more(database: TestDatabase) {
    let shop = shop(database).await;
    let sql = "delete from totals where day = :ds; insert into totals values (:ds, :version)";
    shop.daily("total", sql, "");
    shop.run(WINDOW, Ask::Once).await;
    shop.daily("total", sql, "version = 2");
    assert_eq!(shop.run(WINDOW, Ask::Once).await.did, Did::Deduplicated, "it is outdated, and done");
    for _ in 0..2 {
        assert!(shop.run(WINDOW, Ask::Again).await.is_done());
    }
    assert_eq!(units(&shop).await, [(1, 0, 0), (1, 0, 0), (0, 1, 0)]);
    assert_eq!(written(&shop).await, ["2020-06-09 2"]);
}

#[both_databases]
async fn f40_a_lower_version_than_the_recorded_one_writes_nothing(database: TestDatabase) {
    let shop = shop(database).await;
    shop.daily("total", "insert into totals values (:ds, 2)", &format!("version = 2\n{ONE_TRY}"));
    shop.run(WINDOW, Ask::Once).await;
    shop.daily("total", "insert into totals values (:ds, 1)", &format!("version = 1\n{ONE_TRY}"));
    let older = shop.run(WINDOW, Ask::Again).await;
    assert_eq!(counted(&older), (RunNode::Failed, 2), "{:?}", older.run.message);
    assert_eq!(written(&shop).await, ["2020-06-09 2"]);
}

#[both_databases]
async fn a_failed_statement_leaves_no_row_and_is_named(database: TestDatabase) {
    let shop = shop(database).await;
    let total = "insert into totals values (:ds, 1)";
    let audit = "insert into audit values (:ds, 'twice')";
    for (first, second, text, named) in [
        (
            total,
            "insert into nowhere values (:ds, 7, 8, 9)",
            "(`insert into nowhere values (:ds, 7, …`): ",
            "nowhere",
        ),
        (audit, audit, "(`insert into audit values (:ds, 'twice')`): ", "audit"),
        (
            total,
            "insert into audit values (:ds)  syntax",
            "(`insert into audit values (:ds) syntax`): ",
            "syntax",
        ),
    ] {
        let (sql, text) = (format!("{first}; {second}; {audit}"), format!("statement 2 of 3 {text}"));
        shop.daily("total", &sql, ONE_TRY);
        let report = shop.run(WINDOW, Ask::Once).await;
        let message = report.run.message.clone().unwrap();
        assert_eq!(report.run.standing.node(), RunNode::Failed, "{message}");
        assert!(message.starts_with(&text) && message[text.len()..].contains(named), "{message}");
        assert!(is_empty(&shop).await);
    }
    assert_eq!(units(&shop).await.iter().filter(|(processed, ..)| *processed > 0).count(), 0);

    shop.daily("total", &format!("{total}; insert into audit values (:ds, 'mended')"), ONE_TRY);
    let refrain = shop.open().await;
    assert!(refrain.retry(WINDOW).await.unwrap().is_done());
    let refused = refrain.retry(WINDOW).await.unwrap_err().to_string();
    assert!(refused.contains("is done, by attempt 4"), "{refused}");
    refrain.close().await;
    shop.run(WINDOW, Ask::Again).await;
    assert_eq!(written(&shop).await, ["2020-06-09 1"]);
    assert_eq!(
        shop.rows(shop.either("select note from audit", "select note from public.audit")).await,
        ["mended"]
    );
}

#[both_databases]
async fn statements_that_always_fail_are_retried_and_never_parked(database: TestDatabase) {
    let shop = shop(database).await;
    let retry = "retry = { attempts = 3, backoff = \"1s..2s\" }";
    shop.daily("total", "insert into audit values (:ds, null), (:ds, 'x'), (:ds, 'x')", retry);
    let refrain = shop.open().await;
    while refrain.run(WINDOW, Ask::Once).await.unwrap().run.standing.is_open() {}
    let failed = refrain.show(WINDOW).await.unwrap().unwrap();
    assert_eq!((failed.standing.node(), failed.attempt), (RunNode::Failed, 3));
    refrain.close().await;
    shop.daily("total", "insert into audit values (:ds, 'mended')", retry);
    assert!(shop.run(WINDOW, Ask::Once).await.is_done());
    assert_eq!(
        shop.rows(shop.either("select note from audit", "select note from public.audit")).await,
        ["mended"]
    );
}

#[both_databases]
async fn m1_the_same_window_in_two_stores_of_one_process_is_written_once(database: TestDatabase) {
    let shop = shop(database).await;
    shop.daily("total", "insert into totals values (:ds, 1)", "");
    let (one, other) = (shop.open().await, shop.open().await);
    let (one, other) = tokio::join!(one.run(WINDOW, Ask::Again), other.run(WINDOW, Ask::Again));
    assert!(one.unwrap().is_done() && other.unwrap().is_done());
    assert_eq!(written(&shop).await, ["2020-06-09 1"]);
}
