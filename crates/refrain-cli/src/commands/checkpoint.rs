//! `refrain checkpoint`: how far jobs have read their sources, and a person's word on it.

use std::fmt;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use refrain::core::project::Action;
use refrain::core::{Per, duration};
use refrain::{CheckpointOf, CheckpointRecord, Refrain};
use serde::Serialize;

use crate::arguments::run_name;
use crate::context::{Context, Opened};
use crate::exit::{Exit, Fault};
use crate::output::{Output, harmless};
use crate::person::Deciding;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain checkpoint show\n  refrain checkpoint rewind invoice-sync updated_at --by 2d\n  \
    refrain checkpoint set invoice-sync billing 'page-17'\n  \
    refrain checkpoint set nightly-import billing 'page-3' --window 2026-06-09\n\nReading again does no harm: units that are applied are deduplicated."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Where checkpoints stand.
    Show {
        /// Only of this job.
        job: Option<String>,
        /// Of checkpoints that belong to windows also those of earlier windows, and not the latest alone.
        #[arg(long)]
        all: bool,
    },
    /// Put one somewhere else.
    Set {
        /// The job.
        job: String,
        /// The checkpoint.
        name: String,
        /// Where to: a token of the source, or a time.
        position: String,
        #[command(flatten)]
        part: Part,
        #[command(flatten)]
        deciding: Deciding,
    },
    /// Put a watermark back by a length of time.
    Rewind {
        /// The job.
        job: String,
        /// The checkpoint.
        name: String,
        /// How far, as in 2d.
        #[arg(long, value_name = "DURATION", value_parser = long)]
        by: Duration,
        #[command(flatten)]
        part: Part,
        #[command(flatten)]
        deciding: Deciding,
    },
}

impl Verb {
    /// What was said of the person, if it moves something.
    pub(crate) fn deciding(&self) -> Option<&Deciding> {
        match self {
            Verb::Show { .. } => None,
            Verb::Set { deciding, .. } | Verb::Rewind { deciding, .. } => Some(deciding),
        }
    }
}

/// Which of the checkpoints of one name is meant.
#[derive(Args)]
pub(crate) struct Part {
    /// In this scope.
    #[arg(long, default_value = "")]
    scope: String,
    /// Of this window, by its start, if each window has its own: `per = "window"` of a cursor.
    #[arg(long, value_name = "WINDOW")]
    window: Option<String>,
}

fn long(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Line {
    job: String,
    scope: String,
    window: Option<Timestamp>,
    name: String,
    position: String,
    at: Timestamp,
    run: Option<String>,
    attempt: Option<u64>,
}

impl From<CheckpointRecord> for Line {
    fn from(record: CheckpointRecord) -> Line {
        let CheckpointRecord { job, scope, window, name, position, at, run, attempt } = record;
        Line { job, scope, window, name, position, at, run, attempt }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { name, position, at, .. } = self;
        let whose = whose(&self.job, self.window, &self.scope);
        write!(f, "{whose} {}: {}, moved {at:.0}", harmless(name), harmless(position))?;
        match (&self.run, self.attempt) {
            (Some(run), Some(attempt)) => write!(f, " by attempt {attempt} of {}", harmless(run)),
            _ => write!(f, " by a person"),
        }
    }
}

/// A job with the window and the scope of its checkpoint, as runs are written.
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
        let was = self.was.as_deref().unwrap_or("nowhere");
        let whose = whose(&self.job, self.window, &self.scope);
        write!(f, "{whose} {}: was at {}, is at {}", self.name, harmless(was), harmless(&self.position))
    }
}

pub(crate) async fn checkpoint(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = context.output;
    let opened = context.look_around().await?;
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
        output.say("the next run reads from there; what it has applied is deduplicated");
        output.result(&Moved { job, scope, window, name, was, position })?;
    }
    Ok(Exit::Done)
}

async fn show(refrain: &Refrain, output: Output, job: Option<&str>, all: bool) -> Result<(), Fault> {
    if let Some(job) = job {
        // Says which there are.
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
    for record in records {
        output.line(&Line::from(record))?;
    }
    if is_empty {
        output.say("there is no checkpoint yet; a job makes them when it reads its sources");
    }
    if has_windows {
        output.say("of windows, the latest is shown; of all of them: refrain checkpoint show --all");
    }
    Ok(())
}

/// Which checkpoint is meant. What the file says of its cursor is heeded before there is any.
async fn meant<'a>(
    opened: &Opened,
    job: &'a str,
    name: &'a str,
    part: &'a Part,
) -> Result<CheckpointOf<'a>, Fault> {
    let file = opened.project.jobs().iter().find(|file| file.name.as_str() == job);
    let cursor = match file.map(|file| &file.action) {
        Some(Action::Units(feed)) => feed.cursor.as_ref().filter(|cursor| cursor.name == name),
        _ => None,
    };
    let window = match (&part.window, cursor.map(|cursor| cursor.per)) {
        (None, Some(Per::Window)) => {
            return Err(Fault::Refused(format!(
                "each window of {job} has a checkpoint `{name}` of its own\n  say which is meant: --window W"
            )));
        }
        (Some(_), Some(Per::Ever)) => {
            return Err(Fault::Refused(format!(
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

fn missing(job: &str, name: &str) -> Fault {
    Fault::Refused(format!(
        "there is no checkpoint `{name}` of {job}\n  those that are there: refrain checkpoint show"
    ))
}

/// Where it stands now; what a person says is about that.
async fn seen(refrain: &Refrain, of: CheckpointOf<'_>) -> Result<Option<String>, Fault> {
    let records = refrain.checkpoints(Some(of.job)).await?;
    let is_meant = |record: &CheckpointRecord| {
        (record.scope.as_str(), record.window, record.name.as_str()) == (of.scope, of.window, of.name)
    };
    Ok(records.into_iter().find(is_meant).map(|record| record.position))
}
