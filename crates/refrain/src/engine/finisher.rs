//! Records endings: in one transaction as many as came in while the one before was being written.
//!
//! An ending is never dropped. While the store is unreachable it is retried, until it is written or the store says that the run
//! was taken over.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use refrain_core::state::{FailureReason, RunEvent, RunOutcome};
use tokio::sync::mpsc;

use super::service::Wake;
use crate::database::gather::gather;
use crate::store::counts::UnitCounts;
use crate::store::finish::{ClaimedAttempt, End, Ending, Landed, finish};
use crate::store::open::OpenCounts;
use crate::store::{Store, StoreError};

/// The most endings in one transaction.
const BATCH: usize = 2_000;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a batch may be refused, other than by a store that is away, before each is written by itself.
const REFUSALS_MAX: u32 = 3;

/// How many members of each lease have no ending that is recorded yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<HashMap<i64, usize>>>);

impl Leases {
    pub(crate) fn insert(&self, lease: i64, members: usize) {
        if members > 0 {
            self.leases().insert(lease, members);
        }
    }

    /// Whether some of its members were begun here and their endings are not recorded.
    pub(crate) fn contains(&self, lease: i64) -> bool {
        self.leases().contains_key(&lease)
    }

    /// The leases that have no member left when these endings are recorded.
    fn emptied_by(&self, endings: &[Ending]) -> Vec<i64> {
        let leases = self.leases();
        let ending = members_of(endings).into_iter();
        let emptied = ending.filter(|(lease, count)| leases.get(lease).is_some_and(|left| left <= count));
        emptied.map(|(lease, _)| lease).collect()
    }

    /// Subtracts endings that are recorded. Not earlier: a task that ends in between would leave runs that nothing remembers as
    /// begun, and they would be begun again without end.
    fn subtract(&self, endings: &[Ending]) {
        let mut leases = self.leases();
        for (lease, count) in members_of(endings) {
            if let Entry::Occupied(mut left) = leases.entry(lease) {
                // One ending too many must not end the recording of all others.
                *left.get_mut() = left.get().saturating_sub(count);
                if *left.get() == 0 {
                    left.remove();
                }
            }
        }
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<i64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many of these endings belong to each lease.
fn members_of(endings: &[Ending]) -> BTreeMap<i64, usize> {
    let mut members = BTreeMap::new();
    for Ending { held, .. } in endings {
        *members.entry(held.lease).or_default() += 1;
    }
    members
}

/// Endings on their way to the store. Runs that they make room for become visible only when they are recorded. An attempt that was
/// given back may be claimed and given back again before the first ending is subtracted, so each has a count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unrecorded(Arc<Mutex<HashMap<(i64, i32), usize>>>);

impl Unrecorded {
    pub(crate) fn add(&self, held: &ClaimedAttempt) {
        *self.endings().entry((held.run, held.attempt)).or_default() += 1;
    }

    pub(crate) fn any(&self) -> bool {
        !self.endings().is_empty()
    }

    /// The runs, and the numbers of their attempts.
    pub(crate) fn attempts(&self) -> HashSet<(i64, i32)> {
        self.endings().keys().copied().collect()
    }

    fn recorded(&self, endings: &[Ending]) {
        let mut unrecorded = self.endings();
        for Ending { held, .. } in endings {
            if let Entry::Occupied(mut one) = unrecorded.entry((held.run, held.attempt)) {
                *one.get_mut() -= 1;
                if *one.get() == 0 {
                    one.remove();
                }
            }
        }
    }

    fn endings(&self) -> MutexGuard<'_, HashMap<(i64, i32), usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an engine has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Windows that were opened to run.
    pub opened: u64,
    /// Windows that were skipped; each has a row that says why.
    pub skipped: u64,
    /// Windows that existed already.
    pub deduplicated: u64,
    /// Attempts that ended their run, with any outcome.
    pub ended: u64,
    /// Of those, the ones whose run is failed or partial.
    pub failed: u64,
    /// Of those that failed, the ones that exceeded their timeout.
    pub timed_out: u64,
    /// Attempts that failed and after which the operator must decide: a unit is in doubt, or a command was interrupted.
    pub waiting: u64,
    /// Of those that are over, the ones that the operator cancelled.
    pub cancelled: u64,
    /// Attempts that are followed by another one.
    pub again: u64,
    /// Of those, the ones that failed; the others were stopped or given back.
    pub errored: u64,
    /// Attempts whose result was discarded, because their run had been taken over.
    pub lost: u64,
}

/// Records endings until all senders are gone.
pub(crate) async fn record(
    store: Store,
    leases: Leases,
    unrecorded: Unrecorded,
    mut endings: mpsc::Receiver<Ending>,
    wake: Wake,
) -> Counts {
    let mut counts = Counts::default();
    let mut batch = Vec::with_capacity(BATCH);
    while gather(&mut endings, &mut batch, BATCH).await {
        batch.sort_by_key(|ending| worker_of(ending.held.lease));
        let emptied = leases.emptied_by(&batch);
        for same in batch.chunk_by(|one, next| worker_of(one.held.lease) == worker_of(next.held.lease)) {
            let Some(worker) = same.first().map(|ending| worker_of(ending.held.lease)) else { continue };
            let emptied: Vec<i64> =
                emptied.iter().copied().filter(|lease| worker_of(*lease) == worker).collect();
            let landed = record_all(&store, worker, same, &emptied).await;
            for (ending, landed) in same.iter().zip(landed) {
                counts.add(ending, landed);
            }
        }
        leases.subtract(&batch);
        unrecorded.recorded(&batch);
        batch.clear();
        wake.wake();
    }
    counts
}

impl Counts {
    /// Its runs as the four counts with which every command ends.
    pub fn four(&self) -> UnitCounts {
        let Counts { ended, failed, cancelled, errored, skipped, deduplicated, .. } = *self;
        let processed = ended.saturating_sub(failed + cancelled);
        UnitCounts { processed, skipped, deduplicated, failed: failed + errored }
    }

    fn add(&mut self, ending: &Ending, landed: Landed) {
        match (landed, &ending.end) {
            (Landed::Lost, _) => {
                tracing::warn!(
                    run = ending.held.run,
                    attempt = ending.held.attempt,
                    "result discarded: run was taken over by another worker"
                );
                self.lost += 1;
            }
            (Landed::Yes, end @ End::Closed { .. }) => {
                self.ended += 1;
                let outcome = end.outcome();
                let has_failed = matches!(outcome, Some(RunOutcome::Failed | RunOutcome::Partial));
                self.failed += u64::from(has_failed);
                self.cancelled += u64::from(outcome == Some(RunOutcome::Cancelled));
                self.timed_out += u64::from(has_failed && ending.reason == Some(FailureReason::TimedOut));
                self.waiting += u64::from(has_failed && needs_a_person(ending));
            }
            (Landed::Yes, end) => {
                self.again += 1;
                let has_failed = matches!(end, End::Again { event: RunEvent::Errored, .. });
                self.errored += u64::from(has_failed);
                self.waiting += u64::from(has_failed && needs_a_person(ending));
            }
        }
    }

    /// The same, with what a scheduler opened.
    pub(crate) fn with(self, opened: OpenCounts) -> Counts {
        let OpenCounts { opened, skipped, deduplicated, .. } = opened;
        let [opened, skipped, deduplicated] = [opened, skipped, deduplicated].map(|count| count as u64);
        Counts { opened, skipped, deduplicated, ..self }
    }
}

fn needs_a_person(ending: &Ending) -> bool {
    ending.reason.is_some_and(FailureReason::needs_a_person)
}

/// Retries until the endings are recorded. An ending that cannot be written as it is would hold up all others, and is written as
/// failed.
async fn record_all(store: &Store, worker: i64, endings: &[Ending], emptied: &[i64]) -> Vec<Landed> {
    let mut pause = Duration::from_millis(50);
    let mut refused = 0;
    loop {
        let error = match finish(store, worker, endings, emptied).await {
            Ok(landed) => return landed,
            Err(error) => error,
        };
        let is_for_good = !matches!(&error, StoreError::Database(error) if error.is_transient());
        refused += u32::from(is_for_good);
        tracing::error!(%error, endings = endings.len(), "endings could not be recorded; trying again");
        if refused > REFUSALS_MAX {
            return one_by_one(store, worker, endings, &error.to_string()).await;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn one_by_one(store: &Store, worker: i64, endings: &[Ending], why: &str) -> Vec<Landed> {
    let mut landed = Vec::with_capacity(endings.len());
    for ending in endings {
        let one = std::slice::from_ref(ending);
        let recorded = finish(store, worker, one, &[]).await;
        let recorded = match recorded {
            Err(_) => {
                let message = Some(format!("its ending could not be recorded: {}", why.replace('\0', "")));
                let end = End::Closed { event: RunEvent::Failed, version: None, message };
                let plain =
                    Ending { end, started_at: None, reason: Some(FailureReason::Error), ..ending.clone() };
                finish(store, worker, &[plain], &[]).await
            }
            recorded => recorded,
        };
        let recorded = recorded.ok().and_then(|recorded| recorded.first().copied());
        landed.push(recorded.unwrap_or(Landed::Lost));
    }
    landed
}

/// The number of a lease: the worker that makes it, and the number of the batch in the bits below.
pub(crate) fn lease_of(worker: i64, batch: u32) -> i64 {
    (worker << u32::BITS) | i64::from(batch)
}

pub(crate) fn worker_of(lease: i64) -> i64 {
    lease >> u32::BITS
}
