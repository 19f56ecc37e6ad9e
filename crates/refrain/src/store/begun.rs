//! Commands that must not be executed twice: a mark is there before one begins, and goes in the transaction that records
//! how it ended.
//!
//! Removed before that, a crash between the two would let the next attempt do it again; removed after it, a crash would
//! hold back a run of which everything is known.

use super::finish::Ending;
use super::{Result, Store, catalog};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};

/// Writes down that the command of an attempt is about to begin.
pub(crate) async fn mark(store: &Store, run: i64, attempt: i32) -> Result<()> {
    Ok(retried(|| async {
        let mut transaction = store.database.write().await?;
        transaction.execute(catalog::BEGUN_MARK.bind(run).bind(attempt)).await?;
        transaction.commit(place!("begun")).await
    })
    .await?)
}

/// The last attempt before this one whose command began and of which it is not known how it ended.
pub(crate) async fn find(store: &Store, run: i64, attempt: i32) -> Result<Option<i32>> {
    let mut transaction = store.database.read().await?;
    let find = catalog::BEGUN_FIND.bind(run).bind(attempt);
    let row: Option<(i32,)> = transaction.fetch_optional(find).await?;
    Ok(row.map(|(attempt,)| attempt))
}

/// Removes the marks of attempts whose end is known, with the record of it.
pub(crate) async fn settle(
    transaction: &mut Transaction,
    endings: &[&Ending],
) -> std::result::Result<(), DatabaseError> {
    let settled = || endings.iter().filter(|ending| ending.settles).map(|ending| &ending.held);
    if settled().next().is_none() {
        return Ok(());
    }
    let rows = Rows::default()
        .integers(settled().map(|held| held.run))
        .integers(settled().map(|held| i64::from(held.attempt)));
    transaction.execute(catalog::BEGUN_SETTLE.bind(rows)).await?;
    Ok(())
}
