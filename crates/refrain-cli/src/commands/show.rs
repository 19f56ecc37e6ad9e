//! `refrain show`: everything that is recorded of one run.

use std::fmt;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use refrain::core::duration;
use refrain::core::terminal::typed;
use refrain::{AttemptRecord, AttemptUnits, DedupeRecord};
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::decision_line::DecisionLine;
use crate::doubts::{Doubt, advice};
use crate::exit::{Exit, Fault};
use crate::output::{Four, harmless};
use crate::run_line::RunLine;

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain show export@2026-06-09\n  refrain show welcome#42 --json")]
pub(crate) struct Arguments {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    run: RunLine,
    payload: Option<Value>,
    attempts: Vec<Attempt>,
    units: Vec<Units>,
    dedupes: Vec<Dedupe>,
    /// What of it waits for a person.
    doubts: Vec<Doubt>,
    decisions: Vec<DecisionLine>,
}

#[derive(Serialize)]
struct Attempt {
    number: u64,
    ended: String,
    started_at: Option<Timestamp>,
    ended_at: Timestamp,
    worker: Option<i64>,
    message: Option<String>,
    reason: Option<String>,
}

#[derive(Serialize)]
struct Units {
    attempt: u64,
    counts: Four,
    dedupes: Vec<UnitDedupe>,
}

#[derive(Serialize)]
struct UnitDedupe {
    reason: String,
    count: u64,
    is_suspect: bool,
    keys: Vec<String>,
}

#[derive(Serialize)]
struct Dedupe {
    at: Timestamp,
    asked: String,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.run)?;
        if let (Some(start), Some(end)) = (self.run.window_start, self.run.window_end) {
            write!(f, "\n  window   {start} to {end}")?;
        }
        write!(f, "\n  opened   {:.0}", self.run.opened_at)?;
        if let (Some(began), Some(ended)) = (self.run.started_at, self.run.ended_at) {
            let took = ended.duration_since(began);
            write!(f, "\n  began    {began:.0}, took {}", length(took))?;
        }
        if let Some(payload) = &self.payload {
            write!(f, "\n  payload  {}", harmless(&payload.to_string()))?;
        }
        for Attempt { number, ended, ended_at, message, .. } in &self.attempts {
            write!(f, "\n  attempt {number}: {ended}, {ended_at:.0}")?;
            if let Some(message) = message {
                write!(f, ": {}", harmless(message))?;
            }
        }
        for Units { attempt, counts, dedupes } in &self.units {
            write!(f, "\n  units of attempt {attempt}: {counts}")?;
            for UnitDedupe { reason, count, is_suspect, keys } in dedupes {
                let suspect = if *is_suspect { " (look at the key: it may swallow too much)" } else { "" };
                let first = keys.first().map(|key| format!(", {} first", harmless(key))).unwrap_or_default();
                write!(f, "\n    {count} {reason}{first}{suspect}")?;
            }
        }
        for doubt in &self.doubts {
            write!(f, "\n  {doubt}")?;
        }
        for decision in &self.decisions {
            write!(f, "\n  decided  {decision}")?;
        }
        match self.dedupes.as_slice() {
            [] => Ok(()),
            [only] => write!(f, "\n  asked for once more, {:.0} by {}", only.at, only.asked),
            [.., last] => {
                let times = self.dedupes.len();
                write!(f, "\n  asked for {times} times more, last {:.0} by {}", last.at, last.asked)
            }
        }
    }
}

pub(crate) async fn show(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let opened = context.look_around().await?;
    let refrain = &opened.refrain;
    let Some(run) = refrain.show(&arguments.run).await? else {
        let (name, typed) = (&arguments.run, typed(&arguments.run));
        let said =
            format!("there is no run `{name}`\n  why not: refrain why {typed}; do it: refrain run {typed}");
        return Err(Fault::Refused(said));
    };
    let (view, now) = (refrain.view(&run.job).await?, refrain.now().await?);
    let attempts = refrain.attempts(&run).await?.into_iter().map(attempt).collect();
    let units = refrain.units(&run).await?.into_iter().map(units).collect();
    let dedupes = refrain.dedupes(&run).await?.into_iter();
    let dedupes = dedupes.map(|DedupeRecord { at, asked }| Dedupe { at, asked }).collect();
    let doubts: Vec<Doubt> = refrain.doubts(&run).await?.into_iter().map(Doubt::from).collect();
    let decisions = refrain.decisions_about(&run).await?.into_iter().map(DecisionLine::from).collect();
    let payload = run.payload.as_deref().and_then(|payload| serde_json::from_str(payload).ok());
    let line = RunLine::of(&run, &view, now);
    opened.close().await;
    let name = typed(&line.run);
    let advice = (!doubts.is_empty()).then(|| advice(&line.run, &doubts));
    context.output.result(&Shown { run: line, payload, attempts, units, dedupes, doubts, decisions })?;
    if let Some(advice) = advice {
        context.output.say(advice);
    }
    context
        .output
        .say(format_args!("what it printed: refrain logs {name}; why it stands so: refrain why {name}"));
    Ok(Exit::Done)
}

fn attempt(record: AttemptRecord) -> Attempt {
    let AttemptRecord { number, ended, started_at, ended_at, worker, message, reason } = record;
    let reason = reason.map(|reason| reason.to_string());
    Attempt { number, ended, started_at, ended_at, worker, message, reason }
}

fn units(record: AttemptUnits) -> Units {
    let dedupes = record.dedupes.into_iter().map(|one| UnitDedupe {
        is_suspect: one.is_suspect(),
        reason: one.reason,
        count: one.count,
        keys: one.keys,
    });
    Units { attempt: record.attempt, counts: record.counts.into(), dedupes: dedupes.collect() }
}

/// How long something took, in a unit that says something.
fn length(took: SignedDuration) -> String {
    match took.as_secs() {
        ..1 => format!("{} ms", took.as_millis().max(0)),
        1..60 => format!("{:.1} s", took.as_secs_f64()),
        _ => duration::format(took.unsigned_abs()),
    }
}
