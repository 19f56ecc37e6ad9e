//! A run is the one record of a window (or of a key), and it keeps two facts apart: how it last ended, and
//! whether an attempt is queued or running now.
//!
//! A done window that is computed again is therefore done *and* open, never missing. Its outcome changes only
//! when an attempt ends, and then it is what happened last: a recompute that fails leaves a failed run, for
//! nobody can vouch for the rows of that window. Three rules follow:
//!
//! - Cancelling an attempt that is still queued ends nothing: a run that had an outcome keeps it, and only a
//!   run that never had one becomes cancelled. What counts is that it is queued at that moment, not whether
//!   an earlier try since the reopening had begun: what such a try finished is recorded unit by unit.
//! - Effects settle on their own time, also while the run is computed again; `settled` turns the waiting
//!   outcome into done and leaves the open attempt alone.
//! - What is open stays open through errors, stops and take-overs; what has ended is queued again only by a
//!   reopening.

use super::{Machine, Refusal};
use crate::Word;

words! {
    /// The node of the diagram at which a run stands; see [`RunStanding::node`].
    RunNode, "run state" {
        /// Nothing is recorded.
        Absent = "absent",
        /// Queued: a worker may claim it, perhaps not before some time.
        Due = "due",
        /// A worker holds its lease.
        Running = "running",
        /// Its work and its effects are done.
        Done = "done",
        /// Its work is done; effects, or a person's word on them, are outstanding. Counts as done.
        Waiting = "waiting",
        /// Some units are done; others failed and keep their input.
        Partial = "partial",
        /// Every try ended in an error.
        Failed = "failed",
        /// A person stopped it.
        Cancelled = "cancelled",
        /// It did not run, and the record says why.
        Skipped = "skipped",
    }
}

words! {
    /// How a run last ended.
    RunOutcome, "run outcome" {
        /// Its work and its effects are done.
        Done = "done",
        /// Its work is done; effects, or a person's word on them, are outstanding.
        Waiting = "waiting",
        /// Some units are done; others failed.
        Partial = "partial",
        /// Every try ended in an error.
        Failed = "failed",
        /// A person stopped it.
        Cancelled = "cancelled",
        /// It did not run, for a recorded reason.
        Skipped = "skipped",
    }
}

words! {
    /// Why an attempt did not do its work, where that decides what comes next. What was said of it is for people alone.
    FailureReason, "failure reason" {
        /// It took longer than it may.
        TimedOut = "timed-out",
        /// Its command was cut off, and is not executed again before a person has looked.
        Held = "held",
        /// It left units in doubt, and only a person ends that.
        InDoubt = "in-doubt",
    }
}

impl FailureReason {
    /// Whether nothing goes on before a person has decided.
    pub fn needs_a_person(self) -> bool {
        matches!(self, FailureReason::Held | FailureReason::InDoubt)
    }
}

words! {
    /// What the open attempt of a run is doing.
    Open, "open attempt" {
        /// It waits for a worker.
        Queued = "queued",
        /// A worker holds its lease.
        Running = "running",
    }
}

words! {
    /// What happens to a run.
    RunEvent, "run event" {
        /// A tick, an enqueue, a backfill or a person asked for it.
        Opened = "opened",
        /// Catch-up or `while-running` passed it over.
        Skipped = "skipped",
        /// A worker took its lease.
        Claimed = "claimed",
        /// The attempt did all of its work.
        Succeeded = "succeeded",
        /// The attempt did its work; effects or a person are outstanding.
        Waits = "waits",
        /// The attempt ended with some units failed.
        PartlyFailed = "partly-failed",
        /// An error, and no try is left or none would help.
        Failed = "failed",
        /// An error, and tries are left.
        Errored = "errored",
        /// The lease of its batch ran out; who of the batch is to blame is unknown.
        TakenOver = "taken-over",
        /// The lease ran out while it was claimed alone: it is to blame.
        CrashedAlone = "crashed-alone",
        /// Its worker was asked to stop, and gave it back.
        Stopped = "stopped",
        /// A person called it off.
        Cancelled = "cancelled",
        /// Run, retry, `--again` or a backfill asked for another attempt.
        Reopened = "reopened",
        /// The last outstanding effect was settled.
        Settled = "settled",
        /// A person said that a command which was cut off has done its work.
        Vouched = "vouched",
    }
}

impl Machine for RunNode {
    type Event = RunEvent;
    const NOUN: &'static str = "run";
    const START: Self = Self::Absent;
    const EDGES: &'static [super::Edge<Self, RunEvent>] = edges! {
        Absent,    Opened       => Due:       "its one record is made, and queued";
        Absent,    Skipped      => Skipped:   "born final: what did not run has a record too";
        Due,       Claimed      => Running:   "by one worker, under a lease";
        Due,       Cancelled    => Cancelled: "before it began; a run that had an outcome keeps that instead";
        Running,   Succeeded    => Done:      "nothing is outstanding";
        Running,   Waits        => Waiting:   "holds no lease; everyone who asks is told that it is done";
        Running,   PartlyFailed => Partial:   "failed units keep their input; a retry does only those";
        Running,   Failed       => Failed:    "no tries left, or none would help";
        Running,   Cancelled    => Cancelled: "what it finished stays recorded";
        Running,   Errored      => Due:       "tries are left; not before its backoff ends";
        Running,   TakenOver    => Due:       "suspect: claimed alone next time";
        Running,   CrashedAlone => Due:       "tries are left; claimed alone again";
        Running,   Stopped      => Due:       "given back whole, by a worker that is leaving";
        Waiting,   Settled      => Done:      "its last effect was settled";
        Failed,    Vouched      => Done:      "its command was cut off; it is not executed again";
        Partial,   Vouched      => Done:      "its command was cut off; it is not executed again";
        Cancelled, Vouched      => Done:      "its command was cut off; it is not executed again";
        Done,      Reopened     => Due:       "computed again; it stays done until the attempt ends";
        Waiting,   Reopened     => Due:       "computed again; it counts as done until the attempt ends";
        Partial,   Reopened     => Due:       "what failed is done again";
        Failed,    Reopened     => Due:       "with all its tries";
        Cancelled, Reopened     => Due:       "someone wants it after all";
        Skipped,   Reopened     => Due:       "someone wants it after all";
    };

    fn why_not(self, event: RunEvent) -> &'static str {
        use RunEvent as Event;
        match (self, event) {
            (Self::Absent, _) => {
                "there is no such run; it begins when it is opened, or skipped with a reason"
            }
            (_, Event::Opened | Event::Skipped) => {
                "a window has one record, and it is here already; run it again instead"
            }
            (Self::Due | Self::Running, Event::Reopened) => "an attempt is open already; follow that one",
            (Self::Waiting, Event::Cancelled) => {
                "its work is done and only effects are outstanding; reject or abandon those"
            }
            (_, Event::Cancelled) => "it has ended, so there is nothing to cancel; its effects can be undone",
            (_, Event::Vouched) => "no command of it was cut off and waits for a person's word",
            (_, Event::Settled) => "only a run that waits for its effects is settled by them",
            (Self::Running, Event::Claimed) => "another worker holds it, until it ends or its lease runs out",
            (_, Event::Claimed) => "it has ended and nothing is queued; retry it, or run it with --again",
            (Self::Due, _) => "nobody has claimed it, so no attempt can end; the lease was lost",
            (_, _) => "its attempt has ended already; the result of a lost lease is not recorded",
        }
    }
}

impl From<RunOutcome> for RunNode {
    fn from(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Done => Self::Done,
            RunOutcome::Waiting => Self::Waiting,
            RunOutcome::Partial => Self::Partial,
            RunOutcome::Failed => Self::Failed,
            RunOutcome::Cancelled => Self::Cancelled,
            RunOutcome::Skipped => Self::Skipped,
        }
    }
}

/// How a run last ended, and whether an attempt is open: two columns, every pair of which means something.
///
/// ```
/// use refrain_core::state::{RunEvent, RunNode, RunOutcome, RunStanding};
///
/// let done = RunStanding { outcome: Some(RunOutcome::Done), open: None };
/// let again = done.apply(RunEvent::Reopened)?.standing;
/// assert_eq!(again.node(), RunNode::Due);
/// assert!(again.is_done() && again.is_open(), "a recompute never makes a done window look missing");
/// # Ok::<(), refrain_core::state::Refusal>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunStanding {
    /// How it last ended; none if it never did.
    pub outcome: Option<RunOutcome>,
    /// What its open attempt is doing; none if nothing is queued or running.
    pub open: Option<Open>,
}

/// What an event makes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStep {
    /// Where the run stands now.
    pub standing: RunStanding,
    /// What becomes of the number and the count of its attempts.
    pub attempt: AttemptChange,
}

impl RunStanding {
    /// The node of the diagram: the open attempt if there is one, else the last outcome.
    pub fn node(self) -> RunNode {
        match (self.open, self.outcome) {
            (Some(Open::Queued), _) => RunNode::Due,
            (Some(Open::Running), _) => RunNode::Running,
            (None, Some(outcome)) => outcome.into(),
            (None, None) => RunNode::Absent,
        }
    }

    /// Whether the window counts as done for everyone who asks, also while it is computed again.
    pub fn is_done(self) -> bool {
        matches!(self.outcome, Some(RunOutcome::Done | RunOutcome::Waiting))
    }

    /// Whether an attempt is queued or running.
    pub fn is_open(self) -> bool {
        self.open.is_some()
    }

    /// The standing after `event`, or why there is none.
    pub fn apply(self, event: RunEvent) -> Result<RunStep, Refusal> {
        let from = match (event, self.outcome) {
            (RunEvent::Settled, Some(outcome)) => outcome.into(),
            _ => self.node(),
        };
        let to = from.apply(event)?;
        Ok(RunStep { standing: self.moved(from, to), attempt: event.attempt() })
    }

    fn moved(self, from: RunNode, to: RunNode) -> Self {
        let ended = RunOutcome::ALL.iter().copied().find(|outcome| RunNode::from(*outcome) == to);
        match (from, to) {
            (_, RunNode::Due) => Self { open: Some(Open::Queued), ..self },
            (_, RunNode::Running) => Self { open: Some(Open::Running), ..self },
            (RunNode::Due, _) => Self { outcome: self.outcome.or(ended), open: None },
            (RunNode::Running, _) => Self { outcome: ended, open: None },
            _ => Self { outcome: ended, ..self },
        }
    }
}

/// What an event does to the attempts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptChange {
    /// A new number, with all its tries before it.
    Fresh,
    /// The same number goes on.
    Same,
    /// A new number, which fences off the one before.
    Next {
        /// Whether the try that ended is counted against the job's `retry`.
        counts: bool,
        /// Whether the run is claimed alone next time.
        suspect: bool,
    },
    /// The attempt is over, and no other follows.
    Over,
}

impl AttemptChange {
    /// The change in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Fresh => "a new number, all tries ahead",
            Self::Same => "the same number goes on",
            Self::Next { counts: true, suspect: false } => "a new number, one try spent",
            Self::Next { counts: true, suspect: true } => "a new number, one try spent, claimed alone",
            Self::Next { counts: false, suspect: false } => "a new number, no try spent",
            Self::Next { counts: false, suspect: true } => "a new number, no try spent, claimed alone",
            Self::Over => "no attempt is open any more",
        }
    }
}

impl RunEvent {
    /// What this event does to the attempts of a run.
    pub fn attempt(self) -> AttemptChange {
        match self {
            Self::Opened | Self::Reopened => AttemptChange::Fresh,
            Self::Claimed | Self::Settled => AttemptChange::Same,
            Self::Stopped | Self::Vouched => AttemptChange::Next { counts: false, suspect: false },
            Self::Errored => AttemptChange::Next { counts: true, suspect: false },
            Self::TakenOver => AttemptChange::Next { counts: false, suspect: true },
            Self::CrashedAlone => AttemptChange::Next { counts: true, suspect: true },
            Self::Skipped
            | Self::Succeeded
            | Self::Waits
            | Self::PartlyFailed
            | Self::Failed
            | Self::Cancelled => AttemptChange::Over,
        }
    }
}

/// The attempts of a run so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts {
    /// The number of the present or last attempt: its fence. It only grows.
    pub number: u64,
    /// How many tries since the run was last opened ended in an error of its own.
    pub spent: u32,
    /// How many take-overs in a row it was part of. A suspect is claimed apart from others.
    pub suspicion: u32,
}

impl Attempts {
    /// The attempts after a change.
    #[must_use]
    pub fn then(self, change: AttemptChange) -> Self {
        let next = self.number.saturating_add(1);
        match change {
            AttemptChange::Fresh => Self { number: next, spent: 0, suspicion: 0 },
            AttemptChange::Same => self,
            AttemptChange::Next { counts, suspect } => {
                let suspicion = if suspect { self.suspicion.saturating_add(1) } else { 0 };
                Self { number: next, spent: self.spent.saturating_add(counts.into()), suspicion }
            }
            AttemptChange::Over => Self { suspicion: 0, ..self },
        }
    }
}
