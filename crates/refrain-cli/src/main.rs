//! The `refrain` command: parse, act, and turn the outcome into an exit code.
#![forbid(unsafe_code)]

mod arguments;
mod cli;
mod commands;
mod context;
mod decision_line;
mod doubts;
mod exit;
mod health;
mod left_out;
mod log;
mod output;
mod person;
mod problems;
mod progress;
mod reload;
mod report;
mod run_line;
mod run_report;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use cli::{Arguments, Command};
use context::Context;
use exit::{Exit, Fault};
use output::{Output, Talk};
use person::Deciding;

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
    let context = Context { folder: options.folder, store: options.store, output, person };
    let done = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let done = runtime.block_on(act(&context, command));
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

async fn act(context: &Context, command: Command) -> Result<Exit, Fault> {
    match command {
        Command::Init(arguments) => commands::init::init(context, &arguments),
        Command::Check(arguments) => commands::check::check(context, &arguments),
        Command::Next(arguments) => commands::next::next(context, &arguments),
        Command::Run(arguments) => commands::run::run(context, &arguments).await,
        Command::Tick(arguments) => commands::tick::tick(context, &arguments).await,
        Command::Serve(arguments) => commands::serve::serve(context, &arguments).await,
        Command::Enqueue(arguments) => commands::enqueue::enqueue(context, &arguments).await,
        Command::Audit(arguments) => commands::audit::audit(context, &arguments).await,
        Command::Effects(arguments) => commands::effects::effects(context, &arguments).await,
        Command::Status(arguments) => commands::status::status(context, &arguments).await,
        Command::Runs(arguments) => commands::runs::runs(context, &arguments).await,
        Command::Show(arguments) => commands::show::show(context, &arguments).await,
        Command::Logs(arguments) => commands::logs::logs(context, &arguments).await,
        Command::Trace(arguments) => commands::trace::trace(context, &arguments).await,
        Command::Why(arguments) => commands::why::why(context, &arguments).await,
        Command::Retry(arguments) => commands::retry::retry(context, &arguments).await,
        Command::Checkpoint(arguments) => commands::checkpoint::checkpoint(context, &arguments).await,
        Command::Reconcile(arguments) => commands::reconcile::reconcile(context, &arguments).await,
        Command::Cancel(arguments) => commands::cancel::cancel(context, &arguments).await,
        Command::Pause(arguments) => commands::pause::pause(context, &arguments).await,
        Command::Resume(arguments) => commands::pause::resume(context, &arguments).await,
        Command::Migrate(arguments) => commands::migrate::migrate(context, &arguments).await,
        Command::Backup(arguments) => commands::backup::backup(context, &arguments).await,
        Command::Recover(arguments) => commands::recover::recover(context, &arguments).await,
        Command::Fsck => commands::fsck::fsck(context).await,
        Command::Prune(arguments) => commands::prune::prune(context, &arguments).await,
        Command::Schema => commands::schema::schema(context),
        Command::Completions(arguments) => commands::completions::completions(context, &arguments),
        Command::Man(arguments) => commands::man::man(context, &arguments),
    }
}
