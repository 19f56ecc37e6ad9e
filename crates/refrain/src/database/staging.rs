//! A connection that computes first and writes afterwards, so that nobody waits while it computes: what is computed goes into
//! temporary tables, which the transaction that writes finds on the same connection.

use sqlx::pool::PoolConnection;
use sqlx::{SqlSafeStr as _, Sqlite};

use super::{Database, Result, Transaction, begun};
use crate::failpoint::{self, Guarded};

/// A place to compute in.
pub enum Stage {
    /// A connection to a file. No transaction yet: a file can change after it was read, and would not let a reader become a
    /// writer.
    Sqlite(PoolConnection<Sqlite>),
    /// A transaction that holds no lock; temporary tables go with it.
    Postgres(Transaction),
}

impl Database {
    /// A place to compute in, that can become a transaction which writes.
    pub(crate) async fn stage(&self) -> Result<Stage> {
        match self {
            Database::Sqlite { writer, .. } => Ok(Stage::Sqlite(writer.acquire().await?)),
            Database::Postgres { pool, persistent, begin } => {
                let begun = begun(pool, &begin.write).await?;
                let mut transaction = Transaction::Postgres(begun, *persistent, Guarded::default());
                transaction.hand_over().await?;
                Ok(Stage::Postgres(transaction))
            }
        }
    }
}

impl Stage {
    /// From here on it writes.
    pub(crate) async fn lock(self) -> Result<Transaction> {
        match self {
            Stage::Sqlite(connection) => {
                let begin = "BEGIN IMMEDIATE".into_sql_str();
                let begun = sqlx::Transaction::begin(connection, Some(begin)).await?;
                Ok(Transaction::Sqlite(begun, failpoint::guarded()))
            }
            Stage::Postgres(Transaction::Postgres(inner, persistent, _)) => {
                Ok(Transaction::Postgres(inner, persistent, failpoint::guarded()))
            }
            Stage::Postgres(file) => Ok(file),
        }
    }
}
