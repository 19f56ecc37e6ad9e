//! Intents: committed with the rows or not at all, and carried out once however often they are
//! copied.

use refrain::admin::{PAYLOAD_BYTES_MAX, StoreOrigin};
use refrain::core::state::EffectState;
use refrain::effects::EffectRecord;
use refrain::ledger::{Batch, BatchError, Intent, LedgerError, Per};
use refrain::{Definition, Error, Ledger, OpenOptions, Refrain, key};
use refrain_harness::both_shops;
use sqlx::pool::PoolOptions;

use crate::shop::{Backend, Invoice, Shop, invoice, invoices, key_of, write};
use refrain_harness::TestDatabase;
use refrain_harness::work::{SETTINGS, Seen, is_sound, job, open, shown};

/// The store, with the shop's database as a destination.
pub(crate) async fn opened<DB: Backend>(
    shop: &Shop<DB>,
    jobs: impl IntoIterator<Item = Definition>,
) -> Refrain {
    tried(shop, jobs).await.unwrap()
}

async fn tried<DB: Backend>(
    shop: &Shop<DB>,
    jobs: impl IntoIterator<Item = Definition>,
) -> Result<Refrain, Error> {
    Refrain::migrate(&shop.store.url()).await.unwrap();
    jobs.into_iter().fold(options(shop), OpenOptions::job).open().await
}

fn options<DB: Backend>(shop: &Shop<DB>) -> OpenOptions {
    Refrain::at(&shop.store.url(), "shop").unwrap().destination(&shop.pool).settings(SETTINGS)
}

pub(crate) fn notify(invoice: &Invoice) -> Result<Intent, LedgerError> {
    Intent::effect("notify-new", key!("notify", "new-invoice", invoice.id)?, 1)?.payload(invoice)
}

/// Writes invoices, with the intents of a mail and a greeting for each new one.
async fn write_and_intend<DB: Backend>(batch: &mut Batch<'_, '_, DB, Invoice>) -> Result<(), BatchError> {
    write(batch).await?;
    let mut intents = Vec::new();
    for invoice in batch.fresh() {
        intents.extend([notify(invoice)?, Intent::run("greet", key!(invoice.id)?)?]);
    }
    Ok(batch.intend(intents).await?)
}

/// A job that writes these invoices to the shop.
fn sync<DB: Backend>(shop: &Shop<DB>, source: Vec<Invoice>) -> Definition {
    let pool = shop.pool.clone();
    job("sync", move |run| {
        let (pool, source) = (pool.clone(), source.clone());
        async move {
            let fence = run.fence(&pool).await?;
            let units = fence.units(Per::Ever, key_of);
            let mut applying = units.apply(&source).await?;
            while let Some(mut batch) = applying.next().await? {
                let went = write_and_intend(&mut batch).await;
                batch.settle(went).await?;
            }
            Ok(())
        }
    })
}

/// Every effect: its key, version and state, in the order of arrival.
pub(crate) async fn effects(refrain: &Refrain) -> Vec<String> {
    let line = |one: &EffectRecord| format!("{}@{} {}", one.key, one.version, one.state);
    refrain.effects().await.unwrap().iter().rev().map(line).collect()
}

/// How many intents are waiting beside the rows.
pub(crate) async fn waiting<DB: Backend>(shop: &Shop<DB>) -> i64 {
    shop.database.store_numbers("select count(*) from refrain_intents").await[0]
}

/// How many further requests for a run are recorded.
pub(crate) async fn dedupes<DB: Backend>(shop: &Shop<DB>) -> i64 {
    shop.store.store_numbers("select count(*) from refrain_dedupes").await[0]
}

/// Writes intents in a transaction of the application.
pub(crate) async fn intend<DB: Backend>(shop: &Shop<DB>, intents: impl IntoIterator<Item = Intent>) {
    let ledger = Ledger::open(&shop.pool, "shop", "sign-up").await.unwrap();
    let mut tx = shop.pool.begin().await.unwrap();
    ledger.intend(&mut tx, intents).await.unwrap();
    tx.commit().await.unwrap();
}

/// Every intent of a sync arrives, and units that are not applied have no intent.
async fn a_sync_and_what_comes_of_it<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let source = [invoices(5), vec![invoice(6, -1)]].concat();
    let refrain = opened(&shop, [sync(&shop, source), seen.job("greet")]).await;
    for run in ["monday", "tuesday"] {
        refrain.enqueue("sync", run, &()).await.unwrap();
        refrain.tick().await.unwrap();
        assert_eq!(shop.writes().await, [1; 5]);
        let expected: Vec<String> = (1..=5).map(|id| format!("notify:new-invoice:{id}@1 pending")).collect();
        assert_eq!(effects(&refrain).await, expected);
        assert_eq!(seen.all(), ["1", "2", "3", "4", "5"]);
    }
    assert_eq!((waiting(&shop).await, dedupes(&shop).await), (0, 0));
    let first = refrain.effects().await.unwrap().pop().unwrap();
    assert_eq!((first.name.as_str(), first.state, first.dedupes), ("notify-new", EffectState::Pending, 0));
    assert_eq!((first.job.as_deref(), first.run.as_deref()), (Some("sync"), Some("monday")));
    assert_eq!(first.payload.as_deref(), Some(r#"{"id":1,"total":10,"updated":0}"#));
    is_sound(&refrain).await;
}

#[both_shops]
async fn rows_and_intents_are_there_together_or_not_at_all<DB: Backend>(shop: Shop<DB>) {
    a_sync_and_what_comes_of_it(shop).await;
}

#[both_shops]
async fn an_intent_without_a_relay_is_not_blamed_on_the_unit<DB: Backend>(shop: Shop<DB>) {
    let pool = shop.pool.clone();
    let work = job("sync", move |run| {
        let pool = pool.clone();
        async move {
            let (units, source) = (run.fence(&pool).await?.units(Per::Ever, key_of), invoices(1));
            let mut applying = units.apply(&source).await?;
            while let Some(mut batch) = applying.next().await? {
                let went = batch.intend([notify(&source[0])?]).await;
                batch.settle(went).await?;
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [work]).await;
    refrain.enqueue("sync", "monday", &()).await.unwrap();
    refrain.tick().await.unwrap();
    assert_eq!((shop.count_of("failed").await, shop.count_of("applied").await), (0, 0));
}

#[both_shops]
async fn an_intent_in_a_database_without_a_relay_is_refused<DB: Backend>(shop: Shop<DB>) {
    let pool = shop.pool.clone();
    let (message, seen) = (Seen::default(), Seen::default());
    let output = message.clone();
    let work = job("sync", move |run| {
        let (pool, output) = (pool.clone(), output.clone());
        async move {
            let fence = run.fence(&pool).await?;
            let (units, source) = (fence.units(Per::Ever, key_of), invoices(1));
            let mut applying = units.apply(&source).await?;
            let mut batch = applying.next().await?.unwrap();
            write(&mut batch).await?;
            let refused = batch.intend([notify(&source[0])?]).await.unwrap_err();
            assert!(matches!(refused, LedgerError::NoRelay), "{refused}");
            output.push("refused");
            Ok(())
        }
    });
    let refrain = open(&shop.store, [work, seen.job("greet")]).await;
    refrain.enqueue("sync", "monday", &()).await.unwrap();
    refrain.tick().await.unwrap();
    assert_eq!(message.all(), ["refused"]);
    assert_eq!((shop.writes().await, waiting(&shop).await), (vec![], 0));
}

#[both_shops]
async fn h6_a_rolled_back_transaction_leaves_no_intent<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let refrain = opened(&shop, [seen.job("welcome")]).await;
    // Not even the ledger gets a second connection here.
    let alone = PoolOptions::<DB>::new().max_connections(1);
    let pool = alone.connect_with((*shop.pool.connect_options()).clone()).await.unwrap();
    let ledger = Ledger::open(&pool, "shop", "sign-up").await.unwrap();
    for (user, is_kept) in [(1, false), (2, true)] {
        let mut tx = pool.begin().await.unwrap();
        DB::write(&mut tx, &invoice(user, 10)).await.unwrap();
        ledger.enqueue(&mut tx, "welcome", key!(user).unwrap(), &[user]).await.unwrap();
        if is_kept {
            tx.commit().await.unwrap();
        } else {
            tx.rollback().await.unwrap();
        }
    }
    assert_eq!(waiting(&shop).await, 1);
    refrain.tick().await.unwrap();
    assert_eq!(seen.all(), ["2"]);
    assert_eq!(shown(&refrain, "welcome#2").await.payload.as_deref(), Some("[2]"));
    assert_eq!(shop.numbers("select id from invoices").await, [2]);
}

#[both_shops]
async fn a_plain_insert_enqueues_from_any_language<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let refrain = opened(&shop, [seen.job("welcome-email")]).await;
    let insert = "insert into refrain_intents (project, kind, name, key, payload)
            values ('shop', 'run', 'welcome-email', '42', '{}')";
    for _ in 0..2 {
        assert_eq!(shop.database.store(insert).await, 1);
        refrain.tick().await.unwrap();
    }
    assert_eq!((seen.all(), waiting(&shop).await), (vec!["42".to_owned()], 0));
    let run = shown(&refrain, "welcome-email#42").await;
    assert_eq!(run.payload.as_deref(), Some("{}"));
    let dedupes = refrain.dedupes(&run).await.unwrap();
    assert_eq!(dedupes.iter().map(|one| one.asked.to_string()).collect::<Vec<_>>(), ["intent"]);
}

#[both_shops]
async fn f23_intents_of_another_store_stay_where_they_are<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let refrain = opened(&shop, [seen.job("greet")]).await;
    let copied = "insert into refrain_intents (project, kind, name, key, store)
            values ('shop', 'run', 'greet', '1', 'another'), ('shop', 'effect', 'mail', 'a', 'another')";
    shop.database.store(copied).await;
    intend(&shop, [Intent::run("greet", key!(2).unwrap()).unwrap()]).await;
    for _ in 0..2 {
        refrain.tick().await.unwrap();
        assert_eq!((seen.all(), waiting(&shop).await), (vec!["2".to_owned()], 2));
        assert_eq!(effects(&refrain).await, Vec::<String>::new());
    }
    shop.database.store("update refrain_projects set store = 'another'").await;
    let refused = tried(&shop, []).await.err().unwrap();
    assert!(matches!(refused, Error::Ledger(LedgerError::OtherStore { .. })), "{refused}");
    assert!(refused.is_usage() && !refused.is_transient());
}

#[both_shops]
async fn f23_intents_from_before_an_adoption_stay_where_they_are<DB: Backend>(shop: Shop<DB>) {
    opened(&shop, []).await.close().await;
    intend(&shop, [Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
    options(&shop).state(StoreOrigin::Copied).await.unwrap();
    let shown = options(&shop).recover(None).await.unwrap();
    assert_eq!(shown.iter().map(|one| one.stranded).sum::<u64>(), 1, "{shown:?}");
    options(&shop).recover(Some(&shown)).await.unwrap();
    let seen = Seen::default();
    let refrain = opened(&shop, [seen.job("greet")]).await;
    intend(&shop, [Intent::run("greet", key!(2).unwrap()).unwrap()]).await;
    refrain.tick().await.unwrap();
    assert_eq!((seen.all(), waiting(&shop).await), (vec!["2".to_owned()], 1));
}

#[both_shops]
async fn an_intent_that_cannot_be_copied_blocks_no_other<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let refrain = opened(&shop, [seen.job("greet")]).await;
    let many = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 2100)
            insert into refrain_intents (project, kind, name, key)
            select 'shop', 'run', 'known-later', 'k' || i from n";
    assert_eq!(shop.database.store(many).await, 2_100);
    let odd = format!(
        "insert into refrain_intents (project, kind, name, key, version, payload) values
            ('shop', 'run', 'greet', '', 1, null), ('shop', 'run', 'greet', '1', 1, 'no json'),
            ('shop', 'run', 'Greet!', '2', 1, null), ('shop', 'effect', 'mail', 'a', -1, null),
            ('shop', 'run', 'greet', '3', 1, '\"{}\"'), ('stranger', 'run', 'greet', '4', 1, null)",
        "x".repeat(PAYLOAD_BYTES_MAX)
    );
    shop.database.store(&odd).await;
    intend(&shop, [Intent::run("greet", key!(5).unwrap()).unwrap()]).await;
    refrain.tick().await.unwrap();
    assert_eq!((seen.all(), waiting(&shop).await), (vec!["5".to_owned()], 2_106));

    let known = Seen::default();
    let newer = opened(&shop, [seen.job("greet"), known.job("known-later")]).await;
    newer.tick().await.unwrap();
    assert_eq!((known.all().len(), waiting(&shop).await), (2_100, 6));
}

#[both_shops]
async fn a_key_has_one_effect_per_version_and_none_of_a_lower_version<DB: Backend>(shop: Shop<DB>) {
    let refrain = opened(&shop, []).await;
    let mail = |version, text| Intent::effect("mail", key!("fact").unwrap(), version).unwrap().payload(&text);
    intend(&shop, [mail(2, "a").unwrap(), mail(1, "a").unwrap(), mail(2, "a").unwrap()]).await;
    refrain.tick().await.unwrap();
    assert_eq!(effects(&refrain).await, ["fact@2 pending"]);
    intend(&shop, [mail(1, "a").unwrap(), mail(2, "b").unwrap(), mail(3, "a").unwrap()]).await;
    refrain.tick().await.unwrap();
    assert_eq!(effects(&refrain).await, ["fact@2 pending", "fact@3 pending"]);
    let asked = "select cast(effects.version as text) || ' ' || cast(dedupes.version as text) \
         || ' ' || dedupes.asked
            from refrain_effect_dedupes as dedupes join refrain_effects as effects on effects.id = \
            dedupes.effect
            order by dedupes.id";
    let expected = [
        "2 1 intent of a lower version",
        "2 2 intent",
        "3 1 intent of a lower version",
        "3 2 intent of a lower version",
    ];
    assert_eq!(shop.store.store_texts(asked).await, expected);
    assert_eq!(refrain.effects().await.unwrap()[1].payload.as_deref(), Some("\"a\""));
}

#[test]
fn a_payload_has_a_size_limit() {
    let intent = Intent::run("greet", key!(1).unwrap()).unwrap();
    let long = intent.clone().payload(&"x".repeat(PAYLOAD_BYTES_MAX)).unwrap_err();
    assert!(matches!(long, LedgerError::Payload { .. }), "{long}");
    assert!(intent.clone().payload(&"x".repeat(PAYLOAD_BYTES_MAX - 2)).is_ok());
    assert_eq!(intent.clone().payload(&()).unwrap(), intent, "`()` means no payload");
    assert!(Intent::effect("mail", key!(1).unwrap(), u32::MAX).is_err());
    assert!(Intent::run("No Name", key!(1).unwrap()).is_err());
}

#[tokio::test]
async fn a_store_on_a_server_relays_from_a_file() {
    let shop = Shop::in_a_file().await;
    a_sync_and_what_comes_of_it(Shop { store: TestDatabase::postgres().await, ..shop }).await;
}

#[tokio::test]
async fn a_store_in_a_file_relays_from_a_server() {
    let shop = Shop::on_a_server().await;
    a_sync_and_what_comes_of_it(Shop { store: TestDatabase::sqlite().await, ..shop }).await;
}
