//! What an attempt has seen of its units: four counts that add up to what was discovered, and the dedupes by reason.
//!
//! A dedupe is neither success nor failure. Most are expected (a page is read again); those that swallow *other* content
//! are suspects, for a key that is too wide looks just like that.

use std::collections::BTreeMap;
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
}

impl Told {
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

    /// One key, several contents.
    pub(crate) fn suspected(&self, key: &str) {
        self.state().note(Reason::ManyContents, key);
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
