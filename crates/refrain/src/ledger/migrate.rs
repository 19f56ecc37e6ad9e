//! The tables of a ledger. A SQLite file gets them at first use, and the log says so; on PostgreSQL an operator creates them.

use super::{LedgerError, Result};
use crate::database::schema::Compatibility;
use crate::database::{Database, retried};
use crate::schemas::LEDGER;

/// Creates or migrates the tables. Returns the names of the applied migrations.
pub(crate) async fn migrate(database: &Database) -> Result<Vec<&'static str>> {
    let applied = retried(|| async {
        let mut transaction = LEDGER.begin(database).await?;
        Ok(match LEDGER.compared(&mut transaction).await? {
            Compatibility::Older { found } => Ok(LEDGER.apply(transaction, found).await?),
            Compatibility::Missing => Ok(LEDGER.apply(transaction, 0).await?),
            Compatibility::Usable => Ok(Vec::new()),
            newer @ Compatibility::Newer { .. } => Err(newer),
        })
    });
    applied.await?.map_err(refusal)
}

/// Checks whether this release may use the tables; creates them in a SQLite file.
pub(crate) async fn check(database: &Database) -> Result<()> {
    match LEDGER.compatibility(database).await? {
        Compatibility::Usable => Ok(()),
        Compatibility::Missing | Compatibility::Older { .. } if database.is_sqlite() => {
            let applied = migrate(database).await?;
            if !applied.is_empty() {
                tracing::info!(migrations = ?applied, "created the tables of the ledger in this database");
            }
            Ok(())
        }
        compatibility => Err(refusal(compatibility)),
    }
}

/// Whether there are tables, and this release can read them; they may be older, for a look does not upgrade them.
pub(crate) async fn check_for_look(database: &Database) -> Result<bool> {
    let compatibility = LEDGER.compatibility(database).await?;
    match compatibility {
        Compatibility::Missing => Ok(false),
        _ if LEDGER.can_read(compatibility) => Ok(true),
        _ => Err(refusal(compatibility)),
    }
}

fn refusal(compatibility: Compatibility) -> LedgerError {
    match compatibility {
        Compatibility::Newer { found } => LedgerError::TooNew { found, known: LEDGER.known() },
        Compatibility::Older { found } => LedgerError::TooOld { found, needed: LEDGER.known() },
        Compatibility::Missing | Compatibility::Usable => LedgerError::Missing { script: LEDGER.script() },
    }
}
