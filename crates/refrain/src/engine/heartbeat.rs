//! Renews the lease of a worker, from a thread of its own: a worker whose jobs keep all other threads busy must not look dead.
//!
//! The worker's own deadline is counted from when a heartbeat was *sent*, so the worker stops before a rescuer may take over. The
//! store refuses a heartbeat that comes too late. Then the worker has lost all its runs: it interrupts its attempts and registers
//! again. All of this is counted by a clock that goes on while the machine sleeps, as the database's does.
//!
//! The thread connects when the first heartbeat is due: most runs that the operator requests have ended by then, and a connection
//! costs a server more than they do.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use crate::database::DatabaseError;
use crate::failpoint;
use crate::lease::{Lease, since_boot, sleep_until};
use crate::process::Process;
use crate::store::workers::WorkerTask;
use crate::store::{Result, Store, StoreError, workers};

/// The most runs that are cancelled at once.
const CANCELLATIONS_MAX: i64 = 1_000;

/// How often to read which runs are to be cancelled.
const LISTEN: Duration = Duration::from_secs(1);

/// What the heartbeat reports to its worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pulse {
    /// The worker has expired, or may have expired.
    pub(crate) is_lost: bool,
    /// Runs that the operator has cancelled.
    pub(crate) cancelled: Arc<Vec<i64>>,
}

/// A registered worker; dropping it ends its heartbeat.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    pub(crate) worker: i64,
    pub(crate) pulse: watch::Receiver<Pulse>,
    pub(crate) lease: Lease,
    stop: watch::Sender<bool>,
}

impl Heartbeat {
    /// Registers a worker and keeps it alive.
    pub(crate) async fn start(store: &Store, lease: Duration, task: WorkerTask) -> Result<Heartbeat> {
        let process = Process::this().map_or_else(|_| "unknown".to_owned(), |process| process.to_string());
        let mut sent = since_boot();
        let worker = workers::register(store, &process, lease, task).await?;
        // A lock on the store may have delayed this for most of the lease, and no attempt may begin under an expired lease.
        while since_boot() >= sent + lease / 2 {
            sent = since_boot();
            if !workers::beat(store, worker, lease).await? {
                return Err(DatabaseError::Busy(format!("the worker {worker} has expired")).into());
            }
        }
        Heartbeat::of(store, worker, sent, lease)
    }

    /// Keeps a worker alive that was registered after `sent`.
    pub(crate) fn of(store: &Store, worker: i64, sent: Duration, lease: Duration) -> Result<Heartbeat> {
        let (stop, stopped) = watch::channel(false);
        let (pulse, heard) = watch::channel(Pulse::default());
        let good = Lease::new(sent + lease * 9 / 10);
        let beating = Beating { store: store.clone(), worker, lease, sent, good: good.clone() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Broken(format!("no thread to beat: {error}")))?;
        let thread = thread::Builder::new().name("refrain-heartbeat".to_owned());
        let spawned = thread.spawn(move || runtime.block_on(beating.beat(&pulse, stopped)));
        spawned.map_err(|error| StoreError::Broken(format!("no thread to beat: {error}")))?;
        Ok(Heartbeat { worker, pulse: heard, lease: good, stop })
    }

    /// Whether the runs of the worker may have been taken over: they were, or the thread that renews the lease is gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.pulse.borrow().is_lost || self.pulse.has_changed().is_err()
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

struct Beating {
    store: Store,
    worker: i64,
    lease: Duration,
    /// When the registration was sent.
    sent: Duration,
    /// Until when the lease is valid.
    good: Lease,
}

impl Beating {
    async fn beat(self, pulse: &watch::Sender<Pulse>, mut stopped: watch::Receiver<bool>) {
        // The pools of the process belong to its runtime; a separate thread needs connections of its own.
        let mut own = None;
        let mut next = self.sent + self.lease / 3;
        loop {
            let pause = next.saturating_sub(since_boot()).min(LISTEN);
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                () = tokio::time::sleep(pause) => {}
            }
            // The deadline does not wait for a call that hangs.
            let in_time = tokio::select! {
                () = self.say(&mut own, pulse, &mut next) => true,
                () = sleep_until(self.good.until()) => false,
            };
            if !in_time || since_boot() >= self.good.until() {
                tracing::warn!(
                    worker = self.worker,
                    "lease not renewed in time: this worker gives up its runs"
                );
                pulse.send_modify(|pulse| pulse.is_lost = true);
                break;
            }
        }
        if let Some(Store { database, .. }) = own {
            database.close().await;
        }
    }

    async fn reopened(&self) -> Result<Store> {
        failpoint::reach("heartbeat.connect");
        self.store.reopened().await
    }

    /// Renews the lease if that is due, and reads which runs are to be cancelled.
    async fn say(&self, own: &mut Option<Store>, pulse: &watch::Sender<Pulse>, next: &mut Duration) {
        let store = match own {
            Some(store) => store,
            None => match self.reopened().await {
                Ok(store) => own.insert(store),
                Err(error) => {
                    tracing::warn!(worker = self.worker, %error, "the heartbeat cannot connect");
                    *next = (*next).min(since_boot() + self.lease / 20);
                    return;
                }
            },
        };
        let sent = since_boot();
        if sent >= *next {
            match workers::beat(store, self.worker, self.lease).await {
                Ok(true) => {
                    self.good.renew(sent + self.lease * 9 / 10);
                    *next = sent + self.lease / 3;
                }
                Ok(false) => self.good.renew(sent),
                Err(error) => {
                    tracing::warn!(worker = self.worker, %error, "heartbeat failed");
                    *next = sent + self.lease / 20;
                }
            }
        }
        hear(store, pulse).await;
    }
}

/// Reads which runs are to be cancelled.
async fn hear(store: &Store, pulse: &watch::Sender<Pulse>) {
    if let Ok(runs) = workers::cancellations(store, CANCELLATIONS_MAX).await {
        if !runs.is_empty() {
            failpoint::reach("heartbeat.heard");
        }
        pulse.send_if_modified(|pulse| {
            let changed = *pulse.cancelled != runs;
            pulse.cancelled = Arc::new(runs);
            changed
        });
    }
}
