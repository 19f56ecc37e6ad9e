//! A run is the one record of a window (or of a key). It keeps two facts apart: how it last ended, and whether an attempt is
//! queued or running now.
//!
//! A done window that is recomputed is therefore done *and* open, never missing. Its outcome changes only when an attempt ends,
//! and then the last attempt counts: a recompute that fails leaves a failed run, because the rows of that window can no longer be
//! trusted. Three rules follow:
//!
//! - Cancelling an attempt that is still queued ends nothing: a run that had an outcome keeps it, and only a run that never had
//!   one becomes cancelled. What counts is that it is queued at that moment, not whether an earlier try since the reopening had
//!   begun: the units that such a try finished are recorded one by one.
//! - Effects settle independently, also while the run is recomputed: `settled` turns the waiting outcome into done, `refused` into
//!   partial, and both leave the open attempt alone.
//! - An open run stays open through errors, stops and takeovers; an ended run is queued again only by a reopening.

use super::{Machine, Refusal};
use crate::Word;

words! {
    /// The node of the diagram for a run; see [`RunStanding::node`].
    RunNode, "run state" {
        /// Nothing is recorded.
        Absent = "absent",
        /// Queued: a worker may claim it, perhaps not before some time.
        Due = "due",
        /// A worker holds its lease.
        Running = "running",
        /// Its work and its effects are done.
        Done = "done",
        /// Its work is done; effects, or the operator's decisions about them, are outstanding. Counts as done.
        Waiting = "waiting",
        /// Some units are done; others failed and keep their input.
        Partial = "partial",
        /// Every try ended in an error.
        Failed = "failed",
        /// The operator cancelled it.
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
        /// Its work is done; effects, or the operator's decisions about them, are outstanding.
        Waiting = "waiting",
        /// Some units are done; others failed.
        Partial = "partial",
        /// Every try ended in an error.
        Failed = "failed",
        /// The operator cancelled it.
        Cancelled = "cancelled",
        /// It did not run, for a recorded reason.
        Skipped = "skipped",
    }
}

words! {
    /// Why an attempt did not do its work. Decisions follow from this value; the message is only for people.
    FailureReason, "failure reason" {
        /// The job returned an error.
        Error = "error",
        /// The attempt panicked.
        Panicked = "panicked",
        /// It exceeded its timeout.
        TimedOut = "timed-out",
        /// Its command was interrupted, and is not executed again before the operator decides.
        Held = "held",
        /// It left units in doubt, and only the operator can resolve them.
        InDoubt = "in-doubt",
        /// It ended, but some of its units are not applied.
        Unapplied = "unapplied",
        /// Its worker was asked to stop.
        Interrupted = "interrupted",
        /// Its worker could not renew its lease in time, or died.
        Lost = "lost",
        /// Its worker had no file descriptors left.
        Exhausted = "exhausted",
        /// A database remembers a later attempt than the store does.
        Superseded = "superseded",
    }
}

impl FailureReason {
    /// Whether the operator must decide before anything else happens.
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
        /// A tick, an enqueue, a backfill or the operator asked for it.
        Opened = "opened",
        /// Catch-up or `while-running` skipped it.
        Skipped = "skipped",
        /// A worker took its lease.
        Claimed = "claimed",
        /// The attempt did all of its work.
        Succeeded = "succeeded",
        /// The attempt did its work; effects or decisions of the operator are outstanding.
        Waits = "waits",
        /// The attempt ended with failed units.
        PartlyFailed = "partly-failed",
        /// An error, and no try is left or another one would not help.
        Failed = "failed",
        /// An error, and tries are left.
        Errored = "errored",
        /// The lease of its batch expired; which run of the batch is to blame is unknown.
        TakenOver = "taken-over",
        /// The lease expired while it was claimed alone: it is to blame.
        CrashedAlone = "crashed-alone",
        /// Its worker stopped, or could not go on, and put it back into the queue.
        Stopped = "stopped",
        /// Its worker had claimed it and put it back before the attempt began.
        GivenBack = "given-back",
        /// The operator cancelled it.
        Cancelled = "cancelled",
        /// Run, retry, `--again` or a backfill asked for another attempt.
        Reopened = "reopened",
        /// The last outstanding effect was settled.
        Settled = "settled",
        /// The last outstanding effect was settled, and at least one was refused for good.
        Refused = "refused",
        /// The operator confirmed that an interrupted command had done its work.
        Vouched = "vouched",
    }
}

impl Machine for RunNode {
    type Event = RunEvent;
    const NOUN: &'static str = "run";
    const START: Self = Self::Absent;
    const EDGES: &'static [super::Edge<Self, RunEvent>] = edges! {
        Absent,    Opened       => Due:       "its only record is created and queued";
        Absent,    Skipped      => Skipped:   "a final record from the start: a run that did not happen is recorded too";
        Due,       Claimed      => Running:   "by one worker, under a lease";
        Due,       Cancelled    => Cancelled: "before it began; a run that had an outcome keeps that instead";
        Running,   Succeeded    => Done:      "nothing is outstanding";
        Running,   Waits        => Waiting:   "holds no lease; it counts as done";
        Running,   PartlyFailed => Partial:   "failed units keep their input; a retry does only those";
        Running,   Failed       => Failed:    "no tries left, or another one would not help";
        Running,   Cancelled    => Cancelled: "finished units stay recorded";
        Running,   Errored      => Due:       "tries are left; not before its backoff ends";
        Running,   TakenOver    => Due:       "suspect: claimed alone next time";
        Running,   CrashedAlone => Due:       "tries are left; claimed alone again";
        Running,   Stopped      => Due:       "put back by a worker that stops";
        Running,   GivenBack    => Due:       "it had not begun";
        Waiting,   Settled      => Done:      "its last effect was settled";
        Waiting,   Refused      => Partial:   "its last effect was settled, and one was refused for good";
        Partial,   Settled      => Done:      "its last refused effect was confirmed or abandoned";
        Failed,    Vouched      => Done:      "its command was interrupted; it is not executed again";
        Partial,   Vouched      => Done:      "its command was interrupted; it is not executed again";
        Cancelled, Vouched      => Done:      "its command was interrupted; it is not executed again";
        Done,      Reopened     => Due:       "recomputed; it stays done until the attempt ends";
        Waiting,   Reopened     => Due:       "recomputed; it counts as done until the attempt ends";
        Partial,   Reopened     => Due:       "failed units are tried again";
        Failed,    Reopened     => Due:       "with all its tries";
        Cancelled, Reopened     => Due:       "requested after all";
        Skipped,   Reopened     => Due:       "requested after all";
    };

    fn why_not(self, event: RunEvent) -> &'static str {
        use RunEvent as Event;
        match (self, event) {
            (Self::Absent, _) => {
                "there is no such run; a run begins when it is opened, or skipped with a reason"
            }
            (_, Event::Opened | Event::Skipped) => {
                "a window has one record, and it exists already; run it again instead"
            }
            (Self::Due | Self::Running, Event::Reopened) => "an attempt is open already; follow that one",
            (Self::Waiting, Event::Cancelled) => {
                "its work is done and only effects are outstanding; reject or abandon those"
            }
            (_, Event::Cancelled) => "it has ended, so there is nothing to cancel; its effects can be undone",
            (_, Event::Vouched) => "it has no interrupted command that waits for the operator",
            (_, Event::Settled | Event::Refused) => {
                "only a run that waits for its effects is settled by them"
            }
            (Self::Running, Event::Claimed) => "another worker holds it until it ends or its lease expires",
            (_, Event::Claimed) => "it has ended and no attempt is queued; retry it, or run it with --again",
            (Self::Due, _) => "no worker has claimed it, so no attempt can end; the lease was lost",
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

/// How a run last ended, and whether an attempt is open: two columns, of which every combination is meaningful.
///
/// ```
/// use refrain_core::state::{RunEvent, RunNode, RunOutcome, RunStanding};
///
/// let done = RunStanding { outcome: Some(RunOutcome::Done), open: None };
/// let again = done.apply(RunEvent::Reopened)?.standing();
/// assert_eq!(again.node(), RunNode::Due);
/// assert!(again.is_done() && again.is_open(), "a recompute never makes a done window look missing");
/// # Ok::<(), refrain_core::state::Refusal>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunStanding {
    /// How it last ended; none if it never has.
    pub outcome: Option<RunOutcome>,
    /// What its open attempt is doing; none if no attempt is queued or running.
    pub open: Option<Open>,
}

/// A transition of a run that the table allows.
///
/// Only [`RunStanding::apply`] creates one. A function that takes a transition, and writes what it says, can therefore write
/// nothing that is not in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTransition {
    event: RunEvent,
    standing: RunStanding,
}

impl RunTransition {
    /// What happened.
    pub fn event(self) -> RunEvent {
        self.event
    }

    /// The run after it.
    pub fn standing(self) -> RunStanding {
        self.standing
    }

    /// What becomes of the number and the counts of its attempts.
    pub fn attempt(self) -> AttemptChange {
        self.event.attempt()
    }
}

impl RunStanding {
    /// A run of which nothing is recorded.
    pub const ABSENT: RunStanding = RunStanding { outcome: None, open: None };

    /// A run that a worker holds. Its last outcome plays no part in how the attempt ends.
    pub const RUNNING: RunStanding = RunStanding { outcome: None, open: Some(Open::Running) };

    /// The node of the diagram: the open attempt if there is one, else the last outcome.
    pub fn node(self) -> RunNode {
        match (self.open, self.outcome) {
            (Some(Open::Queued), _) => RunNode::Due,
            (Some(Open::Running), _) => RunNode::Running,
            (None, Some(outcome)) => outcome.into(),
            (None, None) => RunNode::Absent,
        }
    }

    /// Whether the window counts as done, also while it is recomputed.
    pub fn is_done(self) -> bool {
        matches!(self.outcome, Some(RunOutcome::Done | RunOutcome::Waiting))
    }

    /// Whether an attempt is queued or running.
    pub fn is_open(self) -> bool {
        self.open.is_some()
    }

    /// The transition by `event`, or why it is refused.
    pub fn apply(self, event: RunEvent) -> Result<RunTransition, Refusal> {
        let from = match (event, self.outcome) {
            (RunEvent::Settled | RunEvent::Refused, Some(outcome)) => outcome.into(),
            _ => self.node(),
        };
        let to = from.apply(event)?;
        Ok(RunTransition { event, standing: self.moved(from, to) })
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
    /// A new number, with all its tries.
    Fresh,
    /// The same number.
    Same,
    /// A new number, which fences off the one before.
    Next {
        /// Whether the ended try counts against the job's `retry`.
        counts: bool,
        /// Whether the run is claimed alone next time.
        suspect: bool,
    },
    /// The attempt is over, and none follows.
    Over,
}

impl AttemptChange {
    /// A short description.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Fresh => "a new number with all tries",
            Self::Same => "the same number",
            Self::Next { counts: true, suspect: false } => "a new number, one try spent",
            Self::Next { counts: true, suspect: true } => "a new number, one try spent, claimed alone next",
            Self::Next { counts: false, suspect: false } => "a new number, no try spent",
            Self::Next { counts: false, suspect: true } => "a new number, no try spent, claimed alone next",
            Self::Over => "no attempt is open",
        }
    }
}

impl RunEvent {
    /// What this event does to the attempts of a run.
    pub fn attempt(self) -> AttemptChange {
        match self {
            Self::Opened | Self::Reopened => AttemptChange::Fresh,
            Self::Claimed | Self::Settled | Self::Refused | Self::GivenBack => AttemptChange::Same,
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
    /// The number of the current or last attempt: its fence. It only grows.
    pub number: u64,
    /// How many tries since the run was last opened have failed.
    pub spent: u32,
    /// How many takeovers in a row included it. A suspect is claimed apart from others.
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
