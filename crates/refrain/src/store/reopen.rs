//! Asks for another attempt of a run: run, retry, `--again`, a backfill.
//!
//! The compare-and-set `open: false → true` is the only way. Whoever comes second finds an attempt open already, and
//! follows that one.
//!
//! Whoever asks has looked what became of the last one: a command that was held because it was interrupted may begin.

use super::audit::{self, Decision};
use super::lanes::{self, Entrant};
use super::queue_line::{Line, Priority};
use super::run_row::RunLook;
use super::{Result, Store, catalog, with_retries};
use crate::database::place;
use crate::database::statement::Rows;
use crate::failpoint;
use refrain_core::Word as _;

/// What became of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reopened {
    /// An attempt of this number is queued.
    Queued(i32),
    /// One was open already, or has been since.
    AlreadyOpen,
}

/// Which runs a request is meant for.
#[derive(Debug)]
pub(crate) struct Reopening<'d> {
    pub(crate) run: i64,
    /// The attempt that the request is for another one after. If there is a later one, somebody was faster.
    pub(crate) after: u64,
    pub(crate) priority: Priority,
    /// Whether runs of this job stay in lanes.
    pub(crate) in_lane: bool,
    /// Who asks, and for what.
    pub(crate) decision: &'d Decision,
}

pub(crate) async fn reopen(store: &Store, request: &Reopening<'_>) -> Result<Reopened> {
    with_retries(|| reopened(store, request)).await
}

async fn reopened(store: &Store, request: &Reopening<'_>) -> Result<Reopened> {
    let mut transaction = store.database.write().await?;
    let row: Option<RunLook> = transaction.fetch_optional(catalog::RUN_SHOW_END.bind(request.run)).await?;
    let is_guarded = !failpoint::is_weakened("reopen.no-look-up");
    let is_last = |row: &RunLook| {
        !is_guarded || (!row.open && u64::try_from(row.attempt).unwrap_or(0) == request.after)
    };
    let Some(row) = row.filter(is_last) else { return Ok(Reopened::AlreadyOpen) };
    let attempt = row.attempt + 1;
    let line = Line::of(request.priority, row.job);
    let entrant = Entrant::fresh(row.key.clone(), row.id, attempt);
    let mut may_begin = true;
    if request.in_lane {
        let (_, waiting) = lanes::take(&mut transaction, row.job, vec![entrant.clone()]).await?;
        lanes::wait(&mut transaction, row.job, line.0, &waiting).await?;
        may_begin = waiting.is_empty();
    }
    let reopen = catalog::RUN_REOPEN.bind(request.run).bind(row.attempt).bind(request.decision.verb.name());
    if transaction.execute(reopen).await? == 0 {
        return Ok(Reopened::AlreadyOpen);
    }
    transaction.execute(catalog::ATTEMPT_KEEP.bind(request.run)).await?;
    transaction.execute(catalog::CANCELLATION_DONE.bind(Rows::default().integers([request.run]))).await?;
    transaction.execute(catalog::BEGUN_CLEAR.bind(request.run)).await?;
    if may_begin {
        let rows = lanes::queued(&[&entrant], request.in_lane);
        transaction.execute(catalog::QUEUE_INSERT.bind(line.0).bind(rows)).await?;
    }
    audit::record(&mut transaction, request.decision).await?;
    transaction.commit(place!("reopen")).await?;
    Ok(Reopened::Queued(attempt))
}
