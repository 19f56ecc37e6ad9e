//! Units that a person wants tried again, and that may have been mended at their source.
//!
//! The source may say something else of such a unit by now, but behind the checkpoint nobody reads it any more. So it is kept
//! with the unit where the source was read from when the unit was met. The wish is told by the failures of the unit, which are
//! none; it lasts until the unit is tried.

use super::backend::Backend;
use super::units::{FAILED_MAX, Units};
use super::{Result, catalog};
use crate::database::retried;

/// A unit, or a record that was none, that a person wants tried again.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct RetryRequest {
    pub(crate) key: String,
    /// Where the source was read from when it was met.
    pub(crate) place: String,
}

impl<DB: Backend, T> Units<DB, T> {
    /// Those that a person wants tried again, a thousand at most.
    pub(crate) async fn asked(&self) -> Result<Vec<RetryRequest>> {
        let ledger = self.ledger().await?;
        let asked = retried(|| async {
            let mut reading = self.fence.raised.destination.database.read().await?;
            reading.fetch_all(catalog::UNIT_ASKED.bind(ledger).bind(FAILED_MAX)).await
        });
        Ok(asked.await?)
    }
}
