//! The reply to a commit is lost: the client cannot know whether it happened, and nothing happens
//! twice.

use std::sync::Arc;

use refrain::core::state::UnitStatus;
use refrain::ledger::{BatchError, FetchedPage, LedgerError, Per};
use refrain::{Claim, Ledger, Run, key};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Postgres};
use tokio::task::JoinSet;

use crate::shop::{Shop, counts, invoice, invoices, key_of, ran, traced, work, write, write_all};
use refrain_harness::proxy::Proxy;
use refrain_harness::work::open;

/// A shop whose server is reached through a network that may lose an answer.
struct Far {
    shop: Shop<Postgres>,
    network: Arc<Proxy>,
}

impl Far {
    async fn away() -> Far {
        let shop = Shop::on_a_server().await;
        let network = Proxy::in_front_of(&shop.database.url()).await;
        let name = shop.pool.connect_options().get_database().unwrap().to_owned();
        let pool = PgPoolOptions::new().max_connections(4).connect(&network.url(&name)).await.unwrap();
        Far { shop: Shop { pool, ..shop }, network: Arc::new(network) }
    }

    /// Runs `sync#monday` until it is done or waits for another attempt. Returns its state and counts.
    async fn run<F>(&self, work_: impl Fn(Run, PgPool, Arc<Proxy>) -> F + Send + Sync + 'static) -> String
    where
        F: Future<Output = Result<(), LedgerError>> + Send + 'static,
    {
        let network = self.network.clone();
        let refrain = open(
            &self.shop.store,
            [work(&self.shop, "sync", move |run, pool| work_(run, pool, network.clone()))],
        )
        .await;
        let run_state = ran(&refrain, "sync#monday").await;
        assert_eq!(self.network.cuts(), 1, "one answer was lost");
        let counted = counts(&refrain, "sync#monday").await;
        format!("{run_state} {counted:?}")
    }
}

/// The next commit happens, and its reply is lost.
fn lose_a_commit(network: &Proxy) {
    network.cut_after_forwarding(b"COMMIT");
}

#[tokio::test]
async fn f4_units_of_a_batch_with_a_lost_reply_are_written_once() {
    let far = Far::away().await;
    let run_state = far
        .run(|run, pool, network| async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            // One key twice: the last content is chosen before anything is written.
            let list = [invoice(1, 10), invoice(2, 20), invoice(2, 21), invoice(3, 30)];
            let mut batches = units.apply(&list).await?;
            let mut is_first = true;
            while let Some(mut batch) = batches.next().await? {
                let went = write(&mut batch).await;
                if std::mem::take(&mut is_first) {
                    lose_a_commit(&network);
                }
                batch.settle(went).await?;
            }
            Ok(())
        })
        .await;
    assert_eq!(run_state, "monday partial 1 [3, 0, 1, 0]");
    assert_eq!((far.shop.writes().await, far.shop.totals().await), (vec![1, 1, 1], vec![10, 21, 30]));
}

#[tokio::test]
async fn f4_a_suspected_unit_with_a_lost_reply_is_written_once() {
    let far = Far::away().await;
    let careful = work(&far.shop, "sync", {
        let network = far.network.clone();
        move |run, pool| {
            let network = network.clone();
            async move {
                let units = run.fence(&pool).await?.units(Per::Ever, key_of);
                let list = invoices(2);
                let mut batches = units.apply(&list).await?;
                while let Some(mut batch) = batches.next().await? {
                    assert_eq!(batch.all().len(), 1, "one by one");
                    let is_first = batch.all()[0].id == 1 && network.cuts() == 0;
                    let went = write(&mut batch).await;
                    if is_first {
                        lose_a_commit(&network);
                    }
                    batch.settle(went).await?;
                }
                Ok(())
            }
        }
    });
    let refrain = open(&far.shop.store, [careful]).await;
    refrain.enqueue("sync", "monday", &()).await.unwrap();
    far.shop.store.store("update refrain_queue set suspicion = 1").await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 1");
    assert_eq!(far.network.cuts(), 1);
    assert_eq!((far.shop.writes().await, counts(&refrain, "sync#monday").await), (vec![1, 1], [2, 0, 0, 0]));
}

#[tokio::test]
async fn f4_a_failure_with_a_lost_reply_counts_once() {
    let far = Far::away().await;
    let run_state = far
        .run(|run, pool, network| async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let list = invoices(1);
            let mut batches = units.apply(&list).await?;
            let batch = batches.next().await?.unwrap();
            batch.settle(Err::<(), _>(BatchError::new("no"))).await?;
            lose_a_commit(&network);
            batches.next().await.map(|_| ())
        })
        .await;
    assert_eq!(run_state, "monday due 2 [0, 0, 0, 1]");
    let record = traced(&far.shop, key!("invoice", 1).unwrap()).await;
    assert_eq!(record.status, UnitStatus::Failed(1));
}

#[tokio::test]
async fn f4_a_fence_or_checkpoint_with_a_lost_reply_has_the_right_value() {
    let far = Far::away().await;
    let run_state = far
        .run(|run, pool, network| async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let mut pages = units.cursor("billing").await?;
            for next in [Some("3"), Some("6"), None] {
                let list = if next.is_some() { invoices(3) } else { Vec::new() };
                let page = FetchedPage { units: list, next: next.map(str::to_owned) };
                let Some(page) = pages.next(|_| async { Ok::<_, LedgerError>(page) }).await? else { break };
                write_all(page.apply()).await?;
                if next == Some("3") {
                    lose_a_commit(&network);
                }
                page.done().await?;
            }
            assert_eq!(pages.position(), Some("6"));
            Ok(())
        })
        .await;
    assert_eq!(run_state, "monday done 1 [3, 0, 3, 0]");
    let raising = Far::away().await;
    let run_state = raising
        .run(|run, pool, network| async move {
            lose_a_commit(&network);
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            write_all(units.apply(&invoices(2)).await?).await
        })
        .await;
    assert_eq!((run_state.as_str(), raising.shop.writes().await), ("monday done 1 [2, 0, 0, 0]", vec![1, 1]));
}

#[tokio::test]
async fn f4_grouped_claims_with_a_lost_reply_are_each_recognized() {
    let far = Far::away().await;
    let ledger = Ledger::open(&far.shop.pool, "shop", "digests").await.unwrap();
    ledger.claim_alone(key!("digest", 0).unwrap()).await.unwrap();
    lose_a_commit(&far.network);
    let mut claims = JoinSet::new();
    for key in 0..20 {
        let ledger = ledger.clone();
        claims.spawn(async move { (key, ledger.claim_alone(key!("digest", key).unwrap()).await.unwrap()) });
    }
    let fresh: Vec<i32> = claims
        .join_all()
        .await
        .into_iter()
        .filter(|(_, claim)| *claim == Claim::Fresh)
        .map(|(key, _)| key)
        .collect();
    assert_eq!((fresh.len(), fresh.contains(&0), far.network.cuts()), (19, false, 1));
}
