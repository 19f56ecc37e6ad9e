//! Takes over from workers whose heartbeat stopped.
//!
//! A worker is seen expired twice before it is taken over from, a heartbeat apart by this process's own clock: after a machine wakes
//! from sleep all its workers look expired, and get the time for a heartbeat. If the store or a database of the jobs is a SQLite
//! file, the silent process is killed first if it runs on this machine: stopped in the middle of a transaction it would keep the
//! file locked for all others. The process of a worker that only sends effects is left alone: it is a user's program, which may have
//! stopped sending and go on with other work.
//!
//! A worker whose process is gone is taken over from before its lease expires: it can neither write nor start anything. Only its
//! supervisor may still be ending a command, so the rescuer waits for the supervisor; it ends the command before the lease expires.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Engine;
use super::service::{Next, Service, Wake};
use crate::failpoint;
use crate::job::Jobs;
use crate::ledger::destination::Destinations;
use crate::process::{Process, ProcessState};
use crate::store::take_over::{TakenOver, take_over};
use crate::store::workers::{Silent, is_heard_of, near, silent};
use crate::store::{Result, Store, StoreError};
use crate::supervision::client::has_commands_left;

/// The most silent workers that are read together.
const WORKERS: i64 = 100;
/// The most workers of this machine whose processes are checked together.
const NEAR: i64 = 1_000;
/// The longest interval between two checks of the processes of this machine.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Rescuer {
    store: Store,
    jobs: Jobs,
    beat: Duration,
    seen: HashMap<i64, Instant>,
    workers: Wake,
    destinations: Destinations,
}

impl Rescuer {
    pub(crate) fn new(engine: &Engine) -> Rescuer {
        Rescuer {
            store: engine.store.clone(),
            jobs: engine.jobs.clone(),
            beat: engine.settings.beat(),
            seen: HashMap::new(),
            workers: engine.wake.clone(),
            destinations: engine.destinations.clone(),
        }
    }

    /// Takes over from all workers that are silent now, and returns.
    pub(crate) async fn rescue_all(mut self) -> Result<()> {
        loop {
            let next = self.tick().await?;
            match next {
                Next::After(pause) if !self.seen.is_empty() => tokio::time::sleep(pause).await,
                _ => return Ok(()),
            }
        }
    }

    /// Takes over from one worker, if it is silent; all others are left to processes that serve.
    pub(crate) async fn rescue_only(&mut self, worker: i64) -> Result<()> {
        self.look(Some(worker)).await.map(drop)
    }

    /// Takes over from a worker. An error is logged, so that it does not keep the others waiting.
    async fn rescue(&mut self, worker: &Silent, is_gone: bool) {
        match self.taken_over(worker, is_gone).await {
            Ok(Some(TakenOver { runs, failed, in_doubt })) => {
                tracing::warn!(worker = worker.id, runs, failed, in_doubt, "took over from a silent worker");
                self.seen.remove(&worker.id);
                self.workers.wake();
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(worker = worker.id, %error, "could not take over from a worker");
            }
        }
    }

    async fn taken_over(&mut self, worker: &Silent, is_gone: bool) -> Result<Option<TakenOver>> {
        let may_hold_a_file = !is_gone && !worker.sends && self.destinations.has_file();
        if may_hold_a_file && !self.end_holder(worker).await? {
            return Ok(None);
        }
        take_over(&self.store, worker.id, is_gone, &|job| self.jobs.now().retry_of(job)).await
    }

    /// Workers that have not expired and whose processes have ended, on this machine.
    async fn gone(&self) -> Result<Vec<(Silent, Process)>> {
        let Ok(here) = Process::here() else { return Ok(Vec::new()) };
        let near = near(&self.store, &here, NEAR).await?;
        let named = near.into_iter().filter_map(|worker| Some((worker.process.parse().ok()?, worker)));
        let gone = named.filter(|(process, _): &(Process, Silent)| process.state() == ProcessState::Gone);
        Ok(gone.map(|(process, worker)| (worker, process)).collect())
    }

    /// Kills the process of an expired worker, which must not go on. A process that has registered again has noticed by itself.
    /// False if it could not be killed.
    async fn end_holder(&mut self, worker: &Silent) -> Result<bool> {
        let Ok(process) = worker.process.parse::<Process>() else { return Ok(true) };
        let is_this = Process::this().is_ok_and(|this| this == process);
        if is_this
            || process.state() != ProcessState::Alive
            || is_heard_of(&self.store, &worker.process).await?
        {
            return Ok(true);
        }
        let named = process.to_string();
        let ended = tokio::task::spawn_blocking(move || process.end()).await;
        match ended {
            Ok(Ok(_)) => {
                tracing::warn!(
                    worker = worker.id,
                    process = named,
                    "killed a process that was silent for too long"
                );
                // It may have kept the file locked, and the others silent. They get their time from now on.
                self.seen.clear();
                Ok(true)
            }
            Ok(Err(error)) => {
                tracing::error!(worker = worker.id, process = named, %error, "could not kill a silent process");
                Ok(false)
            }
            Err(_) => Ok(false),
        }
    }

    /// Whether a worker has had time for another heartbeat. A lease without a worker needs none.
    fn is_due(&mut self, worker: &Silent) -> bool {
        let waited = self.seen.entry(worker.id).or_insert_with(Instant::now).elapsed();
        let state = worker.process.parse::<Process>().ok().map(|process| process.state());
        worker.process.is_empty() || has_had_its_time(waited, self.beat, state)
    }
}

/// An expired worker gets the time for another heartbeat, unless its process is gone.
fn has_had_its_time(waited: Duration, beat: Duration, state: Option<ProcessState>) -> bool {
    waited >= beat || state == Some(ProcessState::Gone)
}

impl Service for Rescuer {
    const NAME: &'static str = "rescuer";
    type Error = StoreError;

    async fn tick(&mut self) -> Result<Next> {
        self.look(None).await
    }
}

impl Rescuer {
    /// Looks for silent workers, all of them or one, and takes over from those that are due.
    async fn look(&mut self, only: Option<i64>) -> Result<Next> {
        let mut silent = silent(&self.store, WORKERS).await?;
        let mut gone = self.gone().await?;
        if let Some(only) = only {
            silent.retain(|worker| worker.id == only);
            gone.retain(|(worker, _)| worker.id == only);
        }
        let is_there =
            |worker: i64| silent.iter().chain(gone.iter().map(|(one, _)| one)).any(|one| one.id == worker);
        self.seen.retain(|worker, _| is_there(*worker));
        for (worker, process) in &gone {
            let is_new = self.seen.insert(worker.id, Instant::now()).is_none();
            if has_commands_left(process) && !failpoint::is_weakened("rescuer.hasty") {
                if is_new {
                    tracing::info!(
                        worker = worker.id,
                        "a worker died; waiting until its commands have ended"
                    );
                }
                continue;
            }
            self.rescue(worker, true).await;
        }
        for worker in &silent {
            if self.is_due(worker) {
                self.rescue(worker, false).await;
            }
        }
        let pause = if self.seen.is_empty() { self.beat } else { self.beat / 4 };
        Ok(Next::After(pause.min(if self.seen.is_empty() { LOOK } else { LOOK / 4 })))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use refrain_core::ProjectName;
    use tempfile::TempDir;

    use super::*;
    use crate::database::Address;
    use crate::job::Registry;
    use crate::store::Reality;
    use crate::store::workers::{WorkerTask, register, retire};

    const HOUR: Duration = Duration::from_hours(1);

    async fn store(directory: &TempDir) -> Store {
        let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
        let (address, project) = (Address::parse(&address).unwrap(), ProjectName::parse("shop").unwrap());
        Store::open(&address, &project, 1, HOUR, Reality::Real).await.unwrap()
    }

    fn identity(child: &Child) -> Process {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let (_, after_its_name) = stat.rsplit_once(") ").unwrap();
        let started = after_its_name.split(' ').nth(19).unwrap();
        format!("{}{}/{started}", Process::here().unwrap(), child.id()).parse().unwrap()
    }

    fn rescuer(store: &Store, beat: Duration) -> Rescuer {
        Rescuer {
            store: store.clone(),
            jobs: Jobs::of(Registry::default()),
            beat,
            seen: HashMap::new(),
            workers: Wake::default(),
            destinations: Destinations::relaying([], true),
        }
    }

    #[test]
    fn a_worker_that_may_be_alive_has_time_for_another_heartbeat() {
        let [beat, less] = [Duration::from_secs(10), Duration::from_millis(9_999)];
        for state in [Some(ProcessState::Alive), Some(ProcessState::Elsewhere), None] {
            assert!(!has_had_its_time(Duration::ZERO, beat, state), "{state:?}");
            assert!(!has_had_its_time(less, beat, state), "{state:?}");
            assert!(has_had_its_time(beat, beat, state), "{state:?}");
        }
        assert!(has_had_its_time(Duration::ZERO, beat, Some(ProcessState::Gone)));
    }

    #[tokio::test]
    async fn an_expired_worker_is_due_a_heartbeat_after_it_was_first_seen() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory).await;
        let this = Process::this().unwrap().to_string();
        let (place, _) = this.rsplit_once('/').and_then(|(place, _)| place.rsplit_once('/')).unwrap();
        let (gone, elsewhere) = (format!("{place}/0/1"), "unknown".to_owned());
        for (process, beat, is_due) in [
            (this.clone(), HOUR, false),
            (this, Duration::ZERO, true),
            (elsewhere.clone(), HOUR, false),
            (elsewhere, Duration::ZERO, true),
            (gone, HOUR, true),
            (String::new(), HOUR, true),
        ] {
            let worker = Silent { id: 7, process, sends: false };
            assert_eq!(rescuer(&store, beat).is_due(&worker), is_due, "{worker:?} after {beat:?}");
        }
    }

    #[tokio::test]
    async fn a_silent_process_is_ended_unless_it_has_registered_again() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(&directory).await;
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = identity(&child);
        let silent = Silent { id: 999, process: process.to_string(), sends: false };
        let number = register(&store, &silent.process, HOUR, WorkerTask::Attempts).await.unwrap();
        assert!(rescuer(&store, HOUR).end_holder(&silent).await.unwrap());
        assert_eq!(process.state(), ProcessState::Alive, "it has noticed by itself");
        retire(&store, number).await.unwrap();
        assert!(rescuer(&store, HOUR).end_holder(&silent).await.unwrap());
        assert_eq!(process.state(), ProcessState::Gone);
        child.wait().unwrap();
    }
}
