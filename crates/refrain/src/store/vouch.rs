//! An operator vouches that an interrupted command has done its work: its run becomes done, and is not executed.
//!
//! The row of the run is locked, and must be as the operator saw it: closed, not done, with the same last attempt, and with a
//! command whose end is not known. If two operators vouch at once, or one of them requests another attempt, the second gets
//! false. The statement of the operator is an attempt of its own, so the interrupted attempt stays in the history.

use super::audit::{self, Decision};
use super::run_row::RunLook;
use super::{Result, Store, catalog, run_state, with_retries};
use crate::database::place;
use refrain_core::state::{FailureReason, RunEvent};

/// The message of such a run.
const SAID: &str = "a person said that it was done";

/// A run whose command was interrupted, as the operator saw it.
#[derive(Debug)]
pub(crate) struct Vouching<'d> {
    pub(crate) run: i64,
    /// Its last attempt.
    pub(crate) after: u64,
    /// The version of the job, if it is known.
    pub(crate) version: Option<i32>,
    pub(crate) decision: &'d Decision,
}

/// Records it as done. False: it is not held, or not any more.
pub(crate) async fn vouch(store: &Store, request: &Vouching<'_>) -> Result<bool> {
    let mut is_first = true;
    with_retries(|| {
        let again = !std::mem::replace(&mut is_first, false);
        async move { vouched(store, request, again).await }
    })
    .await
}

async fn vouched(store: &Store, request: &Vouching<'_>, again: bool) -> Result<bool> {
    let mut transaction = store.database.write().await?;
    let row: Option<RunLook> = transaction.fetch_optional(catalog::RUN_LOCK.bind(request.run)).await?;
    let Some(row) = row.filter(|row| !row.open) else { return Ok(false) };
    let attempt = u64::try_from(row.attempt).unwrap_or(0);
    let standing = row.standing()?;
    // After a lost answer the first try may have been committed.
    if again && standing.is_done() && attempt == request.after + 1 && row.worker.is_none() {
        return Ok(true);
    }
    if standing.apply(RunEvent::Vouched).is_err() || attempt != request.after {
        return Ok(false);
    }
    let marks = transaction.execute(catalog::BEGUN_CLEAR.bind(request.run)).await?;
    if marks == 0 && row.reason()? != Some(FailureReason::Held) {
        return Ok(false);
    }
    if !run_state::vouch(&mut transaction, &row, request.version, SAID).await? {
        return Ok(false);
    }
    audit::record(&mut transaction, request.decision).await?;
    transaction.commit(place!("settle")).await?;
    Ok(true)
}
