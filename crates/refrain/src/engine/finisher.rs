//! Records endings, as many in one transaction as have come in while the one before was being written.
//!
//! An ending is never dropped: while the store cannot be reached it is tried again, until it is written or the store
//! says that somebody has taken over.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use refrain_core::state::{FailureReason, RunEvent, RunOutcome};
use tokio::sync::mpsc;

use super::service::Wake;
use crate::database::gather::gather;
use crate::store::finish::{End, Ending, Held, Landed, finish};
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

    /// Whether members of it were begun here whose endings are not recorded.
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

    /// Counts endings off that are recorded. Not before: a task that ends in between would leave runs of which it is not known
    /// any more that they were begun, and they would be begun again without end.
    fn count_off(&self, endings: &[Ending]) {
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

/// Endings on their way to the store. Until they are there, what they make way for cannot be seen. An attempt that was given
/// back may be claimed and given back again before the first time is counted off, so each has a count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unrecorded(Arc<Mutex<HashMap<(i64, i32), usize>>>);

impl Unrecorded {
    pub(crate) fn add(&self, held: &Held) {
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

/// What was done here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Windows that were opened to run.
    pub opened: u64,
    /// Windows that were passed over; each has a row that says why.
    pub skipped: u64,
    /// Windows that were there already.
    pub deduplicated: u64,
    /// Attempts whose run is over now, however it ended.
    pub ended: u64,
    /// Of those, the ones whose run is failed or partial.
    pub failed: u64,
    /// Of those that failed, the ones that took too long.
    pub timed_out: u64,
    /// Attempts that failed and after which a person must decide: a unit is in doubt, or a command was cut off.
    pub waiting: u64,
    /// Of those that are over, the ones that a person called off.
    pub cancelled: u64,
    /// Attempts that are followed by another one.
    pub again: u64,
    /// Of those, the ones that failed; the others were stopped or given back.
    pub errored: u64,
    /// Attempts whose word did not count, because their run had been taken over.
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
            let landed = insist(&store, worker, same, &emptied).await;
            for (ending, landed) in same.iter().zip(landed) {
                counts.add(ending, landed);
            }
        }
        leases.count_off(&batch);
        unrecorded.recorded(&batch);
        batch.clear();
        wake.wake();
    }
    counts
}

impl Counts {
    fn add(&mut self, ending: &Ending, landed: Landed) {
        match (landed, &ending.end) {
            (Landed::Lost, _) => {
                tracing::warn!(
                    run = ending.held.run,
                    attempt = ending.held.attempt,
                    "taken over meanwhile; its word does not count"
                );
                self.lost += 1;
            }
            (Landed::Yes, End::Closed { outcome, .. }) => {
                self.ended += 1;
                let has_failed = matches!(outcome, RunOutcome::Failed | RunOutcome::Partial);
                self.failed += u64::from(has_failed);
                self.cancelled += u64::from(*outcome == RunOutcome::Cancelled);
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

    /// The same, and what a scheduler did beside.
    pub(crate) fn with(self, ticked: OpenCounts) -> Counts {
        let OpenCounts { opened, skipped, deduplicated, .. } = ticked;
        let [opened, skipped, deduplicated] = [opened, skipped, deduplicated].map(|count| count as u64);
        Counts { opened, skipped, deduplicated, ..self }
    }
}

fn needs_a_person(ending: &Ending) -> bool {
    ending.reason.is_some_and(FailureReason::needs_a_person)
}

/// Says it until it is heard. What cannot be written as it is, and would keep all others waiting, is written as failed.
async fn insist(store: &Store, worker: i64, endings: &[Ending], emptied: &[i64]) -> Vec<Landed> {
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
                let end = End::Closed { outcome: RunOutcome::Failed, version: None, message };
                let plain = Ending { end, started_at: None, reason: None, ..ending.clone() };
                finish(store, worker, &[plain], &[]).await
            }
            recorded => recorded,
        };
        let recorded = recorded.ok().and_then(|recorded| recorded.first().copied());
        landed.push(recorded.unwrap_or(Landed::Lost));
    }
    landed
}

/// A lease is numbered by its worker.
pub(crate) fn lease_of(worker: i64, batch: u32) -> i64 {
    (worker << 32) | i64::from(batch)
}

pub(crate) fn worker_of(lease: i64) -> i64 {
    lease >> 32
}
