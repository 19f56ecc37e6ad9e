//! Counts of the units of a run, for readers.

use super::{Refrain, RunRecord};
use crate::error::Error;
use crate::store::counts;
use crate::store::counts::UnitCounts;

/// The counts of the units of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct AttemptUnits {
    /// The number of the attempt.
    pub attempt: u64,
    /// The counts by status.
    pub counts: UnitCounts,
    /// Those that were done already, by reason.
    pub dedupes: Vec<UnitDedupes>,
}

/// Units that were done already, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct UnitDedupes {
    /// `already-applied`, `stale`, `first-wins`; or `many-contents`, which is a suspicion and counts no unit: one key stood
    /// for several contents in one attempt, so it may be too wide.
    pub reason: String,
    /// How many units.
    pub count: u64,
    /// Whether other content was swallowed, so that the key may be too wide.
    pub is_suspect: bool,
    /// The first of their keys.
    pub keys: Vec<String>,
}

impl Refrain {
    /// The counts of units of the attempts of a run, oldest first. An attempt that was taken over, or that met no
    /// unit, is missing.
    pub async fn units(&self, run: &RunRecord) -> Result<Vec<AttemptUnits>, Error> {
        let (counts, dedupes) = counts::list(self.store(), run.id).await?;
        let number = |count: i64| u64::try_from(count).unwrap_or_default();
        let attempts = counts.into_iter().map(|row| AttemptUnits {
            attempt: number(row.attempt.into()),
            counts: UnitCounts {
                processed: number(row.processed),
                skipped: number(row.skipped),
                deduplicated: number(row.deduplicated),
                failed: number(row.failed),
            },
            dedupes: dedupes
                .iter()
                .filter(|dedupe| dedupe.attempt == row.attempt)
                .map(|dedupe| UnitDedupes {
                    reason: dedupe.reason.clone(),
                    count: number(dedupe.count),
                    is_suspect: matches!(dedupe.reason.as_str(), "first-wins" | "many-contents"),
                    keys: serde_json::from_str(&dedupe.keys).unwrap_or_default(),
                })
                .collect(),
        });
        Ok(attempts.collect())
    }
}
