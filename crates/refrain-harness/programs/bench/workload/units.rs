//! The cost of the ledger beside the rows: units in batches with an upsert, again when all of them are known, single
//! claims from many tasks, and memory over time; against the same writes in the baseline.

mod by_hand;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use by_hand::{Kept, Row, Rows, TABLES, by_hand, rows};
use refrain::ledger::Per;
use refrain::{Ask, Definition, Job, JobError, Ledger, Refrain, Run, key};
use sqlx::{Pool, Postgres, Sqlite};

use crate::report::{Figure, Pairs, Report, Target, Unit};
use crate::scratch::{Scratch, Server};
use crate::{Plan, Result};

const UNITS: u32 = 200_000;
const TASKS: usize = 64;
const CLAIMS: u32 = 64_000;
/// How many units are processed before memory is measured first, and in all.
const FEW: u32 = 10_000;
const MANY: u32 = 10_000_000;

/// A job that applies rows, and records how long that took.
struct Sync<DB: Rows> {
    pool: Pool<DB>,
    rows: Arc<Mutex<Arc<Vec<Row>>>>,
    took: Arc<Mutex<Duration>>,
}

impl<DB: Rows> Job for Sync<DB> {
    const NAME: &'static str = "sync";

    async fn run(&self, run: &mut Run) -> std::result::Result<(), JobError> {
        let rows = self.rows.lock().map(|rows| Arc::clone(&rows)).unwrap_or_default();
        let begun = Instant::now();
        let fence = run.fence(&self.pool).await?;
        let units = fence.units(Per::Ever, |row: &Row| key!(row.id));
        let mut batches = units.apply(&rows).await?;
        while let Some(mut batch) = batches.next().await? {
            let rows = batch.all();
            let went = DB::upsert(batch.tx(), &rows).await;
            batch.settle(went).await?;
        }
        if let Ok(mut took) = self.took.lock() {
            *took = begun.elapsed();
        }
        Ok(())
    }
}

struct Subject<DB: Rows> {
    refrain: Refrain,
    pool: Pool<DB>,
    rows: Arc<Mutex<Arc<Vec<Row>>>>,
    took: Arc<Mutex<Duration>>,
}

impl<DB: Rows> Subject<DB> {
    async fn open(scratch: &Scratch) -> Result<Subject<DB>> {
        let pool = DB::pool(&scratch.address).await?;
        let (rows, took) = (Arc::default(), Arc::default());
        let job = Sync { pool: pool.clone(), rows: Arc::clone(&rows), took: Arc::clone(&took) };
        let job = Definition::of(job)?.timeout(Duration::from_hours(10));
        let refrain = Refrain::at(&scratch.address, "bench")?.job(job).open().await?;
        Ok(Subject { refrain, pool, rows, took })
    }

    /// How long it took to apply these rows.
    async fn apply(&self, key: &str, rows: Vec<Row>) -> Result<Duration> {
        *self.rows.lock().map_err(|error| error.to_string())? = Arc::new(rows);
        let name = format!("sync#{key}");
        self.refrain.run(&name, Ask::Once).await?;
        let run = self.refrain.show(&name).await?.ok_or("there is no such run")?;
        if run.message.is_some() {
            return Err(format!("{key}: {:?}", run.message).into());
        }
        Ok(*self.took.lock().map_err(|error| error.to_string())?)
    }

    async fn close(self) {
        self.refrain.close().await;
        self.pool.close().await;
    }
}

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    match server {
        Server::Sqlite(_) => Box::pin(measured::<Sqlite>(plan, server, report)).await,
        Server::Postgres(_) => Box::pin(measured::<Postgres>(plan, server, report)).await,
    }
}

async fn measured<DB: Rows>(plan: &Plan, server: &Server, report: &mut Report) -> Result<()>
where
    for<'c> &'c mut DB::Connection: sqlx::Executor<'c, Database = DB>,
{
    let count = plan.scaled(UNITS);
    let each = |took: Duration| f64::from(count) / took.as_secs_f64();
    let (mut first, mut second, mut single) = (Pairs::default(), Pairs::default(), Pairs::default());
    let (mut first_by_key, mut second_by_key) = (Pairs::default(), Pairs::default());
    for _ in 0..plan.repetitions {
        let scratch = server.database().await?;
        let subject: Subject<DB> = Subject::open(&scratch).await?;
        for table in TABLES {
            sqlx::raw_sql(table).execute(&subject.pool).await?;
        }
        let mut hand = Vec::new();
        for kept in [Kept::Key, Kept::KeyAndHash] {
            for _ in 0..2 {
                hand.push(each(by_hand(&subject.pool, &rows(0, count), kept).await?));
            }
            sqlx::raw_sql("delete from rows_here").execute(&subject.pool).await?;
            server.tidy_up(&scratch).await?;
        }
        let ours = each(subject.apply("first", rows(0, count)).await?);
        let again = each(subject.apply("second", rows(0, count)).await?);
        if let [keys_once, keys_again, once, twice] = hand.as_slice() {
            first.push(ours, *once);
            second.push(again, *twice);
            first_by_key.push(ours, *keys_once);
            second_by_key.push(again, *keys_again);
        }
        let (ours, hand) = Box::pin(claims(&subject.pool, plan.scaled(CLAIMS))).await?;
        single.push(ours, hand);
        subject.close().await;
        server.remove(scratch).await?;
    }
    report.add(
        server.name(),
        first.figure(format!("apply {count} units with an upsert, against by hand"), 0.8),
    );
    report.add(server.name(), second.figure(format!("{count} units that are known, against by hand"), 0.8));
    for (pairs, what) in [(first_by_key, "the first"), (second_by_key, "the second")] {
        let what = format!("{what}, against keys only by hand: changes go unnoticed");
        report.add(server.name(), Figure { target: Target::Open, ..pairs.figure(what, 0.0) });
    }
    report.add(
        server.name(),
        single.figure(format!("single claims from {TASKS} tasks, against a commit each"), 10.0),
    );
    memory::<DB>(plan, server, report).await
}

/// Claims per second, committed together and one by one.
async fn claims<DB: Rows>(pool: &Pool<DB>, count: u32) -> Result<(f64, f64)> {
    let ledger = Ledger::open(pool, "bench", "claims").await?;
    let each = count / u32::try_from(TASKS)?;
    let mut rates = Vec::new();
    for together in [true, false] {
        // A tenth of the units is enough: one by one is slow.
        let each = if together { each } else { each / 10 };
        let begun = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..TASKS {
            let (ledger, pool) = (ledger.clone(), pool.clone());
            tasks.spawn(async move {
                for at in 0..each {
                    let key = key!(together, task, at).map_err(|error| error.to_string())?;
                    if together {
                        ledger.claim_alone(key).await.map_err(|error| error.to_string())?;
                    } else {
                        let begun = pool.begin_with(DB::BEGIN).await;
                        let mut transaction = begun.map_err(|error| error.to_string())?;
                        ledger.claim(&mut transaction, key).await.map_err(|error| error.to_string())?;
                        transaction.commit().await.map_err(|error| error.to_string())?;
                    }
                }
                Ok::<_, String>(())
            });
        }
        for ended in tasks.join_all().await {
            ended?;
        }
        rates.push(f64::from(each * u32::try_from(TASKS)?) / begun.elapsed().as_secs_f64());
    }
    match rates.as_slice() {
        [ours, hand] => Ok((*ours, *hand)),
        _ => Err("two rates".into()),
    }
}

/// Memory after many units, against few.
async fn memory<DB: Rows>(plan: &Plan, server: &Server, report: &mut Report) -> Result<()>
where
    for<'c> &'c mut DB::Connection: sqlx::Executor<'c, Database = DB>,
{
    let (few, many) = (FEW, plan.either(MANY / 50, MANY));
    let scratch = server.database().await?;
    let subject: Subject<DB> = Subject::open(&scratch).await?;
    for table in TABLES {
        sqlx::raw_sql(table).execute(&subject.pool).await?;
    }
    let mut sizes = Vec::new();
    let mut seen = 0;
    while seen < many {
        subject.apply(&seen.to_string(), rows(seen, few)).await?;
        seen += few;
        if seen == few || seen >= many {
            sizes.push(resident()?);
        }
    }
    subject.close().await;
    server.remove(scratch).await?;
    let (Some(before), Some(after)) = (sizes.first(), sizes.last()) else { return Ok(()) };
    report.add(
        server.name(),
        Figure {
            what: format!("memory after {many} units, against after {few}"),
            unit: Unit::Times,
            values: vec![after / before],
            target: Target::AtMost(1.3),
            context: format!("{:.0} MiB, {:.0} MiB", after / 1_048_576.0, before / 1_048_576.0),
        },
    );
    Ok(())
}

/// The resident memory of this process, in bytes.
pub(super) fn resident() -> Result<f64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = pages.split(' ').nth(1).ok_or("no resident pages")?.parse()?;
    Ok(pages * 4096.0)
}
