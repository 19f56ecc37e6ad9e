//! A shop with invoices, in a database of its own beside the store: the rows that must be written once.
//!
//! Each row counts how often it was written, which is what tells one write from two that say the same.

use std::future::Future;
use std::pin::Pin;

use refrain::core::{Key, KeyError};
use refrain::{Applying, Batch, JobError, Ledger, LedgerError, key};
use serde::{Deserialize, Serialize};
use sqlx::{Pool, Postgres, Sqlite};

use crate::support::TestDatabase;

pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'a>>;

/// One invoice, as a source tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Invoice {
    pub(crate) id: i64,
    pub(crate) total: i64,
    pub(crate) updated: i64,
}

pub(crate) fn invoice(id: i64, total: i64) -> Invoice {
    Invoice { id, total, updated: 0 }
}

/// As many invoices, numbered from 1.
pub(crate) fn invoices(count: i64) -> Vec<Invoice> {
    (1..=count).map(|id| invoice(id, id * 10)).collect()
}

pub(crate) fn key_of(invoice: &Invoice) -> Result<Key, KeyError> {
    key!("invoice", invoice.id)
}

/// What a shop needs of its database.
pub(crate) trait Backend: refrain::Backend {
    /// Writes an invoice. A total below zero is against the rules of the table.
    fn write<'a>(connection: &'a mut Self::Connection, invoice: &'a Invoice) -> Answer<'a, ()>;
    fn numbers<'a>(pool: &'a Pool<Self>, query: &'static str) -> Answer<'a, Vec<i64>>;
    fn execute<'a>(pool: &'a Pool<Self>, statement: &'static str) -> Answer<'a, u64>;
}

macro_rules! shops {
    ($($database:ty),+) => {$(
        impl Backend for $database {
            fn write<'a>(connection: &'a mut Self::Connection, invoice: &'a Invoice) -> Answer<'a, ()> {
                Box::pin(async move {
                    let write = "insert into invoices (id, total, writes) values ($1, $2, 1)
                        on conflict (id) do update set total = excluded.total, writes = invoices.writes + 1";
                    let write = sqlx::query(write).bind(invoice.id).bind(invoice.total);
                    write.execute(connection).await.map(|_| ())
                })
            }

            fn numbers<'a>(pool: &'a Pool<Self>, query: &'static str) -> Answer<'a, Vec<i64>> {
                Box::pin(sqlx::query_scalar(query).fetch_all(pool))
            }

            fn execute<'a>(pool: &'a Pool<Self>, statement: &'static str) -> Answer<'a, u64> {
                Box::pin(async move { Ok(sqlx::query(statement).execute(pool).await?.rows_affected()) })
            }
        }
    )+};
}

shops!(Sqlite, Postgres);

/// A shop, and the store that runs its jobs.
pub(crate) struct Shop<DB: Backend> {
    pub(crate) pool: Pool<DB>,
    /// Where the shop's rows and the ledger beside them are.
    pub(crate) database: TestDatabase,
    /// Where runs are.
    pub(crate) store: TestDatabase,
}

const TABLE: &str = "create table invoices (id bigint primary key, total bigint not null check (total >= 0), writes bigint not null)";

impl Shop<Sqlite> {
    pub(crate) async fn in_a_file() -> Shop<Sqlite> {
        let (database, store) = (TestDatabase::sqlite().await, TestDatabase::sqlite().await);
        let TestDatabase::Sqlite { pool, .. } = &database else { unreachable!() };
        Shop { pool: pool.clone(), database, store }.opened().await
    }
}

impl Shop<Postgres> {
    pub(crate) async fn on_a_server() -> Shop<Postgres> {
        let (database, store) = (TestDatabase::postgres().await, TestDatabase::postgres().await);
        let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
        Shop { pool: pool.clone(), database, store }.opened().await
    }
}

impl<DB: Backend> Shop<DB> {
    async fn opened(self) -> Self {
        Ledger::migrate(&self.pool).await.unwrap();
        DB::execute(&self.pool, TABLE).await.unwrap();
        self
    }

    pub(crate) async fn numbers(&self, query: &'static str) -> Vec<i64> {
        DB::numbers(&self.pool, query).await.unwrap()
    }

    pub(crate) async fn execute(&self, statement: &'static str) -> u64 {
        DB::execute(&self.pool, statement).await.unwrap()
    }

    /// How often each invoice was written, by its number.
    pub(crate) async fn writes(&self) -> Vec<i64> {
        self.numbers("select writes from invoices order by id").await
    }

    pub(crate) async fn totals(&self) -> Vec<i64> {
        self.numbers("select total from invoices order by id").await
    }

    /// How many units stand so in the ledger.
    pub(crate) async fn standing(&self, status: &str) -> i64 {
        let count = format!("select count(*) from refrain_units where status = '{status}'");
        self.database.store_numbers(&count).await[0]
    }
}

/// Writes the invoices of a batch.
pub(crate) async fn write<DB: Backend>(batch: &mut Batch<'_, '_, DB, Invoice>) -> Result<(), sqlx::Error> {
    for invoice in batch.all() {
        DB::write(batch.tx(), invoice).await?;
    }
    Ok(())
}

/// Writes all invoices that are to be applied.
pub(crate) async fn write_all<DB: Backend>(
    mut applying: Applying<'_, DB, Invoice>,
) -> Result<(), LedgerError> {
    while let Some(mut batch) = applying.next().await? {
        let went = write(&mut batch).await;
        batch.settle(went).await?;
    }
    Ok(())
}

/// What a job says of the ledger's errors.
pub(crate) fn said(error: LedgerError) -> JobError {
    error.into()
}
