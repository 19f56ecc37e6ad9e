//! A relay carries intents from the destination to the store: a copy there, then a deletion here. No transaction
//! joins the two, it may be killed in between, and there may be several relays.

use super::destination::index;
use super::{CONTENTS, Content, Guard, UNITS, Units, World};

/// The intent of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Intent {
    unit: usize,
    content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Relay {
    Idle,
    /// The first of the two steps is done: normally the copy.
    Carries(Intent),
}

impl Relay {
    /// The possible steps of the relay in this world.
    pub(crate) fn steps(self, world: &World) -> Vec<Step> {
        if let Self::Carries(_) = self {
            return vec![Step::Leave, Step::Crash];
        }
        let intents =
            (0..UNITS).flat_map(|unit| (1..).take(CONTENTS).map(move |content| Intent { unit, content }));
        intents
            .filter(|one| world.destination.intents[one.unit][index(one.content)])
            .map(Step::Take)
            .collect()
    }

    pub(crate) fn carries(self, unit: usize) -> bool {
        matches!(self, Self::Carries(intent) if intent.unit == unit)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Take(Intent),
    Leave,
    Crash,
}

impl Units {
    pub(crate) fn after_relay_step(&self, world: &mut World, relay: usize, step: Step) -> Relay {
        match (step, world.relays[relay]) {
            (Step::Take(intent), _) => {
                self.carry(world, intent, self.has(Guard::CopiedBeforeDeleted));
                Relay::Carries(intent)
            }
            (Step::Leave, Relay::Carries(intent)) => {
                self.carry(world, intent, !self.has(Guard::CopiedBeforeDeleted));
                Relay::Idle
            }
            (Step::Leave | Step::Crash, _) => Relay::Idle,
        }
    }

    fn carry(&self, world: &mut World, intent: Intent, is_copy: bool) {
        let recorded = &mut world.recorded[intent.unit];
        if !is_copy {
            world.destination.intents[intent.unit][index(intent.content)] = false;
        } else if !self.has(Guard::RelayKey) || *recorded == 0 {
            *recorded = (*recorded + 1).min(2);
        }
    }
}
