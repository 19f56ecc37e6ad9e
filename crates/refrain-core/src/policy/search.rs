//! How a unit that kills its worker is found among many.
//!
//! A worker died while units were being applied, and one of them may be why. Most often none is: a machine was restarted, memory
//! ran out. So they are not tried one by one, which takes a transaction for each of a thousand; they are tried in parts, and each
//! part is written down before it is tried. A death then points at a part, the next search is among its units alone, and the
//! last one points at one unit.
//!
//! Each death of a run that its worker held alone costs it a try, and a death is dear: the run waits, and without a service
//! a person has to start it again. So there are no more deaths than the tries allow, and no more than it takes to have few parts:
//! a thousand units are 32 parts of 32 at first, and then 32 alone. Rejected: halves, which cost ten deaths instead of two.

/// So many parts are few enough to be tried one after another.
const PARTS_FEW: usize = 32;

/// A search for a unit that kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// How often the search may still cost the run its worker.
    deaths: u32,
    /// How many units were being tried when the last worker died, if that is known.
    suspects: usize,
}

impl Search {
    /// The search of a run that may be tried `tries` times and has `spent` of them. `suspects` units were being tried when the
    /// last worker died; 0 if that is not known. The try that is the last must not end in a death.
    ///
    /// ```
    /// use refrain_core::search::Search;
    ///
    /// let first = Search::new(3, 0, 0);
    /// assert_eq!(first.others_together(1_000), 32);
    /// let second = Search::new(3, 1, 32);
    /// assert_eq!((second.suspects_together(), second.others_together(1_000)), (1, 1_000));
    /// ```
    pub fn new(tries: u32, spent: u32, suspects: usize) -> Search {
        Search { deaths: tries.saturating_sub(spent).saturating_sub(1), suspects }
    }

    /// How many of the suspects are tried together.
    pub fn suspects_together(&self) -> usize {
        together(self.suspects, self.deaths)
    }

    /// How many of so many others are tried together: all of them, if there are suspects, for it is one of those.
    pub fn others_together(&self, others: usize) -> usize {
        if self.suspects > 0 { others.max(1) } else { together(others, self.deaths) }
    }
}

/// How many go together, so that so many deaths at most find the one among all. If none is left, nothing can be found, and all
/// of them go together.
fn together(all: usize, deaths: u32) -> usize {
    let needed = (1..deaths).find(|deaths| parts(all, *deaths) <= PARTS_FEW).unwrap_or(deaths);
    match needed {
        0 => all.max(1),
        needed => all.div_ceil(parts(all, needed)).max(1),
    }
}

/// The fewest parts of parts of parts that leave one alone.
fn parts(all: usize, deaths: u32) -> usize {
    let reaches = |parts: &usize| parts.checked_pow(deaths).is_none_or(|reached| reached >= all);
    (1..all.max(1)).find(reaches).unwrap_or(all.max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_as_large_as_tries_and_patience_allow() {
        for (tries, spent, suspects, expected, others) in [
            // A thousand units, none of them a suspect.
            (1, 0, 0, 1, 1_000),
            (2, 0, 0, 1, 1),
            (3, 0, 0, 1, 32),
            (3, 1, 0, 1, 1),
            (3, 2, 0, 1, 1_000),
            (10, 0, 0, 1, 32),
            // A part killed a worker: its units are the suspects, and the others go as if nothing were wrong.
            (3, 1, 32, 1, 1_000),
            (3, 1, 7, 1, 1_000),
            (10, 1, 32, 1, 1_000),
            (10, 1, 1_000, 32, 1_000),
            // No death can be afforded any more.
            (3, 2, 32, 32, 1_000),
            (3, 2, 1, 1, 1_000),
        ] {
            let search = Search::new(tries, spent, suspects);
            let found = (search.suspects_together(), search.others_together(1_000));
            assert_eq!(found, (expected, others), "{tries} tries, {spent} spent, {suspects} suspects");
        }
    }

    proptest! {
        #[test]
        fn whichever_unit_kills_is_found_within_the_tries(all in 1..=1_000_usize, culprit in 0..1_000_usize, tries in 2..8_u32) {
            let culprit = culprit % all;
            let (mut range, mut spent, mut parts_tried) = (0..all, 0, 0);
            let mut suspects = 0;
            while range.len() > 1 || spent == 0 {
                let search = Search::new(tries, spent, suspects);
                let size = if suspects == 0 { search.others_together(all) } else { search.suspects_together() };
                let part = (culprit - range.start) / size;
                parts_tried += part + 1;
                range = range.start + part * size..range.end.min(range.start + (part + 1) * size);
                suspects = range.len();
                spent += 1;
                prop_assert!(spent < tries, "the last try is there to be survived");
            }
            prop_assert_eq!(range, culprit..culprit + 1);
            if tries > 2 {
                prop_assert!(parts_tried <= 2 * 32, "{} parts", parts_tried);
            }
        }
    }
}
