//! `refrain tick`: one pass of the scheduler, and all that is due.

use std::fmt;

use jiff::Timestamp;
use refrain::Counts;
use serde::Serialize;

use crate::cli::Tick;
use crate::exit::{Exit, Fault};
use crate::output::Four;
use crate::signals::{Ended, Signals, Step};
use crate::store::Named;

/// What was opened, what came of it, and the four counts.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) now: Option<Timestamp>,
    opened: u64,
    again: u64,
    lost: u64,
    counts: Four,
}

impl Report {
    pub(super) fn of(now: Option<Timestamp>, counts: Counts) -> Report {
        let Counts { opened, again, lost, .. } = counts;
        Report { now, opened, again, lost, counts: counts.into() }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.opened {
            1 => writeln!(f, "1 window opened")?,
            opened => writeln!(f, "{opened} windows opened")?,
        }
        for (count, what) in [(self.again, "to be tried again"), (self.lost, "taken over by others")] {
            if count > 0 {
                writeln!(f, "{count} {what}")?;
            }
        }
        write!(f, "{}", self.counts)
    }
}

pub(crate) async fn tick(named: &Named, arguments: &Tick) -> Result<Exit, Fault> {
    let output = named.output;
    let signals = Signals::listen()?;
    let opening = named.prepared()?;
    let refrain = match arguments.now {
        Some(now) => opening.simulated(now).open().await?,
        None => opening.open().await?,
    };
    let stop = refrain.stop_handle();
    let Ended { result, is_interrupted } =
        signals.see_through(refrain.tick(), &stop, &[Step::StopNow], output).await;
    let Some(counts) = result.transpose()? else { return Ok(Exit::Interrupted) };
    refrain.close().await;
    output.result(&Report::of(arguments.now, counts))?;
    Ok(match counts {
        _ if is_interrupted => {
            output.say("what was under way was given back; the same command goes on");
            Exit::Interrupted
        }
        Counts { failed: 1.., .. } => {
            output.say("do one again by its name: refrain run JOB@WINDOW or JOB#KEY");
            Exit::Failed
        }
        _ => {
            output.say("next: the same again when more is due, or `refrain serve`, which waits for it");
            Exit::Done
        }
    })
}
