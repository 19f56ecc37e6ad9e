//! `refrain retry`: another attempt of a run that is not done, or of one unit in it.

use clap::Args;
use refrain::Ask;
use refrain::core::RunName;

use super::run::Wait;
use crate::exit::{Exit, Fault};
use crate::place::Place;
use crate::run_report::{Ran, told};
use crate::signals::{Ended, Signals, Step};

/// Another attempt of a run that failed, is partial, or was skipped or cancelled. Only what is not done is done again.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain retry export@2026-06-09\n  refrain retry sync@2026-06-09T14:00 --unit invoice:INV-7\n  \
    refrain retry sync@2026-06-09T14:00 --unit invoice:INV-7 --done\n\n\
    A run that is done is refused; `refrain run RUN --again` means it."
)]
pub(crate) struct Arguments {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// A unit of it that failed or is parked: it gets all its tries again, and the source is asked for what it says now.
    #[arg(long, value_name = "KEY")]
    pub(crate) unit: Option<String>,
    /// It is in doubt, and it was done: that is recorded, and it is not sent again.
    #[arg(long, requires = "unit")]
    pub(crate) done: bool,
    #[command(flatten)]
    pub(crate) patience: Wait,
}

pub(crate) async fn retry(place: &Place, arguments: &Arguments) -> Result<Exit, Fault> {
    let Arguments { run, unit, done, patience } = arguments;
    let _: RunName = run.parse()?;
    let signals = Signals::listen()?;
    let opened = place.open().await?;
    let refrain = &opened.refrain;
    if let Some(unit) = unit {
        let (count, was, is) = if *done {
            (refrain.confirm_unit(run, unit).await?, "in doubt", "is recorded as done")
        } else {
            (refrain.unpark(run, unit).await?, "failed or parked", "has all its tries again")
        };
        if count == 0 {
            return Err(Fault::Refused(format!(
                "no unit `{unit}` of {run} is {was}\n  what became of it: refrain trace {unit}"
            )));
        }
        place.output.say(format_args!("`{unit}` {is}"));
    }
    let stop = refrain.stop_handle();
    let patience = patience.patience(place.output);
    let work = Box::pin(refrain.run_within(run, Ask::Retry, &patience));
    let Ended { result, is_interrupted } =
        signals.see_through(work, &stop, &[Step::StopNow], place.output).await;
    let Some(report) = result.transpose()? else { return Ok(Exit::Interrupted) };
    told(place, opened, vec![Ran { name: run.clone(), report }], is_interrupted).await
}
