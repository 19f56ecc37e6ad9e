//! One batch of units: a transaction that holds the fence, in which the ledger says that they are applied. The caller
//! writes their rows and reports the result.

use std::fmt;

use serde::Serialize;

use super::apply::{Batches, Chunk};
use super::judge::UnitVerdict;
use super::{LedgerError, Result};
use crate::database::{DatabaseError, Transaction, place};
use crate::user_database::Backend;

/// The outcome of opening a chunk.
pub(super) enum OpenOutcome {
    /// A transaction with units to apply.
    Open(Box<OpenBatch>),
    /// No unit of the chunk is to be applied.
    Nothing,
    /// Another run changed the rows after they were judged: judge them again.
    Raced,
}

/// An open transaction in which the ledger says that the units are applied.
pub(super) struct OpenBatch {
    pub(super) transaction: Transaction,
    pub(super) chunk: Chunk,
    pub(super) verdicts: Vec<UnitVerdict>,
    /// Units whose key stood for other content in this very attempt.
    pub(super) suspects: Vec<usize>,
}

/// Units to apply, in a transaction of their own. It comes from [`Batches::next`].
///
/// Write their rows with [`tx`](Self::tx), then pass the result to [`settle`](Self::settle). If the batch is dropped,
/// nothing happened.
#[must_use = "pass the result to `settle`"]
pub struct Batch<'b, 'u, DB: Backend, T> {
    pub(super) applying: &'b mut Batches<'u, DB, T>,
    pub(super) opened: OpenBatch,
}

impl<DB: Backend, T> fmt::Debug for Batch<'_, '_, DB, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("units", &self.opened.verdicts.len()).finish_non_exhaustive()
    }
}

/// Why a batch could not be written, and whether its units are to blame.
///
/// Any error converts into one by `?` or `into`. After a lock, a conflict or a lost connection the same batch is tried
/// again.
#[derive(Debug)]
pub struct BatchError {
    message: String,
    whose: Whose,
}

/// What is to blame for a batch that was not written.
#[derive(Debug)]
enum Whose {
    /// One of its units, most likely.
    Unit,
    /// Nothing in particular: a lock, a conflict, a lost connection.
    Nobody(DatabaseError),
    /// The database or the statement: a missing table or permission, a full disk.
    Database(DatabaseError),
}

impl BatchError {
    /// An error of the units in the batch.
    pub fn new(message: impl Into<String>) -> BatchError {
        BatchError { message: message.into(), whose: Whose::Unit }
    }

    /// The message for the units in the batch, or the error of the database.
    pub(crate) fn blamed(self) -> std::result::Result<String, DatabaseError> {
        match self.whose {
            Whose::Unit => Ok(self.message),
            Whose::Nobody(fault) | Whose::Database(fault) => Err(fault),
        }
    }
}

impl<E: std::error::Error + 'static> From<E> for BatchError {
    fn from(error: E) -> BatchError {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(one) = cause {
            let of_the_driver = one.downcast_ref::<sqlx::Error>().and_then(DatabaseError::beyond_the_rows);
            let of_ours = || one.downcast_ref::<LedgerError>().and_then(LedgerError::transient);
            if let Some(fault @ (LedgerError::NoRelay | LedgerError::Fenced { .. })) = one.downcast_ref() {
                let whose = Whose::Database(DatabaseError::Statement(fault.to_string()));
                return BatchError { message: error.to_string(), whose };
            }
            if let Some(fault) = of_the_driver.or_else(of_ours) {
                let whose =
                    if fault.is_worth_a_retry() { Whose::Nobody(fault) } else { Whose::Database(fault) };
                return BatchError { message: error.to_string(), whose };
            }
            cause = one.source();
        }
        BatchError::new(error.to_string())
    }
}

impl<'b, 'u, DB: Backend, T> Batch<'b, 'u, DB, T> {
    pub(super) fn new(applying: &'b mut Batches<'u, DB, T>, opened: OpenBatch) -> Self {
        Batch { applying, opened }
    }

    /// The connection of the transaction, for the caller's statements. Everything written with it is committed together with
    /// the ledger, or not at all.
    #[expect(clippy::missing_panics_doc, reason = "it cannot")]
    #[expect(clippy::expect_used, reason = "the fence was raised over a pool of this very database type")]
    pub fn tx(&mut self) -> &mut DB::Connection {
        DB::narrowed(&mut self.opened.transaction).expect("a transaction of the fence's own database")
    }

    /// The connection and the units to apply, both at once: `tx` borrows the batch while it is in use.
    pub fn parts(&mut self) -> (&mut DB::Connection, Vec<&'u T>) {
        let units = self.all();
        (self.tx(), units)
    }

    /// The units to apply, in the order of their keys.
    pub fn all(&self) -> Vec<&'u T> {
        self.filtered(UnitVerdict::is_applied)
    }

    /// The units of which nothing was applied before.
    pub fn fresh(&self) -> Vec<&'u T> {
        self.filtered(|verdict| verdict == UnitVerdict::Fresh)
    }

    /// The units that were applied before, with other content or by an older version.
    pub fn changed(&self) -> Vec<&'u T> {
        self.filtered(|verdict| verdict == UnitVerdict::Changed)
    }

    fn filtered(&self, wanted: impl Fn(UnitVerdict) -> bool) -> Vec<&'u T> {
        let items: &'u [T] = self.applying.items;
        let verdicts = self.opened.chunk.members.iter().zip(&self.opened.verdicts);
        verdicts
            .filter(|(_, verdict)| wanted(**verdict))
            .filter_map(|(member, _)| items.get(*member))
            .collect()
    }
}

async fn commit(mut transaction: Transaction) -> std::result::Result<(), DatabaseError> {
    transaction.is_sound().await?;
    transaction.commit(place!("unit-apply")).await
}

impl<DB: Backend, T: Serialize> Batch<'_, '_, DB, T> {
    /// Takes the result. A success is committed. A failure is rolled back, and the units come again in halves until the bad
    /// one is alone and is recorded as failed.
    ///
    /// ```compile_fail
    /// # async fn example(mut batch: refrain::ledger::Batch<'_, '_, sqlx::Sqlite, u32>) {
    /// let went: Result<(), sqlx::Error> = Ok(());
    /// batch.settle(went).await;
    /// batch.tx(); // the transaction is over
    /// # }
    /// ```
    pub async fn settle<R, E: Into<BatchError>>(self, went: std::result::Result<R, E>) -> Result<()> {
        self.finish(went, false).await
    }

    /// Like [`settle`](Self::settle), for a caller that sends no further statement after one has failed. If SQLite ended the
    /// transaction because of a row, as a trigger may demand, the bad row is found by bisection like any other.
    pub(crate) async fn settle_at_once(self, went: std::result::Result<(), BatchError>) -> Result<()> {
        self.finish(went, true).await
    }

    async fn finish<R, E: Into<BatchError>>(
        self,
        went: std::result::Result<R, E>,
        was_last: bool,
    ) -> Result<()> {
        let Batch { applying, opened: OpenBatch { mut transaction, chunk, verdicts, suspects } } = self;
        let error = match went {
            Ok(_) => match commit(transaction).await {
                Ok(()) => {
                    applying.committed(&chunk, &verdicts, &suspects).await?;
                    return Ok(());
                }
                Err(error) if error.is_transient() => return applying.again(chunk, error).await,
                Err(expired @ DatabaseError::Expired) => return Err(expired.into()),
                Err(error) => BatchError::new(error.to_string()),
            },
            Err(error) => {
                let ended = if was_last { None } else { transaction.is_ended().await };
                // Whatever happened to the connection, the transaction will not be committed.
                drop(transaction.rollback().await);
                if let Some(ended) = ended {
                    return Err(ended.into());
                }
                error.into()
            }
        };
        match error.whose {
            Whose::Unit => {}
            Whose::Nobody(fault) => return applying.again(chunk, fault).await,
            Whose::Database(fault) => return Err(fault.into()),
        }
        if chunk.members.len() == 1 {
            return applying.failed(chunk, error.message);
        }
        applying.halve(&chunk);
        Ok(())
    }
}
