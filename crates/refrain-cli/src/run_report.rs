//! What became of runs that were asked for: what `run` and `retry` print, and the code they end with.

use std::fmt;

use refrain::core::project::Action;
use refrain::core::state::{FailureReason, RunOutcome};
use refrain::core::terminal::typed;
use refrain::ledger::UnitCounts;
use refrain::project::Project;
use refrain::{Did, RunReport};
use serde::Serialize;

use crate::context::{Context, OpenProject};
use crate::doubts::advice;
use crate::exit::{CliError, Exit};
use crate::output::{harmless, harmless_lines};

/// A report as `run` and `retry` print it.
#[derive(Serialize)]
#[serde(transparent)]
struct ReportLine<'r>(&'r RunReport);

impl fmt::Display for ReportLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunReport { name, did, run, message, waits_for, .. } = self.0;
        let (name, state, attempt) = (harmless(name), run.standing.node(), run.attempt);
        match (did, run.ended_at, run.again_at()) {
            (Did::GaveUp, ..) => {
                write!(f, "{name}: {state} (attempt {attempt}); stopped waiting")?;
                return match waits_for {
                    Some(cause) => write!(f, "\n  {}", harmless_lines(&cause.explain().text, "  ")),
                    None => Ok(()),
                };
            }
            (Did::Deduplicated, Some(at), _) => {
                write!(f, "{name}: {state} already, at {at:.0} (attempt {attempt})")?;
            }
            (_, _, Some(at)) => {
                let failed = attempt.saturating_sub(1);
                write!(f, "{name}: attempt {failed} failed; {state} again, not before {at:.0}")?;
            }
            (Did::Held, ..) => write!(f, "{name}: {state} (attempt {attempt}); an operator must decide")?,
            (Did::Followed, ..) => write!(f, "{name}: {state} (attempt {attempt}, by another process)")?,
            _ => write!(f, "{name}: {state} (attempt {attempt})")?,
        }
        match message {
            Some(message) => write!(f, "\n  {}", harmless_lines(message, "  ")),
            None => Ok(()),
        }
    }
}

/// Prints what became of a run and its scopes, and what to type next. The exit code is that of the worst.
pub(crate) async fn print_report(
    context: &Context,
    opened: OpenProject,
    report: &RunReport,
    is_interrupted: bool,
) -> Result<Exit, CliError> {
    let output = context.output;
    let mut total = UnitCounts::default();
    let mut worst: Option<(Exit, &RunReport)> = None;
    for one in report.all() {
        total = total + one.counts;
        output.line(&ReportLine(one))?;
        let exit = exit(one, is_interrupted);
        if worst.is_none_or(|(most, _)| exit >= most) {
            worst = Some((exit, one));
        }
    }
    if !output.json {
        output.text(total)?;
    }
    let error = report.scope_error.clone().map(CliError::Scope);
    if let Some(error) = &error {
        output.fault(error, error.exit());
    }
    match worst {
        // The error says what to type next.
        Some((Exit::Done, _)) if error.is_some() => {}
        Some((exit, one)) => output.say(next(exit, one, &opened.project)),
        None => {}
    }
    opened.close().await;
    let worst = worst.map_or(Exit::Done, |(exit, _)| exit);
    Ok(error.map_or(worst, |error| worst.max(error.exit())))
}

/// Decided by values alone: a message may quote a program or a server.
fn exit(report: &RunReport, is_interrupted: bool) -> Exit {
    match () {
        () if report.did == Did::GaveUp => Exit::Unavailable,
        () if report.did == Did::Deduplicated || report.is_done_alone() => Exit::Done,
        () if report.did == Did::Held => Exit::Waits,
        () if is_interrupted => Exit::Interrupted,
        () if report.needs_a_person() => Exit::Waits,
        () if report.reason == Some(FailureReason::TimedOut) => Exit::TimedOut,
        () => Exit::Failed,
    }
}

/// What to type next.
fn next(exit: Exit, report: &RunReport, project: &Project) -> String {
    let name = &report.name;
    if exit == Exit::Waits {
        return advice(name, &report.doubts);
    }
    let name = typed(name);
    let is_command = project
        .jobs()
        .iter()
        .any(|job| job.name.as_str() == report.run.job && matches!(job.action, Action::Command(_)));
    let look = if is_command { "logs" } else { "show" };
    match exit {
        Exit::Done if report.did == Did::Deduplicated => {
            "nothing was done; for another attempt add --again".to_owned()
        }
        Exit::Done if report.did == Did::Settled => {
            format!("recorded as done; nothing was executed. Look: refrain show {name}")
        }
        Exit::Done => {
            format!("recorded; from now on the same command finds it done. Look: refrain {look} {name}")
        }
        Exit::Unavailable => format!(
            "it stays queued; to wait longer: refrain run {name} --wait 10m; look: refrain why {name}; cancel it: refrain cancel {name}"
        ),
        Exit::Interrupted => "it is queued again; the same command resumes it".to_owned(),
        _ if report.run.standing.is_open() => {
            "`refrain serve` or `refrain tick` tries it again later, the same command at once".to_owned()
        }
        // A parked unit is not tried again by itself; `why` names it and what to type.
        _ if report.run.standing.outcome == Some(RunOutcome::Partial) => {
            format!("which units, and what to type: refrain why {name}")
        }
        _ => format!("look: refrain {look} {name}; the same command tries it again"),
    }
}
