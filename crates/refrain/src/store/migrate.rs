//! Brings the tables of a store to the schema that this release knows.
//!
//! All steps are one transaction, under a lock that ends with it, so two machines that start at once make the tables
//! once, and a step that fails leaves nothing. A schema from the future is refused by everyone who opens the store:
//! an old release does not know what it would break.

use std::fmt::Write as _;

use super::{Result, StoreError, settled};
use crate::database::statement::Statement;
use crate::database::{Database, Transaction, place};

struct Migration {
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! migration {
    ($name:literal) => {
        Migration {
            name: $name,
            sqlite: include_str!(concat!("../../migrations/store/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../migrations/store/postgres/", $name, ".sql")),
        }
    };
}

const MIGRATIONS: &[Migration] = &[migration!("0001_initial")];

/// Where the steps are recorded. Before this table there is nothing, so it cannot be a migration itself.
const BEFORE_SQLITE: &str = "create table if not exists refrain_migrations (
    number integer not null primary key, name text not null, applied_at integer not null) strict";
const BEFORE_POSTGRES: &str = r#"select pg_advisory_xact_lock(7381140026);
create schema if not exists refrain;
create table if not exists refrain.migrations (
    number integer not null primary key, name text collate "C" not null, applied_at bigint not null)"#;

static EXISTS_SQLITE: Statement = Statement::new(
    "migrate/exists",
    "select count(*) as number from sqlite_schema where name = 'refrain' || '_migrations'",
);
static EXISTS_POSTGRES: Statement = Statement::new(
    "migrate/exists",
    "select count(*) as number from information_schema.tables where table_schema = 'refrain' and table_name = 'migrations'",
);
static LATEST: Statement = Statement::new(
    "migrate/latest",
    "select coalesce(cast(max(number) as integer), 0) as number from refrain_migrations",
);
static APPLIED: Statement = Statement::new(
    "migrate/applied",
    "insert into refrain_migrations (number, name, applied_at) values ($1, $2, (select now from refrain_clock))",
);

/// The schema that this release knows.
pub(crate) fn known() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

/// Makes the tables, or brings them up to date. Gives the names of the steps that were taken.
pub(crate) async fn migrate(database: &Database) -> Result<Vec<&'static str>> {
    if database.is_sqlite() && found(database).await? == Some(known()) {
        return Ok(Vec::new());
    }
    settled(|| migrated(database)).await
}

async fn migrated(database: &Database) -> Result<Vec<&'static str>> {
    let mut transaction = database.write().await?;
    transaction.script(if database.is_sqlite() { BEFORE_SQLITE } else { BEFORE_POSTGRES }).await?;
    let found = latest(&mut transaction).await?;
    refuse_the_future(found)?;
    let mut taken = Vec::new();
    for (number, migration) in (1i32..).zip(MIGRATIONS) {
        if number > found {
            let text = if database.is_sqlite() { migration.sqlite } else { migration.postgres };
            transaction.script(text).await?;
            transaction.execute(APPLIED.bind(number).bind(migration.name)).await?;
            taken.push(migration.name);
        }
    }
    transaction.commit(place!("migrate")).await?;
    Ok(taken)
}

/// What [`migrate`] would run on PostgreSQL, for whoever wants to read it or to run it as somebody else.
pub(crate) fn script_for_postgres() -> String {
    let mut script = format!("begin;\n{BEFORE_POSTGRES};\n");
    for (number, migration) in (1..).zip(MIGRATIONS) {
        let _ = write!(
            script,
            "\n{}\ninsert into refrain.migrations (number, name, applied_at) values ({number}, '{}', (select now from refrain.clock));\n",
            migration.postgres, migration.name
        );
    }
    script + "commit;\n"
}

/// Whether the tables are those that this release knows.
pub(crate) async fn check(database: &Database) -> Result<()> {
    let found = found(database).await?.ok_or(StoreError::Missing)?;
    refuse_the_future(found)?;
    if found < known() { Err(StoreError::TooOld { found, needed: known() }) } else { Ok(()) }
}

fn refuse_the_future(found: i32) -> Result<()> {
    if found > known() { Err(StoreError::FromTheFuture { found, known: known() }) } else { Ok(()) }
}

async fn found(database: &Database) -> Result<Option<i32>> {
    let mut transaction = database.read().await?;
    let exists = if database.is_sqlite() { &EXISTS_SQLITE } else { &EXISTS_POSTGRES };
    let there: Option<(i64,)> = transaction.fetch_optional(exists.bound()).await?;
    if there == Some((0,)) {
        return Ok(None);
    }
    latest(&mut transaction).await.map(Some)
}

async fn latest(transaction: &mut Transaction) -> Result<i32> {
    let row: Option<(i32,)> = transaction.fetch_optional(LATEST.bound()).await?;
    Ok(row.map_or(0, |(number,)| number))
}
