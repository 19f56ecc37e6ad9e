//! Units that an operator wants retried, and that may have been corrected at their source.
//!
//! The source may have other content of such a unit by now, but it is not read again behind the checkpoint. So the position
//! that the source was read from is kept with the unit. A requested retry is a failed unit with zero failures; it lasts until
//! the unit is tried.

use super::units::{FAILED_MAX, Units};
use super::{Result, catalog};
use crate::database::retried;
use crate::user_database::Backend;

/// A unit, or a malformed record, that an operator wants retried.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct RetryRequest {
    pub(crate) key: String,
    /// The position that the source was read from when it was met.
    pub(crate) place: String,
}

impl<DB: Backend, T> Units<DB, T> {
    /// The requested retries, at most a thousand.
    pub(crate) async fn retry_requests(&self) -> Result<Vec<RetryRequest>> {
        let ledger = self.ledger().await?;
        let found = retried(|| async {
            let mut reading = self.fence.raised.destination.database.read().await?;
            reading.fetch_all(catalog::UNIT_ASKED.bind(ledger).bind(FAILED_MAX)).await
        });
        Ok(found.await?)
    }
}
