//! A run on one line, for people and for programs: what `status`, `runs` and `show` print.

use std::fmt;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use refrain::core::state::{FailureReason, RunOutcome};
use refrain::{JobView, QueuePosition, RunRecord};
use serde::Serialize;

use crate::output::harmless;

/// A run.
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the object that programs read")]
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RunLine {
    pub(crate) run: String,
    pub(crate) job: String,
    pub(crate) key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window_start: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window_end: Option<Timestamp>,
    pub(crate) scope: String,
    pub(crate) state: String,
    pub(crate) is_open: bool,
    pub(crate) is_late: bool,
    pub(crate) is_outdated: bool,
    pub(crate) attempt: u64,
    pub(crate) version: Option<u32>,
    pub(crate) opened_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) again_at: Option<Timestamp>,
    pub(crate) message: Option<String>,
    /// Why its last attempt did not do its work, where that decides what comes next.
    pub(crate) reason: Option<String>,
    pub(crate) needs_a_person: bool,
    #[serde(skip)]
    pub(crate) mark: Mark,
}

/// How a run stands, as one sign; it is told by its shape and not by its colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    Done,
    Outdated,
    Skipped,
    Cancelled,
    Waiting,
    Queued,
    Running,
    Late,
    Partial,
    Failed,
}

impl Mark {
    pub(crate) const ALL: [Mark; 10] = [
        Mark::Done,
        Mark::Outdated,
        Mark::Skipped,
        Mark::Cancelled,
        Mark::Waiting,
        Mark::Queued,
        Mark::Running,
        Mark::Late,
        Mark::Partial,
        Mark::Failed,
    ];

    pub(crate) fn sign(self) -> char {
        match self {
            Mark::Done => '●',
            Mark::Outdated => '○',
            Mark::Skipped => '–',
            Mark::Cancelled => '⊘',
            Mark::Waiting => '◔',
            Mark::Queued => '·',
            Mark::Running => '▶',
            Mark::Late => '!',
            Mark::Partial => '◐',
            Mark::Failed => '✗',
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Mark::Done => "done",
            Mark::Outdated => "outdated",
            Mark::Skipped => "skipped",
            Mark::Cancelled => "cancelled",
            Mark::Waiting => "waiting",
            Mark::Queued => "due",
            Mark::Running => "running",
            Mark::Late => "late",
            Mark::Partial => "partial",
            Mark::Failed => "failed",
        }
    }

    fn style(self) -> Style {
        let colour = match self {
            Mark::Done => AnsiColor::Green,
            Mark::Outdated | Mark::Skipped | Mark::Cancelled => AnsiColor::BrightBlack,
            Mark::Waiting | Mark::Queued | Mark::Running => AnsiColor::Cyan,
            Mark::Late | Mark::Partial => AnsiColor::Yellow,
            Mark::Failed => AnsiColor::Red,
        };
        colour.on_default()
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = self.style();
        write!(f, "{style}{}{style:#}", self.sign())
    }
}

impl RunLine {
    pub(crate) fn of(run: &RunRecord, view: &JobView, now: Timestamp) -> RunLine {
        let (is_late, is_outdated) = (view.is_late(run, now), view.is_outdated(run));
        RunLine {
            run: view.name_of(run),
            job: run.job.clone(),
            key: run.key.clone(),
            window_start: run.window.map(|window| window.start().timestamp()),
            window_end: run.window.map(|window| window.end().timestamp()),
            scope: run.scope().to_owned(),
            state: run.standing.node().to_string(),
            is_open: run.standing.is_open(),
            is_late,
            is_outdated,
            attempt: run.attempt,
            version: run.version,
            opened_at: run.opened_at,
            started_at: run.started_at,
            ended_at: run.ended_at,
            again_at: match run.place {
                Some(QueuePosition::Delayed(at)) => Timestamp::from_microsecond(at).ok(),
                _ => None,
            },
            message: run.message.clone(),
            reason: run.reason.map(|reason| reason.to_string()),
            needs_a_person: !run.standing.is_open() && run.reason.is_some_and(FailureReason::needs_a_person),
            mark: mark(run, is_late, is_outdated),
        }
    }
}

fn mark(run: &RunRecord, is_late: bool, is_outdated: bool) -> Mark {
    match (run.place, run.standing.outcome) {
        (Some(QueuePosition::Running), _) => Mark::Running,
        _ if is_late => Mark::Late,
        (Some(_), _) | (None, None) => Mark::Queued,
        (None, Some(RunOutcome::Done)) if is_outdated => Mark::Outdated,
        (None, Some(RunOutcome::Done)) => Mark::Done,
        (None, Some(RunOutcome::Waiting)) => Mark::Waiting,
        (None, Some(RunOutcome::Partial)) => Mark::Partial,
        (None, Some(RunOutcome::Failed)) => Mark::Failed,
        (None, Some(RunOutcome::Cancelled)) => Mark::Cancelled,
        (None, Some(RunOutcome::Skipped)) => Mark::Skipped,
    }
}

impl fmt::Display for RunLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}  {}", self.mark, self.run, self.state)?;
        if self.is_late {
            write!(f, ", late")?;
        }
        if self.is_outdated {
            write!(f, ", outdated")?;
        }
        if self.needs_a_person {
            write!(f, ", waits for a person")?;
        }
        if self.attempt > 1 {
            write!(f, ", attempt {}", self.attempt)?;
        }
        match (self.again_at, self.ended_at) {
            (Some(at), _) => write!(f, ", again at {at:.0}")?,
            (None, Some(at)) if !self.is_open => write!(f, ", {at:.0}")?,
            _ => {}
        }
        match &self.message {
            Some(message) => write!(f, ": {}", harmless(message)),
            None => Ok(()),
        }
    }
}
