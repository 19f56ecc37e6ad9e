//! `refrain run`: one run, now, in this process.

use clap::Args;
use refrain::Ask;
use refrain::core::RunName;
use refrain::core::project::JobFile;
use refrain::core::terminal::typed;
use refrain::project::{Project, RedoQuestion};

use crate::arguments::{Wait, run_name};
use crate::context::{Context, job};
use crate::exit::{CliError, Exit};
use crate::output::Output;
use crate::person::Deciding;
use crate::run_report::print_report;
use crate::signals::{Finished, Signals, StopStep};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain run export                              the latest window that is over\n  \
    refrain run export@2026-06-09\n  refrain run export --window 2026-06-09 --again\n  \
    refrain run digest@2026-06-09T14:00/acme        one scope of it\n  refrain run welcome#42\n  \
    refrain run sync@2026-06-09 --redo --why 'rows were lost'"
)]
pub(crate) struct Arguments {
    /// JOB, JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The window, by its start: 2026-06-09, 2026-06-09T14:00, 2026-06-09T12:00:00Z.
    #[arg(long, value_name = "W", conflicts_with = "key")]
    pub(crate) window: Option<String>,
    /// The scope, for a job with scopes.
    #[arg(long, value_name = "S", conflicts_with = "key")]
    pub(crate) scope: Option<String>,
    /// The key, for a job that is enqueued.
    #[arg(long, value_name = "K")]
    pub(crate) key: Option<String>,
    /// Make another attempt, even if the run is done. Units and statements that are recorded as done are not repeated.
    #[arg(long)]
    pub(crate) again: bool,
    /// Repeat all its work once, although it is recorded as done. Rows are replaced without a question; before a command, a
    /// call or a statement is repeated, you are asked.
    #[arg(long, conflicts_with = "again")]
    pub(crate) redo: bool,
    #[command(flatten)]
    pub(crate) deciding: Deciding,
    #[command(flatten)]
    pub(crate) patience: Wait,
}

pub(crate) async fn run(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let Arguments { run, window, scope, key, .. } = arguments;
    let name = run_name(run, window.as_deref(), scope.as_deref(), key.as_deref())?;
    let signals = Signals::listen()?;
    let project = context.project()?;
    can_be(&project, &name)?;
    if arguments.redo {
        may_redo(output, &project, &name)?;
    }
    let opened = context.open_for(project).await?;
    let ask = match (arguments.again, arguments.redo) {
        (_, true) => Ask::Redo,
        (true, false) => Ask::Again,
        (false, false) => Ask::Once,
    };
    let stop = opened.refrain.stop_handle();
    let patience = arguments.patience.patience(output);
    let work = Box::pin(opened.refrain.run_within(&name, ask, &patience));
    let Finished { result, is_interrupted } =
        signals.see_through(work, &stop, &[StopStep::StopNow], output).await;
    let Some(report) = result.transpose()? else { return Ok(Exit::Interrupted) };
    print_report(context, opened, &report, is_interrupted).await
}

/// Checks the job in the files, before a store is created for it.
fn can_be(project: &Project, name: &str) -> Result<(), CliError> {
    if name.contains(['@', '#']) {
        return job(project, name.parse::<RunName>()?.job().as_str()).map(drop);
    }
    match job(project, name)? {
        JobFile { name, timetable: None, .. } => Err(refrain::Error::NoWindows(name.clone()).into()),
        _ => Ok(()),
    }
}

/// Asks the operator before work is done once more, if that has to be confirmed.
fn may_redo(output: Output, project: &Project, name: &str) -> Result<(), CliError> {
    let Some(RedoQuestion { run, what, .. }) = project.redo_question(name)? else { return Ok(()) };
    if output.ask(format_args!("{run}: {what}. Do it?")) {
        return Ok(());
    }
    Err(CliError::Undecided(format!(
        "nothing was done. With --redo, {what}\n  to confirm: refrain run {} --redo --yes",
        typed(&run)
    )))
}
