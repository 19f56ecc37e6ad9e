//! `refrain cancel`: cancels a run.

use std::fmt;

use clap::Args;
use refrain::admin::Cancelling;
use refrain::core::terminal::typed;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::person::Deciding;

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain cancel export@2026-06-09\n  refrain cancel welcome#42")]
pub(crate) struct Arguments {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) deciding: Deciding,
}

#[derive(Serialize)]
struct CancelResult {
    run: String,
    did: Cancelling,
}

impl fmt::Display for CancelResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = harmless(&self.run);
        match self.did {
            Cancelling::Cancelled => write!(f, "{run}: cancelled before it began"),
            Cancelling::Deduplicated => write!(f, "{run}: already cancelled"),
            _ => write!(f, "{run}: its worker was asked to stop it"),
        }
    }
}

pub(crate) async fn cancel(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let opened = context.decide().await?;
    let run = &arguments.run;
    let cancelled = opened.refrain.cancel(run).await;
    opened.close().await;
    context.output.result(&CancelResult { run: run.clone(), did: cancelled? })?;
    let typed = typed(run);
    context
        .output
        .say(format_args!("look: refrain show {typed}; to run it after all: refrain retry {typed}"));
    Ok(Exit::Done)
}
