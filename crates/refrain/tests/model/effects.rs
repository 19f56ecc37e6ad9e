//! An effect: reserved in the store, sent, and answered; by senders that die, lose answers, are taken over from and wake up again,
//! for one version of a fact or for two, beside an operator who has a doubt sent again.
//!
//! One fact, two senders. A reservation is one transaction: it decides by what is committed when it reads, and lands later. What
//! happened outside cannot be taken back.

use stateright::{Model, Property};

use crate::check::{self, protocol};

type Sender = usize;
type Version = usize;

const SENDERS: usize = 2;
const VERSIONS: usize = 2;

/// A guard that can be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// An effect is reserved before it is sent.
    Reserved,
    /// A reservation waits for every other one of the same fact.
    FactLock,
    /// An index allows one version of a fact to be reserved or in doubt.
    OneSender,
    /// A higher version waits for a lower one.
    HigherWaits,
    /// A lower version is not sent after a higher one.
    LowerYields,
    /// Nothing is sent when the lease is over.
    LastLook,
    /// An answer is recorded only by the holder of the reservation.
    HolderCompared,
    /// A late answer may only confirm.
    LateConfirmsOnly,
    /// A refusal after an earlier send without an answer leaves the doubt.
    DoubtStays,
    /// What a dead sender has reserved is in doubt, not free.
    TakenOverInDoubt,
}

/// How much may happen.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Which version each sender asks for.
    versions: [Version; SENDERS],
    /// How often the operator has a doubt sent again.
    decisions: u8,
    /// How often a sender asks after it has sent.
    requests: u8,
}

#[derive(Clone, Copy, Debug)]
struct Effects {
    bounds: Bounds,
    without: &'static [Guard],
}

/// A version of the fact, as it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Row {
    Absent,
    Pending,
    Reserved(Sender),
    Confirmed,
    Refused,
    InDoubt,
    Suppressed,
}

/// The answer that a sender got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Answer {
    Confirmed,
    Refused,
    Lost,
}

/// Where a sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Idle,
    /// Its reservation is decided, and has not landed.
    Landing,
    Holds,
    Sent(Answer),
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    rows: [Row; VERSIONS],
    /// Whether a send of the version has had no answer.
    unanswered: [bool; VERSIONS],
    at: [At; SENDERS],
    leases: [bool; SENDERS],
    taken_over: [bool; SENDERS],
    requests: [u8; SENDERS],
    /// How often the receiver did it.
    done: [u8; VERSIONS],
    decisions: [u8; VERSIONS],
    /// Whether it was confirmed at some time.
    was_confirmed: [bool; VERSIONS],
    lower_after_higher: bool,
    late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Request(Sender),
    Land(Sender),
    /// The receiver does it and answers, does it and the answer is lost, or refuses it.
    Send(Sender, Answer),
    Record(Sender),
    Die(Sender),
    Expire(Sender),
    TakeOver(Sender),
    Resend(Version),
}

impl Effects {
    fn has(&self, guard: Guard) -> bool {
        !self.without.contains(&guard)
    }

    fn version(&self, sender: Sender) -> Version {
        self.bounds.versions[sender]
    }

    /// Whether a sender may reserve its version, by what is committed.
    fn is_admitted(&self, world: &World, version: Version) -> bool {
        let is_higher = |other: &Version| *other > version && world.rows[*other] != Row::Absent;
        let is_open = |row: Row| matches!(row, Row::Reserved(_) | Row::InDoubt);
        let yields = self.has(Guard::LowerYields) && (0..VERSIONS).any(|other| is_higher(&other));
        let waits = self.has(Guard::HigherWaits) && (0..version).any(|lower| is_open(world.rows[lower]));
        let is_free = matches!(world.rows[version], Row::Absent | Row::Pending | Row::Refused);
        is_free && !yields && !waits
    }

    /// Whether the index refuses a reservation that lands now.
    fn is_refused(&self, world: &World, version: Version) -> bool {
        let is_open = |other: Version| matches!(world.rows[other], Row::Reserved(_) | Row::InDoubt);
        // The unique key of the version itself holds in any case.
        is_open(version) || self.has(Guard::OneSender) && (0..VERSIONS).any(is_open)
    }

    fn land(&self, world: &mut World, sender: Sender) {
        let version = self.version(sender);
        if !self.has(Guard::Reserved) {
            world.at[sender] = At::Holds;
            return;
        }
        if self.is_refused(world, version) || matches!(world.rows[version], Row::Confirmed | Row::Suppressed)
        {
            world.at[sender] = At::Idle;
            return;
        }
        for lower in world.rows.iter_mut().take(version) {
            if matches!(lower, Row::Pending | Row::Refused) {
                *lower = Row::Suppressed;
            }
        }
        world.rows[version] = Row::Reserved(sender);
        world.at[sender] = At::Holds;
    }

    fn send(&self, world: &mut World, sender: Sender, answer: Answer) {
        let version = self.version(sender);
        world.done[version] += u8::from(answer != Answer::Refused);
        world.lower_after_higher |= (version + 1..VERSIONS).any(|higher| world.done[higher] > 0);
        world.late |= world.taken_over[sender];
        world.at[sender] = At::Sent(answer);
    }

    fn record(&self, world: &mut World, sender: Sender, answer: Answer) {
        let version = self.version(sender);
        let is_own = match world.rows[version] {
            Row::Reserved(holder) => holder == sender || !self.has(Guard::HolderCompared),
            _ => !self.has(Guard::Reserved),
        };
        let stays = world.unanswered[version] && self.has(Guard::DoubtStays);
        let may_be_confirmed = matches!(world.rows[version], Row::Reserved(_) | Row::InDoubt | Row::Pending);
        world.rows[version] = match answer {
            Answer::Confirmed if is_own || may_be_confirmed => Row::Confirmed,
            Answer::Refused if is_own && stays => Row::InDoubt,
            Answer::Refused if is_own => Row::Refused,
            Answer::Refused if may_be_confirmed && !self.has(Guard::LateConfirmsOnly) => Row::Refused,
            Answer::Lost if is_own => Row::InDoubt,
            _ => world.rows[version],
        };
        world.unanswered[version] |= is_own && answer == Answer::Lost;
        world.at[sender] = if world.leases[sender] { At::Idle } else { At::Gone };
    }
}

impl Model for Effects {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            rows: [Row::Absent; VERSIONS],
            unanswered: [false; VERSIONS],
            at: [At::Idle; SENDERS],
            leases: [true; SENDERS],
            taken_over: [false; SENDERS],
            requests: [0; SENDERS],
            done: [0; VERSIONS],
            decisions: [0; VERSIONS],
            was_confirmed: [false; VERSIONS],
            lower_after_higher: false,
            late: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for sender in 0..SENDERS {
            let (at, lease) = (world.at[sender], world.leases[sender]);
            let mut may = |is_possible: bool, action: Action| actions.extend(is_possible.then_some(action));
            let is_locked = self.has(Guard::FactLock) && world.at.contains(&At::Landing);
            let asks = at == At::Idle && lease && world.requests[sender] <= self.bounds.requests;
            may(asks && !is_locked && self.is_admitted(world, self.version(sender)), Action::Request(sender));
            may(at == At::Landing, Action::Land(sender));
            for answer in [Answer::Confirmed, Answer::Refused, Answer::Lost] {
                let looks = lease || !self.has(Guard::LastLook);
                may(at == At::Holds && looks, Action::Send(sender, answer));
            }
            may(matches!(at, At::Sent(_)), Action::Record(sender));
            may(!matches!(at, At::Idle | At::Gone), Action::Die(sender));
            may(lease && at != At::Idle, Action::Expire(sender));
            may((!lease || at == At::Gone) && !world.taken_over[sender], Action::TakeOver(sender));
        }
        for version in 0..VERSIONS {
            let is_left = world.decisions[version] < self.bounds.decisions;
            let is_highest = (version + 1..VERSIONS).all(|higher| world.rows[higher] == Row::Absent);
            let resend = world.rows[version] == Row::InDoubt && is_left && is_highest;
            actions.extend(resend.then_some(Action::Resend(version)));
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Request(sender) => {
                world.requests[sender] += 1;
                world.at[sender] = At::Landing;
            }
            Action::Land(sender) => self.land(&mut world, sender),
            Action::Send(sender, answer) => self.send(&mut world, sender, answer),
            Action::Record(sender) => {
                let At::Sent(answer) = before.at[sender] else { return None };
                self.record(&mut world, sender, answer);
            }
            Action::Die(sender) => world.at[sender] = At::Gone,
            Action::Expire(sender) => world.leases[sender] = false,
            Action::TakeOver(sender) => {
                world.taken_over[sender] = true;
                for version in 0..VERSIONS {
                    if world.rows[version] == Row::Reserved(sender) {
                        let is_doubted = self.has(Guard::TakenOverInDoubt);
                        world.rows[version] = if is_doubted { Row::InDoubt } else { Row::Pending };
                        world.unanswered[version] |= is_doubted;
                    }
                }
            }
            Action::Resend(version) => {
                world.decisions[version] += 1;
                world.rows[version] = Row::Pending;
            }
        }
        for version in 0..VERSIONS {
            world.was_confirmed[version] |= world.rows[version] == Row::Confirmed;
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let (always, sometimes) = (Property::<Self>::always, Property::<Self>::sometimes);
        vec![
            always(ONCE, |_, world| {
                (0..VERSIONS).all(|version| world.done[version] <= 1 + world.decisions[version])
            }),
            always(REMEMBERED, |_, world| {
                (0..VERSIONS).all(|version| match world.rows[version] {
                    Row::Confirmed | Row::InDoubt | Row::Reserved(_) => true,
                    Row::Pending => world.done[version] == 0 || world.decisions[version] > 0,
                    Row::Absent | Row::Refused | Row::Suppressed => world.done[version] == 0,
                })
            }),
            always(IN_ORDER, |_, world| !world.lower_after_higher),
            always(NOT_LATE, |_, world| !world.late),
            always(STAYS, |_, world| {
                (0..VERSIONS)
                    .all(|version| !world.was_confirmed[version] || world.rows[version] == Row::Confirmed)
            }),
            sometimes("the other sender sends what was refused", |_, world| {
                world.rows.contains(&Row::Confirmed) && world.requests.iter().all(|requests| *requests > 0)
            }),
            sometimes("a late answer confirms", |_, world| {
                (0..SENDERS).any(|sender| world.taken_over[sender])
                    && world.rows.contains(&Row::Confirmed)
                    && world.decisions == [0; VERSIONS]
            }),
        ]
    }
}

const ONCE: &str = "the receiver does it once, and once more for each decision to send again";
const REMEMBERED: &str = "what was done is confirmed or in doubt";
const IN_ORDER: &str = "a lower version is not sent after a higher one";
const NOT_LATE: &str = "a sender that was taken over sends nothing";
const STAYS: &str = "what is confirmed stays confirmed";

/// Both senders ask for the same version.
const ONE_VERSION: Bounds = Bounds { versions: [0, 0], decisions: 1, requests: 2 };

/// Each asks for a version of its own.
const TWO_VERSIONS: Bounds = Bounds { versions: [0, 1], decisions: 0, requests: 2 };

#[test]
fn a_fact_is_told_once_or_is_in_doubt() {
    let wide = Bounds { decisions: 2, requests: 3, ..ONE_VERSION };
    check::holds(Effects { bounds: check::chosen(ONE_VERSION, wide), without: &[] }, "one version");
}

#[test]
fn two_versions_of_a_fact_are_told_in_order() {
    let wide = Bounds { requests: 3, decisions: 1, ..TWO_VERSIONS };
    check::holds(Effects { bounds: check::chosen(TWO_VERSIONS, wide), without: &[] }, "two versions");
}

protocol! { Effects:
    an_effect_that_is_not_reserved_is_sent_twice: [Reserved] in ONE_VERSION breaks ONCE;
    an_effect_that_is_not_reserved_is_forgotten: [Reserved] in ONE_VERSION breaks REMEMBERED;
    an_effect_of_a_dead_sender_that_counts_as_free_is_sent_twice: [TakenOverInDoubt] in ONE_VERSION breaks ONCE;
    without_a_last_look_a_sender_sends_after_it_was_taken_over: [LastLook] in ONE_VERSION breaks NOT_LATE;
    a_late_refusal_that_counts_erases_a_doubt: [LateConfirmsOnly] in ONE_VERSION breaks REMEMBERED;
    a_refusal_by_another_sender_erases_what_was_done: [HolderCompared, DoubtStays] in ONE_VERSION breaks REMEMBERED;
    covered_by_the_doubt_that_stays_a_refusal_by_another_sender: [HolderCompared] in ONE_VERSION holds;
    a_refusal_after_a_doubt_erases_it: [DoubtStays] in ONE_VERSION breaks REMEMBERED;
    without_the_lock_on_the_fact_a_lower_version_follows_a_higher_one: [FactLock] in TWO_VERSIONS breaks IN_ORDER;
    a_lower_version_that_does_not_yield_follows_a_higher_one: [LowerYields] in TWO_VERSIONS breaks IN_ORDER;
    a_higher_version_that_does_not_wait_is_overtaken: [HigherWaits, OneSender] in TWO_VERSIONS breaks IN_ORDER;
    covered_by_the_index_a_higher_version_that_does_not_wait: [HigherWaits] in TWO_VERSIONS holds;
    covered_by_the_lock_and_the_wait_an_index_that_is_missing: [OneSender] in TWO_VERSIONS holds;
}
