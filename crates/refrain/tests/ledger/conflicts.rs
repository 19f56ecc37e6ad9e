//! A conflict in the database is blamed on no unit: the batch is retried, and each unit is written
//! once.

use refrain_harness::both_shops;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use refrain::core::state::UnitStatus;
use refrain::key;
use refrain::ledger::{BatchError, Per};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, Executor, PgConnection, PgPool, SqliteConnection};
use tokio::task::JoinSet;

use crate::shop::{
    After, Backend, Invoice, Shop, Source, counts, invoice, invoices, key_of, ran, sync, traced, work, write,
    write_all,
};
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Gate, open, shown};

/// An error of the driver, caused by another program's lock.
async fn locked(file: &std::path::Path) -> sqlx::Error {
    let options =
        SqliteConnectOptions::new().filename(file).create_if_missing(true).busy_timeout(Duration::ZERO);
    let mut holder = SqliteConnection::connect_with(&options).await.unwrap();
    let mut second = SqliteConnection::connect_with(&options).await.unwrap();
    holder.execute("begin immediate").await.unwrap();
    second.execute("begin immediate").await.unwrap_err()
}

#[both_shops]
async fn f47_a_batch_that_met_a_lock_is_retried_unchanged<DB: Backend>(shop: Shop<DB>) {
    let directory = tempfile::tempdir().unwrap();
    let (file, tries) = (directory.path().join("other.db"), Arc::new(AtomicU32::new(0)));
    let busy = work(&shop, "sync", move |run, pool| {
        let (file, tries) = (file.clone(), tries.clone());
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let list = invoices(5);
            let mut batches = units.apply(&list).await?;
            while let Some(mut batch) = batches.next().await? {
                assert_eq!(batch.all().len(), 5, "it is not halved");
                let mut went = write(&mut batch).await;
                if tries.fetch_add(1, Ordering::SeqCst) < 3 {
                    went = Err(locked(&file).await);
                }
                batch.settle(went).await?;
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [busy]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 1");
    assert_eq!((shop.writes().await, counts(&refrain, "sync#monday").await), (vec![1; 5], [5, 0, 0, 0]));
}

#[both_shops]
async fn f47_a_batch_that_always_meets_locks_is_left_for_the_next_attempt<DB: Backend>(shop: Shop<DB>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("other.db");
    let busy = work(&shop, "sync", move |run, pool| {
        let file = file.clone();
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let list = invoices(5);
            let mut batches = units.apply(&list).await?;
            while let Some(mut batch) = batches.next().await? {
                let went = write(&mut batch).await;
                let went = if run.attempt() == 1 { Err(locked(&file).await) } else { went };
                batch.settle(went).await?;
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [busy]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    assert_eq!((shop.writes().await, shop.count_of("failed").await), (Vec::new(), 0), "no unit is blamed");
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 2");
    assert_eq!(shop.writes().await, vec![1; 5]);
}

#[both_shops]
async fn f40_a_late_failure_of_an_older_worker_changes_nothing<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(vec![invoice(1, 10)]);
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, |units| units)]).await;
    ran(&refrain, "sync#monday").await;
    let failing = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let list = [invoice(1, 11)];
        let mut batches = units.apply(&list).await?;
        let batch = batches.next().await?.unwrap();
        // The record of a failure is a transaction of its own, and a newer worker writes before it.
        let newer = if DB::IS_SQLITE {
            "update refrain_units set version = 2, fingerprint = 12"
        } else {
            "update refrain.units set version = 2, fingerprint = 12"
        };
        batch.settle(Err::<(), _>(After::this(&pool, newer))).await?;
        batches.next().await.map(|_| ())
    });
    let older = open(&shop.store, [failing]).await;
    assert_eq!(ran(&older, "sync#tuesday").await, "tuesday due 2");
    let text =
        older.attempts(&shown(&older, "sync#tuesday").await).await.unwrap()[0].message.clone().unwrap();
    assert!(text.contains("this worker has version 1"), "{text}");
    let record = traced(&shop, key!("invoice", 1).unwrap()).await;
    assert_eq!(
        (record.status, record.version, record.run.as_deref()),
        (UnitStatus::Applied, 2, Some("monday"))
    );
}

#[both_shops]
async fn many_runs_with_the_same_units_at_once_write_each_once<DB: Backend>(shop: Shop<DB>) {
    let crowd = DB::crowd(&shop.pool).await.unwrap();
    let all = Shop { pool: crowd.clone(), ..shop };
    let source = Source::of(invoices(1_500));
    let refrain = open(&all.store, [sync(&all, &source, Per::Ever, |units| units)]).await;
    let mut runs = JoinSet::new();
    for run in 0..8 {
        let refrain = refrain.clone();
        runs.spawn(async move { while !ran(&refrain, &format!("sync#{run}")).await.contains("done") {} });
    }
    runs.join_all().await;
    assert_eq!(all.writes().await, vec![1; 1_500]);
    let mut processed = 0;
    for run in 0..8 {
        let attempts = refrain.units(&shown(&refrain, &format!("sync#{run}")).await).await.unwrap();
        processed += attempts.iter().map(|one| one.counts.processed).sum::<u64>();
    }
    assert_eq!(processed, 1_500, "each is counted by the one that wrote it");
    crowd.close().await;
}

/// Another program locks the second row and wants the first, which the batch has written.
#[tokio::test]
async fn f47_a_batch_caught_in_a_deadlock_is_retried() {
    let shop = Shop::on_a_server().await;
    let (gate, over, tries) = (Gate::closed(), Gate::closed(), Arc::new(AtomicU32::new(0)));
    let source = Source::of(invoices(2));
    let first = open(&shop.store, [sync(&shop, &source, Per::Ever, |units| units)]).await;
    ran(&first, "sync#monday").await;
    let (held, passed, counter) = (gate.clone(), over.clone(), tries.clone());
    let crossing = work(&shop, "sync", move |run, pool: PgPool| {
        let (gate, over, tries) = (held.clone(), passed.clone(), counter.clone());
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let list = [invoice(1, 11), invoice(2, 22)];
            let mut batches = units.apply(&list).await?;
            while let Some(mut batch) = batches.next().await? {
                let mut went = Ok(());
                // The other program locks both rows first; otherwise the second try might be chosen as the victim
                // too.
                if tries.load(Ordering::SeqCst) == 1 {
                    over.pass().await;
                }
                for one in batch.all() {
                    if one.id == 2 && tries.fetch_add(1, Ordering::SeqCst) == 0 {
                        gate.pass().await;
                        batch.tx().execute("set local deadlock_timeout = '10ms'").await.unwrap();
                    }
                    if went.is_ok() {
                        went = <sqlx::Postgres as Backend>::write(batch.tx(), one).await;
                    }
                }
                batch.settle(went).await?;
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [crossing]).await;
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { ran(&refrain, "sync#tuesday").await }
    });
    gate.have_begun(1).await;
    let stranger = tokio::spawn({
        let mut stranger: PgConnection = shop.pool.acquire().await.unwrap().detach();
        async move {
            let touch =
                "begin; set local deadlock_timeout = '10min'; update invoices set total = total where id = 2;
                update invoices set total = total where id = 1; commit";
            stranger.execute(touch).await.unwrap();
            stranger.close().await.unwrap();
            over.let_through(1);
        }
    });
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
        and datname = current_database() and query like 'begin; set local deadlock_timeout%'";
    eventually("the stranger waits", DEADLINE, async || shop.numbers(waiting).await == [1]).await;
    gate.let_through(1);
    assert_eq!(running.await.unwrap(), "tuesday done 1");
    stranger.await.unwrap();
    assert_eq!(tries.load(Ordering::SeqCst), 2, "the batch was the victim, and was retried");
    assert_eq!((shop.totals().await, shop.writes().await), (vec![11, 22], vec![2, 2]));
    assert_eq!(counts(&refrain, "sync#tuesday").await, [2, 0, 0, 0]);
}

#[tokio::test]
async fn f47_a_batch_with_a_serialization_failure_is_retried() {
    let shop = Shop::on_a_server().await;
    let tries = Arc::new(AtomicU32::new(0));
    let refused = work(&shop, "sync", move |run, pool: PgPool| {
        let tries = tries.clone();
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let list = invoices(3);
            let mut batches = units.apply(&list).await?;
            while let Some(mut batch) = batches.next().await? {
                let mut went = write(&mut batch).await.map_err(BatchError::from);
                if tries.fetch_add(1, Ordering::SeqCst) == 0 {
                    let refusal = "do $$ begin raise exception 'no' using errcode = '40001'; end $$";
                    went = batch.tx().execute(refusal).await.map(|_| ()).map_err(BatchError::from);
                }
                batch.settle(went).await?;
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [refused]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 1");
    assert_eq!((shop.writes().await, counts(&refrain, "sync#monday").await), (vec![1; 3], [3, 0, 0, 0]));
}

/// Only the total makes a change, and the update time orders it.
fn rules(
    units: refrain::ledger::Units<sqlx::Postgres, Invoice>,
) -> refrain::ledger::Units<sqlx::Postgres, Invoice> {
    units.order(|one| one.updated).fields(["total"])
}

/// Between the read of the ledger and the write, the content changed and changed back: it is not the content that was
/// read.
#[tokio::test]
async fn content_that_returns_during_a_batch_is_newer_than_the_batch() {
    let shop = Shop::on_a_server().await;
    let at = |updated, total| vec![Invoice { updated, ..invoice(1, total) }];
    let source = Source::of(at(5, 10));
    let job = |source: &Source| sync(&shop, source, Per::Ever, rules);
    let refrain = open(&shop.store, [job(&source)]).await;
    ran(&refrain, "sync#first").await;

    let gate = Gate::closed();
    let held = gate.clone();
    let slow = work(&shop, "sync", move |run, pool| {
        let gate = held.clone();
        async move {
            let units = rules(run.fence(&pool).await?.units(Per::Ever, key_of));
            gate.pass().await;
            let list = [Invoice { updated: 6, ..invoice(1, 20) }];
            write_all(units.apply(&list).await?).await
        }
    });
    let slow = open(&shop.store, [slow]).await;
    let running = tokio::spawn(async move { ran(&slow, "sync#slow").await });
    gate.have_begun(1).await;
    let mut holder = shop.pool.begin().await.unwrap();
    holder.execute("select id from refrain.fences where run = 'slow' for update").await.unwrap();
    gate.let_through(1);
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
        and datname = current_database() and query like 'select fences.id%'";
    eventually("the slow one has looked, and waits", DEADLINE, async || shop.numbers(waiting).await == [1])
        .await;
    for (updated, total) in [(7, 30), (8, 10)] {
        source.shows(at(updated, total));
        ran(&refrain, &format!("sync#{updated}")).await;
    }
    holder.rollback().await.unwrap();
    assert_eq!(running.await.unwrap(), "slow done 1");
    assert_eq!((shop.totals().await, shop.writes().await), (vec![10], vec![3]));
}

/// A slow transaction of an application locks a key: a batch with that key waits, and all others continue.
#[tokio::test]
async fn a_batch_that_waits_for_a_key_blocks_no_other_key() {
    let shop = Shop::on_a_server().await;
    let ledger = refrain::Ledger::open(&shop.pool, "shop", "mails").await.unwrap();
    let mut slow = shop.pool.begin().await.unwrap();
    assert!(ledger.claim(&mut slow, key!("mail", 1).unwrap()).await.unwrap().is_fresh());
    let mut waiting = JoinSet::new();
    for key in [1, 2, 3] {
        let ledger = ledger.clone();
        waiting.spawn(async move {
            (key, ledger.claim_alone(key!("mail", key).unwrap()).await.unwrap().is_fresh())
        });
    }
    let mut first = Vec::new();
    for _ in 0..2 {
        let ended = tokio::time::timeout(DEADLINE, waiting.join_next()).await;
        first.push(ended.expect("the others do not wait").unwrap().unwrap());
    }
    first.sort_unstable();
    assert_eq!(first, [(2, true), (3, true)]);
    slow.rollback().await.unwrap();
    assert_eq!(waiting.join_next().await.unwrap().unwrap(), (1, true));
}
