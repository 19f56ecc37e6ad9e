//! Says that a worker is alive, from a thread of its own: jobs that keep all other threads busy must not look
//! dead.
//!
//! The worker's own deadline is counted from when a beat was *sent*, so it stops before anyone may take over. A beat
//! that comes too late is refused by the store, and the worker that hears so has lost everything it held: it ends
//! what it is doing and registers anew. All of it is counted by a clock that goes on while the machine sleeps, as the
//! database's does.
//!
//! The thread connects when it has something to say for the first time: most runs that a person asks for have ended by
//! then, and a connection costs a server more than they do.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use crate::database::DatabaseError;
use crate::failpoint;
use crate::lease::{Lease, reached, since_boot};
use crate::process::Process;
use crate::store::{Result, Store, StoreError, workers};

/// The most runs that are called off at once.
const CANCELLATIONS_MAX: i64 = 1_000;

/// How often to ask for runs that are to end.
const LISTEN: Duration = Duration::from_secs(1);

/// What a worker hears from its heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pulse {
    /// It has expired, or cannot know that it has not.
    pub(crate) is_lost: bool,
    /// Runs that a person wants to end.
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
    pub(crate) async fn start(store: &Store, lease: Duration) -> Result<Heartbeat> {
        let process = Process::this().map_or_else(|_| "unknown".to_owned(), |process| process.to_string());
        let mut sent = since_boot();
        let worker = workers::register(store, &process, lease).await?;
        // Who held the store may have kept it waiting for most of its lease, and nothing may begin under one that is over.
        while since_boot() >= sent + lease / 2 {
            sent = since_boot();
            if !workers::beat(store, worker, lease).await? {
                return Err(DatabaseError::Busy(format!("the worker {worker} has expired")).into());
            }
        }
        let (stop, stopped) = watch::channel(false);
        let (pulse, heard) = watch::channel(Pulse::default());
        let good = Lease::new(sent + lease * 9 / 10);
        let beating = Beating { store: store.clone(), worker, lease, good: good.clone() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Broken(format!("no thread to beat: {error}")))?;
        let thread = thread::Builder::new().name("refrain-heartbeat".to_owned());
        let spawned = thread.spawn(move || runtime.block_on(beating.beat(&pulse, stopped)));
        spawned.map_err(|error| StoreError::Broken(format!("no thread to beat: {error}")))?;
        Ok(Heartbeat { worker, pulse: heard, lease: good, stop })
    }

    /// Whether the worker may have been taken over: it was, or the thread that said otherwise is gone.
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
    /// Up to when it is good.
    good: Lease,
}

impl Beating {
    async fn beat(self, pulse: &watch::Sender<Pulse>, mut stopped: watch::Receiver<bool>) {
        // The pools of the process belong to its runtime; a thread of its own needs connections of its own.
        let mut own = None;
        let mut next = since_boot() + self.lease / 3;
        loop {
            let pause = next.saturating_sub(since_boot()).min(LISTEN);
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                () = tokio::time::sleep(pause) => {}
            }
            // Whatever hangs, the deadline does not wait for it.
            let in_time = tokio::select! {
                () = self.say(&mut own, pulse, &mut next) => true,
                () = reached(self.good.until()) => false,
            };
            if !in_time || since_boot() >= self.good.until() {
                tracing::warn!(
                    worker = self.worker,
                    "silent for too long: what this worker holds is given up"
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

    /// Asks for runs to end, and says that the worker is alive if it is time.
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
                    tracing::warn!(worker = self.worker, %error, "a heartbeat failed");
                    *next = sent + self.lease / 20;
                }
            }
        }
        hear(store, pulse).await;
    }
}

/// Asks which runs are to end.
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
