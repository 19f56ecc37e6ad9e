//! Claims runs, as many as there is room for, and sees them through.
//!
//! A claim takes no more than can begin at once: what is claimed and does not run is kept from others. While one claim
//! is being made the runs of the one before are going on, and their endings are recorded together, so batches grow
//! with the load by themselves.

use std::sync::Arc;

use refrain_core::ProjectName;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::executor::{Interruption, Task};
use super::finisher::{Counts, Leases, lease_of, record};
use super::heartbeat::Heartbeat;
use super::isolation::may_begin;
use super::service::{Next, Stop, Wake};
use super::settings::Settings;
use super::under_way::UnderWay;
use crate::job::{Definition, Registry};
use crate::store::claim::{Claimed, Wish, claim, due};
use crate::store::finish::{End, Ending, Held};
use crate::store::line::{Line, Priority};
use crate::store::{Result, Store};

/// The most lines that are looked at in one go.
const LINES: usize = 1_000;

/// A worker: one registration, many runs.
pub(crate) struct Worker {
    store: Store,
    project: ProjectName,
    registry: Arc<Registry>,
    settings: Settings,
    heartbeat: Heartbeat,
    batch: u32,
    turn: usize,
    drained_for: Option<Line>,
    under_way: UnderWay,
    leases: Leases,
    endings: mpsc::Sender<Ending>,
    finisher: JoinHandle<Counts>,
    wake: Wake,
}

impl Worker {
    pub(crate) async fn start(
        store: Store,
        project: ProjectName,
        registry: Arc<Registry>,
        settings: Settings,
        wake: Wake,
    ) -> Result<Worker> {
        let heartbeat = Heartbeat::start(&store, settings.lease).await?;
        let leases = Leases::default();
        let (endings, receiver) = mpsc::channel(settings.slots.max(1));
        let finisher = tokio::spawn(record(store.clone(), leases.clone(), receiver, wake.clone()));
        Ok(Worker {
            store,
            project,
            registry,
            settings,
            heartbeat,
            batch: 0,
            turn: 0,
            drained_for: None,
            under_way: UnderWay::default(),
            leases,
            endings,
            finisher,
            wake,
        })
    }

    /// Claims what there is room for. [`Next::Now`] if something was claimed.
    pub(crate) async fn tick(&mut self) -> Result<Next> {
        self.stay_alive().await?;
        let cancelled = Arc::clone(&self.heartbeat.pulse.borrow().cancelled);
        self.under_way.interrupt(Interruption::Cancelled, Some(&cancelled));
        if self.under_way.room(self.settings.slots) == 0 {
            return Ok(Next::Idle);
        }
        let lines = self.in_turn(due(&self.store, LINES).await?);
        let mut claimed = 0;
        for (line, definition, share) in lines {
            let room = self.under_way.room(self.settings.slots);
            if room == 0 || (self.drained_for.is_some_and(|only| only != line) && self.under_way.len() > 0) {
                break;
            }
            claimed += self.claim(line, &definition, room.min(share)).await?;
        }
        Ok(if claimed > 0 { Next::Now } else { Next::Idle })
    }

    /// The lines of jobs that we know, in their order; those of one priority take turns, and share what room there is.
    fn in_turn(&mut self, lines: Vec<Line>) -> Vec<(Line, Arc<Definition>, usize)> {
        self.turn = self.turn.wrapping_add(1);
        let known = lines.into_iter().filter_map(|line| {
            let definition = self.registry.get(line.job().ok()?)?;
            Some((line.priority().ok()?, line, Arc::clone(definition)))
        });
        let mut known: Vec<(Priority, Line, Arc<Definition>)> = known.collect();
        let mut shared = Vec::with_capacity(known.len());
        for same in known.chunk_by_mut(|one, next| one.0 == next.0) {
            let length = same.len();
            same.rotate_left(self.turn % length);
            let share = (self.settings.slots / length).max(1);
            shared.extend(same.iter().map(|(_, line, definition)| (*line, Arc::clone(definition), share)));
        }
        shared
    }

    async fn claim(&mut self, line: Line, definition: &Arc<Definition>, room: usize) -> Result<usize> {
        let is_suspect = line.priority()? == Priority::Suspect;
        let wish = self.wish(line, definition, if is_suspect { 1 } else { room }, None);
        let runs = claim(&self.store, wish).await?;
        let count = runs.len();
        self.leases.insert(wish.lease, count);
        for claimed in runs {
            let may_begin = may_begin(claimed.attempts().suspicion, self.under_way.len());
            let task = self.task(line, definition, wish.lease, claimed);
            if may_begin {
                self.drained_for = None;
                self.spawn(task);
            } else {
                // It must run alone, and others are under way: nothing new begins until they have ended.
                self.drained_for = Some(line);
                self.give_back(task.held()?).await;
                return Ok(0);
            }
        }
        Ok(count)
    }

    fn wish(&mut self, line: Line, definition: &Definition, limit: usize, run: Option<i64>) -> Wish {
        self.batch = self.batch.wrapping_add(1);
        let lease = lease_of(self.heartbeat.worker, self.batch);
        let concurrency = definition.concurrency;
        Wish { worker: self.heartbeat.worker, lease, line, limit, concurrency, run }
    }

    fn task(&self, line: Line, definition: &Arc<Definition>, lease: i64, claimed: Claimed) -> Task {
        Task {
            interruption: self.under_way.begin(claimed.run, claimed.attempts().suspicion),
            store: self.store.clone(),
            project: self.project.clone(),
            definition: Arc::clone(definition),
            claimed,
            line,
            lease,
        }
    }

    fn spawn(&self, task: Task) {
        let run = task.claimed.run;
        let (under_way, endings, wake) = (self.under_way.clone(), self.endings.clone(), self.wake.clone());
        tokio::spawn(async move {
            match task.execute().await {
                Ok(ending) => drop(endings.send(ending).await),
                Err(error) => tracing::error!(run, %error, "an attempt could not be done"),
            }
            under_way.end(run);
            wake.wake();
        });
    }

    async fn give_back(&self, held: Held) {
        let run = held.run;
        let ending = Ending { held, started_at: None, end: End::GivenBack };
        drop(self.endings.send(ending).await);
        self.under_way.end(run);
    }

    /// Whether anything that we know waits to be claimed, or is in hand.
    pub(crate) async fn is_busy(&self) -> Result<bool> {
        if self.under_way.len() > 0 {
            return Ok(true);
        }
        let lines = due(&self.store, LINES).await?;
        Ok(lines.iter().any(|line| line.job().is_ok_and(|job| self.registry.get(job).is_some())))
    }

    /// Does one run, here and now, if it may begin. False if somebody else has it.
    pub(crate) async fn one(&mut self, line: Line, run: i64) -> Result<bool> {
        let Some(definition) = self.registry.get(line.job()?).cloned() else { return Ok(false) };
        let wish = self.wish(line, &definition, 1, Some(run));
        let runs = claim(&self.store, wish).await?;
        self.leases.insert(wish.lease, runs.len());
        let Some(claimed) = runs.into_iter().next() else { return Ok(false) };
        let task = self.task(line, &definition, wish.lease, claimed);
        self.spawn(task);
        Ok(true)
    }

    /// A worker that may have been taken over ends what it is doing, and registers anew.
    async fn stay_alive(&mut self) -> Result<()> {
        if !self.heartbeat.is_lost() {
            return Ok(());
        }
        self.under_way.interrupt(Interruption::Lost, None);
        self.under_way.nothing().await;
        self.heartbeat = Heartbeat::start(&self.store, self.settings.lease).await?;
        self.batch = 0;
        Ok(())
    }

    /// Waits until nothing is in hand; what cannot wait any longer goes back to the queue. Gives what was recorded.
    pub(crate) async fn finish(self, stop: &Stop) -> Result<Counts> {
        tokio::select! {
            () = self.under_way.nothing() => {}
            () = stop.stopping() => {}
            () = tokio::time::sleep(self.settings.grace) => {}
        }
        self.under_way.interrupt(Interruption::Stopped, None);
        self.under_way.nothing().await;
        drop(self.endings);
        let counts = self.finisher.await.unwrap_or_default();
        self.heartbeat.retire(&self.store).await?;
        Ok(counts)
    }

    /// Waits for what is in hand, however long that takes; it has limits of its own.
    pub(crate) async fn finish_all(mut self, stop: &Stop, timeout: std::time::Duration) -> Result<Counts> {
        self.settings.grace = timeout + self.settings.grace;
        self.finish(stop).await
    }

    /// Hears of runs to end and of its own loss while it has nothing to claim.
    pub(crate) fn pulse(&self) -> tokio::sync::watch::Receiver<super::heartbeat::Pulse> {
        self.heartbeat.pulse.clone()
    }
}
