//! What cannot be published is refused with a clear error, and no row is written.

use refrain::Ask;

use crate::warehouse::{daily, fails, warehouse, well, window, written};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const OVERWRITE: &str = "mode = \"overwrite\"\nowns = \"day = :ds\"";

#[both_databases]
async fn rows_outside_owns_are_refused_and_the_table_is_unchanged(database: TestDatabase) {
    let shop = warehouse(database).await;
    well(&shop, &window("overwrite"), Ask::Once).await;
    let before = written(&shop, "overwrite").await;
    for (query, count) in [
        ("select day, region, amount from orders", "1 of 5"),
        ("select day, region, amount from orders where day = :ds union all select null, 'x', 1", "1 of 5"),
    ] {
        daily(
            &shop,
            "overwrite",
            &format!(
                r#"
                    query = "{query}"
                    [publish]
                    table = "revenue"
                    {OVERWRITE}
                "#
            ),
        );
        let message = fails(&shop, &window("overwrite")).await;
        assert!(message.contains(&format!("{count} rows lie outside of `owns` (day = :ds)")), "{message}");
        assert!(message.contains("nothing was published"), "{message}");
        assert_eq!(written(&shop, "overwrite").await, before);
    }
}

#[both_databases]
async fn a_failed_check_publishes_nothing(database: TestDatabase) {
    let shop = warehouse(database).await;
    let query = "query = \"select day, region, amount from orders where day = :ds\"";
    for (check, holds) in [
        ("count(*) > 3", true),
        ("count(*) > 4", false),
        ("amount > 7", false),
        ("sum(amount) = 44", true),
        ("day = :ds", true),
        ("null = 1", false),
    ] {
        daily(
            &shop,
            "overwrite",
            &format!("{query}\n[publish]\ntable = \"revenue\"\n{OVERWRITE}\ncheck = [\"{check}\"]"),
        );
        shop.execute("delete from revenue").await;
        if holds {
            well(&shop, &window("overwrite"), Ask::Again).await;
        } else {
            let message = fails(&shop, &window("overwrite")).await;
            assert!(message.contains(&format!("`check` does not hold: {check}")), "{message}");
        }
        assert_eq!(written(&shop, "overwrite").await.is_empty(), !holds, "{check}");
    }
}

#[both_databases]
async fn m30_a_key_without_a_unique_index_is_reported_with_advice(database: TestDatabase) {
    let shop = warehouse(database).await;
    shop.execute("create table plain (region text, amount integer)").await;
    for mode in [
        "mode = \"merge\"\nkey = [\"region\"]",
        "mode = \"apply-delta\"\nkey = [\"region\"]\ncolumns = [\"amount\"]",
    ] {
        daily(
            &shop,
            "plain",
            &format!(
                r#"
                    query = "select 'eu' as region, 1 as amount"
                    [publish]
                    table = "plain"
                    {mode}
                "#
            ),
        );
        let message = fails(&shop, "plain@2026-06-09").await;
        assert!(message.contains("needs a unique constraint on `plain` (region)"), "{message}");
        let (_, advice) = message.split_once("add it: ").unwrap();
        assert_eq!(advice, "create unique index \"plain_region\" on \"plain\" (\"region\")");
    }
    shop.execute(
        "insert into plain values ('eu', 5); create unique index \"plain_region\" on \"plain\" (\"region\")",
    )
    .await;
    well(&shop, "plain@2026-06-09", Ask::Again).await;
    let partial = "drop index plain_region; create unique index partly on plain (region) where amount > 0";
    shop.execute(partial).await;
    assert!(fails(&shop, "plain@2026-06-09").await.contains("unique constraint"), "one of some rows is none");
}

#[both_databases]
async fn a_mismatch_with_the_table_is_reported_with_advice(database: TestDatabase) {
    let shop = warehouse(database).await;
    shop.remove("overwrite");
    let merge = "table = \"regions\"\nmode = \"merge\"\nkey = [\"day\", \"region\"]";
    let delta = r#"
        table = "stock"
        mode = "apply-delta"
        key = ["region"]
        columns = ["amount"]
    "#;
    for (query, publish, expected) in [
        (
            "select :ds as day, 'eu' as regoin",
            "table = \"revenue\"\nmode = \"overwrite\"\nowns = \"day = :ds\"",
            "did you mean `region`?",
        ),
        (
            "select :ds as day, 'eu' as region",
            "table = \"revenues\"\nmode = \"overwrite\"\nowns = \"day = :ds\"",
            "there is no table `revenues` in the database `shop`",
        ),
        (
            "select :ds as day, 1 as amount, 2 as amount",
            "table = \"revenue\"\nmode = \"overwrite\"\nowns = \"day = :ds\"",
            "two columns of the result are called `amount`",
        ),
        ("select :ds as day, 1 as amount", merge, "`key` names the column `region`, which the result lacks"),
        (
            "select :ds as day, null as region, 1 as amount",
            merge,
            "1 of 1 rows have an incomplete key (day, region)",
        ),
        (
            "select :ds as day, 'eu' as region, 1 as amount union all select :ds, 'eu', 2",
            merge,
            "1 keys (day, region) occur more than once in 2 rows",
        ),
        ("select day, region, amount from nowhere", merge, "nowhere"),
        ("select day, region, sum(amount) as amount from orders where", merge, "the query: "),
        ("select 'eu' as region, 1 as amount, 'x' as note", delta, "neither in `key` nor in `columns`"),
        ("select 'mars' as region, 1 as amount", delta, "1 keys (region) are not in `stock`"),
        (
            "select 'eu' as region, cast(null as integer) as amount",
            delta,
            "1 of 1 rows have no number (amount)",
        ),
        (
            "select 'eu' as region, 1 as amount",
            "table = \"raw_events\"\nmode = \"land\"",
            "create it with the columns region, amount, source, content_hash, occurrence",
        ),
    ] {
        daily(&shop, "odd", &format!("query = \"{query}\"\n[publish]\n{publish}"));
        let message = fails(&shop, "odd@2026-06-09").await;
        assert!(message.contains(expected), "{query}: {message}");
    }
    for mode in ["overwrite", "merge", "append", "land"] {
        assert!(written(&shop, mode).await.is_empty(), "{mode}");
    }
    assert_eq!(written(&shop, "delta").await, ["asia 1000 c", "eu 1000 a", "us 1000 b"]);
}

#[both_databases]
async fn a_violated_constraint_keeps_the_old_rows(database: TestDatabase) {
    let shop = warehouse(database).await;
    shop.execute(
        "create table strict_regions (day date not null, region text not null check (region <> \
         'us'), amount integer)",
    )
    .await;
    shop.execute("insert into strict_regions values ('2026-06-09', 'old', 1)").await;
    daily(
        &shop,
        "strict",
        &format!(
            r#"
                query = "select day, region, amount from orders where day = :ds"
                [publish]
                table = "strict_regions"
                {OVERWRITE}
            "#
        ),
    );
    let message = fails(&shop, "strict@2026-06-09").await;
    assert!(
        message.contains("`strict_regions`: ") && message.to_lowercase().contains("check constraint"),
        "{message}"
    );
    let rows = "select region from strict_regions";
    assert_eq!(shop.rows(rows).await, ["old"], "the old rows are still there");
}

#[tokio::test]
async fn errors_of_the_server_about_types_and_permissions_are_reported() {
    let shop = warehouse(TestDatabase::postgres().await).await;
    shop.remove("overwrite");
    daily(
        &shop,
        "odd",
        &format!(
            r#"
                query = "select 'x' as day, 'eu' as region"
                [publish]
                table = "revenue"
                {OVERWRITE}
            "#
        ),
    );
    let message = fails(&shop, "odd@2026-06-09").await;
    assert!(message.contains("invalid input syntax for type date"), "{message}");
    daily(
        &shop,
        "odd",
        &format!(
            r#"
                query = "select cast('x' as text) as day"
                [publish]
                table = "revenue"
                {OVERWRITE}
            "#
        ),
    );
    let message = fails(&shop, "odd@2026-06-09").await;
    assert!(message.contains("column \"day\" is of type date but expression is of type text"), "{message}");
}

#[tokio::test]
async fn a_destination_without_permission_is_named_and_nothing_is_written() {
    let shop = warehouse(TestDatabase::postgres().await).await;
    shop.open().await.close().await;
    let url = shop.database.url();
    let database = url.rsplit('/').next().unwrap();
    let name = format!("limited_{database}");
    shop.execute(&format!(
        "create role {name} login password 'x'; grant create on database {database} to {name};
         grant all on schema refrain to {name}; grant usage on schema public to {name}; \
         grant all on all tables in schema refrain to {name};
         grant all on all sequences in schema refrain to {name}; \
         grant select on orders, revenue to {name}"
    ))
    .await;
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, place) = rest.split_once('@').unwrap();
    shop.settings(&url, &format!("shop = \"{scheme}://{name}:x@{place}\""));
    let message = fails(&shop, &window("overwrite")).await;
    shop.execute(&format!("drop owned by {name}; drop role {name}")).await;
    assert!(message.contains("permission denied for table revenue"), "{message}");
    assert!(written(&shop, "overwrite").await.is_empty());
}
