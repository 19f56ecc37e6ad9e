//! What the ledger costs beside the rows: units in batches with an upsert, again when all of them are known, single claims
//! from many tasks, and memory as units come by; against the same writes by hand.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use refrain::{Ask, Backend, Definition, Job, JobError, Ledger, Per, Refrain, Run, key};
use serde::Serialize;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Pool, Postgres, Sqlite};

use crate::report::{Figure, Pairs, Report, Target, Unit};
use crate::scratch::{Scratch, Server};
use crate::{Plan, Result};

const UNITS: u32 = 200_000;
const BATCH: usize = 1_000;
const TASKS: usize = 64;
const CLAIMS: u32 = 64_000;
const CONNECTIONS: u32 = 8;
/// Units that have come by before memory is looked at, and in all.
const FEW: u32 = 10_000;
const MANY: u32 = 10_000_000;

#[derive(Serialize)]
struct Row {
    id: String,
    amount: i64,
}

fn rows(from: u32, count: u32) -> Vec<Row> {
    (from..from + count).map(|at| Row { id: format!("{at:010}"), amount: i64::from(at) }).collect()
}

type Answer<T> = std::result::Result<T, sqlx::Error>;

/// What is written by hand, and what a job writes beside the ledger.
trait Rows: Backend {
    const BEGIN: &'static str;
    async fn pool(address: &str) -> Answer<Pool<Self>>;
    fn upsert(connection: &mut Self::Connection, rows: &[&Row]) -> impl Future<Output = Answer<()>> + Send;
    /// Gives the keys that were not there.
    fn ledger(
        connection: &mut Self::Connection,
        keys: &[String],
    ) -> impl Future<Output = Answer<Vec<String>>> + Send;
}

const TABLES: [&str; 2] = [
    "create table by_hand (key text primary key, at bigint not null)",
    "create table rows_here (id text primary key, amount bigint not null, note text not null)",
];
const NOTE: &str = "some payload of a row of ordinary length, eighty bytes or so, nothing more";

impl Rows for Postgres {
    const BEGIN: &'static str = "begin";

    async fn pool(address: &str) -> Answer<Pool<Postgres>> {
        PgPoolOptions::new().max_connections(CONNECTIONS).connect(address).await
    }

    async fn upsert(connection: &mut Self::Connection, rows: &[&Row]) -> Answer<()> {
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let amounts: Vec<i64> = rows.iter().map(|row| row.amount).collect();
        let upsert = "insert into rows_here (id, amount, note)
            select r.id, r.amount, $3 from unnest($1::text[], $2::bigint[]) as r (id, amount)
            on conflict (id) do update set amount = excluded.amount, note = excluded.note";
        sqlx::query(upsert).bind(ids).bind(amounts).bind(NOTE).execute(connection).await.map(|_| ())
    }

    async fn ledger(connection: &mut Self::Connection, keys: &[String]) -> Answer<Vec<String>> {
        let insert = "insert into by_hand (key, at) select k, 0 from unnest($1::text[]) as k
            on conflict do nothing returning key";
        sqlx::query_scalar(insert).bind(keys).fetch_all(connection).await
    }
}

impl Rows for Sqlite {
    const BEGIN: &'static str = "begin immediate";

    async fn pool(address: &str) -> Answer<Pool<Sqlite>> {
        let options: SqliteConnectOptions = address.parse()?;
        let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
        let options = options.busy_timeout(Duration::from_mins(1)).row_buffer_size(4_000);
        let options = options.pragma("wal_autocheckpoint", "4000");
        SqlitePoolOptions::new().max_connections(1).connect_with(options).await
    }

    async fn upsert(connection: &mut Self::Connection, rows: &[&Row]) -> Answer<()> {
        let text = serde_json::to_string(&rows.iter().map(|row| (&row.id, row.amount)).collect::<Vec<_>>());
        let upsert = "insert into rows_here (id, amount, note)
            select value ->> 0, value ->> 1, $2 from jsonb_each($1) where true
            on conflict (id) do update set amount = excluded.amount, note = excluded.note";
        sqlx::query(upsert).bind(text.unwrap_or_default()).bind(NOTE).execute(connection).await.map(|_| ())
    }

    async fn ledger(connection: &mut Self::Connection, keys: &[String]) -> Answer<Vec<String>> {
        let text = serde_json::to_string(keys).unwrap_or_default();
        let insert = "insert into by_hand (key, at) select value, 0 from json_each($1) where true
            on conflict do nothing returning key";
        sqlx::query_scalar(insert).bind(text).fetch_all(connection).await
    }
}

/// A job that applies rows, and remembers how long that took.
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

async fn by_hand<DB: Rows>(pool: &Pool<DB>, rows: &[Row]) -> Result<Duration> {
    let begun = Instant::now();
    for chunk in rows.chunks(BATCH) {
        let keys: Vec<String> = chunk.iter().map(|row| row.id.clone()).collect();
        let mut transaction = pool.begin_with(DB::BEGIN).await?;
        let fresh = DB::ledger(&mut *transaction, &keys).await?;
        if !fresh.is_empty() {
            DB::upsert(&mut *transaction, &chunk.iter().collect::<Vec<_>>()).await?;
        }
        transaction.commit().await?;
    }
    Ok(begun.elapsed())
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
    for _ in 0..plan.repetitions {
        let scratch = server.database().await?;
        let subject: Subject<DB> = Subject::open(&scratch).await?;
        for table in TABLES {
            sqlx::raw_sql(table).execute(&subject.pool).await?;
        }
        let hand = rows(0, count);
        let (one, two) = (by_hand(&subject.pool, &hand).await?, by_hand(&subject.pool, &hand).await?);
        sqlx::raw_sql("delete from rows_here").execute(&subject.pool).await?;
        server.settle(&scratch).await?;
        let ours = subject.apply("first", rows(0, count)).await?;
        first.push(each(ours), each(one));
        second.push(each(subject.apply("second", rows(0, count)).await?), each(two));
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
    report.add(
        server.name(),
        single.figure(format!("single claims from {TASKS} tasks, against a commit each"), 10.0),
    );
    memory::<DB>(plan, server, report).await
}

/// Claims a second, committed together and one by one.
async fn claims<DB: Rows>(pool: &Pool<DB>, count: u32) -> Result<(f64, f64)> {
    let ledger = Ledger::open(pool, "bench", "claims").await?;
    let each = count / u32::try_from(TASKS)?;
    let mut rates = Vec::new();
    for together in [true, false] {
        // One by one is slow: a tenth is enough to know.
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

/// Bytes of this process that are in memory.
fn resident() -> Result<f64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = pages.split(' ').nth(1).ok_or("no resident pages")?.parse()?;
    Ok(pages * 4096.0)
}
