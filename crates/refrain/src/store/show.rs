//! Reads runs and their attempts.

use std::collections::HashMap;

use jiff::Timestamp;
use refrain_core::key::KEY_BYTES_MAX;
use refrain_core::state::{Open, RunStanding};

use super::queue_line::{JobNumber, Line};
use super::run_row::RunRow;
use super::{Result, Store, StoreError, catalog, instant};
use crate::database::Transaction;
use crate::database::connection::Numbered;
use crate::database::statement::{Bound, Rows};

/// Where the open attempt of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueuePosition {
    /// In the queue: a worker may claim it.
    Queued,
    /// A worker holds its lease.
    Running,
    /// Delayed until this time.
    Delayed(Timestamp),
    /// Behind another run of its lane.
    BehindItsLane,
}

/// The open attempt of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenAttempt {
    pub(crate) attempt: i32,
    pub(crate) line: Line,
    pub(crate) place: QueuePosition,
}

/// A run and its open attempt, both of one instant.
pub(crate) type Shown = (RunRow, Option<OpenAttempt>);

/// An attempt that was not the last one.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct PastAttempt {
    pub(crate) number: i32,
    pub(crate) ended: String,
    pub(crate) started_at: Option<i64>,
    pub(crate) ended_at: i64,
    pub(crate) worker: Option<i64>,
    pub(crate) message: Option<String>,
    pub(crate) reason: Option<String>,
}

impl RunRow {
    /// How the run last ended, and what its open attempt is doing.
    pub(crate) fn standing(&self, open: Option<&OpenAttempt>) -> Result<RunStanding> {
        let open = open.map(|open| match open.place {
            QueuePosition::Running => Open::Running,
            _ => Open::Queued,
        });
        Ok(RunStanding { outcome: self.outcome()?, open })
    }
}

/// The number of the run with this key.
pub(crate) async fn find(store: &Store, job: JobNumber, key: &str) -> Result<Option<i64>> {
    let mut transaction = store.database.read().await?;
    let row: Option<(i64,)> = transaction.fetch_optional(catalog::RUN_FIND.bind(job).bind(key)).await?;
    Ok(row.map(|(id,)| id))
}

/// The run of a job with this key, as [`show`] gives it.
pub(crate) async fn of_job(store: &Store, job: JobNumber, key: &str) -> Result<Option<Shown>> {
    let mut transaction = store.database.read_at_once().await?;
    let found: Option<(i64,)> = transaction.fetch_optional(catalog::RUN_FIND.bind(job).bind(key)).await?;
    let Some((run,)) = found else { return Ok(None) };
    shown(&mut transaction, run).await
}

/// A run, and its open attempt if it has one. Both are of one instant: a run that is read open, and its place after it
/// has ended, would look like one that was never done.
pub(crate) async fn show(store: &Store, run: i64) -> Result<Option<Shown>> {
    let mut transaction = store.database.read_at_once().await?;
    shown(&mut transaction, run).await
}

async fn shown(transaction: &mut Transaction, run: i64) -> Result<Option<Shown>> {
    let row: Option<RunRow> = transaction.fetch_optional(catalog::RUN_SHOW.bind(run)).await?;
    let Some(row) = row else { return Ok(None) };
    let mut open = open_attempts(transaction, std::slice::from_ref(&row)).await?;
    let open = open.remove(&row.id).transpose()?;
    Ok(Some((row, open)))
}

/// The runs that can be read. One that cannot is logged and left out: it must not hide the others.
async fn readable(transaction: &mut Transaction, bound: Bound<'_>) -> Result<Vec<RunRow>> {
    let rows: Vec<Numbered<RunRow>> = transaction.fetch_all(bound).await?;
    let readable = rows.into_iter().filter_map(|Numbered { id, read }| {
        let log =
            |error| tracing::error!("run {id} is not listed: {error}; `refrain fsck` lists what is wrong");
        read.map_err(log).ok()
    });
    Ok(readable.collect())
}

/// Runs of a job in the order of their keys, after `after`.
pub(crate) async fn list(store: &Store, job: JobNumber, after: &str, limit: i64) -> Result<Vec<Shown>> {
    let mut transaction = store.database.read_at_once().await?;
    with_open_attempts(&mut transaction, catalog::RUN_LIST.bind(job).bind(after).bind(limit)).await
}

/// A text above every key: longer than any, and of the highest character.
fn above_all_keys() -> String {
    char::MAX.to_string().repeat(KEY_BYTES_MAX / char::MAX.len_utf8() + 1)
}

/// Runs of a job in descending order of their keys, before `before`.
pub(crate) async fn latest(
    store: &Store,
    job: JobNumber,
    before: Option<&str>,
    limit: i64,
) -> Result<Vec<Shown>> {
    let before = before.map_or_else(above_all_keys, str::to_owned);
    let mut transaction = store.database.read_at_once().await?;
    with_open_attempts(&mut transaction, catalog::RUN_LATEST.bind(job).bind(before).bind(limit)).await
}

/// Runs of all jobs, those that were opened last first, before `before`.
pub(crate) async fn recent(store: &Store, before: Option<i64>, limit: i64) -> Result<Vec<Shown>> {
    let mut transaction = store.database.read_at_once().await?;
    with_open_attempts(&mut transaction, catalog::RUN_RECENT.bind(before.unwrap_or(i64::MAX)).bind(limit))
        .await
}

/// Runs of a job from one key up to another that are not done, skipped or cancelled.
pub(crate) async fn awaited(
    store: &Store,
    job: JobNumber,
    first: &str,
    above: &str,
    limit: i64,
) -> Result<Vec<RunRow>> {
    let mut transaction = store.database.read().await?;
    let awaited = catalog::RUN_AWAITED.bind(job).bind(first).bind(above);
    readable(&mut transaction, awaited.bind(limit)).await
}

/// Runs of a job that have ended for a reason which a person may have to look at, after `after`.
pub(crate) async fn waiting(store: &Store, job: JobNumber, after: &str, limit: i64) -> Result<Vec<Shown>> {
    let mut transaction = store.database.read_at_once().await?;
    with_open_attempts(&mut transaction, catalog::RUN_WAITING.bind(job).bind(after).bind(limit)).await
}

/// Runs of a key, in whichever job.
pub(crate) async fn of_key(store: &Store, key: &str, limit: i64) -> Result<Vec<Shown>> {
    let jobs = super::jobs::all(store).await?;
    let rows = Rows::default()
        .integers(jobs.values().map(|job| i64::from(job.id)))
        .texts(jobs.values().map(|_| key.to_owned()));
    let mut transaction = store.database.read_at_once().await?;
    with_open_attempts(&mut transaction, catalog::RUN_OF_KEY.bind(limit).bind(rows)).await
}

/// A run of a job and scope that is open, and whether it has begun; one that has comes first.
pub(crate) async fn open_in_scope(store: &Store, job: JobNumber, scope: &str) -> Result<Option<(i64, bool)>> {
    let mut transaction = store.database.read_at_once().await?;
    let mut open: Option<(i64, bool)> = None;
    for line in Line::all(job) {
        let queued: Option<(i64, i32)> =
            transaction.fetch_optional(catalog::QUEUE_OF_SCOPE.bind(line.0).bind(scope)).await?;
        let queued = queued.map(|(run, begun)| (run, begun > 0));
        open = open.filter(|(_, has_begun)| *has_begun).or(queued).or(open);
    }
    if open.is_some() {
        return Ok(open);
    }
    let lines = Rows::default().integers(Line::all(job).map(|line| line.0));
    let delayed: Option<(i64,)> =
        transaction.fetch_optional(catalog::DELAYED_OF_SCOPE.bind(scope).bind(lines)).await?;
    Ok(delayed.map(|(run,)| (run, false)))
}

/// Every attempt but the last.
pub(crate) async fn attempts(store: &Store, run: i64) -> Result<Vec<PastAttempt>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::ATTEMPT_LIST.bind(run)).await?)
}

/// When, and by which command, there was a dedupe of a run.
pub(crate) async fn dedupes(store: &Store, run: i64, limit: i64) -> Result<Vec<(i64, String)>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::DEDUPE_LIST.bind(run).bind(limit)).await?)
}

#[derive(sqlx_macros::FromRow)]
struct Queued {
    run: i64,
    line: i64,
    lease: Option<i64>,
    attempt: i64,
}

#[derive(sqlx_macros::FromRow)]
struct Delayed {
    run: i64,
    wake_at: i64,
    line: i64,
    attempt: i64,
}

#[derive(sqlx_macros::FromRow)]
struct BehindItsLane {
    run: i64,
    line: i64,
    attempt: i64,
}

/// Where the open attempts of these runs stand, by run: three statements at most, however many runs there are.
async fn open_attempts(
    transaction: &mut Transaction,
    rows: &[RunRow],
) -> Result<HashMap<i64, Result<OpenAttempt>>> {
    let mut found = HashMap::new();
    let mut add = |run: i64, line: i64, attempt: i64, place: Result<QueuePosition>| {
        let attempt = i32::try_from(attempt);
        let attempt =
            attempt.map_err(|_| StoreError::Broken(format!("run {run} has an attempt out of range")));
        let open = place.and_then(|place| Ok(OpenAttempt { attempt: attempt?, line: Line(line), place }));
        found.entry(run).or_insert(open);
    };
    let open: Vec<&RunRow> = rows.iter().filter(|row| row.open).collect();
    if open.is_empty() {
        return Ok(found);
    }
    let lines: Vec<(i64, i64)> =
        open.iter().flat_map(|row| Line::all(row.job_number).map(|line| (line.0, row.id))).collect();
    let places = Rows::default()
        .integers(lines.iter().map(|(line, _)| *line))
        .integers(lines.iter().map(|(_, run)| *run));
    let queued: Vec<Queued> = transaction.fetch_all(catalog::QUEUE_FIND.bind(places)).await?;
    for Queued { run, line, lease, attempt } in queued {
        let place = if lease.is_some() { QueuePosition::Running } else { QueuePosition::Queued };
        add(run, line, attempt, Ok(place));
    }
    let delayed = catalog::DELAYED_OF_RUNS.bind(Rows::default().integers(open.iter().map(|row| row.id)));
    let delayed: Vec<Delayed> = transaction.fetch_all(delayed).await?;
    for Delayed { run, wake_at, line, attempt } in delayed {
        add(run, line, attempt, instant(wake_at).map(QueuePosition::Delayed));
    }
    let waits = Rows::default()
        .integers(open.iter().map(|row| i64::from(row.job_number)))
        .texts(open.iter().map(|row| super::claim::scope_of(&row.key).to_owned()))
        .texts(open.iter().map(|row| row.key.clone()));
    let waits: Vec<BehindItsLane> = transaction.fetch_all(catalog::LANE_OF_RUNS.bind(waits)).await?;
    for BehindItsLane { run, line, attempt } in waits {
        add(run, line, attempt, Ok(QueuePosition::BehindItsLane));
    }
    Ok(found)
}

/// These runs, each with its open attempt. One that cannot be read is logged and left out.
async fn with_open_attempts(transaction: &mut Transaction, bound: Bound<'_>) -> Result<Vec<Shown>> {
    let rows = readable(transaction, bound).await?;
    let mut open = open_attempts(transaction, &rows).await?;
    let shown = rows.into_iter().filter_map(|row| match open.remove(&row.id).transpose() {
        Ok(attempt) => Some((row, attempt)),
        Err(error) => {
            tracing::error!("run {} is not listed: {error}; `refrain fsck` lists what is wrong", row.id);
            None
        }
    });
    Ok(shown.collect())
}

/// How many runs are open.
pub(crate) async fn count_open(store: &Store) -> Result<u64> {
    let mut transaction = store.database.read().await?;
    let row: Option<(i64,)> = transaction.fetch_optional(catalog::QUEUE_COUNT.bound()).await?;
    Ok(row.map_or(0, |(count,)| u64::try_from(count).unwrap_or(0)))
}

/// The run that holds the lane of the run with this key.
pub(crate) async fn lane_holder(store: &Store, job: JobNumber, key: &str) -> Result<Option<i64>> {
    let mut transaction = store.database.read().await?;
    let holder = catalog::LANE_HOLDER.bind(job).bind(super::claim::scope_of(key));
    let row: Option<(i64,)> = transaction.fetch_optional(holder).await?;
    Ok(row.map(|(run,)| run))
}
