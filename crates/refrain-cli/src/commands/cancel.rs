//! `refrain cancel`: calls a run off.

use std::fmt;

use clap::Args;
use refrain::Cancelling;
use serde::Serialize;

use crate::exit::{Exit, Fault};
use crate::place::Place;

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain cancel export@2026-06-09\n  refrain cancel welcome#42")]
pub(crate) struct Arguments {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
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
            _ => write!(f, "{}: its worker has been asked to end it", self.run),
        }
    }
}

pub(crate) async fn cancel(place: &Place, arguments: &Arguments) -> Result<Exit, Fault> {
    let opened = place.look().await?;
    let cancelling = opened.refrain.cancel(&arguments.run).await?;
    opened.close().await;
    let did = match cancelling {
        Cancelling::Cancelled => "cancelled",
        Cancelling::Asked => "asked",
    };
    let run = &arguments.run;
    place.output.result(&Called { run: run.clone(), did })?;
    place.output.say(format_args!("see: refrain show {run}; after all: refrain retry {run}"));
    Ok(Exit::Done)
}
