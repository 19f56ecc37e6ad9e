//! Records endings, as many in one transaction as have come in while the one before was being written.
//!
//! An ending is never dropped: while the store cannot be reached it is tried again, until it is written or the store
//! says that somebody has taken over.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::service::Wake;
use crate::store::Store;
use crate::store::finish::{Ending, Landed, finish};

/// The most endings in one transaction.
const BATCH: usize = 2_000;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How many members of each lease have not ended yet, and how many endings are not recorded yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<HeldLeases>>);

#[derive(Debug, Default)]
struct HeldLeases {
    members: HashMap<i64, usize>,
    unrecorded: usize,
}

impl Leases {
    pub(crate) fn insert(&self, lease: i64, members: usize) {
        let mut held = self.held();
        if members > 0 {
            held.members.insert(lease, members);
            held.unrecorded += members;
        }
    }

    /// Whether a run is in hand, or has ended and is not recorded: it may let another one begin.
    pub(crate) fn are_held(&self) -> bool {
        self.held().unrecorded > 0
    }

    pub(crate) fn recorded(&self, endings: usize) {
        let mut held = self.held();
        held.unrecorded = held.unrecorded.saturating_sub(endings);
    }

    fn held(&self) -> MutexGuard<'_, HeldLeases> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts endings off; gives the leases that have no member left.
    fn count_off(&self, endings: &[Ending]) -> Vec<i64> {
        let leases = &mut self.held().members;
        let mut emptied = Vec::new();
        for Ending { held, .. } in endings {
            if let Some(left) = leases.get_mut(&held.lease) {
                *left -= 1;
                if *left == 0 {
                    leases.remove(&held.lease);
                    emptied.push(held.lease);
                }
            }
        }
        emptied
    }
}

/// What has been recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts whose run is over now.
    pub ended: u64,
    /// Attempts that are followed by another one.
    pub again: u64,
    /// Attempts whose word did not count, because their run had been taken over.
    pub lost: u64,
}

/// Records endings until all senders are gone.
pub(crate) async fn record(
    store: Store,
    leases: Leases,
    mut endings: mpsc::Receiver<Ending>,
    wake: Wake,
) -> Counts {
    let mut counts = Counts::default();
    let mut batch = Vec::with_capacity(BATCH);
    while endings.recv_many(&mut batch, BATCH).await > 0 {
        batch.sort_by_key(|ending| worker_of(ending.held.lease));
        let emptied = leases.count_off(&batch);
        for same in batch.chunk_by(|one, next| worker_of(one.held.lease) == worker_of(next.held.lease)) {
            let Some(worker) = same.first().map(|ending| worker_of(ending.held.lease)) else { continue };
            let emptied: Vec<i64> =
                emptied.iter().copied().filter(|lease| worker_of(*lease) == worker).collect();
            let landed = insist(&store, worker, same, &emptied).await;
            for (ending, landed) in same.iter().zip(landed) {
                counts.add(ending, landed);
            }
            leases.recorded(same.len());
        }
        batch.clear();
        wake.wake();
    }
    counts
}

impl Counts {
    fn add(&mut self, ending: &Ending, landed: Landed) {
        use crate::store::finish::End;
        match (landed, &ending.end) {
            (Landed::Lost, _) => {
                tracing::warn!(
                    run = ending.held.run,
                    attempt = ending.held.attempt,
                    "taken over meanwhile; its word does not count"
                );
                self.lost += 1;
            }
            (Landed::Yes, End::Closed { .. }) => self.ended += 1,
            (Landed::Yes, _) => self.again += 1,
        }
    }
}

async fn insist(store: &Store, worker: i64, endings: &[Ending], emptied: &[i64]) -> Vec<Landed> {
    let mut pause = Duration::from_millis(50);
    loop {
        match finish(store, worker, endings, emptied).await {
            Ok(landed) => return landed,
            Err(error) => {
                tracing::error!(%error, endings = endings.len(), "endings could not be recorded; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// A lease is numbered by its worker.
pub(crate) fn lease_of(worker: i64, batch: u32) -> i64 {
    (worker << 32) | i64::from(batch)
}

pub(crate) fn worker_of(lease: i64) -> i64 {
    lease >> 32
}
