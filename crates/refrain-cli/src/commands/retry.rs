//! `refrain retry`: another attempt of a run that is not done, or of its units; and decisions on what is in doubt.

use clap::Args;
use refrain::Ask;
use refrain::admin::Settlement;
use refrain::core::RunName;

use crate::arguments::Wait;
use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::person::Deciding;
use crate::run_report::print_report;
use crate::signals::{Finished, Signals, StopStep};

/// Try a run again that failed, is partial, or was skipped or cancelled. Only the work that is not done is repeated.
///
/// It also records the decision about a doubt: a unit whose call had no answer, or the command of the run if that was cut off
/// and is held.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain retry export@2026-06-09\n  refrain retry export@2026-06-09 --done           its command was cut off after doing its work\n  \
    refrain retry sync@2026-06-09T14:00 --unit invoice:INV-7\n  \
    refrain retry sync@2026-06-09T14:00 --unit invoice:INV-7 --done\n  \
    refrain retry sync@2026-06-09T14:00 --in-doubt --done --why 'the bank has all of them'\n\n\
    A run that is done is refused; to repeat it: `refrain run RUN --again`."
)]
pub(crate) struct Arguments {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// A failed or parked unit of it: it gets all its tries again, with the data that the source has now. May be given
    /// several times; one attempt follows.
    #[arg(long, value_name = "KEY")]
    pub(crate) unit: Vec<String>,
    /// All its units that are in doubt.
    #[arg(long, conflicts_with = "unit")]
    pub(crate) in_doubt: bool,
    /// Record that the unit was done, so that it is not done again; without a unit, the command of the run.
    #[arg(long)]
    pub(crate) done: bool,
    #[command(flatten)]
    pub(crate) patience: Wait,
    #[command(flatten)]
    pub(crate) deciding: Deciding,
}

pub(crate) async fn retry(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let Arguments { run, unit, in_doubt, done, patience, .. } = arguments;
    let _: RunName = run.parse()?;
    let signals = Signals::listen()?;
    let opened = context.open().await?;
    let refrain = &opened.refrain;
    if *done && unit.is_empty() && !in_doubt {
        let report = refrain.settle_held(run).await?;
        return print_report(context, opened, &report, false).await;
    }
    let settlement = if *done { Settlement::Done } else { Settlement::Again };
    let units = match unit.as_slice() {
        [] if !in_doubt => Vec::new(),
        [] => refrain.settle_units_in_doubt(run, settlement).await?,
        units => {
            let keys: Vec<&str> = units.iter().map(String::as_str).collect();
            refrain.settle_units(run, &keys, settlement).await?;
            units.to_owned()
        }
    };
    let is = if *done { "is recorded as done" } else { "has all its tries again" };
    for unit in &units {
        context.output.say(format_args!("`{}` {is}", harmless(unit)));
    }
    let stop = refrain.stop_handle();
    let patience = patience.patience(context.output);
    let work = Box::pin(refrain.run_within(run, Ask::Retry, &patience));
    let Finished { result, is_interrupted } =
        signals.see_through(work, &stop, &[StopStep::StopNow], context.output).await;
    let Some(report) = result.transpose()? else { return Ok(Exit::Interrupted) };
    print_report(context, opened, &report, is_interrupted).await
}
