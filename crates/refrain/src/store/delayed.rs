//! Attempts that wait for their time: they are kept out of the queue, so that a thousand of them do not stand before
//! the one that may begin.

use std::time::Duration;

use super::{Result, Store, catalog, settled};
use crate::database::place;
use crate::database::statement::Rows;

#[derive(sqlx_macros::FromRow)]
struct Delayed {
    run: i64,
    line: i64,
    attempt: i32,
    spent: i32,
    suspicion: i32,
    lane: bool,
}

/// Moves attempts whose time has come into the queue, at most `limit`. Gives how many.
pub(crate) async fn wake(store: &Store, limit: usize) -> Result<usize> {
    // Mostly there is nothing to move, and looking is cheaper than a transaction that writes.
    if next(store).await? != Some(Duration::ZERO) {
        return Ok(0);
    }
    settled(|| woken(store, limit)).await
}

async fn woken(store: &Store, limit: usize) -> Result<usize> {
    let mut transaction = store.database.write().await?;
    let due = catalog::DELAYED_DUE.bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let mut due: Vec<Delayed> = transaction.fetch_all(due).await?;
    if due.is_empty() {
        return Ok(0);
    }
    let rows = Rows::default().integers(due.iter().map(|one| one.run));
    transaction.execute(catalog::DELAYED_LEAVE.bind(rows)).await?;
    due.sort_by_key(|one| (one.line, one.run));
    for line in due.chunk_by(|one, next| one.line == next.line) {
        let rows = Rows::default()
            .integers(line.iter().map(|one| one.run))
            .integers(line.iter().map(|one| i64::from(one.attempt)))
            .integers(line.iter().map(|one| i64::from(one.spent)))
            .integers(line.iter().map(|one| i64::from(one.suspicion)))
            .booleans(line.iter().map(|one| one.lane));
        let Some(first) = line.first() else { continue };
        transaction.execute(catalog::QUEUE_INSERT.bind(first.line).bind(rows)).await?;
    }
    transaction.commit(place!("wake")).await?;
    Ok(due.len())
}

/// How long until the first of them may begin; none if none waits.
pub(crate) async fn next(store: &Store) -> Result<Option<Duration>> {
    let mut transaction = store.database.read().await?;
    let row: Option<(Option<i64>,)> = transaction.fetch_optional(catalog::DELAYED_NEXT.bound()).await?;
    let left = row.and_then(|(at,)| at);
    Ok(left.map(|left| Duration::from_micros(u64::try_from(left).unwrap_or(0))))
}

/// Lets an attempt begin before its time: somebody is waiting for it.
pub(crate) async fn pull(store: &Store, run: i64) -> Result<bool> {
    settled(|| pulled(store, run)).await
}

async fn pulled(store: &Store, run: i64) -> Result<bool> {
    let mut transaction = store.database.write().await?;
    let found: Option<Delayed> = transaction.fetch_optional(catalog::DELAYED_PULL.bind(run)).await?;
    let Some(delayed) = found else { return Ok(false) };
    let rows = Rows::default()
        .integers([delayed.run])
        .integers([i64::from(delayed.attempt)])
        .integers([i64::from(delayed.spent)])
        .integers([i64::from(delayed.suspicion)])
        .booleans([delayed.lane]);
    transaction.execute(catalog::QUEUE_INSERT.bind(delayed.line).bind(rows)).await?;
    transaction.commit(place!("pull")).await?;
    Ok(true)
}
