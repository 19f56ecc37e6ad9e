//! What an attempt has seen of its units: four counts that add up to what was discovered, and the dedupes by reason.
//!
//! A dedupe is neither success nor failure. Most are expected (a page is read again); those that swallow *other* content
//! are suspects, for a key that is too wide looks just like that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_core::state::DedupeReason;

/// How many keys are kept for each reason.
const KEYS_MAX: usize = 100;

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
    /// Whether it is told even if there were none.
    pub(crate) is_about_units: bool,
    /// Keys of units that were tried again from what was kept of them: the source may bring other content since.
    tried_again: BTreeSet<String>,
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

    pub(crate) fn processed(&self, units: usize) {
        self.state().counts.processed += units as u64;
    }

    pub(crate) fn skipped(&self, units: usize) {
        self.state().counts.skipped += units as u64;
    }

    pub(crate) fn failed(&self, key: &str, message: &str) {
        let mut state = self.state();
        state.counts.failed += 1;
        state.failure.get_or_insert_with(|| format!("{key}: {message}"));
    }

    pub(crate) fn deduplicated<'k>(&self, reason: Reason, keys: impl IntoIterator<Item = &'k str>) {
        let mut state = self.state();
        for key in keys {
            state.counts.deduplicated += 1;
            state.note(reason, key);
        }
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

    /// A unit is tried again from what was kept of it.
    pub(crate) fn tried_again(&self, key: &str) {
        self.state().tried_again.insert(key.to_owned());
    }

    /// One key, several contents.
    pub(crate) fn suspected(&self, key: &str) {
        self.state().note(Reason::ManyContents, key);
    }

    /// The same of a key that is recorded by this attempt: unless what is recorded was kept from an earlier one.
    pub(crate) fn suspected_by_record(&self, key: &str) {
        let mut state = self.state();
        if !state.tried_again.remove(key) {
            state.note(Reason::ManyContents, key);
        }
    }

    fn state(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn note(&mut self, reason: Reason, key: &str) {
        let dedupes = self.dedupes.entry(reason).or_default();
        dedupes.count += 1;
        if dedupes.keys.len() < KEYS_MAX {
            dedupes.keys.push(key.to_owned());
        }
    }
}
