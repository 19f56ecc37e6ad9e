//! Returns runs from the front of a line to a worker, under one lease for the whole batch.
//!
//! The rows are locked by the select and leased by the update that follows in the same transaction, and the update must
//! find as many as were locked. One statement that does both (`update … where run in (select … limit n for update skip
//! locked)`) is a trap: the planner may run the inner select again for each row, and lease far more than `n`.
//!
//! The worker chooses the number of a lease, so that after a lost answer it can look up whether the claim was made. Otherwise the
//! heartbeat would keep a run alive whose lease the worker does not know, and the run would never begin.
//!
//! That look-up decides only after it has waited for the claim. A COMMIT whose connection broke may still be in flight on the server:
//! its lease is not visible yet, and its runs are locked, so that a look-up without a lock finds nothing and other claims skip the
//! runs; a moment later they belong to a worker that does not know them. So a claim first locks its worker's row (`for key share`,
//! which lets heartbeats and other claims pass), and the look-up, like the end of a registration and a rescuer, locks that row `for
//! update`.
//!
//! Each claim has a nonce. The store gives out the numbers of attempts, and a store that has lost its last commits, or was restored,
//! gives the same number out again; databases that both attempts write to must tell them apart. So the nonce does not depend on what
//! the store remembers: it is the time in microseconds, with random bits below. And it does not depend on the clock alone: it is
//! higher than that of the claim before, and than that of every earlier holder of the lane, as far as the store remembers them. Of
//! two claims with one number the later one has the higher nonce, so it raises the fence over the other.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use refrain_core::state::Attempts;

use super::finish::ClaimedAttempt;
use super::identity::IdentityDoubt;
use super::queue_line::{JOBS_PER_PRIORITY, JobNumber, Line};
use super::{Result, Store, catalog, queue, with_retries};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place};
use crate::failpoint;

/// A request for runs of one line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueClaim {
    pub(crate) worker: i64,
    pub(crate) lease: i64,
    pub(crate) line: Line,
    pub(crate) limit: usize,
    /// Only runs after this one.
    pub(crate) after: i64,
    /// How many runs of the job may run at once, if that is limited.
    pub(crate) concurrency: Option<u32>,
    /// Only this run.
    pub(crate) run: Option<i64>,
    /// A random number below [`CHANCES`]: part of the nonce of each claim.
    pub(crate) chance: i64,
}

/// How many nonces there are for one microsecond.
pub(crate) const CHANCES: i64 = 2_048;

/// A claimed run.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct Claimed {
    pub(crate) run: i64,
    pub(crate) attempt: i32,
    /// Tells this claim from every other one of the same run and number.
    pub(crate) nonce: i64,
    pub(crate) spent: i32,
    pub(crate) suspicion: i32,
    pub(crate) lane: bool,
    pub(crate) key: String,
    pub(crate) window_start: Option<i64>,
    pub(crate) window_end: Option<i64>,
    pub(crate) payload: Option<String>,
    pub(crate) version: Option<i32>,
    /// The attempt with which the operator had its work redone, if that is not finished.
    pub(crate) redo: Option<i32>,
}

/// Lines with queued runs, the most urgent first.
pub(crate) async fn due(store: &Store, limit: usize) -> Result<Vec<Line>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let lines: Vec<(i64,)> =
        store.database.look(catalog::QUEUE_DUE.bind(limit).bind(JOBS_PER_PRIORITY)).await?;
    Ok(lines.into_iter().map(|(line,)| Line(line)).collect())
}

/// Claims what the request asks for, or less, or nothing.
pub(crate) async fn claim(store: &Store, request: QueueClaim) -> Result<Vec<Claimed>> {
    if failpoint::is_weakened("claim.once") {
        return claimed(store, request).await;
    }
    let mut is_first = true;
    with_retries(|| {
        let again = !std::mem::replace(&mut is_first, false);
        async move {
            match again.then_some(resolved(store, request)) {
                Some(look) => match look.await? {
                    Some(members) => Ok(members),
                    None => claimed(store, request).await,
                },
                None => claimed(store, request).await,
            }
        }
    })
    .await
}

/// The runs of a claim whose answer was lost for good.
pub(crate) async fn recover(store: &Store, request: QueueClaim) -> Result<Vec<Claimed>> {
    Ok(with_retries(|| resolved(store, request)).await?.unwrap_or_default())
}

/// The runs of a claim whose answer was lost; none if the claim was not made, and will not be.
async fn resolved(store: &Store, request: QueueClaim) -> Result<Option<Vec<Claimed>>> {
    let mut transaction = store.database.write().await?;
    let _: Option<(i64,)> = transaction.fetch_optional(catalog::WORKER_WAIT.bind(request.worker)).await?;
    let members = members(&mut transaction, request.lease).await?;
    // The heartbeat waits for this row.
    transaction.rollback().await?;
    Ok(members)
}

async fn claimed(store: &Store, request: QueueClaim) -> Result<Vec<Claimed>> {
    let mut transaction = store.database.write().await?;
    let alive: Option<(i64, i64, Option<String>)> =
        transaction.fetch_optional(catalog::WORKER_CLAIMS.bind(request.worker)).await?;
    let Some((_, now, doubt)) = alive else {
        return Err(DatabaseError::Busy(format!("the worker {} has expired", request.worker)).into());
    };
    if let Some(doubt) = doubt {
        return Err(store.doubted(IdentityDoubt::named(&doubt)));
    }
    if !store.goes_on_in(&mut transaction).await? {
        transaction.rollback().await?;
        return Err(store.is_doubted(IdentityDoubt::Timeline).await?);
    }
    let slots = free_slots(&mut transaction, request).await?;
    let limit = slots.as_ref().map_or(request.limit, |slots| request.limit.min(slots.len()));
    let front = if let Some(run) = request.run {
        catalog::QUEUE_ONE.bind(request.line.0).bind(run)
    } else {
        let front = catalog::QUEUE_FRONT.bind(request.line.0);
        front.bind(i64::try_from(limit).unwrap_or(i64::MAX)).bind(request.after).bind(request.line.job()?)
    };
    let mut runs: Vec<Claimed> = if limit == 0 { Vec::new() } else { transaction.fetch_all(front).await? };
    let (Some(first), Some(last)) =
        (runs.iter().map(|one| one.run).min(), runs.iter().map(|one| one.run).max())
    else {
        return Ok(Vec::new());
    };
    number(&mut transaction, request, now, &mut runs).await?;
    let rows = Rows::default()
        .integers(runs.iter().map(|_| request.line.0))
        .integers(runs.iter().map(|one| one.run))
        .integers(runs.iter().map(|one| one.nonce));
    let leased = transaction.execute(catalog::QUEUE_LEASE.bind(request.lease).bind(rows)).await?;
    if leased != runs.len() as u64 {
        return Err(DatabaseError::Busy(format!("{} were locked and {leased} leased", runs.len())).into());
    }
    let lease = catalog::LEASE_INSERT.bind(request.lease).bind(request.worker).bind(request.line.0);
    transaction.execute(lease.bind(first).bind(last)).await?;
    if let Some(slots) = slots {
        let rows = Rows::default()
            .integers(slots.into_iter().take(runs.len()).map(i64::from))
            .integers(runs.iter().map(|one| one.run));
        transaction.execute(catalog::SLOT_TAKE.bind(request.line.job()?).bind(rows)).await?;
    }
    transaction.commit(place!("claim")).await?;
    runs.sort_by_key(|one| one.run);
    Ok(runs)
}

/// Returns each claim its nonce, and each lane the nonce of its holder.
async fn number(
    transaction: &mut Transaction,
    request: QueueClaim,
    now: i64,
    runs: &mut [Claimed],
) -> Result<()> {
    let step = request.chance + 1;
    for one in runs.iter_mut() {
        one.nonce = one.nonce.max(now.saturating_mul(CHANCES)).saturating_add(step);
    }
    let holders = runs.iter().filter(|one| one.lane);
    let lanes: BTreeMap<String, i64> = holders.map(|one| (one.scope().to_owned(), one.nonce)).collect();
    if lanes.is_empty() {
        return Ok(());
    }
    let rows = Rows::default().texts(lanes.keys().cloned()).integers(lanes.values().copied());
    let numbers = catalog::LANE_NUMBER.bind(request.line.job()?).bind(step).bind(rows);
    let numbers: Vec<(String, i64)> = transaction.fetch_all(numbers).await?;
    let numbers: BTreeMap<String, i64> = numbers.into_iter().collect();
    for one in runs.iter_mut().filter(|one| one.lane) {
        one.nonce = numbers.get(one.scope()).copied().unwrap_or(one.nonce);
    }
    Ok(())
}

/// A run that a worker holds in the store.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct HeldRun {
    pub(crate) lease: i64,
    pub(crate) line: i64,
    #[sqlx(flatten)]
    pub(crate) claimed: Claimed,
}

/// All runs that a worker holds in the store.
pub(crate) async fn held(store: &Store, worker: i64) -> Result<Vec<HeldRun>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::QUEUE_HELD.bind(worker)).await?)
}

/// Whether an attempt still has its row in the queue.
pub(crate) async fn is_held(store: &Store, held: &ClaimedAttempt) -> Result<bool> {
    let holds = catalog::QUEUE_HOLDS.bind(held.line.0).bind(held.run).bind(held.lease).bind(held.attempt);
    let held: Vec<(i32,)> = store.database.look(holds).await?;
    Ok(!held.is_empty())
}

#[derive(sqlx_macros::FromRow)]
pub(crate) struct LeaseRow {
    pub(crate) id: i64,
    pub(crate) line: i64,
    pub(crate) first_run: i64,
    pub(crate) last_run: i64,
}

impl LeaseRow {
    pub(crate) async fn members(&self, transaction: &mut Transaction) -> Result<Vec<Claimed>> {
        let members = catalog::QUEUE_MEMBERS.bind(self.id).bind(self.line);
        Ok(transaction.fetch_all(members.bind(self.first_run).bind(self.last_run)).await?)
    }
}

/// The runs of a lease; none if there is no such lease.
async fn members(transaction: &mut Transaction, lease: i64) -> Result<Option<Vec<Claimed>>> {
    let lease: Option<LeaseRow> = transaction.fetch_optional(catalog::LEASE_FIND.bind(lease)).await?;
    match lease {
        Some(lease) => lease.members(transaction).await.map(Some),
        None => Ok(None),
    }
}

/// The free slots of a job whose concurrency is limited; the job is locked until the claim is made.
async fn free_slots(transaction: &mut Transaction, request: QueueClaim) -> Result<Option<Vec<i32>>> {
    let Some(concurrency) = request.concurrency else { return Ok(None) };
    let job: JobNumber = request.line.job()?;
    let _: Vec<(i32,)> = transaction.fetch_all(catalog::JOB_LOCK.bind(job)).await?;
    let taken: Vec<(i32,)> = transaction.fetch_all(catalog::SLOT_TAKEN.bind(job)).await?;
    let last = i32::try_from(concurrency).unwrap_or(i32::MAX);
    let free = (1..=last).filter(|slot| !taken.contains(&(*slot,)));
    Ok(Some(free.take(request.limit).collect()))
}

impl Claimed {
    /// The attempts of the run so far.
    pub(crate) fn attempts(&self) -> Attempts {
        queue::attempts(self.attempt, self.spent, self.suspicion)
    }

    /// Its scope; empty for the window's own run.
    pub(crate) fn scope(&self) -> &str {
        if self.window_start.is_some() { scope_of(&self.key) } else { "" }
    }
}

/// The scope in the key of a window's run: what follows its start.
pub(crate) fn scope_of(key: &str) -> &str {
    key.split_once('/').map_or("", |(_, scope)| scope)
}
