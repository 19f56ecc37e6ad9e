//! The numbers of ledgers in a database: found or created once, and cached, so that a thousand runs that begin together do
//! not all create the same one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use refrain_core::{JobName, ProjectName, Scope};
use tokio::sync::OnceCell;

use super::{LedgerError, Result, catalog};
use crate::database::statement::{Bound, Statement};
use crate::database::{Database, DatabaseError, place, retried};

/// How many are cached.
const REMEMBERED_MAX: usize = 10_000;

/// What identifies a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LedgerName {
    pub(crate) project: ProjectName,
    pub(crate) job: JobName,
    pub(crate) scope: Scope,
    /// The start of its window; empty for a permanent ledger.
    pub(crate) window: String,
}

/// The ledgers of one database that this process has met.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledgers(Arc<Mutex<HashMap<LedgerName, Arc<OnceCell<i64>>>>>);

impl Ledgers {
    /// The number of a ledger; creates the ledger if it is new.
    pub(crate) async fn find(&self, database: &Database, book: LedgerName) -> Result<i64> {
        let cell = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= REMEMBERED_MAX {
                known.clear();
            }
            Arc::clone(known.entry(book.clone()).or_default())
        };
        cell.get_or_try_init(|| open(database, &book)).await.copied()
    }
}

impl LedgerName {
    fn bind(&self, statement: &'static Statement) -> Bound<'_> {
        let named = statement.bind(self.project.as_str()).bind(self.job.as_str());
        named.bind(self.scope.as_str()).bind(self.window.as_str())
    }
}

async fn open(database: &Database, book: &LedgerName) -> Result<i64> {
    let mut transaction = database.read().await?;
    let found: Option<(i64,)> = transaction.fetch_optional(book.bind(&catalog::LEDGER_FIND)).await?;
    drop(transaction);
    if let Some((id,)) = found {
        return Ok(id);
    }
    let opened: Option<(i64,)> = retried(|| async {
        let mut transaction = database.write().await?;
        transaction.execute(book.bind(&catalog::LEDGER_OPEN)).await?;
        let found = transaction.fetch_optional(book.bind(&catalog::LEDGER_FIND)).await?;
        transaction.commit(place!("ledger-open")).await?;
        Ok::<_, DatabaseError>(found)
    })
    .await?;
    opened.map(|(id,)| id).ok_or(LedgerError::Contended)
}
