//! `refrain cancel`: calls a run off.

use std::fmt;

use clap::Args;
use refrain::core::state::RunOutcome;
use refrain::core::terminal::typed;
use refrain::{Cancelling, Refrain};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Fault};
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
struct Called {
    run: String,
    did: &'static str,
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.did {
            "cancelled" => write!(f, "{}: cancelled before it began", self.run),
            "deduplicated" => write!(f, "{}: cancelled already", self.run),
            _ => write!(f, "{}: its worker has been asked to end it", self.run),
        }
    }
}

pub(crate) async fn cancel(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let opened = context.look().await?;
    let run = &arguments.run;
    let cancelled = cancelled(&opened.refrain, run).await;
    opened.close().await;
    let did = cancelled?;
    context.output.result(&Called { run: run.clone(), did })?;
    let typed = typed(run);
    context.output.say(format_args!("see: refrain show {typed}; after all: refrain retry {typed}"));
    Ok(Exit::Done)
}

/// What was done. One that has ended stays as it is.
async fn cancelled(refrain: &Refrain, run: &str) -> Result<&'static str, Fault> {
    let standing = refrain.show(run).await?.map(|record| record.standing);
    match standing.filter(|standing| !standing.is_open()).and_then(|standing| standing.outcome) {
        Some(RunOutcome::Cancelled) => return Ok("deduplicated"),
        Some(outcome) => {
            return Err(Fault::TooLate(format!(
                "`{run}` is {outcome} already, so there is nothing to cancel\n  how it ended: refrain show {}",
                typed(run)
            )));
        }
        None => {}
    }
    Ok(match refrain.cancel(run).await? {
        Cancelling::Cancelled => "cancelled",
        Cancelling::Asked => "asked",
    })
}
