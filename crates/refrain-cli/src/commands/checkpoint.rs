//! `refrain checkpoint`: how far jobs have read their sources, and how to move that.

use std::fmt;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use refrain::Refrain;
use refrain::admin::{CheckpointMove, CheckpointRecord};
use refrain::core::duration;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::{Output, harmless};
use crate::person::Deciding;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain checkpoint show\n  refrain checkpoint rewind invoice-sync updated_at --by 2d\n  \
    refrain checkpoint set invoice-sync billing 'page-17'\n  \
    refrain checkpoint set nightly-import billing 'page-3' --window 2026-06-09\n\nReading again is safe: applied units are deduplicated."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Show the positions.
    Show {
        /// Only checkpoints of this job.
        job: Option<String>,
        /// Where each window has its own: all windows, not only the latest.
        #[arg(long)]
        all: bool,
    },
    /// Move a checkpoint to a position.
    Set {
        /// The job.
        job: String,
        /// The checkpoint.
        name: String,
        /// The position: a token of the source, or a timestamp.
        position: String,
        #[command(flatten)]
        part: CheckpointPart,
        #[command(flatten)]
        deciding: Deciding,
    },
    /// Move a watermark back by a duration.
    Rewind {
        /// The job.
        job: String,
        /// The checkpoint.
        name: String,
        /// How far back, as in 2d.
        #[arg(long, value_name = "DURATION", value_parser = long)]
        by: Duration,
        #[command(flatten)]
        part: CheckpointPart,
        #[command(flatten)]
        deciding: Deciding,
    },
}

impl Verb {
    /// The options that name the operator, if it moves something.
    pub(crate) fn deciding(&self) -> Option<&Deciding> {
        match self {
            Verb::Show { .. } => None,
            Verb::Set { deciding, .. } | Verb::Rewind { deciding, .. } => Some(deciding),
        }
    }
}

/// Which of the checkpoints of one name.
#[derive(Args)]
pub(crate) struct CheckpointPart {
    /// The scope.
    #[arg(long, default_value = "")]
    scope: String,
    /// The window, by its start, where each window has its own: a cursor with `per = "window"`.
    #[arg(long, value_name = "WINDOW")]
    window: Option<String>,
}

fn long(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

/// A checkpoint on one line, or as an object.
#[derive(Serialize)]
#[serde(transparent)]
struct CheckpointLine<'c>(&'c CheckpointRecord);

impl fmt::Display for CheckpointLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckpointRecord { job, window, scope, name, position, at, run, attempt, .. } = self.0;
        let whose = whose(job, *window, scope);
        write!(f, "{whose} {}: {}, moved {at:.0}", harmless(name), harmless(position))?;
        match (run, attempt) {
            (Some(run), Some(attempt)) => write!(f, " by attempt {attempt} of {}", harmless(run)),
            _ => write!(f, " by an operator"),
        }
    }
}

/// A job with the window and the scope of its checkpoint, written like a run.
fn whose(job: &str, window: Option<Timestamp>, scope: &str) -> String {
    let window = window.map(|window| format!("@{window}")).unwrap_or_default();
    let scope = if scope.is_empty() { String::new() } else { format!("/{}", harmless(scope)) };
    format!("{job}{window}{scope}")
}

/// A checkpoint that was moved, on one line or as an object.
#[derive(Serialize)]
#[serde(transparent)]
struct MoveLine<'c>(&'c CheckpointMove);

impl fmt::Display for MoveLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckpointMove { job, scope, window, name, was, position, .. } = self.0;
        let was = was.as_deref().unwrap_or("the beginning");
        let whose = whose(job, *window, scope);
        write!(f, "{whose} {name}: moved from {} to {}", harmless(was), harmless(position))
    }
}

pub(crate) async fn checkpoint(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let opened = match &arguments.verb {
        Verb::Show { .. } => context.look_around().await?,
        Verb::Set { .. } | Verb::Rewind { .. } => context.decide_around().await?,
    };
    let refrain = &opened.refrain;
    let moved = match &arguments.verb {
        Verb::Show { job, all } => {
            show(refrain, output, job.as_deref(), *all).await?;
            None
        }
        Verb::Set { job, name, position, part, .. } => {
            let of = refrain.checkpoint_of(job, name, &part.scope, part.window.as_deref()).await?;
            let seen = refrain.checkpoint_position(of).await?;
            Some(refrain.set_checkpoint(of, position, seen.as_deref()).await?)
        }
        Verb::Rewind { job, name, by, part, .. } => {
            let of = refrain.checkpoint_of(job, name, &part.scope, part.window.as_deref()).await?;
            let seen = refrain.checkpoint_position(of).await?;
            Some(refrain.rewind_checkpoint(of, *by, seen.as_deref()).await?)
        }
    };
    opened.close().await;
    if let Some(moved) = moved {
        output.say("the next run reads from there; units that are already applied are deduplicated");
        output.result(&MoveLine(&moved))?;
    }
    Ok(Exit::Done)
}

async fn show(refrain: &Refrain, output: Output, job: Option<&str>, all: bool) -> Result<(), CliError> {
    if let Some(job) = job {
        // An unknown job is an error that lists the jobs.
        refrain.view(job).await?;
    }
    let records = if all { refrain.checkpoints(job).await? } else { refrain.latest_checkpoints(job).await? };
    let has_windows = !all && records.iter().any(|record| record.window.is_some());
    for record in &records {
        output.line(&CheckpointLine(record))?;
    }
    if records.is_empty() {
        output.say("no checkpoint yet; a job creates them when it reads its sources");
    }
    if has_windows {
        output.say("only the latest window is shown; all windows: refrain checkpoint show --all");
    }
    Ok(())
}
