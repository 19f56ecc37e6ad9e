//! The id of a row is the same wherever it is computed: in Rust, in PostgreSQL and in SQLite.

use refrain::core::project::Dialect;
use refrain::core::{SurrogateKey, surrogate};
use refrain::{Ledger, testing};
use serde::Deserialize;
use sqlx::query::{Query, QueryScalar};
use sqlx::{AssertSqlSafe, Connection, Executor, PgPool, SqliteConnection};

use refrain_harness::TestDatabase;

#[derive(Deserialize)]
struct Vectors {
    surrogates: Vec<Vector>,
}

/// A natural key and its id, by an independent implementation.
#[derive(Deserialize)]
struct Vector {
    parts: Vec<Option<String>>,
    id: String,
}

fn vectors() -> Vec<Vector> {
    let text = include_str!("../../../refrain-core/tests/vectors/vectors.json");
    serde_json::from_str::<Vectors>(text).unwrap().surrogates
}

fn columns(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("\"part {number}\"")).collect()
}

/// A row of texts as a `from` item, with the names of its columns.
fn row(columns: &[String], kind: &str) -> String {
    let places = (1..).zip(columns).map(|(place, column)| format!("cast(${place} as {kind}) as {column}"));
    format!("(select {}) as given", places.collect::<Vec<_>>().join(", "))
}

async fn with_a_ledger() -> (TestDatabase, PgPool) {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let pool = pool.clone();
    Ledger::migrate(&pool).await.unwrap();
    (database, pool)
}

async fn in_memory() -> SqliteConnection {
    SqliteConnection::connect("sqlite::memory:").await.unwrap()
}

#[test]
fn m18_the_vectors_cover_the_difficult_cases() {
    let vectors = vectors();
    let texts = || vectors.iter().flat_map(|vector| vector.parts.iter().flatten());
    assert!(vectors.iter().any(|vector| vector.parts.contains(&None)), "null");
    assert!(texts().any(String::is_empty), "the empty text, which is not null");
    assert!(texts().any(|text| text.chars().count() < text.len()), "more bytes than characters");
    assert!(texts().any(|text| text.len() > 128), "more than one block of SHA-256");
}

#[tokio::test]
async fn m18_the_function_of_postgres_gives_the_golden_ids() {
    let (_database, pool) = with_a_ledger().await;
    for Vector { parts, id } in vectors() {
        let made = "select cast(refrain.surrogate_key(variadic $1) as text)";
        let made: String = sqlx::query_scalar(made).bind(&parts).fetch_one(&pool).await.unwrap();
        assert_eq!(made, id, "{parts:?}");
    }
    let called = "select cast(refrain.surrogate_key(cast(date '2026-06-09' as text), 'EU') as text)";
    let called: String = sqlx::query_scalar(called).fetch_one(&pool).await.unwrap();
    assert_eq!(called, SurrogateKey::of(&[Some("2026-06-09"), Some("EU")]).unwrap().to_string());
}

#[tokio::test]
async fn m18_the_expression_of_postgres_gives_the_golden_ids_and_needs_no_function() {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    for Vector { parts, id } in vectors() {
        let columns = columns(parts.len());
        let made = surrogate::expression(Dialect::Postgres, &columns).unwrap();
        let made = format!("select cast({made} as text) from {}", row(&columns, "text"));
        let made = parts.iter().fold(sqlx::query_scalar(AssertSqlSafe(made)), QueryScalar::bind);
        let made: String = made.fetch_one(pool).await.unwrap();
        assert_eq!(made, id, "{parts:?}");
    }
}

#[tokio::test]
async fn m18_the_expression_of_sqlite_gives_the_golden_ids() {
    let mut connection = in_memory().await;
    for Vector { parts, id } in vectors() {
        let columns = columns(parts.len());
        let made = surrogate::expression(Dialect::Sqlite, &columns).unwrap();
        let made = format!("select {made} from {}", row(&columns, "text"));
        let made = parts.iter().fold(sqlx::query_scalar(AssertSqlSafe(made)), QueryScalar::bind);
        let made: String = made.fetch_one(&mut connection).await.unwrap();
        assert_eq!(made, id, "{parts:?}");
    }
}

#[tokio::test]
async fn m18_the_expressions_are_evaluated_per_row() {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let mut connection = in_memory().await;
    let expected: Vec<String> = (1..=20)
        .map(|number: usize| SurrogateKey::of(&[Some(&"x".repeat(number * 9)), None]).unwrap().to_string())
        .collect();
    let parts = ["value".to_owned(), "nullif(value, value)".to_owned()];
    let made = |dialect| {
        let rows = (1..=20).map(|number: usize| format!("({number}, '{}')", "x".repeat(number * 9)));
        let rows = rows.collect::<Vec<_>>().join(", ");
        let id = surrogate::expression(dialect, &parts).unwrap();
        AssertSqlSafe(format!(
            "with source (place, value) as (values {rows}) select cast({id} as text) \
             from source order by place"
        ))
    };
    let here: Vec<String> =
        sqlx::query_scalar(made(Dialect::Sqlite)).fetch_all(&mut connection).await.unwrap();
    let there: Vec<String> = sqlx::query_scalar(made(Dialect::Postgres)).fetch_all(pool).await.unwrap();
    assert_eq!(here, expected);
    assert_eq!(there, expected);
}

#[tokio::test]
async fn m18_postgres_gives_no_id_to_a_row_without_a_natural_key() {
    let (_database, pool) = with_a_ledger().await;
    for nothing in ["cast(array[] as text[])", "cast(null as text[])"] {
        let made = format!("select refrain.surrogate_key(variadic {nothing})");
        let refused = pool.execute(AssertSqlSafe(made)).await.unwrap_err();
        assert!(refused.to_string().contains("there is nothing to hash"), "{refused}");
    }
}

#[tokio::test]
async fn m18_a_database_in_another_encoding_gives_the_same_ids() {
    let (database, pool) = with_a_ledger().await;
    let name = format!("latin_{}", std::process::id());
    let create = format!("create database {name} encoding 'LATIN1' locale 'C' template template0");
    pool.execute(AssertSqlSafe(create)).await.unwrap();
    let options = pool.connect_options();
    let latin = PgPool::connect_with((*options).clone().database(&name)).await.unwrap();
    Ledger::migrate(&latin).await.unwrap();
    let expected = SurrogateKey::of(&[Some("Größe"), None]).unwrap().to_string();
    let parts = ["given".to_owned(), "null".to_owned()];
    let inline = surrogate::expression(Dialect::Postgres, &parts).unwrap();
    for made in ["refrain.surrogate_key(given, null)", &inline] {
        let made = format!("select cast({made} as text) from (select 'Größe' as given) as source");
        let made: String = sqlx::query_scalar(AssertSqlSafe(made)).fetch_one(&latin).await.unwrap();
        assert_eq!(made, expected);
    }
    latin.close().await;
    pool.execute(AssertSqlSafe(format!("drop database {name}"))).await.unwrap();
    drop(database);
}

#[tokio::test]
async fn m18_staged_rows_get_the_ids_that_rust_gives() {
    let mut connection = in_memory().await;
    connection
        .execute(
            "create temp table \"the stage\" as
            with recursive n (n) as (select 1 union all select n + 1 from n where n < 12345)
            select cast(null as text) as \"the id\", n, case n % 3 when 0 then null when 1 then '' else \
            'Größe ' || n end as size from n;
            delete from \"the stage\" where n between 4000 and 4010",
        )
        .await
        .unwrap();
    let parts = ["\"n\"".to_owned(), "\"size\"".to_owned()];
    for again in 0..2 {
        testing::fill_surrogate(&mut connection, "temp.\"the stage\"", "\"the id\"", &parts).await.unwrap();
        let rows = "select \"the id\", n, size from \"the stage\" order by n";
        let rows: Vec<(String, i64, Option<String>)> =
            sqlx::query_as(rows).fetch_all(&mut connection).await.unwrap();
        assert_eq!(rows.len(), 12334);
        for (id, n, size) in rows {
            let expected = SurrogateKey::of(&[Some(&n.to_string()), size.as_deref()]).unwrap();
            assert_eq!(id, expected.to_string(), "{n}, pass {again}");
        }
    }
}

#[tokio::test]
async fn m18_staged_rows_get_the_golden_ids() {
    let mut connection = in_memory().await;
    for Vector { parts, id } in vectors() {
        let columns = columns(parts.len());
        let mut stage = connection.begin().await.unwrap();
        let create = format!("create temp table stage (id text, {})", columns.join(", "));
        stage.execute(AssertSqlSafe(create)).await.unwrap();
        let insert = format!("insert into stage select null, given.* from {}", row(&columns, "text"));
        let insert = parts.iter().fold(sqlx::query(AssertSqlSafe(insert)), Query::bind);
        insert.execute(&mut *stage).await.unwrap();
        testing::fill_surrogate(&mut stage, "stage", "id", &columns).await.unwrap();
        let made: String = sqlx::query_scalar("select id from stage").fetch_one(&mut *stage).await.unwrap();
        assert_eq!(made, id, "{parts:?}");
        stage.rollback().await.unwrap();
    }
}

#[tokio::test]
async fn m18_non_text_values_are_spelled_alike_in_expression_and_stage() {
    let mut connection = in_memory().await;
    for (value, spelled) in [
        ("-7", Some("-7")),
        ("9223372036854775807", Some("9223372036854775807")),
        ("1.0", Some("1.0")),
        ("0.1", Some("0.10000000000000001")),
        ("x'00FF'", Some("\\x00ff")),
        ("x''", Some("\\x")),
        ("date('2026-06-09')", Some("2026-06-09")),
        ("null", None),
    ] {
        let id = SurrogateKey::of(&[spelled]).unwrap().to_string();
        let expression = surrogate::expression(Dialect::Sqlite, &[value.to_owned()]).unwrap();
        let made: String = sqlx::query_scalar(AssertSqlSafe(format!("select {expression}")))
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(made, id, "{value}");
        let stage = format!("create temp table stage as select null as id, {value} as part");
        connection.execute(AssertSqlSafe(stage)).await.unwrap();
        testing::fill_surrogate(&mut connection, "stage", "id", &["part".to_owned()]).await.unwrap();
        let made: String =
            sqlx::query_scalar("select id from stage").fetch_one(&mut connection).await.unwrap();
        assert_eq!(made, id, "{value}");
        connection.execute("drop table stage").await.unwrap();
    }
}

#[tokio::test]
async fn m18_an_empty_stage_is_valid_and_one_without_a_natural_key_is_not() {
    let mut connection = in_memory().await;
    connection.execute("create temp table stage (id text)").await.unwrap();
    testing::fill_surrogate(&mut connection, "stage", "id", &[]).await.unwrap();
    connection.execute("insert into stage values (null)").await.unwrap();
    let refused = testing::fill_surrogate(&mut connection, "stage", "id", &[]).await.unwrap_err();
    assert!(refused.to_string().contains("there is nothing to hash"), "{refused}");
}

/// The code blocks of the user documentation, each for the database that its first line names.
fn printed(database: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/SURROGATE.md");
    let blocks = page.split("```sql\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let named = blocks.filter_map(|(block, _)| block.strip_prefix(&format!("-- {database}\n")));
    named.map(str::to_owned).collect()
}

#[tokio::test]
async fn m18_the_statements_of_the_page_give_one_id_on_both_databases() {
    let (_database, pool) = with_a_ledger().await;
    let mut connection = in_memory().await;
    pool.execute("create table revenue (order_date date, region text, at timestamptz)").await.unwrap();
    connection.execute("create table revenue (order_date text, region text)").await.unwrap();
    let rows = "insert into revenue (order_date, region) values ('2026-06-09', 'EU'), ('2026-06-09', null)";
    pool.execute(rows).await.unwrap();
    connection.execute(rows).await.unwrap();

    let expected =
        [Some("EU"), None].map(|region| SurrogateKey::of(&[Some("2026-06-09"), region]).unwrap().to_string());
    let (there, here) = (printed("PostgreSQL"), printed("SQLite"));
    assert_eq!((there.len(), here.len()), (2, 1));
    let wrapped = |block: &String| {
        let query = block.trim_end().trim_end_matches(';');
        AssertSqlSafe(format!(
            "select cast(revenue_sk as text) from ({query}) as page order by region is null"
        ))
    };
    for block in &there {
        let ids: Vec<String> = sqlx::query_scalar(wrapped(block)).fetch_all(&pool).await.unwrap();
        assert_eq!(ids, expected, "{block}");
    }
    for block in &here {
        let ids: Vec<String> = sqlx::query_scalar(wrapped(block)).fetch_all(&mut connection).await.unwrap();
        assert_eq!(ids, expected, "{block}");
    }
}

/// The table in the documentation, computed by PostgreSQL itself.
#[tokio::test]
async fn m18_postgres_spells_values_as_the_page_says() {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let mut connection = pool.acquire().await.unwrap();
    connection.execute("set time zone 'UTC'").await.unwrap();
    for (value, spelled) in [
        ("-7", "-7"),
        ("date '2026-06-09'", "2026-06-09"),
        ("uuid '7307C0AE-2941-86B3-A801-096C4B8112D6'", "7307c0ae-2941-86b3-a801-096c4b8112d6"),
        ("decode('00FF', 'hex')", "\\x00ff"),
        ("timestamptz '2026-06-09 14:00+02'", "2026-06-09 12:00:00+00"),
        (
            "to_char(timestamptz '2026-06-09 14:00+02' at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')",
            "2026-06-09 12:00:00",
        ),
        ("true", "true"),
        ("10.50", "10.50"),
        ("cast(0.1 as double precision)", "0.1"),
    ] {
        let made = surrogate::expression(Dialect::Postgres, &[value.to_owned()]).unwrap();
        let made = AssertSqlSafe(format!("select cast({made} as text)"));
        let made: String = sqlx::query_scalar(made).fetch_one(&mut *connection).await.unwrap();
        assert_eq!(made, SurrogateKey::of(&[Some(spelled)]).unwrap().to_string(), "{value}");
    }
}
