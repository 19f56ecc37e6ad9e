//! Run: do it now, in this process. A run that is done already is reported, and nothing happens.
//!
//! The second caller follows the attempt that is open, in whatever process it runs. A caller that waits reports what
//! it waits for, does the run that holds its lane if that is queued, and gives up when its patience ends: the run
//! stays queued.

use std::sync::Arc;
use std::time::{Duration, Instant};

use refrain_core::person::Verb;
use refrain_core::state::RunOutcome;
use refrain_core::why::Cause;
use refrain_core::{Key, RunKey};

use super::Refrain;
use super::patience::{Obstacle, Patience, WaitStep};
use super::run_report::{Did, RunReport, ScopeError};
use super::run_target::{BY_RUN, RunTarget};
use super::show::RunRecord;
use crate::engine::service::{Phase, Service as _};
use crate::engine::worker::Worker;
use crate::error::Error;
use crate::failpoint;
use crate::job::Definition;
use crate::store::delayed::pull;
use crate::store::enqueue::record_dedupe;
use crate::store::queue_line::Priority;
use crate::store::reopen::{Reopened, Reopening, reopen};
use crate::store::show::{self, OpenAttempt, QueuePosition};

/// How often to look at a run that another process has.
const LOOK: Duration = Duration::from_millis(100);

/// What the caller of [`Refrain::run`] requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ask {
    /// That the run is done: if it is done already, nothing happens.
    Once,
    /// Another attempt of a run that exists and is not done: it failed, is partial, or was skipped or cancelled.
    Retry,
    /// Another attempt, even if the run is done.
    Again,
    /// Another attempt that also repeats what is recorded as done: units and statements, each once. If it fails or its
    /// worker dies, the next attempt goes on where it stopped.
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

impl Refrain {
    /// Does a run now, in this process, and waits for it: `job@window`, `job@window/scope` or `job#key`; a job alone
    /// means its latest window that is over. The run of a window is followed by those of its scopes. After
    /// [`StopHandle::stop_now`](crate::StopHandle::stop_now) it returns with the run as it is then. If a scope cannot be run, the
    /// report has the error beside the reports of the scopes before it.
    pub async fn run(&self, run: &str, ask: Ask) -> Result<RunReport, Error> {
        self.run_within(run, ask, &Patience::endless()).await
    }

    /// Does a run, but waits only as long as `patience` allows while another process has the run or holds its lane.
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
        let name = self.full_name(run).await?;
        let target = self.target(&name).await?;
        let mut report = Box::pin(self.run_one(&name, &target, ask, patience)).await?;
        let is_whole = report.run.window.is_some() && report.run.scope().is_empty();
        // A retry is of one run: scopes that are done would refuse it, and cancelled ones would come back.
        if is_whole && ask != Ask::Retry && report.is_done_alone() {
            let ended = self.run_scopes(&mut report, &target, ask, patience).await;
            if let Err((run, error)) = ended {
                report.scope_error = Some(ScopeError { run, error: Arc::new(error) });
            }
        }
        Ok(report)
    }

    /// Does the runs of the scopes of a window: until they are done, the window is not. Their reports are added to that of the
    /// window one by one, because an error of a scope must not discard what the scopes before it have done.
    async fn run_scopes(
        &self,
        window: &mut RunReport,
        target: &RunTarget,
        ask: Ask,
        patience: &Patience,
    ) -> Result<(), (String, Error)> {
        let mut after = window.run.key.clone();
        loop {
            let page = self.scopes_after(&window.run, &after).await;
            let page = page.map_err(|error| (window.name.clone(), error))?;
            let Some((_, last)) = page.last() else { return Ok(()) };
            after.clone_from(&last.key);
            for (name, run) in page {
                match self.run_scope(&name, &run, target, ask, patience).await {
                    Ok(report) => window.scopes.push(report),
                    Err(error) => return Err((name, error)),
                }
                if window.scopes.last().is_some_and(RunReport::is_left_open) {
                    return Ok(());
                }
            }
        }
    }

    async fn run_scope(
        &self,
        name: &str,
        run: &RunRecord,
        target: &RunTarget,
        ask: Ask,
        patience: &Patience,
    ) -> Result<RunReport, Error> {
        let key = RunKey::queued(Key::parse(&run.key)?);
        let (job, definition) = (target.job.clone(), target.definition.clone());
        let scope = RunTarget { job, definition, window: run.window, key, ..*target };
        Box::pin(self.run_one(name, &scope, ask, patience)).await
    }

    /// A page of the scopes of a window, with their names.
    async fn scopes_after(&self, window: &RunRecord, after: &str) -> Result<Vec<(String, RunRecord)>, Error> {
        // The keys of a window's scopes begin with its own key, so they follow it.
        let mut page = self.runs(&window.job, after).await?;
        page.retain(|run| run.window == window.window);
        if page.is_empty() {
            return Ok(Vec::new());
        }
        let view = self.view(&window.job).await?;
        Ok(page.into_iter().map(|run| (view.name_of(&run), run)).collect())
    }

    /// Does one run: inserts it if it does not exist, queues another attempt if one is needed, and sees that through.
    async fn run_one(
        &self,
        name: &str,
        target: &RunTarget,
        ask: Ask,
        patience: &Patience,
    ) -> Result<RunReport, Error> {
        let definition = target.definition.as_deref().ok_or_else(|| self.unknown(&target.job))?;
        let missing = || Error::NoRun(name.to_owned());
        let mut relay = self.engine.relay();
        relay.all_or_later().await;
        let found =
            if failpoint::is_weakened("run.no-look-up") { None } else { self.looked_up(target).await? };
        let ((mut run, mut open), is_new) = if let Some((run, open)) = found {
            if ask == Ask::Once && (run.standing.is_open() || counts_as_there(&run)) {
                record_dedupe(self.store(), target.number, &target.key, BY_RUN).await?;
            }
            ((run, open), false)
        } else {
            self.may_open(name, target).await?;
            if matches!(ask, Ask::Retry | Ask::Redo) {
                return Err(missing());
            }
            let is_new = self.insert(target, definition).await?;
            (self.looked_up(target).await?.ok_or_else(missing)?, is_new)
        };
        if run.standing.is_open() {
            may_follow(name, ask, &run)?;
        } else if !is_new {
            if let Some(did) = self.answered(name, ask, &run).await? {
                let attempt = run.attempt;
                return self.reported(name, (did, attempt), run, None).await;
            }
            run = self.reopened(name, ask, run, definition).await?;
            open = None;
        }
        let seen = self.see_through((name, &run, open), target, definition, patience).await?;
        relay.all_or_later().await;
        // An attempt may have found that the store is older than what it has done.
        self.store().is_sure()?;
        let waits_for = match seen {
            (Did::GaveUp, _) => self.waits_for(name).await,
            _ => None,
        };
        let run = self.record(run.id).await?.ok_or_else(missing)?;
        self.reported(name, seen, run, waits_for).await
    }

    /// The answer to a request for a run that has ended, if it needs no other attempt.
    async fn answered(&self, name: &str, ask: Ask, run: &RunRecord) -> Result<Option<Did>, Error> {
        match ask {
            Ask::Once if counts_as_there(run) => Ok(Some(Did::Deduplicated)),
            Ask::Once if self.is_held(run).await? => Ok(Some(Did::Held)),
            Ask::Retry if counts_as_there(run) => {
                Err(Error::Done { run: name.to_owned(), attempt: run.attempt })
            }
            _ if run.is_forgotten => Err(Error::Forgotten(name.to_owned())),
            _ => Ok(None),
        }
    }

    /// Queues another attempt of a run that has ended.
    async fn reopened(
        &self,
        name: &str,
        ask: Ask,
        run: RunRecord,
        definition: &Definition,
    ) -> Result<RunRecord, Error> {
        let decision = &self.decision(ask.verb(), name).of_run(run.id);
        let (priority, in_lane) = (Priority::Live, definition.has_lanes());
        let reopening = Reopening { run: run.id, after: run.attempt, priority, in_lane, decision };
        let reopened = reopen(self.store(), &reopening).await?;
        let run = self.record(run.id).await?.ok_or_else(|| Error::NoRun(name.to_owned()))?;
        match reopened {
            Reopened::Queued => self.notifier.notify(),
            Reopened::AlreadyOpen => may_follow(name, ask, &run)?,
        }
        Ok(run)
    }

    /// Tries a run again that failed, is partial, or was skipped or cancelled, and waits for it; an attempt that is open is
    /// followed. One that is done is refused.
    pub async fn retry(&self, run: &str) -> Result<RunReport, Error> {
        self.run(run, Ask::Retry).await
    }

    /// Does the attempt here if it may begin, else follows it until it has ended. One whose worker died or left is followed
    /// by another at once, and that is the one that was asked for; one that failed has had its say. If the caller has just
    /// read the open attempt, that is the first look.
    async fn see_through(
        &self,
        (name, run, mut just_read): (&str, &RunRecord, Option<OpenAttempt>),
        target: &RunTarget,
        definition: &Definition,
        patience: &Patience,
    ) -> Result<(Did, u64), Error> {
        let mut worker: Option<Worker> = None;
        let mut rescuer = self.engine.rescuer();
        let (mut left, mut last) = (patience.waited(), Instant::now());
        let (id, mut attempt, mut did) = (run.id, run.attempt, Did::Followed);
        while did == Did::Followed && self.stop.phase() < Phase::Draining {
            let woken = self.engine.wake.woken();
            let Some(open) = self.open_attempt(id, just_read.take()).await? else { break };
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
                // The run before it in its lane may be waiting for a worker; this caller can be that worker.
                QueuePosition::BehindItsLane => holder = self.help_holder(id, target, &mut worker).await?,
                QueuePosition::Queued | QueuePosition::Running => {}
            }
            // The worker that holds it, its lane or its slot may be dead, and no other process may be there to notice.
            rescuer.tick().await?;
            let obstacle = Obstacle { own: (open.place, attempt), holder };
            let elapsed = std::mem::replace(&mut last, Instant::now()).elapsed();
            match left.look(obstacle, elapsed, worker.as_ref().is_some_and(Worker::is_busy)) {
                WaitStep::LookAgain => {}
                WaitStep::Tell => self.waits_for(name).await.iter().for_each(|cause| patience.tell(cause)),
                WaitStep::GiveUp => did = Did::GaveUp,
            }
            tokio::select! {
                () = woken => {}
                () = self.stop.draining() => {}
                () = tokio::time::sleep(LOOK), if did == Did::Followed => {}
                () = std::future::ready(()), if did == Did::GaveUp => {}
            }
        }
        if let Some(worker) = worker {
            worker.finish_all(&self.stop, definition.timeout).await?;
        }
        Ok((did, attempt))
    }

    /// The open attempt of a run, read now unless it was just read.
    async fn open_attempt(
        &self,
        run: i64,
        just_read: Option<OpenAttempt>,
    ) -> Result<Option<OpenAttempt>, Error> {
        match just_read {
            Some(open) => Ok(Some(open)),
            None => Ok(show::show(self.store(), run).await?.and_then(|(_, open)| open)),
        }
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

    /// Does the run that holds the lane of another, if it is queued. Returns that run and its position.
    async fn help_holder(
        &self,
        id: i64,
        target: &RunTarget,
        worker: &mut Option<Worker>,
    ) -> Result<Option<(i64, Option<QueuePosition>)>, Error> {
        let holder = show::lane_holder(self.store(), target.number, &target.key.to_string()).await?;
        // The lane may have passed to the run itself since it was looked at: then the next look begins it.
        let Some(holder) = holder.filter(|holder| *holder != id) else { return Ok(None) };
        let shown = show::show(self.store(), holder).await?;
        let open = shown.and_then(|(_, open)| open);
        if let Some(open) = open.filter(|open| open.place == QueuePosition::Queued) {
            self.worker_in(worker).await?.one(open.line, holder).await?;
        }
        Ok(Some((holder, open.map(|open| open.place))))
    }
}

/// Whether a request of [`Ask::Once`] finds the run finished: a skipped or cancelled run is done after all, and a
/// failed one is tried again.
pub(super) fn counts_as_there(record: &RunRecord) -> bool {
    matches!(record.standing.outcome, Some(RunOutcome::Done | RunOutcome::Waiting))
}

/// A caller who wants work repeated follows only an attempt that repeats it.
fn may_follow(run: &str, ask: Ask, record: &RunRecord) -> Result<(), Error> {
    match record.redo {
        None if ask == Ask::Redo => {
            Err(Error::StillOpen { run: run.to_owned(), state: record.standing.node().to_string() })
        }
        _ => Ok(()),
    }
}
