//! Lines become pages: bounded parts of what a source says, each ended by a cursor or because it is long enough.
//!
//! Values in, values out: bytes come in as they were read, in any pieces. Memory is bounded by the longest line and the
//! longest part, whatever is printed.

use refrain_core::content::CONTENT_BYTES_MAX;

use super::unit::{Fault, Said, Shape, Unit};
use crate::action::harmless;
use crate::job::JobError;

/// The longest line.
pub(super) const LINE_BYTES_MAX: usize = CONTENT_BYTES_MAX;
/// The most lines of one part, unless it is said otherwise.
pub(super) const PART_LINES_MAX: usize = 1_000;
/// The most bytes of one part, but for its last line.
pub(super) const PART_BYTES_MAX: usize = 8 * 1_024 * 1_024;
/// The most lines of one attempt that may be no units: beyond that it is not the lines.
const FAULTS_MAX: u64 = 1_000;
/// What is kept of a line that is too long.
const BEGINNING_BYTES: usize = 4_096;

/// A line as it was printed.
#[derive(Debug, Default)]
pub(super) struct Line {
    bytes: Vec<u8>,
    /// How long it is, if that is too long.
    too_long: Option<usize>,
}

/// Cuts bytes into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Line,
}

impl Lines {
    /// The lines that end in these bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (words, is_whole) = match piece.strip_suffix(b"\n") {
                Some(words) => (words, true),
                None => (piece, false),
            };
            let length = self.line.too_long.unwrap_or(self.line.bytes.len()) + words.len();
            if length > LINE_BYTES_MAX {
                self.line.too_long = Some(length);
                self.line.bytes.extend_from_slice(words.get(..BEGINNING_BYTES).unwrap_or(words));
                self.line.bytes.truncate(BEGINNING_BYTES);
            } else {
                self.line.bytes.extend_from_slice(words);
            }
            if is_whole {
                lines.push(std::mem::take(&mut self.line));
            }
        }
        lines
    }

    /// What stands after the last end of a line.
    pub(super) fn rest(self) -> Option<Line> {
        (!self.line.bytes.is_empty()).then_some(self.line)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        let too_long = (text.len() > LINE_BYTES_MAX).then_some(text.len());
        let mut bytes = text.into_bytes();
        if too_long.is_some() {
            bytes.truncate(BEGINNING_BYTES);
        }
        Line { bytes, too_long }
    }
}

/// A line that is no unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Odd {
    /// Its number in its page.
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) message: String,
    /// Whether all of it is in the text.
    pub(super) is_whole: bool,
}

/// Some of a source, in its order.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) units: Vec<Unit>,
    pub(super) odd: Vec<Odd>,
    /// The page ends here, and this is where to go on.
    pub(super) cursor: Option<String>,
    bytes: usize,
}

impl Part {
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty() && self.odd.is_empty() && self.cursor.is_none()
    }
}

/// Makes pages of lines.
#[derive(Debug)]
pub(super) struct Pages {
    shape: Shape,
    has_cursor: bool,
    /// The most lines of a part.
    lines_max: usize,
    /// The number of the last line, from the beginning and in its page.
    line: u64,
    in_page: u64,
    /// Whether a line was too long: no cursor is passed from there on, so that all that follows is one page.
    has_gap: bool,
    faults: u64,
    part: Part,
}

impl Pages {
    pub(super) fn new(shape: Shape, has_cursor: bool, lines_max: usize) -> Pages {
        Pages {
            shape,
            has_cursor,
            lines_max,
            line: 0,
            in_page: 0,
            has_gap: false,
            faults: 0,
            part: Part::default(),
        }
    }

    /// Takes a line; gives the part that ends with it.
    pub(super) fn push(&mut self, line: &Line) -> Result<Option<Part>, JobError> {
        self.line += 1;
        self.in_page += 1;
        let text = String::from_utf8_lossy(&line.bytes);
        if line.too_long.is_none() && text.trim().is_empty() {
            return Ok(None);
        }
        self.part.bytes += line.bytes.len();
        let said = match line.too_long {
            Some(bytes) => Err(Fault {
                column: None,
                message: format!("it is {bytes} bytes long, and {LINE_BYTES_MAX} is the most"),
            }),
            None => match str::from_utf8(&line.bytes) {
                Ok(text) => self.shape.read(text.trim()),
                Err(error) => Err(Fault {
                    column: Some(
                        text.get(..error.valid_up_to()).map_or(0, |valid| valid.chars().count()) + 1,
                    ),
                    message: "this is no UTF-8".to_owned(),
                }),
            },
        };
        match said {
            Ok(Said::Unit(unit)) => self.part.units.push(unit),
            Ok(Said::Cursor(_)) if !self.has_cursor => {
                return Err(JobError::for_good(format!(
                    "line {}: this is a cursor, and the job has none\n  add [cursor] to its file, so that the next \
                     run goes on from there; or print no {{\"$cursor\": …}}",
                    self.line
                )));
            }
            Ok(Said::Cursor(token)) => {
                self.part.cursor = Some(token);
                if !self.has_gap {
                    self.in_page = 0;
                }
            }
            Err(fault) => self.odd(&text, &fault, line.too_long.is_none())?,
        }
        let lines = self.part.units.len() + self.part.odd.len();
        let is_full = lines >= self.lines_max || self.part.bytes >= PART_BYTES_MAX;
        Ok((is_full || self.part.cursor.is_some()).then(|| std::mem::take(&mut self.part)))
    }

    fn odd(&mut self, text: &str, fault: &Fault, is_whole: bool) -> Result<(), JobError> {
        let column = fault.column.map(|column| format!(", column {column}")).unwrap_or_default();
        let message = format!("line {}{column}: {}", self.line, fault.message);
        self.faults += 1;
        self.has_gap |= !is_whole;
        if self.faults > FAULTS_MAX {
            return Err(JobError::new(format!(
                "more than {FAULTS_MAX} lines are no units, the last one: {message}\n  each line of the output is \
                 one JSON object; what is meant for people goes to standard error"
            )));
        }
        // PostgreSQL keeps no NUL.
        let text = text.replace('\0', "\u{fffd}");
        self.part.odd.push(Odd { number: self.in_page, text, message: harmless(&message), is_whole });
        Ok(())
    }

    /// The last part, of which more would have come.
    pub(super) fn rest(&mut self) -> Part {
        std::mem::take(&mut self.part)
    }
}

#[cfg(test)]
#[path = "parts/tests.rs"]
mod tests;
