//! Statements of a job file, executed once per window and version, in one transaction with the ledger.
//!
//! The entry of the ledger and what the statements write commit together, in the database that they write to: a run that is
//! done again finds the entry and executes nothing. A statement that fails is the failure of the run, not of a unit among
//! others, so nothing is ever parked here.

use std::sync::Arc;

use refrain_core::project::{Sql, TimeForm};
use refrain_core::{Key, KeyError, Timetable, key};
use serde::Serialize;
use sqlx::Pool;

use super::binds::{Bound, bound};
use super::values::values;
use crate::job::{Job, JobError};
use crate::ledger::{BatchError, Per};
use crate::project::databases::{Connected, Database, Speaks};
use crate::run::Run;

/// What is executed, where.
#[derive(Debug, Clone)]
pub(crate) struct Statements {
    pub(crate) database: Arc<Database>,
    pub(crate) statements: Vec<Sql>,
    pub(crate) timetable: Option<Timetable>,
    /// The query whose column says of which type a scope is.
    pub(crate) scopes: Option<Sql>,
}

/// The one unit of such a run. What it says is its version: a text that was edited without another version is the same work.
#[derive(Serialize)]
struct Once {
    statements: &'static str,
}

impl Job for Statements {
    const NAME: &'static str = "sql";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        // How often it may fail is for the run to count.
        run.facts.tries = i32::MAX.unsigned_abs();
        match self.database.connect().await? {
            Connected::Sqlite(pool) => self.apply(run, pool).await,
            Connected::Postgres(pool) => self.apply(run, pool).await,
        }
    }
}

impl Statements {
    async fn apply<DB: Speaks>(&self, run: &Run, pool: &Pool<DB>) -> Result<(), JobError> {
        let texts = self.bound(run, pool).await?;
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
            batch.settle(went).await?;
            if is_well {
                failed = None;
                tracing::info!(job = %run.job(), run = run.key(), rows, "statements executed");
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn bound<DB: Speaks>(&self, run: &Run, pool: &Pool<DB>) -> Result<Vec<Bound>, JobError> {
        let values = values(run, self.timetable.as_ref());
        let time = self.database.time();
        let needs_scope = self.statements.iter().any(|sql| sql.names().contains(&"scope"));
        let scope = match &self.scopes {
            Some(query) if needs_scope => Some(scope_kind(query, pool, time).await?),
            _ => None,
        };
        let bind = |sql: &Sql| bound(sql, &values, DB::DIALECT, time, scope.as_deref());
        self.statements.iter().map(|sql| bind(sql).map_err(JobError::for_good)).collect()
    }

    fn told(&self, at: usize, error: &sqlx::Error) -> JobError {
        let said = match error {
            sqlx::Error::Database(error) => error.message().to_owned(),
            error => error.to_string(),
        };
        let first = self.statements.get(at).map(Sql::text).unwrap_or_default();
        let first: String = first.split_whitespace().take(6).collect::<Vec<_>>().join(" ");
        JobError::new(format!("statement {} of {} ({first} …): {said}", at + 1, self.statements.len()))
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
    Ok(DB::kind_of_first_column(pool, &query).await?)
}
