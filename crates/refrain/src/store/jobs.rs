//! Jobs by number: the store refers to a job by a small number, which keeps its tables narrow.

use std::collections::HashMap;

use refrain_core::JobName;
use refrain_core::person::Verb;

use super::audit::{self, Decision};
use super::queue_line::JobNumber;
use super::{Result, Store, StoreError, catalog, with_retries};
use crate::database::connection::{Numbered, Record};
use crate::database::statement::{Bound, Rows};
use crate::database::{Transaction, place, retried};

/// A job as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct JobRow {
    pub(crate) id: JobNumber,
    pub(crate) name: String,
    pub(crate) identity: String,
    /// Whether a file of the project describes it.
    pub(crate) from_file: bool,
}

impl JobRow {
    /// Why the row cannot be read, if it cannot.
    pub(crate) fn fault(&self) -> Option<String> {
        let of = |what: &str, name: &str| {
            JobName::parse(name).err().map(|error| format!("its {what}: {}", error.reason()))
        };
        of("name", &self.name).or_else(|| of("first name", &self.identity))
    }
}

/// The result of registering a job.
pub(crate) enum Registered {
    /// The job has this row.
    As(JobRow),
    /// The name belongs to another job, or two jobs that should become one both have runs.
    Refused(JobNameTaken),
}

/// Why a job cannot have a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobNameTaken {
    /// The job that had the name has another one now.
    #[error(
        "`{name}` is a former name of the job `{now}`, whose runs and units are stored under that name\n  these files are older than the store, or choose another name for a new job"
    )]
    Former {
        /// The requested name.
        name: String,
        /// The present name of the job.
        now: String,
    },
    /// Both names have runs of their own.
    #[error(
        "`{name}` names `{former}` as its former name, but both have runs of their own, which cannot become one history\n  remove `formerly`"
    )]
    Both {
        /// The new name.
        name: String,
        /// The former one.
        former: String,
    },
}

/// Gives a new job its number. A renamed job keeps the number, the runs and the first name of its newest former name that is
/// registered.
pub(crate) async fn register(
    store: &Store,
    name: &JobName,
    identity: &JobName,
    formerly: &[JobName],
) -> Result<Registered> {
    with_retries(|| registered(store, name, identity, formerly)).await
}

async fn registered(
    store: &Store,
    name: &JobName,
    identity: &JobName,
    formerly: &[JobName],
) -> Result<Registered> {
    let mut transaction = store.database.write().await?;
    let mut own = named(&mut transaction, name).await?;
    if let Some(row) = own.as_ref().filter(|row| row.name != name.as_str()) {
        let (name, now) = (name.to_string(), row.name.clone());
        return Ok(Registered::Refused(JobNameTaken::Former { name, now }));
    }
    for former in formerly {
        let Some(row) = named(&mut transaction, former).await? else { continue };
        if row.name == name.as_str() {
            break;
        }
        if let Some(new) = &own {
            let used: Option<(i32,)> = transaction.fetch_optional(catalog::JOB_USED.bind(new.id)).await?;
            if used.is_some() {
                let (name, former) = (name.to_string(), former.to_string());
                return Ok(Registered::Refused(JobNameTaken::Both { name, former }));
            }
            super::schedules::remove(&mut transaction, new.id).await?;
            transaction.execute(catalog::JOB_UNNAME.bind(new.id)).await?;
            transaction.execute(catalog::JOB_REMOVE.bind(new.id)).await?;
        }
        transaction.execute(catalog::JOB_RENAME.bind(row.id).bind(name.as_str())).await?;
        transaction.execute(catalog::JOB_NAME.bind(name.as_str()).bind(row.id)).await?;
        own = named(&mut transaction, name).await?;
        break;
    }
    if own.is_none() {
        transaction.execute(catalog::JOB_REGISTER.bind(name.as_str()).bind(identity.as_str())).await?;
        let row: Option<JobRow> = transaction.fetch_optional(catalog::JOB_FIND.bind(name.as_str())).await?;
        if let Some(row) = &row {
            transaction.execute(catalog::JOB_NAME.bind(name.as_str()).bind(row.id)).await?;
        }
        own = row;
    }
    let own = own.ok_or_else(|| StoreError::Broken(format!("the job {name} was not stored")))?;
    transaction.commit(place!("register")).await?;
    Ok(Registered::As(own))
}

async fn named(transaction: &mut Transaction, name: &JobName) -> Result<Option<JobRow>> {
    Ok(transaction.fetch_optional(catalog::JOB_NAMED.bind(name.as_str())).await?)
}

/// Records that files of the project define these jobs.
pub(crate) async fn are_from_files(store: &Store, jobs: &[JobNumber]) -> Result<()> {
    if jobs.is_empty() {
        return Ok(());
    }
    Ok(retried(|| async {
        let mut transaction = store.database.write().await?;
        let rows = Rows::default().integers(jobs.iter().map(|job| i64::from(*job)));
        transaction.execute(catalog::JOB_FROM_FILE.bind(rows)).await?;
        transaction.commit(place!("register")).await
    })
    .await?)
}

/// The jobs that can be read. One that cannot is logged and left out: it must not hide the others.
async fn readable<T: Record>(
    transaction: &mut Transaction,
    bound: Bound<'_>,
    fault: impl Fn(&T) -> Option<String>,
) -> Result<Vec<T>> {
    let rows: Vec<Numbered<T>> = transaction.fetch_all(bound).await?;
    let mut readable = Vec::with_capacity(rows.len());
    for Numbered { id, read } in rows {
        match read.map_err(|error| error.to_string()).and_then(|row| fault(&row).map_or(Ok(row), Err)) {
            Ok(row) => readable.push(row),
            Err(fault) => {
                tracing::error!("job {id} is not listed: {fault}; `refrain fsck` lists what is wrong");
            }
        }
    }
    Ok(readable)
}

/// All jobs, by name.
pub(crate) async fn all(store: &Store) -> Result<HashMap<String, JobRow>> {
    let mut transaction = store.database.read().await?;
    let rows = readable(&mut transaction, catalog::JOB_LIST.bound(), JobRow::fault).await?;
    Ok(rows.into_iter().map(|row| (row.name.clone(), row)).collect())
}

/// The number of a job, if it was ever registered.
pub(crate) async fn find(store: &Store, name: &JobName) -> Result<Option<JobRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_optional(catalog::JOB_FIND.bind(name.as_str())).await?)
}

/// A job, when its next window is due, and how many timetables it has had.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct JobSchedule {
    pub(crate) id: JobNumber,
    pub(crate) name: String,
    pub(crate) paused_at: Option<i64>,
    pub(crate) next_at: Option<i64>,
    pub(crate) revisions: i64,
}

impl JobSchedule {
    /// Why the row cannot be read, if it cannot.
    pub(crate) fn fault(&self) -> Option<String> {
        let instants = [self.paused_at, self.next_at].into_iter().flatten();
        let instant =
            instants.filter_map(|at| super::instant(at).err()).map(|error| error.to_string()).next();
        instant
            .or_else(|| JobName::parse(&self.name).err().map(|error| format!("its name: {}", error.reason())))
    }
}

/// All jobs by name, and when the next window of each is due.
pub(crate) async fn schedules(store: &Store) -> Result<Vec<JobSchedule>> {
    let mut transaction = store.database.read().await?;
    readable(&mut transaction, catalog::JOB_SCHEDULES.bound(), JobSchedule::fault).await
}

/// Since when a job is paused, if it is.
pub(crate) async fn paused_at(store: &Store, job: JobNumber) -> Result<Option<i64>> {
    let mut transaction = store.database.read().await?;
    let row: Option<(Option<i64>,)> = transaction.fetch_optional(catalog::JOB_PAUSED.bind(job)).await?;
    Ok(row.and_then(|(paused_at,)| paused_at))
}

/// Pauses or resumes a job. Returns whether that changed anything.
pub(crate) async fn set_paused(store: &Store, job: JobNumber, decision: &Decision) -> Result<bool> {
    let statement = if decision.verb == Verb::Pause { &catalog::JOB_PAUSE } else { &catalog::JOB_RESUME };
    let changed = retried(|| async {
        let mut transaction = store.database.write().await?;
        let changed = transaction.execute(statement.bind(job)).await?;
        if changed > 0 {
            audit::record(&mut transaction, decision).await?;
        }
        transaction.commit(place!("pause")).await?;
        Ok(changed)
    });
    Ok(changed.await? > 0)
}
