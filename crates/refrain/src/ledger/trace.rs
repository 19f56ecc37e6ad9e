//! The record of one unit, and the retry of one that is parked.

use jiff::Timestamp;
use refrain_core::state::{UnitEvent, UnitStatus};
use refrain_core::{Key, ProjectName};
use serde::Serializer;

use super::judge::status_of;
use super::{Ledger, Result, catalog, unit_state};
use crate::database::{Database, DatabaseError, place, retried};
use crate::store::instant;
use crate::user_database::Backend;

/// The most ledgers in which one key is looked up.
const LEDGERS_MAX: i64 = 1_000;

/// The record of a unit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct UnitRecord {
    /// The job.
    pub job: String,
    /// The scope.
    pub scope: String,
    /// The start of its window; empty for a permanent unit.
    pub window_start: String,
    /// The status.
    #[serde(serialize_with = "status_in_words")]
    pub status: UnitStatus,
    /// The version of the job that last tried it.
    pub version: u32,
    /// The time of that try, by the clock of its database.
    pub at: Timestamp,
    /// The key of the run that last tried it.
    pub run: Option<String>,
    /// The attempt of that run.
    pub attempt: Option<u64>,
    /// Its input, which is kept if it failed.
    pub input: Option<String>,
    /// The message of its failure.
    pub message: Option<String>,
    /// Since when it is in doubt: external work was begun for it, and its outcome is unknown.
    pub in_doubt_since: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn status_in_words<S: Serializer>(
    status: &UnitStatus,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&in_words(*status))
}

fn in_words(status: UnitStatus) -> String {
    match status {
        UnitStatus::Failed(times) => format!("failed {times} times"),
        status => status.state().to_string(),
    }
}

impl UnitRecord {
    /// What became of it, and how often it failed.
    pub fn status_in_words(&self) -> String {
        in_words(self.status)
    }
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    scope: String,
    window_start: String,
    status: String,
    version: i64,
    failures: i32,
    at: i64,
    attempt: Option<i32>,
    input: Option<String>,
    message: Option<String>,
    sent: Option<i64>,
    run: Option<String>,
}

/// The jobs of a project that have units in a database.
pub(crate) async fn jobs(database: &Database, project: &ProjectName) -> Result<Vec<String>> {
    let mut transaction = database.read().await?;
    let jobs: Vec<(String,)> = transaction.fetch_all(catalog::LEDGER_JOBS.bind(project.as_str())).await?;
    Ok(jobs.into_iter().map(|(job,)| job).collect())
}

/// The records under a key of a job, in every scope and window.
pub(crate) async fn trace(
    database: &Database,
    project: &ProjectName,
    job: &str,
    key: &Key,
) -> Result<Vec<UnitRecord>> {
    let mut transaction = database.read().await?;
    let trace = catalog::UNIT_TRACE.bind(project.as_str()).bind(job);
    let rows: Vec<Row> = transaction.fetch_all(trace.bind(key.as_str()).bind(LEDGERS_MAX)).await?;
    let records = rows.into_iter().map(|row| {
        Ok(UnitRecord {
            job: job.to_owned(),
            status: status_of(&row.status, row.failures),
            scope: row.scope,
            window_start: row.window_start,
            version: u32::try_from(row.version).unwrap_or(u32::MAX),
            at: instant(row.at)?,
            run: row.run,
            attempt: row.attempt.and_then(|attempt| u64::try_from(attempt).ok()),
            input: row.input,
            message: row.message,
            in_doubt_since: row.sent.map(instant).transpose()?,
        })
    });
    records.collect()
}

/// The first units that a run left unapplied, with their status and whether they are in doubt: `(run, scope, start of its window)`.
pub(crate) async fn left(
    database: &Database,
    project: &ProjectName,
    job: &str,
    (run, scope, start): (&str, &str, &str),
    limit: i64,
) -> Result<Vec<(String, String, bool)>> {
    let mut transaction = database.read().await?;
    let left = catalog::UNIT_LEFT_KEYS.bind(project.as_str()).bind(job).bind(run);
    Ok(transaction.fetch_all(left.bind(scope).bind(start).bind(limit)).await?)
}

/// Units of a run that are in doubt, in the order of keys, after a key: `(run, scope, start of its window)`. Each with the time it
/// was first sent and its message.
pub(crate) async fn in_doubt(
    database: &Database,
    project: &ProjectName,
    job: &str,
    (run, scope, start): (&str, &str, &str),
    after: &str,
    limit: i64,
) -> Result<Vec<(String, i64, Option<String>)>> {
    let mut transaction = database.read().await?;
    let doubts = catalog::UNIT_IN_DOUBT.bind(project.as_str()).bind(job).bind(run);
    Ok(transaction.fetch_all(doubts.bind(scope).bind(start).bind(after).bind(limit)).await?)
}

/// What an operator decides about a unit that is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitSettlement {
    /// It gets all its tries again.
    Retry,
    /// It was in doubt, and the work was done.
    Done,
}

/// Carries out the decision of an operator about units, in all ledgers of a job, or in those of one run: `(scope, start of its
/// window)`, in one transaction. Returns how many entries had these keys.
pub(crate) async fn settle(
    database: &Database,
    project: &ProjectName,
    job: &str,
    keys: &[Key],
    run: Option<(&str, &str)>,
    settlement: UnitSettlement,
) -> Result<u64> {
    let settled = retried(|| async {
        let mut transaction = database.write().await?;
        let (event, place) = match settlement {
            UnitSettlement::Retry => (UnitEvent::Retried, place!("unpark")),
            UnitSettlement::Done => (UnitEvent::Applied, place!("confirm")),
        };
        let mut settled = 0;
        for key in keys {
            let decide = match unit_state::decide(event, (project, job, key.as_str()), run) {
                Ok(decide) => decide,
                Err(error) => return Ok(Err(error)),
            };
            settled += transaction.execute(decide).await?;
        }
        transaction.commit(place).await?;
        Ok::<_, DatabaseError>(Ok(settled))
    });
    settled.await?
}

impl<DB: Backend> Ledger<DB> {
    /// The records under a key, in every scope and window.
    pub async fn trace(&self, key: &Key) -> Result<Vec<UnitRecord>> {
        trace(&self.destination.database, &self.project, self.name.as_str(), key).await
    }

    /// Gives a unit that failed or is parked all its tries again; the next attempt retries it with the failed ones. Returns how many
    /// entries had this key.
    pub async fn unpark(&self, key: &Key) -> Result<u64> {
        let (database, keys) = (&self.destination.database, std::slice::from_ref(key));
        settle(database, &self.project, self.name.as_str(), keys, None, UnitSettlement::Retry).await
    }
}
