//! Units without entries of their own: a page of them is one entry, with their number and a hash of their content.
//!
//! Nothing here prevents a unit from being written twice: the table does, with a unique key. The entry of a page says that
//! the whole page was written, so it need not be written when it comes again. The entry is valid only while no earlier page
//! has changed, because a unit may have moved between pages: writing a page deletes the entries of later ones in the same
//! transaction. Units that fail have entries of their own, as always.

use std::collections::HashSet;

use refrain_core::state::UnitEvent;
use refrain_core::{Fingerprint, Key};
use serde::Serialize;

use super::entry;
use super::judge::Arrival;
use super::unit_state;
use super::units::Units;
use super::{Result, catalog};
use crate::database::{DatabaseError, Transaction, retried};
use crate::user_database::Backend;

/// The prefix of the key of a page.
const PAGE: &str = "$page";

/// A page of units with one entry.
pub(crate) struct BulkPage<'i, T> {
    /// The units, one per key, in the order of keys.
    pub(crate) items: Vec<(&'i T, Arrival)>,
    /// The entry of the page.
    pub(crate) row: Arrival,
    said: String,
    after: String,
}

/// A hash of units that does not depend on their order.
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
    /// Units as a page: the nth of a position in the source. Units that occur twice are counted here.
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

    /// Whether exactly this page is recorded, in this version, and need not be written again.
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

    /// The keys of its units that have entries of their own, because they failed.
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

    /// Begins a transaction under the fence in which the entries of this page and of all later ones are deleted.
    pub(crate) async fn begin_page(&self, page: &BulkPage<'_, T>) -> Result<Transaction> {
        let ledger = self.ledger().await?;
        let mut transaction = self.fence.raised.write().await?;
        let forget = catalog::UNIT_FORGET_PAGES.bind(ledger).bind(page.row.key.as_str());
        transaction.execute(forget.bind(page.after.as_str())).await?;
        Ok(transaction)
    }

    /// Records in such a transaction that the whole page is written.
    pub(crate) async fn record_page(
        &self,
        transaction: &mut Transaction,
        page: &BulkPage<'_, T>,
    ) -> Result<()> {
        let (ledger, judge) = (self.ledger().await?, self.judge());
        let record = unit_state::page(UnitEvent::Applied, ledger, &judge, &page.row, &page.said)?;
        transaction.execute(record).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_the_content_and_not_on_its_order() {
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
