//! The ticks that a pattern must have, found by looking at every minute.

use crate::clock::Clock;
use crate::pattern::{Matches, PATTERNS, Pattern};

/// Whether the clock is at a normal minute, a fold or a gap when a pattern matches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The clock shows this minute once.
    Plain,
    /// The clock shows this minute twice: now, and again after it has been put back.
    FirstPass,
    SecondPass,
    /// The clock never shows this minute: it was put forward over it at this instant.
    JumpedOver,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gap {
    Next,
    Skip,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fold {
    First,
    Last,
    Both,
}

pub(crate) const POLICIES: [(Gap, Fold); 6] = [
    (Gap::Next, Fold::First),
    (Gap::Next, Fold::Last),
    (Gap::Next, Fold::Both),
    (Gap::Skip, Fold::First),
    (Gap::Skip, Fold::Last),
    (Gap::Skip, Fold::Both),
];

/// Every match of every pattern on one clock, in order of the minutes; policies choose among them.
pub(crate) struct Found(Vec<Vec<(i64, Place)>>);

impl Found {
    pub(crate) fn on(clock: &Clock, matches: &Matches) -> Self {
        let mut found = vec![Vec::new(); PATTERNS.len()];
        let places = places(clock);
        let mut changes = clock.changes.iter().peekable();
        for (&(minute, wall), place) in clock.minutes.iter().zip(places) {
            if let Some(change) = changes.next_if(|change| change.at == minute) {
                let jumped = (change.before..change.after).fold(0, |bits, wall| bits | matches.at(wall));
                note(&mut found, jumped, (minute, Place::JumpedOver));
            }
            note(&mut found, matches.at(wall), (minute, place));
        }
        Self(found)
    }

    /// The ticks of the pattern at `index`, in seconds since the epoch.
    pub(crate) fn ticks(&self, index: usize, (gap, fold): (Gap, Fold)) -> Vec<i64> {
        let pattern = &PATTERNS[index];
        let mut ticks = Vec::new();
        for (minute, place) in &self.0[index] {
            let counts = match place {
                Place::Plain => true,
                Place::JumpedOver => !pattern.interval && gap == Gap::Next,
                Place::FirstPass => pattern.interval || fold != Fold::Last,
                Place::SecondPass => pattern.interval || fold != Fold::First,
            };
            if counts {
                ticks.extend(seconds(pattern, *place).iter().map(|second| minute * 60 + second));
            }
        }
        ticks.dedup();
        ticks
    }

    /// How often the pattern at `index` matched in such a case.
    pub(crate) fn count(&self, index: usize, place: Place) -> usize {
        self.0[index].iter().filter(|(_, found)| *found == place).count()
    }
}

fn seconds(pattern: &Pattern, place: Place) -> &'static [i64] {
    if place == Place::JumpedOver { &[0] } else { pattern.seconds }
}

fn note(found: &mut [Vec<(i64, Place)>], mut bits: u32, at: (i64, Place)) {
    while bits != 0 {
        found[bits.trailing_zeros() as usize].push(at);
        bits &= bits - 1;
    }
}

fn places(clock: &Clock) -> Vec<Place> {
    let mut places = vec![Place::Plain; clock.minutes.len()];
    for change in clock.changes.iter().filter(|change| !change.is_gap()) {
        let change_index = usize::try_from(change.at - clock.period.from).unwrap();
        let twice = usize::try_from(change.before - change.after).unwrap();
        places[change_index - twice..change_index].fill(Place::FirstPass);
        places[change_index..change_index + twice].fill(Place::SecondPass);
    }
    places
}
