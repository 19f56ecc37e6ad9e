//! Counts the units of an attempt: four counts that add up to the units discovered, and the dedupes by reason.
//!
//! A unit that is not applied may be shown twice in one attempt: first from its kept input, then by its source. It is one
//! unit, and its last verdict counts. So keys of units that failed or were skipped are remembered during the attempt, and
//! those of kept ones, up to a limit each.
//!
//! A dedupe is neither success nor failure. Most are expected (a page is read again); those that discard *other* content are
//! suspect, because a key that is too wide looks the same.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::counts::{Reason, UnitSummary};

/// How many keys are kept for each reason.
const KEYS_MAX: usize = 100;

/// How many keys of units that are not applied are remembered during an attempt, and how many of kept ones.
const REMEMBERED_MAX: usize = 100_000;

/// The counts, and the keys that are remembered to count each unit once.
#[derive(Debug, Default)]
struct State {
    summary: UnitSummary,
    /// Units that are not applied, and how each is counted.
    unapplied: HashMap<String, Unapplied>,
    /// Units that were shown from their kept input, and not by the source since.
    kept: HashSet<String>,
}

/// How a unit that is not applied is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unapplied {
    Failed,
    /// It failed and stays in doubt.
    Doubted,
    Skipped,
}

/// Counts as units are settled; shared by everything that an attempt does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<State>>);

impl Tally {
    pub(crate) fn summary(&self) -> UnitSummary {
        self.state().summary.clone()
    }

    /// Marks the attempt as one about units, so that a count of zero is reported too.
    pub(crate) fn about_units(&self) {
        self.state().summary.is_about_units = true;
    }

    pub(crate) fn discovered(&self, units: usize) {
        self.state().summary.discovered += units as u64;
    }

    /// Counts units that are shown from their kept input. If the source shows them too, they are still one unit each; and if it has
    /// other content, that is not a sign of a key that is too wide: the kept input is older.
    pub(crate) fn kept<'k>(&self, keys: impl IntoIterator<Item = &'k str>) {
        let mut state = self.state();
        for key in keys {
            if state.kept.len() < REMEMBERED_MAX {
                state.kept.insert(key.to_owned());
            }
        }
    }

    pub(crate) fn processed(&self, units: usize) {
        self.state().summary.counts.processed += units as u64;
    }

    /// Counts applied units by key.
    pub(crate) fn applied<'k>(&self, keys: impl IntoIterator<Item = &'k str>) {
        let mut state = self.state();
        for key in keys {
            state.take_back(key);
            state.summary.counts.processed += 1;
        }
    }

    pub(crate) fn skipped(&self, key: &str) {
        self.state().unapplied(key, Unapplied::Skipped);
    }

    pub(crate) fn failed(&self, key: &str, message: &str) {
        let mut state = self.state();
        state.unapplied(key, Unapplied::Failed);
        state.summary.failure.get_or_insert_with(|| format!("{key}: {message}"));
    }

    /// Counts a unit that is in doubt and that no later attempt sends again by itself.
    pub(crate) fn doubted(&self, key: &str, message: &str) {
        let mut state = self.state();
        state.unapplied(key, Unapplied::Doubted);
        state.summary.failure.get_or_insert_with(|| format!("{key}: {message}"));
    }

    pub(crate) fn deduplicated<'k>(&self, reason: Reason, keys: impl IntoIterator<Item = &'k str>) {
        let mut state = self.state();
        for key in keys {
            // It was applied from its kept input. If it failed after that, and the source has gone back to the applied content, the
            // dedupe is its last verdict.
            let was_kept = state.kept.remove(key) && !state.unapplied.contains_key(key);
            if was_kept && reason == Reason::AlreadyApplied {
                state.summary.discovered = state.summary.discovered.saturating_sub(1);
                continue;
            }
            state.take_back(key);
            state.summary.counts.deduplicated += 1;
            state.note(reason, key);
        }
    }

    /// Counts a unit that its source shows twice, which is unrelated to its kept input.
    pub(crate) fn repeated_by_source(&self, reason: Reason, key: &str) {
        let mut state = self.state();
        state.summary.counts.deduplicated += 1;
        state.note(reason, key);
    }

    /// Counts units that were done already, with the first of their keys.
    pub(crate) fn known(&self, reason: Reason, count: u64, keys: &[String]) {
        if count == 0 {
            return;
        }
        let mut state = self.state();
        state.summary.counts.deduplicated += count;
        let dedupes = state.summary.dedupes.entry(reason).or_default();
        dedupes.count += count;
        let room = KEYS_MAX.saturating_sub(dedupes.keys.len());
        dedupes.keys.extend(keys.iter().take(room).cloned());
    }

    /// Counts a key with several contents.
    pub(crate) fn suspected(&self, key: &str) {
        self.state().note(Reason::ManyContents, key);
    }

    /// Counts a key whose other content is recorded by this attempt, unless that came from kept input.
    pub(crate) fn suspected_by_record(&self, key: &str) {
        let mut state = self.state();
        if !state.kept.remove(key) {
            state.note(Reason::ManyContents, key);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn unapplied(&mut self, key: &str, how: Unapplied) {
        self.take_back(key);
        match how {
            Unapplied::Failed => self.summary.counts.failed += 1,
            Unapplied::Doubted => {
                self.summary.counts.failed += 1;
                self.summary.held_in_doubt += 1;
            }
            Unapplied::Skipped => self.summary.counts.skipped += 1,
        }
        if self.unapplied.len() < REMEMBERED_MAX {
            self.unapplied.insert(key.to_owned(), how);
        }
    }

    /// Takes back the count of a unit that was not applied and has another verdict now.
    fn take_back(&mut self, key: &str) {
        let count = match self.unapplied.remove(key) {
            Some(Unapplied::Failed) => &mut self.summary.counts.failed,
            Some(Unapplied::Doubted) => {
                self.summary.held_in_doubt = self.summary.held_in_doubt.saturating_sub(1);
                &mut self.summary.counts.failed
            }
            Some(Unapplied::Skipped) => &mut self.summary.counts.skipped,
            None => return,
        };
        *count = count.saturating_sub(1);
        self.summary.discovered = self.summary.discovered.saturating_sub(1);
    }

    fn note(&mut self, reason: Reason, key: &str) {
        let dedupes = self.summary.dedupes.entry(reason).or_default();
        dedupes.count += 1;
        if dedupes.keys.len() < KEYS_MAX {
            dedupes.keys.push(key.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::counts::UnitCounts;

    /// The four counts and what was discovered.
    fn counted(tally: &Tally) -> ([u64; 4], u64) {
        let UnitSummary { counts, discovered, .. } = tally.summary();
        let UnitCounts { processed, skipped, deduplicated, failed } = counts;
        ([processed, skipped, deduplicated, failed], discovered)
    }

    #[test]
    fn a_stored_unit_that_its_source_shows_again_counts_once() {
        type Case = (&'static str, fn(&Tally), [u64; 4]);
        let verdicts: [Case; 4] = [
            ("it fails again", |tally| tally.failed("a", "no"), [0, 0, 0, 1]),
            ("it is applied then", |tally| tally.applied(["a"]), [1, 0, 0, 0]),
            ("it is parked", |tally| tally.skipped("a"), [0, 1, 0, 0]),
            ("another run did it", |tally| tally.deduplicated(Reason::Stale, ["a"]), [0, 0, 1, 0]),
        ];
        for (what, verdict, expected) in verdicts {
            let tally = Tally::default();
            tally.kept(["a"]);
            tally.discovered(1);
            tally.failed("a", "no");
            tally.discovered(1);
            verdict(&tally);
            assert_eq!(counted(&tally), (expected, 1), "{what}");
        }
        let tally = Tally::default();
        tally.kept(["a"]);
        tally.discovered(1);
        tally.applied(["a"]);
        tally.discovered(2);
        tally.deduplicated(Reason::AlreadyApplied, ["a", "b"]);
        assert_eq!(counted(&tally), ([1, 0, 1, 0], 2), "what was mended is not a duplicate; `b` is");
    }

    proptest! {
        #[test]
        fn counts_add_up_in_any_order_and_number_of_repetitions(
            shown in prop::collection::vec(("[a-e]", 0..4u8), 0..60),
            kept in prop::collection::hash_set("[a-e]", 0..5),
        ) {
            let tally = Tally::default();
            tally.kept(kept.iter().map(String::as_str));
            for (key, verdict) in &shown {
                tally.discovered(1);
                match verdict {
                    0 => tally.applied([key.as_str()]),
                    1 => tally.skipped(key),
                    2 => tally.failed(key, "no"),
                    _ => tally.deduplicated(Reason::AlreadyApplied, [key.as_str()]),
                }
            }
            let ([processed, skipped, deduplicated, failed], discovered) = counted(&tally);
            prop_assert_eq!(processed + skipped + deduplicated + failed, discovered);
            let distinct: HashSet<&str> = shown.iter().map(|(key, _)| key.as_str()).collect();
            prop_assert!(skipped + failed <= distinct.len() as u64, "a unit is left unapplied once");
        }
    }
}
