//! `append-once` of a query: a key has one row for ever, and other content under it is noticed.

use refrain::Ask;
use refrain::admin::UnitDedupes;
use rustix::process::Signal;

use crate::warehouse::{daily, fails, warehouse, well, window, written};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::TestProject;

const QUERY: &str =
    "select day, region, sum(amount) as amount from orders where day = :ds group by day, region";

/// The job that appends what each region has sold, once for each day.
fn appends(shop: &TestProject, query: &str, more: &str) {
    daily(
        shop,
        "append",
        &format!(
            r#"
                query = "{query}"
                [publish]
                table = "sales"
                mode = "append-once"
                key = ["day", "region"]
                {more}
            "#
        ),
    );
}

/// The four counts of the last attempt, and its dedupes.
async fn last_counts(shop: &TestProject) -> ([u64; 4], Vec<UnitDedupes>) {
    let refrain = shop.open().await;
    let run = refrain.show(&window("append")).await.unwrap().unwrap();
    let last = refrain.units(&run).await.unwrap().pop().unwrap();
    refrain.close().await;
    let counts = last.counts;
    ([counts.processed, counts.skipped, counts.deduplicated, counts.failed], last.dedupes)
}

/// Rows as `region amount`.
async fn sales(shop: &TestProject) -> Vec<String> {
    shop.rows("select region || ' ' || cast(amount as text) from sales order by 1").await
}

const CHANGE: &str =
    "update orders set amount = 11 where id = 2; insert into orders values (6, '2026-06-09', 'asia', 3)";

#[both_databases]
async fn other_content_under_a_known_key_is_an_error_and_nothing_is_appended(database: TestDatabase) {
    let shop = warehouse(database).await;
    for more in ["", "on-change = \"reject\""] {
        appends(&shop, QUERY, more);
        well(&shop, &window("append"), Ask::Again).await;
    }
    assert_eq!(last_counts(&shop).await.0, [0, 0, 2, 0], "known keys are deduplicated, and not processed");
    shop.execute(CHANGE).await;
    for more in ["", "on-change = \"reject\""] {
        appends(&shop, QUERY, more);
        let message = fails(&shop, &window("append")).await;
        assert!(
            message.contains("1 keys (day, region) were appended to `sales` before, with other content"),
            "{message}"
        );
        assert!(
            message.contains("eu")
                && message.contains("on-change = \"first\"")
                && message.contains("nothing was published"),
            "{message}"
        );
        assert_eq!(sales(&shop).await, ["eu 30", "us 14"]);
    }
}

#[both_databases]
async fn the_first_content_stays_where_the_job_says_so_and_a_suspect_is_shown(database: TestDatabase) {
    let shop = warehouse(database).await;
    appends(&shop, QUERY, "on-change = \"first\"");
    well(&shop, &window("append"), Ask::Once).await;
    assert_eq!(last_counts(&shop).await, ([2, 0, 0, 0], Vec::new()));
    shop.execute(CHANGE).await;
    for (processed, known) in [(1, 1), (0, 2)] {
        well(&shop, &window("append"), Ask::Again).await;
        assert_eq!(sales(&shop).await, ["asia 3", "eu 30", "us 14"]);
        let (counts, dedupes) = last_counts(&shop).await;
        assert_eq!(counts, [processed, 0, known + 1, 0]);
        let suspect = dedupes.iter().find(|dedupe| dedupe.is_suspect).unwrap();
        assert_eq!((suspect.reason.as_str(), suspect.count), ("first-wins", 1));
        assert!(suspect.keys[0].contains("eu"), "{suspect:?}");
    }
    let refrain = shop.open().await;
    let why = refrain.why(&window("append")).await.unwrap();
    refrain.close().await;
    assert!(why.names("wide-key"), "{why:?}");
}

#[both_databases]
async fn content_is_compared_without_column_order_and_version(database: TestDatabase) {
    let shop = warehouse(database).await;
    appends(&shop, QUERY, "surrogate = { sales_sk = [\"day\", \"region\"] }");
    well(&shop, &window("append"), Ask::Once).await;
    let turned = "select sum(amount) as amount, region, day from orders where day = :ds group by day, region";
    appends(&shop, turned, "");
    let text = std::fs::read_to_string(shop.root().join("jobs/append.toml")).unwrap();
    shop.job("append", &format!("version = 2\n{text}"));
    well(&shop, &window("append"), Ask::Again).await;
    assert_eq!(last_counts(&shop).await.0, [0, 0, 2, 0]);
    assert_eq!(sales(&shop).await, ["eu 30", "us 14"]);
}

#[both_databases]
async fn rows_appended_without_stored_content_are_known_from_the_next_run_on(database: TestDatabase) {
    let shop = warehouse(database).await;
    appends(&shop, QUERY, "");
    well(&shop, &window("append"), Ask::Once).await;
    shop.execute(shop.either(
        "update refrain_units set fingerprint = null",
        "update refrain.units set fingerprint = null",
    ))
    .await;
    well(&shop, &window("append"), Ask::Again).await;
    shop.execute("update orders set amount = 11 where id = 2").await;
    let message = fails(&shop, &window("append")).await;
    assert!(message.contains("before, with other content"), "{message}");
}

#[both_databases]
async fn f4_rows_appended_with_a_lost_reply_count_as_processed(database: TestDatabase) {
    let shop = warehouse(database).await;
    appends(&shop, QUERY, "");
    shop.open().await.close().await;
    shop.done_with(&["run", &window("append")], &[("FAILPOINTS", "publish.reply=1*return(lost)")]).await;
    assert_eq!(shop.lines("struck"), ["publish.reply"]);
    assert_eq!(last_counts(&shop).await.0, [2, 0, 0, 0]);
}

#[both_databases]
async fn without_the_comparison_other_content_is_ignored(database: TestDatabase) {
    for guard in ["nothing", "publish.swallowed"] {
        let shop = warehouse(TestDatabase::like(&database).await).await;
        appends(&shop, QUERY, "on-change = \"first\"");
        well(&shop, &window("append"), Ask::Once).await;
        shop.execute("update orders set amount = 11 where id = 2").await;
        let weak = format!("{guard}=return(weak)");
        shop.done_with(&["run", &window("append"), "--again"], &[("FAILPOINTS", &weak)]).await;
        let (counts, dedupes) = last_counts(&shop).await;
        assert_eq!(counts, [0, 0, 2, 0], "{guard}");
        assert_eq!(dedupes.iter().any(|dedupe| dedupe.is_suspect), guard == "nothing", "{guard}");
    }
}

/// Stopped before its commit for any time: the server does not end its transaction meanwhile.
const STOPPED: &str = "publish.before-commit=1*return(stop);transaction.patient=return(weak)";

/// One attempt has published. The source changes, and the commit of the next attempt never reaches the server: the
/// connection is gone. Returns how many rows there are then; the newer content has two.
async fn cut_off(weakened: &[(&str, &str)]) -> usize {
    let shop = warehouse(TestDatabase::postgres().await).await;
    well(&shop, &window("overwrite"), Ask::Once).await;
    shop.execute("insert into orders values (6, '2026-06-09', 'asia', 3)").await;
    let mut variables = vec![("FAILPOINTS", STOPPED), ("PROJECT_LEASE", "60000")];
    variables.extend(weakened);
    let mut process = shop.process(&["run", &window("overwrite"), "--again"], &variables);
    eventually("it is about to commit", DEADLINE, async || shop.lines("struck") == ["publish.before-commit"])
        .await;
    let ended = "select cast(pg_terminate_backend(pid) as text) from pg_locks
         where database = (select oid from pg_database where datname = current_database())
             and relation = 'revenue'::regclass and granted and pid <> pg_backend_pid()
         group by pid";
    assert_eq!(shop.rows(ended).await, ["true"]);
    process.signal(Signal::CONT);
    let message = String::from_utf8(process.finish().await.stdout).unwrap();
    assert!(message.starts_with("did Ran done 2"), "{message}");
    written(&shop, "overwrite").await.len()
}

#[tokio::test]
async fn f4_a_lost_commit_is_not_mistaken_for_that_of_an_earlier_attempt() {
    assert_eq!(cut_off(&[]).await, 3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("find.sql");
    let weak = "-- Of whichever attempt.\nselect target, rows from refrain_publishes where ledger = $1 \
         and fence = $2 and $3 > 0\n";
    std::fs::write(&path, weak).unwrap();
    let weakened = format!("sql/publish/find.sql={}", path.display());
    assert_eq!(cut_off(&[("REFRAIN_WEAKENED", &weakened)]).await, 2, "the rows of the first attempt");
}
