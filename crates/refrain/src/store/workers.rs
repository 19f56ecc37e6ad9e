//! Workers: processes that hold runs and effects, and until when each counts as alive.
//!
//! That time is the lease of the worker. It is one row, apart from the leases of claimed runs (`sql/lease`), so that a heartbeat never
//! waits for them. An expired worker stays expired: a
//! rescuer may be taking over from it.

use std::time::Duration;

use super::{Result, Store, StoreError, catalog, microseconds, migrate, with_retries};
use crate::database::{DatabaseError, Transaction, place, retried};
use crate::schemas::{LEDGER, STORE};

/// A worker without a heartbeat.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct Silent {
    pub(crate) id: i64,
    pub(crate) process: String,
    /// Whether it only sends effects.
    pub(crate) sends: bool,
}

/// What a worker is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerTask {
    /// It executes attempts.
    Attempts,
    /// It only sends effects.
    Sends,
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
pub(crate) async fn register(store: &Store, process: &str, lease: Duration, task: WorkerTask) -> Result<i64> {
    with_retries(|| async {
        let mut transaction = store.database.write().await?;
        migrate::check_for_worker(&mut transaction).await?;
        let worker = insert(&mut transaction, process, lease, task).await?;
        transaction.commit(place!("register-worker")).await?;
        Ok(worker)
    })
    .await
}

/// Inserts a worker in a transaction of the caller, which has checked the schema.
pub(crate) async fn insert(
    transaction: &mut Transaction,
    process: &str,
    lease: Duration,
    task: WorkerTask,
) -> Result<i64> {
    let register = catalog::WORKER_REGISTER.bind(process).bind(microseconds(lease));
    let register = register.bind(STORE.known()).bind(LEDGER.known()).bind(task == WorkerTask::Sends);
    let row: Option<(i64,)> = transaction.fetch_optional(register).await?;
    let (id,) = row.ok_or_else(|| StoreError::Broken("a worker got no number".to_owned()))?;
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

/// Workers that have expired, and those that do not exist although they have leases or have reserved effects.
pub(crate) async fn silent(store: &Store, limit: i64) -> Result<Vec<Silent>> {
    let mut transaction = store.database.read().await?;
    let mut silent: Vec<Silent> = transaction.fetch_all(catalog::WORKER_EXPIRED.bind(limit)).await?;
    for missing in [&catalog::WORKER_MISSING, &catalog::WORKER_MISSING_SENDERS] {
        let missing: Vec<Silent> = transaction.fetch_all(missing.bind(limit)).await?;
        silent.extend(
            missing
                .into_iter()
                .filter(|one| silent.iter().all(|known| known.id != one.id))
                .collect::<Vec<_>>(),
        );
    }
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
