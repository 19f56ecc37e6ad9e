//! Units without rows of their own in the ledger: a page of them is one row, with their number and a hash of what they say.
//!
//! Nothing here keeps a unit from being written twice: the table does that, by a unique key. The row of a page says that all of
//! it was written, so that a page that comes again need not be. It is worth its word only while nothing before it has changed:
//! whoever writes a page forgets those that come after it, in the same transaction, for a unit may have moved from one to the
//! other. Units that fail have rows of their own, as always.

use std::collections::HashSet;

use refrain_core::{Fingerprint, Key};
use serde::Serialize;

use super::backend::Backend;
use super::entry;
use super::judge::Arrival;
use super::units::Units;
use super::{Result, catalog};
use crate::database::{DatabaseError, Transaction, retried};

/// The beginning of the key of a page.
const PAGE: &str = "$page";

/// A page of units that is one row.
pub(crate) struct BulkPage<'i, T> {
    /// Each key once, in the order of keys.
    pub(crate) items: Vec<(&'i T, Arrival)>,
    /// Its own row.
    pub(crate) row: Arrival,
    said: String,
    after: String,
}

/// A hash of units, the same in any order.
#[derive(Default)]
struct Sum([u64; 4]);

impl Sum {
    fn add(&mut self, fingerprint: Fingerprint) {
        let bytes = fingerprint.to_bytes();
        for (lane, bytes) in self.0.iter_mut().zip(bytes.chunks(8)) {
            let part = bytes.iter().fold(0, |number: u64, byte| (number << 8) | u64::from(*byte));
            *lane = lane.wrapping_add(part);
        }
    }

    fn hex(&self) -> String {
        let [one, two, three, four] = self.0;
        format!("{one:016x}{two:016x}{three:016x}{four:016x}")
    }
}

impl<DB: Backend, T: Serialize> Units<DB, T> {
    /// Units as a page: the so-manieth of a place in the source. What is told twice is counted here.
    pub(crate) fn bulk_page<'i>(&self, items: &'i [T], place: &str, number: u64) -> Result<BulkPage<'i, T>> {
        let list = self.list(items)?;
        list.tally_twins(&self.fence.raised.tally);
        let counting = list
            .counting
            .iter()
            .filter_map(|member| Some((items.get(*member)?, list.arrivals.get(*member)?)));
        let items: Vec<(&T, Arrival)> = counting.map(|(item, arrival)| (item, arrival.clone())).collect();
        let mut sum = Sum::default();
        for (_, arrival) in &items {
            let fact = serde_json::to_string(&(arrival.key.as_str(), arrival.fingerprint))?;
            sum.add(Fingerprint::of_json(&fact)?);
        }
        let said = serde_json::json!({ "count": items.len(), "hash": sum.hex() }).to_string();
        let place = if place.is_empty() { PAGE.to_owned() } else { format!("{PAGE}:{place}") };
        let row = Arrival {
            key: Key::parse(&format!("{place}:{number:010}"))?,
            fingerprint: Some(Fingerprint::of_json(&said)?.to_number()),
            ordinal: None,
        };
        Ok(BulkPage { items, row, said, after: format!("{place};") })
    }

    /// Whether it is recorded just so, in this version, and is not to be written once more.
    pub(crate) async fn is_recorded(&self, page: &BulkPage<'_, T>) -> Result<bool> {
        let (ledger, judge, raised) = (self.ledger().await?, self.judge(), &self.fence.raised);
        let look = retried(|| async {
            let mut reading = raised.destination.database.read().await?;
            let doubtful = entry::doubtful(&mut reading, ledger, &judge, &[&page.row]).await?;
            let recorded = entry::find(&mut reading, ledger, &[&page.row]).await?;
            reading.rollback().await?;
            Ok::<_, DatabaseError>((doubtful, recorded))
        });
        let (doubtful, recorded) = look.await?;
        Ok(doubtful.is_empty() && !recorded.iter().any(|entry| judge.redoes(entry)))
    }

    /// The keys of its units that have rows of their own, because they failed.
    pub(crate) async fn unapplied(&self, page: &BulkPage<'_, T>) -> Result<HashSet<String>> {
        let (Some((_, first)), Some((_, last))) = (page.items.first(), page.items.last()) else {
            return Ok(HashSet::new());
        };
        let (ledger, raised) = (self.ledger().await?, &self.fence.raised);
        let found: Vec<(String,)> = retried(|| async {
            let mut reading = raised.destination.database.read().await?;
            let find = catalog::UNIT_UNAPPLIED.bind(ledger).bind(first.key.as_str()).bind(last.key.as_str());
            reading.fetch_all(find).await
        })
        .await?;
        Ok(found.into_iter().map(|(key,)| key).collect())
    }

    /// A transaction under the fence in which neither this page nor one behind it is recorded any more.
    pub(crate) async fn begin_page(&self, page: &BulkPage<'_, T>) -> Result<Transaction> {
        let ledger = self.ledger().await?;
        let mut transaction = self.fence.raised.write().await?;
        let forget = catalog::UNIT_FORGET_PAGES.bind(ledger).bind(page.row.key.as_str());
        transaction.execute(forget.bind(page.after.as_str())).await?;
        Ok(transaction)
    }

    /// Records in such a transaction that all of the page is written.
    pub(crate) async fn record_page(
        &self,
        transaction: &mut Transaction,
        page: &BulkPage<'_, T>,
    ) -> Result<()> {
        let (ledger, judge) = (self.ledger().await?, self.judge());
        let record =
            catalog::UNIT_PAGE.bind(ledger).bind(page.row.key.as_str()).bind(i64::from(judge.version));
        let record = record.bind(judge.fence).bind(judge.attempt).bind(page.row.fingerprint);
        transaction.execute(record.bind(page.said.as_str()).bind(judge.nonce)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_same_in_any_order_and_another_one_for_anything_else() {
        let hash = |texts: &[&str]| {
            let mut sum = Sum::default();
            texts.iter().filter_map(|text| Fingerprint::of_json(text).ok()).for_each(|one| sum.add(one));
            sum.hex()
        };
        assert_eq!(hash(&["1", "2", "3"]), hash(&["3", "1", "2"]));
        for other in [&["1", "2"][..], &["1", "2", "2"], &["1", "2", "3", "3"]] {
            assert_ne!(hash(&["1", "2", "3"]), hash(other));
        }
    }
}
