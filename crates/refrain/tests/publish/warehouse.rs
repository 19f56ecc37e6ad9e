//! A shop with orders, and for each mode a job that publishes results of them.

use refrain::{Ask, RunReport};

use refrain_harness::TestDatabase;
use refrain_harness::project::TestProject;

/// The modes, each with the job of that name and the rows that one clean run of its window leaves.
pub(crate) const MODES: [&str; 5] = ["overwrite", "merge", "append", "delta", "land"];

const WHEN: &str = r#"
    schedule = "@daily"
    window = "day"
    start = 2026-06-01
    catch-up = "all"
    retry = { attempts = 1 }
"#;

pub(crate) const DAY: &str = "2026-06-09";

/// A job of this name with daily windows.
pub(crate) fn daily(shop: &TestProject, name: &str, text: &str) {
    shop.job(name, &format!("{WHEN}{text}\n"));
}

/// Orders of two days, a table for each mode, and a job for each.
pub(crate) async fn warehouse(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    tables(&shop).await;
    for mode in MODES {
        daily(&shop, mode, job(mode));
    }
    shop
}

pub(crate) async fn tables(shop: &TestProject) {
    let (id, number) = (shop.either("text", "uuid"), shop.either("integer", "bigint"));
    shop.execute(&format!(
        "create table orders (id integer primary key, day date, region text, amount {number});
         create table revenue (revenue_sk {id}, day date, region text, amount {number}, \
         computed_version integer);
         create table regions (day date, region text, amount {number}, computed_version integer, \
         primary key (day, region));
         create table sales (sales_sk {id}, day date, region text, amount {number});
         create table stock (region text primary key, amount {number} not null, note text);
         create table raw (day date, region text, amount {number}, source text not null, \
         content_hash text not null,
             occurrence integer not null, unique (source, content_hash, occurrence));
         insert into orders values (1, '2026-06-08', 'eu', 5), (2, '2026-06-09', 'eu', 10), \
         (3, '2026-06-09', 'eu', 20),
             (4, '2026-06-09', 'us', 7), (5, '2026-06-09', 'us', 7);
         insert into stock values ('eu', 1000, 'a'), ('us', 1000, 'b'), ('asia', 1000, 'c')"
    ))
    .await;
}

fn job(mode: &str) -> &'static str {
    match mode {
        "overwrite" => {
            r#"
                query = "select sum(amount) as amount, region, :ds as day from orders where day = :ds group by region"
                [publish]
                table = "revenue"
                mode = "overwrite"
                owns = "day = :ds"
                stamp = "computed_version"
                surrogate = { revenue_sk = ["day", "region"] }
                check = ["count(*) > 0", "amount >= 0"]
            "#
        }
        "merge" => {
            r#"
                query = "select :ds as day, region, sum(amount) as amount from orders where day = :ds group by region"
                [publish]
                table = "regions"
                mode = "merge"
                key = ["day", "region"]
                owns = "day = :ds"
                delete-missing = true
                stamp = "computed_version"
            "#
        }
        "append" => {
            r#"
                query = "select day, region, sum(amount) as amount from orders where day = :ds group by day, region"
                [publish]
                table = "sales"
                mode = "append-once"
                key = ["day", "region"]
                on-change = "first"
                surrogate = { sales_sk = ["day", "region"] }
            "#
        }
        "delta" => {
            r#"
                query = "select region, -sum(amount) as amount from orders where day = :ds group by region"
                [publish]
                table = "stock"
                mode = "apply-delta"
                key = ["region"]
                columns = ["amount"]
            "#
        }
        _ => {
            r#"
                query = "select day, region, amount from orders where day = :ds"
                [publish]
                table = "raw"
                mode = "land"
            "#
        }
    }
}

/// Everything that the jobs have written, as lines.
pub(crate) async fn written(shop: &TestProject, mode: &str) -> Vec<String> {
    let text = |columns: &[&str]| {
        let texts: Vec<String> =
            columns.iter().map(|column| format!("coalesce(cast({column} as text), 'null')")).collect();
        texts.join(" || ' ' || ")
    };
    let query = match mode {
        "overwrite" => format!(
            "select {} from revenue order by 1",
            text(&["day", "region", "amount", "revenue_sk", "computed_version"])
        ),
        "merge" => format!(
            "select {} from regions order by 1",
            text(&["day", "region", "amount", "computed_version"])
        ),
        "append" => {
            format!("select {} from sales order by 1", text(&["day", "region", "amount", "sales_sk"]))
        }
        "delta" => format!("select {} from stock order by 1", text(&["region", "amount", "note"])),
        _ => format!(
            "select {} from raw order by 1",
            text(&["day", "region", "amount", "content_hash", "occurrence"])
        ),
    };
    shop.rows(&query).await
}

pub(crate) fn window(mode: &str) -> String {
    format!("{mode}@{DAY}")
}

/// Requests a run, which must succeed.
pub(crate) async fn well(shop: &TestProject, run: &str, ask: Ask) -> RunReport {
    let report = shop.run(run, ask).await;
    assert!(report.is_done(), "{run}: {:?}", report.run.message);
    report
}

/// Requests a run, which must fail, and returns its message.
pub(crate) async fn fails(shop: &TestProject, run: &str) -> String {
    let report = shop.run(run, Ask::Again).await;
    assert!(!report.is_done(), "{run} went well");
    report.run.message.clone().unwrap_or_default()
}
