//! Counts dedupes by job and minute, for the watcher.
//!
//! They are read by their numbers, a page at a time. Numbers follow the time closely enough, and every dedupe would pay for an index
//! by time.

use super::queue_line::JobNumber;
use super::{Result, Store, catalog};

/// The most dedupes that are counted together.
pub(crate) const PAGE: i64 = 10_000;

/// The dedupes of one job in one minute, as far as they are on a page.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct Counted {
    pub(crate) job: JobNumber,
    pub(crate) name: String,
    /// Since 1970.
    pub(crate) minute: i64,
    pub(crate) dedupes: i64,
    /// The number of the first of them.
    pub(crate) first: i64,
}

/// The number of the last dedupe; 0 if there is none.
pub(crate) async fn last(store: &Store) -> Result<i64> {
    let mut transaction = store.database.read().await?;
    let last: Option<(i64,)> = transaction.fetch_optional(catalog::DEDUPE_LAST.bound()).await?;
    Ok(last.map_or(0, |(last,)| last))
}

/// Counts those with numbers from `first` to `last`.
pub(crate) async fn counted(store: &Store, first: i64, last: i64) -> Result<Vec<Counted>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::DEDUPE_COUNT.bind(first).bind(last)).await?)
}
