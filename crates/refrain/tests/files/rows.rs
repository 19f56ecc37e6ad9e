//! Rows of a query as files: their content, and that a rerun changes no byte.

use std::fs;

use refrain::Ask;

use crate::export::{VISIBLE, WHEN, WINDOW, exports, is_tidy, names, seen, stock, stocked, versioned};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

const VALUES: &str =
    "create table things (id bigint, name text, price numeric(30, 10), rate double precision, data bytea);
    insert into things values
        (9223372036854775807, 'plain', 12345678901234567890.1234567890, 0.1, null),
        (-1, '', 0.10, 1e300, '\\x00ff'),
        (0, null, null, null, null),
        (2, 'a,b \"quoted\"' || chr(10) || 'größe ✓', 7, -2.5, null);";

const VALUES_OF_A_FILE: &str =
    "create table things (id integer, name text, price text, rate real, data blob);
    insert into things values
        (9223372036854775807, 'plain', '12345678901234567890.1234567890', 0.1, null),
        (-1, '', '0.1000000000', 1e300, x'00ff'),
        (0, null, null, null, null),
        (2, 'a,b \"quoted\"' || char(10) || 'größe ✓', '7.0000000000', -2.5, null);";

const CSV: &str = "id,name,price,rate,data
-1,\"\",0.1000000000,R300,\\x00ff
0,,,,
2,\"a,b \"\"quoted\"\"
größe ✓\",7.0000000000,-2.5,
9223372036854775807,plain,12345678901234567890.1234567890,0.1,
";

fn json(shop: &TestProject) -> String {
    let quote = shop.either("\"", "");
    let price = |price: &str| format!("{quote}{price}{quote}");
    format!(
        "{{\"id\":-1,\"name\":\"\",\"price\":{},\"rate\":R300,\"data\":\"\\\\x00ff\"}}\n\
         {{\"id\":0,\"name\":null,\"price\":null,\"rate\":null,\"data\":null}}\n\
         {{\"id\":2,\"name\":\"a,b \\\"quoted\\\"\\ngröße ✓\",\"price\":{},\"rate\":-2.5,\"data\":null}}\n\
         {{\"id\":9223372036854775807,\"name\":\"plain\",\"price\":{},\"rate\":0.1,\"data\":null}}\n",
        price("0.1000000000"),
        price("7.0000000000"),
        price("12345678901234567890.1234567890")
    )
}

#[both_databases]
async fn ten_reruns_give_the_same_bytes_in_any_order_of_rows(database: TestDatabase) {
    let shop = versioned(database).await;
    stock(&shop, 1).await;
    for round in 0..10 {
        assert!(shop.run(WINDOW, Ask::Again).await.is_done());
        assert_eq!(seen(&shop), Some(stocked(1)), "round {round}");
        assert!(is_tidy(&shop));
        shop.execute("create table turned as select * from items order by id desc").await;
        shop.execute("delete from items; insert into items select * from turned; drop table turned").await;
    }
}

#[both_databases]
async fn an_export_is_done_once_and_again_only_on_request(database: TestDatabase) {
    let shop = versioned(database).await;
    stock(&shop, 1).await;
    shop.run(WINDOW, Ask::Once).await;
    stock(&shop, 2).await;
    shop.run(WINDOW, Ask::Once).await;
    assert_eq!(seen(&shop), Some(stocked(1)), "it was done");
    shop.run(WINDOW, Ask::Again).await;
    assert_eq!(seen(&shop), Some(stocked(2)));
    shop.run("export@2020-06-10", Ask::Once).await;
    assert_eq!(fs::read_to_string(shop.root().join("out/dt=2020-06-10/part-0.csv")).unwrap(), stocked(2));
}

#[both_databases]
async fn values_keep_every_digit_and_null_differs_from_the_empty_string(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute(shop.either(VALUES_OF_A_FILE, VALUES)).await;
    let real = shop.either("1e300", "1e+300");
    exports(&shop, "select id, name, price, rate, data from things", "csv");
    shop.run(WINDOW, Ask::Again).await;
    assert_eq!(seen(&shop).unwrap(), CSV.replace("R300", real));
    exports(&shop, "select id, name, price, rate, data from things", "jsonl");
    shop.run(WINDOW, Ask::Again).await;
    assert_eq!(names(shop.root().join(VISIBLE)), ["part-0.jsonl"]);
    let written = fs::read_to_string(shop.root().join(VISIBLE).join("part-0.jsonl")).unwrap();
    assert_eq!(written, json(&shop).replace("R300", real));
}

#[both_databases]
async fn a_query_without_rows_gives_a_file_without_rows(database: TestDatabase) {
    let shop = versioned(database).await;
    assert!(shop.run(WINDOW, Ask::Once).await.is_done());
    assert_eq!(seen(&shop).as_deref(), Some("id,version\n"));
    exports(&shop, "select id, version from items", "jsonl");
    assert!(shop.run(WINDOW, Ask::Again).await.is_done());
    assert_eq!(fs::read_to_string(shop.root().join(VISIBLE).join("part-0.jsonl")).unwrap(), "");
}

#[both_databases]
async fn a_query_with_an_order_keeps_it(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute("create table items (id integer); insert into items values (9), (10), (8)").await;
    exports(&shop, "select id from items order by id desc", "csv");
    shop.run(WINDOW, Ask::Once).await;
    assert_eq!(seen(&shop).as_deref(), Some("id\n10\n9\n8\n"));
    exports(&shop, "select id from items", "csv");
    shop.run(WINDOW, Ask::Again).await;
    assert_eq!(seen(&shop).as_deref(), Some("id\n10\n8\n9\n"), "as texts");
}

#[both_databases]
async fn an_export_of_more_rows_than_a_page_is_complete(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute("create table items (id integer)").await;
    let rows = "with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 12000)";
    shop.execute(shop.either(
        &format!("insert into items {rows} select n from numbers"),
        "insert into items select * from generate_series(1, 12000)",
    ))
    .await;
    exports(&shop, "select id from items order by id", "csv");
    shop.run(WINDOW, Ask::Once).await;
    let expected: String =
        std::iter::once("id\n".to_owned()).chain((1..=12_000).map(|n| format!("{n}\n"))).collect();
    assert_eq!(seen(&shop), Some(expected));
    // On a server the store, and the record in it, is in the same database.
    if !shop.database.is_sqlite() {
        let recorded =
            shop.database.store_texts("select target || ' ' || mode || ' ' || rows from refrain_publishes");
        assert_eq!(recorded.await, ["out/dt=2020-06-09 files 12000"]);
    }
}

#[both_databases]
async fn a_file_step_shows_the_rows_of_the_steps_before_it(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute(
        "create table orders (day date, amount integer); create table totals (day date, total integer)",
    )
    .await;
    shop.execute("insert into orders values ('2020-06-09', 4), ('2020-06-09', 3), ('2020-06-08', 1)").await;
    let total = "select day, sum(amount) as total from orders where day = :ds group by day";
    let into = "publish = { table = \"totals\", mode = \"overwrite\", owns = \"day = :ds\" }";
    let written =
        "query = \"select total from totals where day = :ds\"\npublish = { path = \"out/dt={ds}\" }";
    shop.job("export", &format!("{WHEN}[[step]]\n{written}\n[[step]]\nquery = \"{total}\"\n{into}\n"));
    let report = shop.run(WINDOW, Ask::Once).await;
    assert!(report.is_done(), "{:?}", report.run.message);
    assert_eq!(seen(&shop).as_deref(), Some("total\n7\n"));
}
