//! Takes over from a worker whose heartbeat stopped.
//!
//! Each of its runs gets a new number, which fences off the old attempt, and becomes a suspect: any of them may have killed the
//! worker. A suspect is to blame only if the worker held nothing else, and only then the crash costs an attempt. The worker's row
//! is locked for the whole transaction, so two rescuers take over once. All its leases are read together, because only among all
//! of them a run can be alone. Leases of a worker that does not exist are locked themselves.
//!
//! Effects that it has reserved are in doubt: it may have sent them. Nothing is sent again by itself.

use refrain_core::retry::{Again, AttemptFailure, Retry};
use refrain_core::state::{Attempts, FailureReason, RunEvent};

use super::claim::{Claimed, LeaseRow};
use super::finish::{self, Author, ClaimedAttempt, End, Ending};
use super::queue_line::{JobNumber, Line};
use super::{Result, Store, catalog, effect_state, with_retries};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place};

/// The message of an attempt whose worker went silent.
const SILENT: &str = "its worker stopped sending heartbeats";
const CRASHED: &str = "its worker died while it ran this run alone";

/// The message of an effect whose worker is gone.
const SENDER_GONE: &str = "its sender is gone, and may have sent it";

/// How many runs were taken over, how many of them failed, and how many effects are in doubt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TakenOver {
    pub(crate) runs: usize,
    pub(crate) failed: usize,
    pub(crate) in_doubt: u64,
}

/// Takes over all runs and effects of a worker that has expired, or whose process `is_gone`. None if the worker is alive after all, is making
/// a claim, or another rescuer takes over from it.
pub(crate) async fn take_over(
    store: &Store,
    worker: i64,
    is_gone: bool,
    retry: &(dyn Fn(JobNumber) -> Retry + Sync),
) -> Result<Option<TakenOver>> {
    with_retries(|| taken_over(store, worker, is_gone, retry)).await
}

async fn taken_over(
    store: &Store,
    worker: i64,
    is_gone: bool,
    retry: &(dyn Fn(JobNumber) -> Retry + Sync),
) -> Result<Option<TakenOver>> {
    let mut transaction = store.database.write().await?;
    let silent = catalog::WORKER_HOLD.bind(worker).bind(is_gone);
    let held: Option<(i64,)> = transaction.fetch_optional(silent).await?;
    if held.is_none() && exists(&mut transaction, worker).await? {
        return Ok(None);
    }
    let leases: Vec<LeaseRow> = transaction.fetch_all(catalog::LEASE_LIST.bind(worker)).await?;
    if held.is_none() && leases.is_empty() && !has_effects(&mut transaction, worker).await? {
        return Ok(None);
    }
    let mut members: Vec<(Line, i64, Claimed)> = Vec::new();
    for lease in &leases {
        let runs = lease.members(&mut transaction).await?;
        members.extend(runs.into_iter().map(|run| (Line(lease.line), lease.id, run)));
    }
    let cancelled: Vec<(i64,)> = transaction.fetch_all(catalog::CANCELLATION_LIST.bind(i64::MAX)).await?;
    let is_alone = members.len() == 1;
    let mut endings = Vec::with_capacity(members.len());
    for (line, lease, run) in members {
        let is_cancelled = cancelled.contains(&(run.run,));
        endings.push(ending(line, lease, &run, is_alone, is_cancelled, retry)?);
    }
    if !finish::end(&mut transaction, Author::Rescuer(worker), &endings).await? {
        // The worker has ended one of them meanwhile: look again.
        return Err(DatabaseError::Busy(format!("the worker {worker} is ending runs")).into());
    }
    let runs = Rows::default().integers(endings.iter().map(|ending| ending.held.run));
    transaction.execute(catalog::SLOT_FREE.bind(runs)).await?;
    let ids = Rows::default().integers(leases.iter().map(|lease| lease.id));
    transaction.execute(catalog::LEASE_REMOVE.bind(ids)).await?;
    let in_doubt = if has_effects(&mut transaction, worker).await? {
        effect_state::doubt_held(&mut transaction, worker, SENDER_GONE).await?
    } else {
        0
    };
    transaction.execute(catalog::WORKER_REMOVE.bind(worker)).await?;
    transaction.commit(place!("take-over")).await?;
    let failed = endings.iter().filter(|ending| matches!(ending.end, End::Closed { .. })).count();
    Ok(Some(TakenOver { runs: endings.len(), failed, in_doubt }))
}

/// Whether a worker has reserved effects. They are locked.
async fn has_effects(transaction: &mut Transaction, worker: i64) -> Result<bool> {
    let held: Vec<(i64,)> = transaction.fetch_all(catalog::EFFECT_HELD.bind(worker)).await?;
    Ok(!held.is_empty())
}

async fn exists(transaction: &mut Transaction, worker: i64) -> Result<bool> {
    let found: Option<(i64,)> = transaction.fetch_optional(catalog::WORKER_FIND.bind(worker)).await?;
    Ok(found.is_some())
}

fn ending(
    line: Line,
    lease: i64,
    run: &Claimed,
    is_alone: bool,
    is_cancelled: bool,
    retry: &(dyn Fn(JobNumber) -> Retry + Sync),
) -> Result<Ending> {
    let job = line.job()?;
    let attempts = run.attempts();
    let end = if is_cancelled {
        let message = Some("cancelled while its worker was gone".to_owned());
        End::Closed { event: RunEvent::Cancelled, version: run.version, message }
    } else {
        decide(attempts, is_alone, retry(job), run.run, run.version)
    };
    let scope = run.lane.then(|| run.scope().to_owned());
    let held =
        ClaimedAttempt { run: run.run, job, line, lease, attempt: run.attempt, lane: scope, slot: false };
    let reason = (!is_cancelled).then_some(FailureReason::Lost);
    Ok(Ending { held, started_at: None, end, units: None, clears_mark: false, reason })
}

/// The next state of a run whose worker is gone.
fn decide(attempts: Attempts, is_alone: bool, retry: Retry, seed: i64, version: Option<i32>) -> End {
    let blamed = is_alone && attempts.suspicion > 0;
    let event = if blamed { RunEvent::CrashedAlone } else { RunEvent::TakenOver };
    let next = attempts.then(event.attempt());
    if !blamed {
        return End::Again { event, attempts: next, wait: None, message: Some(SILENT.to_owned()) };
    }
    match retry.after(&AttemptFailure::of_attempt(next.spent), seed.unsigned_abs()) {
        Again::After(wait) => {
            End::Again { event, attempts: next, wait: Some(wait), message: Some(CRASHED.to_owned()) }
        }
        Again::GiveUp(_) => End::Closed {
            event: RunEvent::Failed,
            version,
            message: Some(format!("{CRASHED}; all attempts are used")),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::database::Address;
    use crate::store::Reality;
    use crate::store::workers::{WorkerTask, beat, register, silent};

    const LEASE: Duration = Duration::from_hours(1);

    async fn store(directory: &tempfile::TempDir) -> Store {
        let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
        let project = "shop".parse().unwrap();
        Store::open(&Address::parse(&address).unwrap(), &project, 1, LEASE, Reality::Real).await.unwrap()
    }

    #[tokio::test]
    async fn a_worker_with_a_late_heartbeat_is_not_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory).await;
        let worker = register(&store, "elsewhere/1/1/1", LEASE, WorkerTask::Attempts).await.unwrap();
        let taken = take_over(&store, worker, false, &|_| Retry::default()).await.unwrap();
        assert_eq!(taken, None, "it said that it is alive between the look and the takeover");
        assert!(beat(&store, worker, LEASE).await.unwrap());
        let taken = take_over(&store, worker, true, &|_| Retry::default()).await.unwrap();
        assert_eq!(taken, Some(TakenOver::default()), "its process is known to be gone");
    }

    #[tokio::test]
    async fn an_expired_worker_cannot_send_a_heartbeat() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory).await;
        let worker = register(&store, "elsewhere/1/1/1", Duration::ZERO, WorkerTask::Attempts).await.unwrap();
        assert!(!beat(&store, worker, LEASE).await.unwrap(), "a rescuer may be taking over from it");
        assert_eq!(silent(&store, 10).await.unwrap().len(), 1, "it stays expired");
    }

    #[test]
    fn only_a_suspect_that_was_alone_loses_a_try() {
        let at = |suspicion, spent| Attempts { number: 4, spent, suspicion };
        let retry = Retry { attempts: 2, ..Retry::default() };
        let table = [
            (at(0, 0), false, "taken-over 5 spent 0 suspicion 1"),
            (at(0, 0), true, "taken-over 5 spent 0 suspicion 1"),
            (at(1, 0), false, "taken-over 5 spent 0 suspicion 2"),
            (at(1, 0), true, "crashed-alone 5 spent 1 suspicion 2"),
            (at(2, 1), false, "taken-over 5 spent 1 suspicion 3"),
            (at(2, 1), true, "failed"),
        ];
        for (attempts, is_alone, expected) in table {
            let decided = match decide(attempts, is_alone, retry, 7, None) {
                End::Again { event, attempts, .. } => {
                    let Attempts { number, spent, suspicion } = attempts;
                    format!("{event} {number} spent {spent} suspicion {suspicion}")
                }
                End::Closed { event, .. } => event.to_string(),
                End::GivenBack => "given back".to_owned(),
            };
            assert_eq!(decided, expected, "{attempts:?} alone: {is_alone}");
        }
    }
}
