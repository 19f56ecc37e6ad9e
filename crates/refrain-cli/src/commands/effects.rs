//! `refrain effects`: what an operator must decide, job by job.
//!
//! A line is one decision: a unit in doubt, as `RUN unit KEY`, or a command that was cut off, as `RUN`.

use std::fmt;

use clap::Args;
use jiff::Timestamp;
use refrain::admin::{DoubtRecord, JobRecord};
use refrain::core::terminal::typed;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::harmless;

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain effects\n  refrain effects --in-doubt --job sync --json")]
pub(crate) struct Arguments {
    /// Only doubts: calls without an answer, and commands that were cut off.
    #[arg(long)]
    pub(crate) in_doubt: bool,
    /// Only runs of this job.
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<String>,
}

#[derive(Serialize)]
struct Line {
    run: String,
    /// `unit` or `command`.
    kind: &'static str,
    unit: Option<String>,
    state: &'static str,
    since: Option<Timestamp>,
    message: Option<String>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", harmless(&self.run))?;
        match &self.unit {
            Some(unit) => write!(f, " unit {}  in doubt", typed(unit))?,
            None => write!(f, "  its command was cut off")?,
        }
        if let Some(since) = self.since {
            write!(f, " since {since:.0}")?;
        }
        match &self.message {
            Some(message) => write!(f, ": {}", harmless(message)),
            None => Ok(()),
        }
    }
}

pub(crate) async fn effects(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let opened = match context.look_around().await {
        Err(CliError::NoStore(_)) if context.store.is_none() => {
            return context.nothing_of(arguments.job.as_deref());
        }
        opened => opened?,
    };
    let refrain = &opened.refrain;
    let mut first = None;
    for JobRecord { name: job, .. } in refrain.job_records(arguments.job.as_deref()).await? {
        let (view, mut after) = (refrain.view(&job).await?, String::new());
        while let Some((last, waiting)) = refrain.waiting_runs(&job, &after).await? {
            after = last;
            for (run, doubts) in waiting {
                let run = view.name_of(&run);
                for DoubtRecord { unit, since, message, .. } in doubts {
                    let kind = if unit.is_some() { "unit" } else { "command" };
                    let line = Line { run: run.clone(), kind, unit, state: "in-doubt", since, message };
                    output.line(&line)?;
                }
                first.get_or_insert(run);
            }
        }
    }
    opened.close().await;
    match first {
        Some(run) => output.say(format_args!("the commands that settle it: refrain show {}", typed(&run))),
        None => output.say("nothing waits for a decision of an operator"),
    }
    Ok(Exit::Done)
}
