//! `refrain logs`: the output of a run's command, on whichever machine it ran.

use std::fmt;
use std::time::Duration;

use clap::Args;
use refrain::admin::{OutputPlace, OutputRecord, OutputStream};
use refrain::core::terminal::typed;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};

/// How often to poll for more.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain logs export@2026-06-09\n  refrain logs export@2026-06-09 -f\n  \
    refrain logs export@2026-06-09 --attempt 2\n\nControl characters are shown as �. The first MiB and the last 64 KiB of an \
    attempt are kept."
)]
pub(crate) struct Arguments {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Follow the output until the run has ended.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only the output of this attempt.
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u64>,
}

/// A piece of output, as it is printed.
#[derive(Serialize)]
#[serde(transparent)]
struct OutputLines<'o>(&'o OutputRecord);

impl fmt::Display for OutputLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.shown();
        let text = text.strip_suffix('\n').unwrap_or(&text);
        if self.0.stream == OutputStream::Remark { write!(f, "[{text}]") } else { f.write_str(text) }
    }
}

pub(crate) async fn logs(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let opened = context.look().await?;
    let refrain = &opened.refrain;
    let name = &arguments.run;
    let missing = || refrain::Error::NoRun(name.clone());
    let mut after = OutputPlace::default();
    let mut attempt = 0;
    let mut is_silent = true;
    'looks: loop {
        // Read first: output that is printed before the end is seen by the read that follows.
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
                if !output.line(&OutputLines(&record))? {
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
            "nothing was printed, or the output was pruned; more about the run: refrain show {}",
            typed(name)
        ));
    }
    Ok(Exit::Done)
}
