//! `refrain tick`: one pass of the scheduler, and all that is due.

use clap::Args;
use jiff::Timestamp;
use refrain::Counts;

use crate::arguments::timestamp;
use crate::context::{Context, Opened};
use crate::exit::{Exit, Fault};
use crate::report::TickReport;
use crate::signals::{Ended, Signals, Step};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain tick\n  * * * * * refrain -C /srv/shop tick            as a line of a crontab\n  \
    refrain --store sqlite:trial.db tick --now 2026-06-09T14:00:00Z"
)]
pub(crate) struct Arguments {
    /// The time that schedules read, as in 2026-06-09T14:00:00Z.
    ///
    /// It makes a new store simulated, for good. A store that has real runs refuses it, and `serve` refuses a simulated store.
    #[arg(long, value_name = "T", value_parser = timestamp)]
    pub(crate) now: Option<Timestamp>,
}

pub(crate) async fn tick(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
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
    let Ended { result, is_interrupted } =
        signals.see_through(Box::pin(refrain.tick()), &stop, &[Step::StopNow], output).await;
    let Some(counts) = result.transpose()? else { return Ok(Exit::Interrupted) };
    let left_out = project.left_out_files();
    let is_whole = left_out.is_empty();
    Opened { refrain, project }.close().await;
    output.result(&TickReport::of(arguments.now, counts, left_out))?;
    Ok(match counts {
        _ if is_interrupted => {
            output.say("what was under way was given back; the same command goes on");
            Exit::Interrupted
        }
        Counts { waiting: 1.., timed_out, .. } => {
            output.say("a person must decide before all of it is done; which: refrain status; what to type: refrain show RUN");
            if timed_out > 0 { Exit::TimedOut } else { Exit::Waits }
        }
        Counts { failed: 1.., timed_out, .. } => {
            output.say("which, and why: refrain runs --state failed; one again: refrain retry RUN");
            if timed_out > 0 { Exit::TimedOut } else { Exit::Failed }
        }
        _ if !is_whole => {
            output.say("all other jobs were looked after; what is wrong: refrain check");
            Exit::Failed
        }
        _ => {
            output.say("next: the same again when more is due, or `refrain serve`, which waits for it");
            Exit::Done
        }
    })
}
