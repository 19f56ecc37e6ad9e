//! Claims runs, as many as there is room for, and sees them through.
//!
//! A claim takes no more than can begin at once: what is claimed and does not run is kept from others. While one claim
//! is being made the runs of the one before are going on, and their endings are recorded together, so batches grow
//! with the load by themselves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use refrain_core::random::{Random as _, SystemRandom};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Engine;
use super::bell::Hints;
use super::executor::{Interruption, Task};
use super::finisher::{Counts, Leases, Unrecorded, lease_of, record};
use super::fronts::Fronts;
use super::heartbeat::Heartbeat;
use super::isolation::may_begin;
use super::reconcile;
use super::service::{Next, Stop, Wake};
use super::settings::Settings;
use super::under_way::{UnderWay, listen};
use super::vitals::Vitals;
use crate::database::DatabaseError;
use crate::failpoint;
use crate::job::{Definition, Jobs};
use crate::run::Surroundings;
use crate::store::claim::{CHANCES, Claimed, Wish, claim, due, held, recover};
use crate::store::finish::{End, Ending, Held};
use crate::store::queue_line::{Line, Priority};
use crate::store::{Result, Store, workers};

/// The most lines that are looked at in one go.
const LINES: usize = 10_000;
/// Every so many turns suspects go first: live runs without end must not keep them waiting for ever.
const SUSPECTS_FIRST: usize = 8;
/// What is said when the store was gone for so long that an ending cannot be recorded any more.
const UNRECORDED: &str = "it was away for longer than the lease, so how the last run ended is not recorded and not \
     known to others; it may have done its work, and is tried again when the store is back";
/// How long to wait for tasks that do not hear, and for a store that does not answer, when told to stop now.
const LAST_WORD: Duration = Duration::from_secs(10);

/// A worker: one registration, many runs.
pub(crate) struct Worker {
    store: Store,
    surroundings: Arc<Surroundings>,
    jobs: Jobs,
    settings: Settings,
    heartbeat: Heartbeat,
    batch: u32,
    random: SystemRandom,
    turn: usize,
    drained_for: Option<Line>,
    fronts: Fronts,
    unresolved: Option<(Wish, Arc<Definition>)>,
    /// A registration that was lost and is not retired yet.
    lost: Option<i64>,
    reconciled: Instant,
    listening: JoinHandle<()>,
    under_way: UnderWay,
    leases: Leases,
    unrecorded: Unrecorded,
    endings: mpsc::Sender<Ending>,
    finisher: JoinHandle<Counts>,
    wake: Wake,
    hints: Hints,
    vitals: Vitals,
}

impl Worker {
    pub(crate) async fn start(engine: Engine) -> Result<Worker> {
        let Engine { store, project, jobs, settings, wake, hints, destinations, vitals, .. } = engine;
        let heartbeat = Heartbeat::start(&store, settings.lease).await?;
        vitals.lives_by(&heartbeat.lease);
        let (leases, unrecorded) = (Leases::default(), Unrecorded::default());
        let under_way = UnderWay::default();
        let (endings, receiver) = mpsc::channel(settings.slots.max(1));
        let recording = record(store.clone(), leases.clone(), unrecorded.clone(), receiver, wake.clone());
        let finisher = tokio::spawn(recording);
        let surroundings = Arc::new(Surroundings::new(store.clone(), project, destinations));
        Ok(Worker {
            store,
            surroundings,
            jobs,
            settings,
            batch: 0,
            random: SystemRandom::new(),
            turn: 0,
            drained_for: None,
            fronts: Fronts::default(),
            unresolved: None,
            lost: None,
            reconciled: Instant::now(),
            listening: listen(&heartbeat, &under_way, &wake),
            under_way,
            leases,
            unrecorded,
            endings,
            finisher,
            wake,
            hints,
            vitals,
            heartbeat,
        })
    }

    /// Claims what there is room for. [`Next::Now`] if something was claimed.
    pub(crate) async fn tick(&mut self) -> Result<Next> {
        self.stay_alive().await?;
        self.recover().await?;
        self.reconcile().await?;
        self.surroundings.supervisors.rest();
        if self.under_way.room(self.settings.slots) == 0 {
            return Ok(Next::Idle);
        }
        let hints = if self.drained_for.is_none() { self.hints.take() } else { Vec::new() };
        if !hints.is_empty() && self.claim_from(hints).await? > 0 {
            return Ok(Next::Now);
        }
        let lines = due(&self.store, LINES).await?;
        Ok(if self.claim_from(lines).await? > 0 { Next::Now } else { Next::Idle })
    }

    async fn claim_from(&mut self, lines: Vec<Line>) -> Result<usize> {
        let mut lines = self.in_turn(lines);
        if let Some(alone) = self.drained_for {
            if self.under_way.len() > 0 {
                return Ok(0);
            }
            self.drained_for = None;
            lines.sort_by_key(|(line, ..)| *line != alone);
        }
        let mut claimed = 0;
        for (line, definition, share) in lines {
            let room = self.under_way.room(self.settings.slots);
            if room == 0 {
                break;
            }
            claimed += self.claim(line, &definition, room.min(share)).await?;
        }
        Ok(claimed)
    }

    /// The lines of jobs that we know, in their order; those of one priority take turns, and share what room there is.
    fn in_turn(&mut self, lines: Vec<Line>) -> Vec<(Line, Arc<Definition>, usize)> {
        self.turn = self.turn.wrapping_add(1);
        let known = lines.into_iter().filter_map(|line| {
            let definition = self.jobs.get(line.job().ok()?)?;
            Some((line.priority().ok()?, line, definition))
        });
        let mut known: Vec<(Priority, Line, Arc<Definition>)> = known.collect();
        let mut shared = Vec::with_capacity(known.len());
        for same in known.chunk_by_mut(|one, next| one.0 == next.0) {
            let length = same.len();
            same.rotate_left(self.turn % length);
            let share = (self.settings.slots / length).max(1);
            shared.extend(same.iter().map(|(_, line, definition)| (*line, Arc::clone(definition), share)));
        }
        if self.turn.is_multiple_of(SUSPECTS_FIRST) {
            shared.sort_by_key(|(line, ..)| line.priority().ok() != Some(Priority::Suspect));
        }
        shared
    }

    async fn claim(&mut self, line: Line, definition: &Arc<Definition>, room: usize) -> Result<usize> {
        let is_suspect = line.priority()? == Priority::Suspect;
        let after = self.fronts.get(line);
        let wish = Wish { after, ..self.wish(line, definition, if is_suspect { 1 } else { room }, None) };
        let runs = self.claimed(wish, definition).await?;
        let count = runs.len();
        self.fronts.set(line, runs.last().filter(|_| count == wish.limit).map(|last| last.run));
        if runs.is_empty() {
            // From the very front, if that was not it.
            return Ok(usize::from(after > 0));
        }
        self.begin(wish, definition, runs).await
    }

    /// Makes a claim. One whose answer was lost for good is remembered, and asked about before the next: its runs would
    /// be held by a worker that does not know of them.
    async fn claimed(&mut self, wish: Wish, definition: &Arc<Definition>) -> Result<Vec<Claimed>> {
        self.unresolved = Some((wish, Arc::clone(definition)));
        let runs = claim(&self.store, wish).await?;
        self.unresolved = None;
        Ok(runs)
    }

    async fn recover(&mut self) -> Result<()> {
        let Some((wish, definition)) = self.unresolved.clone() else { return Ok(()) };
        let runs = recover(&self.store, wish).await?;
        self.unresolved = None;
        self.begin(wish, &definition, runs).await?;
        Ok(())
    }

    /// Begins what was claimed. Gives how many there were, or none if they had to go back.
    async fn begin(&mut self, wish: Wish, definition: &Arc<Definition>, runs: Vec<Claimed>) -> Result<usize> {
        let count = runs.len();
        self.leases.insert(wish.lease, count);
        for claimed in runs {
            let suspicion = claimed.attempts().suspicion;
            let task = self.task(wish.line, definition, wish.lease, claimed);
            // It is in hand itself already.
            if may_begin(suspicion, self.under_way.len() - 1) {
                self.spawn(task);
            } else {
                // It must run alone, and others are under way: nothing new begins until they have ended.
                self.drained_for = Some(wish.line);
                self.give_back(task.held()?).await;
                return Ok(0);
            }
        }
        Ok(count)
    }

    fn wish(&mut self, line: Line, definition: &Definition, limit: usize, run: Option<i64>) -> Wish {
        self.batch = self.batch.wrapping_add(1);
        let lease = lease_of(self.heartbeat.worker, self.batch);
        let (worker, concurrency) = (self.heartbeat.worker, definition.concurrency);
        let chance = self.random.next_u64() % CHANCES.unsigned_abs();
        let chance = i64::try_from(chance).unwrap_or_default();
        Wish { worker, lease, line, limit, after: 0, concurrency, run, chance }
    }

    fn task(&self, line: Line, definition: &Arc<Definition>, lease: i64, claimed: Claimed) -> Task {
        Task {
            in_hand: self.under_way.begin(claimed.run, claimed.attempt, claimed.attempts().suspicion),
            surroundings: Arc::clone(&self.surroundings),
            definition: Arc::clone(definition),
            good: self.heartbeat.lease.clone(),
            claimed,
            line,
            lease,
        }
    }

    fn spawn(&self, task: Task) {
        let (job, key) = (task.definition.name.clone(), task.claimed.key.clone());
        let (endings, wake) = (self.endings.clone(), self.wake.clone());
        let unrecorded = self.unrecorded.clone();
        tokio::spawn(async move {
            // In hand until it is handed over, so that nothing is begun in its place that must not be.
            let (ending, in_hand) = task.execute().await;
            match ending {
                Ok(ending) => {
                    unrecorded.add(&ending.held);
                    drop(endings.send(ending).await);
                }
                Err(error) => tracing::error!(%job, key, %error, "an attempt could not be done"),
            }
            drop(in_hand);
            wake.wake();
        });
    }

    async fn give_back(&self, held: Held) {
        let ending =
            Ending { held, started_at: None, end: End::GivenBack, units: None, settles: false, reason: None };
        self.unrecorded.add(&ending.held);
        drop(self.endings.send(ending).await);
    }

    /// Whether anything is in hand, or has ended and may let another one begin.
    pub(crate) fn is_busy(&self) -> bool {
        self.under_way.len() > 0 || self.unrecorded.any() || self.unresolved.is_some()
    }

    /// Does one run, here and now, if it may begin. False if somebody else has it.
    pub(crate) async fn one(&mut self, line: Line, run: i64) -> Result<bool> {
        let Some(definition) = self.jobs.get(line.job()?) else { return Ok(false) };
        let wish = self.wish(line, &definition, 1, Some(run));
        let runs = self.claimed(wish, &definition).await?;
        self.leases.insert(wish.lease, runs.len());
        let Some(claimed) = runs.into_iter().next() else { return Ok(false) };
        self.spawn(self.task(line, &definition, wish.lease, claimed));
        Ok(true)
    }

    /// A worker that may have been taken over has ended what it was doing, and registers anew. Its lost registration is
    /// retired before anything is claimed: that waits for a claim of it whose answer was lost, and what this claim got is
    /// taken over, for nothing may begin under a lease that is not renewed.
    async fn stay_alive(&mut self) -> Result<()> {
        if self.heartbeat.is_lost() {
            // What it would say later is not about the runs that are begun from here on.
            self.listening.abort();
            self.under_way.interrupt(Interruption::Lost, None);
            self.under_way.nothing().await;
            let heartbeat = Heartbeat::start(&self.store, self.settings.lease).await?;
            self.vitals.lives_by(&heartbeat.lease);
            self.listening = listen(&heartbeat, &self.under_way, &self.wake);
            self.lost = Some(std::mem::replace(&mut self.heartbeat, heartbeat).worker);
            self.batch = 0;
        }
        // Only after this process is heard of under another number: nobody need end it for what it held before.
        let Some(lost) = self.lost else { return Ok(()) };
        workers::retire(&self.store, lost).await?;
        (self.lost, self.unresolved) = (None, None);
        Ok(())
    }

    /// Once a heartbeat, and when endings are not recorded any more, compares what the store says that this worker holds with what it has in hand. An attempt that is in
    /// neither hand nor on its way to the store would be kept alive for ever by a worker that does not know of it: its task is
    /// gone, or its ending could not be recorded. It goes back under a new number.
    async fn reconcile(&mut self) -> Result<()> {
        let is_due = self.finisher.is_finished() || self.reconciled.elapsed() >= self.settings.beat();
        if !is_due || failpoint::is_weakened("worker.unreconciled") {
            return Ok(());
        }
        self.reconciled = Instant::now();
        self.replace_finisher();
        // In this order: an attempt goes from hand to the finisher to the store, and nothing is claimed meanwhile.
        let mut known = self.under_way.attempts();
        known.extend(self.unrecorded.attempts());
        let held = held(&self.store, self.heartbeat.worker).await?;
        for (one, was_begun) in reconcile::unknown(held, &known, |lease| self.leases.contains(lease)) {
            tracing::error!(
                run = one.claimed.run,
                attempt = one.claimed.attempt,
                was_begun,
                "this worker holds a run that it does not know; the run goes back"
            );
            let line = Line(one.line);
            let retry = self.jobs.now().retry_of(line.job()?);
            let ending = reconcile::ending(&one, line.job()?, was_begun, retry);
            self.unrecorded.add(&ending.held);
            drop(self.endings.send(ending).await);
        }
        Ok(())
    }

    /// A finisher that has ended by a fault of ours records nothing more. What it had in hand is found by the store's word.
    fn replace_finisher(&mut self) {
        if self.finisher.is_finished() {
            tracing::error!("endings were not recorded any more; another task does it from here on");
            self.unrecorded = Unrecorded::default();
            let (endings, receiver) = mpsc::channel(self.settings.slots.max(1));
            let (leases, unrecorded) = (self.leases.clone(), self.unrecorded.clone());
            self.endings = endings;
            let recording = record(self.store.clone(), leases, unrecorded, receiver, self.wake.clone());
            self.finisher = tokio::spawn(recording);
        }
    }

    /// Waits until nothing is in hand; what cannot wait any longer goes back to the queue. Gives what was recorded.
    pub(crate) async fn finish(mut self, stop: &Stop) -> Result<Counts> {
        tokio::select! {
            () = self.under_way.nothing() => {}
            () = stop.stopping() => {}
            () = tokio::time::sleep(self.settings.grace) => {}
        }
        self.under_way.interrupt(Interruption::Stopped, None);
        let silent = tokio::time::timeout(LAST_WORD, self.under_way.nothing()).await.is_err();
        self.surroundings.supervisors.close().await;
        // The finisher ends when nobody can say anything any more.
        self.endings = mpsc::channel(1).0;
        let recording = async { (&mut self.finisher).await.unwrap_or_default() };
        let patience = async {
            if silent {
                return;
            }
            stop.stopping().await;
            tokio::time::sleep(LAST_WORD).await;
        };
        let mut pulse = self.heartbeat.pulse.clone();
        let given_up = async {
            // A heartbeat that has ended says so, or has been lost with its thread.
            let _ = pulse.wait_for(|pulse| pulse.is_lost).await;
            tokio::time::sleep(LAST_WORD).await;
        };
        let counts = tokio::select! {
            counts = recording => counts,
            () = patience => {
                // What was not given back is taken over when this worker has not been heard of for long enough.
                tracing::error!("left before everything was recorded; it will be taken over");
                return Ok(Counts::default());
            }
            // After the lease no ending counts that is recorded; a store that is gone for good is not waited for.
            () = given_up => return Err(DatabaseError::Unreachable(UNRECORDED.to_owned()).into()),
        };
        workers::retire(&self.store, self.heartbeat.worker).await?;
        Ok(counts)
    }

    /// Waits for what is in hand, however long that takes; it has limits of its own.
    pub(crate) async fn finish_all(mut self, stop: &Stop, timeout: Duration) -> Result<Counts> {
        self.settings.grace = timeout + self.settings.grace;
        self.finish(stop).await
    }
}

impl Drop for Worker {
    /// Whoever drops a worker in the middle wants nothing of it to go on.
    fn drop(&mut self) {
        self.under_way.interrupt(Interruption::Stopped, None);
        self.listening.abort();
    }
}
