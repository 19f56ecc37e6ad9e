//! `refrain why`: which rule decided that a run did or did not run.

use std::fmt;

use clap::Args;
use refrain::admin::Why;
use refrain::core::terminal::typed;
use refrain::core::why::Explanation;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain why export@2026-06-09\n  refrain why digest@2026-06-09T14:00/acme\n  \
    refrain why invoice:INV-7                       a key of a unit, an effect or a queued run"
)]
pub(crate) struct Arguments {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE, JOB#KEY, or a key.
    #[arg(value_name = "RUN|KEY")]
    pub(crate) subject: String,
}

/// The causes, as they are printed.
#[derive(Serialize)]
#[serde(transparent)]
struct CauseLines<'w>(&'w Why);

impl fmt::Display for CauseLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, cause) in self.0.causes.iter().enumerate() {
            let Explanation { text, advice, .. } = cause.explain();
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}{text}")?;
            if let Some(next) = advice {
                write!(f, "\n  {next}")?;
            }
        }
        Ok(())
    }
}

pub(crate) async fn why(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let opened = context.look_around().await?;
    let subject = &arguments.subject;
    let job = subject.split(['@', '#']).next().unwrap_or_default();
    let has_file = opened.project.jobs().iter().any(|one| one.name.as_str() == job);
    let is_known = opened.refrain.jobs().iter().any(|one| one.as_str() == job);
    if has_file && !is_known {
        return Err(CliError::Refused(format!(
            "`{job}` has a file, but no process has served or run it in this store yet\n  refrain run {}, or refrain serve",
            typed(subject)
        )));
    }
    let why = opened.refrain.why(subject).await?;
    opened.close().await;
    context.output.result(&CauseLines(&why))?;
    Ok(Exit::Done)
}
