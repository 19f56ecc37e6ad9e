//! A source compared with its table: missing rows, duplicates, differences and unexpected rows.

use refrain::admin::{Difference, Differences, Reconciled};
use refrain::project::Project;

use crate::sync::{RUN, Sync, lines};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const BULK: &str = r#"
    [publish]
    database = "shop"
    table = "invoices"
    mode = "merge"
    key = ["id"]
    ledger = false
"#;
const LAND: &str = r#"
    [publish]
    database = "shop"
    table = "raw"
    mode = "land"
    ledger = false
"#;
const COMMAND: &str = "command = [\"./list\"]\noutput = \"units\"";

async fn reconcile(sync: &Sync) -> Result<Reconciled, String> {
    let project = Project::load(sync.shop.root()).unwrap();
    let refrain = sync.shop.open().await;
    let reconciled = refrain.reconcile(&project, RUN).await;
    refrain.close().await;
    project.close().await;
    reconciled.map_err(|error| error.to_string())
}

async fn differences(sync: &Sync) -> Vec<String> {
    lines_of(&reconcile(sync).await.unwrap().differences)
}

/// `lost invoice:1, invoice:2` for each way in which source and table differ.
fn lines_of(found: &Differences) -> Vec<String> {
    let Differences { lost, duplicated, changed, extra, unfit, .. } = found;
    let all = [
        ("lost", lost),
        ("duplicated", duplicated),
        ("changed", changed),
        ("extra", extra),
        ("unfit", unfit),
    ];
    let differing = all.into_iter().filter(|(_, difference)| difference.count > 0);
    let line = |(how, difference): (&str, &Difference)| {
        assert_eq!(difference.count, difference.first.len() as u64);
        format!("{how} {}", difference.first.join(", "))
    };
    differing.map(line).collect()
}

/// The same is in both.
const NONE: [String; 0] = [];

/// How many units: a million where everything is tried.
fn many() -> u32 {
    if std::env::var_os("REFRAIN_FULL").is_some() { 1_000_000 } else { 20_000 }
}

#[both_databases]
async fn m29_a_planted_duplicate_and_loss_are_found_without_ledger_entries(database: TestDatabase) {
    let sync = Sync::of(database).await;
    sync.shop
        .execute("create table many (id bigint, total bigint); create unique index once on many (id)")
        .await;
    sync.job(COMMAND, "timeout = \"30m\"", "", &BULK.replace("invoices", "many"));
    let last = many();
    let text = format!(
        "#!/bin/sh\nseq 1 {last} | awk '{{ print \"{{\\\"id\\\":\" $1 \",\\\"total\\\":\" $1 * 10 \
         \"}}\" }}'\n"
    );
    sync.shop.program("list", &text);
    let (became, message) = sync.run().await;
    assert_eq!(became, "Ran done 1", "{message}");
    let entries = sync.shop.either("select key from refrain_units", "select key from refrain.units");
    assert_eq!(sync.shop.rows(entries).await.len(), last as usize / 10_000, "one row a page");
    let agrees = reconcile(&sync).await.unwrap();
    assert_eq!((agrees.units, agrees.differences.is_empty()), (u64::from(last), true));

    sync.shop
        .execute(
            "drop index once; insert into many select * from many where id = 12345; \
         delete from many where id = 777",
        )
        .await;
    let found = differences(&sync).await;
    let expected = ["lost invoice:777", "duplicated invoice:12345"];
    assert_eq!(found, expected);
}

#[both_databases]
async fn reconcile_compares_the_table_and_not_the_ledger(database: TestDatabase) {
    for more in [BULK.to_owned(), BULK.replace("ledger = false\n", "")] {
        let sync = Sync::of(TestDatabase::like(&database).await).await;
        sync.job(COMMAND, "", "", &format!("{more}owns = \"at = cast(:ds as text)\"\n"));
        sync.source((1..=30).map(|id| format!("{{\"id\":{id},\"total\":10,\"at\":\"2020-06-09\"}}")));
        assert_eq!(sync.run().await.0, "Ran done 1");
        assert_eq!(differences(&sync).await, NONE);
        sync.shop
            .execute(
                "update invoices set total = 1 where id = 3; delete from invoices where id > 28;
                insert into invoices (id, total, at) values (99, 1, '2020-06-09'), (100, 1, '2020-06-10')",
            )
            .await;
        let rows = sync.invoices().await;
        let expected = ["lost invoice:29, invoice:30", "changed invoice:3", "extra id=99"];
        assert_eq!(differences(&sync).await, expected);
        assert_eq!((sync.invoices().await, sync.counts().await.len()), (rows, 1), "it writes nothing");
    }
}

/// A file has no functions that write.
#[tokio::test]
async fn a_query_that_would_write_is_not_executed_by_reconcile() {
    let sync = Sync::of(TestDatabase::postgres().await).await;
    sync.shop
        .execute(
            "create table readings (at timestamptz);
             create function listed() returns table (id bigint, total integer) language plpgsql as $$ begin
                 insert into readings values (now()); return query select cast(1 as bigint), 10; end $$",
        )
        .await;
    sync.job("database = \"shop\"\nquery = \"select id, total from listed()\"", "", "", BULK);
    assert_eq!(sync.run().await.0, "Ran done 1");
    let readings = "select cast(count(*) as text) from readings";
    assert_eq!(sync.shop.rows(readings).await, ["1"]);
    let refused = reconcile(&sync).await.unwrap_err();
    assert!(refused.contains("read-only transaction"), "{refused}");
    assert_eq!(sync.shop.rows(readings).await, ["1"]);
}

#[both_databases]
async fn columns_that_units_do_not_have_are_not_compared(database: TestDatabase) {
    for more in [BULK.to_owned(), BULK.replace("ledger = false\n", "")] {
        let sync = Sync::of(TestDatabase::like(&database).await).await;
        sync.job(COMMAND, "", "", &more);
        sync.source((1..=4).map(|id| format!("{{\"id\":{id},\"total\":10,\"at\":\"noon\"}}")));
        assert_eq!(sync.run().await.0, "Ran done 1");
        sync.source([
            "{\"id\":1,\"total\":11}",
            "{\"id\":2,\"total\":10,\"at\":null}",
            "{\"id\":3,\"total\":10,\"at\":\"noon\"}",
            "{\"id\":4,\"total\":10,\"ta\":null}",
        ]);
        let found = differences(&sync).await;
        let expected = ["changed invoice:1, invoice:2", "unfit invoice:4"];
        assert_eq!(
            found, expected,
            "null is something to say, and a field that the table lacks is one that it lacks"
        );
        assert_ne!(sync.again().await.0, "Ran done 2", "the last one cannot be written");
        let at = sync.shop.rows("select coalesce(at, 'nothing') from invoices order by id").await;
        assert_eq!(at, ["noon", "nothing", "noon", "noon"], "what is not spoken of is left alone");
        let expected = ["unfit invoice:4"];
        assert_eq!(differences(&sync).await, expected);
    }
}

#[both_databases]
async fn unstorable_values_and_malformed_lines_are_distinguished(database: TestDatabase) {
    let sync = Sync::of(database).await;
    sync.job(COMMAND, "", "", BULK);
    let mut source = lines(1..=40);
    source[6] = String::from("{\"id\":7,\"totl\":70}");
    source.extend(["odd".to_owned(), "{\"id\":1,\"total\":11}".to_owned()]);
    sync.source(&source);
    assert_eq!(sync.run().await.0, "Ran due 2");
    let found = reconcile(&sync).await.unwrap();
    assert_eq!(
        (found.units, found.unreadable),
        (40, 1),
        "one unit occurs twice, and its last content counts"
    );
    assert_eq!(lines_of(&found.differences), ["unfit invoice:7"]);
}

#[both_databases]
async fn landed_rows_are_compared_by_content(database: TestDatabase) {
    let sync = Sync::of(database).await;
    sync.shop
        .execute(
            "create table raw (id bigint, total bigint, note text, source text, \
         content_hash text, occurrence integer,
            unique (source, content_hash, occurrence))",
        )
        .await;
    sync.job(COMMAND, "", "", LAND);
    sync.source(lines(1..=9).into_iter().chain(["{\"id\":10,\"total\":100,\"note\":\"x\"}".to_owned()]));
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(differences(&sync).await, NONE);
    sync.shop
        .execute(
            "delete from raw where id = 2; insert into raw select id, total, note, source, \
         content_hash, 2 from raw where id = 5",
        )
        .await;
    let expected = ["lost invoice:2", "duplicated invoice:5"];
    assert_eq!(differences(&sync).await, expected);
}

#[both_databases]
async fn reconcile_neither_uses_nor_moves_a_checkpoint(database: TestDatabase) {
    let sync = Sync::of(database).await;
    sync.job(COMMAND, "", "", &format!("[cursor]\n{BULK}"));
    sync.shop.program("list", "#!/bin/sh\n[ -n \"$REFRAIN_CURSOR\" ] || cat source\n");
    sync.source(lines(1..=3).into_iter().chain(["{\"$cursor\":\"a\"}".to_owned()]));
    assert_eq!(sync.run().await.0, "Ran done 1");
    sync.source(lines(1..=4).into_iter().chain(["{\"$cursor\":\"b\"}".to_owned()]));
    assert_eq!(differences(&sync).await, ["lost invoice:4"]);
    assert_eq!(sync.position().await, ["a"]);
}

#[both_databases]
async fn reconcile_reports_no_difference_for_an_unfinished_source(database: TestDatabase) {
    let sync = Sync::of(database).await;
    sync.job(COMMAND, "", "", BULK);
    sync.source(lines(1..=3));
    sync.shop.program("list", "#!/bin/sh\ncat source\necho 'no more' >&2\nexit 3\n");
    assert_eq!(reconcile(&sync).await.unwrap_err(), "exit code 3\nno more\n  nothing was compared");
    sync.job("database = \"shop\"\nquery = \"select id, total from invoices\"", "", "", BULK);
    assert_eq!(reconcile(&sync).await.unwrap().units, 0);
}
