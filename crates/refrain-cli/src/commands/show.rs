//! `refrain show`: everything recorded about one run.

use std::fmt;

use clap::Args;
use jiff::SignedDuration;
use refrain::admin::{AttemptRecord, AttemptUnits, RunDetails, UnitDedupes};
use refrain::core::duration;
use refrain::core::terminal::typed;
use serde::Serialize;

use crate::context::Context;
use crate::decision_line::DecisionLine;
use crate::doubts::{DoubtLine, advice};
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::run_line::RunLine;

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain show export@2026-06-09\n  refrain show welcome#42 --json")]
pub(crate) struct Arguments {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

/// All details of a run, as they are printed.
#[derive(Serialize)]
#[serde(transparent)]
struct DetailLines<'r>(&'r RunDetails);

impl fmt::Display for DetailLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunDetails { run, payload, attempts, units, dedupes, doubts, decisions, .. } = self.0;
        let record = &run.record;
        write!(f, "{}", RunLine(run))?;
        if let Some(window) = record.window {
            let (start, end) = (window.start().timestamp(), window.end().timestamp());
            write!(f, "\n  window   {start} to {end}")?;
        }
        write!(f, "\n  opened   {:.0}", record.opened_at)?;
        if let (Some(began), Some(ended)) = (record.started_at, record.ended_at) {
            let took = ended.duration_since(began);
            write!(f, "\n  began    {began:.0}, took {}", length(took))?;
        }
        if let Some(payload) = payload {
            write!(f, "\n  payload  {}", harmless(&payload.to_string()))?;
        }
        for AttemptRecord { number, ended, ended_at, message, .. } in attempts {
            write!(f, "\n  attempt {number}: {ended}, {ended_at:.0}")?;
            if let Some(message) = message {
                write!(f, ": {}", harmless(message))?;
            }
        }
        for AttemptUnits { attempt, counts, dedupes, .. } in units {
            write!(f, "\n  units of attempt {attempt}: {counts}")?;
            for UnitDedupes { reason, count, is_suspect, keys, .. } in dedupes {
                let suspect = if *is_suspect { " (check the key: it may be too wide)" } else { "" };
                let first = keys.first().map(|key| format!(", first {}", harmless(key))).unwrap_or_default();
                write!(f, "\n    {count} {reason}{first}{suspect}")?;
            }
        }
        for doubt in doubts {
            write!(f, "\n  {}", DoubtLine(doubt))?;
        }
        for decision in decisions {
            write!(f, "\n  decided  {}", DecisionLine(decision))?;
        }
        match dedupes.as_slice() {
            [] => Ok(()),
            [only] => write!(f, "\n  requested once more, {:.0} by {}", only.at, only.asked),
            [.., last] => {
                write!(f, "\n  requested {} times more, last {:.0} by {}", dedupes.len(), last.at, last.asked)
            }
        }
    }
}

pub(crate) async fn show(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let opened = context.look_around().await?;
    let details = opened.refrain.details(&arguments.run).await?;
    let details = details.ok_or_else(|| refrain::Error::NoRun(arguments.run.clone()))?;
    opened.close().await;
    context.output.result(&DetailLines(&details))?;
    if !details.doubts.is_empty() {
        context.output.say(advice(&details.run.name, &details.doubts));
    }
    let name = typed(&details.run.name);
    context
        .output
        .say(format_args!("its output: refrain logs {name}; the rule behind its state: refrain why {name}"));
    Ok(Exit::Done)
}

/// How long something took, in a unit that fits.
fn length(took: SignedDuration) -> String {
    match took.as_secs() {
        ..1 => format!("{} ms", took.as_millis().max(0)),
        1..60 => format!("{:.1} s", took.as_secs_f64()),
        _ => duration::format(took.unsigned_abs()),
    }
}
