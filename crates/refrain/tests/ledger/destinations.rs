//! Databases that attempts write to: which store owns them, and every way to connect to them.

use refrain::ledger::{LedgerError, Per};
use refrain::{Ask, Ledger, Refrain, key};
use refrain_harness::both_shops;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor};

use crate::shop::{Backend, Shop, Source, counts, invoices, key_of, ran, sync, work, write_all};
use refrain_harness::TestDatabase;
use refrain_harness::work::{is_sound, open, shown};

#[both_shops]
async fn the_database_of_the_store_is_a_destination_too<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(1_200));
    let refrain = open(&shop.database, [sync(&shop, &source, Per::Ever, |units| units)]).await;
    for (run, counted) in [("sync#monday", [1_200, 0, 0, 0]), ("sync#tuesday", [0, 0, 1_200, 0])] {
        assert!(ran(&refrain, run).await.ends_with("done 1"));
        assert_eq!((counts(&refrain, run).await, shop.writes().await), (counted, vec![1; 1_200]));
    }
    is_sound(&refrain).await;
}

#[both_shops]
async fn a_store_writes_nothing_to_a_database_of_another_store<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(3));
    let job = || sync(&shop, &source, Per::Ever, |units| units);
    let first = open(&shop.store, [job()]).await;
    ran(&first, "sync#monday").await;
    source.shows(invoices(5));
    let other = if DB::IS_SQLITE { TestDatabase::sqlite().await } else { TestDatabase::postgres().await };
    let second = open(&other, [job()]).await;
    assert_eq!(ran(&second, "sync#monday").await, "monday due 2");
    let text =
        second.attempts(&shown(&second, "sync#monday").await).await.unwrap()[0].message.clone().unwrap();
    assert!(text.contains("belongs to another store") && text.contains("refrain recover"), "{text}");
    assert_eq!(shop.writes().await, [1, 1, 1]);
    ran(&first, "sync#tuesday").await;
    assert_eq!(shop.writes().await, vec![1; 5], "the first one goes on");
}

#[both_shops]
async fn an_adopted_database_keeps_its_applied_units<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(3));
    let job = || sync(&shop, &source, Per::Ever, |units| units);
    let first = open(&shop.store, [job()]).await;
    ran(&first, "sync#monday").await;
    first.close().await;
    source.shows(invoices(5));
    let other = if DB::IS_SQLITE { TestDatabase::sqlite().await } else { TestDatabase::postgres().await };
    Refrain::migrate(&other.url()).await.unwrap();
    let open_options = || Refrain::at(&other.url(), "shop").unwrap().destination(&shop.pool);
    assert!(open_options().open().await.is_err(), "no operator has decided yet");

    let found = open_options().recover(None).await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(open_options().open().await.is_err(), "looking changes nothing");
    assert_eq!(
        open_options().recover(Some(&[])).await.unwrap(),
        found,
        "only a database that was shown is adopted"
    );
    assert!(open_options().open().await.is_err());
    assert_eq!(open_options().recover(Some(&found)).await.unwrap(), found);
    assert_eq!(open_options().recover(None).await.unwrap(), [], "it is this store's now");

    let second = open_options().job(job()).open().await.unwrap();
    assert_eq!(ran(&second, "sync#monday").await, "monday done 1");
    assert_eq!(counts(&second, "sync#monday").await, [2, 0, 3, 0]);
    assert_eq!(shop.writes().await, vec![1; 5]);
}

#[both_shops]
async fn a_ledger_without_a_store_is_taken_by_the_first_store<DB: Backend>(shop: Shop<DB>) {
    let alone = Ledger::open(&shop.pool, "shop", "sync").await.unwrap();
    let mut tx = shop.pool.begin().await.unwrap();
    assert!(alone.claim(&mut tx, key!("invoice", 2).unwrap()).await.unwrap().is_fresh());
    tx.commit().await.unwrap();
    let source = Source::of(invoices(3));
    let first = |units: refrain::ledger::Units<_, _>| units.on_change(refrain::core::state::OnChange::First);
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, first)]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 1");
    assert_eq!(shop.numbers("select id from invoices order by id").await, [1, 3], "the second was claimed");
    let mut tx = shop.pool.begin().await.unwrap();
    assert!(!alone.claim(&mut tx, key!("invoice", 3).unwrap()).await.unwrap().is_fresh());
    tx.rollback().await.unwrap();
    let other = if DB::IS_SQLITE { TestDatabase::sqlite().await } else { TestDatabase::postgres().await };
    let second = open(&other, [sync(&shop, &source, Per::Ever, first)]).await;
    assert_eq!(ran(&second, "sync#monday").await, "monday due 2", "and to no other");
}

/// A file gets its tables at first use.
#[tokio::test]
async fn a_file_gets_its_ledger_when_it_is_first_used() {
    let database = TestDatabase::sqlite().await;
    let TestDatabase::Sqlite { pool, .. } = &database else { unreachable!() };
    let ledger = Ledger::open(pool, "shop", "sync").await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    assert!(ledger.claim(&mut tx, key!("invoice", 1).unwrap()).await.unwrap().is_fresh());
}

/// On a server only an operator creates them: the statements in the error can be executed unchanged, by the owner for
/// another role.
#[tokio::test]
async fn a_server_without_ledger_tables_is_refused_with_advice() {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let guest = format!("guest_{}", std::process::id());
    let admit = format!(
        "create role {guest} login password 'guest'; create table invoices (id bigint primary key, \
         total bigint not null, writes bigint not null); grant usage on schema public to {guest}; \
         grant select, insert, update on invoices to {guest}"
    );
    pool.execute(AssertSqlSafe(admit)).await.unwrap();
    let options: PgConnectOptions = (*pool.connect_options()).clone().username(&guest).password("guest");
    let theirs = PgPoolOptions::new().connect_with(options).await.unwrap();
    let error = Ledger::open(&theirs, "shop", "sync").await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LedgerError::Missing { .. }), "{text}");
    let (_, after) = text.split_once("let its owner run:\n").unwrap();
    let (script, grants) = after.split_once("then grant access (replace USER):\n").unwrap();
    pool.execute(AssertSqlSafe(script)).await.unwrap();
    pool.execute(AssertSqlSafe(grants.replace("USER", &guest))).await.unwrap();

    let store = TestDatabase::postgres().await;
    let source = invoices(3);
    let shop = Shop { pool: theirs.clone(), database, store };
    let working = work(&shop, "sync", move |run, pool| {
        let source = source.clone();
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            write_all(units.apply(&source).await?).await
        }
    });
    let refrain = open(&shop.store, [working]).await;
    let report = refrain.run("sync#monday", Ask::Once).await.unwrap();
    let past = refrain.attempts(&report.run).await.unwrap();
    assert!(report.is_done(), "{past:?}");
    assert_eq!(shop.writes().await, [1, 1, 1]);
    theirs.close().await;
    let TestDatabase::Postgres { pool, .. } = &shop.database else { unreachable!() };
    pool.execute(AssertSqlSafe(format!("drop owned by {guest}; drop role {guest}"))).await.unwrap();
}

/// Each transaction gets another connection, without prepared statements and settings.
#[tokio::test]
async fn f44_behind_a_pooler_units_are_written_once() {
    let (database, store) = (TestDatabase::pgbouncer().await, TestDatabase::pgbouncer().await);
    let TestDatabase::Postgres { pool: direct, .. } = &database else { unreachable!() };
    Ledger::migrate(direct).await.unwrap();
    direct
        .execute(
            "create table invoices (id bigint primary key, total bigint not null check (total >= \
         0), writes bigint not null)",
        )
        .await
        .unwrap();
    let options: PgConnectOptions = database.url().parse().unwrap();
    let pool = PgPoolOptions::new().connect_with(options.statement_cache_capacity(0)).await.unwrap();
    let shop = Shop { pool: pool.clone(), database, store };
    let pooled = work(&shop, "sync", |run, pool: sqlx::PgPool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let mut list = invoices(1_200);
        list[36].total = -1;
        let mut batches = units.apply(&list).await?;
        while let Some(mut batch) = batches.next().await? {
            let mut went = Ok(());
            for one in batch.all() {
                let write = "insert into invoices (id, total, writes) values ($1, $2, 1)";
                let write = sqlx::query(write).persistent(false).bind(one.id).bind(one.total);
                went = went.and(write.execute(batch.tx()).await.map(|_| ()));
            }
            batch.settle(went).await?;
        }
        Ok(())
    });
    let refrain = open(&shop.store, [pooled]).await;
    for (run, counted) in [("sync#monday", [1_199, 0, 0, 1]), ("sync#tuesday", [0, 0, 1_199, 1])] {
        ran(&refrain, run).await;
        assert_eq!(counts(&refrain, run).await, counted);
    }
    let ledger = Ledger::open(&pool, "shop", "mails").await.unwrap();
    for is_fresh in [true, false] {
        let mut tx = pool.begin().await.unwrap();
        assert_eq!(ledger.claim(&mut tx, key!("mail", 1).unwrap()).await.unwrap().is_fresh(), is_fresh);
        tx.commit().await.unwrap();
        assert_eq!(ledger.claim_alone(key!("mail", 2).unwrap()).await.unwrap().is_fresh(), is_fresh);
    }
    pool.close().await;
    let TestDatabase::Postgres { pool: direct, .. } = &shop.database else { unreachable!() };
    let once: i64 =
        sqlx::query_scalar("select count(*) from invoices where writes = 1").fetch_one(direct).await.unwrap();
    assert_eq!(once, 1_199);
}
