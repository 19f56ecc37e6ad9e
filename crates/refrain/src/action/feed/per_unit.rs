//! Runs a command or sends an HTTP request for each unit, several at once.
//!
//! No transaction is open while a command or a request is in flight: units are looked up before, and recorded together
//! afterwards. A command that dies with its worker is executed again under the same idempotency key. A request must not be
//! sent again so easily: its unit is reserved first, and is in doubt until its result is recorded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use refrain_core::call::{Call, Request};
use refrain_core::template::arguments;
use refrain_core::{Fingerprint, IdempotencyKey, Key, Template, Values};
use serde::Serialize;
use tokio::task::JoinSet;

use super::commands::AttemptCommands;
use super::unit::{ParsedUnit, Unit};
use crate::action::command::{Command, Interrupted};
use crate::action::http::{HttpCaller, HttpOutcome};
use crate::failpoint;
use crate::ledger::ExternalWork;
use crate::ledger::circuit_breaker::{CircuitBreaker, FAILURES_MAX, all_fail};
use crate::run::awaited_task::TaskResult;
use crate::run::{JobError, Run};
use crate::user_database::Backend;

/// The most bytes of an environment variable, with room for its name.
const VARIABLE_BYTES_MAX: usize = 120 * 1_024;

/// Processes single units.
pub(super) struct PerUnit<'f> {
    pub(super) run: &'f Run,
    pub(super) commands: &'f AttemptCommands,
    pub(super) action: UnitAction<'f>,
    pub(super) parallel: usize,
    pub(super) values: Values,
    pub(super) is_by_window: bool,
    /// How many requests came to be in doubt since the last success, over all pages: the operator must check each.
    pub(super) doubts: AtomicUsize,
    /// Whether a request in doubt waits for the operator, and no later attempt sends it again.
    pub(super) holds_doubts: bool,
}

/// What is done with each unit.
pub(super) enum UnitAction<'f> {
    /// Runs a command: its arguments, and what commands of this job have in common.
    Command(&'f [Template], Box<Command>),
    Http(&'f Call, HttpCaller),
}

/// The command or request of one unit.
enum UnitWork {
    Command(Box<Command>),
    Call(Request),
}

/// How the command or request of a unit ended.
enum UnitResult {
    Done,
    Failed(String),
    InDoubt(String),
    /// An error that every unit would meet, such as a missing program.
    Fault(JobError),
    Interrupted,
    /// The lease expired before anything was sent.
    LeaseExpired,
}

/// Units that were begun and are not recorded.
#[derive(Default)]
struct InFlight {
    running: JoinSet<(usize, UnitResult)>,
    /// Units that failed since the last success, with messages. Recorded at the next success: the cause may be a common one.
    failing: Vec<(usize, String)>,
    /// Counts units that failed or are in doubt since the last success.
    breaker: CircuitBreaker,
    last_message: String,
}

impl PerUnit<'_> {
    /// Processes all units that are due, and records the results.
    pub(super) async fn run<DB: Backend>(
        &self,
        external: ExternalWork<'_, DB, Unit>,
    ) -> Result<(), JobError> {
        let mut due = external.due().peekable();
        let mut in_flight = InFlight::default();
        if self.doubts.load(Ordering::Relaxed) >= FAILURES_MAX && due.peek().is_some() {
            let message = "the last requests are all in doubt; to see which: refrain why RUN";
            return Err(all_fail(message.to_owned()).into());
        }
        loop {
            if !self.commands.is_cancelled() {
                self.begin(&external, &mut due, &mut in_flight).await?;
            }
            if in_flight.breaker.is_open() && due.peek().is_some() {
                return Err(self.conclude_all_failed(&external, in_flight).await?);
            }
            if in_flight.running.is_empty() && (due.peek().is_none() || self.commands.is_cancelled()) {
                break;
            }
            self.record(&external, &mut in_flight).await?;
        }
        self.record_failing(&external, &mut in_flight).await?;
        if due.peek().is_some() { Err(JobError::lost()) } else { Ok(()) }
    }

    /// Begins as many units as may be in flight at once.
    async fn begin<'u, DB: Backend>(
        &self,
        external: &ExternalWork<'_, DB, Unit>,
        due: &mut impl Iterator<Item = (usize, &'u Unit)>,
        in_flight: &mut InFlight,
    ) -> Result<(), JobError> {
        let mut works = Vec::new();
        while in_flight.running.len() + works.len() < self.parallel
            && !in_flight.breaker.is_open()
            && let Some((member, unit)) = due.next()
        {
            match self.work_of(unit, external.over(member)) {
                Ok(work) => works.push((member, unit, work)),
                Err(message) => in_flight.fail(member, message),
            }
        }
        if works.is_empty() {
            return Ok(());
        }
        let mut reserved = HashMap::new();
        if let UnitAction::Http(..) = self.action {
            self.commands.calls_begin();
            let members: Vec<usize> = works.iter().map(|(member, ..)| *member).collect();
            if failpoint::is_weakened("call.unreserved") {
                reserved.extend(members.into_iter().map(|member| (member, external.over(member))));
            } else {
                reserved.extend(external.reserve(&members).await?);
            }
            works.retain(|(member, ..)| reserved.contains_key(member));
            if works.is_empty() && in_flight.running.is_empty() {
                self.commands.calls_end();
            }
        }
        for (member, unit, work) in works {
            let (commands, key) = (self.commands, unit.key());
            match (&self.action, work) {
                (UnitAction::Http(_, caller), UnitWork::Call(request)) => {
                    let (caller, over) = (caller.clone(), reserved.get(&member).copied().flatten());
                    let idempotency_key = match self.idempotency_key(unit, over) {
                        Ok(key) => key,
                        Err(message) => {
                            external.unsent(member).await?;
                            in_flight.fail(member, message);
                            continue;
                        }
                    };
                    in_flight.running.spawn(async move {
                        failpoint::reach("call.reserved");
                        let answer = caller.call(request, idempotency_key).await;
                        failpoint::reach("call.answered");
                        (member, answer.into())
                    });
                }
                (_, UnitWork::Command(command)) => {
                    let ended = commands.execute(*command, key, None);
                    in_flight.running.spawn(async move { (member, ended.await.unwrap_or(None).into()) });
                }
                (UnitAction::Command(..), UnitWork::Call(..)) => {}
            }
        }
        Ok(())
    }

    /// Records a unit that has ended. If that fails, the other responses are still awaited: one that confirms success is
    /// evidence, also from an attempt that was taken over.
    async fn record<DB: Backend>(
        &self,
        external: &ExternalWork<'_, DB, Unit>,
        in_flight: &mut InFlight,
    ) -> Result<(), JobError> {
        let recorded = self.record_some(external, in_flight).await;
        if recorded.is_err()
            && let UnitAction::Http(..) = self.action
        {
            while let Some(ended) = in_flight.running.join_next().await {
                let recorded = match ended {
                    Ok((member, UnitResult::Done)) => external.done(&[member]).await,
                    Ok((member, UnitResult::Failed(_) | UnitResult::LeaseExpired)) => {
                        external.unsent(member).await
                    }
                    _ => Ok(()),
                };
                if let Err(error) = recorded {
                    tracing::warn!(%error, "a response was received but could not be recorded");
                }
            }
        }
        recorded
    }

    /// Records all units that have ended, even after an error of one: an unrecorded response would be a doubt.
    async fn record_some<DB: Backend>(
        &self,
        external: &ExternalWork<'_, DB, Unit>,
        in_flight: &mut InFlight,
    ) -> Result<(), JobError> {
        let (mut done, mut fault) = (Vec::new(), None);
        let mut ended = in_flight.running.join_next().await;
        while let Some(one) = ended {
            let wrong = match one {
                Ok((member, UnitResult::Done)) => {
                    done.push(member);
                    Ok(())
                }
                Ok((member, one)) => self.record_undone(external, in_flight, member, one).await,
                Err(error) => Err(JobError::new(format!("panicked: {error}"))),
            };
            fault = fault.or(wrong.err());
            ended = if fault.is_some() {
                in_flight.running.join_next().await
            } else {
                in_flight.running.try_join_next()
            };
        }
        let recorded = self.record_done(external, in_flight, &done).await;
        if in_flight.running.is_empty() {
            self.commands.calls_end();
        }
        recorded.and(fault.map_or(Ok(()), Err))
    }

    async fn record_done<DB: Backend>(
        &self,
        external: &ExternalWork<'_, DB, Unit>,
        in_flight: &mut InFlight,
        done: &[usize],
    ) -> Result<(), JobError> {
        if done.is_empty() {
            return Ok(());
        }
        external.done(done).await?;
        self.record_failing(external, in_flight).await?;
        in_flight.breaker.reset();
        self.doubts.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Records that a unit was not processed, or may not have been. An error means that no other unit may be begun.
    async fn record_undone<DB: Backend>(
        &self,
        external: &ExternalWork<'_, DB, Unit>,
        in_flight: &mut InFlight,
        member: usize,
        ended: UnitResult,
    ) -> Result<(), JobError> {
        match ended {
            UnitResult::Done => {}
            UnitResult::Failed(message) => {
                if let UnitAction::Http(..) = self.action {
                    external.unsent(member).await?;
                }
                in_flight.fail(member, message);
            }
            UnitResult::InDoubt(message) => {
                external.doubted(member, &message, self.holds_doubts).await?;
                in_flight.breaker.count_failure();
                in_flight.last_message = message;
                self.doubts.fetch_add(usize::from(!external.is_again()), Ordering::Relaxed);
            }
            UnitResult::Fault(error) => return Err(error),
            UnitResult::Interrupted => return Err(JobError::lost()),
            // While no other attempt has taken over, this is the same as if it had not been begun.
            UnitResult::LeaseExpired => {
                external.unsent(member).await.map_err(JobError::from).and(Err(JobError::lost()))?;
            }
        }
        Ok(())
    }

    async fn record_failing<DB: Backend>(
        &self,
        external: &ExternalWork<'_, DB, Unit>,
        in_flight: &mut InFlight,
    ) -> Result<(), JobError> {
        for (member, message) in in_flight.failing.drain(..) {
            external.failed(member, &message).await?;
        }
        Ok(())
    }

    /// Records the units in flight, then gives the error that all units fail. None of the last failures is recorded.
    async fn conclude_all_failed<DB: Backend>(
        &self,
        external: &ExternalWork<'_, DB, Unit>,
        mut in_flight: InFlight,
    ) -> Result<JobError, JobError> {
        while !in_flight.running.is_empty() {
            self.record(external, &mut in_flight).await?;
        }
        self.commands.calls_end();
        Ok(all_fail(in_flight.last_message).into())
    }

    /// The command or request of a unit, or why there is none.
    fn work_of(&self, unit: &Unit, over: Option<i64>) -> Result<UnitWork, String> {
        let parsed = parsed(unit)?;
        let values = Values { unit: Some(unit.text.clone()), ..self.values.clone() };
        match &self.action {
            UnitAction::Command(argv, command) => {
                let key = self.idempotency_key(unit, over)?;
                let command = with_arguments(argv, command, unit, &values, parsed, key)?;
                Ok(UnitWork::Command(Box::new(command)))
            }
            UnitAction::Http(call, caller) => {
                let request = call.request(&values).map_err(|error| caller.redacted(&error.to_string()))?;
                Ok(UnitWork::Call(request))
            }
        }
    }

    /// The key by which the receiver recognises a repetition: the same for this content of this unit in any run, unless other
    /// content was applied in between. Else a receiver would take a change from B back to A for the A it knows, and keep B.
    fn idempotency_key(&self, unit: &Unit, over: Option<i64>) -> Result<String, String> {
        /// What the key is made of: job, scope, window, unit and content, and the revision that it replaces, if any.
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Fact<'f> {
            First(&'f str, &'f str, Option<String>, &'f str, String),
            Over(&'f str, &'f str, Option<String>, &'f str, String, i64),
        }
        let (facts, parsed) = (&self.run.facts, parsed(unit)?);
        let window = facts.window.filter(|_| self.is_by_window).map(|window| window.start().to_string());
        let (identity, content) = (facts.identity.as_str(), parsed.fingerprint.to_string());
        let (scope, key) = (facts.scope.as_str(), parsed.key.as_str());
        let fact = match over {
            None => Fact::First(identity, scope, window, key, content),
            Some(over) => Fact::Over(identity, scope, window, key, content, over),
        };
        let fact = serde_json::to_string(&fact).map_err(|error| error.to_string())?;
        let fact = Fingerprint::of_json(&fact).map_err(|error| error.to_string())?;
        let fact = Key::parse(&format!("unit:{fact}")).map_err(|error| error.to_string())?;
        Ok(IdempotencyKey::of(&facts.project, &fact, facts.version).to_string())
    }
}

fn parsed(unit: &Unit) -> Result<&ParsedUnit, String> {
    unit.parsed.as_ref().ok_or_else(|| "the unit was not parsed".to_owned())
}

fn with_arguments(
    argv: &[Template],
    command: &Command,
    unit: &Unit,
    values: &Values,
    parsed: &ParsedUnit,
    idempotency_key: String,
) -> Result<Command, String> {
    if unit.text.len() > VARIABLE_BYTES_MAX {
        return Err(format!(
            "the unit has {} bytes; the maximum for a command is {VARIABLE_BYTES_MAX}: pass a reference, not the content",
            unit.text.len()
        ));
    }
    let argv = arguments(argv, values).map_err(|error| error.to_string())?;
    let mut environment = command.environment.clone();
    environment.extend([
        ("REFRAIN_UNIT".to_owned(), unit.text.clone()),
        ("REFRAIN_UNIT_KEY".to_owned(), parsed.key.to_string()),
        ("REFRAIN_IDEMPOTENCY_KEY".to_owned(), idempotency_key),
    ]);
    Ok(Command { argv, environment, interrupted: Interrupted::Again, ..command.clone() })
}

impl InFlight {
    fn fail(&mut self, member: usize, message: String) {
        self.last_message.clone_from(&message);
        self.failing.push((member, message));
        self.breaker.count_failure();
    }
}

impl From<TaskResult> for UnitResult {
    fn from(seen: TaskResult) -> UnitResult {
        match seen {
            Some(Ok(())) => UnitResult::Done,
            Some(Err(error)) if !error.is_retryable() => UnitResult::Fault(error),
            Some(Err(error)) => UnitResult::Failed(error.to_string()),
            None => UnitResult::Interrupted,
        }
    }
}

impl From<HttpOutcome> for UnitResult {
    fn from(answer: HttpOutcome) -> UnitResult {
        match answer {
            HttpOutcome::Done => UnitResult::Done,
            HttpOutcome::NotDone(message) => UnitResult::Failed(message),
            HttpOutcome::InDoubt(message) => UnitResult::InDoubt(message),
            HttpOutcome::LeaseExpired => UnitResult::LeaseExpired,
        }
    }
}
