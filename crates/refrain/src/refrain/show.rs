//! What is recorded about a run, for readers.

use std::fmt;

use jiff::Timestamp;
use refrain_core::state::{FailureReason, RunEvent, RunOutcome, RunStanding};
use refrain_core::{ParseError, Window, Word as _};
use serde::{Serialize, Serializer};

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
#[non_exhaustive]
pub struct RunRecord {
    /// The job.
    pub job: String,
    /// Its key, which is unique in its job.
    pub key: String,
    /// Its window, if it has one.
    pub window: Option<Window>,
    /// How it last ended, and whether an attempt is open.
    pub standing: RunStanding,
    /// The position of the open attempt.
    pub place: Option<QueuePosition>,
    /// The number of the open attempt, or of the last one.
    pub attempt: u64,
    /// The number of the last attempt that ended with an outcome.
    pub ended_attempt: u64,
    /// The version of the job that did it last.
    pub version: Option<u32>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When its last attempt that ended had begun.
    pub started_at: Option<Timestamp>,
    /// When that attempt ended.
    pub ended_at: Option<Timestamp>,
    /// The reason of a skip, or the error of a failure.
    pub message: Option<String>,
    /// Why its last attempt did not do its work, where that decides what comes next.
    pub reason: Option<FailureReason>,
    /// The attempt with which an operator had its work repeated, until that is done.
    pub redo: Option<u64>,
    /// The payload that was enqueued with the key, as JSON.
    pub payload: Option<String>,
    /// Whether its payload was pruned.
    pub is_forgotten: bool,
    pub(crate) id: i64,
}

/// An attempt of a run that was followed by another one.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct AttemptRecord {
    /// Its number.
    pub number: u64,
    /// How it ended.
    pub ended: AttemptEnd,
    /// When it began, if that is known.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The worker that had it.
    pub worker: Option<i64>,
    /// Its message.
    pub message: Option<String>,
    /// Why it did not do its work, where that decides what comes next.
    pub reason: Option<FailureReason>,
}

/// How an attempt ended: with an outcome of its run, or with an event after which the run was queued again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptEnd {
    /// The run ended with it.
    Outcome(RunOutcome),
    /// The run was queued again.
    Event(RunEvent),
}

impl AttemptEnd {
    /// Its name, as stored and printed.
    pub fn name(self) -> &'static str {
        match self {
            AttemptEnd::Outcome(outcome) => outcome.name(),
            AttemptEnd::Event(event) => event.name(),
        }
    }

    fn stored(word: &str) -> Result<AttemptEnd, StoreError> {
        let outcome = word.parse().map(AttemptEnd::Outcome).ok();
        let event = || word.parse().map(AttemptEnd::Event);
        outcome.map_or_else(event, Ok).map_err(|error: ParseError| StoreError::Broken(error.to_string()))
    }
}

impl fmt::Display for AttemptEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for AttemptEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The kind of a request for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestWay {
    /// A program or the command `enqueue` offered its key.
    Enqueue,
    /// A scheduler found its window due.
    Tick,
    /// A caller of `run`.
    Run,
    /// An intent was relayed.
    Intent,
}

/// Who requested a run that existed already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunRequest {
    /// The kind of the request.
    pub way: RequestWay,
    /// Whether another payload came with the key; the first one counts.
    pub payload_differs: bool,
}

/// What the store appends to that if the payload differs.
const WITH_ANOTHER_PAYLOAD: &str = " with another payload";

impl RunRequest {
    fn stored(text: &str) -> Result<RunRequest, StoreError> {
        let stripped = text.strip_suffix(WITH_ANOTHER_PAYLOAD);
        let way = match stripped.unwrap_or(text) {
            "enqueue" => RequestWay::Enqueue,
            "tick" => RequestWay::Tick,
            "run" => RequestWay::Run,
            "intent" => RequestWay::Intent,
            other => return Err(StoreError::Broken(format!("a dedupe is requested by `{other}`"))),
        };
        Ok(RunRequest { way, payload_differs: stripped.is_some() })
    }
}

impl fmt::Display for RunRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.way {
            RequestWay::Enqueue => "enqueue",
            RequestWay::Tick => "tick",
            RequestWay::Run => "run",
            RequestWay::Intent => "intent",
        })?;
        f.write_str(if self.payload_differs { WITH_ANOTHER_PAYLOAD } else { "" })
    }
}

impl Serialize for RunRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A request for a run that existed already.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct DedupeRecord {
    /// When it is requested, by the clock of the store.
    pub at: Timestamp,
    /// Who requested it.
    pub asked: RunRequest,
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
            is_forgotten: row.is_forgotten(),
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
            payload: row.payload.filter(|payload| !payload.is_empty()),
        })
    }
}

impl RunRecord {
    /// When the open attempt may begin, if it is delayed.
    pub fn again_at(&self) -> Option<Timestamp> {
        match self.place {
            Some(QueuePosition::Delayed(at)) => Some(at),
            _ => None,
        }
    }
}

impl Refrain {
    /// What is recorded about a run; none if there is no such run.
    pub async fn show(&self, run: &str) -> Result<Option<RunRecord>, Error> {
        self.recorded(&self.target(run).await?).await
    }

    /// The runs of a job in the order of their keys, the page after the key `after`; windows come in the order of time.
    pub async fn runs(&self, job: &str, after: &str) -> Result<Vec<RunRecord>, Error> {
        let (number, _) = self.recorded_job(job).await?;
        Ok(Self::records(show::list(self.store(), number, after, PAGE).await?))
    }

    /// How many runs are open: queued, running, delayed, or behind another run of their lane.
    pub async fn open_runs(&self) -> Result<u64, Error> {
        Ok(show::count_open(self.store()).await?)
    }

    /// Every attempt of a run but the last, oldest first.
    pub async fn attempts(&self, run: &RunRecord) -> Result<Vec<AttemptRecord>, Error> {
        let past = show::attempts(self.store(), run.id).await?;
        let records = past.into_iter().map(|past| {
            Ok(AttemptRecord {
                number: u64::try_from(past.number).unwrap_or(0),
                ended: AttemptEnd::stored(&past.ended)?,
                started_at: past.started_at.map(instant).transpose()?,
                ended_at: instant(past.ended_at)?,
                worker: past.worker,
                message: past.message,
                reason: past.reason.as_deref().and_then(|reason| reason.parse().ok()),
            })
        });
        records.collect()
    }

    /// The requests for a run that were deduplicated, oldest first.
    pub async fn dedupes(&self, run: &RunRecord) -> Result<Vec<DedupeRecord>, Error> {
        let dedupes = show::dedupes(self.store(), run.id, DEDUPES_MAX).await?;
        dedupes
            .into_iter()
            .map(|(at, asked)| Ok(DedupeRecord { at: instant(at)?, asked: RunRequest::stored(&asked)? }))
            .collect()
    }

    pub(super) async fn record(&self, id: i64) -> Result<Option<RunRecord>, StoreError> {
        let Some((row, open)) = show::show(self.store(), id).await? else { return Ok(None) };
        RunRecord::of(row, open).map(Some)
    }
}
