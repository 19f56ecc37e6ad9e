//! From one database into another: rows are streamed and keep their values.

use refrain::Ask;
use sqlx::{AssertSqlSafe, Executor};

use crate::warehouse::{daily, fails, well};
use refrain_harness::TestDatabase;
use refrain_harness::project::TestProject;

async fn execute(database: &TestDatabase, text: &str) {
    match database {
        TestDatabase::Sqlite { pool, .. } => drop(pool.execute(AssertSqlSafe(text)).await.unwrap()),
        TestDatabase::Postgres { pool, .. } => drop(pool.execute(AssertSqlSafe(text)).await.unwrap()),
    }
}

/// A project that reads from one database and writes into another.
fn project(from: &TestDatabase, to: TestDatabase) -> TestProject {
    let shop = TestProject::of(to);
    let databases = format!("source = \"{}\"\nshop = \"{}\"", from.url(), shop.database.url());
    shop.settings("sqlite:refrain.db", &databases);
    shop
}

const COLUMNS: &str = "id, day, at, price, share, ok, note";

async fn moved(from: TestDatabase, to: TestDatabase) -> Vec<String> {
    let is_file = from.is_sqlite();
    let source = if is_file {
        "create table sales (id integer, day date, at text, price numeric, share real, ok integer, \
         note text);
         insert into sales values (9007199254740993, '2026-06-09', '2026-06-09 12:00:00', 12.5, 0.1, \
         1, 'a\tb\\N \"quoted\" ü'), (2, '2026-06-09', null, null, 1e300, 0, null)"
    } else {
        "create table sales (id bigint, day date, at timestamptz, price numeric, \
         share double precision, ok boolean, note text);
         insert into sales values (9007199254740993, '2026-06-09', '2026-06-09 12:00:00Z', 12.5, 0.1, \
         true, E'a\\tb\\\\N \"quoted\" ü'), (2, '2026-06-09', null, null, 1e300, false, null)"
    };
    execute(&from, source).await;
    let shop = project(&from, to);
    shop.execute(shop.either(
        "create table sales (id integer primary key, day date, at text, price numeric, share real, \
         ok integer, note text)",
        "create table sales (id bigint primary key, day date, at timestamptz, price numeric, \
         share double precision, ok boolean, note text)",
    ))
    .await;
    daily(
        &shop,
        "copy",
        &format!(
            r#"
                database = "source"
                query = "select {COLUMNS} from sales where day = :ds"
                [publish]
                database = "shop"
                table = "sales"
                mode = "merge"
                key = ["id"]
            "#
        ),
    );
    for _ in 0..2 {
        well(&shop, "copy@2026-06-09", Ask::Again).await;
    }
    let texts = shop.either(
        "cast(id as text) || '|' || day || '|' || coalesce(at, '') \
         || '|' || coalesce(cast(price as text), '') || '|' || (share = 0.1) \
         || '|' || ok || '|' || coalesce(note, '')",
        "cast(id as text) || '|' || cast(day as text) || '|' || coalesce(to_char(at at time zone 'UTC', \
         'YYYY-MM-DD HH24:MI:SS'), '') || '|' || coalesce(cast(price as text), \
         '') || '|' || cast((share = 0.1)::int as text) || '|' || cast(ok::int as text) \
         || '|' || coalesce(note, '')",
    );
    shop.rows(&format!("select {texts} from sales order by id")).await
}

const EXPECTED: [&str; 2] =
    ["2|2026-06-09|||0|0|", "9007199254740993|2026-06-09|2026-06-09 12:00:00|12.5|1|1|a\tb\\N \"quoted\" ü"];

#[tokio::test]
async fn from_a_file_into_a_server() {
    assert_eq!(moved(TestDatabase::sqlite().await, TestDatabase::postgres().await).await, EXPECTED);
}

#[tokio::test]
async fn from_a_server_into_a_file() {
    assert_eq!(moved(TestDatabase::postgres().await, TestDatabase::sqlite().await).await, EXPECTED);
}

#[tokio::test]
async fn from_a_file_into_a_file() {
    assert_eq!(moved(TestDatabase::sqlite().await, TestDatabase::sqlite().await).await, EXPECTED);
}

#[tokio::test]
async fn from_a_server_into_a_server() {
    assert_eq!(moved(TestDatabase::postgres().await, TestDatabase::postgres().await).await, EXPECTED);
}

#[tokio::test]
async fn many_pages_arrive_whole() {
    for (from, to) in [
        (TestDatabase::sqlite().await, TestDatabase::postgres().await),
        (TestDatabase::postgres().await, TestDatabase::sqlite().await),
    ] {
        let series = if from.is_sqlite() {
            "with recursive n (i) as (select 1 union all select i + 1 from n where i < 23000) select i from n"
        } else {
            "select i from generate_series(1, 23000) as n (i)"
        };
        execute(&from, &format!("create table numbers as {series}")).await;
        let shop = project(&from, to);
        shop.execute("create table numbers (day date, i integer)").await;
        daily(
            &shop,
            "copy",
            r#"
                database = "source"
                query = "select :ds as day, i from numbers"
                [publish]
                database = "shop"
                table = "numbers"
                mode = "overwrite"
                owns = "day = :ds"
            "#,
        );
        for _ in 0..2 {
            well(&shop, "copy@2026-06-09", Ask::Again).await;
            let sums = "select cast(count(*) as text) || ' ' || cast(sum(i) as text) from numbers";
            assert_eq!(shop.rows(sums).await, ["23000 264511500"]);
        }
    }
}

#[tokio::test]
async fn scopes_of_one_database_own_rows_of_another() {
    for (from, to) in [
        (TestDatabase::sqlite().await, TestDatabase::postgres().await),
        (TestDatabase::postgres().await, TestDatabase::sqlite().await),
    ] {
        execute(&from, "create table orgs (id integer); insert into orgs values (1), (2)").await;
        let shop = project(&from, to);
        shop.execute("create table counts (day date, org integer, n integer)").await;
        daily(
            &shop,
            "count",
            r#"
                database = "source"
                scopes = "select id from orgs"
                query = "select :ds as day, id as org, 1 as n from orgs where id = :scope"
                [publish]
                database = "shop"
                table = "counts"
                mode = "overwrite"
                owns = "day = :ds and org = :scope"
            "#,
        );
        well(&shop, "count@2026-06-09", Ask::Once).await;
        for _ in 0..2 {
            for scope in ["1", "2"] {
                well(&shop, &format!("count@2026-06-09/{scope}"), Ask::Again).await;
            }
        }
        assert_eq!(shop.rows("select cast(org as text) from counts order by 1").await, ["1", "2"]);
    }
}

/// A project that copies one value from a server into a file that stores times in this form; and the server.
async fn copied(value: &str, kind: &str, time: &str) -> (TestProject, TestDatabase) {
    let from = TestDatabase::postgres().await;
    execute(&from, &format!("create table source as select cast('{value}' as {kind}) as v")).await;
    let shop = TestProject::of(TestDatabase::sqlite().await);
    let into = format!("{{ url = \"{}\", time = \"{time}\" }}", shop.database.url());
    shop.settings("sqlite:refrain.db", &format!("source = \"{}\"\nshop = {into}", from.url()));
    shop.execute("create table kept (day date, v text)").await;
    daily(
        &shop,
        "copy",
        r#"
            database = "source"
            query = "select :ds as day, v from source"
            [publish]
            database = "shop"
            table = "kept"
            mode = "overwrite"
            owns = "day = :ds"
        "#,
    );
    (shop, from)
}

#[tokio::test]
async fn a_fraction_of_a_second_is_kept_or_refused() {
    for (value, time, expected) in [
        ("2026-06-09 12:00:00Z", "text", Some("2026-06-09 12:00:00")),
        ("2026-06-09 12:00:00.25Z", "text", Some("2026-06-09 12:00:00.25")),
        ("2026-06-09 12:00:00.000001Z", "text", Some("2026-06-09 12:00:00.000001")),
        ("2026-06-09 12:00:00Z", "iso", Some("2026-06-09T12:00:00Z")),
        ("2026-06-09 12:00:00.000001Z", "iso", None),
        ("2026-06-09 12:00:00Z", "unix", Some("1781006400")),
        ("2026-06-09 12:00:00.25Z", "unix", None),
        ("2026-06-09 12:00:00.25Z", "unix-ms", Some("1781006400250")),
        ("2026-06-09 12:00:00.000001Z", "unix-ms", None),
    ] {
        let (shop, _from) = copied(value, "timestamptz", time).await;
        if let Some(expected) = expected {
            well(&shop, "copy@2026-06-09", Ask::Once).await;
            assert_eq!(shop.rows("select v from kept").await, [expected], "{value} {time}");
        } else {
            let message = fails(&shop, "copy@2026-06-09").await;
            assert!(
                message.contains(&format!("has a fraction that time = \"{time}\" cannot store")),
                "{message}"
            );
            assert_eq!(shop.rows("select v from kept").await, [""; 0]);
        }
    }
}

#[tokio::test]
async fn values_that_sqlite_cannot_store_are_refused() {
    let (shop, _from) = copied("\\x00ff", "bytea", "text").await;
    let message = fails(&shop, "copy@2026-06-09").await;
    assert!(message.contains("bytes cannot be copied to SQLite"), "{message}");
    assert_eq!(shop.rows("select v from kept").await, [""; 0]);
}

#[tokio::test]
async fn a_number_stored_as_text_keeps_all_of_its_digits() {
    for (value, kind) in [
        ("1.00", "numeric"),
        ("12345678901234567890123456789.125", "numeric"),
        ("-18446744073709551616", "numeric"),
        ("9007199254740993", "bigint"),
    ] {
        let (shop, _from) = copied(value, kind, "text").await;
        well(&shop, "copy@2026-06-09", Ask::Once).await;
        assert_eq!(shop.rows("select v from kept").await, [value], "{kind}");
    }
}
