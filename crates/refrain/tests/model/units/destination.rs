//! The database that holds the rows: fences, ledger, rows, intents and the checkpoint. Each function is what one transaction
//! does between its locks and its commit.

use super::attempt::Attempt;
use super::{CONTENTS, Content, Guard, Number, Position, RUNS_MAX, UNITS, Units, World};

/// The ledger's row of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    /// The content that was applied last.
    pub(crate) applied: Content,
    /// The content that failed, stored to be tried again.
    pub(crate) failed: Content,
}

impl Entry {
    /// Applied, or failed with its input stored.
    pub(crate) fn is_settled(self) -> bool {
        self.applied > 0 || self.failed > 0
    }
}

/// The user's row of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) content: Content,
    /// How often each content was written.
    pub(crate) writes: [u8; CONTENTS],
}

/// One unit, about to be applied under an attempt's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Write {
    pub(crate) number: Number,
    pub(crate) unit: usize,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Destination {
    pub(crate) fences: [Number; RUNS_MAX],
    /// The highest number that has begun here, whatever the fence says.
    pub(crate) begun: [Number; RUNS_MAX],
    pub(crate) ledger: [Entry; UNITS],
    pub(crate) rows: [Row; UNITS],
    /// One intent for each write; all intents of a unit have the same key.
    pub(crate) intents: [[bool; CONTENTS]; UNITS],
    pub(crate) checkpoint: Position,
    /// A transaction whose commit is in flight, without a client for its reply. It holds its locks.
    pub(crate) in_flight: [Option<Write>; RUNS_MAX],
}

impl Destination {
    /// The unique index makes a second writer of a key wait for the transaction that has it.
    pub(crate) fn is_key_locked(&self, unit: usize) -> bool {
        self.in_flight.iter().flatten().any(|write| write.unit == unit)
    }
}

/// The index of a content in the list of intents and writes.
pub(crate) fn index(content: Content) -> usize {
    usize::from(content) - 1
}

impl Units {
    /// Transactions share the fence with each other, but not with a transaction that raises it.
    pub(crate) fn is_fence_held(&self, world: &World, run: usize) -> bool {
        self.has(Guard::FenceHeld) && world.destination.in_flight[run].is_some()
    }

    /// Raises the fence, or is refused.
    pub(crate) fn raise(&self, world: &mut World, attempt: &Attempt) -> bool {
        let (run, number) = (attempt.run, attempt.number);
        let is_raised = self.has(Guard::FenceRaised);
        if world.destination.fences[run] > number {
            return false;
        }
        world.destination.begun[run] = world.destination.begun[run].max(number);
        world.destination.fences[run] = if is_raised { number } else { 0 };
        true
    }

    /// Whether the fence lets this attempt pass. A fence that is never raised lets every attempt pass.
    pub(crate) fn passes(&self, world: &World, attempt: &Attempt, guard: Guard) -> bool {
        let fence = world.destination.fences[attempt.run];
        !self.has(guard) || !self.has(Guard::FenceRaised) || fence == attempt.number
    }

    /// Whether nothing is left to do: this content is applied, or newer content is recorded.
    pub(crate) fn is_deduplicated(&self, entry: Entry, content: Content) -> bool {
        let is_same = self.has(Guard::LedgerKey) && entry.applied == content;
        is_same || (self.has(Guard::Order) && content < entry.applied.max(entry.failed))
    }

    /// Writes ledger, rows and intents of one unit. What is not in the same commit is left to the attempt.
    pub(crate) fn apply(&self, world: &mut World, run: usize, write: Write) {
        world.destination.ledger[write.unit] = Entry { applied: write.content, failed: 0 };
        notice(world, run, write.number);
        if self.has(Guard::LedgerWithRows) {
            self.write_rows(world, write);
        }
    }

    pub(crate) fn write_rows(&self, world: &mut World, write: Write) {
        let row = &mut world.destination.rows[write.unit];
        world.faults.older_content_over_newer |= write.content < row.content;
        row.content = write.content;
        row.writes[index(write.content)] = (row.writes[index(write.content)] + 1).min(2);
        if self.has(Guard::IntentWithRows) {
            world.destination.intents[write.unit][index(write.content)] = true;
        }
    }

    /// The handler refused the unit: its input is stored, unless the same or newer content was applied meanwhile.
    pub(crate) fn fail(&self, world: &mut World, run: usize, write: Write) {
        let entry = &mut world.destination.ledger[write.unit];
        if self.has(Guard::AppliedStands) && self.is_deduplicated(*entry, write.content) {
            return;
        }
        if !self.has(Guard::AppliedRemembered) || entry.applied == write.content {
            entry.applied = 0;
        }
        entry.failed = write.content;
        notice(world, run, write.number);
    }

    /// Advances the checkpoint, or leaves it where it is.
    pub(crate) fn advance(&self, world: &mut World, attempt: &Attempt) {
        let destination = &mut world.destination;
        let is_settled = |unit: usize| {
            let (entry, content) = (destination.ledger[unit], attempt.page[unit]);
            content == 0 || self.is_deduplicated(entry, content) || entry.failed == content
        };
        let is_proven = !self.has(Guard::SettledProven) || (attempt.from..attempt.to).all(is_settled);
        let is_compared = !self.has(Guard::CheckpointCompared) || destination.checkpoint == attempt.from;
        if is_compared && is_proven {
            world.faults.checkpoint_went_back |= attempt.to < destination.checkpoint;
            destination.checkpoint = attempt.to;
            notice(world, attempt.run, attempt.number);
        }
    }
}

/// Records who has written.
fn notice(world: &mut World, run: usize, number: Number) {
    world.faults.written_by_an_older_attempt |= world.destination.begun[run] > number;
    world.faults.written_after_the_end |= world.runs[run].place.is_over();
}
