//! Prune: forgets bodies whose time has come, all at once, for those who do not serve.

use std::time::Duration;

use refrain_core::duration;
use refrain_core::person::Verb;

use super::Refrain;
use crate::error::Error;
use crate::store::prune::prune;

impl Refrain {
    /// Forgets what runs were given and said, old attempts, output, dedupes and alarms that are older than `keep`; that a run
    /// was, and how it ended, is never forgotten. Calls `progress` after each stretch with the rows so far.
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

    /// For how long bodies are kept unless said otherwise.
    pub fn keep(&self) -> Duration {
        self.engine.settings.keep
    }
}
