//! How units reach their rows: a source, the store, a destination, workers and relays.
//!
//! Everything that commits is one step of one database; between any two steps of an attempt anything else may happen.
//! Workers and relays have no identity beyond their state, so they are kept sorted: two worlds that differ only in
//! which worker is which are one. A step that waits for a lock does not exist until the lock is free.

pub(crate) mod attempt;
pub(crate) mod destination;
pub(crate) mod properties;
pub(crate) mod relay;
mod weakened;

use attempt::{Attempt, Step};
use destination::Destination;
use relay::Relay;
use stateright::{Model, Property};

/// Units of the source, in the order of its log: unit 0 is at position 0, and a checkpoint of 1 has passed it.
pub(crate) const UNITS: usize = 2;
/// How often the content of a unit can differ.
pub(crate) const CONTENTS: usize = 2;
const RUNS_MAX: usize = 2;
const WORKERS: usize = 2;
const RELAYS_MAX: usize = 2;

/// The content of a unit; 0 if it has none, higher is newer.
pub(crate) type Content = u8;
/// The number of an attempt, which is also its fence.
pub(crate) type Number = u8;
/// A position in the source's log.
pub(crate) type Position = usize;

/// A guard of the protocol that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// An attempt raises the fence at the destination.
    FenceRaised,
    /// It does so before it reads anything.
    RaisedBeforeReading,
    /// Batches demands that the fence is the attempt's own number.
    FenceOfApply,
    /// Advancing the checkpoint demands it.
    FenceOfCheckpoint,
    /// Raising the fence waits for transactions that hold it.
    FenceHeld,
    /// A take-over gives a new number.
    NewNumber,
    /// A unit whose content is in the ledger is not applied.
    LedgerKey,
    /// A unit with older content is not applied; a job may do without this guard.
    Order,
    /// Ledger and rows commit together.
    LedgerWithRows,
    /// Rows and intents commit together.
    IntentWithRows,
    /// A failure does not replace the same content if that was applied meanwhile.
    AppliedStands,
    /// The failure of newer content keeps the record of what was applied before.
    AppliedRemembered,
    /// After a lost reply the ledger is read.
    DoubtResolved,
    /// What a relay copies has a unique key in the store.
    RelayKey,
    /// A relay deletes an intent after it has copied it.
    CopiedBeforeDeleted,
    /// The checkpoint advances after the units of the page.
    SettledFirst,
    /// The transaction that advances it looks whether they are settled.
    SettledProven,
    /// The checkpoint does not pass units that may still become visible.
    Horizon,
    /// The limit of what is visible was read with the page, or before it.
    HorizonOfPage,
    /// It is written only if it is where the attempt read it.
    CheckpointCompared,
    /// Ending the run demands lease and number.
    FenceOfFinish,
}

/// The bounds of the search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) runs: usize,
    /// Whether a run begins only when the one before it is over.
    pub(crate) in_lane: bool,
    /// Whether a run may end without a last attempt: cancelled, or without tries left.
    pub(crate) gives_up: bool,
    pub(crate) relays: usize,
    pub(crate) contents: Content,
    pub(crate) crashes: u8,
    /// Leases that expire though their worker lives.
    pub(crate) expiries: u8,
    pub(crate) lost_replies: u8,
    pub(crate) failures: u8,
}

/// The protocol within bounds, perhaps without some of its guards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub(crate) bounds: Bounds,
    pub(crate) without: &'static [Guard],
}

impl Units {
    pub(crate) fn has(&self, guard: Guard) -> bool {
        !self.without.contains(&guard)
    }
}

/// The store's record of a run. It does not name the holder of the lease: the number belongs to one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Queued,
    Leased,
    Done,
    /// Over without being done; no attempt follows the last one.
    GivenUp,
}

impl Place {
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::GivenUp)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) number: Number,
    pub(crate) place: Place,
}

/// Things that must never happen, recorded by the steps and read only by the properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub(crate) struct Faults {
    pub(crate) written_by_an_older_attempt: bool,
    pub(crate) written_after_the_end: bool,
    pub(crate) older_content_over_newer: bool,
    pub(crate) checkpoint_went_back: bool,
    pub(crate) ended_with_units_unsettled: bool,
}

/// How much of the bounds is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Spent {
    crashes: u8,
    expiries: u8,
    lost_replies: u8,
    failures: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// Content of each unit in the source; 0 while its transaction has not committed.
    pub(crate) source: [Content; UNITS],
    pub(crate) runs: [Run; RUNS_MAX],
    /// How many effects or enqueued runs the store has for each unit's intent.
    pub(crate) recorded: [u8; UNITS],
    pub(crate) destination: Destination,
    pub(crate) workers: [Option<Attempt>; WORKERS],
    pub(crate) relays: [Relay; RELAYS_MAX],
    pub(crate) faults: Faults,
    pub(crate) spent: Spent,
}

impl World {
    /// The position before which no unit can become visible any more.
    pub(crate) fn horizon(&self) -> Position {
        self.source.iter().take_while(|content| **content > 0).count()
    }

    fn may_begin(&self, run: usize, bounds: Bounds) -> bool {
        let is_first = !bounds.in_lane || self.runs[..run].iter().all(|before| before.place.is_over());
        is_first && self.workers.iter().any(Option::is_none)
    }

    fn is_held_by_the_living(&self, run: usize) -> bool {
        let number = self.runs[run].number;
        self.workers.iter().flatten().any(|attempt| attempt.run == run && attempt.number == number)
    }

    /// Everything that has begun has ended, and every intent has reached the store.
    pub(crate) fn is_at_rest(&self, bounds: Bounds) -> bool {
        self.runs[..bounds.runs].iter().all(|run| run.place.is_over())
            && self.workers.iter().all(Option::is_none)
            && self.destination.in_flight.iter().all(Option::is_none)
            && (bounds.relays == 0 || self.destination.intents == [[false; CONTENTS]; UNITS])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A transaction of the source commits; a unit with a lower position may come later.
    Appear(usize),
    /// The source has newer content for unit 0.
    Change,
    /// A worker with room leases the queued attempt of a run.
    Claim(usize),
    /// The lease of a run is dropped, and the run returns to the queue; its worker may live on.
    TakeOver(usize),
    /// The lease of a run is dropped, and the run is over.
    GiveUp(usize),
    /// The commit whose reply is lost reaches the destination.
    Land(usize),
    /// The commit whose reply is lost never reaches the destination.
    Vanish(usize),
    Attempt(usize, Number, Step),
    Relay(usize, relay::Step),
}

impl Model for Units {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            source: [0; UNITS],
            runs: [Run { number: 1, place: Place::Queued }; RUNS_MAX],
            recorded: [0; UNITS],
            destination: Destination::default(),
            workers: [None; WORKERS],
            relays: [Relay::Idle; RELAYS_MAX],
            faults: Faults::default(),
            spent: Spent::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend((0..UNITS).filter(|unit| world.source[*unit] == 0).map(Action::Appear));
        if world.source[0] > 0 && world.source[0] < self.bounds.contents {
            actions.push(Action::Change);
        }
        for run in 0..self.bounds.runs {
            let may_expire = world.spent.expiries < self.bounds.expiries;
            match world.runs[run].place {
                Place::Queued if world.may_begin(run, self.bounds) => actions.push(Action::Claim(run)),
                Place::Leased if may_expire || !world.is_held_by_the_living(run) => {
                    actions.push(Action::TakeOver(run));
                    actions.extend(self.bounds.gives_up.then_some(Action::GiveUp(run)));
                }
                _ => {}
            }
            if world.destination.in_flight[run].is_some() {
                actions.extend([Action::Land(run), Action::Vanish(run)]);
            }
        }
        for (worker, attempt) in world.workers.iter().enumerate() {
            if let Some(attempt) = attempt {
                let steps = self.steps(world, attempt).into_iter();
                actions.extend(steps.map(|step| Action::Attempt(worker, attempt.number, step)));
            }
        }
        for relay in 0..self.bounds.relays {
            let steps = world.relays[relay].steps(world).into_iter();
            actions.extend(steps.map(|step| Action::Relay(relay, step)));
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Appear(unit) => world.source[unit] = 1,
            Action::Change => world.source[0] += 1,
            Action::Claim(run) => {
                let idle = world.workers.iter_mut().find(|worker| worker.is_none())?;
                *idle = Some(Attempt::claimed(run, world.runs[run].number));
                world.runs[run].place = Place::Leased;
            }
            Action::TakeOver(run) => {
                world.spent.expiries += u8::from(world.is_held_by_the_living(run));
                world.runs[run].number += u8::from(self.has(Guard::NewNumber));
                world.runs[run].place = Place::Queued;
            }
            Action::GiveUp(run) => {
                world.spent.expiries += u8::from(world.is_held_by_the_living(run));
                world.runs[run].place = Place::GivenUp;
            }
            Action::Land(run) => {
                let write = world.destination.in_flight[run].take()?;
                self.apply(&mut world, run, write);
            }
            Action::Vanish(run) => world.destination.in_flight[run] = None,
            Action::Attempt(worker, _, step) => {
                let attempt = world.workers[worker].take()?;
                world.workers[worker] = self.after_step(&mut world, attempt, step);
            }
            Action::Relay(relay, step) => {
                let next = self.after_relay_step(&mut world, relay, step);
                world.relays[relay] = next;
            }
        }
        world.workers.sort_unstable();
        world.relays.sort_unstable();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
