//! The output of commands, for readers.

use jiff::Timestamp;
use refrain_core::terminal::harmless;
use serde::{Serialize, Serializer};

use super::{Refrain, RunRecord};
use crate::error::Error;
use crate::store::instant;
use crate::store::outputs::{OutputStream, list};

/// The most pieces in one page; a piece has 64 KiB as a rule.
const PAGE: i64 = 64;

/// The position of a piece in the output of a run. The default is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputPlace {
    /// The attempt that printed it.
    pub attempt: u64,
    /// Its number in the attempt, from 1.
    pub number: u64,
}

/// A piece of the output of a command. It serializes with the text [`shown`](Self::shown).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputRecord {
    /// Its position.
    pub place: OutputPlace,
    /// Its stream.
    pub stream: OutputStream,
    /// When its first byte was read.
    pub at: Timestamp,
    /// The text as the program printed it: one or more lines. For a terminal use [`shown`](Self::shown).
    pub text: String,
}

impl OutputRecord {
    /// The text for a terminal: nothing in it moves the cursor, rings or changes a colour.
    pub fn shown(&self) -> String {
        harmless(&self.text)
    }
}

impl Serialize for OutputRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Json<'o> {
            attempt: u64,
            stream: &'static str,
            at: &'o Timestamp,
            text: String,
        }
        let (attempt, stream) = (self.place.attempt, self.stream.name());
        Json { attempt, stream, at: &self.at, text: self.shown() }.serialize(serializer)
    }
}

impl Refrain {
    /// The output of a run, of all its attempts in order: the page after a position. Ask again after the last piece until the
    /// page is empty; while the run is open, more may follow.
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
