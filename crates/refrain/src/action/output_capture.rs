//! Selects the output of a command that is stored: whole lines, in the order in which they came, within named limits.
//!
//! Everything is read, because a program must not block when the limit is reached; memory is bounded whatever it prints.
//! Omitted output is counted, and a remark in the stored output says how much. Secrets are removed before anything is cut.

use std::collections::VecDeque;
use std::fmt::Write as _;

use refrain_core::redact::{self, Redactor};
use refrain_core::terminal::harmless;

use crate::store::outputs::{OutputStream, Piece};

/// How many bytes of one line are kept.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1_024;
/// How many bytes from the beginning of an attempt's output are kept.
pub(super) const HEAD_BYTES_MAX: usize = 1_024 * 1_024;
/// How many bytes of its end are kept beyond that; a single line may be all of it.
pub(super) const TAIL_BYTES_MAX: usize = 64 * 1_024;
/// How many bytes are stored at once, and the most bytes of one piece.
pub(super) const BATCH_BYTES: usize = 64 * 1_024;
/// The most pieces of a batch: streams that alternate with each line would otherwise need a row per line.
const PIECES_MAX: usize = 256;
/// How much of the end of standard error an error message shows.
const LAST_WORDS_BYTES_MAX: usize = 1_024;

/// The output of one attempt that is not stored yet.
pub(super) struct OutputCapture {
    streams: [LineReader; 2],
    head_left: usize,
    pending: Vec<Piece>,
    pending_bytes: usize,
    tail: VecDeque<Piece>,
    tail_bytes: usize,
    skipped: SkippedOutput,
    last_words: LastWords,
}

/// The end of standard error, to show with a failure.
#[derive(Default)]
pub(super) struct LastWords(String);

impl LastWords {
    pub(super) fn push(&mut self, line: &str) {
        self.0.push_str(line);
        if self.0.len() > 8 * LAST_WORDS_BYTES_MAX {
            let cut = self.0.ceil_char_boundary(self.0.len() - 2 * LAST_WORDS_BYTES_MAX);
            self.0.drain(..cut);
        }
    }

    pub(super) fn shown(&self) -> String {
        let begin = self.0.ceil_char_boundary(self.0.len().saturating_sub(LAST_WORDS_BYTES_MAX));
        let words = self.0.get(begin..).unwrap_or_default();
        // Starts at the beginning of a line, if there is one.
        let words = if begin > 0 { words.split_once('\n').map_or(words, |(_, rest)| rest) } else { words };
        harmless(words.trim_end())
    }
}

#[derive(Default)]
struct SkippedOutput {
    lines: u64,
    bytes: u64,
}

/// Reads lines from one pipe.
pub(super) struct LineReader {
    which: OutputStream,
    /// The beginning of a character whose rest has not come yet.
    undecoded: Vec<u8>,
    redact: redact::RedactingStream,
    line: String,
    /// How many bytes of this line are omitted.
    skipped: usize,
}

impl OutputCapture {
    pub(super) fn new(redactor: &Redactor) -> OutputCapture {
        let stream = |which| LineReader::new(redactor, which);
        OutputCapture {
            streams: [stream(OutputStream::Stdout), stream(OutputStream::Stderr)],
            head_left: HEAD_BYTES_MAX,
            pending: Vec::new(),
            pending_bytes: 0,
            tail: VecDeque::new(),
            tail_bytes: 0,
            skipped: SkippedOutput::default(),
            last_words: LastWords::default(),
        }
    }

    /// Adds bytes that were read from a stream at this time.
    pub(super) fn push(&mut self, which: OutputStream, bytes: &[u8], at: i64) {
        for line in self.lines(which, |stream| stream.read(bytes)) {
            self.add_line(Piece { stream: which, at, text: line });
        }
    }

    /// Ends the output.
    pub(super) fn end(&mut self, at: i64) {
        for which in [OutputStream::Stdout, OutputStream::Stderr] {
            for line in self.lines(which, LineReader::end) {
                self.add_line(Piece { stream: which, at, text: line });
            }
        }
        let SkippedOutput { lines, bytes } = self.skipped;
        if lines > 0 {
            let text = format!("… {lines} lines ({bytes} bytes) are omitted here …\n");
            self.store(Piece { stream: OutputStream::Remark, at, text });
        }
        for piece in std::mem::take(&mut self.tail) {
            self.store(piece);
        }
    }

    /// Takes out the pieces to store.
    pub(super) fn take(&mut self) -> Vec<Piece> {
        self.pending_bytes = 0;
        std::mem::take(&mut self.pending)
    }

    /// Whether there is enough for a batch.
    pub(super) fn is_full(&self) -> bool {
        self.pending_bytes >= BATCH_BYTES
    }

    /// The end of standard error, to show with a failure.
    pub(super) fn last_words(&self) -> String {
        self.last_words.shown()
    }

    fn lines(
        &mut self,
        which: OutputStream,
        read: impl FnOnce(&mut LineReader) -> Vec<String>,
    ) -> Vec<String> {
        self.streams.iter_mut().find(|stream| stream.which == which).map(read).unwrap_or_default()
    }

    /// Adds a whole line.
    pub(super) fn add_line(&mut self, line: Piece) {
        if line.stream == OutputStream::Stderr {
            self.last_words.push(&line.text);
        }
        let length = line.text.len();
        if self.head_left >= length {
            self.head_left -= length;
            return self.store(line);
        }
        if self.head_left > 0 || self.tail.is_empty() {
            self.head_left = 0;
            let text = format!(
                "… output limit reached: after the first {HEAD_BYTES_MAX} bytes only the last {TAIL_BYTES_MAX} are kept …\n"
            );
            self.store(Piece { stream: OutputStream::Remark, at: line.at, text });
        }
        self.tail_bytes += length;
        self.tail.push_back(line);
        while self.tail_bytes > TAIL_BYTES_MAX && self.tail.len() > 1 {
            let Some(gone) = self.tail.pop_front() else { return };
            self.tail_bytes -= gone.text.len();
            self.skipped.lines += 1;
            self.skipped.bytes += gone.text.len() as u64;
        }
    }

    fn store(&mut self, piece: Piece) {
        self.pending_bytes += piece.text.len();
        let is_crowded = self.pending.len() >= PIECES_MAX;
        let joins = |last: &Piece| {
            last.stream == piece.stream && (is_crowded || last.text.len() + piece.text.len() <= BATCH_BYTES)
        };
        let joined = if is_crowded {
            self.pending.iter_mut().rev().find(|last| joins(last))
        } else {
            self.pending.last_mut().filter(|last| joins(last))
        };
        match joined {
            Some(last) => last.text.push_str(&piece.text),
            None => self.pending.push(piece),
        }
    }
}

impl LineReader {
    pub(super) fn new(redactor: &Redactor, which: OutputStream) -> LineReader {
        let redact = redactor.stream();
        LineReader { which, undecoded: Vec::new(), redact, line: String::new(), skipped: 0 }
    }

    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<String> {
        let text = self.decoded(bytes);
        let text = self.redact.push(&text);
        self.cut(&text)
    }

    pub(super) fn end(&mut self) -> Vec<String> {
        let mut text = String::new();
        if !std::mem::take(&mut self.undecoded).is_empty() {
            text = self.redact.push("\u{fffd}");
        }
        text.push_str(&self.redact.finish());
        let mut lines = self.cut(&text);
        if !self.line.is_empty() {
            lines.push(self.line_end(""));
        }
        lines
    }

    /// Decodes UTF-8. Invalid bytes become U+FFFD, and so does NUL, which PostgreSQL cannot store.
    fn decoded(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.undecoded);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let may_go_on =
                || str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && may_go_on() {
                self.undecoded = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
    }

    fn cut(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for part in text.split_inclusive('\n') {
            let (words, is_whole) = match part.strip_suffix('\n') {
                Some(words) => (words, true),
                None => (part, false),
            };
            let room = words.floor_char_boundary(LINE_BYTES_MAX.saturating_sub(self.line.len()));
            // After the first omitted byte the rest of the line is omitted.
            let room = if self.skipped > 0 { 0 } else { room };
            self.line.push_str(words.get(..room).unwrap_or_default());
            self.skipped += words.len() - room;
            if is_whole {
                lines.push(self.line_end("\n"));
            }
        }
        lines
    }

    fn line_end(&mut self, end: &str) -> String {
        let mut line = std::mem::take(&mut self.line);
        let skipped = std::mem::take(&mut self.skipped);
        if skipped > 0 {
            let _ = write!(line, " … {skipped} bytes of this line are omitted …");
        }
        line.push_str(end);
        line
    }
}

#[cfg(test)]
#[path = "output_capture/tests.rs"]
mod tests;
