//! Reads what explains the state of a run: which worker holds it, which runs are before it, which requests were dedupes.

use super::queue_line::{JobNumber, Line};
use super::{Result, Store, catalog};
use crate::database::statement::Rows;

/// The worker that holds a run.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct RunHolder {
    pub(crate) worker: i64,
    pub(crate) claimed_at: i64,
    /// None if the worker is gone, and its runs are being taken over.
    pub(crate) process: Option<String>,
    pub(crate) expires_at: Option<i64>,
}

/// The worker that holds a run, if there is one.
pub(crate) async fn hold(store: &Store, job: JobNumber, run: i64) -> Result<Option<RunHolder>> {
    let lines = Line::all(job);
    let places = Rows::default().integers(lines.map(|line| line.0)).integers(lines.map(|_| run));
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_optional(catalog::QUEUE_HOLDER.bind(places)).await?)
}

/// How many runs are before a run in its line, at most `limit`.
pub(crate) async fn ahead(store: &Store, line: Line, run: i64, limit: i64) -> Result<u64> {
    let mut transaction = store.database.read().await?;
    let ahead = catalog::QUEUE_AHEAD.bind(line.0).bind(run).bind(limit);
    let row: Option<(i64,)> = transaction.fetch_optional(ahead).await?;
    Ok(row.map_or(0, |(count,)| u64::try_from(count).unwrap_or_default()))
}

/// The runs that hold the slots of a job.
pub(crate) async fn slot_holders(store: &Store, job: JobNumber, limit: i64) -> Result<Vec<i64>> {
    let mut transaction = store.database.read().await?;
    let rows: Vec<(i64,)> = transaction.fetch_all(catalog::SLOT_HOLDERS.bind(job).bind(limit)).await?;
    Ok(rows.into_iter().map(|(run,)| run).collect())
}

/// When, and by which command, there was a dedupe of a run; the last first.
pub(crate) async fn repeated_requests(store: &Store, run: i64, limit: i64) -> Result<Vec<(i64, String)>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::DEDUPE_LATEST.bind(run).bind(limit)).await?)
}

/// Whether the operator has cancelled a running run.
pub(crate) async fn is_cancelled(store: &Store, run: i64) -> Result<bool> {
    let mut transaction = store.database.read().await?;
    let found: Option<(i64,)> =
        transaction.fetch_optional(catalog::CANCELLATION_FIND.bind(Rows::default().integers([run]))).await?;
    Ok(found.is_some())
}

/// How many scopes a window has, once its own run has evaluated them.
pub(crate) async fn frozen_scopes(store: &Store, run: i64) -> Result<Option<u64>> {
    let mut transaction = store.database.read().await?;
    let row: Option<(i64, String)> = transaction.fetch_optional(catalog::EXPANSION_FIND.bind(run)).await?;
    Ok(row.map(|(scopes, _)| u64::try_from(scopes).unwrap_or_default()))
}

/// Dedupes of the units of some runs, the newest run first: the run, the reason, and the first keys as JSON.
pub(crate) async fn unit_dedupes(store: &Store, runs: &[i64]) -> Result<Vec<(i64, String, String)>> {
    let rows = Rows::default().integers(runs.iter().copied());
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::UNIT_DEDUPE_OF_RUNS.bind(rows)).await?)
}
