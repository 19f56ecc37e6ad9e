//! `refrain status`: the state of every window, as a grid.
//!
//! With `--json` it prints all windows, one object per line, a page at a time: a hundred thousand of them need no more
//! memory than five hundred.

use std::fmt::{self, Write as _};

use clap::Args;
use jiff::Timestamp;
use refrain::Refrain;
use refrain::admin::{JobRecord, JobStatus, JobView, RunRecord, RunStatus, RunSummary, StatusReport};
use refrain::core::terminal::typed;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::Output;
use crate::run_line::{RunLine, Sign};

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain status\n  refrain status export --windows 60\n  \
    refrain status --json | jq 'select(.is_late)'")]
pub(crate) struct Arguments {
    /// Only this job, with a line per window.
    pub(crate) job: Option<String>,
    /// How many of the newest windows to show.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) windows: u16,
}

/// One job and its newest windows, oldest first.
struct JobRow<'r>(&'r JobStatus);

impl fmt::Display for JobRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobStatus { job, runs, .. } = self.0;
        let JobRecord { name, timetable, next_at, paused_at, is_known, .. } = job;
        write!(f, "{name}")?;
        if let Some(timetable) = timetable {
            write!(f, "  {timetable}")?;
        }
        match (paused_at, next_at) {
            (Some(since), _) => write!(f, "  paused since {since:.0}")?,
            (None, Some(at)) => write!(f, "  next {at:.0}")?,
            (None, None) => {}
        }
        if !is_known {
            write!(f, "  (no file)")?;
        }
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return write!(f, "\n  no runs yet");
        };
        write!(f, "\n  {} ", short(first))?;
        self.0.grid().iter().try_for_each(|status| write!(f, "{}", Sign(*status)))?;
        if short(first) != short(last) {
            write!(f, " {}", short(last))?;
        }
        write!(f, "  ")?;
        let counts = self.0.counts();
        let mut parts = counts.iter().map(|(status, count)| format!("{count} {status}"));
        f.write_str(&parts.by_ref().collect::<Vec<_>>().join(", "))
    }
}

/// The window, or the key, without the job and the scope.
fn short(run: &RunSummary) -> &str {
    let name = run.name.strip_prefix(&run.record.job).unwrap_or(&run.name);
    let name = name.strip_prefix(['@', '#']).unwrap_or(name);
    match run.record.scope() {
        "" => name,
        scope => name.strip_suffix(scope).and_then(|name| name.strip_suffix('/')).unwrap_or(name),
    }
}

pub(crate) async fn status(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let Some(opened) = context.look_if_any().await? else {
        return context.nothing_of(arguments.job.as_deref());
    };
    let (refrain, job) = (&opened.refrain, arguments.job.as_deref());
    if output.json {
        let now = refrain.now().await?;
        for job in &refrain.job_records(job).await? {
            if !stream(refrain, job, now, output).await? {
                break;
            }
        }
    } else {
        shown(&refrain.status(job, arguments.windows.into()).await?, job.is_some(), output)?;
    }
    opened.close().await;
    Ok(Exit::Done)
}

fn shown(status: &StatusReport, is_alone: bool, output: Output) -> Result<(), CliError> {
    for job in &status.jobs {
        output.text(JobRow(job))?;
        if is_alone {
            for run in &job.runs {
                output.text(format_args!("  {}", RunLine(run)))?;
            }
        }
    }
    let mut legend = String::new();
    for status in RunStatus::ALL {
        let _ = write!(legend, "{} {status}  ", Sign(status));
    }
    output.say(legend.trim_end());
    match status.undecided {
        0 => {}
        1 => output.say("1 run waits for a decision of an operator"),
        runs => output.say(format_args!("{runs} runs wait for a decision of an operator")),
    }
    match status.pending_effects {
        0 => {}
        1 => output.say("1 effect is pending: it is recorded but not sent"),
        effects => output.say(format_args!("{effects} effects are pending: they are recorded but not sent")),
    }
    match status.undecided_effects {
        0 => {}
        1 => output.say("1 effect waits for a decision of an operator: refrain effects"),
        effects => {
            output.say(format_args!("{effects} effects wait for a decision of an operator: refrain effects"));
        }
    }
    match &status.first {
        None if status.undecided_effects > 0 => {}
        Some(run) => output.say(format_args!("next: refrain why {}", typed(run))),
        None => output.say("nothing needs attention; one run: refrain show RUN"),
    }
    Ok(())
}

/// Prints all windows of a job, one per line. False: the reader has closed the pipe.
async fn stream(
    refrain: &Refrain,
    job: &JobRecord,
    now: Timestamp,
    output: Output,
) -> Result<bool, CliError> {
    let view: JobView = refrain.view(&job.name).await?;
    let mut after = String::new();
    loop {
        let page: Vec<RunRecord> = refrain.runs(&job.name, &after).await?;
        let Some(last) = page.last() else { return Ok(true) };
        after.clone_from(&last.key);
        for run in page {
            if !output.line(&RunLine(&view.summary(run, now)))? {
                return Ok(false);
            }
        }
    }
}
