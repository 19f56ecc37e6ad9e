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

use cli::{Arguments, RefrainCommand};
use context::{Context, Looks};
use exit::{CliError, Exit};
use output::{Output, Talk};
use person::Deciding;

fn main() -> ExitCode {
    // Before all else, and in the supervisor too: it holds the secrets of the command that it executes, and then executes
    // commands of other jobs.
    refrain::host::keep_memory_private();
    refrain::host::supervise();
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
    let (folder, store, looks) = (options.folder, options.store, Looks::default());
    let context = Context { folder, store, output, person, looks };
    let done = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let done = runtime.block_on(async {
                let done = act(&context, command).await;
                context.looks.close().await;
                done
            });
            // Reads of files that are still in progress do not keep the process alive.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(CliError::Signals(error)),
    };
    let exit = done.unwrap_or_else(|fault| {
        let exit = fault.exit();
        output.fault(&fault, exit);
        exit
    });
    exit.into()
}

async fn act(context: &Context, command: RefrainCommand) -> Result<Exit, CliError> {
    match command {
        RefrainCommand::Init(arguments) => commands::init::init(context, &arguments),
        RefrainCommand::Check(arguments) => commands::check::check(context, &arguments),
        RefrainCommand::Next(arguments) => commands::next::next(context, &arguments),
        RefrainCommand::Run(arguments) => commands::run::run(context, &arguments).await,
        RefrainCommand::Tick(arguments) => commands::tick::tick(context, &arguments).await,
        RefrainCommand::Serve(arguments) => commands::serve::serve(context, &arguments).await,
        RefrainCommand::Enqueue(arguments) => commands::enqueue::enqueue(context, &arguments).await,
        RefrainCommand::Once(arguments) => commands::once::once(context, &arguments).await,
        RefrainCommand::Audit(arguments) => commands::audit::audit(context, &arguments).await,
        RefrainCommand::Effects(arguments) => commands::effects::effects(context, &arguments).await,
        RefrainCommand::Status(arguments) => commands::status::status(context, &arguments).await,
        RefrainCommand::Runs(arguments) => commands::runs::runs(context, &arguments).await,
        RefrainCommand::Show(arguments) => commands::show::show(context, &arguments).await,
        RefrainCommand::Logs(arguments) => commands::logs::logs(context, &arguments).await,
        RefrainCommand::Trace(arguments) => commands::trace::trace(context, &arguments).await,
        RefrainCommand::Why(arguments) => commands::why::why(context, &arguments).await,
        RefrainCommand::Retry(arguments) => commands::retry::retry(context, &arguments).await,
        RefrainCommand::Checkpoint(arguments) => commands::checkpoint::checkpoint(context, &arguments).await,
        RefrainCommand::Reconcile(arguments) => commands::reconcile::reconcile(context, &arguments).await,
        RefrainCommand::Cancel(arguments) => commands::cancel::cancel(context, &arguments).await,
        RefrainCommand::Pause(arguments) => commands::pause::pause(context, &arguments).await,
        RefrainCommand::Resume(arguments) => commands::pause::resume(context, &arguments).await,
        RefrainCommand::Migrate(arguments) => commands::migrate::migrate(context, &arguments).await,
        RefrainCommand::Backup(arguments) => commands::backup::backup(context, &arguments).await,
        RefrainCommand::Recover(arguments) => commands::recover::recover(context, &arguments).await,
        RefrainCommand::Fsck => commands::fsck::fsck(context).await,
        RefrainCommand::Prune(arguments) => commands::prune::prune(context, &arguments).await,
        RefrainCommand::Schema => commands::schema::schema(context),
        RefrainCommand::Completions(arguments) => commands::completions::completions(context, &arguments),
        RefrainCommand::Man(arguments) => commands::man::man(context, &arguments),
    }
}
