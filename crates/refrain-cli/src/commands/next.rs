//! `refrain next`: the next windows of a job, and what DST changes do to them.

use std::fmt;

use clap::Args;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use refrain::core::schedule::{Opens, Preview, PreviewLine, describe};
use refrain::core::{Revisions, Timetable, window_name};
use serde::Serialize;

use crate::arguments::timestamp;
use crate::context::{Context, job};
use crate::exit::{CliError, Exit};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain next export\n  refrain next export --around 2026-10-25\n  refrain next export --count 3 --json"
)]
pub(crate) struct Arguments {
    /// The job.
    pub(crate) job: String,
    /// Show the ticks around this date instead, with DST changes explained.
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub(crate) around: Option<Date>,
    /// How many windows.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) count: u16,
    /// The first time, as in 2026-06-09T14:00:00Z; the default is now.
    #[arg(long, value_name = "T", value_parser = timestamp)]
    pub(crate) from: Option<Timestamp>,
}

fn date(text: &str) -> Result<Date, String> {
    text.parse().map_err(|_| "write a date, as in 2026-10-25".to_owned())
}

#[derive(Serialize)]
struct Ahead {
    job: String,
    when: String,
    windows: Vec<Coming>,
}

#[derive(Serialize)]
struct Coming {
    window: String,
    start: Timestamp,
    end: Timestamp,
    opens_at: Timestamp,
    opens_local: String,
}

impl fmt::Display for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.job, self.when)?;
        for Coming { window, opens_local, .. } in &self.windows {
            write!(f, "\n  {}@{window}  opens {opens_local}", self.job)?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Around {
    job: String,
    zone: String,
    ticks: Vec<Tick>,
    #[serde(skip)]
    preview: Preview,
}

#[derive(Serialize)]
struct Tick {
    at: Timestamp,
    wall: String,
    opens: usize,
    first: Option<String>,
    last: Option<String>,
    note: Option<String>,
}

impl Tick {
    fn of(line: &PreviewLine) -> Tick {
        let (opens, first, last) = match &line.opens {
            Opens::Nothing => (0, None, None),
            Opens::One(window, _) => (1, Some(window.clone()), Some(window.clone())),
            Opens::Several(first, last, count) => (*count, Some(first.clone()), Some(last.clone())),
        };
        Tick { at: line.tick, wall: line.wall.to_string(), opens, first, last, note: line.note.clone() }
    }
}

impl fmt::Display for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.preview)
    }
}

pub(crate) fn next(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let project = context.project()?;
    let job = job(&project, &arguments.job)?;
    let Some(timetable) = &job.timetable else {
        return Err(CliError::Refused(format!(
            "`{0}` has no schedule: its runs are enqueued\n  refrain enqueue {0} --key KEY",
            job.name
        )));
    };
    let from = arguments.from.unwrap_or_else(Timestamp::now);
    let revisions =
        Revisions::first(timetable.clone(), from).map_err(|error| CliError::Refused(error.to_string()))?;
    if let Some(date) = arguments.around {
        let preview = Preview::around(revisions.current(), date);
        let ticks = preview.lines.iter().map(Tick::of).collect();
        let (job, zone) = (job.name.to_string(), preview.zone.clone());
        context.output.result(&Around { job, zone, ticks, preview })?;
        return Ok(Exit::Done);
    }
    let due_windows = revisions.current().due_windows(covered(&revisions, from));
    let due_windows = due_windows.filter(|due| due.tick > from);
    let windows = due_windows.take(arguments.count.into()).map(|due| {
        let window = due.window;
        Coming {
            window: window_name::write(window.start(), timetable.grid, &timetable.zone),
            start: window.start().timestamp(),
            end: window.end().timestamp(),
            opens_at: due.tick,
            opens_local: local(due.tick, timetable),
        }
    });
    let (name, when) = (job.name.to_string(), describe(timetable));
    context.output.result(&Ahead { job: name, when, windows: windows.collect() })?;
    context.output.say("to see what a DST change does: add --around DATE");
    Ok(Exit::Done)
}

/// The end of the last window before an instant. A short period is tried first, because windows may be minutes.
fn covered(revisions: &Revisions, from: Timestamp) -> Option<Timestamp> {
    [2_i64, 40, 800].into_iter().find_map(|days| {
        let after = from.checked_sub(SignedDuration::from_hours(24 * days)).ok()?;
        let last = revisions.windows(after, from).map(|(window, _)| window.end().timestamp());
        last.filter(|end| *end <= from).last()
    })
}

/// The local time, with its offset where it occurs twice.
fn local(at: Timestamp, timetable: &Timetable) -> String {
    let zone = &timetable.zone;
    let wall = zone.wall(at).strftime("%Y-%m-%d %H:%M:%S").to_string();
    match zone.offset_in_fold(at) {
        Some(offset) => format!("{wall} {offset} {}", zone.name()),
        None => format!("{wall} {}", zone.name()),
    }
}
