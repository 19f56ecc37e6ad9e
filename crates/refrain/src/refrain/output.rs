//! What the command of a run has printed.

use jiff::Timestamp;

use super::{Refrain, RunRecord};
use crate::action::harmless;
use crate::error::Error;
use crate::store::instant;
use crate::store::outputs::{OutputStream, list};

/// The most pieces in one page; a piece has 64 KiB as a rule.
const PAGE: i64 = 64;

/// Where in the output of a run a piece stands. The default is before everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputPlace {
    /// The attempt that printed it.
    pub attempt: u64,
    /// Its number in the attempt, from 1 on.
    pub number: u64,
}

/// A piece of what a command has printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRecord {
    /// Where it stands.
    pub place: OutputPlace,
    /// Where it came from.
    pub stream: OutputStream,
    /// When its beginning was read.
    pub at: Timestamp,
    /// The text as it came: one or more lines, with whatever a program prints. A terminal gets [`shown`](Self::shown).
    pub text: String,
}

impl OutputRecord {
    /// The text for people: nothing in it moves a cursor, rings or changes a colour.
    pub fn shown(&self) -> String {
        harmless(&self.text)
    }
}

impl Refrain {
    /// What the commands of a run have printed, of all its attempts in their order: a page after a place. Ask again after
    /// the last one until there is nothing more; while the run is open, there may be later.
    pub async fn output(&self, run: &RunRecord, after: OutputPlace) -> Result<Vec<OutputRecord>, Error> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let rows = list(self.store(), run.id, (number(after.attempt), number(after.number)), PAGE).await?;
        let records = rows.into_iter().map(|row| {
            let place = OutputPlace {
                attempt: u64::try_from(row.attempt).unwrap_or(0),
                number: u64::try_from(row.number).unwrap_or(0),
            };
            let (stream, at) = (OutputStream::stored(&row.stream), instant(row.at)?);
            Ok(OutputRecord { place, stream, at, text: row.text })
        });
        records.collect()
    }
}
