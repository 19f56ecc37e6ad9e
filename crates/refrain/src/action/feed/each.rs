//! A command for each unit, some of them at once.
//!
//! No transaction is open while one runs: units are looked up first, and recorded when their commands have ended, as many
//! together as have ended meanwhile.

use refrain_core::template::arguments;
use refrain_core::{Fingerprint, IdempotencyKey, Key, Template, Values};
use serde::Serialize;
use serde_json::Value;
use tokio::task::JoinSet;

use super::commands::Commands;
use super::unit::{Read, Unit};
use crate::action::command::{Command, Interrupted};
use crate::job::JobError;
use crate::leaving::Seen;
use crate::ledger::{Backend, LedgerError, Outside};
use crate::run::Run;

/// So many units that fail one after another are not to blame: something else is wrong.
const IN_A_ROW_MAX: usize = 20;
/// The longest text that a variable of a command's environment can hold, with some room for its name.
const VARIABLE_BYTES_MAX: usize = 120 * 1_024;

/// What is executed for each unit.
pub(super) struct Each<'f> {
    pub(super) run: &'f Run,
    pub(super) commands: &'f Commands,
    pub(super) argv: &'f [Template],
    pub(super) parallel: usize,
    /// Directory, environment and what else a command of this job has.
    pub(super) command: Command,
    pub(super) values: Values,
    pub(super) is_by_window: bool,
}

impl Each<'_> {
    /// Executes the commands of all units that are to be done, and records what became of them.
    pub(super) async fn execute<DB: Backend>(&self, outside: Outside<'_, DB, Unit>) -> Result<(), JobError> {
        let mut due = outside.due().peekable();
        let mut running: JoinSet<(usize, Seen)> = JoinSet::new();
        let mut failing: Vec<(usize, String)> = Vec::new();
        loop {
            while running.len() < self.parallel
                && let Some((member, unit)) = due.next()
            {
                match self.command(unit) {
                    Ok(command) => {
                        let ended = self.commands.execute(command, unit.key(), None);
                        running.spawn(async move { (member, ended.await.unwrap_or(None)) });
                    }
                    Err(message) => failing.push((member, message)),
                }
            }
            let (mut done, mut fault) = (Vec::new(), None);
            let mut ended = running.join_next().await;
            if ended.is_none() && due.peek().is_none() {
                break;
            }
            while let Some(one) = ended {
                match one.map_err(|error| JobError::new(format!("panicked: {error}")))? {
                    (member, Some(Ok(()))) => done.push(member),
                    // It is the same for every unit: a program that is not there, for example.
                    (_, Some(Err(error))) if !error.is_retryable() => fault = Some(error),
                    (member, Some(Err(error))) => failing.push((member, error.to_string())),
                    (_, None) => return Err(JobError::lost()),
                }
                // Whatever is wrong with one, what the others have done is recorded first.
                ended = if fault.is_some() { running.join_next().await } else { running.try_join_next() };
            }
            if !done.is_empty() {
                outside.done(&done).await?;
                recorded(&outside, &mut failing).await?;
            }
            if let Some(fault) = fault {
                return Err(fault);
            }
            if done.is_empty() && failing.len() >= IN_A_ROW_MAX && due.peek().is_some() {
                let message = failing.pop().map(|(_, message)| message).unwrap_or_default();
                return Err(LedgerError::AllFail { count: IN_A_ROW_MAX, message }.into());
            }
        }
        recorded(&outside, &mut failing).await
    }

    /// What is executed for a unit; or why it cannot be.
    fn command(&self, unit: &Unit) -> Result<Command, String> {
        let Some(read) = &unit.read else { return Err("it was not read".to_owned()) };
        if unit.text.len() > VARIABLE_BYTES_MAX {
            return Err(format!(
                "it is {} bytes long, and a command can be given {VARIABLE_BYTES_MAX}: pass a reference, not the body",
                unit.text.len()
            ));
        }
        let fields = exact(&unit.text).map_err(|error| error.to_string())?;
        let values = Values { unit: Some(fields), ..self.values.clone() };
        let argv = arguments(self.argv, &values).map_err(|error| error.to_string())?;
        let mut environment = self.command.environment.clone();
        environment.extend([
            ("REFRAIN_UNIT".to_owned(), unit.text.clone()),
            ("REFRAIN_UNIT_KEY".to_owned(), read.key.to_string()),
            ("REFRAIN_IDEMPOTENCY_KEY".to_owned(), self.idempotency_key(read)?),
        ]);
        Ok(Command { argv, environment, interrupted: Interrupted::Again, ..self.command.clone() })
    }

    /// The same whenever this content of this unit is done again, by whichever run.
    fn idempotency_key(&self, read: &Read) -> Result<String, String> {
        #[derive(Serialize)]
        struct Fact<'f>(&'f str, &'f str, Option<String>, &'f str, String);
        let facts = &self.run.facts;
        let window = facts.window.filter(|_| self.is_by_window).map(|window| window.start().to_string());
        let (identity, content) = (facts.identity.as_str(), read.fingerprint.to_string());
        let fact = Fact(identity, facts.scope.as_str(), window, read.key.as_str(), content);
        let fact = serde_json::to_string(&fact).map_err(|error| error.to_string())?;
        let fact = Fingerprint::of_json(&fact).map_err(|error| error.to_string())?;
        let fact = Key::parse(&format!("unit:{fact}")).map_err(|error| error.to_string())?;
        Ok(IdempotencyKey::of(&facts.project, &fact, facts.version).to_string())
    }
}

async fn recorded<DB: Backend>(
    outside: &Outside<'_, DB, Unit>,
    failing: &mut Vec<(usize, String)>,
) -> Result<(), JobError> {
    for (member, message) in failing.drain(..) {
        outside.failed(member, &message).await?;
    }
    Ok(())
}

/// A unit as a value, in which a number that a float would change is a text.
fn exact(text: &str) -> Result<Value, serde_json::Error> {
    let value: Value = serde_json::from_str(text)?;
    Ok(match value {
        Value::Object(_) => {
            let members: std::collections::BTreeMap<String, &serde_json::value::RawValue> =
                serde_json::from_str(text)?;
            let exact = members.into_iter().map(|(name, raw)| Ok((name, exact(raw.get())?)));
            Value::Object(exact.collect::<Result<_, serde_json::Error>>()?)
        }
        Value::Number(number) if number.to_string() != text => Value::String(text.to_owned()),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_a_float_would_change_stays_as_it_is_written() {
        let text = r#"{"id": 12345678901234567890123, "total": 10.00, "to": {"n": 7, "rate": 0.5}}"#;
        let values = Values { unit: Some(exact(text).unwrap_or_default()), ..Values::default() };
        for (name, expected) in
            [("id", "12345678901234567890123"), ("total", "10.00"), ("to.n", "7"), ("to.rate", "0.5")]
        {
            assert_eq!(values.text(name).as_deref(), Some(expected), "{name}");
        }
    }
}
