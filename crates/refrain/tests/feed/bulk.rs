//! Units without a ledger entry each: a page is one row of the ledger, and the key of the table
//! keeps each unit once.

use crate::cursors::PAGES;
use crate::sync::{RUN, Says, Sync, lines, rows, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

/// Three pages: more units than fit in two.
const MANY: u32 = 25_000;

const ORPHAN: &str = "{\"id\":4,\"total\":40,\"customer\":9}";

/// A sync whose units have no entries.
async fn bulk(database: TestDatabase, says: Says<'_>) -> Sync {
    let sync = Sync::of(database).await;
    bulk_says(&sync, says, "merge", "key = [\"id\"]\n");
    sync
}

fn bulk_says(sync: &Sync, Says { top, unit, more }: Says<'_>, mode: &str, key: &str) {
    let into = format!(
        "{more}[publish]\ndatabase = \"shop\"\ntable = \"invoices\"\nmode = \"{mode}\"\n{key}ledger = false\n"
    );
    sync.job("command = [\"./list\"]\noutput = \"units\"", top, unit, &into);
}

/// All rows of the ledger, as `key status count`.
async fn entries(sync: &Sync) -> Vec<String> {
    let query = sync.shop.either(
        "select key || ' ' || status || ' ' || coalesce(cast(input ->> 'count' as text), \
         '') from refrain_units order by key",
        "select key || ' ' || status || ' ' || coalesce(cast(input as json) ->> 'count', '') \
         from refrain.units order by key",
    );
    sync.shop.rows(query).await
}

#[both_databases]
async fn a_page_is_one_record_and_a_repeated_page_is_not_rewritten(database: TestDatabase) {
    let sync = bulk(database, Says::default()).await;
    sync.source(lines(1..=MANY));
    assert_eq!(sync.run().await.0, "Ran done 1");
    let pages =
        ["$page:0000000001 applied 10000", "$page:0000000002 applied 10000", "$page:0000000003 applied 5000"];
    assert_eq!(entries(&sync).await, pages);
    let mut shuffled = lines(1..=MANY);
    shuffled[..10_000].reverse();
    shuffled[15_000] = String::from("{\"id\":15001,\"total\":1}");
    sync.source(shuffled);
    assert_eq!(sync.again().await.0, "Ran done 2");
    assert_eq!(entries(&sync).await, pages);
    // Pages after a changed page are written again: a unit may have moved from there.
    assert_eq!(sync.counts().await, [[25_000, 0, 0, 0], [15_000, 0, 10_000, 0]]);
    let changed = sync.shop.rows("select cast(total as text) from invoices where id = 15001").await;
    assert_eq!(
        (sync.writes().await.len(), changed),
        (25_001, vec!["1".to_owned()]),
        "what says the same stays as it is"
    );
}

#[both_databases]
async fn a_unit_that_moves_between_pages_matches_the_source(database: TestDatabase) {
    let sync = bulk(database, Says::default()).await;
    let long = lines(1..=10_001);
    let mut short = lines(2..=10_000);
    short.push("{\"id\":10001,\"total\":7}".to_owned());
    for (source, total) in [(&long, "100010"), (&short, "7"), (&long, "100010")] {
        sync.source(source);
        assert!(sync.again().await.0.starts_with("Ran done"));
        assert_eq!(
            sync.shop.rows("select cast(total as text) from invoices where id = 10001").await,
            [total]
        );
    }
}

#[both_databases]
async fn a_unit_given_twice_in_a_page_has_its_last_content_and_is_reported(database: TestDatabase) {
    let sync = bulk(database, Says::default()).await;
    sync.source(["{\"id\":1,\"total\":1}", "{\"id\":2,\"total\":20}", "{\"id\":1,\"total\":10}"]);
    let (became, message) = sync.run().await;
    assert_eq!(became, "Ran partial 1");
    assert!(message.contains("several contents in this attempt: `invoice:1` first"), "{message}");
    assert_eq!((sync.invoices().await, sync.counts().await), (rows(1..=2), vec![[2, 0, 1, 0]]));
    assert_eq!(entries(&sync).await, ["$page:0000000001 applied 2"]);
}

#[both_databases]
async fn a_bad_unit_is_isolated_and_the_rest_of_its_page_is_written(database: TestDatabase) {
    let sync = bulk(database, Says { top: "retry = { attempts = 3 }", ..Says::default() }).await;
    let mut source = lines(1..=300);
    source[3] = String::from(ORPHAN);
    source.insert(100, "odd".to_owned());
    sync.source(&source);
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!(sync.counts().await, [[299, 0, 0, 2]]);
    let left: Vec<String> =
        sync.left().await.iter().map(|one| one.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(left, ["$line:2020-06-09T00:00:00Z:101", "invoice:4"]);
    let page = sync.shop.rows(sync.shop.either(
        "select cast(input ->> 'count' as text) from refrain_units where status = 'applied'",
        "select cast(input as json) ->> 'count' from refrain.units where status = 'applied'",
    ));
    assert_eq!(page.await, ["300"]);
    assert_eq!(sync.writes().await.len(), 299);

    source.remove(100);
    sync.source(&source);
    sync.shop.execute("insert into customers values (9)").await;
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!((sync.invoices().await, sync.left().await), (rows(1..=300), Vec::new()));
    assert_eq!(sync.writes().await, texts(1..=300), "its neighbours were not touched");
}

#[both_databases]
async fn a_failed_unit_is_applied_once_the_source_has_corrected_it(database: TestDatabase) {
    let sync = bulk(database, Says { top: "retry = { attempts = 5 }", ..Says::default() }).await;
    let mut source = lines(1..=5);
    source[3] = String::from(ORPHAN);
    sync.source(&source);
    assert_eq!(sync.run().await.0, "Ran due 2");
    sync.source(lines(1..=5));
    let became = sync.run().await.0;
    assert!(became.ends_with('2') || became.ends_with('3'), "{became}");
    assert_eq!((sync.invoices().await, sync.left().await), (rows(1..=5), Vec::new()));
}

#[both_databases]
async fn two_rows_of_one_key_under_two_unit_keys_are_written_one_after_the_other(database: TestDatabase) {
    let sync = bulk(database, Says { unit: "key = \"{id}:{at}\"", ..Says::default() }).await;
    sync.source([
        "{\"id\":1,\"total\":1,\"at\":\"a\"}",
        "{\"id\":1,\"total\":2,\"at\":\"b\"}",
        "{\"id\":2,\"total\":20,\"at\":\"a\"}",
    ]);
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(
        (sync.invoices().await, sync.counts().await),
        (vec!["1 2".to_owned(), "2 20".to_owned()], vec![[3, 0, 0, 0]])
    );
}

#[both_databases]
async fn an_error_of_every_unit_is_blamed_on_none(database: TestDatabase) {
    let sync = bulk(database, Says::default()).await;
    sync.source((1..=100).map(|id| format!("{{\"id\":{id},\"total\":{id},\"customer\":9}}")));
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert!(
        sync.last_message().await.starts_with("20 units in a row failed"),
        "{}",
        sync.last_message().await
    );
    assert_eq!((sync.left().await, entries(&sync).await), (Vec::new(), Vec::new()));
}

#[both_databases]
async fn append_once_in_bulk_needs_a_unique_key_in_the_table(database: TestDatabase) {
    let sync = Sync::of(database).await;
    bulk_says(&sync, Says::default(), "append-once", "key = [\"id\"]\n");
    sync.source(lines(1..=20));
    assert_eq!(sync.run().await.0, "Ran done 1");
    sync.source(lines(1..=30));
    assert_eq!(sync.again().await.0, "Ran done 2");
    assert_eq!((sync.invoices().await, sync.writes().await), (rows(1..=30), texts(1..=30)));
    bulk_says(&sync, Says::default(), "append-once", "key = [\"total\"]\n");
    let (became, message) = sync.again().await;
    assert_eq!(became, "Ran failed 3");
    assert!(message.contains("`append-once` needs a unique constraint on `invoices` (total)"), "{message}");
}

#[both_databases]
async fn a_new_version_is_written_whatever_is_recorded(database: TestDatabase) {
    let sync = bulk(database, Says::default()).await;
    sync.source(lines(1..=3));
    sync.run().await;
    sync.shop.execute("delete from invoices where id = 2").await;
    assert_eq!(sync.again().await.0, "Ran done 2");
    assert_eq!(sync.invoices().await, rows([1, 3]), "the ledger has a record of it");
    bulk_says(&sync, Says { top: "version = 2", ..Says::default() }, "merge", "key = [\"id\"]\n");
    assert_eq!(sync.again().await.0, "Ran done 3");
    assert_eq!(sync.invoices().await, rows(1..=3));
}

#[both_databases]
async fn f1_killed_at_any_commit_of_a_page_each_row_is_there_once(database: TestDatabase) {
    for failpoint in [
        "page-apply.before-commit=return(kill)",
        "page-apply.after-commit=return(kill)",
        "page-apply.before-commit=1*off->return(kill)",
        "page-apply.after-commit=1*off->return(kill)",
        "page-apply.before-commit=3*off->return(kill)",
        "page-apply.after-commit=3*off->return(kill)",
        "unit-fail.before-commit=return(kill)",
        "unit-fail.after-commit=return(kill)",
        "finish.before-commit=return(kill)",
    ] {
        let sync = bulk(
            TestDatabase::like(&database).await,
            Says { top: "retry = { attempts = 9 }", ..Says::default() },
        )
        .await;
        let mut source = lines(1..=12);
        source[3] = String::from(ORPHAN);
        sync.source(&source);
        sync.killed(failpoint).await;
        sync.run().await;
        let left: Vec<String> =
            sync.left().await.iter().map(|one| one.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(left, ["invoice:4"], "{failpoint}");
        sync.shop.execute("insert into customers values (9)").await;
        let mut became = sync.run().await.0;
        if became.starts_with("Followed") {
            became = sync.run().await.0;
        }
        assert!(became.contains(" done "), "{failpoint}: {became} {:?}", sync.left().await);
        assert_eq!(
            (sync.invoices().await, sync.writes().await),
            (rows(1..=12), texts(1..=12)),
            "{failpoint}"
        );
    }
}

#[both_databases]
async fn f4_with_the_reply_to_a_page_lost_each_row_is_there_once(database: TestDatabase) {
    let sync = bulk(database, Says::default()).await;
    sync.source(lines(1..=30));
    sync.prepare().await;
    let message =
        sync.shop.done_with(&["run", RUN], &[("FAILPOINTS", "page-apply.reply=1*return(lost)")]).await;
    assert!(message.starts_with("did Ran done 1"), "{message}");
    assert_eq!((sync.counts().await, sync.writes().await), (vec![[30, 0, 0, 0]], texts(1..=30)));
}

#[both_databases]
async fn m12_a_cursor_never_precedes_its_pages(database: TestDatabase) {
    for failpoint in [
        "checkpoint.before-commit=1*off->return(kill)",
        "checkpoint.after-commit=1*off->return(kill)",
        "page-apply.before-commit=2*off->return(kill)",
        "page-apply.after-commit=2*off->return(kill)",
    ] {
        let sync =
            bulk(TestDatabase::like(&database).await, Says { more: "[cursor]\n", ..Says::default() }).await;
        sync.shop.program("list", PAGES);
        for page in 1..=5 {
            sync.shop
                .write(&format!("page-{page}"), &format!("{}\n", lines(3 * page - 2..=3 * page).join("\n")));
        }
        sync.killed(failpoint).await;
        let passed: u32 = sync.position().await.first().map_or(0, |position| position.parse().unwrap());
        assert!(sync.invoices().await.len() >= 3 * passed as usize, "{failpoint}");
        assert_eq!(sync.run().await.0, "Ran done 2", "{failpoint}");
        assert_eq!(
            (sync.position().await, sync.writes().await),
            (vec!["5".to_owned()], texts(1..=15)),
            "{failpoint}"
        );
        assert_eq!(entries(&sync).await.len(), 5, "{failpoint}: one row a page");
    }
}

#[both_databases]
async fn m6_a_watermark_moves_when_its_pages_are_written(database: TestDatabase) {
    let sync = bulk(database, Says { more: "[watermark]\nfield = \"at\"\n", ..Says::default() }).await;
    let line =
        |id: u32| format!("{{\"id\":{id},\"total\":{},\"at\":\"2020-06-09T10:00:{id:02}Z\"}}", id * 10);
    sync.source((1..=9).map(line));
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(
        (sync.position().await, sync.invoices().await),
        (vec!["2020-06-09T10:00:09Z".to_owned()], rows(1..=9))
    );
}

/// On SQLite only: on PostgreSQL no trigger can end the transaction that it is part of.
#[tokio::test]
async fn a_unit_whose_trigger_ends_the_transaction_is_isolated() {
    let in_bulk = bulk(TestDatabase::sqlite().await, Says::default()).await;
    let by_entries = Sync::into_table(TestDatabase::sqlite().await, Says::default()).await;
    for sync in [in_bulk, by_entries] {
        let refuse = "create trigger refused before insert on invoices when new.total < 0
            begin select raise(rollback, 'no invoice has such a total'); end";
        sync.shop.execute(refuse).await;
        let mut source = lines(1..=12);
        source[3] = "{\"id\":4,\"total\":-4}".to_owned();
        sync.source(&source);
        assert_eq!(sync.run().await.0, "Ran due 2");
        let left = sync.left().await;
        assert!(left.len() == 1 && left[0].starts_with("invoice:4 "), "{left:?}");
        assert!(left[0].ends_with("no invoice has such a total"), "{left:?}");
        assert_eq!(sync.counts().await, [[11, 0, 0, 1]]);
        sync.source(lines(1..=12));
        assert!(sync.run().await.0.contains(" done "));
        assert_eq!((sync.invoices().await, sync.writes().await), (rows(1..=12), texts(1..=12)));
    }
}
