//! `refrain checkpoint`: how far jobs have read their sources, and how to move that.

use std::fmt;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use refrain::Refrain;
use refrain::admin::{CheckpointOf, CheckpointRecord};
use refrain::core::project::Action;
use refrain::core::{Per, duration};
use serde::Serialize;

use crate::arguments::run_name;
use crate::context::{Context, OpenProject};
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

#[derive(Serialize)]
struct Moved {
    job: String,
    scope: String,
    window: Option<Timestamp>,
    name: String,
    was: Option<String>,
    position: String,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let was = self.was.as_deref().unwrap_or("the beginning");
        let whose = whose(&self.job, self.window, &self.scope);
        write!(f, "{whose} {}: moved from {} to {}", self.name, harmless(was), harmless(&self.position))
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
            let of = meant(&opened, job, name, part).await?;
            let was = seen(refrain, of).await?;
            refrain.set_checkpoint(of, position, was.as_deref()).await?;
            Some((of, was, position.clone()))
        }
        Verb::Rewind { job, name, by, part, .. } => {
            let of = meant(&opened, job, name, part).await?;
            let was = seen(refrain, of).await?;
            let at = was.clone().ok_or_else(|| missing(job, name))?;
            let position = refrain.rewind_checkpoint(of, *by, &at).await?;
            Some((of, was, position.to_string()))
        }
    };
    opened.close().await;
    if let Some((CheckpointOf { job, scope, window, name }, was, position)) = moved {
        let (job, scope, name) = (job.to_owned(), scope.to_owned(), name.to_owned());
        output.say("the next run reads from there; units that are already applied are deduplicated");
        output.result(&Moved { job, scope, window, name, was, position })?;
    }
    Ok(Exit::Done)
}

async fn show(refrain: &Refrain, output: Output, job: Option<&str>, all: bool) -> Result<(), CliError> {
    if let Some(job) = job {
        // An unknown job is an error that lists the jobs.
        refrain.view(job).await?;
    }
    let mut records = refrain.checkpoints(job).await?;
    let is_empty = records.is_empty();
    if !all {
        // The latest window of each comes first.
        records.dedup_by(|next, one| {
            one.window.is_some() && (&one.job, &one.scope, &one.name) == (&next.job, &next.scope, &next.name)
        });
    }
    let has_windows = !all && records.iter().any(|record| record.window.is_some());
    for record in &records {
        output.line(&CheckpointLine(record))?;
    }
    if is_empty {
        output.say("no checkpoint yet; a job creates them when it reads its sources");
    }
    if has_windows {
        output.say("only the latest window is shown; all windows: refrain checkpoint show --all");
    }
    Ok(())
}

/// The checkpoint that the arguments name. Before there is one, the cursor in the job's file says whether each window
/// has its own.
async fn meant<'a>(
    opened: &OpenProject,
    job: &'a str,
    name: &'a str,
    part: &'a CheckpointPart,
) -> Result<CheckpointOf<'a>, CliError> {
    let file = opened.project.jobs().iter().find(|file| file.name.as_str() == job);
    let cursor = match file.map(|file| &file.action) {
        Some(Action::Units(feed)) => feed.cursor.as_ref().filter(|cursor| cursor.name == name),
        _ => None,
    };
    let window = match (&part.window, cursor.map(|cursor| cursor.per)) {
        (None, Some(Per::Window)) => {
            return Err(CliError::Refused(format!(
                "each window of {job} has a checkpoint `{name}` of its own\n  say which is meant: --window W"
            )));
        }
        (Some(_), Some(Per::Ever)) => {
            return Err(CliError::Refused(format!(
                "the checkpoint `{name}` of {job} is one for all windows\n  leave --window out"
            )));
        }
        (None, _) => None,
        (Some(window), _) => {
            let run = run_name(
                job,
                Some(window),
                Some(part.scope.as_str()).filter(|scope| !scope.is_empty()),
                None,
            )?;
            opened.refrain.window_start(&run).await?
        }
    };
    Ok(CheckpointOf { job, scope: &part.scope, window, name })
}

fn missing(job: &str, name: &str) -> CliError {
    CliError::Refused(format!(
        "there is no checkpoint `{name}` of {job}\n  all checkpoints: refrain checkpoint show"
    ))
}

/// Its position now, from which the operator moves it.
async fn seen(refrain: &Refrain, of: CheckpointOf<'_>) -> Result<Option<String>, CliError> {
    let records = refrain.checkpoints(Some(of.job)).await?;
    let is_meant = |record: &CheckpointRecord| {
        (record.scope.as_str(), record.window, record.name.as_str()) == (of.scope, of.window, of.name)
    };
    Ok(records.into_iter().find(is_meant).map(|record| record.position))
}
