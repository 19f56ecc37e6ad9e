//! The life of one attempt, as a pipeline: load → perform → classify → record.
//!
//! Whatever a job does (return, fail, panic, hang, be cancelled) becomes one [`Ending`]. [`classify`] alone branches on it. The
//! finisher records the endings, many at a time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::retry::{Again, AttemptFailure};
use refrain_core::state::{FailureReason, RunEvent};
use refrain_core::{Key, RunId, RunKey, Scope, Window};

use super::panics::{caught, unwound};
use super::running::RunningAttempt;
use super::verdict::{Verdict, by_counts, reason, units_left};
use crate::failpoint;
use crate::job::Definition;
use crate::lease::Lease;
use crate::ledger::fence::AttemptFacts;
use crate::ledger::tally::Tally;
use crate::ledger::unapplied::TouchedLedgers;
use crate::run::JobError;
use crate::run::awaited_task::AwaitedTask;
use crate::run::{Run, Surroundings};
use crate::store::claim::Claimed;
use crate::store::counts::UnitCounts;
use crate::store::expand::{Expanded, SCOPES_MAX, expand};
use crate::store::finish::{ClaimedAttempt, End, Ending};
use crate::store::message::shortened;
use crate::store::queue_line::Line;
use crate::store::{Result, StoreError, instant};

/// How long an attempt is delayed that could not begin because no file descriptors were left.
const DESCRIPTORS_AGAIN: Duration = Duration::from_secs(5);

/// Why an attempt is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// The operator cancelled the run.
    Cancelled,
    /// The process is stopping.
    Stopped,
    /// The worker did not renew its lease in time, and its runs may have been taken over.
    Lost,
    /// The process had no file descriptors left, so the attempt could not begin.
    Exhausted,
    /// A database remembers this attempt of the run, or a later one, and the store does not.
    Outnumbered(i32),
}

/// A claimed run, with everything that its attempt needs.
pub(crate) struct Task {
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) definition: Arc<Definition>,
    pub(crate) claimed: Claimed,
    pub(crate) line: Line,
    pub(crate) lease: i64,
    /// The lease of its worker.
    pub(crate) good: Lease,
    pub(crate) running: RunningAttempt,
}

impl Task {
    /// Makes the attempt. It counts as running until the caller drops the second value, after the ending is handed over.
    pub(crate) async fn execute(mut self) -> (Result<Ending>, RunningAttempt) {
        let ending = match self.held() {
            Ok(held) => Ok(self.ended(held).await),
            Err(error) => Err(error),
        };
        (ending, self.running)
    }

    /// A panic outside the job ends its attempt, too: a run without an ending would be held for as long as its worker lives.
    async fn ended(&mut self, held: ClaimedAttempt) -> Ending {
        // In a box: a future that is passed on by value takes up its size again in each future that passes it on.
        match unwound(Box::pin(self.end(held.clone()))).await {
            Ok(ending) => ending,
            Err(text) => {
                let (job, key) = (&self.definition.name, &self.claimed.key);
                tracing::error!(%job, key, error = text, "an attempt panicked outside its job");
                let error = JobError::panicked(format!("panicked outside the job: {text}"));
                let end = classify(&self.definition, &self.claimed, Verdict::Failed(error));
                let reason = Some(FailureReason::Panicked);
                Ending { held, started_at: None, end, units: None, clears_mark: false, reason }
            }
        }
    }

    async fn end(&mut self, held: ClaimedAttempt) -> Ending {
        let started_at = Some(Timestamp::now().as_microsecond());
        let (job, key, attempt) =
            (self.definition.name.clone(), self.claimed.key.clone(), self.claimed.attempt);
        tracing::info!(%job, key, attempt, "attempt started");
        let (tally, touched, awaited) = (Tally::default(), TouchedLedgers::default(), AwaitedTask::default());
        let result = match self.load(tally.clone(), touched.clone(), awaited.clone()) {
            Ok(run) => self.perform(run, &held).await,
            Err(error) => Verdict::Failed(JobError::for_good(error.to_string())),
        };
        let summary = tally.summary();
        let result = by_counts(result, &summary);
        let summary =
            if matches!(result, Verdict::Failed(_)) { summary.of_failed_attempt() } else { summary };
        let UnitCounts { processed, skipped, deduplicated, failed } = summary.counts;
        match &result {
            // As a string field it is escaped: the message of a job must not move the cursor of a terminal.
            Verdict::Failed(error) => {
                let error = error.to_string();
                tracing::warn!(%job, key, attempt, processed, skipped, deduplicated, failed, error, "attempt failed");
            }
            Verdict::Partial { message, .. } => {
                tracing::warn!(%job, key, attempt, processed, skipped, deduplicated, failed, message, "attempt ended, not all units applied");
            }
            Verdict::Done => {
                tracing::info!(%job, key, attempt, processed, skipped, deduplicated, failed, "attempt done");
            }
            Verdict::Interrupted(why) => tracing::info!(%job, key, attempt, ?why, "attempt interrupted"),
        }
        let own = result.reason();
        let end = classify(&self.definition, &self.claimed, result);
        let reason = reason(own, &end, &summary, &touched).await;
        let units = (summary.discovered > 0 || summary.is_about_units).then(|| Box::new(summary));
        Ending { held, started_at, end, units, clears_mark: awaited.is_end_known(), reason }
    }

    pub(crate) fn held(&self) -> Result<ClaimedAttempt> {
        Ok(ClaimedAttempt {
            run: self.claimed.run,
            job: self.line.job()?,
            line: self.line,
            lease: self.lease,
            attempt: self.claimed.attempt,
            lane: self.claimed.lane.then(|| self.claimed.scope().to_owned()),
            slot: self.definition.concurrency.is_some(),
        })
    }

    fn load(&self, tally: Tally, touched: TouchedLedgers, awaited: AwaitedTask) -> Result<Run> {
        let broken =
            |error: &dyn std::fmt::Display| StoreError::Broken(format!("{}: {error}", self.claimed.key));
        let key = Key::parse(&self.claimed.key).map_err(|error| broken(&error))?;
        let window = match (self.claimed.window_start, self.claimed.window_end) {
            (Some(start), Some(end)) => {
                Some(Window::stored(instant(start)?, instant(end)?).map_err(|error| broken(&error))?)
            }
            _ => None,
        };
        let attempts = self.claimed.attempts();
        let facts = AttemptFacts {
            project: self.surroundings.project.clone(),
            job: self.definition.name.clone(),
            identity: self.definition.identity().clone(),
            run: self.claimed.key.clone(),
            scope: Scope::parse(self.claimed.scope()).map_err(|error| broken(&error))?,
            window,
            attempt: self.claimed.attempt,
            nonce: self.claimed.nonce,
            in_lane: self.claimed.lane,
            version: self.definition.version,
            tries: Some(self.definition.retry.attempts),
            spent: attempts.spent,
            suspicion: attempts.suspicion,
            redo: self.claimed.redo,
        };
        Ok(Run {
            id: RunId::of(&self.surroundings.project, self.definition.identity(), &RunKey::queued(key)),
            row: self.claimed.run,
            held: self.held()?,
            facts,
            payload: self.claimed.payload.clone(),
            surroundings: Arc::clone(&self.surroundings),
            tally,
            touched,
            lease: self.good.clone(),
            awaited,
            setback: Arc::default(),
        })
    }

    async fn perform(&mut self, mut run: Run, held: &ClaimedAttempt) -> Verdict {
        let mut interruption = self.running.interruption.clone();
        let interrupted = async {
            let heard = interruption.wait_for(Option::is_some).await.map(|why| *why);
            match heard {
                Ok(why) => why.unwrap_or(Interruption::Stopped),
                Err(_) => std::future::pending().await,
            }
        };
        let (touched, awaited) = (run.touched.clone(), run.awaited.clone());
        let setback = Arc::clone(&run.setback);
        let work = async {
            if let (Some(window), "") = (run.window(), run.scope().as_str())
                && let Some(scopes) = self.definition.scopes_of(window)
            {
                // In a box: this future is rare and large, and would make the future of every attempt large.
                return Box::pin(async { self.expand(held, window, scopes.await?).await }).await;
            }
            self.definition.attempt(&mut run).await
        };
        let work = tokio::time::timeout(self.definition.timeout, caught(work));
        let verdict = tokio::select! {
            biased;
            why = interrupted => Verdict::Interrupted(why),
            ended = work => match ended {
                Ok(Ok(())) => units_left(&touched).await,
                // The job could not write any more, whatever error it made of that.
                Ok(Err(_)) if !self.good.is_good() => Verdict::Interrupted(Interruption::Lost),
                Ok(Err(_)) if setback.get().is_some() => {
                    Verdict::Interrupted(Interruption::Outnumbered(setback.get().copied().unwrap_or_default()))
                }
                Ok(Err(error)) => error.into(),
                Err(_) => Verdict::Failed(JobError::timed_out(self.definition.timeout)),
            },
        };
        if failpoint::is_weakened("leaving.unseen") {
            tokio::spawn(async move { awaited.cancel().await });
            return verdict;
        }
        // A command that ended by itself at that moment has that result, and not the interruption.
        match awaited.cancel().await {
            Some(Ok(())) => units_left(&touched).await,
            Some(Err(error)) => error.into(),
            None => verdict,
        }
    }

    /// Opens the runs of a window's scopes, and freezes the set.
    async fn expand(
        &self,
        held: &ClaimedAttempt,
        window: Window,
        scopes: Vec<Scope>,
    ) -> std::result::Result<(), JobError> {
        if scopes.iter().any(|scope| scope.as_str().is_empty()) {
            return Err(JobError::for_good(
                "the scopes query returned an empty name; the empty scope is the window's own run",
            ));
        }
        if scopes.len() > SCOPES_MAX {
            return Err(JobError::for_good(format!(
                "the window has {} scopes; at most {SCOPES_MAX} are allowed",
                scopes.len()
            )));
        }
        let window = (window.start().timestamp(), window.end().timestamp());
        let expanded =
            expand(&self.surroundings.store, held, window, &scopes, self.definition.while_running).await?;
        match expanded {
            Expanded::Lost => Err(JobError::new("the run was taken over while its scopes were being opened")),
            Expanded::Frozen(_) | Expanded::Already { .. } => Ok(()),
        }
    }
}

/// How the result of an attempt ends it.
pub(crate) fn classify(definition: &Definition, claimed: &Claimed, result: Verdict) -> End {
    let attempts = claimed.attempts();
    let version = i32::try_from(definition.version).ok();
    match result {
        Verdict::Done => End::Closed { event: RunEvent::Succeeded, version, message: None },
        Verdict::Failed(error) => {
            let (event, message) = (RunEvent::Failed, error.to_string());
            retried_or(event, definition, claimed, message, error.is_retryable(), error.wait_at_least())
        }
        Verdict::Partial { message, again } => {
            retried_or(RunEvent::PartlyFailed, definition, claimed, message, again, None)
        }
        Verdict::Interrupted(Interruption::Cancelled) => End::Closed {
            event: RunEvent::Cancelled,
            version: claimed.version,
            message: Some("cancelled while it was running".to_owned()),
        },
        Verdict::Interrupted(why) => {
            // An attempt that can report this did not crash: no run becomes a suspect because the store was unreachable.
            let message = match why {
                Interruption::Lost => "its worker could not renew its lease in time",
                Interruption::Exhausted => "its worker had too many open files to begin it",
                Interruption::Outnumbered(_) => "a database remembers a later attempt than the store",
                _ => "its worker was asked to stop",
            };
            let event = RunEvent::Stopped;
            let mut attempts = attempts.then(event.attempt());
            if let Interruption::Outnumbered(there) = why {
                attempts.number = attempts.number.max(u64::try_from(there).unwrap_or_default() + 1);
            }
            // Without a delay there would be no more descriptors than before.
            let wait = (why == Interruption::Exhausted).then_some(DESCRIPTORS_AGAIN);
            End::Again { event, attempts, wait, message: Some(message.to_owned()) }
        }
    }
}

/// Another attempt follows if tries are left and it may help; otherwise this event ends the run.
fn retried_or(
    event: RunEvent,
    definition: &Definition,
    claimed: &Claimed,
    message: String,
    retryable: bool,
    not_before: Option<Duration>,
) -> End {
    let attempts = claimed.attempts();
    let message = Some(shortened(message));
    let failure =
        AttemptFailure { attempt: attempts.spent.saturating_add(1), retryable, not_before, deadline: None };
    match definition.retry.after(&failure, claimed.run.unsigned_abs()) {
        Again::After(wait) => {
            let event = RunEvent::Errored;
            End::Again { event, attempts: attempts.then(event.attempt()), wait: Some(wait), message }
        }
        Again::GiveUp(_) => End::Closed { event, version: i32::try_from(definition.version).ok(), message },
    }
}
