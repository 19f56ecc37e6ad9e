//! `refrain reconcile`: what a source has now, beside the table that its units went to.

use std::fmt;

use clap::Args;
use refrain::admin::Reconciled;
use serde::Serialize;

use crate::arguments::run_name;
use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::signals::Signals;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain reconcile invoice-sync                    as its latest whole window sees it\n  \
    refrain reconcile invoice-sync --window 2026-06-09\n\nRefrain reads the source once more, from its beginning: it executes the \
    job's command, or its query in a transaction that cannot write. It writes nothing to the table and moves no checkpoint; a \
    command must not change anything by being executed again. Exit code 1: they differ."
)]
pub(crate) struct Arguments {
    /// JOB, JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// The window, by its start: 2026-06-09, 2026-06-09T14:00, 2026-06-09T12:00:00Z.
    #[arg(long, value_name = "W")]
    pub(crate) window: Option<String>,
    /// The scope, for a job that has scopes.
    #[arg(long, value_name = "S")]
    pub(crate) scope: Option<String>,
}

/// What was found, as it is printed.
#[derive(Serialize)]
#[serde(transparent)]
struct ReconciledLines<'r>(&'r Reconciled);

impl fmt::Display for ReconciledLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reconciled { run, table, units, unreadable, differences, .. } = self.0;
        let word = if self.0.agrees() { "agrees" } else { "does not agree" };
        write!(f, "{}: {units} units in the source, and `{}` {word}", harmless(run), harmless(table))?;
        if *unreadable > 0 {
            write!(f, "\n{unreadable} unreadable: lines of the source that are not units")?;
        }
        for (found, what) in [
            (&differences.lost, "lost: in the source but not in the table"),
            (&differences.duplicated, "duplicated: more than once in the table"),
            (&differences.changed, "changed: the table has other values"),
            (&differences.extra, "extra: owned by the job, but not in the source"),
            (&differences.unfit, "unfit: they do not fit into a row of the table"),
        ] {
            if found.count == 0 {
                continue;
            }
            write!(f, "\n{} {what}", found.count)?;
            for key in &found.first {
                write!(f, "\n  {}", harmless(key))?;
            }
            if found.count > found.first.len() as u64 {
                write!(f, "\n  …")?;
            }
        }
        Ok(())
    }
}

pub(crate) async fn reconcile(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let Arguments { job, window, scope } = arguments;
    let name = run_name(job, window.as_deref(), scope.as_deref(), None)?;
    let signals = Signals::listen()?;
    let opened = context.look_around().await?;
    let refrain = &opened.refrain;
    let stop = refrain.stop_handle();
    // Nothing is written, so it may end anywhere.
    let work = Box::pin(refrain.reconcile(&opened.project, &name));
    let ended = signals.see_through(work, &stop, &[], output).await;
    let Some(compared) = ended.result.transpose()? else { return Ok(Exit::Interrupted) };
    opened.close().await;
    output.result(&ReconciledLines(&compared))?;
    for step in &compared.advice {
        output.say(format_args!("next: {step}"));
    }
    Ok(if compared.agrees() { Exit::Done } else { Exit::Failed })
}
