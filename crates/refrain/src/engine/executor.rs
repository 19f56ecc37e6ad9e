//! The life of one attempt, as a pipeline: load → perform → classify → record.
//!
//! Whatever a job does (return, fail, panic, hang, be called off) becomes one [`Ending`]; branching on it happens once,
//! in [`classify`]. Recording is the finisher's, which does it for many at a time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::retry::{Again, Failure};
use refrain_core::state::{RunEvent, RunOutcome};
use refrain_core::{Key, RunId, RunKey, Scope, Window};

use super::panics::{caught, unwound};
use super::under_way::InHand;
use super::verdict::{Verdict, judged, left, reason};
use crate::failpoint;
use crate::job::{Definition, JobError};
use crate::lease::Lease;
use crate::leaving::Leaving;
use crate::ledger::UnitCounts;
use crate::ledger::fence::Facts;
use crate::ledger::tally::Tally;
use crate::ledger::unapplied::Touched;
use crate::run::{Run, Surroundings};
use crate::store::claim::Claimed;
use crate::store::expand::{Expanded, SCOPES_MAX, expand};
use crate::store::finish::{End, Ending, Held};
use crate::store::queue_line::Line;
use crate::store::{Result, StoreError, instant};

/// The longest text that is kept of an error.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// How long an attempt waits that could not begin for want of descriptors.
const DESCRIPTORS_AGAIN: Duration = Duration::from_secs(5);

/// Why an attempt is ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// A person called the run off.
    Cancelled,
    /// The process is leaving.
    Stopped,
    /// The worker has been silent for too long, and may have been taken over.
    Lost,
    /// The process had no file descriptors left, so the attempt could not begin.
    Exhausted,
    /// A database remembers this attempt of the run, or a later one, which the store does not.
    Outnumbered(i32),
}

/// A run in hand: everything that its attempt needs.
pub(crate) struct Task {
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) definition: Arc<Definition>,
    pub(crate) claimed: Claimed,
    pub(crate) line: Line,
    pub(crate) lease: i64,
    /// How long its worker's word is good.
    pub(crate) good: Lease,
    pub(crate) in_hand: InHand,
}

impl Task {
    /// Does the attempt, whatever becomes of it.
    /// It stays in hand until its ending has been handed over.
    pub(crate) async fn execute(mut self) -> (Result<Ending>, InHand) {
        let ending = match self.held() {
            Ok(held) => Ok(self.ended(held).await),
            Err(error) => Err(error),
        };
        (ending, self.in_hand)
    }

    /// A panic around the job ends its attempt: a run that nobody ends would be held for as long as its worker lives.
    async fn ended(&mut self, held: Held) -> Ending {
        // In a box: a future that is handed on by value has room for itself in each that hands it on.
        match unwound(Box::pin(self.end(held.clone()))).await {
            Ok(ending) => ending,
            Err(text) => {
                let (job, key) = (&self.definition.name, &self.claimed.key);
                tracing::error!(%job, key, error = text, "an attempt panicked outside of its job");
                let error = JobError::new(format!("panicked outside of the job: {text}"));
                let end = classify(&self.definition, &self.claimed, Verdict::Failed(error));
                Ending { held, started_at: None, end, units: None, settles: false, reason: None }
            }
        }
    }

    async fn end(&mut self, held: Held) -> Ending {
        let started_at = Some(Timestamp::now().as_microsecond());
        let (job, key, attempt) =
            (self.definition.name.clone(), self.claimed.key.clone(), self.claimed.attempt);
        tracing::info!(%job, key, attempt, "a run begins");
        let (tally, touched, leaving) = (Tally::default(), Touched::default(), Leaving::default());
        let result = match self.load(tally.clone(), touched.clone(), leaving.clone()) {
            Ok(run) => self.perform(run, &held).await,
            Err(error) => Verdict::Failed(JobError::for_good(error.to_string())),
        };
        let told = tally.told();
        let result = judged(result, &told);
        let told = if matches!(result, Verdict::Failed(_)) { told.of_failed_attempt() } else { told };
        let UnitCounts { processed, skipped, deduplicated, failed } = told.counts;
        match &result {
            // As a text it is quoted: what a job says must not move the cursor of a terminal.
            Verdict::Failed(error) => {
                let error = error.to_string();
                tracing::warn!(%job, key, attempt, processed, skipped, deduplicated, failed, error, "an attempt failed");
            }
            Verdict::Partial { message, .. } => {
                tracing::warn!(%job, key, attempt, processed, skipped, deduplicated, failed, message, "a run is partial");
            }
            Verdict::Done => {
                tracing::info!(%job, key, attempt, processed, skipped, deduplicated, failed, "a run is done");
            }
            Verdict::Interrupted(why) => tracing::info!(%job, key, attempt, ?why, "a run was interrupted"),
        }
        let own = result.reason();
        let end = classify(&self.definition, &self.claimed, result);
        let reason = reason(own, &end, &told, &touched).await;
        let units = (told.discovered > 0 || told.is_about_units).then(|| Box::new(told));
        Ending { held, started_at, end, units, settles: leaving.is_settled(), reason }
    }

    pub(crate) fn held(&self) -> Result<Held> {
        Ok(Held {
            run: self.claimed.run,
            job: self.line.job()?,
            line: self.line,
            lease: self.lease,
            attempt: self.claimed.attempt,
            lane: self.claimed.lane.then(|| self.claimed.scope().to_owned()),
            slot: self.definition.concurrency.is_some(),
        })
    }

    fn load(&self, tally: Tally, touched: Touched, leaving: Leaving) -> Result<Run> {
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
        let facts = Facts {
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
            tries: self.definition.retry.attempts,
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
            leaving,
            setback: Arc::default(),
        })
    }

    async fn perform(&mut self, mut run: Run, held: &Held) -> Verdict {
        let mut interruption = self.in_hand.interruption.clone();
        let interrupted = async {
            let heard = interruption.wait_for(Option::is_some).await.map(|why| *why);
            match heard {
                Ok(why) => why.unwrap_or(Interruption::Stopped),
                Err(_) => std::future::pending().await,
            }
        };
        let (touched, leaving) = (run.touched.clone(), run.leaving.clone());
        let setback = Arc::clone(&run.setback);
        let work = async {
            if let (Some(window), "") = (run.window(), run.scope().as_str())
                && let Some(scopes) = self.definition.scopes_of(window)
            {
                // In a box: this is rare and large, and would make the future of every attempt large.
                return Box::pin(async { self.expand(held, window, scopes.await?).await }).await;
            }
            self.definition.attempt(&mut run).await
        };
        let work = tokio::time::timeout(self.definition.timeout, caught(work));
        let verdict = tokio::select! {
            biased;
            why = interrupted => Verdict::Interrupted(why),
            ended = work => match ended {
                Ok(Ok(())) => left(&touched).await,
                // Nothing more could be written, whatever the job makes of that.
                Ok(Err(_)) if !self.good.is_good() => Verdict::Interrupted(Interruption::Lost),
                Ok(Err(_)) if setback.get().is_some() => {
                    Verdict::Interrupted(Interruption::Outnumbered(setback.get().copied().unwrap_or_default()))
                }
                Ok(Err(error)) => error.into(),
                Err(_) => Verdict::Failed(JobError::timed_out(self.definition.timeout)),
            },
        };
        if failpoint::is_weakened("leaving.unseen") {
            tokio::spawn(async move { leaving.leave().await });
            return verdict;
        }
        // What ended by itself in that very moment has ended so, and not for the other reason.
        match leaving.leave().await {
            Some(Ok(())) => left(&touched).await,
            Some(Err(error)) => error.into(),
            None => verdict,
        }
    }

    /// Freezes the scopes of a window.
    async fn expand(
        &self,
        held: &Held,
        window: Window,
        scopes: Vec<Scope>,
    ) -> std::result::Result<(), JobError> {
        if scopes.iter().any(|scope| scope.as_str().is_empty()) {
            return Err(JobError::for_good("a scope without a name; that is the window's own run"));
        }
        if scopes.len() > SCOPES_MAX {
            return Err(JobError::for_good(format!(
                "{} scopes in one window; {SCOPES_MAX} is the most",
                scopes.len()
            )));
        }
        let window = (window.start().timestamp(), window.end().timestamp());
        let expanded =
            expand(&self.surroundings.store, held, window, &scopes, self.definition.while_running).await?;
        match expanded {
            Expanded::Lost => Err(JobError::new("taken over while its scopes were being opened")),
            Expanded::Frozen(_) | Expanded::Already { .. } => Ok(()),
        }
    }
}

/// What an attempt's result makes of its run.
pub(crate) fn classify(definition: &Definition, claimed: &Claimed, result: Verdict) -> End {
    let attempts = claimed.attempts();
    let version = i32::try_from(definition.version).ok();
    match result {
        Verdict::Done => End::Closed { outcome: RunOutcome::Done, version, message: None },
        Verdict::Failed(error) => {
            let (outcome, message) = (RunOutcome::Failed, error.to_string());
            in_vain(definition, claimed, outcome, message, error.is_retryable(), error.wish())
        }
        Verdict::Partial { message, again } => {
            in_vain(definition, claimed, RunOutcome::Partial, message, again, None)
        }
        Verdict::Interrupted(Interruption::Cancelled) => End::Closed {
            outcome: RunOutcome::Cancelled,
            version: claimed.version,
            message: Some("cancelled while it was under way".to_owned()),
        },
        Verdict::Interrupted(why) => {
            // One that can say so did not crash: nobody becomes a suspect because the store was away.
            let message = match why {
                Interruption::Lost => "its worker could not say that it was alive",
                Interruption::Exhausted => "its worker had too many files open to begin it",
                Interruption::Outnumbered(_) => "a database remembers a later attempt than the store",
                _ => "its worker was asked to stop",
            };
            let event = RunEvent::Stopped;
            let mut attempts = attempts.then(event.attempt());
            if let Interruption::Outnumbered(there) = why {
                attempts.number = attempts.number.max(u64::try_from(there).unwrap_or_default() + 1);
            }
            // At once there would be no more descriptors than before.
            let wait = (why == Interruption::Exhausted).then_some(DESCRIPTORS_AGAIN);
            End::Again { event, attempts, wait, message: Some(message.to_owned()) }
        }
    }
}

/// Another attempt follows while there are tries left and it may help; else the run has this outcome.
fn in_vain(
    definition: &Definition,
    claimed: &Claimed,
    outcome: RunOutcome,
    message: String,
    retryable: bool,
    not_before: Option<Duration>,
) -> End {
    let attempts = claimed.attempts();
    let message = Some(shortened(message));
    let failure =
        Failure { attempt: attempts.spent.saturating_add(1), retryable, not_before, deadline: None };
    match definition.retry.after(&failure, claimed.run.unsigned_abs()) {
        Again::After(wait) => {
            let event = RunEvent::Errored;
            End::Again { event, attempts: attempts.then(event.attempt()), wait: Some(wait), message }
        }
        Again::GiveUp(_) => End::Closed { outcome, version: i32::try_from(definition.version).ok(), message },
    }
}

fn shortened(text: String) -> String {
    // PostgreSQL keeps no NUL.
    let mut text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    if text.len() > MESSAGE_BYTES_MAX {
        let mut end = MESSAGE_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}
