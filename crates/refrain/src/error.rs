//! What can go wrong when the library is used.

pub(crate) mod checkpoint;

use refrain_core::state::RunOutcome;
use refrain_core::terminal::typed;
use refrain_core::{JobName, ParseError};

pub use crate::database::DatabaseError;
pub use crate::database::file_system::FileSystemError;
use crate::ledger::LedgerError;
pub use crate::store::StoreError;
pub use crate::store::jobs::JobNameTaken;
use crate::user_database::DatabaseUnavailable;

pub use checkpoint::CheckpointError;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name, key, duration or other text is invalid.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The store failed or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger in a database failed or refused.
    #[error(transparent)]
    Ledger(LedgerError),
    /// This process knows no such job.
    #[error("there is no job `{name}`{}", listed(.known))]
    UnknownJob {
        /// The requested name.
        name: JobName,
        /// The jobs of this process.
        known: Vec<JobName>,
    },
    /// A version is too high.
    #[error("version {0} is too high: the highest is 2147483647")]
    Version(u32),
    /// A decision that makes no sense for this kind of entry.
    #[error("`{verb}` makes no sense for {what}\n  {instead}")]
    Senseless {
        /// What the decision was about.
        what: String,
        /// The decision.
        verb: &'static str,
        /// What is possible instead.
        instead: String,
    },
    /// No effect has this key, or this version.
    #[error(
        "there is no effect `{0}`\n  what waits for a decision: refrain effects; everything about a key: refrain trace KEY"
    )]
    NoEffect(String),
    /// The job has no windows.
    #[error("`{0}` has no timetable, so it has no windows\n  name a key instead: {0}#KEY")]
    NoWindows(JobName),
    /// The job has only windows.
    #[error("`{0}` has a timetable: its runs are windows, not keys\n  name a window instead: {0}@2026-06-09")]
    NoKeys(JobName),
    /// The window is not over yet.
    #[error(
        "the window {window} is not over until {end}\n  a run now would count as done without the rest of the window"
    )]
    NotOver {
        /// The window's name.
        window: String,
        /// When it ends.
        end: jiff::Timestamp,
    },
    /// The window is before the first window of the job.
    #[error(
        "{run} is before the `start` of its job, {start}\n  to run it anyway, write an earlier `start` into the job's file, then use the same command"
    )]
    BeforeStart {
        /// The run.
        run: String,
        /// Where the job's windows begin.
        start: jiff::Timestamp,
    },
    /// No window of the job is over.
    #[error("no window of `{0}` is over yet\n  the next windows: refrain next {0}")]
    NoWindowYet(JobName),
    /// A job cannot have this name.
    #[error(transparent)]
    NameTaken(#[from] JobNameTaken),
    /// The job uses a database that the project does not name.
    #[error(
        "`{0}` has no database\n  name one in its file: database = \"NAME\", and in refrain.toml under [databases]"
    )]
    NoDatabase(JobName),
    /// A database of a job cannot be opened.
    #[error(transparent)]
    DatabaseUnavailable(#[from] DatabaseUnavailable),
    /// The ledger in a database that jobs write to failed or refused.
    #[error("the database `{name}`: {source}")]
    Destination {
        /// Its name in the project.
        name: String,
        /// The error.
        source: Box<LedgerError>,
    },
    /// The job has no units to compare with a table.
    #[error("`{0}` has no units\n  only a job with [unit] and [publish] can be reconciled")]
    NoUnits(JobName),
    /// The source and the table could not be compared.
    #[error("{0}\n  nothing was compared")]
    Unreconciled(String),
    /// There is no such run.
    #[error("there is no run `{0}` yet\n  to run it: refrain run {typed}; why it is missing: refrain why {typed}", typed = typed(.0))]
    NoRun(String),
    /// The window has no such scope.
    #[error(
        "there is no run `{0}`: a window has only the scopes that its own run has found\n  omit the scope to run the window"
    )]
    NoScope(String),
    /// The payload of the run was pruned.
    #[error(
        "the payload of `{0}` was pruned, and an attempt without it would do something else\n  enqueue it under a new key"
    )]
    Forgotten(String),
    /// The payload is not JSON, or too long.
    #[error(
        "the payload of `{key}` is invalid: {reason}\n  write JSON of a moderate length, as in '{{\"user_id\": 42}}'"
    )]
    Payload {
        /// The key of the payload.
        key: String,
        /// Why it is invalid.
        reason: String,
    },
    /// A checkpoint was not moved.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The run is done, so there is nothing to retry.
    #[error(
        "`{run}` is done, by attempt {attempt}, so there is nothing to retry\n  for another attempt anyway: refrain run {} --again", typed(.run)
    )]
    Done {
        /// The run.
        run: String,
        /// The attempt that did it.
        attempt: u64,
    },
    /// The run has ended, so there is nothing to cancel.
    #[error("`{run}` is {outcome} already, so there is nothing to cancel\n  how it ended: refrain show {}", typed(.run))]
    Ended {
        /// The run.
        run: String,
        /// How it ended.
        outcome: RunOutcome,
    },
    /// The run was never enqueued, and the job is about what a run was given.
    #[error(
        "`{job}#{key}` was never enqueued, and `{job}` needs a payload\n  refrain enqueue {job} --key {} --payload JSON", typed(.key)
    )]
    NeedsPayload {
        /// The job.
        job: JobName,
        /// The key.
        key: String,
    },
    /// The unit is not in a state about which an operator can decide.
    #[error("no unit `{unit}` of {run} is {was}\n  its state: refrain trace {}", typed(.unit))]
    NotParked {
        /// The run.
        run: String,
        /// The key of the unit.
        unit: String,
        /// What it would have to be: parked, or in doubt.
        was: &'static str,
    },
    /// No unit of the run is in doubt, so there is nothing to decide.
    #[error("no unit of {0} is in doubt\n  its state: refrain show {typed}", typed = typed(.0))]
    NothingInDoubt(String),
    /// No command of the run was cut off, so there is nothing to decide.
    #[error(
        "no command of `{run}` waits for a decision: the run is {state}\n  its details: refrain show {}; units in doubt: refrain retry {} --in-doubt --done", typed(.run), typed(.run)
    )]
    NotHeld {
        /// The run.
        run: String,
        /// Its state.
        state: String,
    },
    /// Its work cannot be done once more.
    #[error("the work of `{run}` cannot be repeated: {why}")]
    Unrepeatable {
        /// The run.
        run: String,
        /// Why, and what to do instead.
        why: String,
    },
    /// An attempt is queued or running that does not repeat what is done.
    #[error(
        "an attempt of `{run}` is {state}, so its work cannot be repeated now\n  finish that first: refrain run {}", typed(.run)
    )]
    StillOpen {
        /// The run.
        run: String,
        /// Its state.
        state: String,
    },
    /// The copy cannot be written.
    #[error("the backup {} cannot be written: {source}\n  name a file that does not exist, in a directory that does", .path.display())]
    Backup {
        /// The new file.
        path: std::path::PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Refrain does not copy a server.
    #[error(
        "a PostgreSQL store is backed up by the tools of its server\n  for example: pg_dump --schema=refrain --file=refrain.sql DATABASE"
    )]
    NoBackup,
    /// The state of the run does not allow it.
    #[error(transparent)]
    Refused(#[from] refrain_core::state::Refusal),
}

impl Error {
    /// Whether the same call may succeed later: the store is busy, unreachable or full.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Store(StoreError::Database(error)) => error.is_transient(),
            Self::Store(
                StoreError::ClocksApart { .. }
                | StoreError::OlderWorker { .. }
                | StoreError::TooEarly { .. }
                | StoreError::BeingSent { .. },
            ) => true,
            Self::Ledger(error) => error.is_transient(),
            Self::Destination { source, .. } => source.is_transient(),
            Self::DatabaseUnavailable(error) => error.is_transient(),
            _ => false,
        }
    }

    /// Whether an operator must decide before anything continues.
    pub fn is_for_a_person(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unsure(_)))
    }

    /// Whether the caller must change something: a name, a URL, a permission.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Store(StoreError::Database(error)) | Self::Ledger(LedgerError::Database(error)) => {
                matches!(
                    error,
                    DatabaseError::Refused(_)
                        | DatabaseError::ReadOnly(_)
                        | DatabaseError::File(_)
                        | DatabaseError::Replica
                        | DatabaseError::Pooler(_)
                )
            }
            Self::Checkpoint(error) => error.is_usage(),
            Self::Refused(_)
            | Self::Ended { .. }
            | Self::NotHeld { .. }
            | Self::StillOpen { .. }
            | Self::Unreconciled(_)
            | Self::Store(
                StoreError::Broken(_)
                | StoreError::Moved(_)
                | StoreError::Unsure(_)
                | StoreError::LoopEnded(_),
            ) => false,
            _ => true,
        }
    }
}

impl From<LedgerError> for Error {
    fn from(error: LedgerError) -> Error {
        match error {
            LedgerError::Store(error) => Error::Store(error),
            error => Error::Ledger(error),
        }
    }
}

impl From<DatabaseError> for Error {
    fn from(error: DatabaseError) -> Error {
        Error::Store(error.into())
    }
}

fn listed(names: &[JobName]) -> String {
    if names.is_empty() {
        return "\n  there are no jobs".to_owned();
    }
    let names: Vec<&str> = names.iter().map(JobName::as_str).collect();
    format!("\n  known jobs: {}", names.join(", "))
}
