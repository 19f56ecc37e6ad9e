//! One batch of units: a transaction that holds the fence, in which the ledger says that they are applied. Whether it is so
//! is for the caller to say.

use std::fmt;

use serde::Serialize;

use super::apply::{Applying, Chunk};
use super::backend::Backend;
use super::judge::Verdict;
use super::{LedgerError, Result};
use crate::database::{DatabaseError, Transaction, place};

/// A batch that was opened.
pub(super) struct Opened {
    pub(super) transaction: Transaction,
    pub(super) chunk: Chunk,
    pub(super) verdicts: Vec<Verdict>,
    /// Those whose key stood for other content in this very attempt.
    pub(super) suspects: Vec<usize>,
}

/// Units to be applied, in a transaction of their own. It comes from [`Applying::next`].
///
/// Write what they say with [`tx`](Self::tx), then say how it went with [`settle`](Self::settle). Dropped without a
/// word, nothing happened.
#[must_use = "say how it went: `settle`"]
pub struct Batch<'b, 'u, DB: Backend, T> {
    pub(super) applying: &'b mut Applying<'u, DB, T>,
    pub(super) opened: Opened,
}

impl<DB: Backend, T> fmt::Debug for Batch<'_, '_, DB, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("units", &self.opened.verdicts.len()).finish_non_exhaustive()
    }
}

/// Why a batch could not be written, and whether that was its own fault.
///
/// Any error turns into one by `?` or `into`. A lock, a conflict or a lost connection is told from the rest: the batch is
/// then done again as it is.
#[derive(Debug)]
pub struct BatchError {
    message: String,
    whose: Whose,
}

/// Whose fault it is that a batch was not written.
#[derive(Debug)]
enum Whose {
    /// A unit's, most likely.
    Unit,
    /// Nobody's: a lock, a conflict, a lost connection.
    Nobody(DatabaseError),
    /// That of the database, or of the statement: a table is missing, a right, room on the disk.
    Database(DatabaseError),
}

impl BatchError {
    /// A fault of the units in the batch.
    pub fn new(message: impl Into<String>) -> BatchError {
        BatchError { message: message.into(), whose: Whose::Unit }
    }

    /// What is said against the units in the batch; or the fault of the database.
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
    pub(super) fn new(applying: &'b mut Applying<'u, DB, T>, opened: Opened) -> Self {
        Batch { applying, opened }
    }

    /// The connection of the transaction, for your own statements. Everything that is written by it is there together
    /// with the ledger, or not at all.
    #[expect(clippy::missing_panics_doc, reason = "it cannot")]
    #[expect(clippy::expect_used, reason = "the fence was raised over a pool of this very database type")]
    pub fn tx(&mut self) -> &mut DB::Connection {
        DB::narrowed(&mut self.opened.transaction).expect("a transaction of the fence's own database")
    }

    /// The connection and the units to be applied, both at once: `tx` borrows the batch as long as it is used.
    pub fn parts(&mut self) -> (&mut DB::Connection, Vec<&'u T>) {
        let units = self.all();
        (self.tx(), units)
    }

    /// The units to be applied, in the order of their keys.
    pub fn all(&self) -> Vec<&'u T> {
        self.those(Verdict::is_applied)
    }

    /// Those of which nothing was applied before.
    pub fn fresh(&self) -> Vec<&'u T> {
        self.those(|verdict| verdict == Verdict::Fresh)
    }

    /// Those that were applied before, with other content or by an older version.
    pub fn changed(&self) -> Vec<&'u T> {
        self.those(|verdict| verdict == Verdict::Changed)
    }

    fn those(&self, wanted: impl Fn(Verdict) -> bool) -> Vec<&'u T> {
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
    /// Says how it went. What went well is committed. What failed is rolled back: half of the units come again, and then
    /// the other half, until the bad one stands alone and is recorded as failed.
    ///
    /// ```compile_fail
    /// # async fn example(mut batch: refrain::Batch<'_, '_, sqlx::Sqlite, u32>) {
    /// let went: Result<(), sqlx::Error> = Ok(());
    /// batch.settle(went).await;
    /// batch.tx(); // the transaction is over
    /// # }
    /// ```
    pub async fn settle<R, E: Into<BatchError>>(self, went: std::result::Result<R, E>) -> Result<()> {
        self.settled(went, false).await
    }

    /// The same of a caller that says nothing more to the database once a statement has failed. If SQLite has ended the
    /// transaction because of a row, as a trigger may tell it to, then nothing stands alone, and the row is found like any other.
    pub(crate) async fn settle_at_once(self, went: std::result::Result<(), BatchError>) -> Result<()> {
        self.settled(went, true).await
    }

    async fn settled<R, E: Into<BatchError>>(
        self,
        went: std::result::Result<R, E>,
        was_last: bool,
    ) -> Result<()> {
        let Batch { applying, opened: Opened { mut transaction, chunk, verdicts, suspects } } = self;
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
                // Whatever became of the connection, the transaction is not going to be committed.
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
