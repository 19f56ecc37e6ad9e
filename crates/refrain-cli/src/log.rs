//! The log of the library, on stderr. Other targets are dropped: the database driver would log statements and their
//! values.

use std::io::{self, Write};

use refrain::core::terminal;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::RefrainCommand;
use crate::commands::serve::LogFormat;
use crate::output::{hidden, shown_json};

/// Whether lines are JSON objects.
pub(crate) fn is_json(command: &RefrainCommand) -> bool {
    matches!(command, RefrainCommand::Serve(arguments) if arguments.log == LogFormat::Json)
}

/// Installs the subscriber.
pub(crate) fn begin(command: &RefrainCommand, is_quiet: bool) {
    let level = if is_quiet { LevelFilter::ERROR } else { LevelFilter::INFO };
    let mut targets = Targets::new().with_target("refrain", level);
    match command {
        // The command itself reports how its one attempt ended.
        RefrainCommand::Run(_) | RefrainCommand::Retry(_) => {
            targets = targets.with_target("refrain::engine::executor", LevelFilter::ERROR);
            targets = targets.with_target("refrain::action", LevelFilter::WARN.min(level));
        }
        RefrainCommand::Serve(_) => {}
        _ => targets = targets.with_target("refrain::engine::executor", level.min(LevelFilter::WARN)),
    }
    let is_json = is_json(command);
    let writer = move || Hiding { is_json, line: Vec::new() };
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false);
    let lines = match command {
        _ if is_json => lines.json().flatten_event(true).boxed(),
        RefrainCommand::Serve(_) | RefrainCommand::Tick(_) => lines.boxed(),
        // An interactive command needs no timestamps.
        _ => lines.without_time().boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
}

/// Stderr without the secrets of the project. Each line is written as a whole.
struct Hiding {
    is_json: bool,
    line: Vec<u8>,
}

impl Write for Hiding {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = String::from_utf8_lossy(&self.line);
        // The formatter has escaped control characters, except its own colours.
        let text = if self.is_json { shown_json(&line) } else { straight(&hidden(&line)) };
        self.line.clear();
        io::stderr().lock().write_all(text.as_bytes())
    }
}

impl Drop for Hiding {
    fn drop(&mut self) {
        drop(self.flush());
    }
}

/// The line without characters that reverse the direction of text or hide it.
fn straight(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for part in line.split_inclusive(terminal::disguises) {
        let is_turned = |letter: &char| terminal::disguises(*letter);
        let turned = part.chars().next_back().filter(is_turned);
        shown.push_str(part.strip_suffix(terminal::disguises).unwrap_or(part));
        shown.extend(turned.map(|letter| terminal::harmless(&letter.to_string())));
    }
    shown
}
