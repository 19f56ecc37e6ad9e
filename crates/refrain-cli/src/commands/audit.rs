//! `refrain audit`: what operators have decided, the newest first.

use std::fmt;

use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::decision_line::DecisionLine;
use crate::exit::{CliError, Exit};
use crate::output::harmless;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain audit\n  refrain audit --limit 1000 --json\n\nDecisions about one run: refrain show RUN; about \
    one unit: refrain trace KEY."
)]
pub(crate) struct Arguments {
    /// How many decisions.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
}

#[derive(Serialize)]
#[serde(transparent)]
struct AuditLine<'d>(DecisionLine<'d>);

impl fmt::Display for AuditLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", harmless(&self.0.0.subject), self.0)
    }
}

pub(crate) async fn audit(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let Some(opened) = context.look_if_any().await? else { return Ok(Exit::Done) };
    let decisions = opened.refrain.decisions(arguments.limit).await?;
    opened.close().await;
    let is_empty = decisions.is_empty();
    for decision in &decisions {
        if !context.output.line(&AuditLine(DecisionLine(decision)))? {
            break;
        }
    }
    if is_empty {
        context.output.say("no operator has decided anything yet");
    }
    Ok(Exit::Done)
}
