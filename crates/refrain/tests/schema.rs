//! The schema of the store that the migrations produce: recorded for each database, and the same in
//! both.
//!
//! The pages in `crates/refrain/tests/schema/` show a reviewer what a migration changes;
//! `REFRAIN_BLESS=1` rewrites them. Tables, columns, which of them may be null, and what identifies a
//! row must be equal; types have other names.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use refrain::Refrain;
use refrain_harness::{TestDatabase, golden};
use sqlx::{PgPool, SqlitePool};

#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    columns: Vec<Column>,
    primary: Vec<String>,
    unique: BTreeSet<Vec<String>>,
    indexes: BTreeSet<Vec<String>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Column {
    name: String,
    kind: String,
    may_be_absent: bool,
}

type Schema = BTreeMap<String, Table>;

const POSTGRES_COLUMNS: &str = r"
select c.relname::text, a.attname::text,
    format_type(a.atttypid, a.atttypmod) || case when l.collname = 'C' then ' by bytes' else '' end,
    not a.attnotnull
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_collation as l on l.oid = a.attcollation
where n.nspname = 'refrain' and c.relkind in ('r', 'v')
order by c.relname, a.attnum";

const POSTGRES_INDEXES: &str = r"
select t.relname::text, i.indisprimary, i.indisunique,
    array(select a.attname::text from unnest(i.indkey) with ordinality as k (number, place)
        join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.number order by k.place)
from pg_index as i
join pg_class as t on t.oid = i.indrelid
join pg_namespace as n on n.oid = t.relnamespace
where n.nspname = 'refrain'";

const POSTGRES_FUNCTIONS: &str = r"
select p.proname || '(' || pg_get_function_arguments(p.oid) || ') returns ' || pg_get_function_result(p.oid)
    || case p.provolatile when 'i' then ' immutable' else '' end || case p.proparallel when 's' then ' parallel safe' else '' end
from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
where n.nspname = 'refrain'
order by 1";

const SQLITE_COLUMNS: &str = r#"
select substr(t.name, 9), c.name, lower(c.type), c."notnull" = 0 and c.pk = 0, c.pk
from pragma_table_list as t join pragma_table_info(t.name) as c
where t.name like 'refrain~_%' escape '~'
order by t.name, c.cid"#;

const SQLITE_INDEXES: &str = r#"
select substr(t.name, 9), i."unique" = 1, i.origin,
    (select group_concat(name, ' ' order by seqno) from pragma_index_info(i.name))
from pragma_table_list as t join pragma_index_list(t.name) as i
where t.name like 'refrain~_%' escape '~'"#;

async fn of_postgres(pool: &PgPool) -> Schema {
    let mut schema = Schema::new();
    let columns: Vec<(String, String, String, bool)> =
        sqlx::query_as(POSTGRES_COLUMNS).fetch_all(pool).await.unwrap();
    for (table, name, kind, may_be_absent) in columns {
        schema.entry(table).or_default().columns.push(Column { name, kind, may_be_absent });
    }
    let indexes: Vec<(String, bool, bool, Vec<String>)> =
        sqlx::query_as(POSTGRES_INDEXES).fetch_all(pool).await.unwrap();
    for (table, is_primary, is_unique, columns) in indexes {
        let table = schema.get_mut(&table).unwrap();
        match (is_primary, is_unique) {
            (true, _) => table.primary = columns,
            (false, true) => drop(table.unique.insert(columns)),
            (false, false) => drop(table.indexes.insert(columns)),
        }
    }
    schema
}

async fn of_sqlite(pool: &SqlitePool) -> Schema {
    let mut schema = Schema::new();
    let mut primary: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
    let columns: Vec<(String, String, String, bool, i64)> =
        sqlx::query_as(SQLITE_COLUMNS).fetch_all(pool).await.unwrap();
    for (table, name, kind, may_be_absent, place) in columns {
        if place > 0 {
            primary.entry(table.clone()).or_default().push((place, name.clone()));
        }
        schema.entry(table).or_default().columns.push(Column { name, kind, may_be_absent });
    }
    for (table, mut columns) in primary {
        columns.sort();
        schema.get_mut(&table).unwrap().primary = columns.into_iter().map(|(_, name)| name).collect();
    }
    let indexes: Vec<(String, bool, String, String)> =
        sqlx::query_as(SQLITE_INDEXES).fetch_all(pool).await.unwrap();
    for (table, is_unique, origin, columns) in indexes {
        let columns = columns.split(' ').map(str::to_owned).collect();
        let table = schema.get_mut(&table).unwrap();
        match (origin.as_str(), is_unique) {
            ("pk", _) => assert_eq!(table.primary, columns),
            (_, true) => drop(table.unique.insert(columns)),
            (_, false) => drop(table.indexes.insert(columns)),
        }
    }
    schema
}

fn page(schema: &Schema) -> String {
    let mut page = String::new();
    for (name, table) in schema {
        writeln!(page, "{name}").unwrap();
        for Column { name, kind, may_be_absent } in &table.columns {
            writeln!(page, "    {name} {kind}{}", if *may_be_absent { "" } else { " not null" }).unwrap();
        }
        let keys =
            [("primary key", BTreeSet::from([table.primary.clone()])), ("unique", table.unique.clone())];
        for (what, keys) in keys.into_iter().chain([("index", table.indexes.clone())]) {
            for columns in keys.iter().filter(|columns| !columns.is_empty()) {
                writeln!(page, "    {what} ({})", columns.join(", ")).unwrap();
            }
        }
    }
    page
}

async fn migrated() -> (TestDatabase, TestDatabase) {
    let (here, there) = (TestDatabase::sqlite().await, TestDatabase::postgres().await);
    Refrain::migrate(&here.url()).await.unwrap();
    Refrain::migrate(&there.url()).await.unwrap();
    (here, there)
}

async fn of_both(databases: &(TestDatabase, TestDatabase)) -> (Schema, Schema) {
    let (TestDatabase::Sqlite { pool: sqlite, .. }, TestDatabase::Postgres { pool: postgres, .. }) =
        databases
    else {
        unreachable!()
    };
    (of_sqlite(sqlite).await, of_postgres(postgres).await)
}

async fn schemas() -> (Schema, Schema) {
    of_both(&migrated().await).await
}

/// A line for each; the same in SQLite is an expression.
async fn functions(database: &TestDatabase) -> String {
    database.texts(POSTGRES_FUNCTIONS).await.join("\n") + "\n"
}

#[tokio::test]
async fn the_schemas_match_the_recorded_ones() {
    let databases = migrated().await;
    let (sqlite, postgres) = of_both(&databases).await;
    let functions = functions(&databases.1).await;
    for (name, page) in [("sqlite", page(&sqlite)), ("postgres", page(&postgres) + &functions)] {
        let path = format!("{}/tests/schema/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        golden::matches(Path::new(&path), &page);
    }
}

#[tokio::test]
async fn both_databases_have_the_same_tables_columns_and_keys() {
    let (mut sqlite, mut postgres) = schemas().await;
    for schema in [&mut sqlite, &mut postgres] {
        // For views, neither database knows which columns may be null.
        schema.remove("clock").unwrap();
        schema.values_mut().flat_map(|table| &mut table.columns).for_each(|column| column.kind.clear());
    }
    assert!(sqlite.len() > 15, "{:?}", sqlite.keys());
    assert!(sqlite.keys().eq(postgres.keys()), "{:?} {:?}", sqlite.keys(), postgres.keys());
    for (name, table) in &sqlite {
        assert_eq!(table, &postgres[name], "{name}: left SQLite, right PostgreSQL");
    }
}

#[tokio::test]
async fn keys_are_sorted_by_their_bytes() {
    let (_, postgres) = schemas().await;
    for (name, table) in &postgres {
        let keys = table.unique.iter().chain(&table.indexes).chain([&table.primary]).flatten();
        for key in keys {
            let column = table.columns.iter().find(|column| column.name == *key).unwrap();
            assert!(!column.kind.starts_with("text") || column.kind.ends_with("by bytes"), "{name}.{key}");
        }
    }
}
