//! The order in which a worker claims from lines, and how much room each line gets.

use std::sync::Arc;

use crate::job::{Definition, Jobs};
use crate::store::queue_line::{Line, Priority};

/// Every so many turns suspects come first: an endless supply of live runs must not keep them waiting for ever.
const SUSPECTS_FIRST: usize = 8;

/// The lines of jobs that this process has, in their order; those of one priority take turns, and share the room.
pub(super) fn in_turn(
    lines: Vec<Line>,
    jobs: &Jobs,
    turn: usize,
    slots: usize,
) -> Vec<(Line, Arc<Definition>, usize)> {
    let known = lines.into_iter().filter_map(|line| {
        let definition = jobs.get(line.job().ok()?)?;
        Some((line.priority().ok()?, line, definition))
    });
    let mut known: Vec<(Priority, Line, Arc<Definition>)> = known.collect();
    let mut shared = Vec::with_capacity(known.len());
    for same in known.chunk_by_mut(|one, next| one.0 == next.0) {
        let length = same.len();
        same.rotate_left(turn % length);
        let share = (slots / length).max(1);
        shared.extend(same.iter().map(|(_, line, definition)| (*line, Arc::clone(definition), share)));
    }
    if turn.is_multiple_of(SUSPECTS_FIRST) {
        shared.sort_by_key(|(line, ..)| line.priority().ok() != Some(Priority::Suspect));
    }
    shared
}
