//! The jobs of revenue and of inventory in the documentation, repeated again and again.

use refrain::Ask;

use crate::warehouse::well;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

const REVENUE: &str = r#"schedule = "0 2 * * *"
timezone = "Europe/Berlin"
window   = "day"                       # hour | day | week | month | "15m" | tick
start    = 2026-06-01                  # the first window that must exist
catch-up = "all"                       # all | latest | none | { within = "3d" }; skipped windows get a row and a reason
while-running = "queue"                # queue | skip | allow
dst      = { gap = "next", fold = "first" }
version  = 1                           # bump when the logic changes: finished windows become "outdated"
retry    = { attempts = 5, backoff = "30s..1h" }
timeout  = "30m"
database = "shop"
query    = "select :ds as order_date, region, sum(amount_usd) as revenue from orders_usd where order_date = :ds group by region"

[publish]
table = "revenue_daily"
mode  = "overwrite"                    # overwrite | merge | append-once | apply-delta | land
owns  = "order_date = :ds"             # the rows this window owns; output outside it is an error
surrogate = { revenue_sk = ["order_date", "region"] }
check = ["count(*) > 0"]               # must hold on the staged rows, or nothing is published
"#;

const INVENTORY: &str = r#"schedule = "0 3 * * *"
window   = "day"
database = "shop"
[[step]]                               # append + sequence id → overwrite + derived id
query = "select :ds as ds, sku, source_id, delta from raw_adjustments where ds = :ds"
publish = { table = "adjustments", mode = "overwrite", owns = "ds = :ds", surrogate = { txn_id = ["ds", "sku", "source_id"] } }
[[step]]                               # qty = qty - delta → apply the difference to what this window applied before
query = "select sku, -sum(delta) as qty from adjustments where ds = :ds group by sku"
publish = { table = "stock_levels", mode = "apply-delta", key = ["sku"], columns = ["qty"] }
"#;

const INVOICES: &str = r#"schedule = "@hourly"
command  = ["./list-invoices"]         # REFRAIN_WATERMARK / REFRAIN_CURSOR in its environment
output   = "units"                     # one JSON object a line is a unit; {"$cursor":"…"} ends a page; default "log"
[unit]
key = "invoice:{id}"
order = "updated_at"
on-change = "update"
[watermark]
field = "updated_at"
overlap = "10m"
[publish]                              # or, per unit: [unit] command = […] | http = {…}
database = "shop"
table = "invoices"
mode  = "merge"
key   = ["source_system", "id"]
"#;

#[both_databases]
async fn m6_any_script_that_prints_json_lines_becomes_a_resumable_sync(database: TestDatabase) {
    let shop = TestProject::of(database);
    let moment = shop.either("text", "timestamptz");
    shop.execute(&format!(
        "create table invoices (source_system text, id integer, email text, total numeric, \
         updated_at {moment}, primary key (source_system, id))"
    ))
    .await;
    shop.job("invoice-sync", INVOICES);
    let print = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("echo '{line}'")).collect();
        shop.program(
            "list-invoices",
            &format!("#!/bin/sh\necho \"$REFRAIN_WATERMARK\" >> asked\n{}\n", lines.join("\n")),
        );
    };
    let rows = async || {
        shop.rows(
            "select source_system || ' ' || cast(id as text) || ' ' || cast(total as text) \
             from invoices order by id",
        )
        .await
    };
    let first =
        r#"{"source_system":"erp","id":1,"email":"a@b.c","total":10,"updated_at":"2026-06-09T10:00:00Z"}"#;
    let second =
        r#"{"source_system":"erp","id":2,"email":"a@b.c","total":5,"updated_at":"2026-06-09T11:00:00Z"}"#;
    let newer =
        r#"{"source_system":"erp","id":1,"email":"a@b.c","total":12,"updated_at":"2026-06-09T12:00:00Z"}"#;
    print(&[first, second]);
    let ran = async |words: &[&str]| assert!(shop.done(words).await.starts_with("did Ran done"), "{words:?}");
    shop.open().await.close().await;
    ran(&["run", "invoice-sync@2026-06-09T11:00"]).await;
    assert_eq!(rows().await, ["erp 1 10", "erp 2 5"]);
    print(&[newer, second]);
    ran(&["run", "invoice-sync@2026-06-09T12:00"]).await;
    print(&[first, second]);
    ran(&["run", "invoice-sync@2026-06-09T12:00", "--again"]).await;
    assert_eq!(rows().await, ["erp 1 12", "erp 2 5"], "a slow reader does not overwrite newer content");
    assert_eq!(shop.lines("asked")[..2], ["", "2026-06-09T10:50:00Z"], "read back by the overlap");
}

#[both_databases]
async fn m18_nightly_revenue_cannot_count_double(database: TestDatabase) {
    let shop = TestProject::of(database);
    let (id, money) = (shop.either("text", "uuid"), shop.either("numeric", "numeric(12, 2)"));
    shop.execute(&format!(
        "create table orders_usd (order_date date, region text, amount_usd {money});
             create table revenue_daily (revenue_sk {id} primary key, order_date date not null, \
             region text not null, revenue {money});
             insert into orders_usd values ('2026-06-09', 'EU', 10.50), ('2026-06-09', 'EU', 1), \
             ('2026-06-09', 'US', 3), ('2026-06-10', 'EU', 4)"
    ))
    .await;
    shop.job("revenue-daily", REVENUE);
    let rows = async || {
        let columns = "cast(revenue_sk as text) || ' ' || cast(order_date as text) \
             || ' ' || region || ' ' || cast(cast(revenue as float) as text)";
        shop.rows(&format!("select {columns} from revenue_daily order by order_date, region")).await
    };
    well(&shop, "revenue-daily@2026-06-09", Ask::Once).await;
    let once = rows().await;
    assert_eq!(
        once[0], "7307c0ae-2941-86b3-a801-096c4b8112d6 2026-06-09 EU 11.5",
        "the id is that of every machine"
    );
    assert!(once[1].ends_with(shop.either("US 3.0", "US 3")), "{once:?}");
    well(&shop, "revenue-daily@2026-06-10", Ask::Once).await;
    well(&shop, "revenue-daily@2026-06-09", Ask::Again).await;
    assert_eq!(rows().await[..2], once, "a rerun leaves the same bytes");
    assert_eq!(rows().await.len(), 3);
}

#[both_databases]
async fn an_inventory_is_adjusted_once_for_any_column_types(database: TestDatabase) {
    for (number, (sku, one, other)) in [
        ("integer", "1", "2"),
        ("text", "'a'", "'it''s'"),
        ("date", "'2026-01-01'", "'2026-01-02'"),
        ("timestamp with time zone", "'2026-01-01 10:00:00+00'", "'2026-01-01 11:00:00+00'"),
        ("bigint", "9007199254740993", "2"),
    ]
    .into_iter()
    .enumerate()
    {
        let shop = TestProject::of(TestDatabase::like(&database).await);
        let id = shop.either("text", "uuid");
        shop.execute(&format!(
            "create table raw_adjustments (ds date, sku {sku}, source_id integer, delta integer);
                 create table adjustments (txn_id {id} unique, ds date, sku {sku}, source_id integer, \
                 delta integer);
                 create table stock_levels (sku {sku} primary key, qty integer not null);
                 insert into stock_levels values ({one}, 100), ({other}, 100);
                 insert into raw_adjustments values ('2026-06-09', {one}, 1, 5), \
                 ('2026-06-09', {one}, 2, 2), ('2026-06-09', {other}, 1, 1)"
        ))
        .await;
        shop.job("inventory-adjustments", INVENTORY);
        for _ in 0..3 {
            well(&shop, "inventory-adjustments@2026-06-09", Ask::Again).await;
        }
        let stock = "select cast(qty as text) from stock_levels order by stock_levels.qty";
        assert_eq!(shop.rows(stock).await, ["93", "99"], "{number} {sku}");
        shop.execute(&format!("delete from raw_adjustments where sku = {other}")).await;
        well(&shop, "inventory-adjustments@2026-06-09", Ask::Again).await;
        assert_eq!(shop.rows(stock).await, ["93", "100"], "{sku}: what vanished is taken back");
    }
}
