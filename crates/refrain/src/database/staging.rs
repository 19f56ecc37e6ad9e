//! A transaction that computes first and writes afterwards, on one connection, so that nobody waits while it computes.

use sqlx::Executor as _;

use super::{Database, Result, Transaction, begun};
use crate::failpoint::{self, Guarded};

impl Database {
    /// A transaction that holds no lock yet: what it computes goes into temporary tables.
    pub(crate) async fn stage(&self) -> Result<Transaction> {
        match self {
            Database::Sqlite { writer, .. } => {
                Ok(Transaction::Sqlite(writer.begin().await?, Guarded::default()))
            }
            Database::Postgres { pool, persistent, begin } => {
                let begun = begun(pool, &begin.write).await?;
                let mut transaction = Transaction::Postgres(begun, *persistent, Guarded::default());
                transaction.hand_over().await?;
                Ok(transaction)
            }
        }
    }
}

impl Transaction {
    /// From here on it writes. A file can have changed since it was read, and would not let a reader become a writer; what
    /// was read is in temporary tables, and another transaction begins on the same connection.
    pub(crate) async fn lock(self) -> Result<Transaction> {
        match self {
            Transaction::Sqlite(mut inner, _) => {
                inner.execute(sqlx::raw_sql("commit")).await?;
                let begun = inner.execute(sqlx::raw_sql("begin immediate")).await;
                if let Err(error) = begun {
                    // The driver believes that it is inside of one.
                    inner.execute(sqlx::raw_sql("begin")).await?;
                    return Err(error.into());
                }
                Ok(Transaction::Sqlite(inner, failpoint::guarded()))
            }
            Transaction::Postgres(inner, persistent, _) => {
                Ok(Transaction::Postgres(inner, persistent, failpoint::guarded()))
            }
        }
    }
}
