//! `refrain status`: what became of every window, as a grid.
//!
//! Programs get all windows, one object a line, read a page at a time: a hundred thousand of them need no more memory than
//! five hundred.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use clap::Args;
use jiff::Timestamp;
use refrain::core::state::EffectState;
use refrain::core::terminal::typed;
use refrain::{JobRecord, JobView, Refrain, RunRecord};

use crate::context::Context;
use crate::exit::{Exit, Fault};
use crate::output::Output;
use crate::run_line::{Mark, RunLine};

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain status\n  refrain status export --windows 60\n  \
    refrain status --json | jq 'select(.is_late)'")]
pub(crate) struct Arguments {
    /// Only this job, with a line for each window.
    pub(crate) job: Option<String>,
    /// How many of the newest windows are shown.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) windows: u16,
}

/// One job and its newest windows, oldest first.
struct Row<'r> {
    job: &'r JobRecord,
    lines: Vec<RunLine>,
}

impl fmt::Display for Row<'_> {
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
            write!(f, "  (it has no file)")?;
        }
        let (Some(first), Some(last)) = (self.lines.first(), self.lines.last()) else {
            return write!(f, "\n  no runs yet");
        };
        write!(f, "\n  {} ", short(first))?;
        self.grid().iter().try_for_each(|mark| write!(f, "{mark}"))?;
        if short(first) != short(last) {
            write!(f, " {}", short(last))?;
        }
        write!(f, "  ")?;
        let counts = self.counts();
        let mut parts = counts.iter().map(|(mark, count)| format!("{count} {}", mark.word()));
        f.write_str(&parts.by_ref().collect::<Vec<_>>().join(", "))
    }
}

impl Row<'_> {
    /// One sign a window: of several scopes the one that needs most attention.
    fn grid(&self) -> Vec<Mark> {
        let mut marks: Vec<(Option<Timestamp>, Mark)> = Vec::new();
        for line in &self.lines {
            match marks.last_mut() {
                Some((start, mark)) if start.is_some() && *start == line.window_start => {
                    *mark = line.mark.max(*mark);
                }
                _ => marks.push((line.window_start, line.mark)),
            }
        }
        marks.into_iter().map(|(_, mark)| mark).collect()
    }

    fn counts(&self) -> BTreeMap<Mark, usize> {
        let mut counts = BTreeMap::new();
        for line in &self.lines {
            *counts.entry(line.mark).or_default() += 1;
        }
        counts
    }
}

/// The window, or the key, without the job and the scope.
fn short(line: &RunLine) -> &str {
    let name = line.run.strip_prefix(&line.job).unwrap_or(&line.run);
    let name = name.strip_prefix(['@', '#']).unwrap_or(name);
    let scope = if line.scope.is_empty() { None } else { name.strip_suffix(&line.scope) };
    scope.and_then(|name| name.strip_suffix('/')).unwrap_or(name)
}

pub(crate) async fn status(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
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
            // Says which there are.
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
) -> Result<(), Fault> {
    let mut needed = BTreeMap::new();
    let mut waiting = 0_usize;
    for job in jobs {
        let view = refrain.view(&job.name).await?;
        let mut runs = refrain.latest(&job.name, None, arguments.windows.into()).await?;
        runs.reverse();
        let lines: Vec<RunLine> = runs.iter().map(|run| RunLine::of(run, &view, now)).collect();
        for line in lines.iter().filter(|line| line.mark >= Mark::Late) {
            waiting += usize::from(line.needs_a_person);
            // One that waits for a person comes before any that may still mend by itself.
            needed.insert((line.needs_a_person, line.mark), line.run.clone());
        }
        let is_alone = arguments.job.is_some();
        let row = Row { job, lines };
        output.text(&row)?;
        if is_alone {
            for line in &row.lines {
                output.text(format_args!("  {line}"))?;
            }
        }
    }
    let mut legend = String::new();
    for mark in Mark::ALL {
        let _ = write!(legend, "{mark} {}  ", mark.word());
    }
    output.say(legend.trim_end());
    match waiting {
        0 => {}
        1 => output.say("1 run waits for a person"),
        runs => output.say(format_args!("{runs} runs wait for a person")),
    }
    match pending(refrain, arguments).await? {
        0 => {}
        1 => output.say("1 effect is pending: it is recorded, and not sent"),
        effects => output.say(format_args!("{effects} effects are pending: they are recorded, and not sent")),
    }
    match needed.into_iter().next_back() {
        Some((_, run)) => output.say(format_args!("next: refrain why {}", typed(&run))),
        None => output.say("nothing needs attention; one run: refrain show RUN"),
    }
    Ok(())
}

/// How many of the newest effects are pending, of all jobs or of the one that was asked for.
async fn pending(refrain: &Refrain, arguments: &Arguments) -> Result<usize, Fault> {
    let is_meant = |job: &Option<String>| arguments.job.is_none() || *job == arguments.job;
    let effects = refrain.effects().await?.into_iter();
    Ok(effects.filter(|effect| effect.state == EffectState::Pending && is_meant(&effect.job)).count())
}

/// All windows of a job, a line each. False: nobody reads any more.
async fn stream(refrain: &Refrain, job: &JobRecord, now: Timestamp, output: Output) -> Result<bool, Fault> {
    let view: JobView = refrain.view(&job.name).await?;
    let mut after = String::new();
    loop {
        let page: Vec<RunRecord> = refrain.runs(&job.name, &after).await?;
        let Some(last) = page.last() else { return Ok(true) };
        after.clone_from(&last.key);
        for run in &page {
            if !output.line(&RunLine::of(run, &view, now))? {
                return Ok(false);
            }
        }
    }
}
