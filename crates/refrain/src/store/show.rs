//! Reads what is recorded of runs.

use refrain_core::key::KEY_BYTES_MAX;
use refrain_core::state::{Open, RunStanding};

use super::lanes::Waiting;
use super::queue_line::{JobNumber, Line};
use super::run_row::RunRow;
use super::{Result, Store, StoreError, catalog};
use crate::database::Transaction;
use crate::database::connection::Numbered;
use crate::database::statement::{Bound, Rows};

/// Where the open attempt of a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePosition {
    /// In the queue: a worker may claim it.
    Queued,
    /// A worker holds its lease.
    Running,
    /// Not before some time, in microseconds since 1970.
    Delayed(i64),
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
    /// How it last ended, and what its open attempt is doing.
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

/// A run, and its open attempt if it has one. Both are of one instant: a run that is read open, and its place after it
/// has ended, would look like one that was never done.
pub(crate) async fn show(store: &Store, run: i64) -> Result<Option<(RunRow, Option<OpenAttempt>)>> {
    let mut transaction = store.database.read_at_once().await?;
    let row: Option<RunRow> = transaction.fetch_optional(catalog::RUN_SHOW.bind(run)).await?;
    let Some(row) = row else { return Ok(None) };
    let open = if row.open { open_attempt(&mut transaction, &row).await? } else { None };
    Ok(Some((row, open)))
}

impl StoreError {
    /// Whether a row is there and cannot be read: others may still be.
    pub(crate) fn is_unreadable(&self) -> bool {
        match self {
            Self::Broken(_) => true,
            Self::Database(error) => error.is_undecodable(),
            _ => false,
        }
    }
}

/// The runs that can be read. One that cannot is said and left out: it must not hide the others.
async fn readable(transaction: &mut Transaction, bound: Bound<'_>) -> Result<Vec<RunRow>> {
    let rows: Vec<Numbered<RunRow>> = transaction.fetch_all(bound).await?;
    let readable = rows.into_iter().filter_map(|Numbered { id, read }| {
        let said =
            |error| tracing::error!("run {id} is not listed: {error}; `refrain fsck` lists what is wrong");
        read.map_err(said).ok()
    });
    Ok(readable.collect())
}

/// Runs of a job in the order of their keys, after `after`.
pub(crate) async fn list(store: &Store, job: JobNumber, after: &str, limit: i64) -> Result<Vec<RunRow>> {
    let mut transaction = store.database.read().await?;
    readable(&mut transaction, catalog::RUN_LIST.bind(job).bind(after).bind(limit)).await
}

/// No key is at or above this: it is longer than any, and of the highest character.
fn above_all_keys() -> String {
    char::MAX.to_string().repeat(KEY_BYTES_MAX / char::MAX.len_utf8() + 1)
}

/// Runs of a job against the order of their keys, before `before`.
pub(crate) async fn latest(
    store: &Store,
    job: JobNumber,
    before: Option<&str>,
    limit: i64,
) -> Result<Vec<RunRow>> {
    let before = before.map_or_else(above_all_keys, str::to_owned);
    let mut transaction = store.database.read().await?;
    readable(&mut transaction, catalog::RUN_LATEST.bind(job).bind(before).bind(limit)).await
}

/// Runs of all jobs, those that were opened last first, before `before`.
pub(crate) async fn recent(store: &Store, before: Option<i64>, limit: i64) -> Result<Vec<RunRow>> {
    let mut transaction = store.database.read().await?;
    readable(&mut transaction, catalog::RUN_RECENT.bind(before.unwrap_or(i64::MAX)).bind(limit)).await
}

/// Runs of a job from one key up to another that are not done, nor passed over or called off.
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
pub(crate) async fn waiting(store: &Store, job: JobNumber, after: &str, limit: i64) -> Result<Vec<RunRow>> {
    let mut transaction = store.database.read().await?;
    readable(&mut transaction, catalog::RUN_WAITING.bind(job).bind(after).bind(limit)).await
}

/// Runs of a key, in whichever job.
pub(crate) async fn of_key(store: &Store, key: &str, limit: i64) -> Result<Vec<RunRow>> {
    let jobs = super::jobs::all(store).await?;
    let rows = Rows::default()
        .integers(jobs.values().map(|job| i64::from(job.id)))
        .texts(jobs.values().map(|_| key.to_owned()));
    let mut transaction = store.database.read().await?;
    readable(&mut transaction, catalog::RUN_OF_KEY.bind(limit).bind(rows)).await
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
    let delayed: Option<(i64,)> =
        transaction.fetch_optional(catalog::DELAYED_OF_SCOPE.bind(job).bind(scope)).await?;
    Ok(delayed.map(|(run,)| (run, false)))
}

/// Every attempt but the last.
pub(crate) async fn attempts(store: &Store, run: i64) -> Result<Vec<PastAttempt>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::ATTEMPT_LIST.bind(run)).await?)
}

/// Who asked again for a run, and when.
pub(crate) async fn dedupes(store: &Store, run: i64, limit: i64) -> Result<Vec<(i64, String)>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::DEDUPE_LIST.bind(run).bind(limit)).await?)
}

#[derive(sqlx_macros::FromRow)]
struct Queued {
    line: i64,
    lease: Option<i64>,
    attempt: i32,
}

async fn open_attempt(transaction: &mut Transaction, row: &RunRow) -> Result<Option<OpenAttempt>> {
    let lines = Line::all(row.job_number);
    let places = Rows::default().integers(lines.map(|line| line.0)).integers(lines.map(|_| row.id));
    let queued: Option<Queued> = transaction.fetch_optional(catalog::QUEUE_FIND.bind(places)).await?;
    if let Some(Queued { line, lease, attempt }) = queued {
        let place = if lease.is_some() { QueuePosition::Running } else { QueuePosition::Queued };
        return Ok(Some(OpenAttempt { attempt, line: Line(line), place }));
    }
    let delayed: Option<(i64, i64, i32, bool)> =
        transaction.fetch_optional(catalog::DELAYED_SHOW.bind(row.id)).await?;
    if let Some((wake_at, line, attempt, _)) = delayed {
        return Ok(Some(OpenAttempt { attempt, line: Line(line), place: QueuePosition::Delayed(wake_at) }));
    }
    let scope = super::claim::scope_of(&row.key);
    let find = catalog::LANE_FIND.bind(row.job_number).bind(scope).bind(row.key.as_str());
    let waiting: Option<Waiting> = transaction.fetch_optional(find).await?;
    Ok(waiting.map(|waiting| OpenAttempt {
        attempt: waiting.attempt,
        line: Line(waiting.line),
        place: QueuePosition::BehindItsLane,
    }))
}

/// How many runs are open.
pub(crate) async fn count_open(store: &Store) -> Result<u64> {
    let mut transaction = store.database.read().await?;
    let row: Option<(i64,)> = transaction.fetch_optional(catalog::QUEUE_COUNT.bound()).await?;
    Ok(row.map_or(0, |(count,)| u64::try_from(count).unwrap_or(0)))
}

/// The run that holds the lane in which the run of this key stays.
pub(crate) async fn lane_holder(store: &Store, job: JobNumber, key: &str) -> Result<Option<i64>> {
    let mut transaction = store.database.read().await?;
    let holder = catalog::LANE_HOLDER.bind(job).bind(super::claim::scope_of(key));
    let row: Option<(i64,)> = transaction.fetch_optional(holder).await?;
    Ok(row.map(|(run,)| run))
}
