//! `refrain status`: the state of every window, as a grid.
//!
//! With `--json` it prints all windows, one object per line, a page at a time: a hundred thousand of them need no more
//! memory than five hundred.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use clap::Args;
use jiff::Timestamp;
use refrain::Refrain;
use refrain::admin::{JobRecord, JobView, RunRecord, RunStatus, RunSummary};
use refrain::core::Window;
use refrain::core::state::EffectState;
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
struct JobRow<'r> {
    job: &'r JobRecord,
    runs: Vec<RunSummary>,
}

impl fmt::Display for JobRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobRecord { name, timetable, next_at, paused_at, is_known, .. } = self.job;
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
        let (Some(first), Some(last)) = (self.runs.first(), self.runs.last()) else {
            return write!(f, "\n  no runs yet");
        };
        write!(f, "\n  {} ", short(first))?;
        self.grid().iter().try_for_each(|status| write!(f, "{}", Sign(*status)))?;
        if short(first) != short(last) {
            write!(f, " {}", short(last))?;
        }
        write!(f, "  ")?;
        let counts = self.counts();
        let mut parts = counts.iter().map(|(status, count)| format!("{count} {status}"));
        f.write_str(&parts.by_ref().collect::<Vec<_>>().join(", "))
    }
}

impl JobRow<'_> {
    /// One status a window: of several scopes the one that needs most attention.
    fn grid(&self) -> Vec<RunStatus> {
        let mut grid: Vec<(Option<Window>, RunStatus)> = Vec::new();
        for run in &self.runs {
            match grid.last_mut() {
                Some((window, status)) if window.is_some() && *window == run.record.window => {
                    *status = run.status.max(*status);
                }
                _ => grid.push((run.record.window, run.status)),
            }
        }
        grid.into_iter().map(|(_, status)| status).collect()
    }

    fn counts(&self) -> BTreeMap<RunStatus, usize> {
        let mut counts = BTreeMap::new();
        for run in &self.runs {
            *counts.entry(run.status).or_default() += 1;
        }
        counts
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
    let refrain = &opened.refrain;
    let now = refrain.now().await?;
    let mut jobs = refrain.job_records().await?;
    if let Some(name) = &arguments.job {
        jobs.retain(|job| job.name == *name);
        if jobs.is_empty() {
            // An unknown job is an error that lists the jobs.
            refrain.view(name).await?;
        }
    }
    if output.json {
        for job in &jobs {
            if !stream(refrain, job, now, output).await? {
                break;
            }
        }
    } else {
        shown(refrain, &jobs, arguments, now, output).await?;
    }
    opened.close().await;
    Ok(Exit::Done)
}

async fn shown(
    refrain: &Refrain,
    jobs: &[JobRecord],
    arguments: &Arguments,
    now: Timestamp,
    output: Output,
) -> Result<(), CliError> {
    let mut needed = BTreeMap::new();
    let mut waiting = 0_usize;
    for job in jobs {
        let view = refrain.view(&job.name).await?;
        let runs = refrain.latest(&job.name, None, arguments.windows.into()).await?;
        let runs: Vec<RunSummary> = runs.into_iter().rev().map(|run| view.summary(run, now)).collect();
        for run in runs.iter().filter(|run| run.status >= RunStatus::Late) {
            let needs_a_person = run.needs_a_person();
            waiting += usize::from(needs_a_person);
            // One that an operator must decide about comes before any that may still succeed by itself.
            needed.insert((needs_a_person, run.status), run.name.clone());
        }
        let is_alone = arguments.job.is_some();
        let row = JobRow { job, runs };
        output.text(&row)?;
        if is_alone {
            for run in &row.runs {
                output.text(format_args!("  {}", RunLine(run)))?;
            }
        }
    }
    let mut legend = String::new();
    for status in RunStatus::ALL {
        let _ = write!(legend, "{} {status}  ", Sign(status));
    }
    output.say(legend.trim_end());
    match waiting {
        0 => {}
        1 => output.say("1 run waits for a decision of an operator"),
        runs => output.say(format_args!("{runs} runs wait for a decision of an operator")),
    }
    match pending(refrain, arguments).await? {
        0 => {}
        1 => output.say("1 effect is pending: it is recorded but not sent"),
        effects => output.say(format_args!("{effects} effects are pending: they are recorded but not sent")),
    }
    match needed.into_iter().next_back() {
        Some((_, run)) => output.say(format_args!("next: refrain why {}", typed(&run))),
        None => output.say("nothing needs attention; one run: refrain show RUN"),
    }
    Ok(())
}

/// How many of the newest effects are pending, of all jobs or of one.
async fn pending(refrain: &Refrain, arguments: &Arguments) -> Result<usize, CliError> {
    let is_meant = |job: &Option<String>| arguments.job.is_none() || *job == arguments.job;
    let effects = refrain.effects().await?.into_iter();
    Ok(effects.filter(|effect| effect.state == EffectState::Pending && is_meant(&effect.job)).count())
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
