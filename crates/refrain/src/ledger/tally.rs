//! What an attempt has seen of its units: four counts that add up to what was discovered, and the dedupes by reason.
//!
//! A unit that is not applied may be shown again in the same attempt: first from what was kept of it, then by its source.
//! It is one unit, and its last verdict counts. So keys of units that failed or were skipped are remembered while the
//! attempt lasts, and those of kept ones, up to a limit each.
//!
//! A dedupe is neither success nor failure. Most are expected (a page is read again); those that swallow *other* content
//! are suspects, for a key that is too wide looks just like that.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_core::state::DedupeReason;

/// How many keys are kept for each reason.
const KEYS_MAX: usize = 100;

/// How many keys of units that are not applied are remembered within an attempt, and how many of kept ones.
const REMEMBERED_MAX: usize = 100_000;

/// What became of the units of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnitCounts {
    /// Applied, in this attempt.
    pub processed: u64,
    /// Left alone, for a reason that somebody has to look at: parked.
    pub skipped: u64,
    /// Done already.
    pub deduplicated: u64,
    /// Failed; what they were given is kept.
    pub failed: u64,
}

impl UnitCounts {
    /// All of them together.
    pub fn discovered(&self) -> u64 {
        self.processed + self.skipped + self.deduplicated + self.failed
    }
}

/// Dedupes of one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dedupes {
    pub(crate) count: u64,
    /// The first of their keys.
    pub(crate) keys: Vec<String>,
}

/// Why a unit was not applied, as it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    AlreadyApplied,
    Stale,
    FirstWins,
    /// Not a dedupe itself: one key stood for several contents within one attempt, with no order among them.
    ManyContents,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reason::AlreadyApplied => "already-applied",
            Reason::Stale => "stale",
            Reason::FirstWins => "first-wins",
            Reason::ManyContents => "many-contents",
        }
    }
}

impl From<DedupeReason> for Reason {
    fn from(reason: DedupeReason) -> Reason {
        match reason {
            DedupeReason::AlreadyApplied => Reason::AlreadyApplied,
            DedupeReason::Stale => Reason::Stale,
            DedupeReason::FirstWins => Reason::FirstWins,
        }
    }
}

/// A snapshot of a tally.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) discovered: u64,
    pub(crate) counts: UnitCounts,
    pub(crate) dedupes: BTreeMap<Reason, Dedupes>,
    /// What the first failed unit said.
    pub(crate) failure: Option<String>,
    /// How many of those that failed are in doubt, and not sent again by themselves.
    pub(crate) held_in_doubt: u64,
    /// Whether it is told even if there were none.
    pub(crate) is_about_units: bool,
    /// Units that are not applied, and how each is counted.
    unapplied: HashMap<String, Unapplied>,
    /// Units that were shown from what was kept of them, and not by the source since.
    kept: HashSet<String>,
}

/// How a unit that is not applied is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unapplied {
    Failed,
    /// It failed, and is held in doubt.
    Doubted,
    Skipped,
}

impl Told {
    /// What is wrong if one key stood for several contents, with the first such key.
    pub(crate) fn too_wide(&self) -> Option<String> {
        let Dedupes { count, keys } = self.dedupes.get(&Reason::ManyContents)?;
        let first = keys.first().map(String::as_str).unwrap_or_default();
        Some(format!(
            "one key stood for several contents in this attempt: `{first}` first, {count} units in all\n  \
             name in `key` what tells these units apart; or, if they are one unit that changed, name in `order` what tells its newer content"
        ))
    }

    /// How many units nobody has spoken of since they were discovered.
    pub(crate) fn unsettled(&self) -> u64 {
        self.discovered.saturating_sub(self.counts.discovered())
    }
}

/// Counts as units are settled; shared by everything that an attempt does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<Told>>);

impl Tally {
    pub(crate) fn told(&self) -> Told {
        self.state().clone()
    }

    /// This attempt is about units, and to meet none of them is news as well.
    pub(crate) fn about_units(&self) {
        self.state().is_about_units = true;
    }

    pub(crate) fn discovered(&self, units: usize) {
        self.state().discovered += units as u64;
    }

    /// These are shown from what was kept of them. That the source shows them too makes them no more units, and that it brings
    /// other content is no sign of a key that is too wide: what was kept is older.
    pub(crate) fn kept<'k>(&self, keys: impl IntoIterator<Item = &'k str>) {
        let mut state = self.state();
        for key in keys {
            if state.kept.len() < REMEMBERED_MAX {
                state.kept.insert(key.to_owned());
            }
        }
    }

    pub(crate) fn processed(&self, units: usize) {
        self.state().counts.processed += units as u64;
    }

    /// The same for units that have keys.
    pub(crate) fn applied<'k>(&self, keys: impl IntoIterator<Item = &'k str>) {
        let mut state = self.state();
        for key in keys {
            state.take_back(key);
            state.counts.processed += 1;
        }
    }

    pub(crate) fn skipped(&self, key: &str) {
        self.state().unapplied(key, Unapplied::Skipped);
    }

    pub(crate) fn failed(&self, key: &str, message: &str) {
        let mut state = self.state();
        state.unapplied(key, Unapplied::Failed);
        state.failure.get_or_insert_with(|| format!("{key}: {message}"));
    }

    /// The same of one that is in doubt, and that no later attempt sends again by itself.
    pub(crate) fn doubted(&self, key: &str, message: &str) {
        let mut state = self.state();
        state.unapplied(key, Unapplied::Doubted);
        state.failure.get_or_insert_with(|| format!("{key}: {message}"));
    }

    pub(crate) fn deduplicated<'k>(&self, reason: Reason, keys: impl IntoIterator<Item = &'k str>) {
        let mut state = self.state();
        for key in keys {
            // It was applied from what was kept of it. If that failed, and the source has gone back to what is applied, the
            // dedupe is its last verdict.
            let was_kept = state.kept.remove(key) && !state.unapplied.contains_key(key);
            if was_kept && reason == Reason::AlreadyApplied {
                state.discovered = state.discovered.saturating_sub(1);
                continue;
            }
            state.take_back(key);
            state.counts.deduplicated += 1;
            state.note(reason, key);
        }
    }

    /// A unit that its source tells twice, which says nothing of what was kept of it.
    pub(crate) fn told_twice(&self, reason: Reason, key: &str) {
        let mut state = self.state();
        state.counts.deduplicated += 1;
        state.note(reason, key);
    }

    /// So many that were done already, with the first of their keys.
    pub(crate) fn known(&self, reason: Reason, count: u64, keys: &[String]) {
        if count == 0 {
            return;
        }
        let mut state = self.state();
        state.counts.deduplicated += count;
        let dedupes = state.dedupes.entry(reason).or_default();
        dedupes.count += count;
        let room = KEYS_MAX.saturating_sub(dedupes.keys.len());
        dedupes.keys.extend(keys.iter().take(room).cloned());
    }

    /// One key, several contents.
    pub(crate) fn suspected(&self, key: &str) {
        self.state().note(Reason::ManyContents, key);
    }

    /// The same of a key that is recorded by this attempt: unless what is recorded was kept from an earlier one.
    pub(crate) fn suspected_by_record(&self, key: &str) {
        let mut state = self.state();
        if !state.kept.remove(key) {
            state.note(Reason::ManyContents, key);
        }
    }

    fn state(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    /// What an attempt that failed says of itself: at least one thing failed, if not a unit then what lists them.
    pub(crate) fn of_failed_attempt(mut self) -> Told {
        self.counts.failed = self.counts.failed.max(1);
        self
    }

    fn unapplied(&mut self, key: &str, how: Unapplied) {
        self.take_back(key);
        match how {
            Unapplied::Failed => self.counts.failed += 1,
            Unapplied::Doubted => {
                self.counts.failed += 1;
                self.held_in_doubt += 1;
            }
            Unapplied::Skipped => self.counts.skipped += 1,
        }
        if self.unapplied.len() < REMEMBERED_MAX {
            self.unapplied.insert(key.to_owned(), how);
        }
    }

    /// Uncounts a unit that was not applied and has another verdict now.
    fn take_back(&mut self, key: &str) {
        let count = match self.unapplied.remove(key) {
            Some(Unapplied::Failed) => &mut self.counts.failed,
            Some(Unapplied::Doubted) => {
                self.held_in_doubt = self.held_in_doubt.saturating_sub(1);
                &mut self.counts.failed
            }
            Some(Unapplied::Skipped) => &mut self.counts.skipped,
            None => return,
        };
        *count = count.saturating_sub(1);
        self.discovered = self.discovered.saturating_sub(1);
    }

    fn note(&mut self, reason: Reason, key: &str) {
        let dedupes = self.dedupes.entry(reason).or_default();
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

    /// The four counts and what was discovered.
    fn counted(tally: &Tally) -> ([u64; 4], u64) {
        let Told { counts, discovered, .. } = tally.told();
        let UnitCounts { processed, skipped, deduplicated, failed } = counts;
        ([processed, skipped, deduplicated, failed], discovered)
    }

    #[test]
    fn a_kept_unit_that_its_source_shows_again_is_one_unit() {
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
        fn counts_add_up_whatever_is_shown_how_often(
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
