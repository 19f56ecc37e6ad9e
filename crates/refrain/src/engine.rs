//! The loops that drive the store.
//!
//! Any number of engines may run on one store, in one process or on many machines; none of them leads. The store makes that
//! correct: these loops only decide when to ask it.

pub(crate) mod executor;
pub(crate) mod finisher;
pub(crate) mod heartbeat;
mod isolation;
mod lateness;
mod loops;
pub(crate) mod notify;
mod panics;
pub(crate) mod pruner;
mod queue_fronts;
mod reconcile;
pub(crate) mod relay;
mod relaying;
pub(crate) mod rescuer;
mod running;
pub(crate) mod scheduler;
pub(crate) mod service;
pub(crate) mod settings;
mod turns;
pub(crate) mod unattached;
mod verdict;
pub(crate) mod vitals;
mod watcher;
pub(crate) mod worker;

use std::time::Duration;

use jiff::Timestamp;
use refrain_core::ProjectName;
use tokio::task::JoinHandle;

use finisher::Counts;
use lateness::Lateness;
use loops::Loops;
use notify::Hints;
use pruner::Pruner;
use relay::Relay;
use relaying::Relaying;
use rescuer::Rescuer;
use scheduler::{Now, Scheduler};
use service::{Next, Phase, Service, Stop, Wake, run};
use settings::Settings;
use unattached::Unattached;
use vitals::{Vitals, Watched};
use watcher::Watcher;
use worker::Worker;

use crate::job::Jobs;
use crate::ledger::LedgerError;
use crate::ledger::destination::Destinations;
use crate::store::{Result, Store, StoreError};

/// How often runs may request further runs within one call. The rest waits for the next call.
const ROUNDS_MAX: u32 = 1_000;

/// How often to check that the server of the store is still the same one.
const LOOK: Duration = Duration::from_secs(1);

/// How long to relay intents before the process stops.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// What every loop of an engine needs.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) store: Store,
    pub(crate) project: ProjectName,
    pub(crate) jobs: Jobs,
    pub(crate) settings: Settings,
    pub(crate) wake: Wake,
    pub(crate) hints: Hints,
    pub(crate) destinations: Destinations,
    pub(crate) unattached: Unattached,
    pub(crate) vitals: Vitals,
}

impl Engine {
    pub(crate) async fn worker(&self) -> Result<Worker> {
        Worker::start(self.clone()).await
    }

    pub(crate) fn scheduler(&self, now: Now) -> Scheduler {
        Scheduler::new(self, now)
    }

    pub(crate) fn rescuer(&self) -> Rescuer {
        Rescuer::new(self)
    }

    fn watcher(&self) -> Watcher {
        Watcher::new(self.store.clone(), self.settings.keep)
    }

    fn lateness(&self) -> Lateness {
        Lateness::new(self.store.clone(), self.jobs.clone())
    }

    /// Checks once for alarms; `now` is the time for schedules. An error is only logged: the next check sees the same, and the
    /// work of the caller is done.
    pub(crate) async fn watch(&self, now: Timestamp) {
        let watched = self.watcher().look().await;
        if let Err(error) = watched.and(self.lateness().look_at(now).await) {
            tracing::warn!(%error, "alarm check failed");
        }
    }

    pub(crate) fn relay(&self) -> Relay {
        Relay::new(self, &self.destinations.relayed())
    }

    /// Runs every loop until told to stop; then lets running attempts end, and gives back those that do not. A loop that ends
    /// earlier is an error.
    pub(crate) async fn serve(&self, stop: Stop) -> Result<Counts> {
        let poll = self.settings.poll;
        let quiet = Wake::default();
        let _stops = StopOnDrop(stop.clone());
        let loops = Loops::new(&stop);
        // Before the first write: a process that was stopped in the middle of a transaction may hold a lock on the store.
        let rescuing = run_watched(self.watched(self.rescuer()), stop.clone(), quiet.clone(), poll);
        let rescuer = loops.spawn(Rescuer::NAME, rescuing);
        let worker = match self.worker().await {
            Ok(worker) => worker,
            Err(error) => {
                stop.drain();
                drop(rescuer.await);
                return Err(error);
            }
        };
        let scheduling = self.watched(self.scheduler(Now::Database));
        let (until, never) = (stop.clone(), quiet.clone());
        let scheduling = async move { run_watched(scheduling, until, never, poll).await.total };
        let scheduler = loops.spawn(Scheduler::NAME, scheduling);
        let relaying = Relaying::new(self, &loops, &stop);
        let relaying = loops.spawn(Relaying::NAME, run(relaying, stop.clone(), self.wake.clone(), poll));
        let others = self.others(&loops, &stop);
        let claiming = self.watched(worker);
        self.vitals.has_started();
        let in_place = tokio::spawn(stays_in_place(self.store.clone(), stop.clone(), poll));
        let claiming = Box::pin(run_watched(claiming, stop.clone(), self.wake.clone(), poll));
        let claimed = loops.watched(Worker::NAME, claiming).await;
        let counts = match claimed {
            Some(worker) => worker.finish(&stop).await,
            None => Ok(Counts::default()),
        };
        drop(rescuer.await);
        for other in others {
            drop(other.await);
        }
        // Relays may be aborted anywhere; a database that does not answer must not keep the process from stopping.
        relaying.abort();
        self.relay_last(&stop).await;
        let opened = scheduler.await.ok().flatten().unwrap_or_default();
        in_place.await.unwrap_or(Ok(()))?;
        loops.outcome()?;
        counts.map(|counts| counts.with(opened))
    }

    /// Loops that do not count for readiness: they prune, watch for alarms, and listen.
    fn others(&self, loops: &Loops, stop: &Stop) -> [JoinHandle<Option<()>>; 4] {
        let (poll, quiet) = (self.settings.poll, Wake::default());
        let pruner = Pruner::new(self.store.clone(), self.settings.keep);
        [
            loops.spawn(Pruner::NAME, run(pruner, stop.clone(), quiet.clone(), poll)),
            loops.spawn(Watcher::NAME, run(self.watcher(), stop.clone(), quiet.clone(), poll)),
            loops.spawn(Lateness::NAME, run(self.lateness(), stop.clone(), quiet, poll)),
            loops.spawn("listener", notify::listen(self.store.clone(), self.wake.clone(), stop.clone())),
        ]
    }

    /// Relays the intents of the last runs.
    async fn relay_last(&self, stop: &Stop) {
        let mut relay = self.relay();
        tokio::select! {
            biased;
            () = stop.stopping() => {}
            _ = relay.all_or_later() => {}
            () = tokio::time::sleep(LAST_LOOK) => {}
        }
    }

    /// A loop that counts for readiness.
    fn watched<S: Service>(&self, service: S) -> Watched<S> {
        self.vitals.watched(service, self.settings.poll, self.settings.lease)
    }

    /// Claims and executes all runs that may begin, until none is left or the engine is told to stop. Runs of dead workers are taken
    /// over first: if no process serves, no other one would. Runs that are requested meanwhile are executed as well.
    pub(crate) async fn run_all(&self, stop: &Stop) -> std::result::Result<Counts, LedgerError> {
        self.rescuer().rescue_all().await?;
        let mut relay = self.relay();
        let mut relayed = relay.all_or_later().await;
        let mut worker = self.worker().await?;
        let mut failed = None;
        let mut rounds = 0;
        while stop.phase() < Phase::Draining {
            let woken = self.wake.woken();
            // Read before the tick: an attempt that ends during it may let a run begin that the tick did not see.
            let was_busy = worker.is_busy();
            match worker.tick().await {
                Ok(Next::Now) => continue,
                Ok(_) => {}
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            if !was_busy {
                relayed = relay.all_or_later().await;
                rounds += 1;
                if relayed.runs > 0 && rounds < ROUNDS_MAX {
                    continue;
                }
                break;
            }
            tokio::select! {
                () = woken => {}
                () = stop.draining() => {}
                () = tokio::time::sleep(self.settings.poll) => {}
            }
        }
        let counts = worker.finish(stop).await;
        let counts = failed.map_or(counts, Err)?;
        relayed.failed.map_or(Ok(counts), Err)
    }
}

/// Stops an engine whose store is a file that was moved or replaced, because its further writes would be lost; one whose server
/// failed over; and one whose store turned out to be older than what it has done.
async fn stays_in_place(store: Store, stop: Stop, poll: Duration) -> Result<()> {
    // Checking a file is free; a server is asked once a second at most.
    let poll = if store.database.is_sqlite() { poll } else { poll.max(LOOK) };
    while stop.phase() < Phase::Draining {
        let looked = tokio::select! {
            looked = store.stays_in_place() => looked,
            () = stop.draining() => return Ok(()),
        };
        match looked {
            Err(error @ (StoreError::Moved(_) | StoreError::Unsure(_))) => {
                tracing::error!(error = error.to_string(), "the store is not the one that was opened");
                stop.now();
                return Err(error);
            }
            Err(error) => tracing::debug!(%error, "cannot check where the store is"),
            Ok(()) => {}
        }
        tokio::select! {
            () = stop.draining() => {}
            () = tokio::time::sleep(poll) => {}
        }
    }
    Ok(())
}

/// Stops the loops of an engine whose future is dropped.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.now();
    }
}

/// Runs a watched service, and returns it.
async fn run_watched<S: Service>(mut watched: Watched<S>, stop: Stop, wake: Wake, idle: Duration) -> S {
    run(&mut watched, stop, wake, idle).await;
    watched.service
}
