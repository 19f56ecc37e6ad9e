//! The ledger's record of a publish: target, mode, number of rows, attempt.

use crate::database::{DatabaseError, Transaction};
use crate::ledger::catalog;
use crate::ledger::fence::AttemptFacts;

/// A publish to record.
pub(crate) struct PublishRecord<'p> {
    /// The table or the directory.
    pub(crate) target: &'p str,
    pub(crate) mode: &'p str,
    pub(crate) rows: u64,
}

impl PublishRecord<'_> {
    /// Records the publish in a transaction that holds the fence.
    pub(crate) async fn record(
        &self,
        transaction: &mut Transaction,
        ledger: i64,
        fence: i64,
        facts: &AttemptFacts,
    ) -> Result<(), DatabaseError> {
        let record = catalog::PUBLISH_RECORD.bind(ledger).bind(self.target).bind(self.mode);
        let record = record.bind(i64::try_from(self.rows).unwrap_or(i64::MAX)).bind(fence);
        let record = record.bind(facts.attempt).bind(i64::from(facts.version));
        transaction.execute(record.bind(facts.nonce)).await?;
        Ok(())
    }
}
