//! `refrain tick`: one pass of the scheduler, and all that is due.

use std::fmt;

use clap::Args;
use jiff::Timestamp;
use refrain::Counts;
use serde::Serialize;

use crate::exit::{Exit, Fault};
use crate::output::Four;
use crate::place::{Opened, Place};
use crate::signals::{Ended, Signals, Step};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain tick\n  * * * * * refrain -C /srv/shop tick            as a line of a crontab\n  \
    refrain --store sqlite:trial.db tick --now 2026-06-09T14:00:00Z"
)]
pub(crate) struct Arguments {
    /// The time that schedules read, as in 2026-06-09T14:00:00Z.
    ///
    /// It makes a new store simulated, for good. A store that has real runs refuses it, and `serve` refuses a simulated store.
    #[arg(long, value_name = "T", value_parser = instant)]
    pub(crate) now: Option<Timestamp>,
}

pub(super) fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "write an instant, as in 2026-06-09T14:00:00Z".to_owned())
}

/// What was opened, what came of it, and the four counts.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<Timestamp>,
    opened: u64,
    again: u64,
    lost: u64,
    waiting: u64,
    counts: Four,
    /// Files of jobs that were left out, for they are wrong.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: Vec<String>,
}

impl Report {
    pub(super) fn of(now: Option<Timestamp>, counts: Counts, left_out: Vec<String>) -> Report {
        let Counts { opened, again, lost, waiting, .. } = counts;
        Report { now, opened, again, lost, waiting, counts: counts.into(), left_out }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.opened {
            1 => writeln!(f, "1 window opened")?,
            opened => writeln!(f, "{opened} windows opened")?,
        }
        for (count, what) in [
            (self.again, "to be tried again"),
            (self.lost, "taken over by others"),
            (self.waiting, "waiting for a person"),
        ] {
            if count > 0 {
                writeln!(f, "{count} {what}")?;
            }
        }
        write!(f, "{}", self.counts)?;
        if self.left_out.is_empty() {
            return Ok(());
        }
        write!(f, "\nleft out, for their files are wrong: {}", self.left_out.join(", "))
    }
}

pub(crate) async fn tick(place: &Place, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = place.output;
    let signals = Signals::listen()?;
    let project = place.project()?;
    let opening = place.prepared(&project).await?;
    let refrain = match arguments.now {
        Some(now) => opening.simulated(now).open().await?,
        None => opening.open().await?,
    };
    place.say_if_root();
    let stop = refrain.stop_handle();
    let Ended { result, is_interrupted } =
        signals.see_through(Box::pin(refrain.tick()), &stop, &[Step::StopNow], output).await;
    let Some(counts) = result.transpose()? else { return Ok(Exit::Interrupted) };
    let left_out = project.left_out_files();
    let is_whole = left_out.is_empty();
    Opened { refrain, project }.close().await;
    output.result(&Report::of(arguments.now, counts, left_out))?;
    Ok(match counts {
        _ if is_interrupted => {
            output.say("what was under way was given back; the same command goes on");
            Exit::Interrupted
        }
        Counts { waiting: 1.., timed_out, .. } => {
            output.say("a person must decide before all of it is done; which: refrain status; what to type: refrain show RUN");
            if timed_out > 0 { Exit::TimedOut } else { Exit::Waits }
        }
        Counts { failed: 1.., timed_out, .. } => {
            output.say("which, and why: refrain runs --state failed; one again: refrain retry RUN");
            if timed_out > 0 { Exit::TimedOut } else { Exit::Failed }
        }
        _ if !is_whole => {
            output.say("all other jobs were looked after; what is wrong: refrain check");
            Exit::Failed
        }
        _ => {
            output.say("next: the same again when more is due, or `refrain serve`, which waits for it");
            Exit::Done
        }
    })
}
