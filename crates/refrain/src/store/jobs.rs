//! Jobs by number: a store knows a job by a small one, which keeps its tables narrow.

use std::collections::HashMap;

use refrain_core::JobName;

use super::line::JobNumber;
use super::{Result, Store, StoreError, catalog};
use crate::database::{place, retried};

/// A job as it is stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct JobRow {
    pub(crate) id: JobNumber,
    pub(crate) name: String,
    pub(crate) identity: String,
}

/// Gives a job that is new its number. One that was called otherwise keeps the number, the runs and the first name of the
/// newest of its former names that is known.
pub(crate) async fn register(
    store: &Store,
    name: &JobName,
    identity: &JobName,
    formerly: &[JobName],
) -> Result<JobRow> {
    let found: Option<JobRow> = retried(|| async {
        let mut transaction = store.database.write().await?;
        let mut renamed = 0;
        for former in formerly {
            if renamed == 0 {
                let rename = catalog::JOB_RENAME.bind(former.as_str()).bind(name.as_str());
                renamed = transaction.execute(rename).await?;
            }
        }
        if renamed == 0 {
            transaction.execute(catalog::JOB_REGISTER.bind(name.as_str()).bind(identity.as_str())).await?;
        }
        let found = transaction.fetch_optional(catalog::JOB_FIND.bind(name.as_str())).await?;
        transaction.commit(place!("register")).await?;
        Ok(found)
    })
    .await?;
    found.ok_or_else(|| StoreError::Broken(format!("the job {name} was not kept")))
}

/// All jobs, by name.
pub(crate) async fn all(store: &Store) -> Result<HashMap<String, JobRow>> {
    let mut transaction = store.database.read().await?;
    let rows: Vec<JobRow> = transaction.fetch_all(catalog::JOB_LIST.bound()).await?;
    Ok(rows.into_iter().map(|row| (row.name.clone(), row)).collect())
}

/// The number of a job, if it was ever registered.
pub(crate) async fn find(store: &Store, name: &JobName) -> Result<Option<JobRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_optional(catalog::JOB_FIND.bind(name.as_str())).await?)
}

/// A job, when it has something to open, and how many timetables it has had.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct JobStanding {
    pub(crate) id: JobNumber,
    pub(crate) name: String,
    pub(crate) paused_at: Option<i64>,
    pub(crate) next_at: Option<i64>,
    pub(crate) revisions: i64,
}

/// All jobs by name, and when each has something to open.
pub(crate) async fn standing(store: &Store) -> Result<Vec<JobStanding>> {
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
