//! `refrain enqueue`: a run by its key, once.

use std::fmt;

use clap::Args;
use refrain::admin::RunRecord;
use refrain::core::terminal::typed;
use refrain::core::{Fingerprint, Key};
use refrain::ledger::UnitCounts;
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

#[derive(Serialize)]
struct Offered {
    run: String,
    did: &'static str,
    /// Whether the payload differs from the first one of this key, which is kept.
    payload_differs: bool,
    counts: UnitCounts,
}

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.did {
            "enqueued" => write!(f, "{}: queued", self.run),
            _ => write!(f, "{}: already enqueued", self.run),
        }
    }
}

pub(crate) async fn enqueue(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let Arguments { job, key, payload } = arguments;
    let project = context.project()?;
    Key::parse(key)?;
    context::job(&project, job)?;
    let opened = context.open_for(project).await?;
    let enqueued = opened.refrain.enqueue(job, key, payload.as_deref()).await?;
    let run = format!("{job}#{key}");
    let kept = opened.refrain.show(&run).await?.filter(|run| !run.is_forgotten);
    opened.close().await;
    let did = if enqueued.is_new() { "enqueued" } else { "deduplicated" };
    let counts = UnitCounts { deduplicated: u64::from(!enqueued.is_new()), ..UnitCounts::default() };
    let differs = |kept: &RunRecord| !is_same(payload.as_deref(), kept.payload.as_deref());
    let payload_differs = !enqueued.is_new() && payload.is_some() && kept.as_ref().is_some_and(differs);
    context.output.result(&Offered { run: run.clone(), did, payload_differs, counts })?;
    if enqueued.is_new() {
        context.output.say(format_args!(
            "`refrain serve` or `refrain tick` runs it; to run it now: refrain run {}",
            typed(&run)
        ));
    } else {
        if payload_differs {
            context
                .output
                .say("payload differs from the first one, which is kept; use a new key for new work");
        }
        context.output.say(format_args!("its state: refrain show {}", typed(&run)));
    }
    Ok(Exit::Done)
}

/// Whether two payloads are the same JSON, however it is written.
fn is_same(one: Option<&str>, other: Option<&str>) -> bool {
    let content = |text: Option<&str>| text.and_then(|text| Fingerprint::of_json(text).ok());
    one == other || content(one).is_some_and(|one| content(other) == Some(one))
}
