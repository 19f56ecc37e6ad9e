//! Brings the tables of a store, and of the ledger in it, to the schema that this release knows.

use super::{Result, StoreError};
use crate::database::schema::{Schema, Standing, schema};
use crate::database::{Database, place, retried};
use crate::ledger;

static STORE: Schema = schema!(
    "store",
    "migrations",
    place!("migrate"),
    ["0001_initial", "0002_lanes", "0003_claims", "0004_audit"]
);

/// Makes the tables, or brings them up to date. Gives the names of the steps that were taken.
pub(crate) async fn migrate(database: &Database) -> Result<Vec<&'static str>> {
    let mut taken = Vec::new();
    // A store's own database is a destination like any other: units that stand for themselves are kept here.
    for schema in [&STORE, &ledger::migrate::LEDGER] {
        if database.is_sqlite() && schema.standing(database).await? == Standing::Known {
            continue;
        }
        match retried(|| schema.migrate(database)).await? {
            Ok(names) => taken.extend(names),
            Err(standing) => refused(schema, standing)?,
        }
    }
    Ok(taken)
}

/// What [`migrate`] would run on PostgreSQL, for whoever wants to read it or to run it as somebody else.
pub(crate) fn script_for_postgres() -> String {
    format!("{}\n{}", STORE.script(), ledger::migrate::LEDGER.script())
}

/// Whether the tables are those that this release knows.
pub(crate) async fn check(database: &Database) -> Result<()> {
    for schema in [&STORE, &ledger::migrate::LEDGER] {
        refused(schema, schema.standing(database).await?)?;
    }
    Ok(())
}

fn refused(schema: &Schema, standing: Standing) -> Result<()> {
    match standing {
        Standing::Known => Ok(()),
        Standing::Missing => Err(StoreError::Missing),
        Standing::Older { found } => Err(StoreError::TooOld { found, needed: schema.known() }),
        Standing::Newer { found } => Err(StoreError::FromTheFuture { found, known: schema.known() }),
    }
}
