//! `land` with its view: rows delivered more than once occur in the view once.

use refrain::Ask;

use crate::warehouse::{daily, fails, well};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

const PUBLISH: &str = r#"
    [publish]
    table = "raw_clicks"
    mode = "land"
    view = "clicks"
"#;

/// A source without ids, which returns all of its last days whenever it is read.
const QUERY: &str = "query = \"select at, page from log\"";

async fn clicks(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    let moment = shop.either("text", "timestamp");
    shop.execute(&format!(
        "create table log (at {moment}, page text);
         create table raw_clicks (at {moment}, page text, source text not null, \
         content_hash text not null,
             occurrence integer not null, unique (source, content_hash, occurrence));
         insert into log values ('2026-06-08 10:00:00', '/'), ('2026-06-09 10:00:00', '/'), \
         ('2026-06-09 10:00:00', '/'), ('2026-06-09 11:00:00', '/buy')"
    ))
    .await;
    daily(&shop, "clicks", &format!("{QUERY}\n{PUBLISH}"));
    shop
}

/// Runs a window; on a server the statement for the view is printed first, and executed unchanged.
async fn lands(shop: &TestProject, run: &str) {
    if !shop.database.is_sqlite() {
        let message = fails(shop, run).await;
        assert!(message.contains("the view `clicks` does not exist"), "{message}");
        let (_, statement) = message.split_once("create it: ").unwrap();
        shop.execute(statement).await;
    }
    well(shop, run, Ask::Again).await;
}

const COUNTS: &str = "select (select cast(count(*) as text) from raw_clicks) \
     || ' ' || (select cast(count(*) as text) from clicks)";

#[both_databases]
async fn m25_an_event_of_two_overlapping_windows_is_once_in_the_view(database: TestDatabase) {
    let shop = clicks(database).await;
    lands(&shop, "clicks@2026-06-08").await;
    assert_eq!(shop.rows(COUNTS).await, ["4 3"], "two rows with the same content are one in the view");
    well(&shop, "clicks@2026-06-09", Ask::Once).await;
    well(&shop, "clicks@2026-06-09", Ask::Again).await;
    assert_eq!(shop.rows(COUNTS).await, ["8 3"]);
    assert_eq!(shop.rows("select page from clicks order by at, page").await, ["/", "/", "/buy"]);
    let hashes = "select cast(count(*) as text) from clicks join raw_clicks as r on r.content_hash = \
         clicks.content_hash";
    assert_eq!(shop.rows(hashes).await, ["8"]);
}

#[both_databases]
async fn units_that_land_have_a_view_as_well(database: TestDatabase) {
    let shop = clicks(database).await;
    daily(&shop, "clicks", &format!("{QUERY}\n[unit]\nkey = \"{{$content}}\"\n{PUBLISH}"));
    lands(&shop, "clicks@2026-06-08").await;
    well(&shop, "clicks@2026-06-09", Ask::Once).await;
    assert_eq!(shop.rows(COUNTS).await, ["6 3"]);
}

#[both_databases]
async fn another_object_with_the_name_of_the_view_is_left_unchanged(database: TestDatabase) {
    let shop = clicks(database).await;
    shop.execute("create table clicks (content_hash text, at text, page text)").await;
    let message = fails(&shop, "clicks@2026-06-08").await;
    assert!(
        message.contains("`clicks` exists and is not a view")
            && message.contains("create view \"clicks\" as select"),
        "{message}"
    );
    assert_eq!(shop.rows(COUNTS).await, ["0 0"]);
}

#[both_databases]
async fn a_view_without_a_new_column_is_reported_with_advice(database: TestDatabase) {
    let shop = clicks(database).await;
    lands(&shop, "clicks@2026-06-08").await;
    shop.execute("alter table raw_clicks add column agent text").await;
    let message = fails(&shop, "clicks@2026-06-09").await;
    assert!(message.contains("the view `clicks` lacks the column `agent` of `raw_clicks`"), "{message}");
    let (_, statement) = message.split_once("recreate it: ").unwrap();
    shop.execute(statement).await;
    well(&shop, "clicks@2026-06-09", Ask::Again).await;
    assert_eq!(
        shop.rows("select page from clicks where agent is null order by at, page").await,
        ["/", "/", "/buy"]
    );
}

#[both_databases]
async fn a_missing_table_is_reported_and_no_view_is_created(database: TestDatabase) {
    let shop = clicks(database).await;
    shop.execute("drop table raw_clicks").await;
    let message = fails(&shop, "clicks@2026-06-08").await;
    assert!(message.contains("there is no table `raw_clicks`"), "{message}");
}
