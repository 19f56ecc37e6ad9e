//! Why an effect of a program is not known to have happened: what its closure says, and what its caller learns.

use std::fmt;

use refrain_core::state::{EffectState, SendAnswer};
use refrain_core::terminal::typed;

use crate::error::Error;
use crate::store::StoreError;

/// Why a closure did not perform an effect, as far as it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPerformed {
    pub(super) answer: SendAnswer,
    pub(super) message: String,
}

impl NotPerformed {
    /// Nothing was sent: the next call may perform it.
    pub fn not_sent(message: impl fmt::Display) -> NotPerformed {
        NotPerformed { answer: SendAnswer::NotSent, message: message.to_string() }
    }

    /// The receiver refused it, and did nothing.
    pub fn refused(message: impl fmt::Display) -> NotPerformed {
        NotPerformed { answer: SendAnswer::Refused, message: message.to_string() }
    }

    /// It may have happened: the effect is in doubt.
    pub fn unknown(message: impl fmt::Display) -> NotPerformed {
        NotPerformed { answer: SendAnswer::Unknown, message: message.to_string() }
    }
}

/// An error says nothing about what happened before it: the effect is in doubt. Its message is stored and listed, so an error that
/// prints a secret, such as the whole URL of a request, belongs into [`NotPerformed::unknown`] without it.
impl<E: std::error::Error> From<E> for NotPerformed {
    fn from(error: E) -> NotPerformed {
        NotPerformed::unknown(error)
    }
}

/// Why an effect is not known to have happened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EffectError {
    /// It may have happened, and an operator must decide.
    #[error("`{key}` version {version} is in doubt: {message}\n  decide: refrain effects show {}", typed(.key))]
    InDoubt {
        /// The key of the fact.
        key: String,
        /// The version that is in doubt: this one, or a lower one.
        version: u32,
        /// How the send ended, or why nothing decides it.
        message: String,
    },
    /// Nothing was sent, and the next call may send it.
    #[error("`{key}` was not sent: {message}")]
    NotSent {
        /// The key of the fact.
        key: String,
        /// Why.
        message: String,
    },
    /// The receiver refused it.
    #[error("`{key}` was refused: {message}")]
    Refused {
        /// The key of the fact.
        key: String,
        /// The answer.
        message: String,
    },
    /// It is not sent: it was given up, suppressed or undone, or waits for approval.
    #[error("`{key}` is {state}, and is not sent\n  look: refrain effects show {}", typed(.key))]
    Withheld {
        /// The key of the fact.
        key: String,
        /// Its state.
        state: EffectState,
    },
    /// Another caller is sending it, and did not end in time.
    #[error("another sender has held `{key}` since {since:.0}\n  try again later")]
    Busy {
        /// The key of the fact.
        key: String,
        /// Since when.
        since: jiff::Timestamp,
    },
    /// The store failed or refused. If a transaction of the caller has locked the store's SQLite file, this is the error: commit it first.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<StoreError> for EffectError {
    fn from(error: StoreError) -> EffectError {
        EffectError::Store(error.into())
    }
}
