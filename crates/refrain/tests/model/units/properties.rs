//! What must be true of every reachable world, and what must be reachable at all.

use stateright::{Model as _, Property};

use super::attempt::Act;
use super::{Place, UNITS, Units, World};

pub(crate) const APPLIED_ONCE: &str = "each content of a unit is applied at most once";
pub(crate) const NEVER_OLDER: &str = "no row goes back to older content";
pub(crate) const FENCED: &str = "no attempt writes after a newer one has begun at the destination";
pub(crate) const OVER: &str = "nothing is written for a run that is over";
pub(crate) const TOGETHER: &str = "the ledger says what the rows say";
pub(crate) const SETTLED: &str = "every unit before the checkpoint is settled";
pub(crate) const NONE_PASSED: &str = "no unit becomes visible before the checkpoint";
pub(crate) const ONLY_ONWARD: &str = "the checkpoint never goes back";
pub(crate) const INTENT_KEPT: &str = "a unit that was applied has its intent, or the store does";
pub(crate) const RECORDED_ONCE: &str = "the store records each intent's key at most once";
pub(crate) const DONE_IS_SETTLED: &str = "a run ends with all its units settled";
pub(crate) const NOBODY_STUCK: &str = "whatever happened, the rest can be done";

pub(crate) fn all() -> Vec<Property<Units>> {
    [promises(), possibilities()].into_iter().flatten().collect()
}

fn promises() -> Vec<Property<Units>> {
    let always = Property::<Units>::always;
    vec![
        always(APPLIED_ONCE, |_, world| {
            world.destination.rows.iter().flat_map(|row| row.writes).all(|writes| writes <= 1)
        }),
        always(NEVER_OLDER, |_, world| !world.faults.older_content_over_newer),
        always(FENCED, |_, world| !world.faults.written_by_an_older_attempt),
        always(OVER, |_, world| !world.faults.written_after_the_end),
        always(TOGETHER, |_, world| {
            let both = world.destination.ledger.iter().zip(world.destination.rows);
            both.into_iter().all(|(entry, row)| entry.applied == row.content)
        }),
        always(SETTLED, |_, world| {
            let is_settled = |unit: usize| world.destination.ledger[unit].is_settled();
            (0..world.destination.checkpoint).all(|unit| world.source[unit] == 0 || is_settled(unit))
        }),
        always(NONE_PASSED, |_, world| world.destination.checkpoint <= world.horizon()),
        always(ONLY_ONWARD, |_, world| !world.faults.checkpoint_went_back),
        always(INTENT_KEPT, |_, world| {
            let is_applied = |unit: &usize| world.destination.rows[*unit].content > 0;
            (0..UNITS).filter(is_applied).all(|unit| is_intent_kept(world, unit))
        }),
        always(RECORDED_ONCE, |_, world| world.recorded.iter().all(|recorded| *recorded <= 1)),
        always(DONE_IS_SETTLED, |_, world| !world.faults.ended_with_units_unsettled),
        always(NOBODY_STUCK, |model, world| {
            let mut actions = Vec::new();
            model.actions(world, &mut actions);
            !actions.is_empty() || world.is_at_rest(model.bounds)
        }),
    ]
}

/// It is in the destination, or in the store, or with a living process that is about to write it.
fn is_intent_kept(world: &World, unit: usize) -> bool {
    let is_written = world.destination.intents[unit].contains(&true) || world.recorded[unit] > 0;
    let mut attempts = world.workers.iter().flatten();
    is_written
        || world.relays.iter().any(|relay| relay.carries(unit))
        || attempts.any(|attempt| attempt.act == Act::WriteIntent && attempt.next == unit)
}

fn possibilities() -> Vec<Property<Units>> {
    let sometimes = Property::<Units>::sometimes;
    vec![
        sometimes("everything is applied, newest content and all", |model, world| {
            let newest =
                world.destination.rows.iter().zip(world.source).all(|(row, source)| row.content == source);
            let is_over = world.is_at_rest(model.bounds) && world.destination.checkpoint == UNITS;
            newest && is_over && world.source[0] == model.bounds.contents
        }),
        sometimes("a run is taken over and ends", |_, world| {
            world.runs.iter().any(|run| run.place == Place::Done && run.number > 1)
        }),
        sometimes("an old attempt meets the fence and is refused", |_, world| {
            let mut attempts = world.workers.iter().flatten();
            attempts.any(|one| one.act == Act::Refused && one.number < world.destination.fences[one.run])
        }),
        sometimes("a reply is lost of a commit that landed", |model, world| {
            let mut doubts = world.workers.iter().flatten().filter(|one| one.act == Act::InDoubt);
            model.bounds.lost_replies == 0
                || doubts.any(|one| {
                    world.destination.in_flight[one.run].is_none()
                        && world.destination.ledger[one.next].applied == one.page[one.next]
                })
        }),
        sometimes("a unit that failed is applied from its kept input", |model, world| {
            model.bounds.failures == 0
                || (world.spent.failures > 0
                    && world.destination.ledger.iter().all(|entry| entry.applied > 0))
        }),
    ]
}
