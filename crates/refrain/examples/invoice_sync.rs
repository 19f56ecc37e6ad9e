//! A paginated sync that can be killed anywhere: invoices from a billing system into a table of your own.
//!
//! `invoice_sync STORE SHOP SOURCE`: the store of runs and the shop's database (two SQLite files), and
//! a file of JSON lines in place of the billing system, read page by page in the order of changes. Run
//! it again, and no row is written; change a line with its `updated`, and its row is overwritten; add
//! lines, and only those are read. A negative total violates the constraint of the table: that unit
//! alone fails, and is stored until it is corrected.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::time::Duration;

use refrain::core::retry::Retry;
use refrain::ledger::{Batches, FetchedPage, Per};
use refrain::{Ask, Definition, Job, JobError, Refrain, Run, Settings, key};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteConnection, SqlitePool};

#[derive(Clone, Serialize, Deserialize)]
struct Invoice {
    id: i64,
    total: i64,
    updated: i64,
}

struct InvoiceSync {
    shop: SqlitePool,
    source: String,
}

impl InvoiceSync {
    /// What the API of a billing system does: up to a hundred invoices after a position, and the next position. A position
    /// is that of the last invoice, not a count, so an invoice inserted meanwhile shifts no page.
    async fn page(&self, after: Option<String>) -> Result<FetchedPage<Invoice>, JobError> {
        let place = |invoice: &Invoice| format!("{:020} {:020}", invoice.updated, invoice.id);
        let lines = tokio::task::spawn_blocking({
            let source = self.source.clone();
            move || std::fs::read_to_string(source)
        });
        let lines = lines.await??;
        let invoices: Result<Vec<Invoice>, _> = lines.lines().map(serde_json::from_str).collect();
        let mut units = invoices?;
        units.retain(|invoice| after.as_ref().is_none_or(|after| place(invoice) > *after));
        units.sort_by_key(place);
        units.truncate(100);
        let next = units.last().map(place);
        Ok(FetchedPage { units, next })
    }
}

impl Job for InvoiceSync {
    const NAME: &'static str = "invoice-sync";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        // From here on an earlier attempt can write nothing, so what this attempt reads stays true.
        let shop = run.fence(&self.shop).await?;
        let invoices = shop
            .units(Per::Ever, |invoice: &Invoice| key!("invoice", invoice.id))
            .order(|invoice| invoice.updated);

        // The input of failed units is stored; the source need not deliver it again.
        let failed = invoices.failed().await?;
        write(invoices.apply(&failed).await?).await?;

        let mut pages = invoices.cursor("billing").await?;
        while let Some(page) = pages.next(|after| self.page(after)).await? {
            write(page.apply()).await?;
            println!("a page of {}", page.units().len());
            page.done().await?; // the only way to advance
        }
        Ok(())
    }
}

/// One transaction per batch, for the ledger and the rows: both are committed, or neither is.
async fn write(mut batches: Batches<'_, Sqlite, Invoice>) -> Result<(), JobError> {
    while let Some(mut batch) = batches.next().await? {
        let (tx, invoices) = batch.parts();
        let result = upsert(tx, &invoices).await;
        batch.settle(result).await?;
    }
    Ok(())
}

async fn upsert(shop: &mut SqliteConnection, invoices: &[&Invoice]) -> Result<(), sqlx::Error> {
    for invoice in invoices {
        let upsert = "insert into invoices (id, total) values ($1, $2)
            on conflict (id) do update set total = excluded.total";
        sqlx::query(upsert).bind(invoice.id).bind(invoice.total).execute(&mut *shop).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [store, shop, source] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "usage: invoice_sync STORE SHOP SOURCE")?;
    let shop =
        SqlitePool::connect_with(SqliteConnectOptions::new().filename(shop).create_if_missing(true)).await?;
    sqlx::raw_sql(
        "create table if not exists invoices (id integer primary key, total integer not null check (total >= 0))",
    )
    .execute(&shop)
    .await?;

    let job = Definition::of(InvoiceSync { shop, source })?.retry(Retry { attempts: 1, ..Retry::default() });
    // A process that is silent for longer than its lease loses its runs.
    let settings = Settings::new().lease(Duration::from_secs(3));
    let refrain = Refrain::at(&format!("sqlite:{store}"), "shop")?.settings(settings).job(job).open().await?;
    // One run, attempted again each time. With a schedule there would be one run per window.
    refrain.run("invoice-sync#now", Ask::Again).await?;
    let run = refrain.show("invoice-sync#now").await?.ok_or("it has not run")?;
    let units = refrain.units(&run).await?;
    let seen = units.iter().find(|seen| seen.attempt == run.attempt);
    println!("{}", seen.map(|seen| seen.counts).unwrap_or_default());
    if let Some(message) = run.message {
        println!("{message}");
    }
    refrain.close().await;
    Ok(())
}
