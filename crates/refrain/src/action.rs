//! What a job does when it is not written in Rust.
//!
//! A command runs under a [`supervisor`], a process of its own that outlives whatever becomes of the worker, and
//! that lets nothing outlive itself: a retry never meets its predecessor.

mod attendant;
mod capture;
pub mod command;
pub mod environment;
mod outcome;
mod protocol;
mod recording;
pub mod supervisor;

use std::fmt;
use std::sync::Arc;

/// Takes secrets out of a text that comes in pieces. What may be the beginning of a secret is held back until it is known.
pub trait Redact: Send {
    /// Takes a piece, and gives what can be shown by then.
    fn push(&mut self, text: &str) -> String;

    /// The end of the text: gives what is left of it.
    fn finish(&mut self) -> String;
}

/// Makes a [`Redact`] for each stream of output.
#[derive(Clone)]
pub struct Redaction(Arc<dyn Fn() -> Box<dyn Redact> + Send + Sync>);

impl Redaction {
    /// Redaction by what this makes.
    pub fn new<R: Redact + 'static>(make: impl Fn() -> R + Send + Sync + 'static) -> Redaction {
        Redaction(Arc::new(move || Box::new(make())))
    }

    fn begin(&self) -> Box<dyn Redact> {
        (self.0)()
    }
}

/// Nothing is a secret.
impl Default for Redaction {
    fn default() -> Redaction {
        Redaction::new(|| AsItIs)
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction")
    }
}

struct AsItIs;

impl Redact for AsItIs {
    fn push(&mut self, text: &str) -> String {
        text.to_owned()
    }

    fn finish(&mut self) -> String {
        String::new()
    }
}

/// A text as a terminal may get it: no control characters but line ends and tabs, and nothing that turns the direction
/// of what follows.
pub fn harmless(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_harmless = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || turns(c));
    text.chars().map(|c| if is_harmless(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_moves_no_cursor() {
        assert_eq!(harmless("a\tb\n\u{1b}[2Jc\rd\u{9b}e\u{202e}f\u{7}ü"), "a\tb\n�[2Jc�d�e�f�ü");
    }
}
