//! Workers: the holders of leases, and whether they are alive.
//!
//! The heartbeat is one row per worker, apart from the leases, so that it never waits for them. An expired worker stays expired: a
//! rescuer may be taking over from it.

use std::time::Duration;

use super::{Result, Store, StoreError, catalog, microseconds, migrate, with_retries};
use crate::database::{DatabaseError, place, retried};
use crate::schemas::{LEDGER, STORE};

/// A worker without a heartbeat.
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

/// Registers a worker for `lease`. Returns its number.
pub(crate) async fn register(store: &Store, process: &str, lease: Duration) -> Result<i64> {
    let registered = with_retries(|| async {
        let mut transaction = store.database.write().await?;
        migrate::check_for_worker(&mut transaction).await?;
        let register = catalog::WORKER_REGISTER.bind(process).bind(microseconds(lease));
        let register = register.bind(STORE.known()).bind(LEDGER.known());
        let row: Option<(i64,)> = transaction.fetch_optional(register).await?;
        transaction.commit(place!("register-worker")).await?;
        Ok(row)
    });
    let (id,) = registered.await?.ok_or_else(|| StoreError::Broken("a worker got no number".to_owned()))?;
    Ok(id)
}

/// Renews the registration of a worker for another `lease`. False if it had expired.
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

/// All registered workers.
pub(crate) async fn list(store: &Store, limit: i64) -> Result<Vec<WorkerRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::WORKER_LIST.bind(limit)).await?)
}

/// Workers that have expired, and those that do not exist although they have leases.
pub(crate) async fn silent(store: &Store, limit: i64) -> Result<Vec<Silent>> {
    let mut transaction = store.database.read().await?;
    let mut silent: Vec<Silent> = transaction.fetch_all(catalog::WORKER_EXPIRED.bind(limit)).await?;
    let missing: Vec<Silent> = transaction.fetch_all(catalog::WORKER_MISSING.bind(limit)).await?;
    silent.extend(missing);
    Ok(silent)
}

/// Workers that have not expired and whose process names begin so.
pub(crate) async fn near(store: &Store, beginning: &str, limit: i64) -> Result<Vec<Silent>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::WORKER_NEAR.bind(beginning).bind(limit)).await?)
}

/// Whether a process has a worker that has not expired.
pub(crate) async fn is_heard_of(store: &Store, process: &str) -> Result<bool> {
    let mut transaction = store.database.read().await?;
    let worker: Option<(i64,)> = transaction.fetch_optional(catalog::WORKER_ALIVE.bind(process)).await?;
    Ok(worker.is_some())
}

/// Ends the registration of a worker: runs that it holds are taken over at once, and its row is deleted when it holds none. This waits
/// for a claim whose commit is in flight: it would become the lease of a worker that does not exist.
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

/// Running runs that the operator has cancelled.
pub(crate) async fn cancellations(store: &Store, limit: i64) -> Result<Vec<i64>> {
    let mut transaction = store.database.read().await?;
    let runs: Vec<(i64,)> = transaction.fetch_all(catalog::CANCELLATION_LIST.bind(limit)).await?;
    Ok(runs.into_iter().map(|(run,)| run).collect())
}
