//! How to find the unit that kills its worker among many.
//!
//! A worker died while units were being applied, and one of them may be the cause. Most often none is: a machine was
//! restarted, memory ran out. So units are not tried one by one, which takes a transaction for each of a thousand; they
//! are tried in parts, and each part is recorded before it is tried. A death then points at a part, the next search
//! starts among its units alone, and the last one points at one unit.
//!
//! Each death of a worker that held the run alone costs the run a try, and a death is expensive: the run waits, and
//! without a service the operator has to start it again. So there are no more deaths than the tries allow, and no more
//! than a small number of parts needs: a thousand units are 32 parts of 32 at first, and then 32 single units. Rejected:
//! bisection, which costs ten deaths instead of two.

/// The most parts that are tried one after another.
const PARTS_FEW: usize = 32;

/// A search for a unit that kills its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// How many more deaths of a worker the search may cost.
    deaths: u32,
    /// How many units were being tried when the last worker died, if known.
    suspects: usize,
}

impl Search {
    /// The search of a run that has `tries` tries and has spent `spent` of them. `suspects` units were being tried when the
    /// last worker died; 0 if that is unknown. The last try must not end in a death.
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

    /// How many of the suspects to try together.
    pub fn suspects_together(&self) -> usize {
        together(self.suspects, self.deaths)
    }

    /// How many of the other units to try together: all of them if there are suspects, because one of those is the cause.
    pub fn others_together(&self, others: usize) -> usize {
        if self.suspects > 0 { others.max(1) } else { together(others, self.deaths) }
    }
}

/// The size of a part with which at most `deaths` deaths find one unit among all. With no deaths left nothing can be
/// found, and all units go together.
/// of them go together.
fn together(all: usize, deaths: u32) -> usize {
    let needed = (1..deaths).find(|deaths| parts(all, *deaths) <= PARTS_FEW).unwrap_or(deaths);
    match needed {
        0 => all.max(1),
        needed => all.div_ceil(parts(all, needed)).max(1),
    }
}

/// The smallest number of parts per level that isolates one unit.
fn parts(all: usize, deaths: u32) -> usize {
    let reaches = |parts: &usize| parts.checked_pow(deaths).is_none_or(|reached| reached >= all);
    (1..all.max(1)).find(reaches).unwrap_or(all.max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_as_large_as_the_remaining_tries_allow() {
        for (tries, spent, suspects, expected, others) in [
            // A thousand units, none of them a suspect.
            (1, 0, 0, 1, 1_000),
            (2, 0, 0, 1, 1),
            (3, 0, 0, 1, 32),
            (3, 1, 0, 1, 1),
            (3, 2, 0, 1, 1_000),
            (10, 0, 0, 1, 32),
            // A part killed a worker: its units are the suspects, and the others go together.
            (3, 1, 32, 1, 1_000),
            (3, 1, 7, 1, 1_000),
            (10, 1, 32, 1, 1_000),
            (10, 1, 1_000, 32, 1_000),
            // No more deaths are allowed.
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
        fn any_unit_that_kills_is_found_within_the_tries(all in 1..=1_000_usize, culprit in 0..1_000_usize, tries in 2..8_u32) {
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
