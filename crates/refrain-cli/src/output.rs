//! What a command prints: its result on stdout, as text or as JSON, and talk on stderr.
//!
//! An object is stable: names are added and never change their meaning, or `schema_version` grows. A list is one object a
//! line, so that a long one is never held in memory. Secrets of the project are hidden in all of it.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::io::{self, IsTerminal as _, Write};
use std::sync::{OnceLock, RwLock};

use refrain::core::project::passwords;
use refrain::core::redact::{Redactor, Secret};
use refrain::core::terminal;
use refrain::{Counts, UnitCounts};
use serde::Serialize;

use crate::exit::{Exit, Fault};

const SCHEMA_VERSION: u32 = 1;

/// What was hidden once stays hidden: files that are read again may not name it any more.
static HIDDEN: RwLock<Vec<Redactor>> = RwLock::new(Vec::new());

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// What the command is called.
    pub(crate) name: &'static str,
    pub(crate) json: bool,
    /// Whether questions are answered with yes.
    pub(crate) yes: bool,
    pub(crate) talk: Talk,
}

/// What becomes of words beside the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Talk {
    /// They are said on stderr.
    Said,
    /// They are logged, so that every line on stderr is an object.
    Logged,
    /// They are left out.
    Left,
}

#[derive(Serialize)]
struct Envelope<'r, R> {
    schema_version: u32,
    command: &'static str,
    #[serde(flatten)]
    result: &'r R,
}

#[derive(Serialize)]
struct Failure<'f> {
    error: String,
    exit_code: u8,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    problems: &'f [ProblemLine<'f>],
}

/// What is wrong with a file, for programs.
#[derive(Serialize)]
pub(crate) struct ProblemLine<'p> {
    pub(crate) path: &'p str,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: &'p str,
    pub(crate) label: &'p str,
    pub(crate) help: Option<&'p str>,
}

impl Output {
    /// Prints the result.
    pub(crate) fn result(self, result: &(impl Serialize + Display)) -> Result<(), Fault> {
        let text = if self.json { self.object(result) } else { shown(&result.to_string()) };
        print(text.trim_end()).map(drop)
    }

    /// Prints one of many: an object, or a line. False: nobody reads any more.
    pub(crate) fn line(self, line: &(impl Serialize + Display)) -> Result<bool, Fault> {
        if self.json { print(&self.object(line)) } else { print(&shown(&line.to_string())) }
    }

    /// Prints text as it is; for people only.
    #[expect(clippy::unused_self, reason = "it is said to an output, as everything that is printed")]
    pub(crate) fn text(self, text: impl Display) -> Result<bool, Fault> {
        print(shown(&text.to_string()).trim_end_matches('\n'))
    }

    /// Says something beside the result: what was written, what to type next.
    pub(crate) fn say(self, words: impl Display) {
        match self.talk {
            Talk::Said => tell(words),
            Talk::Logged => tracing::info!("{words}"),
            Talk::Left => {}
        }
    }

    /// Whether somebody sits before it who can be asked.
    pub(crate) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks a person; without one, or a `--yes`, the answer is no.
    pub(crate) fn ask(self, question: impl Display) -> bool {
        if self.yes {
            return true;
        }
        if !Output::can_ask() {
            return false;
        }
        drop(write!(io::stderr().lock(), "{} [y/N] ", shown(&question.to_string())));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
    }

    /// From now on this is hidden in all that is printed.
    #[expect(clippy::unused_self, reason = "it is said to an output, as everything that is printed")]
    pub(crate) fn hide(self, redactor: Redactor) {
        hide(redactor);
    }

    /// Says what went wrong.
    pub(crate) fn fault(self, fault: &Fault, exit: Exit) {
        fault.redactor().into_iter().for_each(|redactor| self.hide(redactor.clone()));
        if self.json {
            let problems = fault.problems();
            let text = self.object(&Failure {
                error: fault.to_string(),
                exit_code: exit.code(),
                problems: &problems,
            });
            drop(print(&text));
        }
        if self.talk == Talk::Logged {
            tracing::error!(exit_code = exit.code(), "{fault}");
            return;
        }
        if let Some(drawn) = fault.drawn() {
            // With colours of its own, and of lines that are harmless already.
            drop(writeln!(anstream::stderr().lock(), "{}", hidden(&drawn)));
        }
        tell(format_args!("error: {fault}"));
    }

    fn object(self, result: &impl Serialize) -> String {
        let envelope = Envelope { schema_version: SCHEMA_VERSION, command: self.name, result };
        let text = serde_json::to_string(&envelope);
        shown_json(&text.unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")))
    }
}

/// Says what could not be understood of a command line, or what was asked about it.
pub(crate) fn misunderstood(error: &clap::Error) -> Exit {
    let is_fault = error.use_stderr();
    if is_fault && std::env::args_os().any(|argument| argument == "--json") {
        let words = error.render().to_string();
        let said = words.strip_prefix("error: ").unwrap_or(&words).trim_end().to_owned();
        let output = Output { name: "refrain", json: true, yes: false, talk: Talk::Said };
        let failure = Failure { error: said, exit_code: Exit::Usage.code(), problems: &[] };
        drop(print(&output.object(&failure)));
    }
    if is_fault {
        tell(error.render().to_string().trim_end());
        return Exit::Usage;
    }
    drop(error.print());
    Exit::Done
}

/// Hides the passwords of addresses that were typed, in whatever place: what cannot be understood is shown back.
pub(crate) fn hide_passwords_of(words: impl Iterator<Item = OsString>) {
    let texts = words.map(|word| word.to_string_lossy().into_owned());
    let passwords: Vec<Secret> = texts.flat_map(|text| passwords(&text)).collect();
    hide(Redactor::new(&passwords));
}

/// From now on this is hidden. Files that are read again have mostly the same secrets, and those are hidden already.
fn hide(redactor: Redactor) {
    if let Ok(mut hidden) = HIDDEN.write()
        && !hidden.iter().any(|known| known.covers(&redactor))
    {
        hidden.retain(|known| !redactor.covers(known));
        hidden.push(redactor);
    }
}

fn print(text: &str) -> Result<bool, Fault> {
    match writeln!(anstream::stdout().lock(), "{text}") {
        // Whoever read it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).map_err(Fault::Output),
    }
}

/// Nobody may be listening on stderr any more, and that changes nothing.
fn tell(words: impl Display) {
    drop(writeln!(anstream::stderr().lock(), "{}", shown(&words.to_string())));
}

/// The colours that marks are written in, and their end. Nothing else that a terminal acts on gets there.
const COLOURS: [&str; 6] =
    ["\u{1b}[0m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m", "\u{1b}[90m"];

/// A text as a terminal may get it: without secrets, and without anything that moves a cursor or turns a direction.
pub(crate) fn shown(text: &str) -> String {
    let text = hidden(text);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, from)) = rest.find('\u{1b}').and_then(|at| rest.split_at_checked(at)) {
        shown.push_str(&terminal::harmless(before));
        let colour = COLOURS.into_iter().find(|colour| from.starts_with(colour));
        shown.push_str(colour.unwrap_or("\u{fffd}"));
        rest = from.get(colour.map_or(1, str::len)..).unwrap_or_default();
    }
    shown.push_str(&terminal::harmless(rest));
    shown
}

/// The same for JSON: secrets are hidden in its texts, so that it stays JSON whatever a secret is, and what a terminal would
/// act on is escaped, so that it stays the same text. Keys and numbers are ours and stay.
pub(crate) fn shown_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, from)) = rest.find('"').and_then(|at| rest.split_at_checked(at)) {
        shown.push_str(before);
        let (literal, after) = from.split_at_checked(literal_end(from)).unwrap_or((from, ""));
        let is_key = after.starts_with(':');
        let text = serde_json::from_str::<String>(literal).ok().filter(|_| !is_key);
        let text = text.and_then(|text| serde_json::to_string(&hidden(&text)).ok());
        shown.push_str(text.as_deref().unwrap_or(literal));
        rest = after;
    }
    shown.push_str(rest);
    escaped(&shown)
}

/// Where the text ends that JSON begins with.
fn literal_end(json: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in json.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

/// JSON in which every letter that a terminal would act on is written as its number. They stand in texts only.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter != '\n' && terminal::acts(letter) {
            let _ = fmt::Write::write_fmt(&mut text, format_args!("\\u{:04x}", u32::from(letter)));
        } else {
            text.push(letter);
        }
    }
    text
}

/// The text without the secrets of the project.
pub(crate) fn hidden(text: &str) -> String {
    let Ok(hidden) = HIDDEN.read() else { return String::new() };
    hidden.iter().fold(text.to_owned(), |text, redactor| redactor.redact(&text).into_owned())
}

/// Whether stderr takes colours, as `NO_COLOR` and the terminal say.
pub(crate) fn is_colourful() -> bool {
    static COLOURFUL: OnceLock<bool> = OnceLock::new();
    *COLOURFUL.get_or_init(|| anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never)
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
        let Counts { ended, failed, cancelled, errored, skipped, deduplicated, .. } = counts;
        let processed = ended.saturating_sub(failed + cancelled);
        Four { processed, skipped, deduplicated, failed: failed + errored }
    }
}

impl From<UnitCounts> for Four {
    fn from(counts: UnitCounts) -> Four {
        let UnitCounts { processed, skipped, deduplicated, failed } = counts;
        Four { processed, skipped, deduplicated, failed }
    }
}

impl Four {
    /// Both together.
    pub(crate) fn with(self, other: Four) -> Four {
        Four {
            processed: self.processed + other.processed,
            skipped: self.skipped + other.skipped,
            deduplicated: self.deduplicated + other.deduplicated,
            failed: self.failed + other.failed,
        }
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
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line: String =
        lines.join("; ").chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    terminal::harmless(&line)
}

/// The same on as many lines as it has, each after the first indented.
pub(crate) fn harmless_lines(text: &str, indent: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| harmless(line.trim_end())).collect();
    lines.join(&format!("\n{indent}"))
}
