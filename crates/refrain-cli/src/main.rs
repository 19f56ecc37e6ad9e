//! The `refrain` command: parse, act, and turn the outcome into an exit code.
#![forbid(unsafe_code)]

mod built_in;
mod cli;
mod commands;
mod exit;
mod output;
mod signals;
mod store;

use std::process::ExitCode;

use clap::Parser;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use cli::{Arguments, Command};
use output::Output;
use store::Named;

fn main() -> ExitCode {
    // Before all else: a supervisor is started for every command, and needs nothing of what follows.
    refrain::supervise();
    commanded()
}

#[tokio::main]
async fn commanded() -> ExitCode {
    let Arguments { options, command } = Arguments::parse();
    log(options.quiet);
    let output = Output { name: command.name(), json: options.json, quiet: options.quiet };
    let named = Named { store: options.store, project: options.project, output };
    let done = match command {
        Command::Migrate(arguments) => commands::migrate::migrate(&named, &arguments).await,
        Command::Fsck => commands::fsck::fsck(&named).await,
        Command::Run(arguments) => commands::run::run(&named, &arguments).await,
        Command::Tick(arguments) => commands::tick::tick(&named, &arguments).await,
        Command::Serve => commands::serve::serve(&named).await,
    };
    let exit = done.unwrap_or_else(|fault| {
        let exit = fault.exit();
        output.fault(&fault, exit);
        exit
    });
    exit.into()
}

/// What the library has to say, on stderr. Nobody else is heard: the database driver would print statements, and what
/// was bound to them.
fn log(is_quiet: bool) {
    let level = if is_quiet { LevelFilter::ERROR } else { LevelFilter::INFO };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    tracing_subscriber::registry().with(lines).with(Targets::new().with_target("refrain", level)).init();
}
