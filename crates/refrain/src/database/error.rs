//! What can go wrong at a database, sorted by what to do about it.
//!
//! The one distinction that matters: after a failed statement nothing of its transaction is there, and all of it may
//! be done again; after a failed *commit* it may be there or not ([`DatabaseError::Unknown`]), and whoever goes on
//! must first look. Every verb of the store is made so that looking is doing it again.

/// Why the database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// Another writer was faster, or held its lock for too long. Nothing was written; it can be done again at once.
    #[error("the database is busy: {0}")]
    Busy(String),
    /// The connection broke in the middle. Nothing was written.
    #[error("the connection to the database was lost: {0}\n  nothing of this step was written")]
    Lost(String),
    /// The connection broke while a commit was under way: it may have been made or not.
    #[error(
        "the answer to a commit was lost: {0}\n  it may have been written or not; doing it again finds out"
    )]
    Unknown(String),
    /// The lease under which it was to be written is over. Nothing was written.
    #[error(
        "the lease of this worker has expired, and another one may have taken over: nothing of this step was written"
    )]
    Expired,
    /// Nobody answers at the address.
    #[error("the store cannot be reached: {0}\n  is the server running, and is the address right?")]
    Unreachable(String),
    /// The server does not let us in.
    #[error("the store refuses us: {0}\n  check user, password and database in the address of the store")]
    Refused(String),
    /// We may read, but not write.
    #[error(
        "the store cannot be written: {0}\n  check the owner and the mode of the file and of its directory"
    )]
    ReadOnly(String),
    /// There is no room for more.
    #[error(
        "there is no room left for the store: {0}\n  nothing of this step was written; make room and do it again"
    )]
    Full(String),
    /// The file is damaged, or is something else.
    #[error("the store is damaged, or is not a SQLite file: {0}\n  restore a backup, or check the address")]
    Corrupt(String),
    /// The file may not be a store.
    #[error(transparent)]
    File(#[from] super::file_system::FileSystemError),
    /// The SQLite inside is too old to be trusted.
    #[error("SQLite {0} can corrupt its write-ahead log; 3.51.3 or newer is needed")]
    TooOld(String),
    /// A server that only repeats another one.
    #[error("this server is a replica and lags behind; the address of the store must be that of the primary")]
    Replica,
    /// A server that took writes before and does not take them now.
    #[error(
        "the server takes no writes: {0}\n  it is a replica, or set to read-only; the address must lead to the primary"
    )]
    Demoted(String),
    /// Statements prepared on one connection were wanted on another.
    #[error(
        "prepared statements get lost on the way to the server: {0}\n  a pooler is in between; add `?statement-cache-capacity=0` to the address"
    )]
    Pooler(String),
    /// A statement of the caller cannot be done at all, whatever it is about.
    #[error(
        "a statement cannot be done: {0}\n  check the tables and columns it names, and the rights to them"
    )]
    Statement(String),
    /// Something else; our fault, or the schema is not what it should be.
    #[error("the database says: {0}")]
    Other(#[source] sqlx::Error),
}

impl DatabaseError {
    /// Whether the same step may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Busy(_)
                | Self::Lost(_)
                | Self::Unknown(_)
                | Self::Unreachable(_)
                | Self::Demoted(_)
                | Self::Full(_)
        )
    }

    /// Whether the step is to be done again at once, for it is known or arranged to do no harm.
    pub(crate) fn is_worth_a_retry(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Lost(_) | Self::Unknown(_))
    }

    /// Whether a row was found that holds something other than its columns can: only that row is at fault.
    pub(crate) fn is_undecodable(&self) -> bool {
        matches!(self, Self::Other(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)))
    }

    /// Whether the connection that said so is not to be used again: it is gone, it leads to the wrong server, or it has met an
    /// error of the disk, after which SQLite and its driver may disagree whether a transaction is open.
    pub(crate) fn spoils_its_connection(&self) -> bool {
        matches!(
            self,
            Self::Lost(_)
                | Self::Unknown(_)
                | Self::Unreachable(_)
                | Self::Demoted(_)
                | Self::Full(_)
                | Self::Corrupt(_)
        )
    }

    /// The same fault, if the step is to be done again at once.
    pub(crate) fn again(&self) -> Option<DatabaseError> {
        match self {
            Self::Busy(said) => Some(Self::Busy(said.clone())),
            Self::Lost(said) => Some(Self::Lost(said.clone())),
            Self::Unknown(said) => Some(Self::Unknown(said.clone())),
            _ => None,
        }
    }

    /// What an error of the driver is, if it says nothing about the rows that were to be written: another one may have been
    /// in the way, the connection may be gone, a table, a right or room may be missing.
    pub(crate) fn beyond_the_rows(error: &sqlx::Error) -> Option<DatabaseError> {
        match error {
            sqlx::Error::Database(fault) => {
                let (code, text) = (fault.code(), fault.message().to_owned());
                let code = code.as_deref()?;
                match sorted(code) {
                    Sort::Busy => Some(Self::Busy(text)),
                    Sort::Lost | Sort::Unknown => Some(Self::Lost(text)),
                    Sort::Full => Some(Self::Full(text)),
                    Sort::Unreachable => Some(Self::Unreachable(text)),
                    Sort::Demoted => Some(Self::Demoted(text)),
                    Sort::Refused => Some(Self::Refused(text)),
                    Sort::ReadOnly => Some(Self::ReadOnly(text)),
                    Sort::Corrupt => Some(Self::Corrupt(text)),
                    Sort::Pooler => Some(Self::Pooler(text)),
                    // A statement that cannot be understood, or that somebody ended; 1 is SQLite's word for it.
                    Sort::Other if code == "1" || code == "57014" || code.starts_with("42") => {
                        Some(Self::Statement(text))
                    }
                    Sort::Other => None,
                }
            }
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
                Some(Self::Lost(error.to_string()))
            }
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => Some(Self::Unreachable(error.to_string())),
            _ => None,
        }
    }

    /// The same fault, met while a commit was under way.
    pub(crate) fn of_commit(self) -> DatabaseError {
        match self {
            Self::Lost(what) | Self::Unreachable(what) => Self::Unknown(what),
            other => other,
        }
    }
}

impl From<sqlx::Error> for DatabaseError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(fault) => {
                let text = fault.message().to_owned();
                match fault.code().as_deref().map(sorted) {
                    Some(Sort::Busy) => Self::Busy(text),
                    Some(Sort::Lost) => Self::Lost(text),
                    Some(Sort::Unknown) => Self::Unknown(text),
                    Some(Sort::Unreachable) => Self::Unreachable(text),
                    Some(Sort::Demoted) => Self::Demoted(text),
                    Some(Sort::Refused) => Self::Refused(text),
                    Some(Sort::ReadOnly) => Self::ReadOnly(text),
                    Some(Sort::Full) => Self::Full(text),
                    Some(Sort::Corrupt) => Self::Corrupt(text),
                    Some(Sort::Pooler) => Self::Pooler(text),
                    // The limit of a statement of ours: it waited for a lock, or the server was too slow.
                    Some(Sort::Other) if fault.code().as_deref() == Some("57014") => Self::Busy(text),
                    Some(Sort::Other) | None => Self::Other(error),
                }
            }
            sqlx::Error::Io(fault) => match fault.kind() {
                std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound => {
                    Self::Unreachable(fault.to_string())
                }
                _ => Self::Lost(fault.to_string()),
            },
            sqlx::Error::PoolTimedOut => Self::Unreachable("no connection became free in time".to_owned()),
            sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed | sqlx::Error::PoolClosed => {
                Self::Lost(error.to_string())
            }
            sqlx::Error::BeginFailed => Self::Lost("the server did not begin a transaction".to_owned()),
            sqlx::Error::Tls(fault) => Self::Unreachable(format!(
                "{fault}\n  a password is sent to other machines under TLS only; if you trust the network, add `?sslmode=disable` to \
                 the address"
            )),
            _ => Self::Other(error),
        }
    }
}

/// The same as [`DatabaseError::spoils_its_connection`], of an error of the driver.
pub(super) fn spoils(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(fault) => matches!(
            fault.code().as_deref().map(sorted),
            Some(Sort::Lost | Sort::Unknown | Sort::Unreachable | Sort::Demoted | Sort::Full | Sort::Corrupt)
        ),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_) | sqlx::Error::WorkerCrashed => {
            true
        }
        _ => false,
    }
}

enum Sort {
    Busy,
    Lost,
    Unknown,
    Unreachable,
    Demoted,
    Refused,
    ReadOnly,
    Full,
    Corrupt,
    Pooler,
    Other,
}

/// By the code: five characters from PostgreSQL, a number from SQLite (whose low byte is the kind).
fn sorted(code: &str) -> Sort {
    if let Some(number) = code.parse::<u32>().ok().filter(|_| code.len() < 5) {
        return match number & 0xff {
            // The memory that readers and writers share is a file too, and had no room to grow.
            _ if number == 4874 => Sort::Full,
            5 | 6 => Sort::Busy,
            8 | 14 => Sort::ReadOnly,
            10 => Sort::Lost,
            11 | 26 => Sort::Corrupt,
            13 => Sort::Full,
            _ => Sort::Other,
        };
    }
    match code {
        "40001" | "40P01" | "55P03" => Sort::Busy,
        "25006" => Sort::Demoted,
        "08007" | "40003" => Sort::Unknown,
        "25P03" | "57P05" | "57P01" | "57P02" | "08003" | "08006" | "08P01" => Sort::Lost,
        "57P03" | "53300" | "08001" | "08004" => Sort::Unreachable,
        "28P01" | "28000" | "3D000" | "42501" => Sort::Refused,
        "26000" | "42P05" => Sort::Pooler,
        _ if code.starts_with("53") => Sort::Full,
        "XX001" | "XX002" => Sort::Corrupt,
        _ => Sort::Other,
    }
}
