//! `refrain pause` and `refrain resume`.

use std::fmt;

use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::person::Deciding;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain pause export\n  refrain resume export\n\nWindows that are due while a job is paused are \
    skipped, with a row that says so."
)]
pub(crate) struct Arguments {
    /// The job.
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) deciding: Deciding,
}

#[derive(Serialize)]
struct Set {
    job: String,
    is_paused: bool,
    is_new: bool,
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_paused { "paused" } else { "resumed" };
        let already = if self.is_new { "" } else { "already " };
        write!(f, "{}: {already}{word}", self.job)
    }
}

pub(crate) async fn pause(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let job = &arguments.job;
    let opened = context.open().await?;
    let is_new = opened.refrain.pause(job).await?;
    opened.close().await;
    context.output.result(&Set { job: job.clone(), is_paused: true, is_new })?;
    context.output.say(format_args!("running attempts end by themselves; to resume: refrain resume {job}"));
    Ok(Exit::Done)
}

pub(crate) async fn resume(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let job = &arguments.job;
    let opened = context.open().await?;
    let is_new = opened.refrain.resume(job).await?;
    opened.close().await;
    context.output.result(&Set { job: job.clone(), is_paused: false, is_new })?;
    context.output.say(format_args!(
        "windows skipped meanwhile: refrain status {job}; to run one: refrain run {job}@WINDOW"
    ));
    Ok(Exit::Done)
}
