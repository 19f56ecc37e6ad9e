//! A program or a call for each unit, some of them at once.
//!
//! No transaction is open while one is under way: units are looked up first, and recorded when their work has ended, as many
//! together as have ended meanwhile. A program that is cut off by a death is executed again, under the same key. A call may
//! not be sent again so lightly: its unit is reserved before, and stays in doubt until its end is recorded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use refrain_core::call::{Call, Request};
use refrain_core::template::arguments;
use refrain_core::{Fingerprint, IdempotencyKey, Key, Template, Values};
use serde::Serialize;
use tokio::task::JoinSet;

use super::commands::Commands;
use super::unit::{Read, Unit};
use crate::action::command::{Command, Interrupted};
use crate::action::http::{Answer, Caller};
use crate::failpoint;
use crate::job::JobError;
use crate::leaving::Seen;
use crate::ledger::{Backend, ExternalWork, LedgerError};
use crate::run::Run;

/// So many units that fail one after another are not to blame: something else is wrong.
const IN_A_ROW_MAX: usize = 20;
/// The longest text that a variable of a command's environment can hold, with some room for its name.
const VARIABLE_BYTES_MAX: usize = 120 * 1_024;

/// What is done with each unit.
pub(super) struct Each<'f> {
    pub(super) run: &'f Run,
    pub(super) commands: &'f Commands,
    pub(super) way: UnitAction<'f>,
    pub(super) parallel: usize,
    pub(super) values: Values,
    pub(super) is_by_window: bool,
    /// How many calls are newly in doubt since the last one that went well, in whichever list: somebody has to look at each.
    pub(super) doubts: AtomicUsize,
    /// Whether a call that is in doubt waits for a person, and no later attempt sends it.
    pub(super) holds_doubts: bool,
}

/// How it is done.
pub(super) enum UnitAction<'f> {
    /// By a program; directory, environment and what else a command of this job has.
    Command(&'f [Template], Box<Command>),
    /// By a call.
    Http(&'f Call, Caller),
}

/// The work of one unit.
enum Work {
    Command(Box<Command>),
    Call(Request),
}

/// How the work of a unit ended.
enum Ended {
    Done,
    Failed(String),
    InDoubt(String),
    /// It is the same for every unit: a program that is not there, for example.
    Fault(JobError),
    CutOff,
    /// The lease was over before anything was sent.
    TooLate,
}

/// What is known and not recorded.
#[derive(Default)]
struct UnderWay {
    running: JoinSet<(usize, Ended)>,
    /// Those that failed since the last one that went well. Whether it was theirs or everybody's fault is known when
    /// another one goes well.
    failing: Vec<(usize, String)>,
    /// How many failed or are in doubt since then.
    in_a_row: usize,
    /// What was last said against one.
    last: String,
}

impl Each<'_> {
    /// Does the work of all units that are to be done, and records what became of them.
    pub(super) async fn run<DB: Backend>(&self, work: ExternalWork<'_, DB, Unit>) -> Result<(), JobError> {
        let mut due = work.due().peekable();
        let mut under_way = UnderWay::default();
        if self.doubts.load(Ordering::Relaxed) >= IN_A_ROW_MAX && due.peek().is_some() {
            let message =
                "the calls before are in doubt, one after another; see what is left: refrain why RUN";
            return Err(LedgerError::AllFail { count: IN_A_ROW_MAX, message: message.to_owned() }.into());
        }
        loop {
            if !self.commands.is_off() {
                self.begin(&work, &mut due, &mut under_way).await?;
            }
            if under_way.in_a_row >= IN_A_ROW_MAX && due.peek().is_some() {
                return Err(self.nobody_is_to_blame(&work, under_way).await?);
            }
            if under_way.running.is_empty() && (due.peek().is_none() || self.commands.is_off()) {
                break;
            }
            self.record(&work, &mut under_way).await?;
        }
        self.record_failing(&work, &mut under_way).await?;
        if due.peek().is_some() { Err(JobError::lost()) } else { Ok(()) }
    }

    /// Begins the work of as many as may be under way at once.
    async fn begin<'u, DB: Backend>(
        &self,
        outside: &ExternalWork<'_, DB, Unit>,
        due: &mut impl Iterator<Item = (usize, &'u Unit)>,
        under_way: &mut UnderWay,
    ) -> Result<(), JobError> {
        let mut works = Vec::new();
        while under_way.running.len() + works.len() < self.parallel
            && under_way.in_a_row < IN_A_ROW_MAX
            && let Some((member, unit)) = due.next()
        {
            match self.work(unit, outside.over(member)) {
                Ok(work) => works.push((member, unit, work)),
                Err(message) => under_way.fail(member, message),
            }
        }
        if works.is_empty() {
            return Ok(());
        }
        let mut reserved = HashMap::new();
        if let UnitAction::Http(..) = self.way {
            self.commands.calls_begin();
            let members: Vec<usize> = works.iter().map(|(member, ..)| *member).collect();
            if failpoint::is_weakened("call.unreserved") {
                reserved.extend(members.into_iter().map(|member| (member, outside.over(member))));
            } else {
                reserved.extend(outside.reserve(&members).await?);
            }
            works.retain(|(member, ..)| reserved.contains_key(member));
            if works.is_empty() && under_way.running.is_empty() {
                self.commands.calls_end();
            }
        }
        for (member, unit, work) in works {
            let (commands, key) = (self.commands, unit.key());
            match (&self.way, work) {
                (UnitAction::Http(_, caller), Work::Call(request)) => {
                    let (caller, over) = (caller.clone(), reserved.get(&member).copied().flatten());
                    let idempotency_key = match self.idempotency_key(unit, over) {
                        Ok(key) => key,
                        Err(message) => {
                            outside.unsent(member).await?;
                            under_way.fail(member, message);
                            continue;
                        }
                    };
                    under_way.running.spawn(async move {
                        failpoint::reach("call.reserved");
                        let answer = caller.call(request, idempotency_key).await;
                        failpoint::reach("call.answered");
                        (member, answer.into())
                    });
                }
                (_, Work::Command(command)) => {
                    let ended = commands.execute(*command, key, None);
                    under_way.running.spawn(async move { (member, ended.await.unwrap_or(None).into()) });
                }
                (UnitAction::Command(..), Work::Call(..)) => {}
            }
        }
        Ok(())
    }

    /// Waits until something has ended, and records it. If that cannot be done, the answers to the other calls are still heard: one
    /// that says that its call was done is evidence, also from an attempt that was taken over.
    async fn record<DB: Backend>(
        &self,
        outside: &ExternalWork<'_, DB, Unit>,
        under_way: &mut UnderWay,
    ) -> Result<(), JobError> {
        let recorded = self.record_some(outside, under_way).await;
        if recorded.is_err()
            && let UnitAction::Http(..) = self.way
        {
            while let Some(ended) = under_way.running.join_next().await {
                let heard = match ended {
                    Ok((member, Ended::Done)) => outside.done(&[member]).await,
                    Ok((member, Ended::Failed(_) | Ended::TooLate)) => outside.unsent(member).await,
                    _ => Ok(()),
                };
                if let Err(error) = heard {
                    tracing::warn!(%error, "a call was answered, and that could not be recorded");
                }
            }
        }
        recorded
    }

    /// Records what has ended. What is wrong with one keeps no other from that: an answer that is not written down would be a doubt.
    async fn record_some<DB: Backend>(
        &self,
        outside: &ExternalWork<'_, DB, Unit>,
        under_way: &mut UnderWay,
    ) -> Result<(), JobError> {
        let (mut done, mut fault) = (Vec::new(), None);
        let mut ended = under_way.running.join_next().await;
        while let Some(one) = ended {
            let wrong = match one {
                Ok((member, Ended::Done)) => {
                    done.push(member);
                    Ok(())
                }
                Ok((member, one)) => self.record_undone(outside, under_way, member, one).await,
                Err(error) => Err(JobError::new(format!("panicked: {error}"))),
            };
            fault = fault.or(wrong.err());
            ended = if fault.is_some() {
                under_way.running.join_next().await
            } else {
                under_way.running.try_join_next()
            };
        }
        let recorded = self.record_done(outside, under_way, &done).await;
        if under_way.running.is_empty() {
            self.commands.calls_end();
        }
        recorded.and(fault.map_or(Ok(()), Err))
    }

    async fn record_done<DB: Backend>(
        &self,
        outside: &ExternalWork<'_, DB, Unit>,
        under_way: &mut UnderWay,
        done: &[usize],
    ) -> Result<(), JobError> {
        if done.is_empty() {
            return Ok(());
        }
        outside.done(done).await?;
        self.record_failing(outside, under_way).await?;
        under_way.in_a_row = 0;
        self.doubts.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Records that the work of a unit was not done, or may not have been; or says why no other may be begun.
    async fn record_undone<DB: Backend>(
        &self,
        outside: &ExternalWork<'_, DB, Unit>,
        under_way: &mut UnderWay,
        member: usize,
        ended: Ended,
    ) -> Result<(), JobError> {
        match ended {
            Ended::Done => {}
            Ended::Failed(message) => {
                if let UnitAction::Http(..) = self.way {
                    outside.unsent(member).await?;
                }
                under_way.fail(member, message);
            }
            Ended::InDoubt(message) => {
                outside.doubted(member, &message, self.holds_doubts).await?;
                under_way.in_a_row += 1;
                under_way.last = message;
                self.doubts.fetch_add(usize::from(!outside.is_again()), Ordering::Relaxed);
            }
            Ended::Fault(error) => return Err(error),
            Ended::CutOff => return Err(JobError::lost()),
            // While no other attempt has taken over, it is as if it had not been begun.
            Ended::TooLate => {
                outside.unsent(member).await.map_err(JobError::from).and(Err(JobError::lost()))?;
            }
        }
        Ok(())
    }

    async fn record_failing<DB: Backend>(
        &self,
        outside: &ExternalWork<'_, DB, Unit>,
        under_way: &mut UnderWay,
    ) -> Result<(), JobError> {
        for (member, message) in under_way.failing.drain(..) {
            outside.failed(member, &message).await?;
        }
        Ok(())
    }

    /// All fail: none of them is recorded as failed. Whatever is still under way is recorded first.
    async fn nobody_is_to_blame<DB: Backend>(
        &self,
        outside: &ExternalWork<'_, DB, Unit>,
        mut under_way: UnderWay,
    ) -> Result<JobError, JobError> {
        while !under_way.running.is_empty() {
            self.record(outside, &mut under_way).await?;
        }
        self.commands.calls_end();
        Ok(LedgerError::AllFail { count: IN_A_ROW_MAX, message: under_way.last }.into())
    }

    /// The work of a unit; or why there can be none.
    fn work(&self, unit: &Unit, over: Option<i64>) -> Result<Work, String> {
        let read = read(unit)?;
        let values = Values { unit: Some(unit.text.clone()), ..self.values.clone() };
        match &self.way {
            UnitAction::Command(argv, command) => {
                let key = self.idempotency_key(unit, over)?;
                let command = with_arguments(argv, command, unit, &values, read, key)?;
                Ok(Work::Command(Box::new(command)))
            }
            UnitAction::Http(call, caller) => {
                let request = call.request(&values).map_err(|error| caller.hidden(&error.to_string()))?;
                Ok(Work::Call(request))
            }
        }
    }

    /// The same whenever this content of this unit is done again, by whichever run; another one when other content was applied in
    /// between. Whoever remembers the key would take the way back from B to A for the A that it knows, and keep B.
    fn idempotency_key(&self, unit: &Unit, over: Option<i64>) -> Result<String, String> {
        /// What the key is made of: job, scope, window, unit, content; and what it goes over, if anything.
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Fact<'f> {
            First(&'f str, &'f str, Option<String>, &'f str, String),
            Over(&'f str, &'f str, Option<String>, &'f str, String, i64),
        }
        let (facts, read) = (&self.run.facts, read(unit)?);
        let window = facts.window.filter(|_| self.is_by_window).map(|window| window.start().to_string());
        let (identity, content) = (facts.identity.as_str(), read.fingerprint.to_string());
        let (scope, key) = (facts.scope.as_str(), read.key.as_str());
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

fn read(unit: &Unit) -> Result<&Read, String> {
    unit.read.as_ref().ok_or_else(|| "it was not read".to_owned())
}

fn with_arguments(
    argv: &[Template],
    command: &Command,
    unit: &Unit,
    values: &Values,
    read: &Read,
    idempotency_key: String,
) -> Result<Command, String> {
    if unit.text.len() > VARIABLE_BYTES_MAX {
        return Err(format!(
            "it is {} bytes long, and a command can be given {VARIABLE_BYTES_MAX}: pass a reference, not the body",
            unit.text.len()
        ));
    }
    let argv = arguments(argv, values).map_err(|error| error.to_string())?;
    let mut environment = command.environment.clone();
    environment.extend([
        ("REFRAIN_UNIT".to_owned(), unit.text.clone()),
        ("REFRAIN_UNIT_KEY".to_owned(), read.key.to_string()),
        ("REFRAIN_IDEMPOTENCY_KEY".to_owned(), idempotency_key),
    ]);
    Ok(Command { argv, environment, interrupted: Interrupted::Again, ..command.clone() })
}

impl UnderWay {
    fn fail(&mut self, member: usize, message: String) {
        self.last.clone_from(&message);
        self.failing.push((member, message));
        self.in_a_row += 1;
    }
}

impl From<Seen> for Ended {
    fn from(seen: Seen) -> Ended {
        match seen {
            Some(Ok(())) => Ended::Done,
            Some(Err(error)) if !error.is_retryable() => Ended::Fault(error),
            Some(Err(error)) => Ended::Failed(error.to_string()),
            None => Ended::CutOff,
        }
    }
}

impl From<Answer> for Ended {
    fn from(answer: Answer) -> Ended {
        match answer {
            Answer::Done => Ended::Done,
            Answer::NotDone(message) => Ended::Failed(message),
            Answer::InDoubt(message) => Ended::InDoubt(message),
            Answer::TooLate => Ended::TooLate,
        }
    }
}
