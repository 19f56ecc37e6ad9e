//! Commands that must not be executed twice: a mark is written before one begins, and removed in the transaction that records how it
//! ended.
//!
//! If it were removed before, a crash between the two would let the next attempt execute the command again; if it were removed
//! later, a crash would hold a run whose end is known.

use super::finish::{ClaimedAttempt, Ending};
use super::{Result, Store, catalog};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};
use crate::failpoint;

/// Marks the command of an attempt that is about to begin. False if the attempt was taken over: then it must not begin, and a mark
/// would hold the run for nothing.
pub(crate) async fn mark(store: &Store, held: &ClaimedAttempt) -> Result<bool> {
    Ok(retried(|| async {
        let mut transaction = store.database.write().await?;
        let place = catalog::QUEUE_HOLD.bind(held.line.0).bind(held.run).bind(held.lease).bind(held.attempt);
        let attempt: Option<(i32,)> = transaction.fetch_optional(place).await?;
        if attempt.is_none() && !failpoint::is_weakened("begun.unheld") {
            return Ok(false);
        }
        transaction.execute(catalog::BEGUN_MARK.bind(held.run).bind(held.attempt)).await?;
        transaction.commit(place!("begun")).await?;
        Ok(true)
    })
    .await?)
}

/// The last attempt before this one whose command began, if its end is not known.
pub(crate) async fn find(store: &Store, run: i64, attempt: i32) -> Result<Option<i32>> {
    let mut transaction = store.database.read().await?;
    let find = catalog::BEGUN_FIND.bind(run).bind(attempt);
    let row: Option<(i32,)> = transaction.fetch_optional(find).await?;
    Ok(row.map(|(attempt,)| attempt))
}

/// Removes the marks of attempts whose end is known, in the transaction that records it.
pub(crate) async fn remove(
    transaction: &mut Transaction,
    endings: &[&Ending],
) -> std::result::Result<(), DatabaseError> {
    let ended = || endings.iter().filter(|ending| ending.clears_mark).map(|ending| &ending.held);
    if ended().next().is_none() {
        return Ok(());
    }
    let rows = Rows::default()
        .integers(ended().map(|held| held.run))
        .integers(ended().map(|held| i64::from(held.attempt)));
    transaction.execute(catalog::BEGUN_REMOVE.bind(rows)).await?;
    Ok(())
}
