//! Records of a source that are not valid units: they have no key, so nothing can be done with them.
//!
//! Each is kept as a parked unit under a key made of its position, with its text, so that it is visible and a checkpoint may
//! pass it. It is never tried again. Once the same position of the source has been read again without meeting the record,
//! its entry is deleted.

use refrain_core::Key;
use refrain_core::state::UnitEvent;

use super::entry::{fenced, kept, shortened};
use super::judge::Arrival;
use super::unit_state::{self, FailedUnit};
use super::units::Units;
use super::{Result, catalog};
use crate::database::{place, retried};
use crate::user_database::Backend;

/// A record that is not a valid unit.
#[derive(Debug, Clone)]
pub(crate) struct MalformedRecord {
    /// Its position in the source.
    pub(crate) key: Key,
    /// Its text.
    pub(crate) input: String,
    /// Why it is not a valid unit.
    pub(crate) message: String,
}

impl<DB: Backend, T> Units<DB, T> {
    /// Keeps malformed records in one transaction, and counts them as failed. `place` is the position that the source was read
    /// from, if a checkpoint has one.
    pub(crate) async fn park(&self, records: &[MalformedRecord], place: Option<&str>) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let (ledger, raised, judge) = (self.ledger().await?, &self.fence.raised, self.judge());
        let arrivals: Vec<Arrival> = records
            .iter()
            .map(|record| Arrival { key: record.key.clone(), fingerprint: None, ordinal: None })
            .collect();
        let parked = retried(|| async {
            let mut transaction = match fenced(raised).await? {
                Ok(transaction) => transaction,
                Err(error) => return Ok(Err(error)),
            };
            for (arrival, record) in arrivals.iter().zip(records) {
                let (input, message) = (kept(&record.input), shortened(&record.message));
                let failed = FailedUnit { arrival, found: None, failures: 1, input, message, place };
                let fail = match unit_state::fail(UnitEvent::GaveUp, ledger, &judge, failed, None) {
                    Ok(fail) => fail,
                    Err(error) => return Ok(Err(error)),
                };
                transaction.execute(fail).await?;
            }
            transaction.commit(place!("unit-fail")).await?;
            Ok(Ok(()))
        });
        parked.await??;
        raised.tally.discovered(records.len());
        for MalformedRecord { key, message, .. } in records {
            tracing::warn!(job = %raised.facts.job, key = key.as_str(), message, "this is not a valid unit");
            raised.tally.failed(key.as_str(), message);
        }
        Ok(())
    }

    /// Whether records are kept from positions with this prefix.
    pub(crate) async fn has_unreadable(&self, beginning: &str) -> Result<bool> {
        let (ledger, raised) = (self.ledger().await?, &self.fence.raised);
        let (first, after) = (format!("{beginning}:"), format!("{beginning};"));
        let found: Vec<(String,)> = retried(|| async {
            let mut transaction = raised.destination.database.read().await?;
            let find = catalog::UNIT_UNREADABLE.bind(ledger).bind(first.as_str()).bind(after.as_str());
            transaction.fetch_all(find).await
        })
        .await?;
        Ok(!found.is_empty())
    }

    /// Deletes the records kept by earlier readings of a position that this attempt has read to its end: every key with the
    /// prefix that was read from the same position. Records read from an earlier position were not shown now.
    pub(crate) async fn clear(&self, beginning: &str, place: Option<&str>) -> Result<()> {
        let (ledger, raised) = (self.ledger().await?, &self.fence.raised);
        let (first, after) = (format!("{beginning}:"), format!("{beginning};"));
        let cleared = retried(|| async {
            let mut transaction = match fenced(raised).await? {
                Ok(transaction) => transaction,
                Err(error) => return Ok(Err(error)),
            };
            let clear = catalog::UNIT_CLEAR.bind(ledger).bind(first.as_str()).bind(after.as_str());
            let clear = clear.bind(raised.id).bind(raised.facts.attempt).bind(raised.facts.nonce).bind(place);
            let cleared = transaction.execute(clear).await?;
            if cleared > 0 {
                transaction.commit(place!("unit-clear")).await?;
            } else {
                transaction.rollback().await?;
            }
            Ok(Ok(()))
        });
        cleared.await?
    }
}
