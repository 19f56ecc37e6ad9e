//! The rows of a query as units.

use crate::sync::{RUN, Sync, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

async fn orders(database: TestDatabase) -> Sync {
    let sync = Sync::of(database).await;
    sync.shop
        .execute(sync.shop.either(
            "create table orders (id bigint, amount bigint, placed_at timestamp, day date)",
            "create table orders (id bigint, amount bigint, placed_at timestamptz, day date)",
        ))
        .await;
    sync.shop
        .execute(
            "insert into orders values (1, 10, '2020-06-09 08:00:00', '2020-06-09'),
             (2, 20, '2020-06-09 09:00:00', '2020-06-09'), (3, 30, '2020-06-10 09:00:00', '2020-06-10')",
        )
        .await;
    sync
}

const INTO: &str = r#"
    [publish]
    table = "invoices"
    mode = "merge"
    key = ["id"]
"#;

#[both_databases]
async fn query_rows_are_units_of_the_window_in_another_database(database: TestDatabase) {
    let sync = orders(database).await;
    let query =
        "query = \"select id, amount as total, null as at from orders where day = :ds -- all of them\"";
    sync.job(query, "database = \"shop\"", "key = \"order:{id}\"", INTO);
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(sync.invoices().await, ["1 10", "2 20"]);
    sync.shop.execute("update orders set amount = 21 where id = 2").await;
    assert_eq!(sync.again().await.0, "Ran done 2");
    assert_eq!(sync.counts().await, [[2, 0, 0, 0], [1, 0, 1, 0]]);
    assert_eq!(
        (sync.invoices().await, sync.writes().await),
        (vec!["1 10".to_owned(), "2 21".to_owned()], texts([1, 2, 2]))
    );
}

#[both_databases]
async fn m6_a_query_reads_from_the_watermark_on(database: TestDatabase) {
    let sync = orders(database).await;
    let query =
        "query = \"select id, amount as total, placed_at as at from orders where placed_at >= :watermark\"";
    let more = format!(
        r#"
            [watermark]
            field = "at"
            overlap = "1m"
            {INTO}
        "#
    );
    sync.job(query, "database = \"shop\"", "", &more);
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(sync.position().await, ["2020-06-10T09:00:00Z"]);
    sync.shop.execute("insert into orders values (4, 40, '2020-06-10 08:59:30', '2020-06-10')").await;
    sync.ask(&["run", "sync@2020-06-20"]).await;
    assert_eq!(sync.writes().await, texts(1..=4));
}

#[both_databases]
async fn an_invalid_query_is_reported_and_writes_nothing(database: TestDatabase) {
    for (query, message) in [
        ("select id, amount as total from nowhere", "nowhere"),
        ("select id, id, amount as total from orders", "two columns of the query are named `id`"),
    ] {
        let sync = orders(TestDatabase::like(&database).await).await;
        let top = "database = \"shop\"\nretry = { attempts = 1 }";
        sync.job(&format!("query = \"{query}\""), top, "key = \"{id}\"", INTO);
        let (became, text) = sync.ask(&["run", RUN]).await;
        assert_eq!(became, "Ran failed 1", "{text}");
        assert!(text.contains(message), "{text}");
        assert_eq!(sync.writes().await, [""; 0]);
    }
}

#[both_databases]
async fn a_query_cut_off_half_way_is_not_taken_for_complete(database: TestDatabase) {
    let sync = orders(database).await;
    let overflow = sync.shop.either("abs(-9223372036854775807 - 1)", "9223372036854775807 + 1");
    let query = format!(
        "select id, case when id = 3 then {overflow} else amount end as total from orders order by id"
    );
    let top = "database = \"shop\"\nretry = { attempts = 1 }";
    sync.job(&format!("query = \"{query}\""), top, "key = \"{id}\"", INTO);
    let (became, text) = sync.ask(&["run", RUN]).await;
    assert_eq!(became, "Ran failed 1", "{text}");
}

#[both_databases]
async fn a_query_of_more_rows_than_one_part_arrives_whole(database: TestDatabase) {
    let sync = orders(database).await;
    let many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2500) \
         select i as id, i as total from n";
    sync.job(&format!("query = \"{many}\""), "database = \"shop\"", "", INTO);
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(sync.counts().await, [[2_500, 0, 0, 0]]);
    assert_eq!(sync.invoices().await.len(), 2_500);
}
