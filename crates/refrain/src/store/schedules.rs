//! Schedules: which jobs have windows to open, and what happens when a timetable is edited.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::{Revisions, Timetable};

use super::queue_line::JobNumber;
use super::tick::{ScheduleRow, Scheduled, tick};
use super::{Result, Store, StoreError, catalog, instant, revisions, with_retries};
use crate::database::{Transaction, place};

/// The most schedules that are read together.
pub(crate) const PAGE: usize = 500;

/// A schedule that is due, and a position in the list of schedules.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub(crate) struct Due {
    pub(crate) job: JobNumber,
    pub(crate) next_at: i64,
}

impl Due {
    pub(crate) const FIRST: Due = Due { job: 0, next_at: i64::MIN };
}

/// Schedules with windows to open at `now`, after those of the page before.
pub(crate) async fn due(store: &Store, now: Timestamp, after: Due) -> Result<Vec<Due>> {
    let mut transaction = store.database.read().await?;
    let due = catalog::SCHEDULE_DUE.bind(now.as_microsecond()).bind(after.next_at).bind(after.job);
    Ok(transaction.fetch_all(due.bind(i64::try_from(PAGE).unwrap_or(i64::MAX))).await?)
}

/// How long until a schedule is due; none if none ever is.
pub(crate) async fn next(store: &Store, now: Timestamp) -> Result<Option<Duration>> {
    let mut transaction = store.database.read().await?;
    let row: Option<(Option<i64>,)> = transaction.fetch_optional(catalog::SCHEDULE_NEXT.bound()).await?;
    let Some(at) = row.and_then(|(at,)| at) else { return Ok(None) };
    let left = instant(at)?.duration_since(now);
    Ok(Some(Duration::try_from(left).unwrap_or(Duration::ZERO)))
}

/// The revisions of a job; none if it never had a timetable.
pub(crate) async fn read(store: &Store, job: JobNumber) -> Result<Option<Revisions>> {
    let mut transaction = store.database.read().await?;
    revisions::read(&mut transaction, job).await
}

/// The timetables in force of all jobs.
pub(crate) async fn in_force(store: &Store) -> Result<HashMap<JobNumber, Timetable>> {
    let mut transaction = store.database.read().await?;
    revisions::in_force(&mut transaction).await
}

/// Puts a timetable in force. Windows that are due under the former one are opened first. Returns whether anything changed.
pub(crate) async fn set(
    store: &Store,
    scheduled: Scheduled,
    timetable: &Timetable,
    now: Timestamp,
) -> Result<bool> {
    loop {
        match with_retries(|| edit(store, scheduled.job, timetable, now)).await {
            Err(StoreError::Edit(refrain_core::EditError::StillDue(_))) => {
                tick(store, scheduled, now).await?;
            }
            edited => return edited,
        }
    }
}

async fn edit(store: &Store, job: JobNumber, timetable: &Timetable, now: Timestamp) -> Result<bool> {
    let mut transaction = store.database.write().await?;
    transaction.execute(catalog::SCHEDULE_INSERT.bind(job).bind(None::<i64>)).await?;
    let schedule: Option<ScheduleRow> = transaction.fetch_optional(catalog::SCHEDULE_WAIT.bind(job)).await?;
    let covered = schedule.and_then(|schedule| schedule.covered).map(instant).transpose()?;
    let (all, changed) = match revisions::read(&mut transaction, job).await? {
        None => (Revisions::first(timetable.clone(), now)?, true),
        Some(mut all) => match all.edit(timetable.clone(), covered, now) {
            Ok(changed) => (all, changed),
            Err(error) => {
                // Release the lock at once: the windows that are due are opened next, by any scheduler.
                transaction.rollback().await?;
                return Err(error.into());
            }
        },
    };
    let next = all.current().due_windows(covered).next().map(|due_window| due_window.tick.as_microsecond());
    if changed {
        revisions::write(&mut transaction, job, &all).await?;
    }
    let covered = covered.map(Timestamp::as_microsecond);
    transaction.execute(catalog::SCHEDULE_ADVANCE.bind(job).bind(covered).bind(next)).await?;
    transaction.commit(place!("schedule")).await?;
    Ok(changed)
}

/// Takes the timetable of a job out of force: from now on it opens no window. Windows that are due until then are opened first; then
/// the last revision ends, so that later time belongs to none.
pub(crate) async fn retire(store: &Store, scheduled: Scheduled, now: Timestamp) -> Result<()> {
    loop {
        match with_retries(|| retired(store, scheduled.job, now)).await {
            Err(StoreError::Edit(refrain_core::EditError::StillDue(_))) => {
                tick(store, scheduled, now).await?;
            }
            retired => return retired,
        }
    }
}

async fn retired(store: &Store, job: JobNumber, now: Timestamp) -> Result<()> {
    let mut transaction = store.database.write().await?;
    let schedule: Option<ScheduleRow> = transaction.fetch_optional(catalog::SCHEDULE_WAIT.bind(job)).await?;
    let Some(schedule) = schedule else { return Ok(()) };
    let covered = schedule.covered.map(instant).transpose()?;
    if let Some(all) = revisions::read(&mut transaction, job).await? {
        match all.retire(covered, now) {
            Ok(Some(all)) => revisions::write(&mut transaction, job, &all).await?,
            Ok(None) => {
                transaction.execute(catalog::REVISION_CLEAR.bind(job)).await?;
            }
            Err(error) => {
                // Release the lock at once: the windows that are due are opened next, by any scheduler.
                transaction.rollback().await?;
                return Err(error.into());
            }
        }
    }
    transaction.execute(catalog::SCHEDULE_RETIRE.bind(job)).await?;
    transaction.commit(place!("schedule")).await?;
    Ok(())
}

/// Removes the timetables of a job that is removed.
pub(crate) async fn remove(transaction: &mut Transaction, job: JobNumber) -> Result<()> {
    transaction.execute(catalog::SCHEDULE_REMOVE.bind(job)).await?;
    transaction.execute(catalog::REVISION_CLEAR.bind(job)).await?;
    Ok(())
}
