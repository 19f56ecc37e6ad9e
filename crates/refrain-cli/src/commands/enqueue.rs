//! `refrain enqueue`: a run by its key, once.

use std::fmt;

use clap::Args;
use refrain::core::Key;
use refrain::core::terminal::typed;
use serde::Serialize;

use crate::exit::{Exit, Fault};
use crate::output::Four;
use crate::place::{self, Place};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain enqueue welcome --key 42 --payload '{\"user_id\": 42}'\n  refrain enqueue welcome --key 42     \
    the second time it is a dedupe"
)]
pub(crate) struct Arguments {
    /// The job; its file says `queue = true`.
    pub(crate) job: String,
    /// What it is about. A key is done once, ever.
    #[arg(long, value_name = "K")]
    pub(crate) key: String,
    /// What the run is given, as JSON.
    #[arg(long, value_name = "JSON")]
    pub(crate) payload: Option<String>,
}

#[derive(Serialize)]
struct Offered {
    run: String,
    did: &'static str,
    counts: Four,
}

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.did {
            "enqueued" => write!(f, "{}: queued", self.run),
            _ => write!(f, "{}: offered before; nothing was queued", self.run),
        }
    }
}

pub(crate) async fn enqueue(place: &Place, arguments: &Arguments) -> Result<Exit, Fault> {
    let Arguments { job, key, payload } = arguments;
    let project = place.project()?;
    Key::parse(key)?;
    place::job(&project, job)?;
    let opened = place.open_for(project).await?;
    let enqueued = opened.refrain.enqueue(job, key, payload.as_deref()).await?;
    let run = format!("{job}#{key}");
    let kept = opened.refrain.show(&run).await?.and_then(|run| run.payload);
    opened.close().await;
    let did = if enqueued.is_new() { "enqueued" } else { "deduplicated" };
    let counts = Four { deduplicated: u64::from(!enqueued.is_new()), ..Four::default() };
    place.output.result(&Offered { run: run.clone(), did, counts })?;
    if enqueued.is_new() {
        place.output.say(format_args!(
            "`refrain serve` or `refrain tick` does it, or at once: refrain run {}",
            typed(&run)
        ));
    } else {
        if payload.is_some() && *payload != kept {
            place
                .output
                .say("its payload is another one than the first, which counts; a new fact has a new key");
        }
        place.output.say(format_args!("what became of it: refrain show {}", typed(&run)));
    }
    Ok(Exit::Done)
}
