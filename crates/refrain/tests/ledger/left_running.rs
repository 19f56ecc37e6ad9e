//! A handler is dropped while the server executes its long statement: no other work waits for that
//! statement.
//!
//! On PostgreSQL only: in a file a statement ends with its handler.

use refrain::ledger::{LedgerError, Per};
use sqlx::{Connection as _, Executor as _, PgPool};

use crate::shop::{Shop, invoice, invoices, key_of, ran, work, write_all};
use refrain_harness::work::open;

#[tokio::test]
async fn a_query_left_running_by_a_handler_blocks_no_transaction() {
    let shop = Shop::on_a_server().await;
    let mut holder = shop.pool.acquire().await.unwrap().detach();
    holder.execute("select pg_advisory_lock(78)").await.unwrap();
    let hasty = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        if run.key() == "tuesday" {
            return write_all(units.apply(&[invoice(2, 20)]).await?).await;
        }
        let list = invoices(1);
        let mut batches = units.apply(&list).await?;
        let mut batch = batches.next().await?.unwrap();
        tokio::select! {
            over = sqlx::query("select pg_advisory_xact_lock(78)").execute(batch.tx()) => panic!("{over:?}"),
            () = is_running(&pool) => {}
        }
        drop(batch);
        Err(LedgerError::Contended)
    });
    let refrain = open(&shop.store, [hasty]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    assert_eq!(ran(&refrain, "sync#tuesday").await, "tuesday done 1");
    assert_eq!(shop.writes().await, [1]);
    holder.close().await.unwrap();
}

/// Returns when a statement waits for the lock of the test.
async fn is_running(pool: &PgPool) {
    let waiting =
        "select pid from pg_stat_activity where datname = current_database() and wait_event = 'advisory'";
    while sqlx::query_scalar::<_, i32>(waiting).fetch_all(pool).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}
