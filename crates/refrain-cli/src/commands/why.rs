//! `refrain why`: which rule decided that a run did or did not run.

use std::fmt;

use clap::Args;
use refrain::core::terminal::typed;
use refrain::core::why::{Cause, Told};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Fault};

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

#[derive(Serialize)]
struct Answer {
    subject: String,
    causes: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    rule: &'static str,
    said: String,
    next: Option<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Line { said, next, .. }) in self.causes.iter().enumerate() {
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}{said}")?;
            if let Some(next) = next {
                write!(f, "\n  {next}")?;
            }
        }
        Ok(())
    }
}

pub(crate) async fn why(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let opened = context.look_around().await?;
    let subject = &arguments.subject;
    let job = subject.split(['@', '#']).next().unwrap_or_default();
    let has_file = opened.project.jobs().iter().any(|one| one.name.as_str() == job);
    let is_known = opened.refrain.jobs().iter().any(|one| one.as_str() == job);
    if has_file && !is_known {
        return Err(Fault::Refused(format!(
            "`{job}` has a file, and this store has never seen it: nobody has served or run it yet\n  refrain run {}, or refrain serve",
            typed(subject)
        )));
    }
    let why = opened.refrain.why(subject).await?;
    opened.close().await;
    let causes = why.causes.iter().map(Cause::told);
    let causes = causes.map(|Told { rule, said, advice }| Line { rule, said, next: advice }).collect();
    context.output.result(&Answer { subject: why.subject, causes })?;
    Ok(Exit::Done)
}
