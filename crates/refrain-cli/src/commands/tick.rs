//! `refrain tick`: one pass of the scheduler, and all runs that are due.

use clap::Args;
use jiff::Timestamp;
use refrain::Counts;

use crate::arguments::timestamp;
use crate::context::{Context, OpenProject};
use crate::exit::{CliError, Exit};
use crate::report::TickReport;
use crate::signals::{Finished, Signals, StopStep};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain tick\n  * * * * * refrain -C /srv/shop tick            a line of a crontab\n  \
    refrain --store sqlite:trial.db tick --now 2026-06-09T14:00:00Z"
)]
pub(crate) struct Arguments {
    /// The time for schedules, as in 2026-06-09T14:00:00Z.
    ///
    /// It makes a new store simulated, for good. A store that has real runs refuses it, and `serve` refuses a simulated store.
    #[arg(long, value_name = "T", value_parser = timestamp)]
    pub(crate) now: Option<Timestamp>,
}

pub(crate) async fn tick(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let signals = Signals::listen()?;
    let project = context.project()?;
    let opening = context.prepared(&project).await?;
    let refrain = match arguments.now {
        Some(now) => opening.simulated(now).open().await?,
        None => opening.open().await?,
    };
    context.say_if_root();
    let stop = refrain.stop_handle();
    let Finished { result, is_interrupted } =
        signals.see_through(Box::pin(refrain.tick()), &stop, &[StopStep::StopNow], output).await;
    let Some(counts) = result.transpose()? else { return Ok(Exit::Interrupted) };
    let left_out = project.left_out_files();
    let is_whole = left_out.is_empty();
    OpenProject { refrain, project }.close().await;
    output.result(&TickReport::of(arguments.now, counts, left_out))?;
    Ok(match counts {
        _ if is_interrupted => {
            output.say("running attempts were returned to the queue; the same command resumes them");
            Exit::Interrupted
        }
        Counts { waiting: 1.., timed_out, .. } => {
            output.say("an operator must decide about some runs: refrain status; the commands for one: refrain show RUN");
            if timed_out > 0 { Exit::TimedOut } else { Exit::Waits }
        }
        Counts { failed: 1.., timed_out, .. } => {
            output
                .say("which runs, and why: refrain runs --state failed; to try one again: refrain retry RUN");
            if timed_out > 0 { Exit::TimedOut } else { Exit::Failed }
        }
        _ if !is_whole => {
            output.say("all other jobs were run; the problems: refrain check");
            Exit::Failed
        }
        _ => {
            output.say("next: the same command when more is due, or `refrain serve`");
            Exit::Done
        }
    })
}
