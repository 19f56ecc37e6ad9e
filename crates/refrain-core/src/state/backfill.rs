//! A backfill is shown, hashed and approved before it touches anything, and can be stopped at any moment.
//!
//! It owns no window: each of its runs has its own states, and cancelling the plan leaves finished runs as they are.

use super::Machine;

words! {
    /// The state of a backfill.
    BackfillState, "backfill state" {
        /// No plan exists.
        Absent = "absent",
        /// The windows are listed, each with its reason, and hashed; nothing has run.
        Planned = "planned",
        /// The operator approved exactly this plan.
        Approved = "approved",
        /// Its windows are being queued and run.
        Running = "running",
        /// No further window begins; running windows end.
        Paused = "paused",
        /// Every window of the plan has its outcome.
        Done = "done",
        /// Stopped for good; finished windows stay finished.
        Cancelled = "cancelled",
    }
}

words! {
    /// What happens to a backfill.
    BackfillEvent, "backfill event" {
        /// The plan was made.
        Planned = "planned",
        /// The operator, or `--yes`, approved it.
        Approved = "approved",
        /// Everything is still as planned, and the first windows are queued.
        Started = "started",
        /// The operator paused it.
        Paused = "paused",
        /// The operator resumed it.
        Resumed = "resumed",
        /// The last window has its outcome.
        Finished = "finished",
        /// The operator cancelled it.
        Cancelled = "cancelled",
    }
}

impl Machine for BackfillState {
    type Event = BackfillEvent;
    const NOUN: &'static str = "backfill";
    const START: Self = Self::Absent;
    const EDGES: &'static [super::Edge<Self, BackfillEvent>] = edges! {
        Absent,   Planned   => Planned:   "the plan is shown before anything runs";
        Planned,  Approved  => Approved:  "exactly this plan, known by its hash";
        Planned,  Cancelled => Cancelled: "the operator declined the plan";
        Approved, Started   => Running:   "everything is as it was when the plan was made";
        Approved, Cancelled => Cancelled: "before its first window began";
        Running,  Paused    => Paused:    "running windows end, no other begins";
        Paused,   Resumed   => Running:   "it continues where it stopped";
        Running,  Finished  => Done:      "every window has its outcome";
        Paused,   Finished  => Done:      "the last running window ended while it was paused";
        Running,  Cancelled => Cancelled: "queued windows are withdrawn, finished ones stay";
        Paused,   Cancelled => Cancelled: "queued windows are withdrawn, finished ones stay";
    };

    fn why_not(self, event: BackfillEvent) -> &'static str {
        use BackfillEvent as Event;
        match (self, event) {
            (Self::Absent, _) => "there is no such backfill; plan one first",
            (_, Event::Planned) => "a plan never changes; plan another backfill",
            (Self::Planned, Event::Started) => "this plan is not approved; approve it first",
            (Self::Planned | Self::Approved, Event::Paused | Event::Resumed | Event::Finished) => {
                "it has not begun; cancel it if you do not need it"
            }
            (Self::Cancelled, _) => {
                "it was cancelled for good; plan another one, which skips finished windows"
            }
            (Self::Done, _) => "every window of it is finished; plan another one to run them again",
            (_, Event::Approved) => "it is approved already; a plan is approved once",
            (_, Event::Started) => "it has begun already; a plan is started once",
            (Self::Paused, Event::Paused) => "it is paused already; resume it to continue",
            (Self::Running, Event::Resumed) => "it is not paused, so there is nothing to resume",
            (_, Event::Paused | Event::Resumed | Event::Finished | Event::Cancelled) => super::NOT_LISTED,
        }
    }
}
