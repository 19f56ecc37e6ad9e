//! A call to another machine is reserved in the destination, sent, and recorded, by attempts that die, lose answers,
//! are taken over from and wake up again; an operator decides about what is in doubt.
//!
//! One unit of one run, and two attempts of it. A reservation is one transaction on the server, which locks the
//! unit's row from its first statement until it has committed or vanished; what its attempt believes is separate from
//! that. A sent request cannot be taken back.

use stateright::{Model, Property};

use crate::check::{self, protocol};

type Attempt = usize;

const ATTEMPTS: usize = 2;

/// A guard that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// A call is reserved before it is sent.
    Reserved,
    /// An attempt that looks for its reservation after a lost answer waits for that transaction.
    LookWaits,
    /// A reservation belongs to an attempt only if this very attempt made it.
    OwnerCompared,
    /// Nothing is sent when the lease has expired.
    LastLook,
    /// Every write compares the fence.
    Fenced,
    /// "Nothing was sent" removes only one's own reservation.
    UnsendCompared,
}

/// The bounds of the search.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    cuts: u8,
    decisions: u8,
}

#[derive(Clone, Copy, Debug)]
struct Calls {
    bounds: Bounds,
    without: &'static [Guard],
}

/// The unit's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Row {
    /// Absent, or to be tried again.
    Free,
    /// In doubt, from the moment it is reserved.
    Reserved(Attempt),
    Applied,
}

/// The belief of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Belief {
    /// It has not begun.
    Queued,
    /// Its fence is raised.
    Begun,
    /// It waits for the answer to its COMMIT.
    Committing,
    /// The answer is lost.
    Lost,
    /// The reservation is its own.
    Holds,
    /// Its request was sent.
    Sent,
    /// Another attempt has the unit.
    Passed,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    row: Row,
    fence: usize,
    beliefs: [Belief; ATTEMPTS],
    leases: [bool; ATTEMPTS],
    /// The attempt that the store has queued.
    current: Attempt,
    /// The attempt whose reservation is in flight on the server.
    under_way: Option<Attempt>,
    /// Requests that the other machine received, and how many of them came after a take-over.
    requests: u8,
    late: u8,
    /// Requests under a reservation about which nothing was decided since.
    undecided: u8,
    /// How often the operator had it sent again.
    decisions: u8,
    cuts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Raise(Attempt),
    Reserve(Attempt),
    /// The server has committed the reservation, or lost it.
    Land,
    Abort,
    Answer(Attempt),
    Cut(Attempt),
    Look(Attempt),
    Send(Attempt),
    /// Records that nothing was sent.
    Unsend(Attempt),
    /// The other machine confirms the call, and that is recorded.
    Record(Attempt),
    Die(Attempt),
    Expire(Attempt),
    TakeOver,
    /// The operator has it sent again.
    Retry,
}

impl Calls {
    fn has(&self, guard: Guard) -> bool {
        !self.without.contains(&guard)
    }

    fn is_fenced_off(&self, world: &World, attempt: Attempt) -> bool {
        self.has(Guard::Fenced) && world.fence != attempt + 1
    }

    fn is_own(&self, row: Row, attempt: Attempt) -> bool {
        match row {
            Row::Reserved(owner) => owner == attempt || !self.has(Guard::OwnerCompared),
            Row::Free | Row::Applied => false,
        }
    }

    /// What an attempt concludes after the answer to its reservation was lost.
    fn seen(&self, world: &World, attempt: Attempt) -> Belief {
        match world.row {
            row if self.is_own(row, attempt) => Belief::Holds,
            // It sees nothing, then its insert waits and finds the row: it takes the row for another attempt's.
            _ if world.under_way == Some(attempt) => Belief::Passed,
            Row::Free => Belief::Begun,
            Row::Reserved(_) | Row::Applied => Belief::Passed,
        }
    }

    fn of_attempt(&self, world: &World, attempt: Attempt, actions: &mut Vec<Action>) {
        let (belief, lease) = (world.beliefs[attempt], world.leases[attempt]);
        let mut may = |is_possible: bool, action: Action| actions.extend(is_possible.then_some(action));
        let is_unlocked = world.under_way.is_none();
        // The reserving transaction also holds the fence.
        may(
            belief == Belief::Queued && world.current == attempt && (is_unlocked || !self.has(Guard::Fenced)),
            Action::Raise(attempt),
        );
        may(belief == Belief::Begun && is_unlocked, Action::Reserve(attempt));
        may(belief == Belief::Committing && world.under_way != Some(attempt), Action::Answer(attempt));
        may(belief == Belief::Committing && world.cuts < self.bounds.cuts, Action::Cut(attempt));
        may(belief == Belief::Lost && (is_unlocked || !self.has(Guard::LookWaits)), Action::Look(attempt));
        may(belief == Belief::Holds && (lease || !self.has(Guard::LastLook)), Action::Send(attempt));
        may(belief == Belief::Holds && !lease && is_unlocked, Action::Unsend(attempt));
        may(belief == Belief::Sent && is_unlocked, Action::Record(attempt));
        may(!matches!(belief, Belief::Queued | Belief::Gone), Action::Die(attempt));
        may(lease && belief != Belief::Queued, Action::Expire(attempt));
    }
}

impl World {
    fn settle(&mut self, attempt: Attempt, belief: Belief) {
        self.beliefs[attempt] = belief;
    }
}

impl Model for Calls {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            row: Row::Free,
            fence: 0,
            beliefs: [Belief::Queued; ATTEMPTS],
            leases: [true; ATTEMPTS],
            current: 0,
            under_way: None,
            requests: 0,
            late: 0,
            undecided: 0,
            decisions: 0,
            cuts: 0,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if let Some(attempt) = world.under_way {
            actions.push(Action::Land);
            actions.extend((world.beliefs[attempt] != Belief::Committing).then_some(Action::Abort));
        }
        for attempt in 0..ATTEMPTS {
            self.of_attempt(world, attempt, actions);
        }
        let is_over = !world.leases[world.current] && world.current + 1 < ATTEMPTS;
        actions.extend(is_over.then_some(Action::TakeOver));
        let is_in_doubt = matches!(world.row, Row::Reserved(_)) && world.under_way.is_none();
        let may_decide = is_in_doubt && world.decisions < self.bounds.decisions;
        actions.extend(may_decide.then_some(Action::Retry));
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Raise(attempt) => {
                world.fence = world.fence.max(attempt + 1);
                world.settle(attempt, Belief::Begun);
            }
            Action::Reserve(attempt) if self.is_fenced_off(before, attempt) => {
                world.settle(attempt, Belief::Passed);
            }
            Action::Reserve(attempt) => match world.row {
                row if self.is_own(row, attempt) => world.settle(attempt, Belief::Holds),
                Row::Free if !self.has(Guard::Reserved) => world.settle(attempt, Belief::Holds),
                Row::Free => {
                    world.under_way = Some(attempt);
                    world.settle(attempt, Belief::Committing);
                }
                Row::Reserved(_) | Row::Applied => world.settle(attempt, Belief::Passed),
            },
            Action::Land => world.row = Row::Reserved(world.under_way.take()?),
            Action::Abort => world.under_way = None,
            Action::Answer(attempt) => world.settle(attempt, Belief::Holds),
            Action::Cut(attempt) => {
                world.cuts += 1;
                world.settle(attempt, Belief::Lost);
            }
            Action::Look(attempt) => world.settle(attempt, self.seen(before, attempt)),
            Action::Send(attempt) => {
                world.requests += 1;
                let is_decided = world.row == Row::Free && world.decisions > 0;
                world.undecided += u8::from(!is_decided);
                world.late += u8::from(world.current > attempt);
                world.settle(attempt, Belief::Sent);
            }
            Action::Unsend(attempt) => {
                let is_meant = match world.row {
                    Row::Reserved(owner) => owner == attempt || !self.has(Guard::UnsendCompared),
                    Row::Free | Row::Applied => false,
                };
                if is_meant && !self.is_fenced_off(before, attempt) {
                    world.row = Row::Free;
                }
                world.settle(attempt, Belief::Gone);
            }
            Action::Record(attempt) => {
                let is_late = self.is_fenced_off(before, attempt);
                if !is_late || world.row == Row::Reserved(attempt) {
                    world.row = Row::Applied;
                }
                world.settle(attempt, Belief::Gone);
            }
            Action::Die(attempt) => world.settle(attempt, Belief::Gone),
            Action::Expire(attempt) => world.leases[attempt] = false,
            Action::TakeOver => world.current += 1,
            Action::Retry => {
                world.decisions += 1;
                world.undecided = 0;
                world.row = Row::Free;
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let (always, sometimes) = (Property::<Self>::always, Property::<Self>::sometimes);
        vec![
            always(ONCE, |_, world| world.requests <= 1 + world.decisions),
            always(REMEMBERED, |_, world| world.undecided == 0 || world.row != Row::Free),
            always(NOT_LATE, |_, world| world.late == 0),
            always(KNOWN, |_, world| {
                let is_passed = |attempt: Attempt| world.beliefs[attempt] == Belief::Passed;
                !matches!(world.row, Row::Reserved(attempt) if is_passed(attempt))
            }),
            sometimes("it is done by the second attempt", |_, world| {
                world.row == Row::Applied && world.current == 1 && world.requests == 1
            }),
            sometimes("it stays in doubt", |_, world| {
                matches!(world.row, Row::Reserved(_)) && world.requests == 1 && world.current == 1
            }),
        ]
    }
}

const ONCE: &str = "it is sent once, and once more for each decision to send again";
const REMEMBERED: &str = "what was sent is done or in doubt";
const NOT_LATE: &str = "an attempt that was taken over sends nothing";
const KNOWN: &str = "an attempt knows what it has reserved itself";

const BOUNDS: Bounds = Bounds { cuts: 2, decisions: 1 };

#[test]
fn a_call_is_made_once_or_is_in_doubt() {
    let bounds = check::chosen(BOUNDS, Bounds { cuts: 4, decisions: 3 });
    check::holds(Calls { bounds, without: &[] }, "calls");
}

protocol! { Calls:
    a_call_that_is_not_reserved_is_forgotten: [Reserved] in BOUNDS breaks REMEMBERED;
    a_call_that_is_not_reserved_is_made_twice: [Reserved] in BOUNDS breaks ONCE;
    a_reservation_that_is_taken_for_ones_own_is_sent_twice: [OwnerCompared] in BOUNDS breaks ONCE;
    a_look_that_does_not_wait_leaves_a_doubt_about_nothing: [LookWaits] in BOUNDS breaks KNOWN;
    without_a_last_look_an_attempt_sends_after_it_was_taken_over: [LastLook] in BOUNDS breaks NOT_LATE;
    without_its_owner_and_fence_a_reservation_is_taken_back_after_it_was_sent: [UnsendCompared, Fenced] in BOUNDS breaks REMEMBERED;
    covered_by_the_fence_whose_reservation_is_taken_back: [UnsendCompared] in BOUNDS holds;
    without_the_fence_what_was_sent_is_forgotten: [Fenced] in BOUNDS breaks REMEMBERED;
}
