//! What can go wrong beside the rows.

use refrain_core::state::RefusedUnit;
use refrain_core::{ContentError, KeyError, ParseError};

use crate::database::DatabaseError;
use crate::store::StoreError;

/// Why the ledger did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database said no.
    #[error(transparent)]
    Database(DatabaseError),
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There are no tables yet, and on a server nobody makes them quietly.
    #[error(
        "there is no ledger in this database yet\n  make it: refrain migrate, or `Ledger::migrate` in a program; or let its owner run:\n\n{script}\n  and let us in, with our name for USER:\n\ngrant usage on schema refrain to USER;\ngrant select, insert, update, delete on all tables in schema refrain to USER;\ngrant usage on all sequences in schema refrain to USER;"
    )]
    Missing {
        /// The statements that make the tables.
        script: String,
    },
    /// The tables are of a newer release.
    #[error(
        "the ledger in this database has schema {found}, and this release knows only up to {known}\n  a newer refrain has used it; use that one here too"
    )]
    FromTheFuture {
        /// What is there.
        found: i32,
        /// What is known.
        known: i32,
    },
    /// The rows here belong to another store: this one is new, or older, or a copy.
    #[error(
        "the ledger of `{project}` in this database belongs to another store\n  a new or restored store must not take it for its own: `refrain recover` looks at both"
    )]
    OtherStore {
        /// Whose ledger it is.
        project: String,
    },
    /// A newer attempt of the same run has begun. Nothing of this one may be written any more.
    #[error("a newer attempt of this run has begun; nothing of attempt {attempt} is written any more")]
    Fenced {
        /// Whose word does not count.
        attempt: u64,
    },
    /// The lease of the worker is over. Whether another attempt has begun is not known, but it may have.
    #[error(
        "the lease of this worker is over, and another attempt may have begun; nothing of this one is written any more"
    )]
    Expired,
    /// A unit must not be touched.
    #[error("unit `{key}`: {reason}")]
    Refused {
        /// Which unit.
        key: String,
        /// Why not.
        reason: RefusedUnit,
    },
    /// A claim met a unit that failed: it is neither free nor done.
    #[error("`{key}` is a unit that failed and is not applied; it is for its job to try it again")]
    NotApplied {
        /// Which key.
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
    /// Units that are remembered by windows, in a run that has none.
    #[error(
        "the run `{run}` has no window, so its units cannot be remembered for one\n  use Per::Ever, or give the job a timetable"
    )]
    NoWindow {
        /// The key of the run.
        run: String,
    },
    /// A page was dropped, and nobody may go on without it.
    #[error(
        "a page of `{name}` was not done\n  apply its units and say `done`, or end the attempt: it is read again"
    )]
    NotDone {
        /// Which checkpoint.
        name: String,
    },
    /// Somebody else has moved the checkpoint.
    #[error(
        "the checkpoint `{name}` is not where it was read\n  somebody else moved it; the next attempt reads it anew"
    )]
    Moved {
        /// Which checkpoint.
        name: String,
    },
    /// A checkpoint is not what was written.
    #[error("the checkpoint `{name}` cannot be read: {reason}")]
    Position {
        /// Which checkpoint.
        name: String,
        /// Why not.
        reason: String,
    },
    /// One unit after another fails: it is not the units.
    #[error(
        "{count} units in a row failed, the last one with: {message}\n  that is not about the units; none is recorded as failed by it"
    )]
    AllFail {
        /// How many.
        count: usize,
        /// What the last one said.
        message: String,
    },
    /// A batch meets the same keys again and again.
    #[error("other runs keep changing the same units; trying again later")]
    Contended,
    /// Intents written here would never be relayed.
    #[error(
        "no relay looks after this database, so an intent would stay in it\n  name it when the store is opened: Refrain::at(…)?.destination(&pool)"
    )]
    NoRelay,
    /// What goes with an intent is no JSON, or too much of it.
    #[error("the payload of `{key}` cannot be taken: {reason}")]
    Payload {
        /// Whose payload.
        key: String,
        /// Why not.
        reason: String,
    },
    /// There is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no fingerprint.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// What was written cannot be read.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// What a unit says cannot be written as JSON, or read back.
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
    /// Whether the same may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) | Self::Store(StoreError::Database(error)) => error.is_transient(),
            Self::Contended | Self::Moved { .. } => true,
            _ => false,
        }
    }

    /// The fault of the database behind it, if the same transaction may succeed when it is done again.
    pub(crate) fn transient(&self) -> Option<DatabaseError> {
        match self {
            Self::Database(DatabaseError::Busy(what)) => Some(DatabaseError::Busy(what.clone())),
            Self::Database(DatabaseError::Lost(what)) => Some(DatabaseError::Lost(what.clone())),
            _ => None,
        }
    }
}
