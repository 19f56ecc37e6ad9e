//! A run with a record: first the state of its open attempt, then how it last ended, then additional information.

use jiff::Timestamp;

use super::{Cause, EndedCause, JobContext, Note, OpenCause};
use crate::state::{FailureReason, RunNode, RunOutcome, RunStanding};

/// The facts about a run with a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFacts {
    /// The run, as people write it.
    pub run: String,
    /// Its job and the workers of its store.
    pub context: JobContext,
    /// Its last outcome, and whether an attempt is open.
    pub standing: RunStanding,
    /// The state of the open attempt.
    pub open: Option<AttemptState>,
    /// The number of the open attempt, or of the last one.
    pub attempt: u64,
    /// The number of the last attempt that ended with an outcome.
    pub ended_attempt: u64,
    /// The version under which it last ended.
    pub version: Option<u32>,
    /// When the run was opened.
    pub opened_at: Timestamp,
    /// When the run last ended.
    pub ended_at: Option<Timestamp>,
    /// The message of the last outcome.
    pub message: Option<String>,
    /// The reason of a failure, which decides the advice.
    pub reason: Option<FailureReason>,
    /// The message of the last attempt that was retried.
    pub last_message: Option<String>,
    /// How often a worker died while it held the run.
    pub taken_over: u64,
    /// Whether the run is claimed alone because of that.
    pub is_suspect: bool,
    /// Whether an operator wants the run cancelled.
    pub is_cancel_requested: bool,
    /// Whether its payload is no longer kept.
    pub is_forgotten: bool,
    /// The requests for it that were deduplicated.
    pub repeated_requests: Option<RepeatedRequests>,
    /// The first of the units that it left unapplied.
    pub unapplied_units: Vec<UnappliedUnit>,
    /// Keys that may be too wide.
    pub wide_keys: Vec<WideKeys>,
    /// When it became late, if it is late.
    pub late_since: Option<Timestamp>,
}

/// The state of an open attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    /// A worker may claim it.
    Queued {
        /// How many runs of its job are queued before it.
        ahead: u64,
        /// The limit of its job and the running runs, if the limit is reached.
        slots: Option<(u32, Vec<String>)>,
    },
    /// A worker holds it.
    Running {
        /// The number of the worker.
        worker: i64,
        /// The process of the worker.
        process: String,
        /// The time since when.
        since: Timestamp,
        /// The time until which the worker counts as alive.
        alive_until: Timestamp,
    },
    /// It waits for its retry.
    Delayed {
        /// The time.
        until: Timestamp,
    },
    /// Another run holds its lane.
    WaitsForLane {
        /// The run that holds the lane.
        holder: Option<LaneHolder>,
    },
}

/// A run that holds a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneHolder {
    /// The run.
    pub run: String,
    /// Its state.
    pub standing: RunNode,
    /// When it was opened, or when a worker claimed it.
    pub since: Timestamp,
    /// The worker that runs it, as messages show it.
    pub worker: Option<String>,
}

/// Requests for a run that exists already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedRequests {
    /// The number of times.
    pub times: u64,
    /// Whether there are more than the number counted.
    pub is_more: bool,
    /// The time of the last one.
    pub last: Timestamp,
    /// The kind of the last request: `enqueue`, `tick`, `run`, `intent`.
    pub way: String,
}

/// A unit that a run left unapplied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnappliedUnit {
    /// Its key.
    pub key: String,
    /// Whether it is parked; otherwise it failed.
    pub is_parked: bool,
    /// Whether a call was made for it whose outcome is unknown.
    pub is_in_doubt: bool,
}

/// Keys under which other content was discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WideKeys {
    /// The rule: `first-wins` or `many-contents`.
    pub reason: String,
    /// The number of times.
    pub count: u64,
    /// The first of the keys.
    pub keys: Vec<String>,
}

impl RecordedFacts {
    pub(super) fn causes(&self) -> Vec<Cause> {
        let open = self.open.as_ref().map(|open| Cause::Open(self.open_cause(open)));
        let ended = self.standing.outcome.map(|outcome| Cause::Ended(self.ended(outcome)));
        let besides = self.notes().into_iter().map(Cause::Note);
        open.into_iter().chain(ended).chain(besides).collect()
    }

    fn notes(&self) -> Vec<Note> {
        let run = || self.run.clone();
        let mut notes = Vec::new();
        notes.extend(self.of_version());
        if self.is_cancel_requested {
            notes.push(Note::CancelRequested { run: run() });
        }
        if self.taken_over > 0 {
            let is_suspect = self.is_suspect;
            notes.push(Note::TakenOver { run: run(), times: self.taken_over, is_suspect });
        }
        notes.extend(self.late_since.map(|since| Note::Late { run: run(), since }));
        notes.extend(self.repeated_requests.clone().map(|asked| Note::Deduplicated { run: run(), asked }));
        if self.is_forgotten {
            notes.push(Note::Forgotten { run: run() });
        }
        let wide_keys = self.wide_keys.iter().cloned();
        notes.extend(wide_keys.map(|wide_keys| Note::WideKey { run: run(), wide_keys }));
        notes
    }

    /// What the open attempt waits for.
    fn open_cause(&self, open: &AttemptState) -> OpenCause {
        let (run, context) = (self.run.clone(), &self.context);
        match (open.clone(), context.paused_at) {
            (AttemptState::Running { worker, process, since, alive_until }, _) => {
                if alive_until <= context.now {
                    return OpenCause::WorkerSilent { run, worker, process, since };
                }
                OpenCause::Running { run, attempt: self.attempt, worker, process, since, alive_until }
            }
            (_, Some(since)) => OpenCause::Paused { run, job: context.job.clone(), since },
            (AttemptState::Delayed { until }, None) => {
                let message = self.last_message.clone();
                OpenCause::BackingOff { run, attempt: self.attempt, until, message }
            }
            (AttemptState::WaitsForLane { holder }, None) => OpenCause::LaneHeld { run, holder },
            (AttemptState::Queued { slots: Some((limit, holders)), .. }, None) => {
                OpenCause::SlotsTaken { run, limit, holders }
            }
            (AttemptState::Queued { .. }, None) if context.workers == 0 => {
                OpenCause::NoWorker { run, last_seen: context.last_seen }
            }
            (AttemptState::Queued { ahead, .. }, None) => {
                OpenCause::Queued { run, ahead, workers: context.workers, running: context.running }
            }
        }
    }

    /// How the run last ended.
    fn ended(&self, outcome: RunOutcome) -> EndedCause {
        let (run, attempt, at) = (self.run.clone(), self.ended_attempt, self.ended_at);
        let message = self.message.clone();
        match outcome {
            RunOutcome::Done => EndedCause::Done { run, attempt, at, version: self.version },
            RunOutcome::Waiting => EndedCause::WaitsForEffects { run, attempt },
            RunOutcome::Partial => EndedCause::Partial { run, message, units: self.unapplied_units.clone() },
            RunOutcome::Failed if self.reason == Some(FailureReason::Held) => {
                EndedCause::Held { run, attempt, at, message }
            }
            RunOutcome::Failed => {
                let doubtful = self.unapplied_units.iter().filter(|unit| unit.is_in_doubt);
                let doubtful = doubtful.map(|unit| unit.key.clone()).collect();
                EndedCause::Failed { run, attempt, at, message, doubtful }
            }
            RunOutcome::Cancelled => EndedCause::Cancelled { run, at },
            RunOutcome::Skipped => EndedCause::Skipped { run, at, reason: message.unwrap_or_default() },
        }
    }

    fn of_version(&self) -> Option<Note> {
        let (run, version, present) = (self.run.clone(), self.version?, self.context.version?);
        if version > present {
            return Some(Note::WorkerTooOld { run, version, present });
        }
        let is_outdated = version < present && self.standing.is_done();
        is_outdated.then_some(Note::Outdated { run, version, present })
    }
}
