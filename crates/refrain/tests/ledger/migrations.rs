//! A ledger is migrated while an attempt writes to it. The attempt may be of another project, of whose workers the migration
//! knows nothing.

use refrain::Ledger;
use refrain::ledger::Per;
use refrain_harness::both_shops;

use crate::fences::record_answer;
use crate::shop::{Backend, Shop, invoices, key_of, ran, work, write, write_all};
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Gate, Seen, open};

#[both_shops]
async fn an_attempt_writes_nothing_after_a_migration_that_its_release_does_not_know<DB: Backend>(
    shop: Shop<DB>,
) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let job = work(&shop, "sync", {
        let (gate, seen) = (gate.clone(), seen.clone());
        move |run, pool| {
            let (gate, seen) = (gate.clone(), seen.clone());
            async move {
                let units = run.fence(&pool).await?.units(Per::Ever, key_of);
                write_all(units.apply(&invoices(1)).await?).await?;
                gate.pass().await;
                let written = write_all(units.apply(&invoices(3)).await?).await;
                record_answer(&seen, &written);
                written
            }
        }
    });
    let refrain = open(&shop.store, [job]).await;
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { ran(&refrain, "sync#monday").await }
    });
    gate.have_begun(1).await;
    let later = "insert into refrain_ledger_migrations (number, name, applied_at, oldest)
        values (9999, 'later', 0, 9999)";
    shop.database.store(later).await;
    gate.let_through(1);
    running.await.unwrap();
    let [refused] = &seen.all()[..] else { panic!("{:?}", seen.all()) };
    assert!(refused.contains("schema 9999") && refused.contains("use that one here too"), "{refused}");
    assert_eq!(shop.writes().await, [1]);
}

#[both_shops]
async fn an_attempt_goes_on_after_a_migration_that_is_additive<DB: Backend>(shop: Shop<DB>) {
    let job = work(&shop, "sync", |run, pool| async move {
        write_all(run.fence(&pool).await?.units(Per::Ever, key_of).apply(&invoices(3)).await?).await
    });
    let later = "insert into refrain_ledger_migrations (number, name, applied_at, oldest)
        select 9999, 'later', 0, max(oldest) from refrain_ledger_migrations";
    shop.database.store(later).await;
    let refrain = open(&shop.store, [job]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 1");
    assert_eq!(shop.writes().await, [1; 3]);
}

/// A file has one writer anyway.
#[tokio::test]
async fn a_migration_waits_for_a_batch_that_holds_a_fence() {
    let (shop, gate) = (Shop::on_a_server().await, Gate::closed());
    let job = work(&shop, "sync", {
        let gate = gate.clone();
        move |run, pool| {
            let gate = gate.clone();
            async move {
                let units = run.fence(&pool).await?.units(Per::Ever, key_of);
                let list = invoices(1);
                let mut batches = units.apply(&list).await?;
                while let Some(mut batch) = batches.next().await? {
                    let written = write(&mut batch).await;
                    gate.pass().await;
                    batch.settle(written).await?;
                }
                Ok(())
            }
        }
    });
    let refrain = open(&shop.store, [job]).await;
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { ran(&refrain, "sync#monday").await }
    });
    gate.have_begun(1).await;
    let last = "delete from refrain_ledger_migrations
        where number = (select max(number) from refrain_ledger_migrations)";
    shop.database.store(last).await;
    let migrating = tokio::spawn({
        let pool = Backend::crowd(&shop.pool).await.unwrap();
        async move { Ledger::migrate(&pool).await }
    });
    let mut waits = Vec::new();
    let waiting = "select query from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    eventually("the migration waits or ends", DEADLINE, async || {
        waits = shop.database.texts(waiting).await;
        !waits.is_empty() || migrating.is_finished()
    })
    .await;
    assert!(waits.concat().contains("lock table refrain.fences"), "{waits:?}");
    gate.let_through(1);
    assert_eq!(running.await.unwrap(), "monday done 1");
    // It was applied before, in truth.
    migrating.await.unwrap().unwrap_err();
}
