//! The command line: commands and options, and their `--help`. The arguments of a command are defined with the command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    audit, backup, cancel, check, checkpoint, completions, effects, enqueue, init, logs, man, migrate, next,
    once, pause, prune, reconcile, recover, retry, run, runs, serve, show, status, tick, trace, why,
};
use crate::person::Deciding;

const EXAMPLES: &str = "\
Examples:
  refrain init shop && cd shop                      a project with a first job
  refrain run hello                                 its latest window
  refrain run export@2026-06-09 --again             one more attempt of the same run
  refrain serve                                     open windows when they are due, and run them

Exit codes: 0 done, now or before; 1 failed or partial; 2 usage error, or an invalid file, permission or database URL;
4 an operator must decide; 75 the store is busy, full or unreachable: try the same command later; 124 timed out;
130 interrupted.";

const STORE: &str =
    "Use this store instead of the project's: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE";
const STORE_AT_LENGTH: &str = "\
Use this store instead of the project's: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE.

The default is the URL under [store] in refrain.toml, or sqlite:.refrain/refrain.db in the project. Other users can read a
password in the process list: set REFRAIN_STORE instead.";

/// Run it again. Nothing happens twice.
///
/// A scheduler, worker and ledger for jobs that will run more than once. Results go to stdout, messages to stderr.
#[derive(Parser)]
#[command(name = "refrain", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: RefrainCommand,
}

/// Options of every command.
#[derive(Args)]
pub(crate) struct Options {
    /// The project's folder, or a folder inside it; the default is the current directory.
    #[arg(short = 'C', long = "folder", global = true, value_name = "DIR", env = "REFRAIN_PROJECT")]
    pub(crate) folder: Option<PathBuf>,
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "REFRAIN_STORE",
        hide_env_values = true,
        help = STORE,
        long_help = STORE_AT_LENGTH
    )]
    pub(crate) store: Option<String>,
    /// Print JSON instead of text: one object, or one per line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only errors to stderr.
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Answer yes to every question.
    #[arg(long, global = true)]
    pub(crate) yes: bool,
}

#[derive(Subcommand)]
pub(crate) enum RefrainCommand {
    /// Create a project: refrain.toml and a first job.
    Init(init::Arguments),
    /// Read the project's files and list every problem in them.
    Check(check::Arguments),
    /// List the next windows of a job in its zone, with DST changes explained.
    Next(next::Arguments),
    /// Do one run now and wait for it. If it is done already, say when, and do nothing.
    Run(run::Arguments),
    /// Open the windows that are due, run them all, and exit: for cron and CI.
    Tick(tick::Arguments),
    /// Open windows when they are due and run them, until stopped.
    Serve(serve::Arguments),
    /// Queue a run by its key, once.
    Enqueue(enqueue::Arguments),
    /// Execute a command at most once for a key, however often it is called.
    Once(once::Arguments),
    /// List the decisions of operators, with who and why, newest first.
    Audit(audit::Arguments),
    /// List what an operator must decide: effects and calls without an answer, commands that were cut off. Or decide it.
    Effects(effects::Arguments),
    /// Show the state of every window: a grid of the newest, job by job.
    Status(status::Arguments),
    /// List runs of all jobs, newest first.
    Runs(runs::Arguments),
    /// Show everything recorded about one run.
    Show(show::Arguments),
    /// Show the output of a run's command.
    Logs(logs::Arguments),
    /// Show everything recorded about one key: a unit, an effect, a queued run.
    Trace(trace::Arguments),
    /// Explain why a run did or did not happen: the rule that decided.
    Why(why::Arguments),
    /// Try a run that is not done, or some of its units, again; or record that a doubt was done.
    Retry(retry::Arguments),
    /// Show, set or rewind how far jobs have read their sources.
    Checkpoint(checkpoint::Arguments),
    /// Read a source once more and compare it with the table of its units; exit code 1 if they differ.
    Reconcile(reconcile::Arguments),
    /// Cancel a run.
    Cancel(cancel::Arguments),
    /// Pause a job: none of its runs begins, and its windows are skipped with that reason.
    Pause(pause::Arguments),
    /// Resume a paused job.
    Resume(pause::Arguments),
    /// Create the tables of the store and the ledgers, or bring them up to date.
    Migrate(migrate::Arguments),
    /// Copy the store as it is now into a new file.
    Backup(backup::Arguments),
    /// Adopt databases after the store was lost, moved or restored.
    Recover(recover::Arguments),
    /// Check the store for inconsistencies; exit code 1 if there are any.
    Fsck,
    /// Delete payloads, messages and output of old runs; keys are kept.
    Prune(prune::Arguments),
    /// Print the JSON Schema of the project's files, for editors.
    Schema,
    /// Print completions for a shell.
    Completions(completions::Arguments),
    /// Print the manual, or write its pages.
    Man(man::Arguments),
}

impl RefrainCommand {
    /// The options that name the operator, if the command decides something.
    pub(crate) fn deciding(&self) -> Option<&Deciding> {
        match self {
            Self::Run(run::Arguments { deciding, .. })
            | Self::Retry(retry::Arguments { deciding, .. })
            | Self::Cancel(cancel::Arguments { deciding, .. })
            | Self::Pause(pause::Arguments { deciding, .. })
            | Self::Resume(pause::Arguments { deciding, .. })
            | Self::Migrate(migrate::Arguments { deciding, .. })
            | Self::Recover(recover::Arguments { deciding, .. })
            | Self::Prune(prune::Arguments { deciding, .. }) => Some(deciding),
            Self::Checkpoint(checkpoint::Arguments { verb }) => verb.deciding(),
            Self::Effects(effects::Arguments { verb, .. }) => verb.as_ref()?.deciding(),
            _ => None,
        }
    }

    /// Its name, as typed.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Init(_) => "init",
            Self::Check(_) => "check",
            Self::Next(_) => "next",
            Self::Run(_) => "run",
            Self::Tick(_) => "tick",
            Self::Serve(_) => "serve",
            Self::Enqueue(_) => "enqueue",
            Self::Once(_) => "once",
            Self::Audit(_) => "audit",
            Self::Effects(_) => "effects",
            Self::Status(_) => "status",
            Self::Runs(_) => "runs",
            Self::Show(_) => "show",
            Self::Logs(_) => "logs",
            Self::Trace(_) => "trace",
            Self::Why(_) => "why",
            Self::Retry(_) => "retry",
            Self::Checkpoint(_) => "checkpoint",
            Self::Reconcile(_) => "reconcile",
            Self::Cancel(_) => "cancel",
            Self::Pause(_) => "pause",
            Self::Resume(_) => "resume",
            Self::Migrate(_) => "migrate",
            Self::Backup(_) => "backup",
            Self::Recover(_) => "recover",
            Self::Fsck => "fsck",
            Self::Prune(_) => "prune",
            Self::Schema => "schema",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
        }
    }
}

#[cfg(test)]
mod tests;
