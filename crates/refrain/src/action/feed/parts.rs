//! Groups the lines of a source into parts of bounded size. A part ends with a cursor, or when it is full.
//!
//! Pure: bytes come in as they were read, in pieces of any size. Memory is bounded by the longest line and the largest part,
//! whatever the source prints.

use refrain_core::content::CONTENT_BYTES_MAX;
use refrain_core::terminal::harmless;

use super::unit::{LineContent, LineError, Unit, UnitReader};
use crate::run::JobError;

/// The longest line.
pub(super) const LINE_BYTES_MAX: usize = CONTENT_BYTES_MAX;
/// The default for the most lines of a part.
pub(super) const PART_LINES_MAX: usize = 1_000;
/// The most bytes of a part, not counting its last line.
pub(super) const PART_BYTES_MAX: usize = 8 * 1_024 * 1_024;
/// The most malformed lines of one attempt: with more, the program is wrong and not single lines.
const FAULTS_MAX: u64 = 1_000;
/// How many bytes of a line that is too long are kept.
const KEPT_BYTES_MAX: usize = 4_096;

/// A line of the source.
#[derive(Debug, Default)]
pub(super) struct SourceLine {
    bytes: Vec<u8>,
    /// Its length if it is too long; `bytes` is then its beginning.
    too_long: Option<usize>,
}

/// Cuts bytes into lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    line: SourceLine,
}

impl LineSplitter {
    /// Adds bytes; gives the lines that end in them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<SourceLine> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let length = self.line.too_long.unwrap_or(self.line.bytes.len()) + text.len();
            if length > LINE_BYTES_MAX {
                self.line.too_long = Some(length);
                self.line.bytes.extend_from_slice(text.get(..KEPT_BYTES_MAX).unwrap_or(text));
                self.line.bytes.truncate(KEPT_BYTES_MAX);
            } else {
                self.line.bytes.extend_from_slice(text);
            }
            if is_whole {
                lines.push(std::mem::take(&mut self.line));
            }
        }
        lines
    }

    /// The last line if it has no line end.
    pub(super) fn rest(self) -> Option<SourceLine> {
        (!self.line.bytes.is_empty()).then_some(self.line)
    }
}

impl From<String> for SourceLine {
    fn from(text: String) -> SourceLine {
        let too_long = (text.len() > LINE_BYTES_MAX).then_some(text.len());
        let mut bytes = text.into_bytes();
        if too_long.is_some() {
            bytes.truncate(KEPT_BYTES_MAX);
        }
        SourceLine { bytes, too_long }
    }
}

/// A line from which no unit can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MalformedLine {
    /// Its number since the last cursor.
    pub(super) number: u64,
    pub(super) text: String,
    pub(super) message: String,
    /// Whether `text` is the whole line.
    pub(super) is_whole: bool,
}

/// Consecutive lines of a source.
#[derive(Debug, Default)]
pub(super) struct SourcePart {
    pub(super) units: Vec<Unit>,
    pub(super) malformed: Vec<MalformedLine>,
    /// The position to continue from, if the part ends with a cursor.
    pub(super) cursor: Option<String>,
    bytes: usize,
}

impl SourcePart {
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty() && self.malformed.is_empty() && self.cursor.is_none()
    }
}

/// Makes parts of lines.
#[derive(Debug)]
pub(super) struct PartBuilder {
    reader: UnitReader,
    has_cursor: bool,
    /// The most lines of a part.
    lines_max: usize,
    /// The number of the last line from the beginning of the source.
    line: u64,
    /// The number of the last line since the last cursor.
    in_page: u64,
    /// Whether a line was too long to be kept: no cursor is passed from there on, so all that follows counts as one page.
    has_gap: bool,
    faults: u64,
    part: SourcePart,
}

impl PartBuilder {
    pub(super) fn new(reader: UnitReader, has_cursor: bool, lines_max: usize) -> PartBuilder {
        PartBuilder {
            reader,
            has_cursor,
            lines_max,
            line: 0,
            in_page: 0,
            has_gap: false,
            faults: 0,
            part: SourcePart::default(),
        }
    }

    /// Adds a line; gives a part if one ends with it.
    pub(super) fn push(&mut self, line: &SourceLine) -> Result<Option<SourcePart>, JobError> {
        self.line += 1;
        self.in_page += 1;
        let text = String::from_utf8_lossy(&line.bytes);
        if line.too_long.is_none() && text.trim().is_empty() {
            return Ok(None);
        }
        self.part.bytes += line.bytes.len();
        let content = match line.too_long {
            Some(bytes) => Err(LineError {
                column: None,
                message: format!("the line has {bytes} bytes; the maximum is {LINE_BYTES_MAX}"),
            }),
            None => match str::from_utf8(&line.bytes) {
                Ok(text) => self.reader.read(text.trim()),
                Err(error) => Err(LineError {
                    column: Some(
                        text.get(..error.valid_up_to()).map_or(0, |valid| valid.chars().count()) + 1,
                    ),
                    message: "not valid UTF-8".to_owned(),
                }),
            },
        };
        match content {
            Ok(LineContent::Unit(unit)) => self.part.units.push(unit),
            Ok(LineContent::Cursor(_)) if !self.has_cursor => {
                return Err(JobError::for_good(format!(
                    "line {}: the source printed a cursor, but the job has no [cursor]\n  add [cursor] to the job \
                     file, so that the next run continues from there; or do not print {{\"$cursor\": …}}",
                    self.line
                )));
            }
            Ok(LineContent::Cursor(token)) => {
                self.part.cursor = Some(token);
                if !self.has_gap {
                    self.in_page = 0;
                }
            }
            Err(error) => self.add_malformed(&text, &error, line.too_long.is_none())?,
        }
        let lines = self.part.units.len() + self.part.malformed.len();
        let is_full = lines >= self.lines_max || self.part.bytes >= PART_BYTES_MAX;
        Ok((is_full || self.part.cursor.is_some()).then(|| std::mem::take(&mut self.part)))
    }

    fn add_malformed(&mut self, text: &str, error: &LineError, is_whole: bool) -> Result<(), JobError> {
        let column = error.column.map(|column| format!(", column {column}")).unwrap_or_default();
        let message = format!("line {}{column}: {}", self.line, error.message);
        self.faults += 1;
        self.has_gap |= !is_whole;
        if self.faults > FAULTS_MAX {
            return Err(JobError::new(format!(
                "more than {FAULTS_MAX} lines are malformed, the last one: {message}\n  print one JSON object per line; \
                 messages belong on standard error"
            )));
        }
        // PostgreSQL cannot store NUL.
        let text = text.replace('\0', "\u{fffd}");
        self.part.malformed.push(MalformedLine {
            number: self.in_page,
            text,
            message: harmless(&message),
            is_whole,
        });
        Ok(())
    }

    /// The last part, which may be empty.
    pub(super) fn rest(&mut self) -> SourcePart {
        std::mem::take(&mut self.part)
    }
}

#[cfg(test)]
#[path = "parts/tests.rs"]
mod tests;
