//! Run: do it now, here. Done already means: say by whom, and do nothing.
//!
//! Whoever comes second follows the attempt that is there, in whatever process it runs. Who waits says what for, does
//! itself what is queued before the run, and gives up when its patience ends: the run stays queued.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use refrain_core::state::RunOutcome;
use refrain_core::why::Cause;
use refrain_core::{RunKey, RunName, Scope, Window, Zone, window_name};

use super::Refrain;
use super::patience::{Obstacle, Patience, Step};
use super::record::{RunRecord, parsed};
use crate::engine::service::{Phase, Service as _};
use crate::engine::worker::Worker;
use crate::error::Error;
use crate::failpoint;
use crate::job::Definition;
use crate::store::begun;
use crate::store::delayed::pull;
use crate::store::enqueue::{Offer, enqueue};
use crate::store::line::{JobNumber, Line, Priority};
use crate::store::reopen::{Reopened, Reopening, reopen};
use crate::store::show::{self, Place};
use crate::store::tick::{Opening, open_one};

/// How often to look at a run that somebody else has.
const LOOK: Duration = Duration::from_millis(100);

/// How much is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// That it was done: if it was, nothing happens.
    Once,
    /// Another attempt of one that is there and not done: it failed, is partial, or was skipped or cancelled.
    Retry,
    /// Another attempt, even if it is done.
    Again,
}

/// What a wish to run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// An attempt was made here.
    Ran,
    /// An attempt was under way elsewhere, and this is how it ended.
    Followed,
    /// It was done before; nothing was done now.
    Deduplicated,
    /// A command was cut off before, and must not be executed again before a person has looked; nothing was done now.
    Held,
    /// It was waited for as long as the caller wanted, in vain. It stays open, and is done by the next process that can.
    GaveUp,
}

/// What became of a run that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReport {
    /// What was done.
    pub did: Did,
    /// The attempt that was seen through.
    pub attempt: u64,
    /// The run as it is now; somebody may have asked for another attempt meanwhile.
    pub run: RunRecord,
    /// What it waited for, if the caller gave up.
    pub waits_for: Option<Cause>,
}

impl RunReport {
    /// A run of which no attempt was seen through.
    fn of(did: Did, run: RunRecord) -> RunReport {
        RunReport { did, attempt: run.attempt, run, waits_for: None }
    }

    /// Whether the attempt, or a later one, left the run done.
    pub fn is_done(&self) -> bool {
        self.run.standing.is_done() && self.run.ended_attempt >= self.attempt
    }
}

/// A run by name: its job, its key, and its window if it has one.
struct Wanted {
    number: JobNumber,
    definition: Arc<Definition>,
    key: RunKey,
    window: Option<Window>,
}

impl Refrain {
    /// Does a run now, here, and waits for it: `job@window`, `job@window/scope` or `job#key`. Told to stop, it returns
    /// with the run as it is then.
    pub async fn run(&self, run: &str, ask: Ask) -> Result<RunReport, Error> {
        self.run_within(run, ask, &Patience::endless()).await
    }

    /// The same for a caller who does not wait for ever while another process has the run, or holds its lane.
    ///
    /// ```
    /// # use refrain::{Ask, Definition, Job, JobError, Patience, Refrain, Run};
    /// # use std::time::Duration;
    /// # struct Welcome;
    /// # impl Job for Welcome {
    /// #     const NAME: &'static str = "welcome";
    /// #     async fn run(&self, _: &mut Run) -> Result<(), JobError> {
    /// #         Ok(())
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
    /// # let refrain = Refrain::at(&address, "shop")?.job(Definition::of(Welcome)?).open().await?;
    /// let patience = Patience::of(Duration::from_secs(60)).telling(|cause| eprintln!("{cause}"));
    /// let report = refrain.run_within("welcome#42", Ask::Once, &patience).await?;
    /// assert!(report.is_done());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_within(&self, run: &str, ask: Ask, patience: &Patience) -> Result<RunReport, Error> {
        let wanted = self.wanted(run).await?;
        let mut relay = self.engine.relay();
        relay.all_or_later().await;
        let missing = || Error::NoRun(run.to_owned());
        let known = if failpoint::is_weakened("run.no-look-up") {
            None
        } else {
            show::find(self.store(), wanted.number, &wanted.key.to_string()).await?
        };
        let is_new = match known {
            Some(_) => false,
            None if ask == Ask::Retry => return Err(missing()),
            None => self.open_wanted(&wanted).await?,
        };
        let found = show::find(self.store(), wanted.number, &wanted.key.to_string()).await?;
        let id = found.ok_or_else(missing)?;
        let mut record = self.record(id).await?.ok_or_else(missing)?;
        let is_there = record.standing.is_open() || counts_as_there(&record);
        if ask == Ask::Once && known.is_some() && is_there {
            self.open_wanted(&wanted).await?;
        }
        if !is_new && !record.standing.is_open() {
            if ask == Ask::Once && is_there {
                return Ok(RunReport::of(Did::Deduplicated, record));
            }
            if ask == Ask::Once && self.is_held(id).await? {
                return Ok(RunReport::of(Did::Held, record));
            }
            if ask == Ask::Retry && is_there {
                return Err(Error::Done { run: run.to_owned(), attempt: record.attempt });
            }
            if record.is_forgotten {
                return Err(Error::Forgotten(run.to_owned()));
            }
            let in_lane = wanted.definition.has_lanes();
            let wish = Reopening { run: id, after: record.attempt, priority: Priority::Live, in_lane };
            if reopen(self.store(), wish).await? != Reopened::AlreadyOpen {
                self.bell.ring();
            }
            record = self.record(id).await?.ok_or_else(missing)?;
        }
        let (did, attempt) = self.see_through(run, id, record.attempt, &wanted, patience).await?;
        relay.all_or_later().await;
        // An attempt may have found that the store is older than what it has done.
        self.store().is_sure()?;
        let waits_for = match did {
            Did::GaveUp => self.waits_for(run).await,
            _ => None,
        };
        let run = self.record(id).await?.ok_or_else(missing)?;
        Ok(RunReport { did, attempt, run, waits_for })
    }

    /// Whether it is not known how a command of it ended that must not be executed twice.
    async fn is_held(&self, id: i64) -> Result<bool, Error> {
        Ok(begun::find(self.store(), id, i32::MAX).await?.is_some())
    }

    /// The name of a job's latest window that is over: what a person means who names only the job.
    pub async fn latest_window(&self, job: &str) -> Result<String, Error> {
        let (number, definition) = self.job(job)?;
        let Some(revisions) = crate::store::schedules::read(self.store(), number).await? else {
            return Err(Error::NoWindows(definition.name.clone()));
        };
        let now = self.store().schedule_time().await?;
        let window = revisions.latest(now).ok_or_else(|| Error::NoWindowYet(definition.name.clone()))?;
        Ok(format!("{job}@{}", revisions.name_of(window)))
    }

    /// Tries a run again that failed, is partial, or was skipped or cancelled, and waits for it; an attempt that is open is
    /// followed. One that is done is refused.
    pub async fn retry(&self, run: &str) -> Result<RunReport, Error> {
        self.run(run, Ask::Retry).await
    }

    /// Does the attempt here if it may begin, else follows it until it has ended. One whose worker died or left is followed
    /// by another at once, and that is the one that was asked for; one that failed has had its say.
    async fn see_through(
        &self,
        run: &str,
        id: i64,
        mut attempt: u64,
        wanted: &Wanted,
        patience: &Patience,
    ) -> Result<(Did, u64), Error> {
        let mut worker: Option<Worker> = None;
        let mut rescuer = self.engine.rescuer();
        let (mut left, mut last) = (patience.waited(), Instant::now());
        let mut did = Did::Followed;
        while did == Did::Followed && self.stop.phase() < Phase::Draining {
            let woken = self.engine.wake.woken();
            let Some((_, Some(open))) = show::show(self.store(), id).await? else { break };
            let number = u64::try_from(open.attempt).unwrap_or(0);
            if number > attempt && matches!(open.place, Place::Delayed(_)) {
                break;
            }
            attempt = attempt.max(number);
            let mut holder = None;
            match open.place {
                Place::Queued if self.worker_in(&mut worker).await?.one(open.line, id).await? => {
                    did = Did::Ran;
                    break;
                }
                Place::Delayed(_) => {
                    pull(self.store(), id).await?;
                    continue;
                }
                // The one before it may be waiting for somebody to do it.
                Place::BehindItsLane => holder = self.help_holder(id, wanted, &mut worker).await?,
                Place::Queued | Place::Running => {}
            }
            // Whoever has it, its lane or its slot may be dead, and nobody else may be there to notice.
            rescuer.tick().await?;
            let obstacle = Obstacle { own: (open.place, attempt), holder };
            let elapsed = std::mem::replace(&mut last, Instant::now()).elapsed();
            match left.look(obstacle, elapsed, worker.as_ref().is_some_and(Worker::is_busy)) {
                Step::LookAgain => {}
                Step::Tell => self.waits_for(run).await.iter().for_each(|cause| patience.tell(cause)),
                Step::GiveUp => did = Did::GaveUp,
            }
            tokio::select! {
                () = woken => {}
                () = self.stop.draining() => {}
                () = tokio::time::sleep(LOOK), if did == Did::Followed => {}
                () = std::future::ready(()), if did == Did::GaveUp => {}
            }
        }
        if let Some(worker) = worker {
            worker.finish_all(&self.stop, wanted.definition.timeout).await?;
        }
        Ok((did, attempt))
    }

    /// What an open run waits for; none if it has ended, or if that cannot be read: the wait itself goes on.
    async fn waits_for(&self, run: &str) -> Option<Cause> {
        let causes = Box::pin(self.why(run)).await.ok()?.causes;
        causes.into_iter().next().filter(|cause| matches!(cause, Cause::Open(_)))
    }

    async fn worker_in<'w>(&self, worker: &'w mut Option<Worker>) -> Result<&'w mut Worker, Error> {
        Ok(match worker {
            Some(worker) => worker,
            none => none.insert(self.engine.worker().await?),
        })
    }

    /// Does the run that holds the lane of another, if it is queued. Gives that run, and where it stands.
    async fn help_holder(
        &self,
        id: i64,
        wanted: &Wanted,
        worker: &mut Option<Worker>,
    ) -> Result<Option<(i64, Option<Place>)>, Error> {
        let holder = show::lane_holder(self.store(), wanted.number, &wanted.key.to_string()).await?;
        // The lane may have come to the run itself since it was looked at: then the next look begins it.
        let Some(holder) = holder.filter(|holder| *holder != id) else { return Ok(None) };
        let shown = show::show(self.store(), holder).await?;
        let open = shown.and_then(|(_, open)| open);
        if let Some(open) = open.filter(|open| open.place == Place::Queued) {
            self.worker_in(worker).await?.one(open.line, holder).await?;
        }
        Ok(Some((holder, open.map(|open| open.place))))
    }

    /// Opens the run, or records that it was there. Gives whether it is new.
    async fn open_wanted(&self, wanted: &Wanted) -> Result<bool, Error> {
        let is_new = match wanted.window {
            None => {
                let offer = Offer { key: wanted.key.clone(), payload: None };
                let line = Line::of(Priority::Live, wanted.number);
                let news = enqueue(self.store(), wanted.number, line, &[offer], "run").await?;
                news.contains(&true)
            }
            Some(window) => {
                let opening = Opening {
                    key: wanted.key.clone(),
                    start: window.start().timestamp(),
                    end: window.end().timestamp(),
                    priority: Priority::Live,
                    skipped: None,
                };
                let lanes = wanted.definition.while_running;
                open_one(self.store(), wanted.number, lanes, &opening, "run").await?
            }
        };
        Ok(is_new)
    }

    /// What a run's name means. A window that is not over is refused: run now, it would count as done without the rest.
    async fn wanted(&self, run: &str) -> Result<Wanted, Error> {
        let (_, definition) = self.job(parsed(run)?.job().as_str())?;
        let (number, window, key) = self.named(run).await?;
        if let Some(window) = window {
            let end = window.end().timestamp();
            let is_known = show::find(self.store(), number, &key.to_string()).await?.is_some();
            if !is_known && key.to_string().contains('/') {
                return Err(Error::NoScope(run.to_owned()));
            }
            if !is_known && end > self.store().schedule_time().await? {
                return Err(Error::NotOver { window: window.to_string(), end });
            }
            let start = definition.timetable.as_ref().and_then(|timetable| timetable.start);
            if let Some(start) = start.filter(|start| !is_known && window.start() < *start) {
                return Err(Error::BeforeStart { run: run.to_owned(), start: start.timestamp() });
            }
        }
        Ok(Wanted { number, definition, key, window })
    }

    /// The job, window and key of a run's name.
    pub(super) async fn named(&self, run: &str) -> Result<(JobNumber, Option<Window>, RunKey), Error> {
        let name = parsed(run)?;
        let (number, definition) = self.recorded_job(name.job().as_str()).await?;
        match name {
            RunName::Queued { job, key } => {
                let key = RunKey::queued(key);
                let has_windows = definition.is_some_and(|definition| definition.timetable.is_some());
                if has_windows && show::find(self.store(), number, &key.to_string()).await?.is_none() {
                    return Err(Error::NoKeys(job));
                }
                Ok((number, None, key))
            }
            RunName::Windowed { job, window, scope } => {
                let revisions = crate::store::schedules::read(self.store(), number).await?;
                let Some(revisions) = revisions else { return Err(Error::NoWindows(job)) };
                let window = match revisions.find(&window) {
                    Ok(window) => window,
                    Err(error) => self.opened_window(number, &window, &scope).await?.ok_or(error)?,
                };
                Ok((number, Some(window), RunKey::windowed(window.start(), &scope)))
            }
        }
    }

    /// A window that has a row although it is on no grid any more: the rules of its zone have changed since. It is called
    /// by its instant.
    pub(super) async fn opened_window(
        &self,
        number: JobNumber,
        name: &str,
        scope: &Scope,
    ) -> Result<Option<Window>, Error> {
        if name.parse::<Timestamp>().is_err() {
            return Ok(None);
        }
        let Ok(start) = window_name::parse(name, &Zone::utc()) else { return Ok(None) };
        let key = RunKey::windowed(start, scope).to_string();
        let Some(id) = show::find(self.store(), number, &key).await? else { return Ok(None) };
        Ok(self.record(id).await?.and_then(|record| record.window))
    }
}

/// Whether asking once for a run finds it done: what was skipped or cancelled is wanted after all, and what failed is tried
/// again.
fn counts_as_there(record: &RunRecord) -> bool {
    matches!(record.standing.outcome, Some(RunOutcome::Done | RunOutcome::Waiting))
}
