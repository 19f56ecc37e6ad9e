//! How a run gets another attempt: one is open at a time, and each has a number of its own.
//!
//! The store alone: one run, its rows in the queue, workers that hold an attempt or believe so, and operators who
//! look at the run, think, and then request another attempt. A retry after an error waits as a delayed row, and the
//! run stays open.

use stateright::{Model, Property};

use crate::check::{self, protocol};

type Number = usize;

const WORKERS: usize = 2;
const PEOPLE: usize = 2;
/// Room for one row too many, which must never exist.
const PLACES: usize = 2;
/// No history within the bounds reaches a higher number.
const NUMBERS: usize = 16;

/// A guard that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// Another attempt is queued only if none is open.
    OpenCompared,
    /// Another attempt is queued only if the last one is still the one that was looked at.
    LastCompared,
    /// An attempt is ended under its lease and number.
    FenceOfFinish,
    /// A take-over gives a new number.
    NewNumberOfTakeOver,
    /// A clean stop of an attempt that had begun gives a new number.
    NewNumberOfStop,
}

/// The bounds of the search.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    asks: u8,
    crashes: u8,
    expiries: u8,
    errors: u8,
    stops: u8,
}

#[derive(Clone, Copy, Debug)]
struct Attempts {
    bounds: Bounds,
    without: &'static [Guard],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Standing {
    /// Waits until it may be tried again.
    Delayed,
    Queued,
    Leased,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    number: Number,
    standing: Standing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    open: bool,
    /// The number of the attempt that was queued last.
    number: Number,
    places: [Option<Place>; PLACES],
    /// The attempt of each worker.
    workers: [Option<Number>; WORKERS],
    /// The last attempt, as each operator who is about to request another has seen it.
    people: [Option<Number>; PEOPLE],
    /// How often each number began.
    begun: [u8; NUMBERS],
    /// How many attempts were requested after each number.
    asked: [u8; NUMBERS],
    spent: Spent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Spent {
    asks: u8,
    crashes: u8,
    expiries: u8,
    errors: u8,
    stops: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Claim(usize),
    TakeOver(usize),
    /// A delayed attempt becomes due.
    Due(usize),
    Succeed(usize),
    /// The attempt failed and is to be tried again.
    Err(usize),
    /// The worker is told to stop, and gives the run back.
    Stop(usize),
    Crash(usize),
    /// An operator sees that no attempt is open.
    Look(usize),
    /// An operator requests another attempt.
    Ask(usize),
}

impl Attempts {
    fn has(&self, guard: Guard) -> bool {
        !self.without.contains(&guard)
    }

    /// Ends the attempt of a worker: its row is kept for the next attempt, or removed. Refused without its lease.
    fn end(&self, world: &mut World, worker: usize, next: Option<(Standing, bool)>) {
        let Some(number) = world.workers[worker].take() else { return };
        let is_its_own = |place: &Place| place.number == number && place.standing == Standing::Leased;
        let mut places = world.places.iter_mut().filter(|place| place.is_some());
        let is_asked = self.has(Guard::FenceOfFinish);
        let place = places.find(|place| !is_asked || place.as_ref().is_some_and(is_its_own));
        let Some(place) = place else { return };
        *place = next.map(|(standing, is_new)| Place { number: number + usize::from(is_new), standing });
        match place {
            Some(place) => world.number = place.number,
            None => world.open = false,
        }
    }

    fn ask(&self, world: &mut World, person: usize) {
        let Some(last) = world.people[person].take() else { return };
        let is_refused = (self.has(Guard::OpenCompared) && world.open)
            || (self.has(Guard::LastCompared) && world.number != last);
        let free = world.places.iter_mut().find(|place| place.is_none());
        if let (false, Some(free)) = (is_refused, free) {
            world.open = true;
            world.number += 1;
            world.asked[last] += 1;
            *free = Some(Place { number: world.number, standing: Standing::Queued });
        }
    }
}

impl Model for Attempts {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            open: true,
            number: 1,
            places: [None, Some(Place { number: 1, standing: Standing::Queued })],
            workers: [None; WORKERS],
            people: [None; PEOPLE],
            begun: [0; NUMBERS],
            asked: [0; NUMBERS],
            spent: Spent::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let (spent, bounds) = (world.spent, self.bounds);
        for (at, place) in world.places.iter().enumerate() {
            let Some(place) = place else { continue };
            let is_held = world.workers.contains(&Some(place.number));
            match place.standing {
                Standing::Delayed => actions.push(Action::Due(at)),
                Standing::Queued if world.workers.contains(&None) => actions.push(Action::Claim(at)),
                Standing::Leased if !is_held || spent.expiries < bounds.expiries => {
                    actions.push(Action::TakeOver(at));
                }
                Standing::Queued | Standing::Leased => {}
            }
        }
        for worker in (0..WORKERS).filter(|worker| world.workers[*worker].is_some()) {
            actions.push(Action::Succeed(worker));
            actions.extend((spent.errors < bounds.errors).then_some(Action::Err(worker)));
            actions.extend((spent.stops < bounds.stops).then_some(Action::Stop(worker)));
            actions.extend((spent.crashes < bounds.crashes).then_some(Action::Crash(worker)));
        }
        for (person, seen) in world.people.iter().enumerate() {
            match seen {
                Some(_) => actions.push(Action::Ask(person)),
                None if !world.open && spent.asks < bounds.asks => actions.push(Action::Look(person)),
                None => {}
            }
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Claim(at) => {
                let place = world.places[at].as_mut()?;
                place.standing = Standing::Leased;
                world.begun[place.number] += 1;
                *world.workers.iter_mut().find(|worker| worker.is_none())? = Some(place.number);
            }
            Action::TakeOver(at) => {
                let place = world.places[at].as_mut()?;
                world.spent.expiries += u8::from(world.workers.contains(&Some(place.number)));
                place.number += usize::from(self.has(Guard::NewNumberOfTakeOver));
                place.standing = Standing::Queued;
                world.number = place.number;
            }
            Action::Due(at) => world.places[at].as_mut()?.standing = Standing::Queued,
            Action::Succeed(worker) => self.end(&mut world, worker, None),
            Action::Err(worker) => {
                world.spent.errors += 1;
                self.end(&mut world, worker, Some((Standing::Delayed, true)));
            }
            Action::Stop(worker) => {
                world.spent.stops += 1;
                let is_new = self.has(Guard::NewNumberOfStop);
                self.end(&mut world, worker, Some((Standing::Queued, is_new)));
            }
            Action::Crash(worker) => {
                world.spent.crashes += 1;
                world.workers[worker] = None;
            }
            Action::Look(person) => {
                world.spent.asks += 1;
                world.people[person] = Some(world.number);
            }
            Action::Ask(person) => self.ask(&mut world, person),
        }
        world.workers.sort_unstable();
        world.people.sort_unstable();
        world.places.sort_unstable();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let (always, sometimes) = (Property::<Self>::always, Property::<Self>::sometimes);
        vec![
            always(ONE_PLACE, |_, world| world.places.iter().flatten().count() == usize::from(world.open)),
            always(NUMBER_ONCE, |_, world| world.begun.iter().all(|begun| *begun <= 1)),
            always(ASKED_ONCE, |_, world| world.asked.iter().all(|asked| *asked <= 1)),
            always(NOBODY_STUCK, |model, world| {
                let mut actions = Vec::new();
                model.actions(world, &mut actions);
                !actions.is_empty() || !world.open
            }),
            sometimes("two people ask after the same attempt", |_, world| {
                world.people[0].is_some() && world.people[0] == world.people[1]
            }),
            sometimes("a caller asks while a retry waits", |_, world| {
                let mut places = world.places.iter().flatten();
                world.people[1].is_some() && places.any(|place| place.standing == Standing::Delayed)
            }),
        ]
    }
}

const ONE_PLACE: &str = "a run that is open has one place, one that is not has none";
const NUMBER_ONCE: &str = "each number begins once";
const ASKED_ONCE: &str = "those who saw the same attempt end get one more, together";
const NOBODY_STUCK: &str = "whatever happened, the run comes to an end";

const BOUNDS: Bounds = Bounds { asks: 2, crashes: 1, expiries: 1, errors: 1, stops: 1 };

#[test]
fn one_attempt_is_open_at_a_time() {
    let bounds = check::chosen(BOUNDS, Bounds { asks: 4, crashes: 2, expiries: 2, errors: 2, stops: 1 });
    check::holds(Attempts { bounds, without: &[] }, "attempts");
}

protocol! { Attempts:
    a_requeue_without_compare_and_set_makes_two_attempts: [OpenCompared, LastCompared] in BOUNDS breaks ONE_PLACE;
    asking_late_makes_one_attempt_more: [LastCompared] in BOUNDS breaks ASKED_ONCE;
    ending_without_lease_and_number_ends_what_is_not_its_own: [FenceOfFinish] in BOUNDS breaks NUMBER_ONCE;
    a_take_over_under_the_same_number_begins_it_twice: [NewNumberOfTakeOver] in BOUNDS breaks NUMBER_ONCE;
    a_clean_stop_under_the_same_number_begins_it_twice: [NewNumberOfStop] in BOUNDS breaks NUMBER_ONCE;
    covered_by_the_number_a_requeue_that_does_not_look_whether_one_is_open: [OpenCompared] in BOUNDS holds;
}
