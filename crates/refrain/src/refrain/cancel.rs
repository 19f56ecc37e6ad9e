//! Cancels a run: at once before it begins, and through its worker while it runs.

use refrain_core::person::Verb;
use refrain_core::state::RunOutcome;
use serde::Serialize;

use super::{Refrain, RunRecord};
use crate::error::Error;
use crate::store::cancel::{Cancelled, cancel};

/// How a request to cancel a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Cancelling {
    /// The run had not begun, and will not.
    Cancelled,
    /// The run is running; its worker was asked to stop it.
    Asked,
    /// The run was cancelled before; nothing was done now.
    Deduplicated,
}

impl Refrain {
    /// Cancels a run. A run that has ended otherwise is refused.
    pub async fn cancel(&self, run: &str) -> Result<Cancelling, Error> {
        let missing = || Error::NoRun(run.to_owned());
        let record = self.recorded(&self.target(run).await?).await?.ok_or_else(missing)?;
        if let Some(cancelling) = ended(run, &record)? {
            return Ok(cancelling);
        }
        let decision = self.decision(Verb::Cancel, run).of_run(record.id);
        match cancel(self.store(), record.id, &decision).await?.ok_or_else(missing)? {
            Cancelled::Now => {
                self.notifier.notify();
                Ok(Cancelling::Cancelled)
            }
            Cancelled::Asked => Ok(Cancelling::Asked),
            // It ended since it was read.
            Cancelled::Ended(refusal) => {
                let record = self.record(record.id).await?.ok_or_else(missing)?;
                ended(run, &record)?.ok_or_else(|| refusal.into())
            }
        }
    }
}

fn ended(run: &str, record: &RunRecord) -> Result<Option<Cancelling>, Error> {
    match record.standing.outcome.filter(|_| !record.standing.is_open()) {
        None => Ok(None),
        Some(RunOutcome::Cancelled) => Ok(Some(Cancelling::Deduplicated)),
        Some(outcome) => Err(Error::Ended { run: run.to_owned(), outcome }),
    }
}
