//! A row of `refrain_runs`: all of it ([`RunRow`]), and the columns that a change compares ([`RunLook`]).
//!
//! The lists of columns are `columns(run)` and `columns(run look)` in `database/statement.rs`.

use refrain_core::JobName;
use refrain_core::state::{FailureReason, Open, RunOutcome, RunStanding};

use super::queue_line::JobNumber;
use super::{Result, StoreError};

/// A run as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct RunRow {
    pub(crate) id: i64,
    pub(crate) job: String,
    pub(crate) job_number: JobNumber,
    pub(crate) attempt: i32,
    pub(crate) version: Option<i32>,
    pub(crate) window_start: Option<i64>,
    pub(crate) window_end: Option<i64>,
    pub(crate) opened_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) ended_at: Option<i64>,
    pub(crate) open: bool,
    pub(crate) key: String,
    pub(crate) outcome: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) payload: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) redo: Option<i32>,
}

impl RunRow {
    /// Whether its payload was pruned. A payload is JSON, so the empty text cannot be one.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.payload.as_deref() == Some("")
    }

    pub(crate) fn outcome(&self) -> Result<Option<RunOutcome>> {
        let outcome = self.outcome.as_deref().map(str::parse).transpose();
        outcome.map_err(|error| StoreError::Broken(format!("run {}: {error}", self.id)))
    }

    /// Why its last attempt did not do its work, if it did not.
    pub(crate) fn reason(&self) -> Result<Option<FailureReason>> {
        let reason = self.reason.as_deref().map(str::parse).transpose();
        reason.map_err(|error| StoreError::Broken(format!("run {}: {error}", self.id)))
    }

    /// Why the row cannot be read, if it cannot.
    pub(crate) fn fault(&self) -> Option<String> {
        let instants =
            [self.window_start, self.window_end, Some(self.opened_at), self.started_at, self.ended_at];
        let outcome = self.outcome().err().or(self.reason().err());
        let instant = instants.into_iter().flatten().find_map(|at| super::instant(at).err());
        let fault = outcome.or(instant).map(|fault| match fault {
            StoreError::Broken(what) => what,
            other => other.to_string(),
        });
        fault.or_else(|| JobName::parse(&self.job).err().map(|error| format!("its job: {}", error.reason())))
    }
}

/// The columns of a run that a change compares before it writes.
#[derive(sqlx_macros::FromRow)]
pub(crate) struct RunLook {
    pub(crate) id: i64,
    pub(crate) job: JobNumber,
    pub(crate) key: String,
    pub(crate) open: bool,
    pub(crate) attempt: i32,
    pub(crate) worker: Option<i64>,
    pub(crate) outcome: Option<String>,
    pub(crate) reason: Option<String>,
}

impl RunLook {
    /// How it last ended, and whether an attempt is open. Whether a worker holds that attempt, the queue says.
    pub(crate) fn standing(&self) -> Result<RunStanding> {
        Ok(RunStanding { outcome: self.outcome()?, open: self.open.then_some(Open::Queued) })
    }

    pub(crate) fn outcome(&self) -> Result<Option<RunOutcome>> {
        let outcome = self.outcome.as_deref().map(str::parse).transpose();
        outcome.map_err(|error| StoreError::Broken(format!("run {}: {error}", self.id)))
    }

    pub(crate) fn reason(&self) -> Result<Option<FailureReason>> {
        let reason = self.reason.as_deref().map(str::parse).transpose();
        reason.map_err(|error| StoreError::Broken(format!("run {}: {error}", self.id)))
    }
}
