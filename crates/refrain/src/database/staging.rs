//! A connection that computes first and writes afterwards, so that nobody waits while it computes: what is computed goes into
//! temporary tables, which the transaction that writes finds on the same connection.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Executor as _, Pool, SqlSafeStr as _, Sqlite};

use super::held::Held;
use super::{Database, Result, Transaction};
use crate::failpoint::{self, Guarded};

/// A place to compute in.
pub enum Stage {
    /// A connection to a file. No transaction yet: a file can change after it was read, and would not let a reader become a
    /// writer.
    Sqlite(PoolConnection<Sqlite>, Pool<Sqlite>),
    /// A transaction that holds no lock; temporary tables go with it.
    Postgres(Transaction, Duration),
}

impl Database {
    /// A place to compute in, that can become a transaction which writes.
    pub(crate) async fn stage(&self) -> Result<Stage> {
        match self {
            Database::Sqlite { writer, .. } => Ok(Stage::Sqlite(writer.acquire().await?, writer.clone())),
            Database::Postgres { pool, persistent, begin } => {
                let begun = begin.begun(pool, &begin.write).await?;
                let mut transaction = Transaction::Postgres(begun, *persistent, Guarded::default());
                transaction.hand_over().await?;
                // It holds nothing that anybody could wait for, and may itself have to wait for rows of another database.
                transaction.patience(Duration::ZERO).await?;
                Ok(Stage::Postgres(transaction, begin.idle))
            }
        }
    }
}

impl Transaction {
    /// For how long a server lets nothing be said; nothing is for ever.
    async fn patience(&mut self, idle: Duration) -> Result<()> {
        if let Transaction::Postgres(inner, ..) = self {
            let text = format!("set local idle_in_transaction_session_timeout = {}", idle.as_millis());
            inner.execute(sqlx::raw_sql(AssertSqlSafe(text))).await?;
        }
        Ok(())
    }
}

impl Stage {
    /// From here on it writes.
    pub(crate) async fn lock(self) -> Result<Transaction> {
        match self {
            Stage::Sqlite(connection, pool) => {
                let begun = Held::begin_on(&pool, connection, "BEGIN IMMEDIATE".into_sql_str()).await?;
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
