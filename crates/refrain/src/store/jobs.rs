//! Jobs by number: a store knows a job by a small one, which keeps its tables narrow.

use std::collections::HashMap;

use refrain_core::JobName;

use super::line::JobNumber;
use super::{Result, Store, StoreError, catalog};
use crate::database::{place, retried};

/// The number of a job; one that is new gets one.
pub(crate) async fn register(store: &Store, name: &JobName) -> Result<JobNumber> {
    if let Some(number) = find(store, name).await? {
        return Ok(number);
    }
    retried(|| async {
        let mut transaction = store.database.write().await?;
        transaction.execute(catalog::JOB_REGISTER.bind(name.as_str())).await?;
        transaction.commit(place!("register")).await
    })
    .await?;
    let found = find(store, name).await?;
    found.ok_or_else(|| StoreError::Broken(format!("the job {name} was not kept")))
}

/// The numbers of all jobs.
pub(crate) async fn all(store: &Store) -> Result<HashMap<String, JobNumber>> {
    let mut transaction = store.database.read().await?;
    let rows: Vec<(JobNumber, String)> = transaction.fetch_all(catalog::JOB_LIST.bound()).await?;
    Ok(rows.into_iter().map(|(id, name)| (name, id)).collect())
}

/// The number of a job, if it was ever registered.
pub(crate) async fn find(store: &Store, name: &JobName) -> Result<Option<JobNumber>> {
    let mut transaction = store.database.read().await?;
    let row: Option<(JobNumber,)> = transaction.fetch_optional(catalog::JOB_FIND.bind(name.as_str())).await?;
    Ok(row.map(|(id,)| id))
}

/// A job that was ever registered.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct JobRow {
    pub(crate) id: JobNumber,
    pub(crate) name: String,
    pub(crate) paused_at: Option<i64>,
    pub(crate) next_at: Option<i64>,
    pub(crate) revisions: i64,
}

/// All jobs by name, and when each has something to open.
pub(crate) async fn standing(store: &Store) -> Result<Vec<JobRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::JOB_STANDING.bound()).await?)
}

/// Since when a job is paused, if it is.
pub(crate) async fn paused_at(store: &Store, job: JobNumber) -> Result<Option<i64>> {
    let mut transaction = store.database.read().await?;
    let row: Option<(Option<i64>,)> = transaction.fetch_optional(catalog::JOB_PAUSED.bind(job)).await?;
    Ok(row.and_then(|(paused_at,)| paused_at))
}

/// Stops claims of a job, or allows them again. Gives whether that changed anything.
pub(crate) async fn set_paused(store: &Store, job: JobNumber, paused: bool) -> Result<bool> {
    let statement = if paused { &catalog::JOB_PAUSE } else { &catalog::JOB_RESUME };
    let changed = retried(|| async {
        let mut transaction = store.database.write().await?;
        let changed = transaction.execute(statement.bind(job)).await?;
        transaction.commit(place!("pause")).await?;
        Ok(changed)
    });
    Ok(changed.await? > 0)
}
