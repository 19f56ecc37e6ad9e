//! Two runs at one unit, between the read of its row and the write: the statement itself compares
//! what the other one has recorded meanwhile, because the read took no lock. On PostgreSQL only: a
//! SQLite file has one writer.

use refrain::core::Fingerprint;
use refrain::core::state::UnitStatus;
use refrain::key;
use refrain::ledger::{BatchError, Per, UnitRecord, Units};
use sqlx::{AssertSqlSafe, Executor, Postgres};

use crate::shop::{Invoice, Shop, Source, invoice, ran, sync, traced, work, write_all};
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Gate, open};

type Rules = fn(Units<Postgres, Invoice>) -> Units<Postgres, Invoice>;

fn at(updated: i64, total: i64) -> Invoice {
    Invoice { updated, ..invoice(1, total) }
}

fn ordered(units: Units<Postgres, Invoice>) -> Units<Postgres, Invoice> {
    units.order(|one| one.updated).fields(["total"])
}

fn content_of(total: i64) -> i64 {
    let text = serde_json::to_string(&invoice(1, total)).unwrap();
    Fingerprint::of_fields(&text, &["total"]).unwrap().to_number()
}

/// The row of the only unit is locked; the run that waits for it has read it before. Then the row is changed, and the
/// lock released.
async fn changed_while_one_waits(shop: &Shop<Postgres>, gate: &Gate, change: &str) {
    gate.have_begun(1).await;
    let mut holder = shop.pool.begin().await.unwrap();
    holder.execute("select key from refrain.units for update").await.unwrap();
    gate.let_through(1);
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
        and datname = current_database() and query like '%refrain.units%'";
    eventually("the run waits for the row", DEADLINE, async || shop.numbers(waiting).await == [1]).await;
    holder.execute(AssertSqlSafe(format!("update refrain.units set {change}"))).await.unwrap();
    holder.commit().await.unwrap();
}

/// A run fails to apply content with the order six over content with the order five; meanwhile the row is changed.
/// Returns the row, its order, and the state of the run.
async fn failed_over(change: &str) -> (UnitRecord, Vec<i64>, String) {
    let shop = Shop::on_a_server().await;
    let source = Source::of(vec![at(5, 10)]);
    let first = open(&shop.store, [sync(&shop, &source, Per::Ever, ordered)]).await;
    ran(&first, "sync#monday").await;
    let gate = Gate::closed();
    let held = gate.clone();
    let failing = work(&shop, "sync", move |run, pool| {
        let gate = held.clone();
        async move {
            let units = ordered(run.fence(&pool).await?.units(Per::Ever, key_of));
            let list = [at(6, 20)];
            let mut batches = units.apply(&list).await?;
            if let Some(batch) = batches.next().await? {
                batch.settle(Err::<(), _>(BatchError::new("no"))).await?;
                gate.pass().await;
            }
            // The failure is recorded here; if the row was changed meanwhile, the unit is judged again.
            while let Some(batch) = batches.next().await? {
                batch.settle(Err::<(), _>(BatchError::new("still no"))).await?;
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [failing]).await;
    let running = tokio::spawn(async move { ran(&refrain, "sync#tuesday").await });
    changed_while_one_waits(&shop, &gate, change).await;
    let run_state = running.await.unwrap();
    let orders = shop.numbers("select ordinal from refrain.units").await;
    (traced(&shop, key!("invoice", 1).unwrap()).await, orders, run_state)
}

fn key_of(invoice: &Invoice) -> Result<refrain::core::Key, refrain::core::KeyError> {
    crate::shop::key_of(invoice)
}

#[tokio::test]
async fn a_failure_does_not_overwrite_the_same_content_applied_meanwhile() {
    let (record, _, run_state) = failed_over(&format!("fingerprint = {}, ordinal = 6", content_of(20))).await;
    assert_eq!((record.status, record.run.as_deref()), (UnitStatus::Applied, Some("monday")));
    assert_eq!(run_state, "tuesday done 1", "nothing is left to do for it");
}

#[tokio::test]
async fn a_failure_does_not_overwrite_a_newer_version() {
    let (record, ..) = failed_over("version = 2").await;
    assert_eq!((record.status, record.version), (UnitStatus::Applied, 2));
}

#[tokio::test]
async fn a_failure_does_not_overwrite_newer_content() {
    let (record, orders, _) = failed_over(&format!("fingerprint = {}, ordinal = 7", content_of(30))).await;
    assert_eq!((record.status, orders), (UnitStatus::Applied, vec![7]));
}

#[tokio::test]
async fn a_failure_does_not_overwrite_a_request_of_another_run() {
    let reserved = "status = 'parked', sent = 1, message = 'in doubt: it was begun'";
    let (record, ..) = failed_over(reserved).await;
    assert!(record.in_doubt_since.is_some(), "{record:?}");
    assert_eq!((record.status, record.run.as_deref()), (UnitStatus::Parked, Some("monday")));
}

/// A unit with this row is read again by version 2 of its job; meanwhile the row is changed.
async fn read_again(
    rules: Rules,
    before: &str,
    list: Vec<Invoice>,
    version: u32,
    change: &str,
) -> Shop<Postgres> {
    let shop = Shop::on_a_server().await;
    let source = Source::of(vec![at(5, 10)]);
    let first = open(&shop.store, [sync(&shop, &source, Per::Ever, rules)]).await;
    ran(&first, "sync#monday").await;
    shop.database.store(&format!("update refrain_units set {before}")).await;
    let gate = Gate::closed();
    let held = gate.clone();
    let reading = work(&shop, "sync", move |run, pool| {
        let (gate, list) = (held.clone(), list.clone());
        async move {
            let units = rules(run.fence(&pool).await?.units(Per::Ever, key_of));
            gate.pass().await;
            write_all(units.apply(&list).await?).await
        }
    });
    let refrain = open(&shop.store, [reading.version(version)]).await;
    let running = tokio::spawn(async move { ran(&refrain, "sync#tuesday").await });
    changed_while_one_waits(&shop, &gate, change).await;
    running.await.unwrap();
    shop
}

#[tokio::test]
async fn an_order_that_was_raised_meanwhile_is_not_lowered() {
    let shop = read_again(ordered, "ordinal = 5", vec![at(7, 10)], 1, "ordinal = 9").await;
    assert_eq!(shop.numbers("select ordinal from refrain.units").await, [9]);
}

#[tokio::test]
async fn no_row_is_written_under_a_key_that_was_reserved_meanwhile() {
    let parked = "status = 'parked', failures = 0, input = '{}'";
    let shop = read_again(|units| units, parked, vec![at(5, 10)], 2, "sent = 1").await;
    let record = traced(&shop, key!("invoice", 1).unwrap()).await;
    assert!(record.in_doubt_since.is_some(), "{record:?}");
    assert_eq!(shop.writes().await, [1]);
}

#[tokio::test]
async fn a_failed_try_replaced_meanwhile_is_not_withdrawn() {
    let failed = format!(
        "applied_version = version, applied_fingerprint = fingerprint, applied_at = at, \
         status = 'failed', input = '{{}}',
         failures = 1, fingerprint = {}",
        content_of(20)
    );
    let newer = format!("fingerprint = {}, ordinal = 9", content_of(30));
    let shop = read_again(ordered, &failed, vec![at(7, 10)], 1, &newer).await;
    assert_eq!((shop.count_of("failed").await, shop.writes().await), (1, vec![1]));
}
