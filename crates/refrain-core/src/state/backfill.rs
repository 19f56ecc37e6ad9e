//! A backfill is shown, hashed and approved before it touches anything, and can be stopped at any moment.
//!
//! It owns no window: each of its runs lives its own life, and cancelling the plan leaves what is finished.

use super::Machine;

words! {
    /// Where a backfill stands.
    BackfillState, "backfill state" {
        /// Nothing is planned.
        Absent = "absent",
        /// The windows are listed, each with its reason, and hashed; nothing has run.
        Planned = "planned",
        /// A person agreed to exactly this plan.
        Approved = "approved",
        /// Its windows are queued and run.
        Running = "running",
        /// No further window begins; those under way end.
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
        /// A person, or `--yes`, agreed to it.
        Approved = "approved",
        /// The world is still as planned, and the first windows are queued.
        Started = "started",
        /// A person asked it to rest.
        Paused = "paused",
        /// A person let it go on.
        Resumed = "resumed",
        /// The last window has its outcome.
        Finished = "finished",
        /// A person gave it up.
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
        Planned,  Cancelled => Cancelled: "nobody wants it";
        Approved, Started   => Running:   "the world is as it was when the plan was made";
        Approved, Cancelled => Cancelled: "before its first window began";
        Running,  Paused    => Paused:    "windows under way end, no other begins";
        Paused,   Resumed   => Running:   "it goes on where it was";
        Running,  Finished  => Done:      "every window has its outcome";
        Paused,   Finished  => Done:      "the last window under way ended while it rested";
        Running,  Cancelled => Cancelled: "queued windows go back, finished ones stay";
        Paused,   Cancelled => Cancelled: "queued windows go back, finished ones stay";
    };

    fn why_not(self, event: BackfillEvent) -> &'static str {
        use BackfillEvent as Event;
        match (self, event) {
            (Self::Absent, _) => "there is no such backfill; plan one first",
            (_, Event::Planned) => "a plan is never changed once it is made; plan another backfill",
            (Self::Planned, Event::Started) => "nobody has approved this plan; approve it first",
            (Self::Planned | Self::Approved, Event::Paused | Event::Resumed | Event::Finished) => {
                "it has not begun; cancel it if it is not wanted"
            }
            (Self::Cancelled, _) => {
                "it was cancelled for good; plan another one, which sees what is done already"
            }
            (Self::Done, _) => "every window of it is finished; plan another one to run them again",
            (_, Event::Approved) => "it is approved already, and approval is given once",
            (_, Event::Started) => "it has begun already; a plan is started once",
            (Self::Paused, Event::Paused) => "it rests already; resume it to go on",
            (Self::Running, Event::Resumed) => "it is not paused, so there is nothing to resume",
            (_, Event::Paused | Event::Resumed | Event::Finished | Event::Cancelled) => super::NOT_LISTED,
        }
    }
}
