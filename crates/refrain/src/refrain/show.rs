//! What is recorded of a run, for readers.

use jiff::Timestamp;
use refrain_core::state::{FailureReason, RunStanding};
use refrain_core::{ParseError, RunName, Window};

use super::Refrain;
use super::status::PAGE;
use crate::error::Error;
use crate::store::run_row::RunRow;
use crate::store::show::{self, OpenAttempt, QueuePosition};
use crate::store::{StoreError, instant};

/// The most dedupes that are listed of one run.
const DEDUPES_MAX: i64 = 1_000;

/// A run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// The job.
    pub job: String,
    /// The key under which it exists once.
    pub key: String,
    /// Its window, if it has one.
    pub window: Option<Window>,
    /// How it last ended, and whether an attempt is open.
    pub standing: RunStanding,
    /// Where the open attempt stands.
    pub place: Option<QueuePosition>,
    /// The number of the open attempt, or of the last one.
    pub attempt: u64,
    /// The number of the last attempt that ended with an outcome.
    pub ended_attempt: u64,
    /// The version of the job's logic that did it last.
    pub version: Option<u32>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When its last attempt that ended had begun.
    pub started_at: Option<Timestamp>,
    /// When that attempt ended.
    pub ended_at: Option<Timestamp>,
    /// Why it ended so: the reason of a skip, the error of a failure.
    pub message: Option<String>,
    /// Why its last attempt did not do its work, where that decides what comes next.
    pub reason: Option<FailureReason>,
    /// The attempt with which a person had its work done again, for as long as that is not done.
    pub redo: Option<u64>,
    /// What the caller gave with the key.
    pub payload: Option<String>,
    /// Whether the caller gave something that is not kept any more.
    pub is_forgotten: bool,
    pub(crate) id: i64,
}

/// An attempt of a run that was followed by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Its number.
    pub number: u64,
    /// How it ended: an event or an outcome.
    pub ended: String,
    /// When it began, if it is known.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The worker that had it.
    pub worker: Option<i64>,
    /// What it said.
    pub message: Option<String>,
    /// Why it did not do its work, where that decides what comes next.
    pub reason: Option<FailureReason>,
}

/// Somebody asked again for a run that was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DedupeRecord {
    /// When.
    pub at: Timestamp,
    /// By what way: `enqueue`, `tick`, `run`.
    pub asked: String,
}

impl RunRecord {
    pub(crate) fn of(row: RunRow, open: Option<OpenAttempt>) -> Result<RunRecord, StoreError> {
        let window = match (row.window_start, row.window_end) {
            (Some(start), Some(end)) => Window::stored(instant(start)?, instant(end)?).ok(),
            _ => None,
        };
        let attempt = open.map_or(row.attempt, |open| open.attempt);
        Ok(RunRecord {
            window,
            standing: row.standing(open.as_ref())?,
            place: open.map(|open| open.place),
            attempt: u64::try_from(attempt).unwrap_or(0),
            ended_attempt: row.outcome.as_ref().map_or(0, |_| u64::try_from(row.attempt).unwrap_or(0)),
            version: row.version.and_then(|version| u32::try_from(version).ok()),
            opened_at: instant(row.opened_at)?,
            started_at: row.started_at.map(instant).transpose()?,
            ended_at: row.ended_at.map(instant).transpose()?,
            reason: row.reason()?,
            redo: row.redo.and_then(|redo| u64::try_from(redo).ok()),
            id: row.id,
            job: row.job,
            key: row.key,
            message: row.message,
            is_forgotten: row.payload.as_deref() == Some(""),
            payload: row.payload.filter(|payload| !payload.is_empty()),
        })
    }
}

impl Refrain {
    /// What is recorded of a run; none if there is no such run.
    pub async fn show(&self, run: &str) -> Result<Option<RunRecord>, Error> {
        let (number, _, key) = self.named(run).await?;
        let Some(id) = show::find(self.store(), number, &key.to_string()).await? else { return Ok(None) };
        Ok(self.record(id).await?)
    }

    /// All runs of a job in the order of their keys, a page after `after`; windows come in the order of time.
    pub async fn runs(&self, job: &str, after: &str) -> Result<Vec<RunRecord>, Error> {
        let (number, _) = self.recorded_job(job).await?;
        self.records(show::list(self.store(), number, after, PAGE).await?).await
    }

    /// How many runs are open: queued, under way, or waiting for their time or their lane.
    pub async fn open_runs(&self) -> Result<u64, Error> {
        Ok(show::count_open(self.store()).await?)
    }

    /// Every attempt of a run but the last.
    pub async fn attempts(&self, run: &RunRecord) -> Result<Vec<AttemptRecord>, Error> {
        let past = show::attempts(self.store(), run.id).await?;
        let records = past.into_iter().map(|past| {
            Ok(AttemptRecord {
                number: u64::try_from(past.number).unwrap_or(0),
                ended: past.ended,
                started_at: past.started_at.map(instant).transpose()?,
                ended_at: instant(past.ended_at)?,
                worker: past.worker,
                message: past.message,
                reason: past.reason.as_deref().and_then(|reason| reason.parse().ok()),
            })
        });
        records.collect()
    }

    /// Who asked again for a run.
    pub async fn dedupes(&self, run: &RunRecord) -> Result<Vec<DedupeRecord>, Error> {
        let dedupes = show::dedupes(self.store(), run.id, DEDUPES_MAX).await?;
        dedupes.into_iter().map(|(at, asked)| Ok(DedupeRecord { at: instant(at)?, asked })).collect()
    }

    pub(super) async fn record(&self, id: i64) -> Result<Option<RunRecord>, StoreError> {
        let Some((row, open)) = show::show(self.store(), id).await? else { return Ok(None) };
        RunRecord::of(row, open).map(Some)
    }
}

pub(super) fn parsed(run: &str) -> Result<RunName, ParseError> {
    run.parse()
}
