//! What a command prints: its result on stdout, as text or as one JSON object, and talk on stderr.
//!
//! The object is stable: names are added and never change their meaning, or `schema_version` grows.

use std::fmt::{self, Display};
use std::io::{self, Write};

use refrain::Counts;
use serde::Serialize;

use crate::exit::{Exit, Fault};

const SCHEMA_VERSION: u32 = 1;

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// What the command is called.
    pub(crate) name: &'static str,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

#[derive(Serialize)]
struct Envelope<'r, R> {
    schema_version: u32,
    command: &'static str,
    #[serde(flatten)]
    result: &'r R,
}

#[derive(Serialize)]
struct Failure {
    error: String,
    exit_code: u8,
}

impl Output {
    /// Prints the result.
    pub(crate) fn result(self, result: &(impl Serialize + Display)) -> Result<(), Fault> {
        let text = if self.json { self.object(result) } else { result.to_string() };
        match writeln!(io::stdout().lock(), "{}", text.trim_end()) {
            // Whoever read it has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(Fault::Output),
        }
    }

    /// Says something beside the result: what was written, what to type next.
    pub(crate) fn say(self, words: impl Display) {
        if !self.quiet {
            tell(words);
        }
    }

    /// Says what went wrong.
    pub(crate) fn fault(self, fault: &Fault, exit: Exit) {
        if self.json {
            let text = self.object(&Failure { error: fault.to_string(), exit_code: exit.code() });
            drop(writeln!(io::stdout().lock(), "{text}"));
        }
        tell(format_args!("error: {fault}"));
    }

    fn object(self, result: &impl Serialize) -> String {
        let envelope = Envelope { schema_version: SCHEMA_VERSION, command: self.name, result };
        serde_json::to_string(&envelope).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }
}

/// Nobody may be listening on stderr any more, and that changes nothing.
fn tell(words: impl Display) {
    drop(writeln!(io::stderr().lock(), "{words}"));
}

/// The four counts that end every command that runs something.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Four {
    pub(crate) processed: u64,
    pub(crate) skipped: u64,
    pub(crate) deduplicated: u64,
    pub(crate) failed: u64,
}

impl From<Counts> for Four {
    fn from(counts: Counts) -> Four {
        let Counts { ended, failed, skipped, deduplicated, .. } = counts;
        Four { processed: ended.saturating_sub(failed), skipped, deduplicated, failed }
    }
}

impl Display for Four {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Four { processed, skipped, deduplicated, failed } = self;
        write!(f, "{processed} processed, {skipped} skipped, {deduplicated} deduplicated, {failed} failed")
    }
}

/// Text that somebody else wrote, on one line: it must not move the cursor of a terminal.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
