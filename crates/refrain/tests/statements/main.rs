//! Both databases understand every statement of the store, on the tables that the migrations create;
//! and no statement reads a whole table that grows with the work.
//!
//! Plans are judged on full tables, before and after the database has gathered statistics: the
//! statistics of a queue that fills and empties all day are never right.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

mod filled;
mod plans;

use filled::{ROWS_MIN, fill, filled, migrated};
use plans::{Step, plan_of, read_again, scanned, scans_of};
use refrain::testing;
use refrain_harness::TestDatabase;
use sqlx::{AssertSqlSafe, Executor, Row, SqlStr};

/// Tables that stay small, and may be read whole. Every other table grows with the work.
const SMALL: [(&str, &str); 13] = [
    ("alarms", "a row per job and kind of alarm"),
    ("cancellations", "a row per open run that is being cancelled"),
    ("clock", "a view of one row"),
    ("job_names", "a row per name that a job has had"),
    ("jobs", "a row per job"),
    ("ledger_migrations", "a row per applied migration"),
    ("migrations", "a row per applied migration"),
    ("projects", "a row per project"),
    ("revisions", "a row per change of a schedule"),
    ("schedules", "a row per job"),
    ("slots", "a row per run that a job may execute at once"),
    ("store", "one row"),
    ("workers", "a row per worker"),
];

/// Statements that read all of a large table, or its beginning, on purpose.
const MAY_SCAN: [(&str, &str); 9] = [
    ("sql/audit/list.sql", "the newest, no more than its limit"),
    ("sql/fsck/", "the operator asks for all of it"),
    ("sql/queue/count.sql", "the operator asks for all of it"),
    ("sql/delayed/of_scope.sql", "the operator asks for all of it"),
    ("sql/dedupe/prune.sql", "the oldest, no more than its limit"),
    ("sql/effect_dedupe/prune.sql", "the oldest, no more than its limit"),
    ("sql/arrival/prune.sql", "the oldest, no more than its limit"),
    ("sql/effect/list.sql", "the newest, no more than its limit"),
    ("sql/effect/reserved.sql", "those that are being sent, by an index that has no others"),
];

/// The folders with the statements of the ledger.
const OF_THE_LEDGER: [&str; 6] =
    ["sql/checkpoint/", "sql/fence/", "sql/intent/", "sql/ledger/", "sql/publish/", "sql/unit/"];

/// Statements whose plans are not cached, or may become outdated.
const FORGOTTEN: [(&str, &str); 10] = [
    ("sql/unit/in_doubt.sql", "the operator asks, once"),
    ("sql/unit/update.sql", "planned anew each time"),
    ("sql/unit/raise_order.sql", "planned anew each time"),
    ("sql/unit/keep_first.sql", "planned anew each time"),
    ("sql/unit/restore.sql", "planned anew each time"),
    ("sql/intent/forget.sql", "planned anew each time"),
    ("sql/unit/unpark.sql", "the operator asks, once"),
    ("sql/unit/confirm.sql", "the operator asks, once"),
    ("sql/checkpoint/list.sql", "the operator asks, once"),
    ("sql/unit/left_keys.sql", "the operator asks, once"),
];

fn is_small(table: &str) -> bool {
    SMALL.iter().any(|(small, _)| *small == table)
}

fn may_scan(name: &str) -> bool {
    MAY_SCAN.iter().any(|(beginning, _)| name.starts_with(beginning))
}

#[tokio::test]
async fn both_databases_understand_every_statement() {
    let (here, there) = (TestDatabase::sqlite().await, TestDatabase::postgres().await);
    migrated(&here).await;
    migrated(&there).await;
    let (TestDatabase::Sqlite { pool: here, .. }, TestDatabase::Postgres { pool: there, .. }) =
        (&here, &there)
    else {
        unreachable!()
    };
    assert!(testing::statements().len() > 50);
    for (name, sqlite, postgres) in testing::statements() {
        let prepared = here.prepare(SqlStr::from_static(sqlite)).await;
        assert!(prepared.is_ok(), "{name} on SQLite: {}\n{sqlite}", prepared.unwrap_err());
        let prepared = there.prepare(SqlStr::from_static(postgres)).await;
        assert!(prepared.is_ok(), "{name} on PostgreSQL: {}\n{postgres}", prepared.unwrap_err());
    }
}

#[tokio::test]
async fn sqlite_finds_every_row_by_an_index() {
    let database = TestDatabase::sqlite().await;
    filled(&database).await;
    let TestDatabase::Sqlite { pool, .. } = &database else { unreachable!() };
    let mut found = Vec::new();
    for statistics in ["without statistics", "with statistics"] {
        for (name, text, _) in testing::statements().into_iter().filter(|(name, ..)| !may_scan(name)) {
            let plan = sqlx::query(AssertSqlSafe(format!("explain query plan {text}")))
                .fetch_all(pool)
                .await
                .unwrap();
            let steps = plan.iter().map(|row| row.get::<String, _>("detail"));
            let scans = steps.filter(|step| scanned(step, text).iter().any(|table| !is_small(table)));
            found.extend(scans.map(|step| format!("{name}, {statistics}: {step}")));
        }
        pool.execute("analyze").await.unwrap();
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn every_table_is_small_or_is_filled_before_plans_are_judged() {
    let database = TestDatabase::sqlite().await;
    filled(&database).await;
    let tables = database
        .store_texts(
            "select substr(name, 9) from sqlite_schema where type in ('table', 'view') and name like 'refrain_%'",
        )
        .await;
    for (small, _) in SMALL {
        assert!(tables.iter().any(|table| table == small), "there is no table {small}");
    }
    for table in tables.iter().filter(|table| !is_small(table)) {
        let rows = database.store_numbers(&format!("select count(*) from refrain_{table}")).await[0];
        assert!(rows >= ROWS_MIN, "{table} has {rows} rows: fill it, or say why it stays small");
    }
}

/// SQLite has no index of the rows that a statement brings with it: each lookup in them reads them all. So they are
/// read once, and for each the row of the table is found; the other way round a claim of 2,000 from a line of 50,000
/// reads a hundred million.
#[tokio::test]
async fn sqlite_reads_the_rows_of_a_parameter_once() {
    let database = TestDatabase::sqlite().await;
    migrated(&database).await;
    let TestDatabase::Sqlite { pool, .. } = &database else { unreachable!() };
    let (mut found, mut lists) = (Vec::new(), 0);
    for round in ["empty", "full", "full, with statistics"] {
        for (name, text, _) in testing::statements() {
            let explained = sqlx::query(AssertSqlSafe(format!("explain query plan {text}")));
            let plan = explained.fetch_all(pool).await.unwrap();
            let steps: Vec<Step> =
                plan.iter().map(|row| (row.get("id"), row.get("parent"), row.get("detail"))).collect();
            lists += usize::from(steps.iter().any(|(.., step)| step.contains("jsonb_each")));
            found.extend(read_again(&steps).map(|step| format!("{name}, {round}: {step}")));
        }
        match round {
            "empty" => fill(&database).await,
            _ => drop(pool.execute("analyze").await.unwrap()),
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(lists > 3 * 30, "{lists}");
}

#[tokio::test]
async fn postgres_finds_every_row_by_an_index() {
    let database = TestDatabase::postgres().await;
    filled(&database).await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let mut connection = pool.acquire().await.unwrap();
    connection.execute(AssertSqlSafe(testing::begin_on_postgres())).await.unwrap();
    let mut found = Vec::new();
    for statistics in ["without statistics", "with statistics"] {
        for (name, _, text) in testing::statements().into_iter().filter(|(name, ..)| !may_scan(name)) {
            let plan = plan_of(&mut connection, text).await;
            let mut scans = Vec::new();
            scans_of(&plan, false, &mut scans);
            found.extend(scans.into_iter().map(|scan| format!("{name}, {statistics}: {scan}")));
        }
        connection.execute("analyze").await.unwrap();
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn plans_that_postgres_makes_for_an_empty_ledger_suit_a_full_one() {
    let database = TestDatabase::postgres().await;
    migrated(&database).await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let mut connection = pool.acquire().await.unwrap();
    connection.execute("vacuum (analyze)").await.unwrap();
    connection.execute(AssertSqlSafe(testing::begin_on_postgres())).await.unwrap();
    let mut found = Vec::new();
    for (name, _, text) in testing::statements() {
        let is_asked = OF_THE_LEDGER.iter().any(|folder| name.starts_with(folder));
        if is_asked && FORGOTTEN.iter().all(|(other, _)| name != *other) {
            let mut scans = Vec::new();
            scans_of(&plan_of(&mut connection, text).await, false, &mut scans);
            found.extend(scans.into_iter().map(|scan| format!("{name}: {scan}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
