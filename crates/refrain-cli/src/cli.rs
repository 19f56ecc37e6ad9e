//! The command line: what can be typed, and what `--help` says of it.

use clap::{Args, Parser, Subcommand};
use jiff::Timestamp;

const EXAMPLES: &str = "\
Examples:
  refrain run noop#42                               do it, once
  refrain run noop-hourly@2026-06-09T14:00          the window that begins then
  refrain --store sqlite:trial.db fsck              another store
  REFRAIN_STORE=postgres://ada:secret@db/shop refrain serve

Two jobs are built in, and do nothing: `noop`, whose runs are keys, and `noop-hourly`, whose runs are the hours of UTC.

Exit codes: 0 done, also when it was done before; 1 failed; 2 wrong usage, or a file, a right or an address is wrong;
75 the store is busy, full or cannot be reached: the same command may work later; 130 interrupted.";

const STORE: &str = "Where runs are recorded: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE";
const STORE_AT_LENGTH: &str = "\
Where runs are recorded: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE.

Without it, sqlite:.refrain/refrain.db. Others can read a password in the list of processes: put such an address into the
environment instead.";

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
    /// Whose store it is; a store belongs to one project.
    #[arg(long, global = true, value_name = "NAME", default_value = "refrain")]
    pub(crate) project: String,
    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on stderr but errors.
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make the tables of the store, or bring them up to date.
    ///
    /// A SQLite store is kept up to date by every command. On PostgreSQL that is your decision, and this is how to say it.
    #[command(after_help = "Examples:\n  refrain migrate\n  refrain migrate --print > refrain.sql")]
    Migrate(Migrate),
    /// Look for what must not be in the store; exit code 1 if something is found.
    #[command(after_help = "Examples:\n  refrain fsck\n  refrain --store sqlite:trial.db --json fsck")]
    Fsck,
    /// Do one run now, here, and wait for it. Done already, it says when, and does nothing.
    #[command(after_help = "Examples:\n  refrain run noop#42\n  refrain run noop#42 --again\n  \
        refrain run noop-hourly@2026-06-09T14:00")]
    Run(Run),
    /// Open what is due, run all of it, and return: for cron and CI.
    #[command(after_help = "Examples:\n  refrain tick\n  \
        refrain --store sqlite:trial.db tick --now 2026-06-09T14:00:00Z")]
    Tick(Tick),
    /// Open windows when they are due and run them, until told to stop.
    ///
    /// The first SIGTERM or Ctrl-C lets what is under way end; the second gives it back to the queue and exits with 130.
    #[command(
        after_help = "Examples:\n  refrain serve\n  REFRAIN_STORE=postgres://ada:secret@db/shop refrain serve"
    )]
    Serve,
}

impl Command {
    /// What it is called.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Migrate(_) => "migrate",
            Self::Fsck => "fsck",
            Self::Run(_) => "run",
            Self::Tick(_) => "tick",
            Self::Serve => "serve",
        }
    }
}

#[derive(Args)]
pub(crate) struct Migrate {
    /// Print what would be done on PostgreSQL, as a script, and do nothing.
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Args)]
pub(crate) struct Run {
    /// JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    pub(crate) run: String,
    /// Make another attempt, even if it is done.
    #[arg(long)]
    pub(crate) again: bool,
}

#[derive(Args)]
pub(crate) struct Tick {
    /// The time that schedules read, as in 2026-06-09T14:00:00Z.
    ///
    /// It makes a new store simulated, for good. A store that has real runs refuses it, and `serve` refuses a simulated store.
    #[arg(long, value_name = "T", value_parser = instant)]
    pub(crate) now: Option<Timestamp>,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "write an instant, as in 2026-06-09T14:00:00Z".to_owned())
}
