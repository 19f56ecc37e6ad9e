//! Run: do it now, here. Done already means: say by whom, and do nothing.
//!
//! Whoever comes second follows the attempt that is there, in whatever process it runs. Who waits says what for, does
//! itself what is queued before the run, and gives up when its patience ends: the run stays queued.

use std::time::{Duration, Instant};

use refrain_core::person::Verb;
use refrain_core::state::RunOutcome;
use refrain_core::why::Cause;

use super::Refrain;
use super::patience::{Obstacle, Patience, Step};
use super::show::RunRecord;
use super::wanted::Wanted;
use crate::engine::service::{Phase, Service as _};
use crate::engine::worker::Worker;
use crate::error::Error;
use crate::failpoint;
use crate::store::delayed::pull;
use crate::store::queue_line::Priority;
use crate::store::reopen::{Reopened, Reopening, reopen};
use crate::store::show::{self, QueuePosition};

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
    /// Another attempt that also does again what is recorded as done: units and statements, each once. An attempt that follows
    /// from this one, because it failed or its worker died, goes on where it was.
    Redo,
}

impl Ask {
    fn verb(self) -> Verb {
        match self {
            Ask::Once => Verb::Run,
            Ask::Retry => Verb::Retry,
            Ask::Again => Verb::Again,
            Ask::Redo => Verb::Redo,
        }
    }
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
    /// A person said that it was done, and nothing was executed.
    Settled,
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
    pub(super) fn of(did: Did, run: RunRecord) -> RunReport {
        RunReport { did, attempt: run.attempt, run, waits_for: None }
    }

    /// Whether the attempt, or a later one, left the run done.
    pub fn is_done(&self) -> bool {
        self.run.standing.is_done() && self.run.ended_attempt >= self.attempt
    }
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
            None if matches!(ask, Ask::Retry | Ask::Redo) => return Err(missing()),
            None => self.open_wanted(&wanted).await?,
        };
        let found = show::find(self.store(), wanted.number, &wanted.key.to_string()).await?;
        let id = found.ok_or_else(missing)?;
        let mut record = self.record(id).await?.ok_or_else(missing)?;
        let is_there = record.standing.is_open() || counts_as_there(&record);
        if ask == Ask::Once && known.is_some() && is_there {
            self.open_wanted(&wanted).await?;
        }
        if ask == Ask::Redo && record.standing.is_open() {
            may_follow(run, &record)?;
        }
        if !is_new && !record.standing.is_open() {
            if ask == Ask::Once && is_there {
                return Ok(RunReport::of(Did::Deduplicated, record));
            }
            if ask == Ask::Once && self.is_held(&record).await? {
                return Ok(RunReport::of(Did::Held, record));
            }
            if ask == Ask::Retry && is_there {
                return Err(Error::Done { run: run.to_owned(), attempt: record.attempt });
            }
            if record.is_forgotten {
                return Err(Error::Forgotten(run.to_owned()));
            }
            let in_lane = wanted.definition.has_lanes();
            let decision = self.decision(ask.verb(), run).of_run(id);
            let (after, decision) = (record.attempt, &decision);
            let wish = Reopening { run: id, after, priority: Priority::Live, in_lane, decision };
            let reopened = reopen(self.store(), &wish).await?;
            record = self.record(id).await?.ok_or_else(missing)?;
            match reopened {
                Reopened::Queued(_) => self.bell.ring(),
                Reopened::AlreadyOpen if ask == Ask::Redo => may_follow(run, &record)?,
                Reopened::AlreadyOpen => {}
            }
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
            if number > attempt && matches!(open.place, QueuePosition::Delayed(_)) {
                break;
            }
            attempt = attempt.max(number);
            let mut holder = None;
            match open.place {
                QueuePosition::Queued if self.worker_in(&mut worker).await?.one(open.line, id).await? => {
                    did = Did::Ran;
                    break;
                }
                QueuePosition::Delayed(_) => {
                    pull(self.store(), id).await?;
                    continue;
                }
                // The one before it may be waiting for somebody to do it.
                QueuePosition::BehindItsLane => holder = self.help_holder(id, wanted, &mut worker).await?,
                QueuePosition::Queued | QueuePosition::Running => {}
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
    ) -> Result<Option<(i64, Option<QueuePosition>)>, Error> {
        let holder = show::lane_holder(self.store(), wanted.number, &wanted.key.to_string()).await?;
        // The lane may have come to the run itself since it was looked at: then the next look begins it.
        let Some(holder) = holder.filter(|holder| *holder != id) else { return Ok(None) };
        let shown = show::show(self.store(), holder).await?;
        let open = shown.and_then(|(_, open)| open);
        if let Some(open) = open.filter(|open| open.place == QueuePosition::Queued) {
            self.worker_in(worker).await?.one(open.line, holder).await?;
        }
        Ok(Some((holder, open.map(|open| open.place))))
    }
}

/// Whether asking once for a run finds it done: what was skipped or cancelled is wanted after all, and what failed is tried
/// again.
pub(super) fn counts_as_there(record: &RunRecord) -> bool {
    matches!(record.standing.outcome, Some(RunOutcome::Done | RunOutcome::Waiting))
}

/// A caller who wants work done again follows an attempt that does so, and is not served by one that leaves it alone.
fn may_follow(run: &str, record: &RunRecord) -> Result<(), Error> {
    match record.redo {
        Some(_) => Ok(()),
        None => Err(Error::StillOpen { run: run.to_owned(), state: record.standing.node().to_string() }),
    }
}
