//! Executes the statements of a job file once per window and version, in one transaction with the ledger.
//!
//! The ledger entry and the effects of the statements commit together, in the database that they write to: a run that is
//! executed again finds the entry and executes nothing. A failed statement is a failure of the run and not of a unit, so
//! nothing is ever parked here.

use std::sync::Arc;

use refrain_core::project::Sql;
use refrain_core::{Key, KeyError, key};
use serde::Serialize;
use sqlx::Pool;

use crate::bind::context::About;
use crate::database::DatabaseError;
use crate::job::Job;
use crate::ledger::{BatchError, LedgerError, Per};
use crate::run::{JobError, Run};
use crate::user_database::{Backend, UserDatabase, message_of, on_pool};

/// How many of its first words identify a statement in a message.
const WORDS: usize = 6;

/// A job that executes SQL statements.
#[derive(Debug, Clone)]
pub(crate) struct SqlJob {
    pub(crate) database: Arc<UserDatabase>,
    pub(crate) texts: Vec<Sql>,
    pub(crate) about: About,
}

/// The only unit of such a run. It has no content: statements that were edited without a new version are the same work.
#[derive(Serialize)]
struct Once {
    statements: &'static str,
}

impl Job for SqlJob {
    const NAME: &'static str = "sql";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        run.facts.fail_as_a_whole();
        on_pool!(self.database.connect().await?, |pool| self.apply(run, pool).await)
    }
}

impl SqlJob {
    async fn apply<DB: Backend>(&self, run: &Run, pool: &Pool<DB>) -> Result<(), JobError> {
        let values = self.about.values(run);
        let texts = self.about.bound::<DB>(&self.texts, &values, self.database.time()).await?;
        let fence = run.fence(pool).await?;
        let (per, of) = match run.window() {
            Some(_) => (Per::Window, key!("sql")),
            None => (Per::Ever, key!("sql", run.key())),
        };
        let units = fence.units(per, move |_: &Once| -> Result<Key, KeyError> { of.clone() });
        let once = [Once { statements: "sql" }];
        let mut batches = units.apply(&once).await?;
        let mut failed = None;
        while let Some(mut batch) = batches.next().await? {
            let mut rows = 0;
            let mut went = Ok(());
            for (at, text) in texts.iter().enumerate() {
                match DB::execute_bound(batch.tx(), text).await {
                    Ok(changed) => rows += changed,
                    Err(error) => {
                        failed = Some(self.failure(at, &error));
                        went = Err(BatchError::from(error));
                        break;
                    }
                }
            }
            let is_well = went.is_ok();
            match (batch.settle(went).await, failed.take()) {
                (Ok(()), _) if is_well => {
                    tracing::info!(job = %run.job(), run = run.key(), rows, "statements executed");
                }
                (Ok(()), failure) => failed = failure,
                // An error of the ledger's own statement says less than that of the job's statement.
                (Err(LedgerError::Database(DatabaseError::Statement(_))), Some(failure)) => {
                    return Err(failure);
                }
                (Err(error), _) => return Err(error.into()),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// The error of a statement, with its number and first words.
    fn failure(&self, at: usize, error: &sqlx::Error) -> JobError {
        let text = self.texts.get(at).map(Sql::text).unwrap_or_default();
        let mut words = text.split_whitespace();
        let mut first: Vec<&str> = words.by_ref().take(WORDS).collect();
        first.extend(words.next().map(|_| "…"));
        let (number, count, first, said) = (at + 1, self.texts.len(), first.join(" "), message_of(error));
        let message = format!("statement {number} of {count} (`{first}`): {said}");
        JobError::new(self.about.redactor.redact(&message))
    }
}
