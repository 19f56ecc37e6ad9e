//! Cancels a run. A run that has not begun ends here; the worker of one that has begun is asked to end it, and reads the request
//! with its next heartbeat.

use refrain_core::state::{Attempts, Refusal, RunEvent};

use super::audit::{self, Decision};
use super::claim::scope_of;
use super::lanes::{self, Waiting};
use super::queue_line::Line;
use super::run_row::RunLook;
use super::{Result, Store, catalog, queue, run_state, with_retries};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place};

const CANCELLED: &str = "cancelled before it began";

/// The answer to the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cancelled {
    /// It had not begun, and will not.
    Now,
    /// It is running, and its worker has been asked to end it.
    Asked,
    /// It has already ended.
    Ended(Refusal),
}

pub(crate) async fn cancel(store: &Store, run: i64, decision: &Decision) -> Result<Option<Cancelled>> {
    with_retries(|| cancelled(store, run, decision)).await
}

async fn cancelled(store: &Store, run: i64, decision: &Decision) -> Result<Option<Cancelled>> {
    let mut transaction = store.database.write().await?;
    let row: Option<RunLook> = transaction.fetch_optional(catalog::RUN_SHOW_END.bind(run)).await?;
    let Some(row) = row else { return Ok(None) };
    let scope = scope_of(&row.key).to_owned();
    lanes::hold(&mut transaction, &[(row.job, &scope)]).await?;
    let row: Option<RunLook> = transaction.fetch_optional(catalog::RUN_LOCK.bind(run)).await?;
    let Some(row) = row else { return Ok(None) };
    if !row.open {
        return Ok(row.standing()?.apply(RunEvent::Cancelled).err().map(Cancelled::Ended));
    }
    let Some((attempt, holds_lane)) = withdraw(&mut transaction, &row, &scope).await? else {
        if !is_running(&mut transaction, &row).await? {
            // It was moved from one queue to another between two looks.
            return Err(DatabaseError::Busy(format!("the run {run} is being moved")).into());
        }
        // A second request changes nothing and is not a second decision.
        if transaction.execute(catalog::CANCELLATION_ASK.bind(run)).await? > 0 {
            audit::record(&mut transaction, decision).await?;
        }
        transaction.commit(place!("cancel")).await?;
        return Ok(Some(Cancelled::Asked));
    };
    run_state::cancel(&mut transaction, &row, attempt, CANCELLED).await?;
    audit::record(&mut transaction, decision).await?;
    if holds_lane {
        lanes::leave(&mut transaction, &[(row.job, scope, run)]).await?;
    }
    transaction.commit(place!("cancel")).await?;
    Ok(Some(Cancelled::Now))
}

/// Whether a worker holds it.
async fn is_running(transaction: &mut Transaction, row: &RunLook) -> Result<bool> {
    let lines = Line::all(row.job);
    let places = Rows::default().integers(lines.map(|line| line.0)).integers(lines.map(|_| row.id));
    let queued: Option<(i64, i64, Option<i64>, i64)> =
        transaction.fetch_optional(catalog::QUEUE_FIND.bind(places)).await?;
    Ok(queued.is_some_and(|(_, _, lease, _)| lease.is_some()))
}

/// Takes the open attempt out of its queue, if it has not begun. Returns its number, and whether it held its lane.
async fn withdraw(transaction: &mut Transaction, row: &RunLook, scope: &str) -> Result<Option<(i32, bool)>> {
    let lines = Line::all(row.job);
    let places = Rows::default().integers(lines.map(|line| line.0)).integers(lines.map(|_| row.id));
    let queued: Option<(i64, i32, bool)> =
        transaction.fetch_optional(catalog::QUEUE_WITHDRAW.bind(places)).await?;
    if let Some((_, attempt, lane)) = queued {
        return Ok(Some((attempt, lane)));
    }
    let delayed: Option<(i64, i64, i32, bool)> =
        transaction.fetch_optional(catalog::DELAYED_FIND.bind(row.id)).await?;
    if let Some((_, _, attempt, lane)) = delayed {
        transaction.execute(catalog::DELAYED_LEAVE.bind(Rows::default().integers([row.id]))).await?;
        return Ok(Some((attempt, lane)));
    }
    let find = catalog::LANE_FIND.bind(row.job).bind(scope).bind(row.key.as_str());
    let waiting: Option<Waiting> = transaction.fetch_optional(find).await?;
    if let Some(waiting) = waiting {
        let stop = catalog::LANE_STOP_WAITING.bind(row.job).bind(scope).bind(row.key.as_str());
        transaction.execute(stop).await?;
        let number = queue::number(Attempts::from(waiting.attempts));
        return Ok(Some((i32::try_from(number).unwrap_or(i32::MAX), false)));
    }
    Ok(None)
}
