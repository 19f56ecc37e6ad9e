//! What is kept of a command's output: whole lines, in the order in which they came, within named limits.
//!
//! Everything is read, for a program must not wait because we have enough of it; memory is bounded whatever it prints. What
//! is left out is counted, and the output itself says so. Secrets are taken out before anything is cut or kept.

use std::collections::VecDeque;
use std::fmt::Write as _;

use refrain_core::redact::{self, Redactor};

use super::harmless;
use crate::store::outputs::{OutputStream, Piece};

/// The most that is kept of one line.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1_024;
/// What is kept from the beginning of an attempt's output.
pub(super) const HEAD_BYTES_MAX: usize = 1_024 * 1_024;
/// What is kept of its end, beyond that; a single line may be all of it.
pub(super) const TAIL_BYTES_MAX: usize = 64 * 1_024;
/// What is stored in one go, and the most that one piece gets.
pub(super) const BATCH_BYTES: usize = 64 * 1_024;
/// Into how many pieces a batch is cut at most: streams that take turns at each line would else be a row for each.
const PIECES_MAX: usize = 256;
/// What an error says of the end of standard error.
const LAST_WORDS_BYTES_MAX: usize = 1_024;

/// The output of one attempt, on its way to the store.
pub(super) struct Capture {
    streams: [Stream; 2],
    head_left: usize,
    pending: Vec<Piece>,
    pending_bytes: usize,
    tail: VecDeque<Piece>,
    tail_bytes: usize,
    left_out: LeftOut,
    last_words: LastWords,
}

/// The end of what was said, for people.
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
        // From the beginning of a line, if there is one.
        let words = if begin > 0 { words.split_once('\n').map_or(words, |(_, rest)| rest) } else { words };
        harmless(words.trim_end())
    }
}

#[derive(Default)]
struct LeftOut {
    lines: u64,
    bytes: u64,
}

/// What comes from one pipe, on its way to be lines.
pub(super) struct Stream {
    which: OutputStream,
    /// The beginning of a character of which the rest has not come yet.
    undecoded: Vec<u8>,
    redact: redact::Stream,
    line: String,
    /// How much of this line is left out.
    left_out: usize,
}

impl Capture {
    pub(super) fn new(redactor: &Redactor) -> Capture {
        let stream = |which| Stream::new(redactor, which);
        Capture {
            streams: [stream(OutputStream::Stdout), stream(OutputStream::Stderr)],
            head_left: HEAD_BYTES_MAX,
            pending: Vec::new(),
            pending_bytes: 0,
            tail: VecDeque::new(),
            tail_bytes: 0,
            left_out: LeftOut::default(),
            last_words: LastWords::default(),
        }
    }

    /// Takes what was read from a stream at some time.
    pub(super) fn push(&mut self, which: OutputStream, bytes: &[u8], at: i64) {
        for line in self.lines(which, |stream| stream.read(bytes)) {
            self.keep(Piece { stream: which, at, text: line });
        }
    }

    /// Nothing more comes.
    pub(super) fn end(&mut self, at: i64) {
        for which in [OutputStream::Stdout, OutputStream::Stderr] {
            for line in self.lines(which, Stream::end) {
                self.keep(Piece { stream: which, at, text: line });
            }
        }
        let LeftOut { lines, bytes } = self.left_out;
        if lines > 0 {
            let text = format!("… {lines} lines ({bytes} bytes) are left out here …\n");
            self.store(Piece { stream: OutputStream::Remark, at, text });
        }
        for piece in std::mem::take(&mut self.tail) {
            self.store(piece);
        }
    }

    /// Takes out what is to be stored.
    pub(super) fn take(&mut self) -> Vec<Piece> {
        self.pending_bytes = 0;
        std::mem::take(&mut self.pending)
    }

    /// Whether there is enough for a batch.
    pub(super) fn is_full(&self) -> bool {
        self.pending_bytes >= BATCH_BYTES
    }

    /// The end of standard error, for people.
    pub(super) fn last_words(&self) -> String {
        self.last_words.shown()
    }

    fn lines(&mut self, which: OutputStream, read: impl FnOnce(&mut Stream) -> Vec<String>) -> Vec<String> {
        self.streams.iter_mut().find(|stream| stream.which == which).map(read).unwrap_or_default()
    }

    /// Takes a whole line.
    pub(super) fn keep(&mut self, line: Piece) {
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
                "… the first {HEAD_BYTES_MAX} bytes are kept; of what follows, the last {TAIL_BYTES_MAX} will be …\n"
            );
            self.store(Piece { stream: OutputStream::Remark, at: line.at, text });
        }
        self.tail_bytes += length;
        self.tail.push_back(line);
        while self.tail_bytes > TAIL_BYTES_MAX && self.tail.len() > 1 {
            let Some(gone) = self.tail.pop_front() else { return };
            self.tail_bytes -= gone.text.len();
            self.left_out.lines += 1;
            self.left_out.bytes += gone.text.len() as u64;
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

impl Stream {
    pub(super) fn new(redactor: &Redactor, which: OutputStream) -> Stream {
        let redact = redactor.stream();
        Stream { which, undecoded: Vec::new(), redact, line: String::new(), left_out: 0 }
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

    /// What is no text becomes a mark, and so does a NUL, which PostgreSQL does not keep.
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
            // Once something is left out, so is the rest.
            let room = if self.left_out > 0 { 0 } else { room };
            self.line.push_str(words.get(..room).unwrap_or_default());
            self.left_out += words.len() - room;
            if is_whole {
                lines.push(self.line_end("\n"));
            }
        }
        lines
    }

    fn line_end(&mut self, end: &str) -> String {
        let mut line = std::mem::take(&mut self.line);
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            let _ = write!(line, " … {left_out} bytes of this line are left out …");
        }
        line.push_str(end);
        line
    }
}

#[cfg(test)]
#[path = "output_capture/tests.rs"]
mod tests;
