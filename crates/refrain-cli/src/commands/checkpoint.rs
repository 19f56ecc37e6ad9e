//! `refrain checkpoint`: how far jobs have read their sources, and a person's word on it.

use std::fmt;
use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use refrain::core::duration;
use refrain::{CheckpointRecord, Refrain};
use serde::Serialize;

use crate::exit::{Exit, Fault};
use crate::output::harmless;
use crate::person::Deciding;
use crate::place::Place;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain checkpoint show\n  refrain checkpoint rewind invoice-sync updated_at --by 2d\n  \
    refrain checkpoint set invoice-sync billing 'page-17'\n\nReading again does no harm: units that are applied are deduplicated."
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
    },
    /// Put one somewhere else.
    Set {
        /// The job.
        job: String,
        /// The checkpoint.
        name: String,
        /// Where to: a token of the source, or a time.
        position: String,
        /// In this scope.
        #[arg(long, default_value = "")]
        scope: String,
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
        /// In this scope.
        #[arg(long, default_value = "")]
        scope: String,
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

fn long(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Line {
    job: String,
    scope: String,
    name: String,
    position: String,
    at: Timestamp,
    run: Option<String>,
    attempt: Option<u64>,
}

impl From<CheckpointRecord> for Line {
    fn from(record: CheckpointRecord) -> Line {
        let CheckpointRecord { job, scope, name, position, at, run, attempt } = record;
        Line { job, scope, name, position, at, run, attempt }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { job, scope, name, position, at, .. } = self;
        let scope = if scope.is_empty() { String::new() } else { format!("/{}", harmless(scope)) };
        write!(f, "{job}{scope} {}: {}, moved {at:.0}", harmless(name), harmless(position))?;
        match (&self.run, self.attempt) {
            (Some(run), Some(attempt)) => write!(f, " by attempt {attempt} of {}", harmless(run)),
            _ => write!(f, " by a person"),
        }
    }
}

#[derive(Serialize)]
struct Moved {
    job: String,
    scope: String,
    name: String,
    was: Option<String>,
    position: String,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let was = self.was.as_deref().unwrap_or("nowhere");
        write!(f, "{} {}: was at {}, is at {}", self.job, self.name, harmless(was), harmless(&self.position))
    }
}

pub(crate) async fn checkpoint(place: &Place, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = place.output;
    let opened = place.look_around().await?;
    let refrain = &opened.refrain;
    let moved = match &arguments.verb {
        Verb::Show { job } => {
            if let Some(job) = job {
                // Says which there are.
                refrain.view(job).await?;
            }
            let records = refrain.checkpoints(job.as_deref()).await?;
            let is_empty = records.is_empty();
            for record in records {
                output.line(&Line::from(record))?;
            }
            if is_empty {
                output.say("there is no checkpoint yet; a job makes them when it reads its sources");
            }
            None
        }
        Verb::Set { job, name, position, scope, .. } => {
            let was = seen(refrain, job, scope, name).await?;
            refrain.set_checkpoint(job, scope, name, position, was.as_deref()).await?;
            Some((job, scope, name, was, position.clone()))
        }
        Verb::Rewind { job, name, by, scope, .. } => {
            let was = seen(refrain, job, scope, name).await?;
            let at = was.clone().ok_or_else(|| missing(job, name))?;
            let position = refrain.rewind_checkpoint(job, scope, name, *by, &at).await?;
            Some((job, scope, name, was, position.to_string()))
        }
    };
    opened.close().await;
    if let Some((job, scope, name, was, position)) = moved {
        let (job, scope, name) = (job.clone(), scope.clone(), name.clone());
        output.say("the next run reads from there; what it has applied is deduplicated");
        output.result(&Moved { job, scope, name, was, position })?;
    }
    Ok(Exit::Done)
}

fn missing(job: &str, name: &str) -> Fault {
    Fault::Refused(format!(
        "there is no checkpoint `{name}` of {job}\n  those that are there: refrain checkpoint show"
    ))
}

/// Where it stands now; what a person says is about that.
async fn seen(refrain: &Refrain, job: &str, scope: &str, name: &str) -> Result<Option<String>, Fault> {
    let records = refrain.checkpoints(Some(job)).await?;
    let found = records.into_iter().find(|record| record.scope == scope && record.name == name);
    Ok(found.map(|record| record.position))
}
