//! Prune: deletes old payloads, messages and output at once, for stores that no process serves.

use std::time::Duration;

use refrain_core::duration;
use refrain_core::person::Verb;

use super::Refrain;
use crate::error::Error;
use crate::store::prune::prune;

impl Refrain {
    /// Deletes payloads, messages, old attempts, output, dedupes and alarms that are older than `keep`; that a run exists, and
    /// how it ended, is never deleted. Calls `progress` with the rows so far. Returns the number of rows.
    pub async fn prune(&self, keep: Duration, mut progress: impl FnMut(u64)) -> Result<u64, Error> {
        let (mut after, mut rows) = (0, 0);
        let decision = self.decision(Verb::Prune, self.address());
        let mut decision = Some(decision.detailed(format!("older than {}", duration::format(keep))));
        loop {
            let pruned = prune(self.store(), after, keep, decision.take().as_ref()).await?;
            rows += pruned.rows;
            progress(rows);
            if pruned.done {
                return Ok(rows);
            }
            after = pruned.through;
        }
    }

    /// How long payloads, messages and output are kept by default.
    pub fn keep(&self) -> Duration {
        self.engine.settings.keep
    }
}
