//! The loops that drive the store.
//!
//! Any number of engines may run on one store, in one process or on many machines; none of them leads. What makes
//! that right is in the store: these loops only decide when to ask it.

pub(crate) mod away;
pub(crate) mod bell;
pub(crate) mod executor;
pub(crate) mod finisher;
mod fronts;
mod heartbeat;
mod isolation;
mod lateness;
mod loops;
mod panics;
pub(crate) mod pruner;
mod reconcile;
pub(crate) mod relay;
mod relaying;
pub(crate) mod rescuer;
pub(crate) mod scheduler;
pub(crate) mod service;
pub(crate) mod settings;
mod under_way;
mod verdict;
pub(crate) mod vitals;
mod watcher;
pub(crate) mod worker;

use std::time::Duration;

use jiff::Timestamp;
use refrain_core::ProjectName;
use tokio::task::JoinHandle;

use away::Away;
use bell::Hints;
use finisher::Counts;
use lateness::Lateness;
use loops::Loops;
use pruner::Pruner;
use relay::Relay;
use relaying::Relaying;
use rescuer::Rescuer;
use scheduler::{Now, Scheduler};
use service::{Next, Phase, Service, Stop, Wake, run};
use settings::Settings;
use vitals::{Vitals, Watched};
use watcher::Watcher;
use worker::Worker;

use crate::job::Jobs;
use crate::ledger::LedgerError;
use crate::ledger::destination::Destinations;
use crate::store::{Result, Store, StoreError};

/// How often runs may wish for runs within one call, before the rest waits for the next one.
const ROUNDS_MAX: u32 = 1_000;

/// How often to ask a server whether it is the one that it was.
const LOOK: Duration = Duration::from_secs(1);

/// How long to look for intents before leaving.
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
    pub(crate) away: Away,
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

    /// Looks once for what a person should hear of; `now` is the time for schedules. Work that was done is not spoiled by a
    /// look that failed: the next one sees the same.
    pub(crate) async fn watch(&self, now: Timestamp) {
        let watched = self.watcher().look().await;
        if let Err(error) = watched.and(self.lateness().look_at(now).await) {
            tracing::warn!(%error, "nobody watched for alarms");
        }
    }

    pub(crate) fn relay(&self) -> Relay {
        Relay::new(self, &self.destinations.relayed())
    }

    /// Runs everything until told to stop; then lets what is under way end, and gives back what does not. A loop that ends before
    /// is an error.
    pub(crate) async fn serve(&self, stop: Stop) -> Result<Counts> {
        let poll = self.settings.poll;
        let quiet = Wake::default();
        let _stops = StopsWhenDropped(stop.clone());
        let loops = Loops::new(&stop);
        // Before anything is written: a process that was stopped in the middle of a transaction may hold the store.
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
        let (until, left_alone) = (stop.clone(), quiet.clone());
        let scheduling = async move { run_watched(scheduling, until, left_alone, poll).await.total };
        let scheduler = loops.spawn(Scheduler::NAME, scheduling);
        let relaying = Relaying::new(self, &loops, &stop);
        let relaying = loops.spawn(Relaying::NAME, run(relaying, stop.clone(), self.wake.clone(), poll));
        let others = self.others(&loops, &stop);
        let claiming = self.watched(Claiming(worker));
        self.vitals.has_started();
        let in_place = tokio::spawn(stays_in_place(self.store.clone(), stop.clone(), poll));
        let claiming = Box::pin(run_watched(claiming, stop.clone(), self.wake.clone(), poll));
        let claimed = loops.watched(Claiming::NAME, claiming).await;
        let counts = match claimed {
            Some(Claiming(worker)) => worker.finish(&stop).await,
            None => Ok(Counts::default()),
        };
        drop(rescuer.await);
        for other in others {
            drop(other.await);
        }
        // They may be cut off anywhere; a database that does not answer keeps no process from leaving.
        relaying.abort();
        self.relay_last(&stop).await;
        let opened = scheduler.await.ok().flatten().unwrap_or_default();
        in_place.await.unwrap_or(Ok(()))?;
        loops.outcome()?;
        counts.map(|counts| counts.with(opened))
    }

    /// Loops without which a process goes on for a while: they prune, watch, and listen.
    fn others(&self, loops: &Loops, stop: &Stop) -> [JoinHandle<Option<()>>; 4] {
        let (poll, quiet) = (self.settings.poll, Wake::default());
        let pruner = Pruner::new(self.store.clone(), self.settings.keep);
        [
            loops.spawn(Pruner::NAME, run(pruner, stop.clone(), quiet.clone(), poll)),
            loops.spawn(Watcher::NAME, run(self.watcher(), stop.clone(), quiet.clone(), poll)),
            loops.spawn(Lateness::NAME, run(self.lateness(), stop.clone(), quiet, poll)),
            loops.spawn("bell", bell::listen(self.store.clone(), self.wake.clone(), stop.clone())),
        ]
    }

    /// Copies what the last runs have wished for.
    async fn relay_last(&self, stop: &Stop) {
        let mut relay = self.relay();
        tokio::select! {
            biased;
            () = stop.stopping() => {}
            _ = relay.all_or_later() => {}
            () = tokio::time::sleep(LAST_LOOK) => {}
        }
    }

    /// A loop without which the process does not count as ready.
    fn watched<S: Service>(&self, service: S) -> Watched<S> {
        self.vitals.watched(service, self.settings.poll, self.settings.lease)
    }

    /// Claims and runs all that may begin, until nothing is left or the engine is told to stop. What a worker that died
    /// has left comes first: where nobody serves, nobody else would take it over. What runs wish for is done as well.
    pub(crate) async fn run_all(&self, stop: &Stop) -> std::result::Result<Counts, LedgerError> {
        self.rescuer().rescue_all().await?;
        let mut relay = self.relay();
        let mut relayed = relay.all_or_later().await;
        let mut worker = self.worker().await?;
        let mut failed = None;
        let mut rounds = 0;
        while stop.phase() < Phase::Draining {
            let woken = self.wake.woken();
            // Asked before the look: what ends during it may let something begin that the look did not see.
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

/// Ends an engine whose store is a file that was moved or replaced, for what it writes from then on belongs to no store; one whose
/// server was taken over from by another; and one whose store turned out to be older than what it has done.
async fn stays_in_place(store: Store, stop: Stop, poll: Duration) -> Result<()> {
    // A file costs nothing to look at; a server is asked once a second at most.
    let poll = if store.database.is_sqlite() { poll } else { poll.max(LOOK) };
    while stop.phase() < Phase::Draining {
        let looked = tokio::select! {
            looked = store.stays_in_place() => looked,
            () = stop.draining() => return Ok(()),
        };
        match looked {
            Err(error @ (StoreError::Moved(_) | StoreError::Unsure(_))) => {
                tracing::error!(error = error.to_string(), "the store is not what it was");
                stop.now();
                return Err(error);
            }
            Err(error) => tracing::debug!(%error, "the store cannot be asked where it is"),
            Ok(()) => {}
        }
        tokio::select! {
            () = stop.draining() => {}
            () = tokio::time::sleep(poll) => {}
        }
    }
    Ok(())
}

/// Whoever drops the future of an engine wants none of its loops to go on.
struct StopsWhenDropped(Stop);

impl Drop for StopsWhenDropped {
    fn drop(&mut self) {
        self.0.now();
    }
}

struct Claiming(Worker);

/// Runs a service that is watched, and gives it back.
async fn run_watched<S: Service>(mut watched: Watched<S>, stop: Stop, wake: Wake, idle: Duration) -> S {
    run(&mut watched, stop, wake, idle).await;
    watched.service
}

impl Service for Claiming {
    const NAME: &'static str = "worker";
    type Error = StoreError;

    async fn tick(&mut self) -> Result<Next> {
        self.0.tick().await
    }
}
