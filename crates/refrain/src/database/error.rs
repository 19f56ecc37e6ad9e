//! Errors of a database, sorted by what the caller should do.
//!
//! The one distinction that matters: after a failed statement nothing of its transaction was written, and all
//! of it may be repeated; after a failed *commit* it may have been written or not
//! ([`DatabaseError::Unknown`]), and the caller must look before it continues. Every verb of the store is
//! idempotent, so that repeating it is the look.

/// Why the database did not do what the caller requested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// Another writer was faster, or held its lock for too long. Nothing was written; the step can be
    /// repeated at once.
    #[error("the database is busy: {0}")]
    Busy(String),
    /// The connection broke before the commit. Nothing was written.
    #[error("the connection to the database was lost: {0}\n  nothing of this step was written")]
    Lost(String),
    /// The connection broke while a commit was in flight: it may have been written or not.
    #[error(
        "the answer to a commit was lost: {0}\n  it may have been written or not; repeat the step to find out"
    )]
    Unknown(String),
    /// The lease that the step needs has expired. Nothing was written.
    #[error(
        "the lease of this worker has expired, and another one may have taken over: nothing of this step was written"
    )]
    Expired,
    /// No server answers at the URL.
    #[error("the store cannot be reached: {0}\n  is the server running, and is the URL correct?")]
    Unreachable(String),
    /// The server rejects the login.
    #[error(
        "access to the store was denied: {0}\n  check the user, the password and the database in the URL of the store"
    )]
    Refused(String),
    /// The store can be read, but not written.
    #[error(
        "the store cannot be written: {0}\n  check the owner and the mode of the file and of its directory"
    )]
    ReadOnly(String),
    /// The disk or the quota is full.
    #[error(
        "there is no room left for the store: {0}\n  nothing of this step was written; free some space and run it again"
    )]
    Full(String),
    /// The file is damaged, or is not a SQLite file.
    #[error("the store is damaged, or is not a SQLite file: {0}\n  restore a backup, or check the URL")]
    Corrupt(String),
    /// The file must not be used as a store.
    #[error(transparent)]
    File(#[from] super::file_system::FileSystemError),
    /// The linked SQLite is too old to be trusted.
    #[error("SQLite {0} can corrupt its write-ahead log; 3.51.3 or newer is needed")]
    TooOld(String),
    /// The server is a replica.
    #[error("this server is a replica and lags behind; the URL of the store must lead to the primary")]
    Replica,
    /// A server that accepted writes before and rejects them now.
    #[error(
        "the server takes no writes: {0}\n  it is a replica, or set to read-only; the URL must lead to the primary"
    )]
    Demoted(String),
    /// A statement was prepared on one connection and executed on another.
    #[error(
        "prepared statements do not reach the server: {0}\n  a pooler is in between; add `?statement-cache-capacity=0` to the URL"
    )]
    Pooler(String),
    /// A statement of the caller fails for any row.
    #[error("a statement failed: {0}\n  check its tables and columns, and the permissions on them")]
    Statement(String),
    /// Any other error: a defect of Refrain, or an unexpected schema.
    #[error("database error: {0}")]
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

    /// Whether the step may be repeated at once: repeating it is known to do no harm.
    pub(crate) fn is_worth_a_retry(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Lost(_) | Self::Unknown(_))
    }

    /// Whether a unique index refuses the row.
    pub(crate) fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Other(sqlx::Error::Database(fault)) if fault.is_unique_violation())
    }

    /// Whether the error is about a single row that holds values of the wrong type.
    pub(crate) fn is_undecodable(&self) -> bool {
        matches!(self, Self::Other(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)))
    }

    /// Whether the connection that returned this error must not be used again: it is gone, it leads to the
    /// wrong server, or the disk failed, after which SQLite and its driver may disagree whether a transaction
    /// is open.
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

    /// This error, if the step may be repeated at once.
    pub(crate) fn again(&self) -> Option<DatabaseError> {
        match self {
            Self::Busy(said) => Some(Self::Busy(said.clone())),
            Self::Lost(said) => Some(Self::Lost(said.clone())),
            Self::Unknown(said) => Some(Self::Unknown(said.clone())),
            _ => None,
        }
    }

    /// The meaning of an error of the driver that is not about the rows to be written: another transaction
    /// may have been in the way, the connection may be gone, or a table, a permission or disk space may be
    /// missing.
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
                    // A statement that cannot be parsed, or that was cancelled; 1 is SQLite's generic error.
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

    /// The meaning of this error if it occurs during a commit.
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
                    // The time limit of a statement: it waited for a lock, or the server was too slow.
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

/// [`DatabaseError::spoils_its_connection`] for an error of the driver.
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
            // The shared memory of readers and writers is a file too; it could not grow.
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
