//! The counts that `tick` and `serve` print when they end.

use std::fmt;

use jiff::Timestamp;
use refrain::Counts;
use refrain::ledger::UnitCounts;
use serde::Serialize;

/// How many windows were opened, how their runs ended, and the four counts.
#[derive(Serialize)]
pub(crate) struct TickReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) now: Option<Timestamp>,
    opened: u64,
    again: u64,
    lost: u64,
    waiting: u64,
    counts: UnitCounts,
    /// The job files that were left out because they have problems.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: Vec<String>,
}

impl TickReport {
    pub(crate) fn of(now: Option<Timestamp>, counts: Counts, left_out: Vec<String>) -> TickReport {
        let Counts { opened, again, lost, waiting, .. } = counts;
        TickReport { now, opened, again, lost, waiting, counts: counts.four(), left_out }
    }
}

impl fmt::Display for TickReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.opened {
            1 => writeln!(f, "1 window opened")?,
            opened => writeln!(f, "{opened} windows opened")?,
        }
        for (count, what) in [
            (self.again, "to be tried again"),
            (self.lost, "taken over by other workers"),
            (self.waiting, "waiting for a decision of an operator"),
        ] {
            if count > 0 {
                writeln!(f, "{count} {what}")?;
            }
        }
        write!(f, "{}", self.counts)?;
        if self.left_out.is_empty() {
            return Ok(());
        }
        write!(f, "\nignored, because their files are invalid: {}", self.left_out.join(", "))
    }
}
