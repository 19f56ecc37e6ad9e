//! The `refrain` command: parse, act, and turn the outcome into an exit code.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod decision_line;
mod doubts;
mod exit;
mod health;
mod left_out;
mod log;
mod output;
mod person;
mod place;
mod problems;
mod progress;
mod reload;
mod run_line;
mod run_report;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use cli::{Arguments, Command};
use exit::{Exit, Fault};
use output::{Output, Talk};
use person::Deciding;
use place::Place;

fn main() -> ExitCode {
    // Before all else, and in the supervisor too: it holds the secrets of the command that it executes, and then executes
    // commands of other jobs.
    refrain::keep_memory_private();
    refrain::supervise();
    let environment = ["REFRAIN_STORE", "REFRAIN_PROJECT"].into_iter().filter_map(std::env::var_os);
    output::hide_passwords_of(std::env::args_os().chain(environment));
    let Arguments { options, command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::misunderstood(&error).into(),
    };
    let talk = match () {
        () if log::is_json(&command) => Talk::Logged,
        () if options.quiet => Talk::Left,
        () => Talk::Said,
    };
    let output = Output { name: command.name(), json: options.json, yes: options.yes, talk };
    log::begin(&command, options.quiet);
    let person = match command.deciding().map(Deciding::person).transpose() {
        Ok(person) => person,
        Err(fault) => {
            output.fault(&fault, fault.exit());
            return fault.exit().into();
        }
    };
    let place = Place { folder: options.folder, store: options.store, output, person };
    let done = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let done = runtime.block_on(act(&place, command));
            // Files that are still being read keep nobody from leaving.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(Fault::Signals(error)),
    };
    let exit = done.unwrap_or_else(|fault| {
        let exit = fault.exit();
        output.fault(&fault, exit);
        exit
    });
    exit.into()
}

async fn act(place: &Place, command: Command) -> Result<Exit, Fault> {
    match command {
        Command::Init(arguments) => commands::init::init(place, &arguments),
        Command::Check(arguments) => commands::check::check(place, &arguments),
        Command::Next(arguments) => commands::next::next(place, &arguments),
        Command::Run(arguments) => commands::run::run(place, &arguments).await,
        Command::Tick(arguments) => commands::tick::tick(place, &arguments).await,
        Command::Serve(arguments) => commands::serve::serve(place, &arguments).await,
        Command::Enqueue(arguments) => commands::enqueue::enqueue(place, &arguments).await,
        Command::Audit(arguments) => commands::audit::audit(place, &arguments).await,
        Command::Effects(arguments) => commands::effects::effects(place, &arguments).await,
        Command::Status(arguments) => commands::status::status(place, &arguments).await,
        Command::Runs(arguments) => commands::runs::runs(place, &arguments).await,
        Command::Show(arguments) => commands::show::show(place, &arguments).await,
        Command::Logs(arguments) => commands::logs::logs(place, &arguments).await,
        Command::Trace(arguments) => commands::trace::trace(place, &arguments).await,
        Command::Why(arguments) => commands::why::why(place, &arguments).await,
        Command::Retry(arguments) => commands::retry::retry(place, &arguments).await,
        Command::Checkpoint(arguments) => commands::checkpoint::checkpoint(place, &arguments).await,
        Command::Reconcile(arguments) => commands::reconcile::reconcile(place, &arguments).await,
        Command::Cancel(arguments) => commands::cancel::cancel(place, &arguments).await,
        Command::Pause(arguments) => commands::pause::pause(place, &arguments).await,
        Command::Resume(arguments) => commands::pause::resume(place, &arguments).await,
        Command::Migrate(arguments) => commands::migrate::migrate(place, &arguments).await,
        Command::Backup(arguments) => commands::backup::backup(place, &arguments).await,
        Command::Recover(arguments) => commands::recover::recover(place, &arguments).await,
        Command::Fsck => commands::fsck::fsck(place).await,
        Command::Prune(arguments) => commands::prune::prune(place, &arguments).await,
        Command::Schema => commands::schema::schema(place),
        Command::Completions(arguments) => commands::completions::completions(place, &arguments),
        Command::Man(arguments) => commands::man::man(place, &arguments),
    }
}
