//! A typical sync, for tests that kill it: it writes rows in the store's own database, which count how often
//! they were written, from a source of twelve invoices in pages of four.
//!
//! The key of the run says which fault to inject:
//!
//! | key | what goes wrong |
//! |---|---|
//! | any | invoice 7 fails at the first attempt; invoice 9 until the file `mended` is there |
//! | `poison-…` | invoice 5 kills the process |
//! | `many-…` | there are a thousand invoices, all in one page, and each batch of them is told in `batches` |
//! | `many-poison-…` | the same, and the one that `PROBE_POISON` names kills the process |
//! | `careless-…` | the first attempt leaves out the first page and says that it is done |
//! | `stale-…` | what the file `source` says is read before the gate of the attempt opens, and written after it |

use std::fs::OpenOptions;
use std::future::{Future, ready};
use std::io::Write as _;
use std::pin::Pin;
use std::time::Duration;

use refrain::core::{Backoff, Retry};
use refrain::ledger::{BatchError, Batches, FetchedPage, LedgerError, Per, Units};
use refrain::{Definition, Job, JobError, Ledger, Run, key};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{Pool, Postgres, Sqlite};

use crate::{appears, directory, note, number, variable};

const INVOICES: i64 = 12;
const PAGE: usize = 4;
const MANY: i64 = 1_000;
const TABLE: &str = "create table if not exists invoices
    (id bigint primary key, total bigint not null, writes bigint not null)";
const UPSERT: &str = "insert into invoices (id, total, writes) values ($1, $2, 1)
    on conflict (id) do update set total = excluded.total, writes = invoices.writes + 1";
const NAME: &str = "sync";
const BACKOFF: Backoff = Backoff { min: Duration::from_millis(20), max: Duration::from_millis(50) };

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Invoice {
    id: i64,
    total: i64,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'a>>;

/// What the job needs from a database to write to it.
trait Shop: refrain::ledger::Backend {
    fn open(url: &str) -> Answer<'_, Pool<Self>>;
    fn write<'a>(connection: &'a mut Self::Connection, invoice: &'a Invoice) -> Answer<'a, ()>;
}

macro_rules! shop {
    ($database:ty, $url:ident => $pool:expr) => {
        impl Shop for $database {
            fn open($url: &str) -> Answer<'_, Pool<Self>> {
                Box::pin(async move {
                    let pool = $pool.await?;
                    // If two processes create it at once, one of them may get an error that it exists.
                    if sqlx::query(TABLE).execute(&pool).await.is_err() {
                        sqlx::query(TABLE).execute(&pool).await?;
                    }
                    Ok(pool)
                })
            }

            fn write<'a>(connection: &'a mut Self::Connection, invoice: &'a Invoice) -> Answer<'a, ()> {
                let upsert = sqlx::query::<$database>(UPSERT).bind(invoice.id).bind(invoice.total);
                Box::pin(async move { upsert.execute(connection).await.map(|_| ()) })
            }
        }
    };
}

shop!(Sqlite, url => {
    let options = SqliteConnectOptions::new().filename(url.trim_start_matches("sqlite:")).create_if_missing(true);
    SqlitePoolOptions::new().max_connections(2).connect_with(options.busy_timeout(Duration::from_secs(10)))
});
shop!(Postgres, url => PgPoolOptions::new().max_connections(2).connect(url));

struct Sync<DB: Shop> {
    pool: Pool<DB>,
}

impl<DB: Shop> Job for Sync<DB> {
    const NAME: &'static str = NAME;

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        note("begun", run);
        if run.key().starts_with("stale-") {
            self.late(run).await?;
        } else {
            self.pages(run).await?;
        }
        note("ended", run);
        Ok(())
    }
}

impl<DB: Shop> Sync<DB> {
    async fn units(&self, run: &Run) -> Result<Units<DB, Invoice>, LedgerError> {
        Ok(run.fence(&self.pool).await?.units(Per::Ever, |invoice: &Invoice| key!("invoice", invoice.id)))
    }

    async fn pages(&self, run: &Run) -> Result<(), LedgerError> {
        if let Some(step) = run.step("begin").await? {
            step.done().await?;
        }
        let units = self.units(run).await?;
        let failed = units.failed().await?;
        self.apply(run, units.apply(&failed).await?).await?;
        let mut pages = units.cursor("invoices").await?;
        let is_many = run.key().starts_with("many-");
        while let Some(page) = pages.next(|at| ready(Ok::<_, LedgerError>(read(at, is_many)))).await? {
            let is_first = page.units().iter().any(|invoice| invoice.id == 1);
            if is_first && run.attempt() == 1 && run.key().starts_with("careless-") {
                drop(page.apply().next().await?);
            } else {
                self.apply(run, page.apply()).await?;
            }
            page.done().await?;
        }
        Ok(())
    }

    /// Reads, waits, and writes.
    async fn late(&self, run: &Run) -> Result<(), LedgerError> {
        let units = self.units(run).await?;
        let source = std::fs::read_to_string(directory().join("source")).unwrap();
        let invoices = [Invoice { id: 1, total: source.trim().parse().unwrap() }];
        println!("read {}#{} {}", run.job(), run.key(), run.attempt());
        appears(&directory().join(format!("gate-{}-{}", run.key(), run.attempt()))).await;
        self.apply(run, units.apply(&invoices).await?).await
    }

    async fn apply(&self, run: &Run, mut batches: Batches<'_, DB, Invoice>) -> Result<(), LedgerError> {
        while let Some(mut batch) = batches.next().await? {
            if run.key().starts_with("many-") {
                record_batch(run, batch.all().len());
            }
            let mut went: Result<(), BatchError> = Ok(());
            for invoice in batch.all() {
                if kills(invoice, run) {
                    kill_process(getpid(), Signal::KILL).unwrap();
                }
                if is_refused(invoice, run) {
                    went = went.and(Err(BatchError::new("this one is refused")));
                }
                if went.is_ok() {
                    went = DB::write(batch.tx(), invoice).await.map_err(BatchError::from);
                }
            }
            batch.settle(went).await?;
        }
        Ok(())
    }
}

fn record_batch(run: &Run, units: usize) {
    let batches = OpenOptions::new().append(true).create(true).open(directory().join("batches"));
    writeln!(batches.unwrap(), "{} {units}", run.attempt()).unwrap();
}

fn kills(invoice: &Invoice, run: &Run) -> bool {
    if run.key().starts_with("many-poison-") {
        return invoice.id == number("PROBE_POISON", 5).cast_signed();
    }
    invoice.id == 5 && run.key().starts_with("poison-")
}

fn is_refused(invoice: &Invoice, run: &Run) -> bool {
    match invoice.id {
        _ if run.key().starts_with("many-") => false,
        7 => run.attempt() == 1,
        9 => !directory().join("mended").exists(),
        _ => false,
    }
}

fn read(at: Option<String>, is_many: bool) -> FetchedPage<Invoice> {
    let from: i64 = at.map_or(1, |at| at.parse().unwrap());
    let (last, page) = if is_many { (MANY, usize::MAX) } else { (INVOICES, PAGE) };
    let units: Vec<Invoice> = (from..=last).take(page).map(|id| Invoice { id, total: id * 10 }).collect();
    let next = units.last().map(|last| (last.id + 1).to_string());
    FetchedPage { units, next }
}

/// The file that the job writes to, if it is not the store.
pub(crate) async fn shop() -> Option<Pool<Sqlite>> {
    Some(Sqlite::open(&variable("PROBE_SHOP")?).await.unwrap())
}

/// The job, with the database that it writes to.
pub(crate) async fn job() -> Definition {
    let url = variable("PROBE_SHOP").or_else(|| variable("PROBE_STORE")).unwrap();
    let job = if url.starts_with("sqlite:") {
        Definition::of(Sync { pool: Sqlite::open(&url).await.unwrap() })
    } else {
        Definition::of(Sync { pool: Postgres::open(&url).await.unwrap() })
    };
    job.unwrap().retry(Retry { attempts: 3, backoff: BACKOFF })
}

/// Retries all parked units.
pub(crate) async fn unpark() -> Result<(), LedgerError> {
    let url = variable("PROBE_STORE").unwrap();
    if url.starts_with("sqlite:") {
        unparked(&Sqlite::open(&url).await.unwrap()).await
    } else {
        unparked(&Postgres::open(&url).await.unwrap()).await
    }
}

async fn unparked<DB: Shop>(pool: &Pool<DB>) -> Result<(), LedgerError> {
    let ledger = Ledger::open(pool, "crash", NAME).await?;
    for id in 1..=INVOICES {
        ledger.unpark(&key!("invoice", id)?).await?;
    }
    Ok(())
}
