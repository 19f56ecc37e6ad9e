//! A shop with invoices, in a database of its own beside the store: the rows that must be written
//! once.
//!
//! Each row counts its writes, which distinguishes one write from two with the same content.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use refrain::core::{Key, KeyError};
use refrain::ledger::{Batch, BatchError, Batches, LedgerError, Per, UnitRecord, Units};
use refrain::{Ask, Definition, Ledger, Refrain, Run, key};
use serde::{Deserialize, Serialize};
use sqlx::pool::PoolOptions;
use sqlx::{ConnectOptions, Connection, Executor, Pool, Postgres, Sqlite};

use refrain_harness::TestDatabase;
use refrain_harness::work::{job, line};

pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'a>>;

/// One invoice of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Invoice {
    pub(crate) id: i64,
    pub(crate) total: i64,
    pub(crate) updated: i64,
}

pub(crate) fn invoice(id: i64, total: i64) -> Invoice {
    Invoice { id, total, updated: 0 }
}

/// This many invoices, numbered from 1.
pub(crate) fn invoices(count: i64) -> Vec<Invoice> {
    (1..=count).map(|id| invoice(id, id * 10)).collect()
}

pub(crate) fn key_of(invoice: &Invoice) -> Result<Key, KeyError> {
    key!("invoice", invoice.id)
}

/// The operations of a shop on its database.
pub(crate) trait Backend: refrain::ledger::Backend {
    const IS_SQLITE: bool;
    /// Writes an invoice. A negative total violates the constraint of the table.
    fn write<'a>(connection: &'a mut Self::Connection, invoice: &'a Invoice) -> Answer<'a, ()>;
    fn numbers<'a>(pool: &'a Pool<Self>, query: &'static str) -> Answer<'a, Vec<i64>>;
    fn execute<'a>(pool: &'a Pool<Self>, statement: &'static str) -> Answer<'a, u64>;
    /// Runs a statement with a number, in a transaction.
    fn tell<'a>(
        connection: &'a mut Self::Connection,
        statement: &'static str,
        number: i64,
    ) -> Answer<'a, u64>;
    /// More connections to the same database, for many simultaneous tasks.
    fn crowd(pool: &Pool<Self>) -> Answer<'_, Pool<Self>>;
    /// Executes a statement on a connection of its own, while the caller waits.
    fn meanwhile(pool: &Pool<Self>, statement: &'static str);
}

macro_rules! shops {
    ($($database:ty, $is_sqlite:literal;)+) => {$(
        impl Backend for $database {
            const IS_SQLITE: bool = $is_sqlite;

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

            fn tell<'a>(
                connection: &'a mut Self::Connection,
                statement: &'static str,
                number: i64,
            ) -> Answer<'a, u64> {
                Box::pin(async move {
                    Ok(sqlx::query(statement).bind(number).execute(connection).await?.rows_affected())
                })
            }

            fn crowd(pool: &Pool<Self>) -> Answer<'_, Pool<Self>> {
                Box::pin(async {
                    let options = (*pool.connect_options()).clone();
                    PoolOptions::new().max_connections(16).connect_with(options).await
                })
            }

            fn meanwhile(pool: &Pool<Self>, statement: &'static str) {
                let options = pool.connect_options();
                let elsewhere = std::thread::spawn(move || {
                    tokio::runtime::Runtime::new().unwrap().block_on(async {
                        let mut connection = options.connect().await.unwrap();
                        connection.execute(statement).await.unwrap();
                        connection.close().await.unwrap();
                    });
                });
                elsewhere.join().unwrap();
            }
        }
    )+};
}

shops! {
    Sqlite, true;
    Postgres, false;
}

/// A shop, and the store that runs its jobs.
pub(crate) struct Shop<DB: Backend> {
    pub(crate) pool: Pool<DB>,
    /// Where the shop's rows and the ledger beside them are.
    pub(crate) database: TestDatabase,
    /// Where runs are.
    pub(crate) store: TestDatabase,
}

const TABLE: &str = "create table invoices (id bigint primary key, total bigint not null check (total \
     >= 0), writes bigint not null)";

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
    /// A shop that another process has opened; only its pool is usable.
    pub(crate) async fn at(url: &str) -> Shop<DB> {
        let pool = PoolOptions::new().max_connections(1).connect(url).await.unwrap();
        Shop { pool, database: TestDatabase::sqlite().await, store: TestDatabase::sqlite().await }
    }

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

    /// How many units have this status in the ledger.
    pub(crate) async fn count_of(&self, status: &str) -> i64 {
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
    mut applying: Batches<'_, DB, Invoice>,
) -> Result<(), LedgerError> {
    while let Some(mut batch) = applying.next().await? {
        let went = write(&mut batch).await;
        batch.settle(went).await?;
    }
    Ok(())
}

/// An error of a batch with an action between the rollback of the batch and the record of its failure.
pub(crate) struct After(Box<dyn FnOnce() + Send>);

impl After {
    pub(crate) fn this<DB: Backend>(pool: &Pool<DB>, statement: &'static str) -> After {
        let pool = pool.clone();
        After(Box::new(move || DB::meanwhile(&pool, statement)))
    }
}

impl From<After> for BatchError {
    fn from(after: After) -> BatchError {
        (after.0)();
        BatchError::new("it cannot be written")
    }
}

/// The content of a source, which a test can change.
#[derive(Clone, Default)]
pub(crate) struct Source(Arc<Mutex<Vec<Invoice>>>);

impl Source {
    pub(crate) fn of(invoices: Vec<Invoice>) -> Source {
        let source = Source::default();
        source.shows(invoices);
        source
    }

    pub(crate) fn shows(&self, invoices: Vec<Invoice>) {
        *self.0.lock().unwrap() = invoices;
    }

    pub(crate) fn all(&self) -> Vec<Invoice> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) type Rules<DB> = fn(Units<DB, Invoice>) -> Units<DB, Invoice>;

/// A job of the shop.
pub(crate) fn work<DB: Backend, F>(
    shop: &Shop<DB>,
    name: &str,
    work: impl Fn(Run, Pool<DB>) -> F + Send + Sync + 'static,
) -> Definition
where
    F: Future<Output = Result<(), LedgerError>> + Send + 'static,
{
    let pool = shop.pool.clone();
    job(name, move |run| {
        let attempt = work(run, pool.clone());
        async move { Ok(attempt.await?) }
    })
}

/// The job `sync`, which applies failed units and the content of the source to the shop.
pub(crate) fn sync<DB: Backend>(shop: &Shop<DB>, source: &Source, per: Per, rules: Rules<DB>) -> Definition {
    let source = source.clone();
    work(shop, "sync", move |run, pool| {
        let source = source.clone();
        async move {
            let units = rules(run.fence(&pool).await?.units(per, key_of));
            for invoices in [units.failed().await?, source.all()] {
                write_all(units.apply(&invoices).await?).await?;
            }
            Ok(())
        }
    })
}

/// Requests a run of the shop once. Returns its state: `monday done 1`.
pub(crate) async fn ran(refrain: &Refrain, run: &str) -> String {
    line(&refrain.run(run, Ask::Once).await.unwrap().run)
}

/// The counts of the last attempt of a run: processed, skipped, deduplicated, failed.
pub(crate) async fn counts(refrain: &Refrain, run: &str) -> [u64; 4] {
    let run = refrain_harness::work::shown(refrain, run).await;
    let counts = refrain.units(&run).await.unwrap().last().unwrap().counts;
    [counts.processed, counts.skipped, counts.deduplicated, counts.failed]
}

/// The dedupes of a run, as `stale 2 invoice:1 invoice:7`; suspects have a question mark.
pub(crate) async fn dedupes(refrain: &Refrain, run: &str) -> Vec<String> {
    let run = refrain_harness::work::shown(refrain, run).await;
    let last = refrain.units(&run).await.unwrap().pop().unwrap();
    let text = last.dedupes.iter().map(|dedupes| {
        let doubt = if dedupes.is_suspect { "?" } else { "" };
        format!("{}{doubt} {} {}", dedupes.reason, dedupes.count, dedupes.keys.join(" "))
    });
    text.collect()
}

/// The only record that the ledger of the job `sync` has under a key.
pub(crate) async fn traced<DB: Backend>(shop: &Shop<DB>, key: Key) -> UnitRecord {
    let ledger = Ledger::open(&shop.pool, "shop", "sync").await.unwrap();
    let mut records = ledger.trace(&key).await.unwrap();
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}
