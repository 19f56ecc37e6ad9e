//! A claim whose COMMIT is in flight when its reply is lost: it may take effect at any later step, or never.
//!
//! One run, and two workers that claim it, lose their answers, look, leave, die and are taken over from. A claim is
//! one transaction on the server, which locks the run's row and its worker's row from its first statement until it
//! has committed or vanished. What its worker believes is separate from that.

use stateright::{Model, Property};

use crate::check::{self, protocol};

type Worker = usize;

const WORKERS: usize = 2;

/// A guard that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// A worker that looks for its claim after a lost answer waits for that transaction.
    LookWaits,
    /// A worker that leaves waits for it, too.
    LeaveWaits,
    /// A rescuer skips a worker that has a claim in flight, because the claim locks its row.
    ClaimHoldsWorker,
    /// A worker compares the runs that the store says it holds with those it knows.
    Reconciled,
    /// A lease whose worker does not exist is taken over.
    OwnerlessTakenOver,
}

/// The bounds of the search.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    cuts: u8,
    deaths: u8,
    expiries: u8,
}

#[derive(Clone, Copy, Debug)]
struct Claims {
    bounds: Bounds,
    without: &'static [Guard],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Run {
    Queued,
    Leased(Worker),
    Done,
}

/// A worker's row in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Row {
    Alive,
    Expired,
    Absent,
}

/// The belief of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Belief {
    /// It holds nothing.
    Nothing,
    /// It waits for the answer to its COMMIT.
    Sent,
    /// The answer is lost.
    Lost,
    /// It holds the run.
    Holds,
    /// Its process has ended.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    run: Run,
    rows: [Row; WORKERS],
    beliefs: [Belief; WORKERS],
    /// The worker whose claim is in flight on the server.
    under_way: Option<Worker>,
    /// How often the present number of the run was begun.
    begun: u8,
    /// Whether a claim was committed after its answer was lost.
    landed_late: bool,
    spent: Spent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Spent {
    cuts: u8,
    deaths: u8,
    expiries: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// All steps of a claim up to its COMMIT.
    Claim(Worker),
    /// The server has committed.
    Land,
    /// The server has lost the transaction, and so has the client.
    Abort,
    Answer(Worker),
    Cut(Worker),
    Look(Worker),
    Leave(Worker),
    Die(Worker),
    Expire(Worker),
    TakeOver(Worker),
    /// Takes over a lease without a worker.
    Heal(Worker),
    Reconcile(Worker),
    Finish(Worker),
}

impl Claims {
    fn has(&self, guard: Guard) -> bool {
        !self.without.contains(&guard)
    }

    /// Whether a statement that locks the row of a worker, and has this guard, can proceed.
    fn passes(&self, guard: Guard, world: &World, worker: Worker) -> bool {
        let is_locked = world.under_way == Some(worker) && self.has(Guard::ClaimHoldsWorker);
        !is_locked || !self.has(guard)
    }

    fn of_worker(&self, world: &World, worker: Worker, actions: &mut Vec<Action>) {
        let (belief, row) = (world.beliefs[worker], world.rows[worker]);
        let is_held = world.run == Run::Leased(worker);
        let mut may = |is_possible: bool, action: Action| actions.extend(is_possible.then_some(action));
        let is_free = world.run == Run::Queued && world.under_way.is_none();
        may(belief == Belief::Nothing && row == Row::Alive && is_free, Action::Claim(worker));
        may(belief == Belief::Sent && world.under_way != Some(worker), Action::Answer(worker));
        may(belief == Belief::Sent && world.spent.cuts < self.bounds.cuts, Action::Cut(worker));
        may(belief == Belief::Lost && self.passes(Guard::LookWaits, world, worker), Action::Look(worker));
        let leaves =
            matches!(belief, Belief::Nothing | Belief::Lost) && world.spent.deaths < self.bounds.deaths;
        may(leaves && self.passes(Guard::LeaveWaits, world, worker), Action::Leave(worker));
        may(belief != Belief::Gone && world.spent.deaths < self.bounds.deaths, Action::Die(worker));
        let expires = belief == Belief::Gone || world.spent.expiries < self.bounds.expiries;
        may(row == Row::Alive && expires, Action::Expire(worker));
        let is_passed_over = !self.passes(Guard::ClaimHoldsWorker, world, worker);
        may(row == Row::Expired && !is_passed_over, Action::TakeOver(worker));
        let is_ownerless = is_held && row == Row::Absent && self.has(Guard::OwnerlessTakenOver);
        may(is_ownerless, Action::Heal(worker));
        let is_unknown = is_held && belief == Belief::Nothing && row == Row::Alive;
        may(is_unknown && self.has(Guard::Reconciled), Action::Reconcile(worker));
        may(belief == Belief::Holds, Action::Finish(worker));
    }
}

impl World {
    /// The run goes back, under a new number.
    fn requeue(&mut self) {
        self.run = Run::Queued;
        self.begun = 0;
    }

    /// A worker checks whether its lease exists.
    fn see(&mut self, worker: Worker) {
        self.beliefs[worker] = if self.run == Run::Leased(worker) { Belief::Holds } else { Belief::Nothing };
        self.begun += u8::from(self.run == Run::Leased(worker));
    }

    /// Whether the holder of the run will end it or be taken over.
    fn is_cared_for(&self, model: &Claims) -> bool {
        let Run::Leased(worker) = self.run else { return true };
        match (self.beliefs[worker], self.rows[worker]) {
            (Belief::Holds | Belief::Sent | Belief::Lost, _)
            | (_, Row::Expired)
            | (Belief::Gone, Row::Alive) => true,
            (Belief::Nothing, Row::Alive) => model.has(Guard::Reconciled),
            (Belief::Nothing | Belief::Gone, Row::Absent) => model.has(Guard::OwnerlessTakenOver),
        }
    }
}

impl Model for Claims {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            run: Run::Queued,
            rows: [Row::Alive; WORKERS],
            beliefs: [Belief::Nothing; WORKERS],
            under_way: None,
            begun: 0,
            landed_late: false,
            spent: Spent::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if let Some(worker) = world.under_way {
            actions.push(Action::Land);
            actions.extend((world.beliefs[worker] != Belief::Sent).then_some(Action::Abort));
        }
        for worker in 0..WORKERS {
            self.of_worker(world, worker, actions);
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Claim(worker) => {
                world.under_way = Some(worker);
                world.beliefs[worker] = Belief::Sent;
            }
            Action::Land => {
                let worker = world.under_way.take()?;
                world.landed_late |= world.beliefs[worker] != Belief::Sent;
                world.run = Run::Leased(worker);
            }
            Action::Abort => world.under_way = None,
            Action::Answer(worker) | Action::Look(worker) => world.see(worker),
            Action::Cut(worker) => {
                world.spent.cuts += 1;
                world.beliefs[worker] = Belief::Lost;
            }
            Action::Leave(worker) => {
                world.spent.deaths += 1;
                world.beliefs[worker] = Belief::Gone;
                let is_held = world.run == Run::Leased(worker);
                if world.rows[worker] != Row::Absent {
                    world.rows[worker] = if is_held { Row::Expired } else { Row::Absent };
                }
            }
            Action::Die(worker) => {
                world.spent.deaths += 1;
                world.beliefs[worker] = Belief::Gone;
            }
            Action::Expire(worker) => {
                world.spent.expiries += u8::from(world.beliefs[worker] != Belief::Gone);
                world.rows[worker] = Row::Expired;
            }
            Action::TakeOver(worker) => {
                if world.run == Run::Leased(worker) {
                    world.requeue();
                }
                world.rows[worker] = Row::Absent;
            }
            Action::Heal(_) | Action::Reconcile(_) => world.requeue(),
            Action::Finish(worker) => {
                world.beliefs[worker] = Belief::Nothing;
                if world.run == Run::Leased(worker) {
                    world.run = Run::Done;
                }
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let (always, sometimes) = (Property::<Self>::always, Property::<Self>::sometimes);
        vec![
            always(KNOWN, |_, world| {
                let Run::Leased(worker) = world.run else { return true };
                !(world.beliefs[worker] == Belief::Nothing && world.rows[worker] == Row::Alive)
            }),
            always(OWNED, |_, world| {
                let Run::Leased(worker) = world.run else { return true };
                world.rows[worker] != Row::Absent
            }),
            always(CARED_FOR, |model, world| world.is_cared_for(model)),
            always(BEGUN_ONCE, |_, world| world.begun <= 1),
            sometimes("a claim lands after its answer was lost", |_, world| world.landed_late),
            sometimes("and the run is done all the same", |_, world| {
                world.landed_late && world.run == Run::Done
            }),
        ]
    }
}

const KNOWN: &str = "a run that a live worker holds is one that it knows";
const OWNED: &str = "a lease belongs to a worker that exists";
const CARED_FOR: &str = "the holder of a run ends it, or the run is taken over";
const BEGUN_ONCE: &str = "each number begins once";

const BOUNDS: Bounds = Bounds { cuts: 2, deaths: 1, expiries: 1 };

#[test]
fn a_claim_that_lands_late_is_known_and_has_an_owner() {
    let bounds = check::chosen(BOUNDS, Bounds { cuts: 4, deaths: 2, expiries: 2 });
    check::holds(Claims { bounds, without: &[] }, "claims");
}

protocol! { Claims:
    a_look_that_does_not_wait_forgets_a_claim: [LookWaits] in BOUNDS breaks KNOWN;
    a_leave_that_does_not_wait_leaves_a_lease_without_an_owner: [LeaveWaits] in BOUNDS breaks OWNED;
    a_claim_that_does_not_hold_its_worker_is_not_seen_by_a_rescuer: [ClaimHoldsWorker] in BOUNDS breaks OWNED;
    a_claim_that_is_forgotten_and_never_looked_for_stays: [LookWaits, Reconciled] in BOUNDS breaks CARED_FOR;
    a_lease_without_an_owner_stays_if_no_worker_takes_it_over: [LeaveWaits, OwnerlessTakenOver] in BOUNDS breaks CARED_FOR;
    covered_by_locks_a_look_at_what_is_held: [Reconciled] in BOUNDS holds;
    covered_by_locks_leases_without_an_owner: [OwnerlessTakenOver] in BOUNDS holds;
}
