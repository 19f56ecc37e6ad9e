//! Units: each applied once in each of its contents, whatever happens to the others.

use refrain::{Ask, Per, RunRecord};

use crate::shop::{Backend, Shop, invoice, invoices, key_of, write_all};
use crate::support::work::{job, open, shown};

/// A job that brings these invoices into the shop.
fn sync<DB: Backend>(shop: &Shop<DB>, source: Vec<crate::shop::Invoice>) -> refrain::Definition {
    let pool = shop.pool.clone();
    job("sync", move |run| {
        let (pool, source) = (pool.clone(), source.clone());
        async move {
            let fence = run.fence(&pool).await?;
            let units = fence.units(Per::Ever, key_of);
            write_all(units.apply(&source).await?).await?;
            Ok(())
        }
    })
}

async fn ran<DB: Backend>(shop: &Shop<DB>, source: Vec<crate::shop::Invoice>, key: &str) -> RunRecord {
    let refrain = open(&shop.store, [sync(shop, source)]).await;
    refrain.run(&format!("sync#{key}"), Ask::Once).await.unwrap();
    let run = shown(&refrain, &format!("sync#{key}")).await;
    refrain.close().await;
    run
}

both_shops! {
    async fn i14_every_unit_is_written_once_however_often_the_source_shows_it(shop) {
        for run in ["monday", "tuesday"] {
            ran(&shop, invoices(2_500), run).await;
            assert_eq!(shop.writes().await, vec![1; 2_500]);
            assert_eq!(shop.standing("applied").await, 2_500);
        }
    }

    async fn other_content_under_a_known_key_is_written_over_it(shop) {
        ran(&shop, invoices(3), "monday").await;
        ran(&shop, vec![invoice(2, 21), invoice(3, 30)], "tuesday").await;
        assert_eq!(shop.totals().await, [10, 21, 30]);
        assert_eq!(shop.writes().await, [1, 2, 1]);
    }
}
