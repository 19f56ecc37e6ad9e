//! Why rows could not be published, and whether another attempt may help.

use std::io;
use std::path::PathBuf;

use refrain_core::redact::Redactor;

use crate::action::sql::said;
use crate::database::DatabaseError;
use crate::job::JobError;
use crate::ledger::LedgerError;

/// Why rows could not be published. Nothing of them was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// What is asked for cannot be done at all.
    #[error("{0}")]
    Refused(String),
    /// The rows are not as they should be, this time.
    #[error("{0}\n  nothing was published")]
    Unfit(String),
    /// A statement failed.
    #[error("{what}: {}", said(.source))]
    Statement {
        /// What it was for.
        what: String,
        /// What the database says.
        source: sqlx::Error,
    },
    /// Something about a file or a directory.
    #[error("`{}` {what}: {source}\n  nothing was published", .path.display())]
    File {
        /// What cannot be done.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The database, whatever the rows are.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The ledger beside the rows.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Something around it.
    #[error("{0}")]
    Job(JobError),
}

impl From<JobError> for WriteError {
    fn from(error: JobError) -> WriteError {
        WriteError::Job(error)
    }
}

impl WriteError {
    /// The fault of the database, if the same may succeed a moment later.
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

    /// As the failure of a run.
    pub(crate) fn told(self, redactor: &Redactor) -> JobError {
        match self {
            WriteError::Refused(text) => JobError::for_good(redactor.redact(&text)),
            WriteError::Job(error) => error,
            error => JobError::new(redactor.redact(&error.to_string())),
        }
    }
}

/// Names what a statement is for, in what is said of its failure.
pub(crate) fn of<T>(what: &str, result: Result<T, sqlx::Error>) -> Result<T, WriteError> {
    result.map_err(|source| WriteError::Statement { what: what.to_owned(), source })
}
