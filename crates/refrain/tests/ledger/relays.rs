//! Relays: each intent arrives in the store once, however many relays copy it and however often.

use refrain::key;
use refrain::ledger::Intent;
use refrain_harness::both_shops;

use crate::intents::{dedupes, effects, intend, notify, opened, waiting};
use crate::shop::{Backend, Shop, invoice};
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Seen, open};

#[both_shops]
async fn an_intent_that_cannot_be_deleted_is_copied_again_without_effect<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let refrain = opened(&shop, [seen.job("greet")]).await;
    shop.database
        .store(if shop.database.is_sqlite() {
            "create trigger stays before delete on refrain_intents begin select raise(ignore); end"
        } else {
            "create function stays() returns trigger language plpgsql as 'begin return null; end';
            create trigger stays before delete on refrain_intents for each row execute function stays()"
        })
        .await;
    intend(&shop, [notify(&invoice(1, 10)).unwrap(), Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
    for _ in 0..3 {
        refrain.tick().await.unwrap();
        assert_eq!(waiting(&shop).await, 2);
        assert_eq!(effects(&refrain).await, ["notify:new-invoice:1@1 pending"]);
        assert_eq!(seen.all(), ["1"]);
    }
    shop.database
        .store(if shop.database.is_sqlite() {
            "drop trigger stays"
        } else {
            "drop trigger stays on refrain_intents"
        })
        .await;
    refrain.tick().await.unwrap();
    assert_eq!((waiting(&shop).await, dedupes(&shop).await), (0, 0), "no further request is recorded");
    assert_eq!(refrain.effects().await.unwrap()[0].dedupes, 0);
}

#[both_shops]
async fn two_relays_at_once_copy_everything_once<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let one = opened(&shop, [seen.job("greet")]).await;
    let other = opened(&shop, [seen.job("greet")]).await;
    let intents = (1..=1_500)
        .flat_map(|id| [notify(&invoice(id, 10)).unwrap(), Intent::run("greet", key!(id).unwrap()).unwrap()]);
    intend(&shop, intents).await;
    let (first, second) = tokio::join!(one.tick(), other.tick());
    assert_eq!(first.unwrap().ended + second.unwrap().ended, 1_500);
    one.tick().await.unwrap();
    let mut greeted = seen.all();
    greeted.sort_by_key(|key| key.parse::<i64>().unwrap());
    assert_eq!(greeted, (1..=1_500).map(|id| id.to_string()).collect::<Vec<_>>());
    assert_eq!(shop.store.store_numbers("select count(*) from refrain_effects").await, [1_500]);
    assert_eq!(shop.store.store_numbers("select count(*) from refrain_effect_dedupes").await, [0]);
    assert_eq!((waiting(&shop).await, dedupes(&shop).await), (0, 0));
}

#[both_shops]
async fn serve_relays_intents<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let refrain = opened(&shop, [seen.job("greet")]).await;
    let serving = refrain.serve();
    let handle = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    intend(&shop, [notify(&invoice(1, 10)).unwrap(), Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
    eventually("the run is done", DEADLINE, async || seen.all() == ["1"]).await;
    handle.drain();
    serving.await.unwrap();
    assert_eq!(effects(&refrain).await, ["notify:new-invoice:1@1 pending"]);
}

#[both_shops]
async fn the_database_of_the_store_is_relayed_by_default<DB: Backend>(shop: Shop<DB>) {
    let Shop { database, .. } = shop;
    let shop = Shop { store: database, database: TestDatabase::sqlite().await, pool: shop.pool };
    let seen = Seen::default();
    let refrain = open(&shop.store, [seen.job("greet")]).await;
    intend(&shop, [Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
    refrain.tick().await.unwrap();
    assert_eq!(seen.all(), ["1"]);
    assert_eq!(shop.store.store_numbers("select count(*) from refrain_intents").await, [0]);
}

/// A program in another language wrote bytes that are not text, and a version that no column of ours holds.
#[tokio::test]
async fn an_undecodable_intent_stays_and_the_others_arrive() {
    let shop = Shop::in_a_file().await;
    let seen = Seen::default();
    let refrain = opened(&shop, [seen.job("greet")]).await;
    intend(&shop, [Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
    let odd = "insert into refrain_intents (project, kind, name, key, version, payload) values
        ('shop', 'effect', 'mail', 'k', 2147483648, null), ('shop', 'run', 'greet', \
        cast(x'ff41' as text), 1, null),
        ('shop', 'run', cast(x'c328' as text), 'k', 1, null), \
        ('shop', 'run', 'greet', 'p', 1, cast(x'22ff22' as text)),
        (cast(x'ff' as text), 'run', 'greet', 'k', 1, null)";
    shop.database.store(odd).await;
    intend(&shop, (2..=40).map(|key| Intent::run("greet", key!(key).unwrap()).unwrap())).await;
    refrain.tick().await.unwrap();
    assert_eq!(seen.all().len(), 40, "every intent that can be decoded arrives");
    assert_eq!(waiting(&shop).await, 5, "what cannot be decoded stays");
    let large_version_for_a_run = "insert into refrain_intents (project, kind, name, key, version)
        values ('shop', 'run', 'greet', '41', 2147483648)";
    shop.database.store(large_version_for_a_run).await;
    refrain.tick().await.unwrap();
    assert_eq!((seen.all().len(), waiting(&shop).await), (41, 5), "a run has no version");
}
