//! Intents: there with the rows or not at all, and done once however often they are copied.

use refrain::core::state::EffectState;
use refrain::{
    Batch, BatchError, Definition, EffectRecord, Error, Intent, Ledger, LedgerError, OpenOptions,
    PAYLOAD_BYTES_MAX, Per, Refrain, Statement, key,
};
use sqlx::pool::PoolOptions;

use crate::shop::{Backend, Invoice, Shop, invoice, invoices, key_of, write};
use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};
use crate::support::work::{SETTINGS, Seen, is_sound, job, open, shown};

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
    jobs.into_iter().fold(opening(shop), OpenOptions::job).open().await
}

fn opening<DB: Backend>(shop: &Shop<DB>) -> OpenOptions {
    Refrain::at(&shop.store.url(), "shop").unwrap().destination(&shop.pool).settings(SETTINGS)
}

fn notify(invoice: &Invoice) -> Result<Intent, LedgerError> {
    Intent::effect("notify-new", key!("notify", "new-invoice", invoice.id)?, 1)?.payload(invoice)
}

/// Writes invoices, and wishes for a mail and a greeting for each that is new.
async fn write_and_wish<DB: Backend>(batch: &mut Batch<'_, '_, DB, Invoice>) -> Result<(), BatchError> {
    write(batch).await?;
    let mut wishes = Vec::new();
    for invoice in batch.fresh() {
        wishes.extend([notify(invoice)?, Intent::run("greet", key!(invoice.id)?)?]);
    }
    Ok(batch.intend(wishes).await?)
}

/// A job that brings these invoices into the shop.
fn sync<DB: Backend>(shop: &Shop<DB>, source: Vec<Invoice>) -> Definition {
    let pool = shop.pool.clone();
    job("sync", move |run| {
        let (pool, source) = (pool.clone(), source.clone());
        async move {
            let fence = run.fence(&pool).await?;
            let units = fence.units(Per::Ever, key_of);
            let mut applying = units.apply(&source).await?;
            while let Some(mut batch) = applying.next().await? {
                let went = write_and_wish(&mut batch).await;
                batch.settle(went).await?;
            }
            Ok(())
        }
    })
}

/// Every effect: its key, version and state, in the order of arrival.
async fn effects(refrain: &Refrain) -> Vec<String> {
    let line = |one: &EffectRecord| format!("{}@{} {}", one.key, one.version, one.state);
    refrain.effects().await.unwrap().iter().rev().map(line).collect()
}

/// How many intents are waiting beside the rows.
async fn waiting<DB: Backend>(shop: &Shop<DB>) -> i64 {
    shop.database.store_numbers("select count(*) from refrain_intents").await[0]
}

/// How often somebody is said to have asked again for a run.
async fn dedupes<DB: Backend>(shop: &Shop<DB>) -> i64 {
    shop.store.store_numbers("select count(*) from refrain_dedupes").await[0]
}

/// Wishes, in a transaction of the application.
async fn wish<DB: Backend>(shop: &Shop<DB>, intents: impl IntoIterator<Item = Intent>) {
    let ledger = Ledger::open(&shop.pool, "shop", "sign-up").await.unwrap();
    let mut tx = shop.pool.begin().await.unwrap();
    ledger.intend(&mut tx, intents).await.unwrap();
    tx.commit().await.unwrap();
}

/// Everything that is intended by a sync arrives, and what is not applied is not intended.
async fn a_sync_and_what_comes_of_it<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let source = [invoices(5), vec![invoice(6, -1)]].concat();
    let refrain = opened(&shop, [sync(&shop, source), seen.job("greet")]).await;
    for run in ["monday", "tuesday"] {
        refrain.enqueue("sync", run, None).await.unwrap();
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

both_shops! {
    async fn rows_and_intents_are_there_together_or_not_at_all(shop) {
        a_sync_and_what_comes_of_it(shop).await;
    }

    async fn a_wish_that_no_relay_looks_after_is_no_fault_of_the_unit(shop) {
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
        refrain.enqueue("sync", "monday", None).await.unwrap();
        refrain.tick().await.unwrap();
        assert_eq!((shop.standing("failed").await, shop.standing("applied").await), (0, 0));
    }

    async fn what_is_intended_where_no_relay_looks_is_refused(shop) {
        let pool = shop.pool.clone();
        let (said, seen) = (Seen::default(), Seen::default());
        let told = said.clone();
        let work = job("sync", move |run| {
            let (pool, told) = (pool.clone(), told.clone());
            async move {
                let fence = run.fence(&pool).await?;
                let (units, source) = (fence.units(Per::Ever, key_of), invoices(1));
                let mut applying = units.apply(&source).await?;
                let mut batch = applying.next().await?.unwrap();
                write(&mut batch).await?;
                let refused = batch.intend([notify(&source[0])?]).await.unwrap_err();
                assert!(matches!(refused, LedgerError::NoRelay), "{refused}");
                told.push("refused");
                Ok(())
            }
        });
        let refrain = open(&shop.store, [work, seen.job("greet")]).await;
        refrain.enqueue("sync", "monday", None).await.unwrap();
        refrain.tick().await.unwrap();
        assert_eq!(said.all(), ["refused"]);
        assert_eq!((shop.writes().await, waiting(&shop).await), (vec![], 0));
    }

    async fn h6_a_transaction_that_is_rolled_back_has_asked_for_nothing(shop) {
        let seen = Seen::default();
        let refrain = opened(&shop, [seen.job("welcome")]).await;
        // Not even the ledger finds a second connection here.
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

    async fn a_plain_insert_enqueues_from_any_language(shop) {
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
        assert_eq!(dedupes.iter().map(|one| one.asked.as_str()).collect::<Vec<_>>(), ["intent"]);
    }

    async fn an_intent_that_cannot_be_forgotten_is_copied_again_and_nothing_happens_twice(shop) {
        let seen = Seen::default();
        let refrain = opened(&shop, [seen.job("greet")]).await;
        shop.database.store(if shop.database.is_sqlite() {
            "create trigger stays before delete on refrain_intents begin select raise(ignore); end"
        } else {
            "create function stays() returns trigger language plpgsql as 'begin return null; end';
            create trigger stays before delete on refrain_intents for each row execute function stays()"
        }).await;
        wish(&shop, [notify(&invoice(1, 10)).unwrap(), Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
        for _ in 0..3 {
            refrain.tick().await.unwrap();
            assert_eq!(waiting(&shop).await, 2);
            assert_eq!(effects(&refrain).await, ["notify:new-invoice:1@1 pending"]);
            assert_eq!(seen.all(), ["1"]);
        }
        shop.database.store(if shop.database.is_sqlite() {
            "drop trigger stays"
        } else {
            "drop trigger stays on refrain_intents"
        }).await;
        refrain.tick().await.unwrap();
        assert_eq!((waiting(&shop).await, dedupes(&shop).await), (0, 0), "nobody asked again");
        assert_eq!(refrain.effects().await.unwrap()[0].dedupes, 0);
    }

    async fn two_relays_at_once_copy_everything_once(shop) {
        let seen = Seen::default();
        let one = opened(&shop, [seen.job("greet")]).await;
        let other = opened(&shop, [seen.job("greet")]).await;
        let wishes = (1..=1_500).flat_map(|id| {
            [notify(&invoice(id, 10)).unwrap(), Intent::run("greet", key!(id).unwrap()).unwrap()]
        });
        wish(&shop, wishes).await;
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

    async fn f23_intents_of_another_store_stay_where_they_are(shop) {
        let seen = Seen::default();
        let refrain = opened(&shop, [seen.job("greet")]).await;
        let copied = "insert into refrain_intents (project, kind, name, key, store)
            values ('shop', 'run', 'greet', '1', 'another'), ('shop', 'effect', 'mail', 'a', 'another')";
        shop.database.store(copied).await;
        wish(&shop, [Intent::run("greet", key!(2).unwrap()).unwrap()]).await;
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

    async fn f23_what_an_application_wished_for_before_its_database_got_another_store_stays_where_it_is(shop) {
        opened(&shop, []).await.close().await;
        wish(&shop, [Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
        opening(&shop).state(Statement::Copied).await.unwrap();
        let shown = opening(&shop).recover(None).await.unwrap();
        assert_eq!(shown.iter().map(|one| one.stranded).sum::<u64>(), 1, "{shown:?}");
        opening(&shop).recover(Some(&shown)).await.unwrap();
        let seen = Seen::default();
        let refrain = opened(&shop, [seen.job("greet")]).await;
        wish(&shop, [Intent::run("greet", key!(2).unwrap()).unwrap()]).await;
        refrain.tick().await.unwrap();
        assert_eq!((seen.all(), waiting(&shop).await), (vec!["2".to_owned()], 1));
    }

    async fn what_cannot_be_copied_stands_in_nobodys_way(shop) {
        let seen = Seen::default();
        let refrain = opened(&shop, [seen.job("greet")]).await;
        let many = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 2100)
            insert into refrain_intents (project, kind, name, key)
            select 'shop', 'run', 'nobody-knows-it', 'k' || i from n";
        assert_eq!(shop.database.store(many).await, 2_100);
        let odd = format!(
            "insert into refrain_intents (project, kind, name, key, version, payload) values
            ('shop', 'run', 'greet', '', 1, null), ('shop', 'run', 'greet', '1', 1, 'no json'),
            ('shop', 'run', 'Greet!', '2', 1, null), ('shop', 'effect', 'mail', 'a', -1, null),
            ('shop', 'run', 'greet', '3', 1, '\"{}\"'), ('stranger', 'run', 'greet', '4', 1, null)",
            "x".repeat(PAYLOAD_BYTES_MAX)
        );
        shop.database.store(&odd).await;
        wish(&shop, [Intent::run("greet", key!(5).unwrap()).unwrap()]).await;
        refrain.tick().await.unwrap();
        assert_eq!((seen.all(), waiting(&shop).await), (vec!["5".to_owned()], 2_106));

        let known = Seen::default();
        let wiser = opened(&shop, [seen.job("greet"), known.job("nobody-knows-it")]).await;
        wiser.tick().await.unwrap();
        assert_eq!((known.all().len(), waiting(&shop).await), (2_100, 6));
    }

    async fn a_fact_has_its_effect_once_under_each_version_and_never_under_a_lower_one(shop) {
        let refrain = opened(&shop, []).await;
        let mail = |version, text| Intent::effect("mail", key!("fact").unwrap(), version).unwrap().payload(&text);
        wish(&shop, [mail(2, "a").unwrap(), mail(1, "a").unwrap(), mail(2, "a").unwrap()]).await;
        refrain.tick().await.unwrap();
        assert_eq!(effects(&refrain).await, ["fact@2 pending"]);
        wish(&shop, [mail(1, "a").unwrap(), mail(2, "b").unwrap(), mail(3, "a").unwrap()]).await;
        refrain.tick().await.unwrap();
        assert_eq!(effects(&refrain).await, ["fact@2 pending", "fact@3 pending"]);
        let asked = "select cast(effects.version as text) || ' ' || cast(dedupes.version as text) || ' ' || dedupes.asked
            from refrain_effect_dedupes as dedupes join refrain_effects as effects on effects.id = dedupes.effect
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

    async fn what_serves_relays_by_itself(shop) {
        let seen = Seen::default();
        let refrain = opened(&shop, [seen.job("greet")]).await;
        let serving = refrain.serve();
        let stop = serving.stop_handle();
        let serving = tokio::spawn(async move { serving.await.unwrap() });
        wish(&shop, [notify(&invoice(1, 10)).unwrap(), Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
        eventually("the run is done", DEADLINE, async || seen.all() == ["1"]).await;
        stop.drain();
        serving.await.unwrap();
        assert_eq!(effects(&refrain).await, ["notify:new-invoice:1@1 pending"]);
    }

    async fn the_stores_own_database_is_relayed_without_being_named(shop) {
        let Shop { database, .. } = shop;
        let shop = Shop { store: database, database: TestDatabase::sqlite().await, pool: shop.pool };
        let seen = Seen::default();
        let refrain = open(&shop.store, [seen.job("greet")]).await;
        wish(&shop, [Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
        refrain.tick().await.unwrap();
        assert_eq!(seen.all(), ["1"]);
        assert_eq!(shop.store.store_numbers("select count(*) from refrain_intents").await, [0]);
    }
}

/// A program in another language wrote bytes that are not text, and a version that no column of ours holds.
#[tokio::test]
async fn an_intent_that_cannot_be_decoded_is_left_and_the_others_arrive() {
    let shop = Shop::in_a_file().await;
    let seen = Seen::default();
    let refrain = opened(&shop, [seen.job("greet")]).await;
    wish(&shop, [Intent::run("greet", key!(1).unwrap()).unwrap()]).await;
    let odd = "insert into refrain_intents (project, kind, name, key, version, payload) values
        ('shop', 'effect', 'mail', 'k', 2147483648, null), ('shop', 'run', 'greet', cast(x'ff41' as text), 1, null),
        ('shop', 'run', cast(x'c328' as text), 'k', 1, null), ('shop', 'run', 'greet', 'p', 1, cast(x'22ff22' as text)),
        (cast(x'ff' as text), 'run', 'greet', 'k', 1, null)";
    shop.database.store(odd).await;
    wish(&shop, (2..=40).map(|key| Intent::run("greet", key!(key).unwrap()).unwrap())).await;
    refrain.tick().await.unwrap();
    assert_eq!(seen.all().len(), 40, "every intent that can be decoded arrives");
    assert_eq!(waiting(&shop).await, 5, "what cannot be decoded stays");
    let large_version_for_a_run = "insert into refrain_intents (project, kind, name, key, version)
        values ('shop', 'run', 'greet', '41', 2147483648)";
    shop.database.store(large_version_for_a_run).await;
    refrain.tick().await.unwrap();
    assert_eq!((seen.all().len(), waiting(&shop).await), (41, 5), "a run has no version");
}

#[test]
fn a_payload_has_its_limit() {
    let intent = Intent::run("greet", key!(1).unwrap()).unwrap();
    let long = intent.clone().payload(&"x".repeat(PAYLOAD_BYTES_MAX)).unwrap_err();
    assert!(matches!(long, LedgerError::Payload { .. }), "{long}");
    assert!(intent.clone().payload(&"x".repeat(PAYLOAD_BYTES_MAX - 2)).is_ok());
    assert_eq!(intent.clone().payload(&()).unwrap(), intent, "nothing is no payload");
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
