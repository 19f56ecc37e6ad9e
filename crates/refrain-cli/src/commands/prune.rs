//! `refrain prune`: forgets the bodies of old runs.

use std::fmt;
use std::time::Duration;

use clap::Args;
use refrain::core::duration;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Fault};
use crate::person::Deciding;
use crate::progress::Progress;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain prune\n  refrain prune --older-than 30d\n\nA process that serves does this by itself. That \
    a run was, and how it ended, is never forgotten."
)]
pub(crate) struct Arguments {
    /// What ended before that long ago, as in 30d; 90d unless said.
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
        let bodies = if self.rows == 1 { "body" } else { "bodies" };
        write!(f, "forgot {} {bodies} older than {}", self.rows, self.older_than)
    }
}

pub(crate) async fn prune(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let opened = context.look().await?;
    let keep = arguments.older_than.unwrap_or_else(|| opened.refrain.keep());
    let mut progress = Progress::begin(context.output);
    let rows = opened.refrain.prune(keep, |rows| progress.show(format_args!("{rows} bodies"))).await?;
    drop(progress);
    opened.close().await;
    context.output.result(&Pruned { rows, older_than: duration::format(keep) })?;
    context.output.say("keys stay: what was done is still done");
    Ok(Exit::Done)
}
