//! `refrain trace`: everything that is known of one key, wherever it stands.

use std::fmt;

use clap::Args;
use jiff::Timestamp;
use refrain::core::state::UnitStatus;
use refrain::core::terminal::typed;
use refrain::{Refrain, RunRecord};
use serde::Serialize;

use crate::context::Context;
use crate::decision_line::DecisionLine;
use crate::exit::{Exit, Fault};
use crate::output::harmless;
use crate::run_line::RunLine;

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain trace invoice:INV-7\n  refrain trace 42 --json")]
pub(crate) struct Arguments {
    /// The key of a unit, an effect or a queued run.
    pub(crate) key: String,
}

#[derive(Serialize)]
struct Traced {
    key: String,
    units: Vec<Unit>,
    effects: Vec<Effect>,
    tried_by: Vec<RunLine>,
    enqueued: Vec<RunLine>,
    decisions: Vec<DecisionLine>,
}

#[derive(Serialize)]
struct Unit {
    job: String,
    scope: String,
    window_start: String,
    status: String,
    version: u32,
    at: Timestamp,
    run: Option<String>,
    attempt: Option<u64>,
    input: Option<String>,
    message: Option<String>,
    in_doubt_since: Option<Timestamp>,
}

#[derive(Serialize)]
struct Effect {
    name: String,
    version: u32,
    state: String,
    run: Option<String>,
    arrived_at: Timestamp,
    deduplicated: u64,
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", harmless(&self.key))?;
        for unit in &self.units {
            write!(f, "\n  unit of {}: {}, version {}, {:.0}", unit.job, unit.status, unit.version, unit.at)?;
            for (word, value) in [("scope", &unit.scope), ("window", &unit.window_start)] {
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
                write!(f, "\n    given {}", harmless(input))?;
            }
        }
        for effect in &self.effects {
            let Effect { name, version, state, arrived_at, deduplicated, .. } = effect;
            write!(
                f,
                "\n  effect {name}, version {version}: {state}, {arrived_at:.0}, {deduplicated} deduplicated"
            )?;
        }
        for line in &self.tried_by {
            write!(f, "\n  tried by {line}")?;
        }
        for line in &self.enqueued {
            write!(f, "\n  {line}")?;
        }
        for decision in &self.decisions {
            write!(f, "\n  decided {decision}")?;
        }
        Ok(())
    }
}

pub(crate) async fn trace(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let opened = context.look_around().await?;
    let refrain = &opened.refrain;
    let trace = refrain.trace(&arguments.key).await?;
    if trace.is_empty() {
        opened.close().await;
        return Err(Fault::Refused(format!(
            "nothing is known of the key `{0}`\n  a key is written whole, as in invoice:INV-7; why a run is not there: refrain why RUN",
            harmless(&arguments.key)
        )));
    }
    let tried_by = lines(refrain, &trace.tried_by).await?;
    let enqueued = lines(refrain, &trace.enqueued).await?;
    // Of several, one that is in doubt comes first: somebody has to look there.
    let parked = trace.units.iter().filter(|unit| unit.status == UnitStatus::Parked);
    let parked = parked.max_by_key(|unit| unit.in_doubt_since.is_some());
    let is_in_doubt = parked.is_some_and(|unit| unit.in_doubt_since.is_some());
    let of_run = |run: &RunRecord| parked.is_some_and(|unit| unit.run.as_ref() == Some(&run.key));
    let parked = trace.tried_by.iter().position(of_run).and_then(|at| tried_by.get(at));
    let parked = parked.map(|line| line.run.clone());
    let units = trace.units.into_iter().map(|unit| Unit {
        status: match unit.status {
            UnitStatus::Failed(times) => format!("failed {times} times"),
            status => status.state().to_string(),
        },
        job: unit.job,
        scope: unit.scope,
        window_start: unit.window_start,
        version: unit.version,
        at: unit.at,
        run: unit.run,
        attempt: unit.attempt,
        input: unit.input,
        message: unit.message,
        in_doubt_since: unit.in_doubt_since,
    });
    let effects = trace.effects.into_iter().map(|effect| Effect {
        name: effect.name,
        version: effect.version,
        state: effect.state.to_string(),
        run: effect.run,
        arrived_at: effect.arrived_at,
        deduplicated: effect.dedupes,
    });
    let (units, effects) = (units.collect(), effects.collect());
    let decisions = trace.decisions.into_iter().map(DecisionLine::from).collect();
    opened.close().await;
    context.output.result(&Traced { key: trace.key, units, effects, tried_by, enqueued, decisions })?;
    if let Some(run) = parked {
        let (run, unit) = (typed(&run), typed(&arguments.key));
        if is_in_doubt {
            context.output.say(format_args!(
                "ask the other side; if it was done: refrain retry {run} --unit {unit} --done"
            ));
        }
        context.output.say(format_args!("the unit again: refrain retry {run} --unit {unit}"));
    } else {
        context.output.say("one of these runs: refrain show RUN; what it printed: refrain logs RUN");
    }
    Ok(Exit::Done)
}

async fn lines(refrain: &Refrain, runs: &[RunRecord]) -> Result<Vec<RunLine>, Fault> {
    let now = refrain.now().await?;
    let mut lines = Vec::new();
    for run in runs {
        lines.push(RunLine::of(run, &refrain.view(&run.job).await?, now));
    }
    Ok(lines)
}
