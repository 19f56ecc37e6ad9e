//! Statements of a job file, executed once per window and version, in one transaction with the ledger.
//!
//! The entry of the ledger and what the statements write commit together, in the database that they write to: a run that is
//! done again finds the entry and executes nothing. A statement that fails is the failure of the run, not of a unit among
//! others, so nothing is ever parked here.

use std::sync::Arc;

use refrain_core::project::{Sql, TimeForm};
use refrain_core::{Key, KeyError, key};
use serde::Serialize;
use sqlx::Pool;

use super::about::About;
use super::binds::bound;
use crate::database::DatabaseError;
use crate::job::{Job, JobError};
use crate::ledger::{BatchError, LedgerError, Per};
use crate::project::databases::{Connected, Database, Speaks};
use crate::run::Run;

/// By so many of its first words a statement is told.
const WORDS: usize = 6;

/// What is executed, where.
#[derive(Debug, Clone)]
pub(crate) struct Statements {
    pub(crate) database: Arc<Database>,
    pub(crate) texts: Vec<Sql>,
    pub(crate) about: About,
}

/// The one unit of such a run. What it says is its version: a text that was edited without another version is the same work.
#[derive(Serialize)]
struct Once {
    statements: &'static str,
}

impl Job for Statements {
    const NAME: &'static str = "sql";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        // How often it may fail, or take its worker with it, is for the run to count.
        run.facts.tries = i32::MAX.unsigned_abs();
        run.facts.suspicion = 0;
        match self.database.connect().await? {
            Connected::Sqlite(pool) => self.apply(run, pool).await,
            Connected::Postgres(pool) => self.apply(run, pool).await,
        }
    }
}

impl Statements {
    async fn apply<DB: Speaks>(&self, run: &Run, pool: &Pool<DB>) -> Result<(), JobError> {
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
                match DB::execute(batch.tx(), text).await {
                    Ok(changed) => rows += changed,
                    Err(error) => {
                        failed = Some(self.told(at, &error));
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
                (Ok(()), told) => failed = told,
                // What the database says of a statement of its own is no news of the statement here.
                (Err(LedgerError::Database(DatabaseError::Statement(_))), Some(told)) => return Err(told),
                (Err(error), _) => return Err(error.into()),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn told(&self, at: usize, error: &sqlx::Error) -> JobError {
        let text = self.texts.get(at).map(Sql::text).unwrap_or_default();
        let mut words = text.split_whitespace();
        let mut first: Vec<&str> = words.by_ref().take(WORDS).collect();
        first.extend(words.next().map(|_| "…"));
        let (number, count, first, said) = (at + 1, self.texts.len(), first.join(" "), said(error));
        let told = format!("statement {number} of {count} (`{first}`): {said}");
        JobError::new(self.about.redactor.redact(&told))
    }
}

/// What a database says of a statement, and what it advises.
pub(crate) fn said(error: &sqlx::Error) -> String {
    let sqlx::Error::Database(error) = error else { return error.to_string() };
    let advice = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().and_then(|error| error.hint());
    match advice {
        Some(advice) => format!("{}\n  {advice}", error.message()),
        None => error.message().to_owned(),
    }
}

/// The type of the column that gives the scopes, as the database calls it.
pub(crate) async fn scope_kind<DB: Speaks>(
    query: &Sql,
    pool: &Pool<DB>,
    time: TimeForm,
) -> Result<String, JobError> {
    let nothing = super::values::of_any_window();
    let query = bound(query, &nothing, DB::DIALECT, time, None).map_err(JobError::for_good)?;
    Ok(DB::kinds(pool, &query).await?.into_iter().next().unwrap_or_default())
}
