//! The result of a request to run, as values and as the JSON that `refrain run --json` prints.

use std::sync::Arc;

use jiff::Timestamp;
use refrain_core::state::{FailureReason, RunOutcome};
use refrain_core::why::Cause;
use serde::{Serialize, Serializer};

use super::show::RunRecord;
use super::{DoubtRecord, Refrain};
use crate::error::Error;
use crate::store::counts::UnitCounts;
use crate::store::show::QueuePosition;

/// How a request to run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Did {
    /// An attempt was made here.
    Ran,
    /// An attempt was running elsewhere, and this is how it ended.
    Followed,
    /// The run was done before; nothing was done now.
    Deduplicated,
    /// The command was cut off in an earlier attempt and must not be executed again before an operator has looked;
    /// nothing was done now.
    Held,
    /// The operator recorded the run as done, and nothing was executed.
    Settled,
    /// The caller's patience ended. The run stays queued, and the next process that can does it.
    GaveUp,
}

/// The result of a request to run.
///
/// It serializes to the object that `refrain run --json` prints, without its [`scopes`](Self::scopes): each of those
/// is an object of its own.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunReport {
    /// The run, as the caller wrote it.
    pub name: String,
    /// How the request ended.
    pub did: Did,
    /// The attempt that was made, followed or found.
    pub attempt: u64,
    /// The run as it is now; another caller may have asked for another attempt meanwhile.
    pub run: RunRecord,
    /// The message of the last attempt that ended.
    pub message: Option<String>,
    /// Why that attempt did not do its work, where that decides what comes next.
    pub reason: Option<FailureReason>,
    /// What an operator must decide before the run can go on.
    pub doubts: Vec<DoubtRecord>,
    /// What the run waits for, if the caller gave up.
    pub waits_for: Option<Cause>,
    /// The units of the attempt if it was made here and had any, else the run itself.
    pub counts: UnitCounts,
    /// The scopes of a window, in their order, up to the first that did not end.
    pub scopes: Vec<RunReport>,
    /// The error that ended the scopes of a window, if one did: that scope and those after it have no report.
    pub scope_error: Option<ScopeError>,
}

/// Why a scope of a window has no report, while the runs before it have theirs.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{run}: {error}")]
#[non_exhaustive]
pub struct ScopeError {
    /// The run of the scope; the window, if its scopes could not be read.
    pub run: String,
    /// The error.
    pub error: Arc<Error>,
}

impl RunReport {
    /// Whether the run and all of its scopes are done.
    pub fn is_done(&self) -> bool {
        self.is_done_alone() && self.scope_error.is_none() && self.scopes.iter().all(RunReport::is_done)
    }

    /// Whether the run itself is done, by this attempt or a later one, whatever became of its scopes.
    pub fn is_done_alone(&self) -> bool {
        self.run.standing.is_done() && self.run.ended_attempt >= self.attempt
    }

    /// Whether an operator must decide before the run can go on.
    pub fn needs_a_person(&self) -> bool {
        let is_held = self.did == Did::Held || self.reason.is_some_and(FailureReason::needs_a_person);
        is_held && !self.is_done_alone()
    }

    /// The report of the run, then those of its scopes.
    pub fn all(&self) -> impl Iterator<Item = &RunReport> {
        std::iter::once(self).chain(&self.scopes)
    }

    /// Whether an attempt is open that was not made: the process was told to stop, or the caller gave up.
    pub(super) fn is_left_open(&self) -> bool {
        self.run.standing.is_open() && !matches!(self.run.place, Some(QueuePosition::Delayed(_)))
    }
}

impl Refrain {
    pub(super) async fn reported(
        &self,
        name: &str,
        (did, attempt): (Did, u64),
        run: RunRecord,
        waits_for: Option<Cause>,
    ) -> Result<RunReport, Error> {
        // The message of an open run is stored with its earlier attempts.
        let (message, reason) = if run.standing.is_open() {
            let last = self.attempts(&run).await?.pop();
            last.map_or((None, None), |attempt| (attempt.message, attempt.reason))
        } else {
            (run.message.clone(), run.reason)
        };
        let (doubts, counts, scopes) = (Vec::new(), counted(did, &run), Vec::new());
        let (name, scope_error) = (name.to_owned(), None);
        let mut report = RunReport {
            name,
            did,
            attempt,
            run,
            message,
            reason,
            doubts,
            waits_for,
            counts,
            scopes,
            scope_error,
        };
        if report.needs_a_person() {
            report.doubts = self.doubts(&report.run).await?;
        }
        if did == Did::Ran {
            let units = self.units(&report.run).await?.into_iter().find(|units| units.attempt == attempt);
            report.counts = units.map_or(report.counts, |units| units.counts);
        }
        Ok(report)
    }
}

/// The run itself as one of the four counts; all are zero if it has not ended.
fn counted(did: Did, run: &RunRecord) -> UnitCounts {
    let none = UnitCounts::default();
    match (did, run.standing.outcome) {
        (Did::GaveUp | Did::Settled, _) => none,
        (Did::Deduplicated, _) => UnitCounts { deduplicated: 1, ..none },
        _ if matches!(run.place, Some(QueuePosition::Delayed(_))) => UnitCounts { failed: 1, ..none },
        _ if run.standing.is_open() => none,
        (Did::Followed, Some(RunOutcome::Done | RunOutcome::Waiting)) => {
            UnitCounts { deduplicated: 1, ..none }
        }
        (_, Some(RunOutcome::Done | RunOutcome::Waiting)) => UnitCounts { processed: 1, ..none },
        (_, Some(RunOutcome::Skipped)) => UnitCounts { skipped: 1, ..none },
        (_, Some(RunOutcome::Failed | RunOutcome::Partial)) => UnitCounts { failed: 1, ..none },
        (_, Some(RunOutcome::Cancelled) | None) => none,
    }
}

#[derive(Serialize)]
struct RunReportJson<'r> {
    run: &'r str,
    did: Did,
    state: String,
    attempt: u64,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    again_at: Option<Timestamp>,
    message: Option<&'r str>,
    reason: Option<String>,
    needs_a_person: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    doubts: &'r [DoubtRecord],
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<WaitsFor>,
    counts: UnitCounts,
}

/// What a run waits for, as `refrain why` says it.
#[derive(Serialize)]
struct WaitsFor {
    rule: &'static str,
    said: String,
}

impl Serialize for RunReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let waits_for = self.waits_for.as_ref().map(Cause::explain);
        let json = RunReportJson {
            run: &self.name,
            did: self.did,
            state: self.run.standing.node().to_string(),
            attempt: self.run.attempt,
            started_at: self.run.started_at,
            ended_at: self.run.ended_at,
            again_at: self.run.again_at(),
            message: self.message.as_deref(),
            reason: self.reason.map(|reason| reason.to_string()),
            needs_a_person: self.needs_a_person(),
            doubts: &self.doubts,
            waits_for: waits_for.map(|cause| WaitsFor { rule: cause.rule, said: cause.text }),
            counts: self.counts,
        };
        json.serialize(serializer)
    }
}
