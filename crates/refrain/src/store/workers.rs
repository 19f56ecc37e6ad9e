//! Workers: who holds leases, and whether they are alive.
//!
//! The heartbeat is one row per worker, apart from the leases, so that it never waits behind them. A worker that has
//! expired stays expired: whoever takes over from it may be in the middle of that.

use std::time::Duration;

use super::{Result, Store, StoreError, catalog, microseconds};
use crate::database::{DatabaseError, place, retried};

/// A worker that has not been heard of, or will not be.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct Silent {
    pub(crate) id: i64,
    pub(crate) process: String,
}

/// A worker as it is stored, and how many runs it holds.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct WorkerRow {
    pub(crate) id: i64,
    pub(crate) process: String,
    pub(crate) started_at: i64,
    pub(crate) expires_at: i64,
    pub(crate) runs: i64,
}

/// Registers a worker that is alive for `lease`. Gives its number.
pub(crate) async fn register(store: &Store, process: &str, lease: Duration) -> Result<i64> {
    let registered = retried(|| async {
        let mut transaction = store.database.write().await?;
        let register = catalog::WORKER_REGISTER.bind(process).bind(microseconds(lease));
        let row: Option<(i64,)> = transaction.fetch_optional(register).await?;
        transaction.commit(place!("register-worker")).await?;
        Ok(row)
    });
    let (id,) = registered.await?.ok_or_else(|| StoreError::Broken("a worker got no number".to_owned()))?;
    Ok(id)
}

/// Says that a worker is alive for another `lease`. False if it had expired.
pub(crate) async fn beat(
    store: &Store,
    worker: i64,
    lease: Duration,
) -> std::result::Result<bool, DatabaseError> {
    let mut transaction = store.database.write().await?;
    let beaten = transaction.execute(catalog::WORKER_BEAT.bind(worker).bind(microseconds(lease))).await?;
    transaction.commit(place!("beat")).await?;
    Ok(beaten > 0)
}

/// All workers that have not left.
pub(crate) async fn list(store: &Store, limit: i64) -> Result<Vec<WorkerRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::WORKER_LIST.bind(limit)).await?)
}

/// Workers that have not been heard of, and those that do not exist although they have leases.
pub(crate) async fn silent(store: &Store, limit: i64) -> Result<Vec<Silent>> {
    let mut transaction = store.database.read().await?;
    let mut silent: Vec<Silent> = transaction.fetch_all(catalog::WORKER_EXPIRED.bind(limit)).await?;
    let missing: Vec<Silent> = transaction.fetch_all(catalog::WORKER_MISSING.bind(limit)).await?;
    silent.extend(missing);
    Ok(silent)
}

/// Workers that have not expired and whose processes are named with this beginning.
pub(crate) async fn near(store: &Store, beginning: &str, limit: i64) -> Result<Vec<Silent>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::WORKER_NEAR.bind(beginning).bind(limit)).await?)
}

/// Whether a process is heard of under any number.
pub(crate) async fn is_heard_of(store: &Store, process: &str) -> Result<bool> {
    let mut transaction = store.database.read().await?;
    let worker: Option<(i64,)> = transaction.fetch_optional(catalog::WORKER_ALIVE.bind(process)).await?;
    Ok(worker.is_some())
}

/// A worker leaves: what it holds is taken over at once, and it is forgotten when it holds nothing. A claim of it whose
/// commit is under way is waited for: it would be the lease of a worker that does not exist.
pub(crate) async fn retire(store: &Store, worker: i64) -> Result<()> {
    Ok(retried(|| async {
        let mut transaction = store.database.write().await?;
        let _: Option<(i64,)> = transaction.fetch_optional(catalog::WORKER_WAIT.bind(worker)).await?;
        transaction.execute(catalog::WORKER_EXPIRE.bind(worker)).await?;
        transaction.execute(catalog::WORKER_REMOVE.bind(worker)).await?;
        transaction.commit(place!("retire")).await
    })
    .await?)
}

/// Runs under way that a person wants to end.
pub(crate) async fn cancellations(store: &Store, limit: i64) -> Result<Vec<i64>> {
    let mut transaction = store.database.read().await?;
    let runs: Vec<(i64,)> = transaction.fetch_all(catalog::CANCELLATION_LIST.bind(limit)).await?;
    Ok(runs.into_iter().map(|(run,)| run).collect())
}
