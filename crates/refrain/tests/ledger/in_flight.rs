//! The reply to a commit is lost while the server is still committing: a lookup of the result waits
//! for the commit first.
//!
//! A trigger that is deferred to the end of a transaction waits for a lock that the test holds: the
//! commit is in flight. Then all connections are cut. The server does not notice, and commits when
//! the test releases the lock.

use refrain::error::DatabaseError;
use refrain::ledger::{BatchError, FetchedPage, LedgerError, Per};
use refrain::{Claim, Ledger, Run, key};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor, PgConnection, PgPool, Postgres};

use crate::shop::{Shop, counts, invoice, invoices, key_of, ran, sync, work, write_all};
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::proxy::Proxy;
use refrain_harness::work::open;

/// A shop whose server is slow to commit, and is reached through a network that is cut.
struct Slow {
    shop: Shop<Postgres>,
    network: Proxy,
    /// Connections that are not cut.
    near: PgPool,
    holder: PgConnection,
}

impl Slow {
    async fn server() -> Slow {
        let shop = Shop::on_a_server().await;
        let network = Proxy::in_front_of(&shop.database.url()).await;
        let (near, holder) = (shop.pool.clone(), shop.pool.acquire().await.unwrap().detach());
        let name = near.connect_options().get_database().unwrap().to_owned();
        let pool = PgPoolOptions::new().max_connections(4).connect(&network.url(&name)).await.unwrap();
        Slow { shop: Shop { pool, ..shop }, network, near, holder }
    }

    /// From now on, commits that have written a matching row to this table wait.
    async fn hold(&mut self, table: &str, which: &str) {
        let hold = format!(
            "create function hold() returns trigger language plpgsql as
                 $$ begin perform set_config('lock_timeout', '0', true); \
                 perform pg_advisory_xact_lock(77); return null; end $$;
             create constraint trigger hold after insert or update on refrain.{table}
                 deferrable initially deferred for each row when ({which}) execute function hold();
             select pg_advisory_lock(77)"
        );
        self.holder.execute(AssertSqlSafe(hold)).await.unwrap();
    }

    async fn waiting(&self, what: &str) -> i64 {
        let count = format!(
            "select count(*) from pg_stat_activity where datname = current_database() \
             and wait_event_type = 'Lock' and {what}"
        );
        sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&self.near).await.unwrap()
    }

    /// Cuts the connections while a commit is in flight; lets it finish once a lookup waits for it.
    async fn cut_and_release(&mut self) {
        eventually("a commit is in flight", DEADLINE, async || {
            self.waiting("wait_event = 'advisory'").await == 1
        })
        .await;
        self.network.cut_all().await;
        eventually("a lookup waits for it", DEADLINE, async || {
            self.waiting("wait_event <> 'advisory'").await >= 1
        })
        .await;
        self.holder.execute("select pg_advisory_unlock(77)").await.unwrap();
    }
}

/// Runs `sync#monday` while its write to a table is held back. Returns its state and its counts.
async fn held<F>(
    mut slow: Slow,
    table: &str,
    which: &str,
    work_: impl Fn(Run, PgPool) -> F + Send + Sync + 'static,
) -> (Slow, String)
where
    F: Future<Output = Result<(), LedgerError>> + Send + 'static,
{
    let refrain = open(&slow.shop.store, [work(&slow.shop, "sync", work_)]).await;
    slow.hold(table, which).await;
    let running = tokio::spawn(async move {
        let state = ran(&refrain, "sync#monday").await;
        format!("{state} {:?}", counts(&refrain, "sync#monday").await)
    });
    slow.cut_and_release().await;
    let state = running.await.unwrap();
    (slow, state)
}

#[tokio::test]
async fn f4_every_writer_waits_for_a_commit_in_flight() {
    for table in ["projects", "fences", "ledgers", "units", "checkpoints"] {
        let (slow, state) = held(Slow::server().await, table, "true", |run, pool| async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let mut pages = units.cursor("billing").await?;
            let page = FetchedPage { units: invoices(3), next: Some("3".to_owned()) };
            let page = pages.next(|_| async { Ok::<_, LedgerError>(page) }).await?.unwrap();
            write_all(page.apply()).await?;
            page.done().await
        })
        .await;
        assert_eq!(state, "monday done 1 [3, 0, 0, 0]", "{table}");
        assert_eq!(slow.shop.writes().await, [1, 1, 1], "{table}");
    }
}

#[tokio::test]
async fn f4_content_over_a_commit_in_flight_is_written_once() {
    let slow = Slow::server().await;
    let source = crate::shop::Source::of(invoices(3));
    let first = open(&slow.shop.store, [sync(&slow.shop, &source, Per::Ever, |units| units)]).await;
    ran(&first, "sync#sunday").await;
    let (slow, state) = held(slow, "units", "true", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        write_all(units.apply(&[invoice(1, 11), invoice(4, 40)]).await?).await
    })
    .await;
    assert_eq!(state, "monday done 1 [2, 0, 0, 0]");
    assert_eq!(
        (slow.shop.writes().await, slow.shop.totals().await),
        (vec![2, 1, 1, 1], vec![11, 20, 30, 40])
    );
}

#[tokio::test]
async fn f4_a_failure_whose_commit_is_in_flight_counts_once() {
    let (slow, state) =
        held(Slow::server().await, "units", "new.status <> 'applied'", |run, pool| async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let list = invoices(1);
            let mut batches = units.apply(&list).await?;
            let batch = batches.next().await?.unwrap();
            batch.settle(Err::<(), _>(BatchError::new("no"))).await?;
            batches.next().await.map(|_| ())
        })
        .await;
    assert_eq!(state, "monday due 2 [0, 0, 0, 1]");
    assert_eq!(slow.shop.numbers("select cast(failures as bigint) from refrain.units").await, [1]);
}

#[tokio::test]
async fn f4_a_claim_whose_commit_is_in_flight_is_recognized() {
    let mut slow = Slow::server().await;
    let ledger = Ledger::open(&slow.shop.pool, "shop", "digests").await.unwrap();
    slow.hold("units", "true").await;
    let claiming = tokio::spawn(async move { ledger.claim_alone(key!("digest", 1).unwrap()).await.unwrap() });
    slow.cut_and_release().await;
    assert_eq!(claiming.await.unwrap(), Claim::Fresh);
}

#[tokio::test]
async fn f4_grouped_claims_without_a_reply_are_each_reported_as_unknown() {
    let mut slow = Slow::server().await;
    let ledger = Ledger::open(&slow.shop.pool, "shop", "digests").await.unwrap();
    slow.hold("units", "true").await;
    let claim = |number: i32| ledger.claim_alone(key!("digest", number).unwrap());
    let leaving = async {
        let under_way = async || slow.waiting("wait_event = 'advisory'").await == 1;
        eventually("a commit is in flight", DEADLINE, under_way).await;
        // No other connection can be opened to look up the result of the commit.
        tokio::join!(slow.shop.pool.close(), slow.network.cut_all());
    };
    let (one, other, ()) = tokio::join!(claim(1), claim(2), leaving);
    for text in [one, other] {
        let error = text.unwrap_err();
        assert!(matches!(error, LedgerError::Database(DatabaseError::Unknown(_))), "{error}");
    }
}
