//! Requests another attempt of a run: run, retry, `--again`, a backfill.
//!
//! The compare-and-set `open: false → true` is the only way. The second of two callers finds an attempt open already, and follows
//! that one.
//!
//! The caller has seen how the last attempt ended: a command that was held because it was interrupted may begin.

use super::audit::{self, Decision};
use super::lanes::{self, Entrant};
use super::queue;
use super::queue_line::{Line, Priority};
use super::run_row::RunLook;
use super::{Result, Store, catalog, run_state, with_retries};
use crate::database::place;
use crate::database::statement::Rows;
use crate::failpoint;
use refrain_core::state::{AttemptChange, Attempts};

/// The answer to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reopened {
    /// Another attempt is queued.
    Queued,
    /// An attempt was open already, or has been since.
    AlreadyOpen,
}

/// A request for another attempt of a run.
#[derive(Debug)]
pub(crate) struct Reopening<'d> {
    pub(crate) run: i64,
    /// The last attempt that the caller has seen. If there is a later one, another caller was faster.
    pub(crate) after: u64,
    pub(crate) priority: Priority,
    /// Whether runs of this job stay in lanes.
    pub(crate) in_lane: bool,
    /// Who decided this, and what.
    pub(crate) decision: &'d Decision,
}

pub(crate) async fn reopen(store: &Store, request: &Reopening<'_>) -> Result<Reopened> {
    failpoint::reach("reopen.requested");
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
    let last = Attempts { number: u64::try_from(row.attempt).unwrap_or(0), ..Attempts::default() };
    let line = Line::of(request.priority, row.job);
    let entrant = Entrant::new(row.key.clone(), row.id, last.then(AttemptChange::Fresh));
    let mut may_begin = true;
    if request.in_lane {
        let (_, waiting) = lanes::take(&mut transaction, row.job, vec![entrant.clone()]).await?;
        lanes::wait(&mut transaction, row.job, line, &waiting).await?;
        may_begin = waiting.is_empty();
    }
    if !run_state::reopen(&mut transaction, &row, request.decision.verb).await? {
        return Ok(Reopened::AlreadyOpen);
    }
    transaction.execute(catalog::CANCELLATION_DONE.bind(Rows::default().integers([request.run]))).await?;
    transaction.execute(catalog::BEGUN_CLEAR.bind(request.run)).await?;
    if may_begin {
        queue::insert(&mut transaction, line, &[entrant.queued(request.in_lane)]).await?;
    }
    audit::record(&mut transaction, request.decision).await?;
    transaction.commit(place!("reopen")).await?;
    Ok(Reopened::Queued)
}
