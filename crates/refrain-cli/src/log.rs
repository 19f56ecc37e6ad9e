//! What the library has to say, on stderr. Nobody else is heard: the database driver would print statements, and what
//! was bound to them.

use std::io::{self, Write};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::Command;
use crate::commands::serve::Log;
use crate::output::hidden;

/// Whether lines are objects.
pub(crate) fn is_json(command: &Command) -> bool {
    matches!(command, Command::Serve(arguments) if arguments.log == Log::Json)
}

/// Begins to print what is logged.
pub(crate) fn begin(command: &Command, is_quiet: bool) {
    let level = if is_quiet { LevelFilter::ERROR } else { LevelFilter::INFO };
    let mut targets = Targets::new().with_target("refrain", level);
    match command {
        // How the one attempt ended, and what it did, is what the command itself says.
        Command::Run(_) | Command::Retry(_) => {
            targets = targets.with_target("refrain::engine::executor", LevelFilter::ERROR);
            targets = targets.with_target("refrain::action", LevelFilter::WARN.min(level));
        }
        Command::Serve(_) => {}
        _ => targets = targets.with_target("refrain::engine::executor", level.min(LevelFilter::WARN)),
    }
    let lines = tracing_subscriber::fmt::layer().with_writer(Hiding::default).with_target(false);
    let lines = match command {
        command if is_json(command) => lines.json().flatten_event(true).boxed(),
        Command::Serve(_) | Command::Tick(_) => lines.boxed(),
        // Somebody sits before it, and knows what time it is.
        _ => lines.without_time().boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
}

/// Stderr, without the secrets of the project. A line is written whole when it is complete.
#[derive(Default)]
struct Hiding(Vec<u8>);

impl Write for Hiding {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = hidden(&String::from_utf8_lossy(&self.0));
        self.0.clear();
        io::stderr().lock().write_all(text.as_bytes())
    }
}

impl Drop for Hiding {
    fn drop(&mut self) {
        drop(self.flush());
    }
}
