//! A run that has a record: what its open attempt waits for comes first, then how it last ended, then what else happened
//! to it.

use jiff::Timestamp;

use super::{Aside, Cause, Ended, Open, Setting};
use crate::state::{FailureReason, RunNode, RunOutcome, RunStanding};

/// What was read about a run that has a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFacts {
    /// The run, as people write it.
    pub run: String,
    /// What is known around it.
    pub setting: Setting,
    /// How it last ended, and whether an attempt is open.
    pub standing: RunStanding,
    /// Where the open attempt stands.
    pub place: Option<Whereabouts>,
    /// The number of the open attempt, or of the last one.
    pub attempt: u64,
    /// The number of the last attempt that ended with an outcome.
    pub ended_attempt: u64,
    /// The version under which it last ended.
    pub version: Option<u32>,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// When it last ended.
    pub ended_at: Option<Timestamp>,
    /// Why it ended so.
    pub message: Option<String>,
    /// The same as a value, where that decides what comes next.
    pub reason: Option<FailureReason>,
    /// What the last attempt said that was followed by another one.
    pub last_message: Option<String>,
    /// How often a worker died that held it.
    pub taken_over: u64,
    /// Whether it is claimed alone for that.
    pub is_suspect: bool,
    /// Whether a person has asked for its end.
    pub is_called_off: bool,
    /// Whether what the caller gave with it is not kept any more.
    pub is_forgotten: bool,
    /// Who asked for it again.
    pub asked_again: Option<AskedAgain>,
    /// Units that it left unapplied, the first of them.
    pub units_left: Vec<UnitLeft>,
    /// Keys that may be too wide.
    pub suspects: Vec<Suspect>,
    /// Since when it is late, if it is.
    pub late_since: Option<Timestamp>,
}

/// Where an open attempt stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// A worker may claim it.
    Queued {
        /// How many of its job stand before it.
        ahead: u64,
        /// The limit of its job and the runs that make use of it, if it is reached.
        slots: Option<(u32, Vec<String>)>,
    },
    /// A worker holds it.
    Running {
        /// The number of the worker.
        worker: i64,
        /// The process that it is.
        process: String,
        /// Since when.
        since: Timestamp,
        /// Until when the worker counts as alive.
        alive_until: Timestamp,
    },
    /// It is tried again, not before this.
    Delayed {
        /// When.
        until: Timestamp,
    },
    /// Another run holds its lane.
    BehindItsLane {
        /// The other.
        holder: Option<Holder>,
    },
}

/// A run that holds a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The run.
    pub run: String,
    /// Where it stands.
    pub standing: RunNode,
    /// Since when it is open, or since when a worker has it.
    pub since: Timestamp,
    /// The worker that has it, as people call it, if one has.
    pub worker: Option<String>,
}

/// Somebody asked for a run that was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedAgain {
    /// How often.
    pub times: u64,
    /// Whether there are more than were counted.
    pub is_more: bool,
    /// When last.
    pub last: Timestamp,
    /// By what way: `enqueue`, `tick`, `run`, `intent`.
    pub way: String,
}

/// A unit that a run left unapplied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitLeft {
    /// Its key.
    pub key: String,
    /// Whether it is parked; else it failed.
    pub is_parked: bool,
    /// Whether a call was made for it of which nobody knows the end.
    pub is_in_doubt: bool,
}

/// Keys under which other content was swallowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// The rule: `first-wins` or `many-contents`.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// The first of the keys.
    pub keys: Vec<String>,
}

impl RecordedFacts {
    pub(super) fn causes(&self) -> Vec<Cause> {
        let open = self.place.as_ref().map(|place| Cause::Open(self.placed(place)));
        let ended = self.standing.outcome.map(|outcome| Cause::Ended(self.ended(outcome)));
        let besides = self.asides().into_iter().map(Cause::Aside);
        open.into_iter().chain(ended).chain(besides).collect()
    }

    fn asides(&self) -> Vec<Aside> {
        let run = || self.run.clone();
        let mut asides = Vec::new();
        asides.extend(self.of_version());
        if self.is_called_off {
            asides.push(Aside::CalledOff { run: run() });
        }
        if self.taken_over > 0 {
            let is_suspect = self.is_suspect;
            asides.push(Aside::TakenOver { run: run(), times: self.taken_over, is_suspect });
        }
        asides.extend(self.late_since.map(|since| Aside::Late { run: run(), since }));
        asides.extend(self.asked_again.clone().map(|asked| Aside::Deduplicated { run: run(), asked }));
        if self.is_forgotten {
            asides.push(Aside::Forgotten { run: run() });
        }
        let suspects = self.suspects.iter().cloned();
        asides.extend(suspects.map(|suspect| Aside::WideKey { run: run(), suspect }));
        asides
    }

    /// What the open attempt waits for.
    fn placed(&self, place: &Whereabouts) -> Open {
        let (run, setting) = (self.run.clone(), &self.setting);
        match (place.clone(), setting.paused_at) {
            (Whereabouts::Running { worker, process, since, alive_until }, _) => {
                if alive_until <= setting.now {
                    return Open::WorkerSilent { run, worker, process, since };
                }
                Open::Running { run, attempt: self.attempt, worker, process, since, alive_until }
            }
            (_, Some(since)) => Open::Paused { run, job: setting.job.clone(), since },
            (Whereabouts::Delayed { until }, None) => {
                let message = self.last_message.clone();
                Open::BackingOff { run, attempt: self.attempt, until, message }
            }
            (Whereabouts::BehindItsLane { holder }, None) => Open::LaneHeld { run, holder },
            (Whereabouts::Queued { slots: Some((limit, holders)), .. }, None) => {
                Open::SlotsTaken { run, limit, holders }
            }
            (Whereabouts::Queued { .. }, None) if setting.workers == 0 => {
                Open::NoWorker { run, last_seen: setting.last_seen }
            }
            (Whereabouts::Queued { ahead, .. }, None) => {
                Open::Queued { run, ahead, workers: setting.workers, under_way: setting.under_way }
            }
        }
    }

    /// How it last ended.
    fn ended(&self, outcome: RunOutcome) -> Ended {
        let (run, attempt, at) = (self.run.clone(), self.ended_attempt, self.ended_at);
        let message = self.message.clone();
        match outcome {
            RunOutcome::Done => Ended::Done { run, attempt, at, version: self.version },
            RunOutcome::Waiting => Ended::WaitsForEffects { run, attempt },
            RunOutcome::Partial => Ended::Partial { run, message, units: self.units_left.clone() },
            RunOutcome::Failed if self.reason == Some(FailureReason::Held) => {
                Ended::Held { run, attempt, at, message }
            }
            RunOutcome::Failed => {
                let doubtful = self.units_left.iter().filter(|unit| unit.is_in_doubt);
                let doubtful = doubtful.map(|unit| unit.key.clone()).collect();
                Ended::Failed { run, attempt, at, message, doubtful }
            }
            RunOutcome::Cancelled => Ended::Cancelled { run, at },
            RunOutcome::Skipped => Ended::Skipped { run, at, reason: message.unwrap_or_default() },
        }
    }

    fn of_version(&self) -> Option<Aside> {
        let (run, version, present) = (self.run.clone(), self.version?, self.setting.version?);
        if version > present {
            return Some(Aside::WorkerTooOld { run, version, present });
        }
        let is_outdated = version < present && self.standing.is_done();
        is_outdated.then_some(Aside::Outdated { run, version, present })
    }
}
