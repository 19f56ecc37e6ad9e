//! `refrain enqueue`: a run by its key, once.

use std::fmt;

use clap::Args;
use refrain::admin::EnqueueReport;
use refrain::core::Key;
use refrain::core::terminal::typed;
use serde::Serialize;

use crate::context::{self, Context};
use crate::exit::{CliError, Exit};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain enqueue welcome --key 42 --payload '{\"user_id\": 42}'\n  refrain enqueue welcome --key 42     \
    a second time it is deduplicated"
)]
pub(crate) struct Arguments {
    /// The job; its file has `queue = true`.
    pub(crate) job: String,
    /// The key. Each key of a job is done once, ever.
    #[arg(long, value_name = "K")]
    pub(crate) key: String,
    /// The payload of the run, as JSON.
    #[arg(long, value_name = "JSON")]
    pub(crate) payload: Option<String>,
}

/// What became of the key, on one line or as an object.
#[derive(Serialize)]
#[serde(transparent)]
struct ReportLine<'r>(&'r EnqueueReport);

impl fmt::Display for ReportLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = if self.0.did.is_new() { "queued" } else { "already enqueued" };
        write!(f, "{}: {said}", self.0.run)
    }
}

pub(crate) async fn enqueue(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let Arguments { job, key, payload } = arguments;
    let project = context.project()?;
    Key::parse(key)?;
    context::job(&project, job)?;
    let opened = context.open_for(project).await?;
    let report = opened.refrain.enqueue_json(job, key, payload.as_deref()).await?;
    opened.close().await;
    let output = context.output;
    output.result(&ReportLine(&report))?;
    let run = typed(&report.run);
    if report.did.is_new() {
        output
            .say(format_args!("`refrain serve` or `refrain tick` runs it; to run it now: refrain run {run}"));
        return Ok(Exit::Done);
    }
    if report.payload_differs {
        output.say("payload differs from the first one, which is kept; use a new key for new work");
    }
    output.say(format_args!("its state: refrain show {run}"));
    Ok(Exit::Done)
}
