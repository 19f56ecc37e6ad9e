//! The one error for text that people write: it says where, what, and what to write instead.
//!
//! Schedules, durations, zone names, window names and keys are all typed by hand, so all of them fail the same way: the
//! text, a caret under the wrong part, the reason, and advice. The span is kept in bytes, so a command can draw the same
//! error inside the file that the text came from.

use std::fmt;
use std::ops::Range;

use crate::terminal::acts;

/// The longest text that an error quotes; longer text is cut, so that the error stays readable.
const SHOWN_CHARACTERS: usize = 120;

/// The longest reason or advice.
const MESSAGE_CHARACTERS: usize = 400;

/// A text that could not be read.
///
/// ```
/// use refrain_core::ParseError;
///
/// let error = ParseError::new("duration", "15 parsecs", 3..10, "`parsecs` is not a valid unit of time")
///     .help("write s, m, h, d or w, as in \"15m\"");
/// assert_eq!(
///     error.to_string(),
///     "cannot read the duration\n  \
///        15 parsecs\n     \
///           ^^^^^^^ `parsecs` is not a valid unit of time\n  \
///      write s, m, h, d or w, as in \"15m\""
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    what: &'static str,
    text: String,
    span: Range<usize>,
    reason: String,
    help: Option<String>,
}

impl ParseError {
    /// `what` names the kind of text ("schedule", "window"), `span` is the range of bytes that is wrong.
    pub fn new(what: &'static str, text: &str, span: Range<usize>, reason: impl Into<String>) -> Self {
        let end = span.end.min(text.len());
        let start = span.start.min(end);
        ParseError {
            what,
            text: text.to_owned(),
            span: start..end,
            reason: message_text(&reason.into()),
            help: None,
        }
    }

    /// The same error, shown inside a longer text in which this one begins at byte `offset`.
    #[must_use]
    pub fn inside(self, what: &'static str, text: &str, offset: usize) -> Self {
        let Range { start, end } = self.span;
        let whole =
            Self::new(what, text, start.saturating_add(offset)..end.saturating_add(offset), self.reason);
        ParseError { help: self.help, ..whole }
    }

    /// An error that marks the whole text.
    pub fn whole(what: &'static str, text: &str, reason: impl Into<String>) -> Self {
        Self::new(what, text, 0..text.len(), reason)
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(message_text(&help.into()));
        self
    }

    /// The range of bytes that is wrong.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Why it is wrong, without the text.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What to write instead, if there is advice.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = Shown::of(&self.text, &self.span);
        write!(f, "cannot read the {}\n  {}\n  ", self.what, shown.line)?;
        write!(f, "{}{} {}", " ".repeat(shown.indent), "^".repeat(shown.carets), self.reason)?;
        match &self.help {
            Some(help) => write!(f, "\n  {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}

/// Prepares text for a message on a terminal: an error may quote user input, which must not move the cursor or fill the screen.
pub(crate) fn message_text(words: &str) -> String {
    let mut shown: String = words.chars().take(MESSAGE_CHARACTERS).map(printable).collect();
    if words.chars().nth(MESSAGE_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

/// Replaces one character by one character, so that a caret below stays aligned.
fn printable(character: char) -> char {
    if acts(character) { char::REPLACEMENT_CHARACTER } else { character }
}

/// The part of the text that is shown, in characters: control characters are replaced, so that an error
/// cannot move the terminal's cursor, and a long text is cut around the span.
struct Shown {
    line: String,
    indent: usize,
    carets: usize,
}

impl Shown {
    fn of(text: &str, span: &Range<usize>) -> Shown {
        let before = text.char_indices().take_while(|(at, _)| *at < span.start).count();
        let inside = text.char_indices().filter(|(at, _)| span.contains(at)).count();
        let skipped = before.saturating_sub(SHOWN_CHARACTERS / 2);
        let mut line: String = text.chars().skip(skipped).take(SHOWN_CHARACTERS).map(printable).collect();
        let mut indent = before - skipped;
        if skipped > 0 {
            line.insert(0, '…');
            indent += 1;
        }
        if text.chars().nth(skipped + SHOWN_CHARACTERS).is_some() {
            line.push('…');
        }
        let room = line.chars().count().saturating_sub(indent);
        Shown { line, indent, carets: inside.clamp(1, room.max(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_still_gets_a_caret() {
        assert_eq!(
            ParseError::whole("zone", "", "it is empty").to_string(),
            "cannot read the zone\n  \n  ^ it is empty"
        );
    }

    #[test]
    fn a_long_text_is_cut_around_the_fault() {
        let text = format!("{}x{}", "a".repeat(500), "b".repeat(500));
        let shown = ParseError::new("key", &text, 500..501, "`x`").to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].chars().count() < 130, "{shown}");
        let caret = lines[2].find('^').unwrap();
        assert_eq!(lines[1].chars().nth(caret), Some('x'), "{shown}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let escape = "a\u{1b}[2Jb".repeat(100_000);
        let shown = ParseError::whole("key", &escape, format!("`{escape}`")).help(&*escape).to_string();
        assert!(!shown.contains('\u{1b}'));
        assert!(shown.chars().count() < 1_200);
    }

    #[test]
    fn a_fault_of_a_part_is_shown_in_the_whole() {
        let part = ParseError::new("duration", "5x", 1..2, "`x` is not a valid unit of time").help("write m");
        let whole = part.inside("schedule", "every 5x", 6);
        assert_eq!((whole.span(), whole.advice()), (7..8, Some("write m")));
    }

    #[test]
    fn a_span_outside_the_text_is_drawn_in_as_far_as_possible() {
        for span in [0..99, 99..120, 2..2] {
            let shown = ParseError::new("key", "äöü", span, "wrong").to_string();
            assert!(shown.contains('^'), "{shown}");
        }
    }
}
