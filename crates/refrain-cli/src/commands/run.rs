//! `refrain run`: one run, now and here.

use clap::Args;
use refrain::core::project::JobFile;
use refrain::core::terminal;
use refrain::core::{Redo, RunName};
use refrain::{Ask, Patience, Project, QueuePosition, Refrain, RunReport};

use crate::arguments::{Wait, run_name};
use crate::context::{Context, Opened, job};
use crate::exit::{Exit, Fault};
use crate::output::Output;
use crate::person::Deciding;
use crate::run_report::{Ran, told};
use crate::signals::{Ended, Signals, Step};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain run export                              the latest whole window\n  \
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
    /// The scope, for a job that has scopes.
    #[arg(long, value_name = "S", conflicts_with = "key")]
    pub(crate) scope: Option<String>,
    /// The key, for a job that is queued.
    #[arg(long, value_name = "K")]
    pub(crate) key: Option<String>,
    /// Make another attempt, even if it is done. Units and statements that are recorded as done are left alone.
    #[arg(long)]
    pub(crate) again: bool,
    /// Do its work once more: each unit, each statement, once, although it is recorded as done. Rows are replaced at once; before
    /// a command, a call or a statement is repeated, you are asked.
    #[arg(long, conflicts_with = "again")]
    pub(crate) redo: bool,
    #[command(flatten)]
    pub(crate) deciding: Deciding,
    #[command(flatten)]
    pub(crate) patience: Wait,
}

pub(crate) async fn run(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = context.output;
    let Arguments { run, window, scope, key, .. } = arguments;
    let mut name = run_name(run, window.as_deref(), scope.as_deref(), key.as_deref())?;
    let signals = Signals::listen()?;
    let project = context.project()?;
    let file = can_be(&project, &name)?;
    if arguments.redo {
        may_redo(output, file, &name)?;
    }
    let opened = context.open_for(project).await?;
    let refrain = &opened.refrain;
    if !name.contains(['@', '#']) {
        name = refrain.latest_window(&name).await?;
    }
    needs_no_payload(&opened, &name).await?;
    let ask = match (arguments.again, arguments.redo) {
        (_, true) => Ask::Redo,
        (true, false) => Ask::Again,
        (false, false) => Ask::Once,
    };
    let stop = refrain.stop_handle();
    let patience = arguments.patience.patience(output);
    let work = Box::pin(all(refrain, &name, ask, &patience));
    let Ended { result, is_interrupted } = signals.see_through(work, &stop, &[Step::StopNow], output).await;
    let Some(ran) = result.transpose()? else { return Ok(Exit::Interrupted) };
    told(context, opened, ran, is_interrupted).await
}

/// Whether the files know such a run, before there is a store for it.
fn can_be<'p>(project: &'p Project, name: &str) -> Result<&'p JobFile, Fault> {
    if name.contains(['@', '#']) {
        return job(project, name.parse::<RunName>()?.job().as_str());
    }
    match job(project, name)? {
        JobFile { name, timetable: None, .. } => Err(refrain::Error::NoWindows(name.clone()).into()),
        file => Ok(file),
    }
}

/// Whether its work may be done once more: rows are replaced, what reaches further is asked about, and what cannot be taken back
/// is refused.
fn may_redo(output: Output, file: &JobFile, name: &str) -> Result<(), Fault> {
    match Redo::of(file) {
        Redo::AtOnce => Ok(()),
        Redo::Refused(why) => {
            Err(Fault::Refused(format!("the work of `{name}` cannot be done again: {why}")))
        }
        Redo::Asks(what) if output.ask(format_args!("{name}: {what}. Do it?")) => Ok(()),
        Redo::Asks(what) => Err(Fault::Undecided(format!(
            "nothing was done. With --redo, {what}\n  if that is meant: refrain run {} --redo --yes",
            terminal::typed(name)
        ))),
    }
}

/// A queued run that was never offered has nothing to be about, and its key would be spent.
async fn needs_no_payload(opened: &Opened, name: &str) -> Result<(), Fault> {
    let Some((job, key)) = name.split_once('#') else { return Ok(()) };
    let file = opened.project.jobs().iter().find(|file| file.name.as_str() == job);
    let needs = file.is_some_and(JobFile::needs_payload);
    if needs && opened.refrain.show(name).await?.is_none() {
        return Err(Fault::Refused(format!(
            "nobody has enqueued `{key}`, and `{job}` needs a payload\n  refrain enqueue {job} --key {} --payload JSON",
            terminal::typed(key)
        )));
    }
    Ok(())
}

/// The run and, if it is that of a window with scopes, theirs: until they are done the window is not.
async fn all(
    refrain: &Refrain,
    name: &str,
    ask: Ask,
    patience: &Patience,
) -> Result<Vec<Ran>, refrain::Error> {
    let report = refrain.run_within(name, ask, patience).await?;
    let (job, key) = (report.run.job.clone(), report.run.key.clone());
    let is_whole = report.run.window.is_some() && report.run.scope().is_empty() && report.is_done();
    let mut ran = vec![Ran { name: name.to_owned(), report }];
    if !is_whole {
        return Ok(ran);
    }
    let view = refrain.view(&job).await?;
    let (of_window, mut after) = (format!("{key}/"), key);
    loop {
        let page = refrain.runs(&job, &after).await?;
        for run in &page {
            if !run.key.starts_with(&of_window) {
                return Ok(ran);
            }
            let name = view.name_of(run);
            let report = refrain.run_within(&name, ask, patience).await?;
            let is_left = is_left(&report);
            ran.push(Ran { name, report });
            if is_left {
                return Ok(ran);
            }
        }
        let Some(last) = page.last() else { return Ok(ran) };
        after.clone_from(&last.key);
    }
}

/// Whether an attempt is open that was not made: somebody wants this to end.
fn is_left(report: &RunReport) -> bool {
    report.run.standing.is_open() && !matches!(report.run.place, Some(QueuePosition::Delayed(_)))
}
