//! What a command prints: its result on stdout, as text or as JSON, and messages on stderr.
//!
//! Objects are stable: fields are added and never change their meaning, or `schema_version` grows. A list is one object
//! per line, so that a long one is never held in memory. Secrets of the project are hidden everywhere.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::io::{self, IsTerminal as _, Write};
use std::sync::{OnceLock, RwLock};

use refrain::core::project::passwords;
use refrain::core::redact::{Redactor, Secret};
use refrain::core::terminal;
use serde::Serialize;

use crate::exit::{CliError, Exit};

const SCHEMA_VERSION: u32 = 1;

/// A secret stays hidden: reloaded files may not name it any more.
static HIDDEN: RwLock<Vec<Redactor>> = RwLock::new(Vec::new());

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// The name of the command.
    pub(crate) name: &'static str,
    pub(crate) json: bool,
    /// Whether every question is answered with yes.
    pub(crate) yes: bool,
    pub(crate) talk: Talk,
}

/// Where messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Talk {
    /// They are printed to stderr.
    Said,
    /// They are logged, so that every line on stderr is a JSON object.
    Logged,
    /// They are dropped.
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

/// A problem in a file, for programs.
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
    pub(crate) fn result(self, result: &(impl Serialize + Display)) -> Result<(), CliError> {
        let text = if self.json { self.object(result) } else { shown(&result.to_string()) };
        print(text.trim_end()).map(drop)
    }

    /// Prints an item of a list: an object, or a line. Returns false if the reader has closed the pipe.
    pub(crate) fn line(self, line: &(impl Serialize + Display)) -> Result<bool, CliError> {
        if self.json { print(&self.object(line)) } else { print(&shown(&line.to_string())) }
    }

    /// Prints text, without a JSON form.
    #[expect(clippy::unused_self, reason = "it is said to an output, as everything that is printed")]
    pub(crate) fn text(self, text: impl Display) -> Result<bool, CliError> {
        print(shown(&text.to_string()).trim_end_matches('\n'))
    }

    /// Prints a message: what was written, what to type next.
    pub(crate) fn say(self, words: impl Display) {
        match self.talk {
            Talk::Said => write_stderr(words),
            Talk::Logged => tracing::info!("{words}"),
            Talk::Left => {}
        }
    }

    /// Whether a question can be asked: both ends are a terminal.
    pub(crate) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Prints a result to stderr, for a command whose stdout belongs to another program. As text it may be left out.
    pub(crate) fn aside(self, result: &(impl Serialize + Display), is_quiet: bool) {
        if self.json {
            drop(writeln!(anstream::stderr().lock(), "{}", self.object(result)));
        } else if !is_quiet {
            self.say(result);
        }
    }

    /// Asks a question; without a terminal the answer is no, with `--yes` it is yes.
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

    /// Hides these secrets in all output from now on.
    #[expect(clippy::unused_self, reason = "it is said to an output, as everything that is printed")]
    pub(crate) fn hide(self, redactor: Redactor) {
        hide(redactor);
    }

    /// Prints an error.
    pub(crate) fn fault(self, fault: &CliError, exit: Exit) {
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
            // It has its own colours, and its lines are harmless already.
            drop(writeln!(anstream::stderr().lock(), "{}", hidden(&drawn)));
        }
        write_stderr(format_args!("error: {fault}"));
    }

    fn object(self, result: &impl Serialize) -> String {
        let envelope = Envelope { schema_version: SCHEMA_VERSION, command: self.name, result };
        let text = serde_json::to_string(&envelope);
        shown_json(&text.unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")))
    }
}

/// Prints a usage error, or the requested help.
pub(crate) fn misunderstood(error: &clap::Error) -> Exit {
    let is_fault = error.use_stderr();
    if is_fault && std::env::args_os().any(|argument| argument == "--json") {
        let words = error.render().to_string();
        let reported = words.strip_prefix("error: ").unwrap_or(&words).trim_end().to_owned();
        let output = Output { name: "refrain", json: true, yes: false, talk: Talk::Said };
        let failure = Failure { error: reported, exit_code: Exit::Usage.code(), problems: &[] };
        drop(print(&output.object(&failure)));
    }
    if is_fault {
        write_stderr(error.render().to_string().trim_end());
        return Exit::Usage;
    }
    drop(error.print());
    Exit::Done
}

/// Hides the passwords of URLs in the arguments, wherever they are: a usage error quotes the arguments.
pub(crate) fn hide_passwords_of(words: impl Iterator<Item = OsString>) {
    let texts = words.map(|word| word.to_string_lossy().into_owned());
    let passwords: Vec<Secret> = texts.flat_map(|text| passwords(&text)).collect();
    hide(Redactor::new(&passwords));
}

/// Hides these secrets from now on. Reloaded files mostly have the same secrets, which are hidden already.
fn hide(redactor: Redactor) {
    if let Ok(mut hidden) = HIDDEN.write()
        && !hidden.iter().any(|known| known.covers(&redactor))
    {
        hidden.retain(|known| !redactor.covers(known));
        hidden.push(redactor);
    }
}

fn print(text: &str) -> Result<bool, CliError> {
    match writeln!(anstream::stdout().lock(), "{text}") {
        // The reader has closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).map_err(CliError::Output),
    }
}

/// A closed stderr is not an error.
fn write_stderr(words: impl Display) {
    drop(writeln!(anstream::stderr().lock(), "{}", shown(&words.to_string())));
}

/// The colours of signs, and their reset. No other escape sequence reaches the terminal.
const COLOURS: [&str; 6] =
    ["\u{1b}[0m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m", "\u{1b}[90m"];

/// A text for the terminal: without secrets, and without anything that moves the cursor or reverses text.
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

/// JSON for the terminal. Secrets are hidden inside its strings, so that it stays JSON whatever a secret is, and control
/// characters are escaped, so that it stays the same JSON. Keys and numbers never hold user data.
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

/// Where the string ends that `json` begins with.
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

/// JSON in which every character that a terminal acts on is an escape. They occur in strings only.
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

/// User data on one line, harmless to a terminal.
pub(crate) fn harmless(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line: String =
        lines.join("; ").chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    terminal::harmless(&line)
}

/// User data on several lines, harmless to a terminal; all but the first line are indented.
pub(crate) fn harmless_lines(text: &str, indent: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| harmless(line.trim_end())).collect();
    lines.join(&format!("\n{indent}"))
}
