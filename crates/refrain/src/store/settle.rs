//! A person says of a command that was cut off that it has done its work: its run becomes done, and is not executed.
//!
//! The run's row is held, and must be as it was seen: closed, not done, with the same last attempt, and with a command of which
//! it is not known how it ended. Of two people who say so at once, or of whom one has it executed again, one finds it changed and
//! is told. The word of a person is an attempt of its own, so the one that was cut off stays in the history.

use super::audit::{self, Decision};
use super::finish::RunLook;
use super::{Result, Store, catalog, settled};
use crate::database::place;
use refrain_core::state::{FailureReason, RunEvent, RunStanding};

/// What is said of such a run.
const SAID: &str = "a person said that it was done";

/// A run whose command was cut off, as it was seen.
#[derive(Debug)]
pub(crate) struct Settling<'d> {
    pub(crate) run: i64,
    /// Its last attempt.
    pub(crate) after: u64,
    /// The version of the job, if it is known.
    pub(crate) version: Option<i32>,
    pub(crate) decision: &'d Decision,
}

/// Records it as done. False: nothing of it is held, or not any more.
pub(crate) async fn settle(store: &Store, wish: &Settling<'_>) -> Result<bool> {
    let mut is_first = true;
    settled(|| {
        let again = !std::mem::replace(&mut is_first, false);
        async move { settled_once(store, wish, again).await }
    })
    .await
}

async fn settled_once(store: &Store, wish: &Settling<'_>, again: bool) -> Result<bool> {
    let mut transaction = store.database.write().await?;
    let row: Option<RunLook> = transaction.fetch_optional(catalog::RUN_LOCK.bind(wish.run)).await?;
    let Some(row) = row.filter(|row| !row.open) else { return Ok(false) };
    let attempt = u64::try_from(row.attempt).unwrap_or(0);
    let standing = RunStanding { outcome: row.outcome()?, open: None };
    // After a lost answer the first try may have been made.
    if again && standing.is_done() && attempt == wish.after + 1 && row.worker.is_none() {
        return Ok(true);
    }
    if standing.apply(RunEvent::Vouched).is_err() || attempt != wish.after {
        return Ok(false);
    }
    let marks = transaction.execute(catalog::BEGUN_CLEAR.bind(wish.run)).await?;
    if marks == 0 && row.reason()? != Some(FailureReason::Held) {
        return Ok(false);
    }
    transaction.execute(catalog::ATTEMPT_KEEP.bind(wish.run)).await?;
    let settle = catalog::RUN_SETTLE.bind(wish.run).bind(row.attempt);
    let settle = settle.bind(wish.version.map(i64::from)).bind(SAID);
    if transaction.execute(settle).await? == 0 {
        return Ok(false);
    }
    audit::record(&mut transaction, wish.decision).await?;
    transaction.commit(place!("settle")).await?;
    Ok(true)
}
