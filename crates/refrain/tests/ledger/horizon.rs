//! The horizon of a PostgreSQL source: writers commit in another order than they drew their
//! numbers, and no row is missed.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use refrain::core::random::{Random, SeededRandom};
use refrain::ledger::{FetchedPage, LedgerError, Per};
use refrain::run::Horizon;
use refrain::{Definition, Run, key};
use serde::Serialize;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor, PgPool, Postgres};
use tokio::task::JoinSet;

use crate::shop::{Shop, ran, work};
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::open;

const WRITERS: u64 = 64;
const EVENTS: u64 = 8;
/// How many rounds there are, each with other writers.
const ROUNDS: u64 = 2;

#[derive(Serialize)]
struct Event {
    id: i64,
    changed_in: i64,
}

const TABLE: &str = "create table events (
        id bigint generated always as identity primary key,
        writer bigint not null,
        changed_in xid8 not null default pg_current_xact_id()
    );
    create index on events (changed_in, id)";

/// Every writer inserts one row after another, and works for a random time before it commits each of them.
async fn write_events(pool: &PgPool, seed: u64) {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (pool, mut random) = (pool.clone(), SeededRandom::new(seed * WRITERS + writer));
        writers.spawn(async move {
            for _ in 0..EVENTS {
                let rows = random.next_u64() % 40_000;
                let write = format!(
                    "begin; insert into events (writer) values ({writer}); \
                     select count(*) from generate_series(1, {rows}); commit"
                );
                pool.execute(AssertSqlSafe(write)).await.unwrap();
            }
        });
    }
    writers.join_all().await;
}

/// What a reader does: the next events after a position.
#[derive(Clone, Copy)]
enum Reader {
    ByHorizon,
    ById,
}

impl Reader {
    async fn read(
        self,
        run: &Run,
        pool: &PgPool,
        at: Option<String>,
    ) -> Result<FetchedPage<Event>, LedgerError> {
        let (xid, id) = at.as_deref().and_then(|at| at.split_once(' ')).unwrap_or(("0", "0"));
        let (xid, id): (i64, i64) = (xid.parse().unwrap(), id.parse().unwrap());
        let columns = "select id, cast(cast(changed_in as text) as bigint) from events";
        let rows: Vec<(i64, i64)> = match self {
            Reader::ByHorizon => {
                let horizon = run.horizon(pool).await?;
                let read = format!(
                    "{columns} where changed_in < cast(cast($3 as text) as xid8)
                         and (changed_in, id) > (cast(cast($1 as text) as xid8), $2)
                     order by changed_in, id limit 500"
                );
                let read = sqlx::query_as(AssertSqlSafe(read)).bind(xid).bind(id).bind(horizon.below());
                read.fetch_all(pool).await.unwrap()
            }
            Reader::ById => {
                let read = format!("{columns} where id > $1 order by id limit 500");
                sqlx::query_as(AssertSqlSafe(read)).bind(id).fetch_all(pool).await.unwrap()
            }
        };
        let next = rows.last().map(|(id, xid)| format!("{xid} {id}"));
        let units = rows.into_iter().map(|(id, changed_in)| Event { id, changed_in }).collect();
        Ok(FetchedPage { units, next })
    }

    /// Reads until the horizon has passed the last writer, whose number is known by then. Other transactions on the
    /// same server keep the horizon back too.
    fn job(self, shop: &Shop<Postgres>, name: &str, last: &Arc<AtomicI64>) -> Definition {
        let last = last.clone();
        work(shop, name, move |run, pool| {
            let last = last.clone();
            async move {
                let units = run.fence(&pool).await?.units(Per::Ever, |event: &Event| key!("event", event.id));
                loop {
                    let is_over = run.horizon(&pool).await?.below() > last.load(Ordering::SeqCst);
                    let mut pages = units.cursor("events").await?;
                    while let Some(page) = pages.next(|at| self.read(&run, &pool, at)).await? {
                        let mut batches = page.apply();
                        while let Some(batch) = batches.next().await? {
                            batch.settle(Ok::<_, LedgerError>(())).await?;
                        }
                        page.done().await?;
                    }
                    if is_over {
                        return Ok(());
                    }
                }
            }
        })
    }
}

/// How many events two readers have missed: one that uses the horizon, and one that uses only the number.
async fn missed(seed: u64) -> [i64; 2] {
    let shop = Shop::on_a_server().await;
    shop.pool.execute(TABLE).await.unwrap();
    let options = (*shop.pool.connect_options()).clone();
    let writers = PgPoolOptions::new().max_connections(64).connect_with(options).await.unwrap();
    let last = Arc::new(AtomicI64::new(i64::MAX));
    let jobs = [Reader::ByHorizon.job(&shop, "by-horizon", &last), Reader::ById.job(&shop, "by-id", &last)];
    let refrain = open(&shop.store, jobs).await;
    let readers = ["by-horizon#all", "by-id#all"].map(|run| {
        let refrain = refrain.clone();
        tokio::spawn(async move { ran(&refrain, run).await })
    });
    // The first writer commits after the reader by number has passed its event.
    let mut first = writers.begin().await.unwrap();
    (&mut *first).execute("insert into events (writer) values (-1)").await.unwrap();
    write_events(&writers, seed).await;
    eventually("the reader by number has come by", DEADLINE, async || {
        let moved = "select count(*) from refrain_checkpoints as checkpoints join refrain_ledgers as ledgers
            on ledgers.id = checkpoints.ledger where ledgers.job = 'by-id'";
        shop.database.store_numbers(moved).await[0] > 0
    })
    .await;
    first.commit().await.unwrap();
    let highest = "select cast(max(cast(cast(changed_in as text) as bigint)) as bigint) from events";
    last.store(shop.numbers(highest).await[0], Ordering::SeqCst);
    for reader in readers {
        assert_eq!(reader.await.unwrap(), "all done 1");
    }
    writers.close().await;
    let written = shop.numbers("select count(*) from events").await[0];
    assert_eq!(written, i64::try_from(WRITERS * EVENTS + 1).unwrap());
    let mut missed = [written, written];
    for (job, missed) in ["by-horizon", "by-id"].into_iter().zip(&mut missed) {
        let read = format!(
            "select count(*) from refrain_units as units join refrain_ledgers as ledgers
                on ledgers.id = units.ledger where ledgers.job = '{job}'"
        );
        *missed -= shop.database.store_numbers(&read).await[0];
    }
    missed
}

#[tokio::test]
async fn f30_of_64_writers_who_commit_out_of_order_no_row_is_missed() {
    for seed in 0..ROUNDS {
        let [by_horizon, by_id] = missed(seed).await;
        assert_eq!(by_horizon, 0, "seed {seed}");
        assert!(by_id > 0, "a reader by number alone missed nothing either: this story cannot fail");
    }
}

/// Reads the horizon in a run.
async fn horizons(
    shop: &Shop<Postgres>,
    key: &str,
    pool: PgPool,
    times: usize,
) -> Result<Vec<Horizon>, String> {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let asking = work(shop, "asking", move |run, _| {
        let (pool, sender) = (pool.clone(), sender.clone());
        async move {
            for _ in 0..times {
                let _ = sender.send(run.horizon(&pool).await.map_err(|error| error.to_string()));
            }
            ready(Ok(())).await
        }
    });
    let refrain = open(&shop.store, [asking]).await;
    ran(&refrain, &format!("asking#{key}")).await;
    let mut horizons = Vec::new();
    while let Ok(horizon) = receiver.try_recv() {
        horizons.push(horizon?);
    }
    refrain.close().await;
    Ok(horizons)
}

/// A writer that has drawn its number and stays open, in this database or in another one of the server.
async fn pins(writer: &PgPool) {
    let shop = Shop::on_a_server().await;
    let mut transaction = writer.begin().await.unwrap();
    let number = "select cast(cast(pg_current_xact_id() as text) as bigint)";
    let number: i64 = sqlx::query_scalar(number).fetch_one(&mut *transaction).await.unwrap();
    let began = Instant::now();
    for key in ["one", "two"] {
        let at_least = began.elapsed();
        let horizon = horizons(&shop, key, shop.pool.clone(), 1).await.unwrap()[0];
        assert!(horizon.below() <= number, "{horizon:?} passes {number}");
        // Other tests may have older writers on the server, which come and go.
        assert!(horizon.pinned_for() >= at_least, "{horizon:?} {at_least:?}");
    }
    transaction.rollback().await.unwrap();
}

#[tokio::test]
async fn f30_an_open_writer_pins_the_horizon_and_is_reported() {
    let source = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &source else { unreachable!() };
    pins(pool).await;
}

#[tokio::test]
async fn f44_the_horizon_is_readable_behind_a_pooler() {
    let shop = Shop::on_a_server().await;
    let pooled = TestDatabase::pgbouncer().await;
    let pool = PgPoolOptions::new().max_connections(8).connect(&pooled.url()).await.unwrap();
    let mut asking = JoinSet::new();
    // Other transactions keep connections of the server busy, so that each statement gets another one.
    for task in 0..4 {
        let pool = pool.clone();
        asking.spawn(async move {
            for _ in 0..100 {
                let mut transaction = pool.begin().await.unwrap();
                let query = sqlx::query("select count(*) from generate_series(1, 20000)").persistent(false);
                query.execute(&mut *transaction).await.unwrap();
                transaction.commit().await.unwrap();
            }
            task
        });
    }
    let horizons = horizons(&shop, "pooled", pool.clone(), 300).await.unwrap();
    assert_eq!((horizons.len(), asking.join_all().await.len()), (300, 4));
    pool.close().await;
}

/// The instructions of the guide for a table work.
#[tokio::test]
async fn the_statements_of_the_guide_prepare_a_table() {
    let shop = Shop::on_a_server().await;
    let guide = include_str!("../../../../docs/LEDGER.md");
    let (_, after) = guide.split_once("```sql\n").unwrap();
    let (statements, _) = after.split_once("```").unwrap();
    shop.pool.execute(AssertSqlSafe(statements)).await.unwrap();
    shop.execute("insert into invoices (id, total, writes) values (1, 10, 1)").await;
    assert_eq!(shop.numbers("select id from invoices where changed_in <= pg_current_xact_id()").await, [1]);
}
