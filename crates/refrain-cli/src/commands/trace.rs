//! `refrain trace`: everything recorded about one key.

use std::fmt;

use clap::Args;
use refrain::admin::Trace;
use refrain::core::terminal::typed;
use refrain::effects::EffectRecord;
use refrain::ledger::UnitRecord;
use serde::Serialize;

use crate::context::Context;
use crate::decision_line::DecisionLine;
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::run_line::RunLine;

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain trace invoice:INV-7\n  refrain trace 42 --json")]
pub(crate) struct Arguments {
    /// The key of a unit, an effect or a queued run.
    pub(crate) key: String,
}

/// All records of a key, as they are printed.
#[derive(Serialize)]
#[serde(transparent)]
struct TraceLines<'t>(&'t Trace);

impl fmt::Display for TraceLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trace { key, units, effects, tried_by, enqueued, decisions, .. } = self.0;
        write!(f, "{}", harmless(key))?;
        for unit in units {
            unit_lines(f, unit)?;
        }
        for EffectRecord { name, version, state, arrived_at, dedupes, .. } in effects {
            let name = harmless(name);
            write!(
                f,
                "\n  effect {name}, version {version}: {state}, {arrived_at:.0}, {dedupes} deduplicated"
            )?;
        }
        for run in tried_by {
            write!(f, "\n  tried by {}", RunLine(run))?;
        }
        for run in enqueued {
            write!(f, "\n  {}", RunLine(run))?;
        }
        for decision in decisions {
            write!(f, "\n  decided {}", DecisionLine(decision))?;
        }
        Ok(())
    }
}

fn unit_lines(f: &mut fmt::Formatter<'_>, unit: &UnitRecord) -> fmt::Result {
    let UnitRecord { job, version, at, scope, window_start, .. } = unit;
    write!(f, "\n  unit of {job}: {}, version {version}, {at:.0}", unit.status_in_words())?;
    for (word, value) in [("scope", scope), ("window", window_start)] {
        if !value.is_empty() {
            write!(f, ", {word} {}", harmless(value))?;
        }
    }
    if let (Some(run), Some(attempt)) = (&unit.run, unit.attempt) {
        write!(f, ", by attempt {attempt} of {}", harmless(run))?;
    }
    if let Some(since) = unit.in_doubt_since {
        write!(f, "\n    in doubt since {since:.0}")?;
    }
    if let Some(message) = &unit.message {
        write!(f, "\n    {}", harmless(message))?;
    }
    if let Some(input) = &unit.input {
        write!(f, "\n    input {}", harmless(input))?;
    }
    Ok(())
}

pub(crate) async fn trace(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let opened = context.look_around().await?;
    let trace = opened.refrain.trace(&arguments.key).await;
    opened.close().await;
    let trace = trace?;
    if trace.is_empty() {
        return Err(CliError::Refused(format!(
            "nothing is recorded of the key `{0}`\n  write the whole key, as in invoice:INV-7; why a run is missing: refrain why RUN",
            harmless(&arguments.key)
        )));
    }
    context.output.result(&TraceLines(&trace))?;
    match trace.parked() {
        Some((unit, run)) => {
            let (run, key) = (typed(&run.name), typed(&arguments.key));
            if unit.in_doubt_since.is_some() {
                context.output.say(format_args!(
                    "ask the receiver; if it was done: refrain retry {run} --unit {key} --done"
                ));
            }
            context.output.say(format_args!("to try the unit again: refrain retry {run} --unit {key}"));
        }
        None if trace.enqueued.is_empty() && trace.tried_by.is_empty() && !trace.effects.is_empty() => {
            let key = typed(&arguments.key);
            context.output.say(format_args!("what is recorded of its effects: refrain effects show {key}"));
        }
        None => context.output.say("one of these runs: refrain show RUN; its output: refrain logs RUN"),
    }
    Ok(Exit::Done)
}
