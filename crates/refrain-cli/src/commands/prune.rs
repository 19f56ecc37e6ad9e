//! `refrain prune`: deletes payloads, messages and output of old runs.

use std::fmt;
use std::time::Duration;

use clap::Args;
use refrain::core::duration;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::person::Deciding;
use crate::progress::ProgressLine;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain prune\n  refrain prune --older-than 30d\n\n`refrain serve` does this by itself. The record \
    that a run exists, and how it ended, is never deleted."
)]
pub(crate) struct Arguments {
    /// Runs that ended longer ago than this, as in 30d; the default is 90d.
    #[arg(long, value_name = "DURATION", value_parser = long)]
    pub(crate) older_than: Option<Duration>,
    #[command(flatten)]
    pub(crate) deciding: Deciding,
}

fn long(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Pruned {
    rows: u64,
    older_than: String,
}

impl fmt::Display for Pruned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = if self.rows == 1 { "row" } else { "rows" };
        write!(f, "pruned {} {rows} older than {}", self.rows, self.older_than)
    }
}

pub(crate) async fn prune(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let opened = context.decide().await?;
    let keep = arguments.older_than.unwrap_or_else(|| opened.refrain.keep());
    let mut progress = ProgressLine::begin(context.output);
    let rows = opened.refrain.prune(keep, |rows| progress.show(format_args!("{rows} rows"))).await?;
    drop(progress);
    opened.close().await;
    context.output.result(&Pruned { rows, older_than: duration::format(keep) })?;
    context.output.say("keys are kept: what is done stays done");
    Ok(Exit::Done)
}
