//! Everything that is recorded of one run, as one record: what `refrain show` prints.

use serde::Serialize;
use serde_json::Value;

use super::{AttemptRecord, AttemptUnits, DecisionRecord, DedupeRecord, DoubtRecord, Refrain, RunSummary};
use crate::error::Error;

/// Everything that is recorded of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunDetails {
    /// The run.
    #[serde(flatten)]
    pub run: RunSummary,
    /// The payload that was enqueued with its key, while that is kept.
    pub payload: Option<Value>,
    /// Its attempts but the last, oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// What its attempts saw of their units, oldest first.
    pub units: Vec<AttemptUnits>,
    /// The requests for it that were deduplicated, oldest first.
    pub dedupes: Vec<DedupeRecord>,
    /// What an operator must decide before it can go on.
    pub doubts: Vec<DoubtRecord>,
    /// What operators have decided about it, oldest first.
    pub decisions: Vec<DecisionRecord>,
}

impl Refrain {
    /// Everything that is recorded of a run; none if there is no such run.
    pub async fn details(&self, run: &str) -> Result<Option<RunDetails>, Error> {
        let Some(run) = self.show(run).await? else { return Ok(None) };
        let attempts = self.attempts(&run).await?;
        let units = self.units(&run).await?;
        let dedupes = self.dedupes(&run).await?;
        let doubts = self.doubts(&run).await?;
        let decisions = self.decisions_about(&run).await?;
        let payload = run.payload.as_deref().and_then(|payload| serde_json::from_str(payload).ok());
        let run = self.view(&run.job).await?.summary(run, self.now().await?);
        Ok(Some(RunDetails { run, payload, attempts, units, dedupes, doubts, decisions }))
    }
}
