//! A connection that computes first and writes afterwards, so that no other writer waits while it computes:
//! results go into temporary tables, which the writing transaction finds on the same connection.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Executor as _, Pool, SqlSafeStr as _, Sqlite};

use super::held::PooledTransaction;
use super::{Database, Result, Transaction};
use crate::failpoint::{self, Guarded};

/// A connection to compute on.
pub enum Stage {
    /// A connection to a file, without a transaction: a file can change after it was read, and SQLite would
    /// not let the reader become a writer.
    Sqlite(PoolConnection<Sqlite>, Pool<Sqlite>),
    /// A transaction that holds no lock; its temporary tables end with it.
    Postgres(Transaction, Duration),
}

impl Database {
    /// A staging connection that can become a writing transaction.
    pub(crate) async fn stage(&self) -> Result<Stage> {
        match self {
            Database::Sqlite { writer, .. } => Ok(Stage::Sqlite(writer.acquire().await?, writer.clone())),
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.write).await?;
                let mut transaction = Transaction::Postgres(begun, *persistent, Guarded::default());
                transaction.hand_over().await?;
                // It holds no lock that another transaction could wait for, and may itself have to wait for
                // rows of another database.
                transaction.patience(Duration::ZERO).await?;
                Ok(Stage::Postgres(transaction, begin.idle))
            }
        }
    }
}

impl Transaction {
    /// How long a server lets the transaction be silent; zero means no limit.
    async fn patience(&mut self, idle: Duration) -> Result<()> {
        if let Transaction::Postgres(inner, ..) = self {
            let text = format!("set local idle_in_transaction_session_timeout = {}", idle.as_millis());
            inner.execute(sqlx::raw_sql(AssertSqlSafe(text))).await?;
        }
        Ok(())
    }
}

impl Stage {
    /// Begins to write.
    pub(crate) async fn lock(self) -> Result<Transaction> {
        match self {
            Stage::Sqlite(connection, pool) => {
                let begun =
                    PooledTransaction::begin_on(&pool, connection, "BEGIN IMMEDIATE".into_sql_str()).await?;
                Ok(Transaction::Sqlite(begun, failpoint::guarded()))
            }
            Stage::Postgres(mut transaction, idle) => {
                transaction.patience(idle).await?;
                match transaction {
                    Transaction::Postgres(inner, persistent, _) => {
                        Ok(Transaction::Postgres(inner, persistent, failpoint::guarded()))
                    }
                    file @ Transaction::Sqlite(..) => Ok(file),
                }
            }
        }
    }
}
