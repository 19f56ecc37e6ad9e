//! Says that a worker is alive, from a thread of its own: jobs that keep all other threads busy must not look
//! dead.
//!
//! The worker's own deadline is counted from when a beat was *sent*, so it stops before anyone may take over. A beat
//! that comes too late is refused by the store, and the worker that hears so has lost everything it held: it ends
//! what it is doing and registers anew.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::lease::Lease;
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

/// A registered worker; dropped, it beats no longer.
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
        let sent = Instant::now();
        let worker = workers::register(store, &process, lease).await?;
        let (stop, stopped) = watch::channel(false);
        let (pulse, heard) = watch::channel(Pulse::default());
        let deadline = sent + lease * 9 / 10;
        let (renewed, renewals) = watch::channel(deadline);
        let beating = Beating { store: store.clone(), worker, lease, deadline, renewed };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Broken(format!("no thread to beat: {error}")))?;
        let good = Lease::new(renewals, runtime.handle().clone());
        let thread = thread::Builder::new().name("refrain-heartbeat".to_owned());
        let spawned = thread.spawn(move || runtime.block_on(beating.beat(&pulse, stopped)));
        spawned.map_err(|error| StoreError::Broken(format!("no thread to beat: {error}")))?;
        Ok(Heartbeat { worker, pulse: heard, lease: good, stop })
    }

    /// Whether the worker may have been taken over.
    pub(crate) fn is_lost(&self) -> bool {
        self.pulse.borrow().is_lost
    }

    /// Beats no longer, and holds nothing.
    pub(crate) async fn retire(self, store: &Store) -> Result<()> {
        self.stop.send_replace(true);
        workers::retire(store, self.worker).await
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
    deadline: Instant,
    renewed: watch::Sender<Instant>,
}

impl Beating {
    async fn beat(mut self, pulse: &watch::Sender<Pulse>, mut stopped: watch::Receiver<bool>) {
        // The pools of the process belong to its runtime; a thread of its own needs connections of its own.
        let Ok(store) = self.store.reopened().await else {
            pulse.send_modify(|pulse| pulse.is_lost = true);
            return;
        };
        self.store = store;
        let deadline = |beating: &Beating| tokio::time::Instant::from_std(beating.deadline);
        let mut next = Instant::now() + self.lease / 3;
        loop {
            let pause = next.saturating_duration_since(Instant::now()).min(LISTEN);
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                () = tokio::time::sleep(pause) => {}
            }
            // Whatever hangs, the deadline does not wait for it.
            let in_time = tokio::time::timeout_at(deadline(&self), self.say(pulse, &mut next)).await;
            if in_time.is_err() || Instant::now() >= self.deadline {
                tracing::warn!(
                    worker = self.worker,
                    "silent for too long: what this worker holds is given up"
                );
                pulse.send_modify(|pulse| pulse.is_lost = true);
                break;
            }
        }
        self.store.database.close().await;
    }

    /// Asks for runs to end, and says that the worker is alive if it is time.
    async fn say(&mut self, pulse: &watch::Sender<Pulse>, next: &mut Instant) {
        if Instant::now() >= *next {
            let sent = Instant::now();
            match workers::beat(&self.store, self.worker, self.lease).await {
                Ok(true) => {
                    self.deadline = sent + self.lease * 9 / 10;
                    *next = sent + self.lease / 3;
                }
                Ok(false) => self.deadline = sent,
                Err(error) => {
                    tracing::warn!(worker = self.worker, %error, "a heartbeat failed");
                    *next = sent + self.lease / 20;
                }
            }
            self.renewed.send_if_modified(|good| std::mem::replace(good, self.deadline) != self.deadline);
        }
        self.hear(pulse).await;
    }

    /// Asks which runs are to end.
    async fn hear(&self, pulse: &watch::Sender<Pulse>) {
        if let Ok(runs) = workers::cancellations(&self.store, CANCELLATIONS_MAX).await {
            pulse.send_if_modified(|pulse| {
                let changed = *pulse.cancelled != runs;
                pulse.cancelled = Arc::new(runs);
                changed
            });
        }
    }
}
