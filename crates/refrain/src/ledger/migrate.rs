//! The tables of a ledger. On SQLite they are made at first use, and said so; on a server that is somebody's decision.

use super::{LedgerError, Result};
use crate::database::schema::{Schema, Standing, schema};
use crate::database::{Database, place, retried};

pub(crate) static LEDGER: Schema = schema!(
    "ledger",
    "ledger_migrations",
    place!("migrate-ledger"),
    ["0001_ledger", "0002_applied", "0003_claims", "0004_place"]
);

/// Makes the tables, or brings them up to date. Gives the names of the steps that were taken.
pub(crate) async fn migrate(database: &Database) -> Result<Vec<&'static str>> {
    match retried(|| LEDGER.migrate(database)).await? {
        Ok(taken) => Ok(taken),
        Err(standing) => Err(refusal(standing)),
    }
}

/// Whether the tables are those that this release knows; a file gets them.
pub(crate) async fn check(database: &Database) -> Result<()> {
    match LEDGER.standing(database).await? {
        Standing::Known => Ok(()),
        Standing::Missing | Standing::Older { .. } if database.is_sqlite() => {
            let taken = migrate(database).await?;
            if !taken.is_empty() {
                tracing::info!(steps = ?taken, "made the tables of the ledger in this database");
            }
            Ok(())
        }
        standing => Err(refusal(standing)),
    }
}

fn refusal(standing: Standing) -> LedgerError {
    match standing {
        Standing::Newer { found } => LedgerError::FromTheFuture { found, known: LEDGER.known() },
        _ => LedgerError::Missing { script: LEDGER.script() },
    }
}
