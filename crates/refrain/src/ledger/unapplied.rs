//! The ledgers that an attempt has touched, so that its end can report the units that are left unapplied there.
//!
//! An attempt that meets no unit may still belong to a run with a parked one: a checkpoint has passed it, and the source does
//! not show it any more. Such a run is not done.

use std::sync::{Arc, Mutex, PoisonError};

use super::destination::Destination;
use super::{Result, catalog};

/// Ledgers, and the fence of the run at each of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TouchedLedgers(Arc<Mutex<Vec<TouchedLedger>>>);

#[derive(Debug, Clone)]
struct TouchedLedger {
    destination: Destination,
    fence: i64,
    ledger: i64,
}

/// Units that a run has left unapplied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnappliedUnits {
    pub(crate) count: i64,
    pub(crate) first: String,
    /// How many of them are in doubt.
    pub(crate) doubtful: i64,
}

impl TouchedLedgers {
    pub(crate) fn note(&self, destination: &Destination, fence: i64, ledger: i64) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (&destination.id, fence, ledger);
        if places.iter().all(|place| (&place.destination.id, place.fence, place.ledger) != name) {
            places.push(TouchedLedger { destination: destination.clone(), fence, ledger });
        }
    }

    /// The units that the run has left unapplied, in this attempt or an earlier one.
    pub(crate) async fn left(&self) -> Result<Option<UnappliedUnits>> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Boxed: a query would make the future of every attempt large, even of one that has touched no ledger.
        if places.is_empty() { Ok(None) } else { Box::pin(left_at(places)).await }
    }
}

async fn left_at(places: Vec<TouchedLedger>) -> Result<Option<UnappliedUnits>> {
    let mut left: Option<UnappliedUnits> = None;
    for TouchedLedger { destination, fence, ledger } in places {
        let mut transaction = destination.database.read().await?;
        let found: Option<(i64, Option<String>, i64)> =
            transaction.fetch_optional(catalog::UNIT_LEFT.bind(ledger).bind(fence)).await?;
        if let Some((count, Some(first), doubtful)) = found {
            let sum = left.get_or_insert(UnappliedUnits { count: 0, first, doubtful: 0 });
            sum.count += count;
            sum.doubtful += doubtful;
        }
    }
    Ok(left)
}
