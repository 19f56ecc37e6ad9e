//! The command line: what can be typed, and what `--help` says of it. What a command takes stands with the command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::{
    audit, backup, cancel, check, checkpoint, completions, effects, enqueue, init, logs, man, migrate, next,
    pause, prune, reconcile, recover, retry, run, runs, serve, show, status, tick, trace, why,
};
use crate::person::Deciding;

const EXAMPLES: &str = "\
Examples:
  refrain init shop && cd shop                      a project with a first job
  refrain run hello                                 its latest window, once
  refrain run export@2026-06-09 --again             one more attempt of the same run
  refrain serve                                     open windows when they are due, and run them

Exit codes: 0 done, also when it was done before; 1 failed or partial; 2 wrong usage, or a file, a right or an address is
wrong; 4 somebody must decide; 75 the store is busy, full or cannot be reached: the same command may work later; 124 it
took too long; 130 interrupted.";

const STORE: &str =
    "Another store than the project's: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE";
const STORE_AT_LENGTH: &str = "\
Another store than the project's: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE.

Without it, what refrain.toml says under [store], or sqlite:.refrain/refrain.db in the project. Others can read a password in
the list of processes: put such an address into the environment instead.";

/// Run it again. Nothing happens twice.
///
/// A scheduler, worker and ledger for jobs that will run more than once. Results are on stdout, talk is on stderr.
#[derive(Parser)]
#[command(name = "refrain", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args)]
pub(crate) struct Options {
    /// The folder of the project, or one inside it; the current directory unless said.
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
    /// Print JSON instead of text: one object, or one a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on stderr but errors.
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Answer every question with yes.
    #[arg(long, global = true)]
    pub(crate) yes: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a project: refrain.toml, and a first job.
    Init(init::Arguments),
    /// Read the files of the project, and say everything that is wrong with them.
    Check(check::Arguments),
    /// The coming windows of a job, in its zone; around a change of the clocks, what it does to them.
    Next(next::Arguments),
    /// Do one run now, here, and wait for it. Done already, it says when, and does nothing.
    Run(run::Arguments),
    /// Open what is due, run all of it, and return: for cron and CI.
    Tick(tick::Arguments),
    /// Open windows when they are due and run them, until told to stop.
    Serve(serve::Arguments),
    /// Queue a run by its key, once.
    Enqueue(enqueue::Arguments),
    /// What people have decided, and who and why: the newest first.
    Audit(audit::Arguments),
    /// Everything that waits for a person: calls without an answer, commands that were cut off.
    Effects(effects::Arguments),
    /// What became of every window: a grid of the newest, job by job.
    Status(status::Arguments),
    /// Runs of all jobs, newest first.
    Runs(runs::Arguments),
    /// Everything that is recorded of one run.
    Show(show::Arguments),
    /// What the command of a run has printed.
    Logs(logs::Arguments),
    /// Everything that is known of one key: a unit, an effect, a queued run.
    Trace(trace::Arguments),
    /// Why a run did or did not run: the key, the run, the rule that decided.
    Why(why::Arguments),
    /// Another attempt of a run that is not done, or of units in it; or say that what is in doubt was done.
    Retry(retry::Arguments),
    /// How far jobs have read their sources: show, set, rewind.
    Checkpoint(checkpoint::Arguments),
    /// Read a source once more and compare it with the table that its units went to; exit code 1 if they differ.
    Reconcile(reconcile::Arguments),
    /// Call a run off.
    Cancel(cancel::Arguments),
    /// Stop a job: nothing of it begins, and its windows are skipped with that reason.
    Pause(pause::Arguments),
    /// Allow a job again.
    Resume(pause::Arguments),
    /// Make the tables of the store and of the ledgers, or bring them up to date.
    Migrate(migrate::Arguments),
    /// Copy the store as it is at this moment into a new file.
    Backup(backup::Arguments),
    /// Let a new or restored store go on where another one was.
    Recover(recover::Arguments),
    /// Look for what must not be in the store; exit code 1 if something is found.
    Fsck,
    /// Forget the bodies of old runs: payloads, messages, output. Their keys stay for ever.
    Prune(prune::Arguments),
    /// The JSON Schema of the files, for editors.
    Schema,
    /// Completions for a shell.
    Completions(completions::Arguments),
    /// The manual pages.
    Man(man::Arguments),
}

impl Command {
    /// What was said of the person, if the command decides something.
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
            _ => None,
        }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Init(_) => "init",
            Self::Check(_) => "check",
            Self::Next(_) => "next",
            Self::Run(_) => "run",
            Self::Tick(_) => "tick",
            Self::Serve(_) => "serve",
            Self::Enqueue(_) => "enqueue",
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
