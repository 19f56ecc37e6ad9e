//! One tick of one schedule: the rows of every window that is due, and how far windows are opened, in one transaction.
//!
//! The core decides which windows are due ([`refrain_core::Revision::pass`]); this file records them. A schedule that another
//! scheduler has locked is left to it. If two schedulers tick the same windows all the same, each window is inserted once, and the
//! second scheduler finds a dedupe.

use jiff::Timestamp;
use refrain_core::{CatchUp, CatchUpVerdict, RunKey, Scope, TickPlan, WhileRunning};

use super::open::{NewRun, OpenCounts, insert};
use super::queue_line::{JobNumber, Priority};
use super::{Result, Store, catalog, instant, revisions, with_retries};
use crate::database::{Transaction, place};
use crate::failpoint;

/// The most windows that one tick opens; the next tick opens the rest.
pub(crate) const WINDOWS_MAX: usize = 1_000;

/// A job with a schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scheduled {
    pub(crate) job: JobNumber,
    pub(crate) catch_up: CatchUp,
    pub(crate) while_running: WhileRunning,
}

#[derive(sqlx_macros::FromRow)]
pub(super) struct ScheduleRow {
    pub(super) covered: Option<i64>,
    pub(super) paused_at: Option<i64>,
}

/// Opens the windows that are due at `now`. None if another scheduler has locked the schedule, or there is none.
pub(crate) async fn tick(store: &Store, scheduled: Scheduled, now: Timestamp) -> Result<Option<OpenCounts>> {
    with_retries(|| ticked(store, scheduled, now)).await
}

async fn ticked(store: &Store, scheduled: Scheduled, now: Timestamp) -> Result<Option<OpenCounts>> {
    let mut transaction = store.database.write().await?;
    let lock = catalog::SCHEDULE_LOCK.bind(scheduled.job);
    let Some(schedule) = transaction.fetch_optional::<ScheduleRow>(lock).await? else { return Ok(None) };
    let revisions = revisions::read(&mut transaction, scheduled.job).await?;
    let Some(revisions) = revisions.filter(|revisions| !revisions.is_retired()) else { return Ok(None) };
    let covered = schedule.covered.map(instant).transpose()?;
    let pass = revisions.current().pass(covered, scheduled.catch_up, now, WINDOWS_MAX);
    if failpoint::is_weakened("tick.advance-first") {
        advance(&mut transaction, scheduled.job, &pass).await?;
        transaction.commit(place!("tick-weakened")).await?;
        transaction = store.database.write().await?;
    }
    let mut ticked = open(&mut transaction, scheduled, &pass, schedule.paused_at.is_some()).await?;
    advance(&mut transaction, scheduled.job, &pass).await?;
    transaction.commit(place!("tick")).await?;
    ticked.more = pass.next.is_some_and(|next| next <= now);
    Ok(Some(ticked))
}

async fn advance(transaction: &mut Transaction, job: JobNumber, pass: &TickPlan) -> Result<()> {
    let at = |instant: Option<Timestamp>| instant.map(Timestamp::as_microsecond);
    let advance = catalog::SCHEDULE_ADVANCE.bind(job).bind(at(pass.covered)).bind(at(pass.next));
    transaction.execute(advance).await?;
    Ok(())
}

async fn open(
    transaction: &mut Transaction,
    scheduled: Scheduled,
    pass: &TickPlan,
    is_paused: bool,
) -> Result<OpenCounts> {
    let new_runs: Vec<NewRun> = pass
        .rows
        .iter()
        .map(|(due, verdict)| {
            let skipped = match verdict {
                CatchUpVerdict::Skipped(reason) => Some(reason.to_string()),
                _ if is_paused => Some("the job is paused".to_owned()),
                _ => None,
            };
            let priority =
                if *verdict == CatchUpVerdict::OnTime { Priority::Live } else { Priority::CatchUp };
            NewRun {
                key: RunKey::windowed(due.window.start(), &Scope::default()),
                start: due.window.start().timestamp(),
                end: due.window.end().timestamp(),
                priority,
                skipped,
            }
        })
        .collect();
    insert(transaction, scheduled.job, scheduled.while_running, &new_runs, Some("tick")).await
}
