//! Claims runs, as many as there is room for, and executes them.
//!
//! A claim takes no more runs than can begin at once: a claimed run that does not begin is kept from other workers. While one claim
//! is made the runs of the one before are running, and their endings are recorded together, so batches grow with the load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use refrain_core::random::{Random as _, SystemRandom};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Engine;
use super::executor::{Interruption, Task};
use super::finisher::{Counts, Leases, Unrecorded, lease_of, record};
use super::heartbeat::Heartbeat;
use super::isolation::may_begin;
use super::notify::Hints;
use super::queue_fronts::QueueFronts;
use super::reconcile;
use super::running::{RunningAttempts, listen};
use super::service::{Next, Service, Stop, Wake};
use super::settings::Settings;
use super::turns::in_turn;
use super::vitals::Vitals;
use crate::database::DatabaseError;
use crate::failpoint;
use crate::job::{Definition, Jobs};
use crate::run::Surroundings;
use crate::store::claim::{CHANCES, Claimed, QueueClaim, claim, due, held, recover};
use crate::store::finish::{ClaimedAttempt, End, Ending};
use crate::store::queue_line::{Line, Priority};
use crate::store::workers::WorkerTask;
use crate::store::{Result, Store, StoreError, workers};

/// The most lines that are read together.
const LINES: usize = 10_000;
/// The message when the store was unreachable for so long that an ending cannot be recorded any more.
const UNRECORDED: &str = "it was unreachable for longer than the lease, so the end of the last run is not recorded; \
     the run may have done its work, and is tried again when the store is back";
/// How long to wait for tasks that ignore an interruption, and for a store that does not answer, when told to stop now.
const LAST_WAIT: Duration = Duration::from_secs(10);

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
    fronts: QueueFronts,
    unresolved: Option<(QueueClaim, Arc<Definition>)>,
    /// A registration that was lost and is not retired yet.
    lost: Option<i64>,
    reconciled: Instant,
    listening: JoinHandle<()>,
    running: RunningAttempts,
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
        let heartbeat = Heartbeat::start(&store, settings.lease, WorkerTask::Attempts).await?;
        vitals.has_lease(&heartbeat.lease);
        let (leases, unrecorded) = (Leases::default(), Unrecorded::default());
        let running = RunningAttempts::default();
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
            fronts: QueueFronts::default(),
            unresolved: None,
            lost: None,
            reconciled: Instant::now(),
            listening: listen(&heartbeat, &running, &wake),
            running,
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

    async fn claim_from(&mut self, lines: Vec<Line>) -> Result<usize> {
        self.turn = self.turn.wrapping_add(1);
        let mut lines = in_turn(lines, &self.jobs, self.turn, self.settings.slots);
        if let Some(alone) = self.drained_for {
            if self.running.len() > 0 {
                return Ok(0);
            }
            self.drained_for = None;
            lines.sort_by_key(|(line, ..)| *line != alone);
        }
        let mut claimed = 0;
        for (line, definition, share) in lines {
            let room = self.running.room(self.settings.slots);
            if room == 0 {
                break;
            }
            claimed += self.claim(line, &definition, room.min(share)).await?;
        }
        Ok(claimed)
    }

    async fn claim(&mut self, line: Line, definition: &Arc<Definition>, room: usize) -> Result<usize> {
        let is_suspect = line.priority()? == Priority::Suspect;
        let after = self.fronts.get(line);
        let request =
            QueueClaim { after, ..self.request(line, definition, if is_suspect { 1 } else { room }, None) };
        let runs = self.claimed(request, definition).await?;
        let count = runs.len();
        self.fronts.set(line, runs.last().filter(|_| count == request.limit).map(|last| last.run));
        if runs.is_empty() {
            // From the very front, if that was not it.
            return Ok(usize::from(after > 0));
        }
        self.begin(request, definition, runs).await
    }

    /// Makes a claim. If its answer is lost for good, the claim is remembered, and looked up before the next one: otherwise this worker
    /// would hold runs that it does not know.
    async fn claimed(&mut self, request: QueueClaim, definition: &Arc<Definition>) -> Result<Vec<Claimed>> {
        self.unresolved = Some((request, Arc::clone(definition)));
        let runs = claim(&self.store, request).await?;
        self.unresolved = None;
        Ok(runs)
    }

    async fn recover(&mut self) -> Result<()> {
        let Some((request, definition)) = self.unresolved.clone() else { return Ok(()) };
        let runs = recover(&self.store, request).await?;
        self.unresolved = None;
        self.begin(request, &definition, runs).await?;
        Ok(())
    }

    /// Begins claimed runs. Returns how many there were, or 0 if they had to go back.
    async fn begin(
        &mut self,
        request: QueueClaim,
        definition: &Arc<Definition>,
        runs: Vec<Claimed>,
    ) -> Result<usize> {
        let count = runs.len();
        self.leases.insert(request.lease, count);
        for claimed in runs {
            let suspicion = claimed.attempts().suspicion;
            let task = self.task(request.line, definition, request.lease, claimed);
            // The run itself counts as running already.
            if may_begin(suspicion, self.running.len() - 1) {
                self.spawn(task);
            } else {
                // It must run alone, and others are running: nothing new begins until they have ended.
                self.drained_for = Some(request.line);
                self.give_back(task.held()?).await;
                return Ok(0);
            }
        }
        Ok(count)
    }

    fn request(&mut self, line: Line, definition: &Definition, limit: usize, run: Option<i64>) -> QueueClaim {
        self.batch = self.batch.wrapping_add(1);
        let lease = lease_of(self.heartbeat.worker, self.batch);
        let (worker, concurrency) = (self.heartbeat.worker, definition.concurrency);
        let chance = self.random.next_u64() % CHANCES.unsigned_abs();
        let chance = i64::try_from(chance).unwrap_or_default();
        QueueClaim { worker, lease, line, limit, after: 0, concurrency, run, chance }
    }

    fn task(&self, line: Line, definition: &Arc<Definition>, lease: i64, claimed: Claimed) -> Task {
        Task {
            running: self.running.begin(claimed.run, claimed.attempt, claimed.attempts().suspicion),
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
            // It counts as running until its ending is handed over, so that no run begins that must not.
            let (ending, running) = task.execute().await;
            match ending {
                Ok(ending) => {
                    unrecorded.add(&ending.held);
                    drop(endings.send(ending).await);
                }
                Err(error) => tracing::error!(%job, key, %error, "attempt could not be made"),
            }
            drop(running);
            wake.wake();
        });
    }

    async fn give_back(&self, held: ClaimedAttempt) {
        let ending = Ending {
            held,
            started_at: None,
            end: End::GivenBack,
            units: None,
            clears_mark: false,
            reason: None,
        };
        self.unrecorded.add(&ending.held);
        drop(self.endings.send(ending).await);
    }

    /// Whether an attempt is running, or has ended and may let another one begin.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.len() > 0 || self.unrecorded.any() || self.unresolved.is_some()
    }

    /// Executes one run now, if it may begin. False if another worker has it.
    pub(crate) async fn one(&mut self, line: Line, run: i64) -> Result<bool> {
        let Some(definition) = self.jobs.get(line.job()?) else { return Ok(false) };
        let request = self.request(line, &definition, 1, Some(run));
        let runs = self.claimed(request, &definition).await?;
        self.leases.insert(request.lease, runs.len());
        let Some(claimed) = runs.into_iter().next() else { return Ok(false) };
        self.spawn(self.task(line, &definition, request.lease, claimed));
        Ok(true)
    }

    /// Registers again after the lease was lost, when all attempts are interrupted. The lost registration is retired before the next
    /// claim: that waits for a claim under it whose answer was lost, and the runs of that claim are taken over, because no attempt
    /// may begin under a lease that is not renewed.
    async fn stay_alive(&mut self) -> Result<()> {
        if self.heartbeat.is_lost() {
            // Its later reports are not about the runs that begin from now on.
            self.listening.abort();
            self.running.interrupt(Interruption::Lost, None);
            self.running.nothing().await;
            let heartbeat = Heartbeat::start(&self.store, self.settings.lease, WorkerTask::Attempts).await?;
            self.vitals.has_lease(&heartbeat.lease);
            self.listening = listen(&heartbeat, &self.running, &self.wake);
            self.lost = Some(std::mem::replace(&mut self.heartbeat, heartbeat).worker);
            self.batch = 0;
        }
        // Only after this process has registered under another number: then no rescuer kills it for its former runs.
        let Some(lost) = self.lost else { return Ok(()) };
        workers::retire(&self.store, lost).await?;
        (self.lost, self.unresolved) = (None, None);
        Ok(())
    }

    /// Compares the runs that this worker holds in the store with those that it is running: once per heartbeat, and when endings are
    /// not recorded any more. An attempt that is neither running nor about to be recorded would be kept alive for ever by a worker
    /// that does not know it: its task is gone, or its ending could not be recorded. It goes back under a new number.
    async fn reconcile(&mut self) -> Result<()> {
        let is_due = self.finisher.is_finished() || self.reconciled.elapsed() >= self.settings.beat();
        if !is_due || failpoint::is_weakened("worker.unreconciled") {
            return Ok(());
        }
        self.reconciled = Instant::now();
        self.replace_finisher();
        // In this order: an attempt goes from its task to the finisher to the store, and nothing is claimed meanwhile.
        let mut known = self.running.attempts();
        known.extend(self.unrecorded.attempts());
        let held = held(&self.store, self.heartbeat.worker).await?;
        for (one, was_begun) in reconcile::unknown(held, &known, |lease| self.leases.contains(lease)) {
            tracing::error!(
                run = one.claimed.run,
                attempt = one.claimed.attempt,
                was_begun,
                "this worker holds a run that it does not know; the run goes back to the queue"
            );
            let line = Line(one.line);
            let retry = self.jobs.now().retry_of(line.job()?);
            let ending = reconcile::ending(&one, line.job()?, was_begun, retry);
            self.unrecorded.add(&ending.held);
            drop(self.endings.send(ending).await);
        }
        Ok(())
    }

    /// Replaces a finisher that has ended by a bug of Refrain. The attempts whose endings it lost are found in the store.
    fn replace_finisher(&mut self) {
        if self.finisher.is_finished() {
            tracing::error!("the task that records endings ended; another one replaces it");
            self.unrecorded = Unrecorded::default();
            let (endings, receiver) = mpsc::channel(self.settings.slots.max(1));
            let (leases, unrecorded) = (self.leases.clone(), self.unrecorded.clone());
            self.endings = endings;
            let recording = record(self.store.clone(), leases, unrecorded, receiver, self.wake.clone());
            self.finisher = tokio::spawn(recording);
        }
    }

    /// Waits until no attempt is running; those that take too long are interrupted and go back to the queue. Returns what was
    /// recorded.
    pub(crate) async fn finish(mut self, stop: &Stop) -> Result<Counts> {
        tokio::select! {
            () = self.running.nothing() => {}
            () = stop.stopping() => {}
            () = tokio::time::sleep(self.settings.grace) => {}
        }
        self.running.interrupt(Interruption::Stopped, None);
        let silent = tokio::time::timeout(LAST_WAIT, self.running.nothing()).await.is_err();
        self.surroundings.supervisors.stop_all().await;
        // The finisher ends when the last sender is gone.
        self.endings = mpsc::channel(1).0;
        let recording = async { (&mut self.finisher).await.unwrap_or_default() };
        let patience = async {
            if silent {
                return;
            }
            stop.stopping().await;
            tokio::time::sleep(LAST_WAIT).await;
        };
        let mut pulse = self.heartbeat.pulse.clone();
        let given_up = async {
            // A heartbeat that has ended reports so, or is gone with its thread.
            let _ = pulse.wait_for(|pulse| pulse.is_lost).await;
            tokio::time::sleep(LAST_WAIT).await;
        };
        let counts = tokio::select! {
            counts = recording => counts,
            () = patience => {
                // Runs that were not given back are taken over when the lease expires.
                tracing::error!("stopped before all endings were recorded; the runs will be taken over");
                return Ok(Counts::default());
            }
            // After the lease no ending can be recorded; there is no point in waiting for the store.
            () = given_up => return Err(DatabaseError::Unreachable(UNRECORDED.to_owned()).into()),
        };
        workers::retire(&self.store, self.heartbeat.worker).await?;
        Ok(counts)
    }

    /// Waits for all running attempts, however long that takes; each has a timeout.
    pub(crate) async fn finish_all(mut self, stop: &Stop, timeout: Duration) -> Result<Counts> {
        self.settings.grace = timeout + self.settings.grace;
        self.finish(stop).await
    }
}

impl Service for Worker {
    const NAME: &'static str = "worker";
    type Error = StoreError;

    /// Claims what there is room for. [`Next::Now`] if something was claimed.
    async fn tick(&mut self) -> Result<Next> {
        self.stay_alive().await?;
        self.recover().await?;
        self.reconcile().await?;
        self.surroundings.supervisors.stop_idle();
        if self.running.room(self.settings.slots) == 0 {
            return Ok(Next::Idle);
        }
        let hints = if self.drained_for.is_none() { self.hints.take() } else { Vec::new() };
        if !hints.is_empty() && self.claim_from(hints).await? > 0 {
            return Ok(Next::Now);
        }
        let lines = due(&self.store, LINES).await?;
        Ok(if self.claim_from(lines).await? > 0 { Next::Now } else { Next::Idle })
    }
}

impl Drop for Worker {
    /// Interrupts the attempts of a worker that is dropped.
    fn drop(&mut self) {
        self.running.interrupt(Interruption::Stopped, None);
        self.listening.abort();
    }
}
