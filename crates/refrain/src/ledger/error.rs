//! The errors of the ledger.

use refrain_core::state::{Refusal, RefusedUnit};
use refrain_core::{ContentError, KeyError, ParseError};

use crate::database::DatabaseError;
use crate::store::StoreError;

/// Why the ledger did not do what the caller asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The database returned an error.
    #[error(transparent)]
    Database(DatabaseError),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tables do not exist, and on PostgreSQL Refrain does not create them unasked.
    #[error(
        "there is no ledger in this database yet\n  create it: refrain migrate, or `Ledger::migrate` in a program; or let its owner run:\n\n{script}\n  then grant access (replace USER):\n\ngrant usage on schema refrain to USER;\ngrant select, insert, update, delete on all tables in schema refrain to USER;\ngrant usage on all sequences in schema refrain to USER;"
    )]
    Missing {
        /// The statements that create the tables.
        script: String,
    },
    /// The tables are of an older release.
    #[error(
        "the ledger in this database has schema {found}, and this release needs {needed}\n  upgrade it: refrain migrate, or `Ledger::migrate` in a program"
    )]
    TooOld {
        /// The schema in the database.
        found: i32,
        /// The schema that this release needs.
        needed: i32,
    },
    /// The tables are of a newer release, with changes that this one cannot follow.
    #[error(
        "the ledger in this database has schema {found}, and this release supports only up to {known}\n  a newer refrain has upgraded it; use that one here too"
    )]
    TooNew {
        /// The schema in the database.
        found: i32,
        /// The latest schema that this release supports.
        known: i32,
    },
    /// The ledger belongs to another store: this store is new, or older, or a copy.
    #[error(
        "the ledger of `{project}` in this database belongs to another store\n  a new or restored store must not take it for its own: `refrain recover` looks at both"
    )]
    OtherStore {
        /// The project of the ledger.
        project: String,
    },
    /// A newer attempt of the same run has begun. Nothing of this one may be written any more.
    #[error("a newer attempt of this run has begun; nothing of attempt {attempt} is written any more")]
    Fenced {
        /// The number of the older attempt.
        attempt: u64,
    },
    /// The lease of the worker has expired. Another attempt may have begun.
    #[error(
        "the lease of this worker has expired, and another attempt may have begun; nothing of this one is written any more"
    )]
    Expired,
    /// A unit must not be applied.
    #[error("unit `{key}`: {reason}")]
    Refused {
        /// The key of the unit.
        key: String,
        /// The rule that forbids it.
        reason: RefusedUnit,
    },
    /// A unit cannot get this status: the table of states does not list the transition.
    #[error(transparent)]
    Transition(#[from] Refusal),
    /// A claim met a unit that failed: it is neither free nor done.
    #[error("`{key}` is a unit that failed and is not applied; its job will retry it")]
    NotApplied {
        /// The key of the unit.
        key: String,
    },
    /// A checkpoint would pass units that are neither applied nor kept.
    #[error(
        "{count} of the units before this position are neither applied nor kept as failed, `{first}` among them\n  a checkpoint passes only what is settled: apply them first; if one is in doubt, settle it: refrain trace {first}"
    )]
    Unsettled {
        /// How many there are.
        count: usize,
        /// One of them.
        first: String,
    },
    /// Units per window, in a run without a window.
    #[error(
        "the run `{run}` has no window, so its units cannot be remembered for one\n  use Per::Ever, or give the job a timetable"
    )]
    NoWindow {
        /// The key of the run.
        run: String,
    },
    /// A page was dropped, and the source cannot be read past it.
    #[error(
        "a page of `{name}` was not done\n  apply its units and call `done`, or end the attempt: the page is read again"
    )]
    NotDone {
        /// The name of the checkpoint.
        name: String,
    },
    /// Another run or an operator has moved the checkpoint.
    #[error(
        "the checkpoint `{name}` is not where it was read\n  another run or an operator moved it; the next attempt reads it again"
    )]
    Moved {
        /// The name of the checkpoint.
        name: String,
    },
    /// A stored checkpoint cannot be read.
    #[error("the checkpoint `{name}` cannot be read: {reason}")]
    Position {
        /// The name of the checkpoint.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// One unit after another fails, so the units are not to blame.
    #[error(
        "{count} units in a row failed, the last one with: {message}\n  the units are not to blame; none is recorded as failed"
    )]
    AllFail {
        /// How many failed.
        count: usize,
        /// The message of the last one.
        message: String,
    },
    /// Other runs keep changing the entries of a batch.
    #[error("other runs keep changing the same units; trying again later")]
    Contended,
    /// An intent written here would never be relayed.
    #[error(
        "this database is not relayed, so an intent would stay in it\n  name it when the store is opened: Refrain::at(…)?.destination(&pool)"
    )]
    NoRelay,
    /// The payload of an intent is not valid JSON, or too long.
    #[error("the payload of `{key}` cannot be used: {reason}")]
    Payload {
        /// The key of the intent.
        key: String,
        /// What is wrong with the payload.
        reason: String,
    },
    /// The key is not valid.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The unit has no fingerprint.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// A stored value cannot be read.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// A unit cannot be converted to or from JSON.
    #[error("a unit cannot be written as JSON, or read back: {0}")]
    Json(#[from] serde_json::Error),
}

impl From<DatabaseError> for LedgerError {
    fn from(error: DatabaseError) -> LedgerError {
        match error {
            DatabaseError::Expired => LedgerError::Expired,
            error => LedgerError::Database(error),
        }
    }
}

impl LedgerError {
    /// Whether the same call may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) | Self::Store(StoreError::Database(error)) => error.is_transient(),
            Self::Contended | Self::Moved { .. } => true,
            _ => false,
        }
    }

    /// The database error behind it, if the same transaction may succeed when it is retried.
    pub(crate) fn transient(&self) -> Option<DatabaseError> {
        match self {
            Self::Database(DatabaseError::Busy(what)) => Some(DatabaseError::Busy(what.clone())),
            Self::Database(DatabaseError::Lost(what)) => Some(DatabaseError::Lost(what.clone())),
            _ => None,
        }
    }
}
