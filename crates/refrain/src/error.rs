//! What can go wrong when the library is used.

use refrain_core::terminal::typed;
use refrain_core::{JobName, ParseError};

use crate::database::DatabaseError;
use crate::ledger::LedgerError;
use crate::project::Unopened;
use crate::refrain::CheckpointError;
use crate::store::StoreError;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was written cannot be read.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger in a destination said no.
    #[error(transparent)]
    Ledger(LedgerError),
    /// There is no such job here.
    #[error("there is no job `{name}`{}", listed(.known))]
    UnknownJob {
        /// What was asked for.
        name: JobName,
        /// The jobs that are known.
        known: Vec<JobName>,
    },
    /// The job has no windows.
    #[error("`{0}` has no timetable, so it has no windows\n  name a key instead: {0}#KEY")]
    NoWindows(JobName),
    /// The job has only windows.
    #[error("`{0}` has a timetable: its runs are windows, not keys\n  name a window instead: {0}@2026-06-09")]
    NoKeys(JobName),
    /// The window is not over yet.
    #[error(
        "the window {window} ends at {end}, and is not over yet\n  run now, it would count as done without the rest of it"
    )]
    NotOver {
        /// The window's name.
        window: String,
        /// When it ends.
        end: jiff::Timestamp,
    },
    /// The window lies before the first one that the job is to have.
    #[error(
        "{run} lies before the `start` of its job, {start}, and has no row\n  to have it all the same, write an earlier `start` in the job's file; the same command runs it then"
    )]
    BeforeStart {
        /// The run.
        run: String,
        /// Where the job's windows begin.
        start: jiff::Timestamp,
    },
    /// No window of the job is over.
    #[error("no window of `{0}` is over yet\n  see when the first one is: refrain next {0}")]
    NoWindowYet(JobName),
    /// A job cannot have its name.
    #[error(transparent)]
    NameTaken(#[from] crate::store::jobs::NameTaken),
    /// The job speaks to a database that is not named in the project.
    #[error(
        "`{0}` has no database\n  name one in its file: database = \"NAME\", and in refrain.toml under [databases]"
    )]
    NoDatabase(JobName),
    /// A database that jobs speak to cannot be opened.
    #[error(transparent)]
    Unopened(#[from] Unopened),
    /// The ledger in a database that jobs write to said no.
    #[error("the database `{name}`: {source}")]
    Destination {
        /// What the project calls it.
        name: String,
        /// What is wrong with it.
        source: Box<LedgerError>,
    },
    /// The job has no units that could be compared with a table.
    #[error("`{0}` is not about units\n  a job whose file has [unit] and [publish] can be reconciled")]
    NoUnits(JobName),
    /// A source could not be compared with its table.
    #[error("{0}\n  nothing was compared")]
    Unreconciled(String),
    /// There is no such run.
    #[error("there is no run `{0}` yet\n  do it: refrain run {typed}; why it is not there: refrain why {typed}", typed = typed(.0))]
    NoRun(String),
    /// The window has no such scope.
    #[error(
        "there is no run `{0}`: the scopes of a window are those that its own run found\n  leave out the scope to run the window"
    )]
    NoScope(String),
    /// What the run was given is not kept any more.
    #[error(
        "what `{0}` was given is not kept any more, and another attempt without it would do something else\n  enqueue it under a new key"
    )]
    Forgotten(String),
    /// The payload is no JSON, or too much of it.
    #[error(
        "the payload of `{key}` cannot be taken: {reason}\n  write JSON of a moderate length, as in '{{\"user_id\": 42}}'"
    )]
    Payload {
        /// Whose payload.
        key: String,
        /// Why not.
        reason: String,
    },
    /// A checkpoint was not moved.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The run is done, so there is nothing to try again.
    #[error(
        "`{run}` is done, by attempt {attempt}, so there is nothing to try again\n  another attempt all the same: refrain run {} --again", typed(.run)
    )]
    Done {
        /// The run.
        run: String,
        /// Which attempt did it.
        attempt: u64,
    },
    /// A unit is not where a person could say anything of it.
    #[error("no unit `{unit}` of {run} is {was}\n  what became of it: refrain trace {}", typed(.unit))]
    NotParked {
        /// The run.
        run: String,
        /// The key of the unit.
        unit: String,
        /// What it would have to be: parked, or in doubt.
        was: &'static str,
    },
    /// No command of the run was cut off, so a person has nothing to say of it.
    #[error(
        "no command of `{run}` waits for a person's word: it is {state}\n  what became of it: refrain show {}; units in doubt: refrain retry {} --in-doubt --done", typed(.run), typed(.run)
    )]
    NotHeld {
        /// The run.
        run: String,
        /// How it stands.
        state: String,
    },
    /// An attempt is queued or running, and would not do again what is done.
    #[error(
        "an attempt of `{run}` is {state}, so its work is not asked for once more\n  see it through first: refrain run {}", typed(.run)
    )]
    StillOpen {
        /// The run.
        run: String,
        /// How it stands.
        state: String,
    },
    /// The copy cannot be written.
    #[error("the backup {} cannot be written: {source}\n  name a file that does not exist, in a directory that does", .path.display())]
    Backup {
        /// Where it was to be.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A server is not copied by us.
    #[error(
        "a PostgreSQL store is backed up by the tools of its server\n  for example: pg_dump --schema=refrain --file=refrain.sql DATABASE"
    )]
    NoBackup,
    /// The run cannot do that where it stands.
    #[error(transparent)]
    Refused(#[from] refrain_core::state::Refusal),
}

impl Error {
    /// Whether the same may succeed a moment later: the store is busy, away or full.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Store(StoreError::Database(error)) => error.is_transient(),
            Self::Store(StoreError::ClocksApart { .. }) => true,
            Self::Ledger(error) => error.is_transient(),
            Self::Destination { source, .. } => source.is_transient(),
            Self::Unopened(error) => error.is_transient(),
            _ => false,
        }
    }

    /// Whether nothing goes on before a person has said something.
    pub fn is_for_a_person(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unsure(_)))
    }

    /// Whether the person who asked must change something: a name, an address, a right.
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
            Self::Refused(_)
            | Self::NotHeld { .. }
            | Self::StillOpen { .. }
            | Self::Checkpoint(_)
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
        return "\n  no job is known here".to_owned();
    }
    let names: Vec<&str> = names.iter().map(JobName::as_str).collect();
    format!("\n  known are: {}", names.join(", "))
}
