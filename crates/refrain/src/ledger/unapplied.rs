//! The ledgers that an attempt has touched, so that at its end somebody can ask what it left there.
//!
//! An attempt that meets no unit may still belong to a run that has one parked: a checkpoint has passed it, and nobody shows
//! it any more. Such a run is not done.

use std::sync::{Arc, Mutex, PoisonError};

use super::destination::Destination;
use super::{Result, catalog};

/// Ledgers, and the fence of the run at each of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Touched(Arc<Mutex<Vec<Place>>>);

#[derive(Debug, Clone)]
struct Place {
    destination: Destination,
    fence: i64,
    ledger: i64,
}

/// Units that a run has left unapplied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) count: i64,
    pub(crate) first: String,
    /// How many of them are in doubt.
    pub(crate) doubtful: i64,
}

impl Touched {
    pub(crate) fn note(&self, destination: &Destination, fence: i64, ledger: i64) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (&destination.id, fence, ledger);
        if places.iter().all(|place| (&place.destination.id, place.fence, place.ledger) != name) {
            places.push(Place { destination: destination.clone(), fence, ledger });
        }
    }

    /// What the run has left unapplied, in this attempt or an earlier one.
    pub(crate) async fn left(&self) -> Result<Option<Left>> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // In a box: a query would make the future of every attempt large, also of one that has touched no ledger.
        if places.is_empty() { Ok(None) } else { Box::pin(left_at(places)).await }
    }
}

async fn left_at(places: Vec<Place>) -> Result<Option<Left>> {
    let mut left: Option<Left> = None;
    for Place { destination, fence, ledger } in places {
        let mut transaction = destination.database.read().await?;
        let found: Option<(i64, Option<String>, i64)> =
            transaction.fetch_optional(catalog::UNIT_LEFT.bind(ledger).bind(fence)).await?;
        if let Some((count, Some(first), doubtful)) = found {
            let sum = left.get_or_insert(Left { count: 0, first, doubtful: 0 });
            sum.count += count;
            sum.doubtful += doubtful;
        }
    }
    Ok(left)
}
