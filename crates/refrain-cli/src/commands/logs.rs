//! `refrain logs`: what the command of a run has printed, on whatever machine it ran.

use std::fmt;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use refrain::core::terminal::typed;
use refrain::{OutputPlace, OutputRecord};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Fault};

/// How often to look for more.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain logs export@2026-06-09\n  refrain logs export@2026-06-09 -f\n  \
    refrain logs export@2026-06-09 --attempt 2\n\nControl characters are shown as �; the first MiB and the last 64 KiB of an \
    attempt are kept."
)]
pub(crate) struct Arguments {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Go on until the run has ended.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only of this attempt.
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u64>,
}

#[derive(Serialize)]
struct Piece {
    attempt: u64,
    stream: &'static str,
    at: Timestamp,
    text: String,
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text.strip_suffix('\n').unwrap_or(&self.text);
        if self.stream == "remark" { write!(f, "[{text}]") } else { f.write_str(text) }
    }
}

impl From<OutputRecord> for Piece {
    fn from(record: OutputRecord) -> Piece {
        let (stream, text) = (record.stream.name(), record.shown());
        Piece { attempt: record.place.attempt, stream, at: record.at, text }
    }
}

pub(crate) async fn logs(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = context.output;
    let opened = context.look().await?;
    let refrain = &opened.refrain;
    let name = &arguments.run;
    let missing =
        || Fault::Refused(format!("there is no run `{name}`\n  why not: refrain why {}", typed(name)));
    let mut after = OutputPlace::default();
    let mut attempt = 0;
    let mut is_silent = true;
    'looks: loop {
        // Before the look: what is printed between the last of it and the end is seen by the look after.
        let run = refrain.show(name).await?.ok_or_else(missing)?;
        loop {
            let page = refrain.output(&run, after).await?;
            let Some(last) = page.last() else { break };
            after = last.place;
            for record in page {
                if arguments.attempt.is_some_and(|wanted| wanted != record.place.attempt) {
                    continue;
                }
                if record.place.attempt > 1 && record.place.attempt != attempt && arguments.attempt.is_none()
                {
                    output.say(format_args!("attempt {}:", record.place.attempt));
                }
                attempt = record.place.attempt;
                is_silent = false;
                if !output.line(&Piece::from(record))? {
                    break 'looks;
                }
            }
        }
        if !arguments.follow || !run.standing.is_open() {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    opened.close().await;
    if is_silent {
        output.say(format_args!(
            "nothing was printed, or it is not kept any more; more of the run: refrain show {}",
            typed(name)
        ));
    }
    Ok(Exit::Done)
}
