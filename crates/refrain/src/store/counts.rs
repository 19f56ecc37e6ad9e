//! The counts of an attempt's units: four numbers, and dedupes by reason with the first of their keys.
//!
//! They are written with the end of the attempt, so an attempt that was taken over has none: its units are in the ledger, and the
//! next attempt counts them as deduplicated.

use std::collections::BTreeMap;

use refrain_core::state::DedupeReason;

use super::finish::Ending;
use super::{Result, Store, catalog};
use crate::database::Transaction;
use crate::database::statement::Rows;

/// The counts of an attempt's units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct UnitCounts {
    /// Applied, in this attempt.
    pub processed: u64,
    /// Not tried, for a reason that the operator must look at: parked.
    pub skipped: u64,
    /// Found done already.
    pub deduplicated: u64,
    /// Failed; their input is kept.
    pub failed: u64,
}

impl std::ops::Add for UnitCounts {
    type Output = UnitCounts;

    fn add(self, other: UnitCounts) -> UnitCounts {
        UnitCounts {
            processed: self.processed + other.processed,
            skipped: self.skipped + other.skipped,
            deduplicated: self.deduplicated + other.deduplicated,
            failed: self.failed + other.failed,
        }
    }
}

impl std::fmt::Display for UnitCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let UnitCounts { processed, skipped, deduplicated, failed } = self;
        write!(f, "{processed} processed, {skipped} skipped, {deduplicated} deduplicated, {failed} failed")
    }
}

impl UnitCounts {
    /// The sum of the four.
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

/// Why a unit was not applied, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    AlreadyApplied,
    Stale,
    FirstWins,
    /// Not a dedupe: one key had several contents in one attempt, with no order among them.
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

/// What an attempt has seen of its units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UnitSummary {
    pub(crate) discovered: u64,
    pub(crate) counts: UnitCounts,
    pub(crate) dedupes: BTreeMap<Reason, Dedupes>,
    /// What the first failed unit said.
    pub(crate) failure: Option<String>,
    /// How many of those that failed are in doubt, and not sent again by themselves.
    pub(crate) held_in_doubt: u64,
    /// Whether it is counted even if there were none.
    pub(crate) is_about_units: bool,
}

impl UnitSummary {
    /// The message if one key had several contents, with the first such key.
    pub(crate) fn too_wide(&self) -> Option<String> {
        let Dedupes { count, keys } = self.dedupes.get(&Reason::ManyContents)?;
        let first = keys.first().map(String::as_str).unwrap_or_default();
        Some(format!(
            "one key had several contents in this attempt: `{first}` first, {count} units in all\n  \
             add to `key` a field that tells these units apart; or, if they are versions of one unit, name in `order` the field that orders them"
        ))
    }

    /// How many discovered units were never counted as anything else.
    pub(crate) fn unsettled(&self) -> u64 {
        self.discovered.saturating_sub(self.counts.discovered())
    }

    /// The counts of an attempt that failed: at least one failure, if not of a unit then of the source.
    pub(crate) fn of_failed_attempt(mut self) -> UnitSummary {
        self.counts.failed = self.counts.failed.max(1);
        self
    }
}

pub(crate) async fn record(transaction: &mut Transaction, endings: &[&Ending]) -> Result<()> {
    let counted = endings.iter().filter_map(|ending| Some((&ending.held, ending.units.as_deref()?)));
    let counted: Vec<_> = counted.collect();
    if counted.is_empty() {
        return Ok(());
    }
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let rows = Rows::default()
        .integers(counted.iter().map(|(held, _)| held.run))
        .integers(counted.iter().map(|(held, _)| i64::from(held.attempt)))
        .integers(counted.iter().map(|(_, units)| number(units.counts.processed)))
        .integers(counted.iter().map(|(_, units)| number(units.counts.skipped)))
        .integers(counted.iter().map(|(_, units)| number(units.counts.deduplicated)))
        .integers(counted.iter().map(|(_, units)| number(units.counts.failed)));
    transaction.execute(catalog::COUNT_INSERT.bind(rows)).await?;
    let dedupes = counted
        .iter()
        .flat_map(|(held, units)| units.dedupes.iter().map(move |(reason, dedupes)| (held, reason, dedupes)));
    let dedupes: Vec<_> = dedupes.collect();
    if !dedupes.is_empty() {
        let keys = |keys: &[String]| serde_json::to_string(keys).unwrap_or_else(|_| "[]".to_owned());
        let rows = Rows::default()
            .integers(dedupes.iter().map(|(held, ..)| held.run))
            .integers(dedupes.iter().map(|(held, ..)| i64::from(held.attempt)))
            .texts(dedupes.iter().map(|(_, reason, _)| reason.name().to_owned()))
            .integers(dedupes.iter().map(|(_, _, dedupes)| number(dedupes.count)))
            .texts(dedupes.iter().map(|(_, _, dedupes)| keys(&dedupes.keys)));
        transaction.execute(catalog::UNIT_DEDUPE_INSERT.bind(rows)).await?;
    }
    Ok(())
}

/// The counts of one attempt.
#[derive(Debug, sqlx_macros::FromRow)]
pub(crate) struct CountRow {
    pub(crate) attempt: i32,
    pub(crate) processed: i64,
    pub(crate) skipped: i64,
    pub(crate) deduplicated: i64,
    pub(crate) failed: i64,
}

/// Dedupes of one reason in one attempt.
#[derive(Debug, sqlx_macros::FromRow)]
pub(crate) struct UnitDedupeRow {
    pub(crate) attempt: i32,
    pub(crate) reason: String,
    pub(crate) count: i64,
    pub(crate) keys: String,
}

/// What all attempts of a run came to, oldest first.
pub(crate) async fn list(store: &Store, run: i64) -> Result<(Vec<CountRow>, Vec<UnitDedupeRow>)> {
    let mut transaction = store.database.read_at_once().await?;
    let counts = transaction.fetch_all(catalog::COUNT_LIST.bind(run)).await?;
    let dedupes = transaction.fetch_all(catalog::UNIT_DEDUPE_LIST.bind(run)).await?;
    Ok((counts, dedupes))
}
