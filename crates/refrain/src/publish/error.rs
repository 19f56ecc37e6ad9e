//! Why rows could not be published, and whether a retry may help.

use std::io;
use std::path::PathBuf;

use refrain_core::redact::Redactor;

use crate::database::DatabaseError;
use crate::ledger::LedgerError;
use crate::run::JobError;
use crate::user_database::message_of;

/// Why rows could not be published. None of them was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The job cannot be done as it is written.
    #[error("{0}")]
    Refused(String),
    /// The rows failed a check.
    #[error("{0}\n  nothing was published")]
    Unfit(String),
    /// A statement failed.
    #[error("{what}: {}", message_of(.source))]
    Statement {
        /// What the statement was for.
        what: String,
        /// The database's error.
        source: sqlx::Error,
    },
    /// A file or a directory cannot be read or written.
    #[error("`{}` {what}: {source}\n  nothing was published", .path.display())]
    File {
        /// What cannot be done.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The database failed, independently of the rows.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The ledger in the same database failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Another error of the attempt.
    #[error("{0}")]
    Job(JobError),
}

impl From<JobError> for WriteError {
    fn from(error: JobError) -> WriteError {
        WriteError::Job(error)
    }
}

impl WriteError {
    /// The error of the database, if the same may succeed a moment later.
    pub(crate) fn transient(&self) -> Option<DatabaseError> {
        match self {
            WriteError::Statement { source, .. } => {
                DatabaseError::beyond_the_rows(source).filter(DatabaseError::is_worth_a_retry)
            }
            WriteError::Database(error) => error.again(),
            WriteError::Ledger(error) => error.transient().filter(DatabaseError::is_worth_a_retry),
            WriteError::Refused(_) | WriteError::Unfit(_) | WriteError::File { .. } | WriteError::Job(_) => {
                None
            }
        }
    }

    /// The error as the failure of a run, without secrets.
    pub(crate) fn into_job_error(self, redactor: &Redactor) -> JobError {
        match self {
            WriteError::Refused(text) => JobError::for_good(redactor.redact(&text)),
            WriteError::Job(error) => error,
            error => JobError::new(redactor.redact(&error.to_string())),
        }
    }
}

/// Adds to an error what the statement was for.
pub(crate) fn of<T>(what: &str, result: Result<T, sqlx::Error>) -> Result<T, WriteError> {
    result.map_err(|source| WriteError::Statement { what: what.to_owned(), source })
}
