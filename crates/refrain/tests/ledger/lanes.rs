//! A run is abandoned or cancelled while its worker lives: once the next holder of its lane has
//! begun, it writes nothing.
//!
//! No attempt of the same run follows, so nothing raises its fence; the fence of the lane keeps it
//! out.

use refrain::ledger::Per;
use refrain::{Definition, WhileRunning};
use refrain_harness::both_shops;

use crate::fences::record_answer;
use crate::shop::{Backend, Shop, invoices, key_of, ran, work, write_all};
use refrain_harness::TestDatabase;
use refrain_harness::work::{Gate, Seen, daily, open};

/// A daily job. Its first window writes one invoice, waits at the gate, and writes all of them; the others write two.
fn by_days<DB: Backend>(shop: &Shop<DB>, gate: &Gate, seen: &Seen) -> Definition {
    let (gate, seen) = (gate.clone(), seen.clone());
    let job = work(shop, "sync", move |run, pool| {
        let (gate, seen) = (gate.clone(), seen.clone());
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            if run.key().starts_with("2020-06-01") {
                write_all(units.apply(&invoices(1)).await?).await?;
                gate.pass().await;
                record_answer(&seen, &write_all(units.apply(&invoices(5)).await?).await);
            } else {
                record_answer(&seen, &write_all(units.apply(&invoices(2)).await?).await);
            }
            Ok(())
        }
    });
    job.timetable(daily())
}

/// A daily job whose first window waits at the gate before it has raised a fence.
fn not_yet_let_in<DB: Backend>(shop: &Shop<DB>, gate: &Gate, seen: &Seen) -> Definition {
    let (gate, seen) = (gate.clone(), seen.clone());
    let job = work(shop, "sync", move |run, pool| {
        let (gate, seen) = (gate.clone(), seen.clone());
        async move {
            if run.key().starts_with("2020-06-01") {
                gate.pass().await;
            }
            let fence = run.fence(&pool).await;
            record_answer(&seen, &fence);
            let list = invoices(1);
            write_all(fence?.units(Per::Window, key_of).apply(&list).await?).await
        }
    });
    job.timetable(daily())
}

/// Closes the run of the first of June from outside, as a rescuer or an operator would; its lane becomes free.
async fn give_up(store: &TestDatabase, outcome: &str) {
    let run = "(select id from refrain_runs where key like '2020-06-01%')";
    let closed = format!(
        "delete from refrain_queue where run = {run};
        delete from refrain_lanes;
        update refrain_runs set open = false, outcome = '{outcome}' where id = {run}"
    );
    store.store(&closed).await;
}

/// The first window is given up while its worker waits between two transactions, the next one runs, and the first
/// continues.
async fn given_up<DB: Backend>(
    shop: &Shop<DB>,
    outcome: &str,
    how: impl Fn(Definition) -> Definition,
) -> Vec<String> {
    let (gate, seen) = (Gate::closed(), Seen::default());
    overtaken(shop, &gate, outcome, || how(by_days(shop, &gate, &seen))).await;
    seen.all()
}

async fn overtaken<DB: Backend>(shop: &Shop<DB>, gate: &Gate, outcome: &str, job: impl Fn() -> Definition) {
    let (old, new) = (open(&shop.store, [job()]).await, open(&shop.store, [job()]).await);
    let first = tokio::spawn({
        let old = old.clone();
        async move { ran(&old, "sync@2020-06-01").await }
    });
    gate.have_begun(1).await;
    give_up(&shop.store, outcome).await;
    assert_eq!(ran(&new, "sync@2020-06-02").await, "06-02 done 1");
    gate.let_through(1);
    first.await.unwrap();
}

#[both_shops]
async fn h3_an_abandoned_run_writes_nothing_after_the_next_one_of_its_lane<DB: Backend>(shop: Shop<DB>) {
    assert_eq!(given_up(&shop, "failed", |job| job).await, ["written", "1 is fenced"]);
    assert_eq!(shop.writes().await, [1, 1]);
}

#[both_shops]
async fn h3_a_cancelled_run_writes_nothing_after_the_next_one_of_its_lane<DB: Backend>(shop: Shop<DB>) {
    let skipping = |job: Definition| job.while_running(WhileRunning::Skip);
    assert_eq!(given_up(&shop, "cancelled", skipping).await, ["written", "1 is fenced"]);
    assert_eq!(shop.writes().await, [1, 1]);
}

#[both_shops]
async fn h3_an_abandoned_run_gets_no_fence_after_the_next_one_of_its_lane<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    overtaken(&shop, &gate, "failed", || not_yet_let_in(&shop, &gate, &seen)).await;
    assert_eq!(seen.all(), ["written", "1 is fenced"]);
    assert_eq!(shop.writes().await, [1]);
}

#[both_shops]
async fn windows_that_may_overlap_do_not_fence_each_other<DB: Backend>(shop: Shop<DB>) {
    let message = given_up(&shop, "failed", |job| job.while_running(WhileRunning::Allow)).await;
    assert_eq!(message, ["written", "written"]);
    assert_eq!(shop.writes().await, [1, 1, 1, 1, 1]);
}

#[both_shops]
async fn the_next_holder_of_a_lane_gets_its_fence_after_the_clock_went_back<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    gate.let_through(1);
    let job = || by_days(&shop, &gate, &seen);
    let refrain = open(&shop.store, [job()]).await;
    assert_eq!(ran(&refrain, "sync@2020-06-01").await, "06-01 done 1");
    // As if the clock had been years ahead at the earlier attempt in the lane.
    let ahead = "number = 9000000000000000000";
    shop.store.store(&format!("update refrain_lane_numbers set {ahead}")).await;
    shop.database.store(&format!("update refrain_lane_fences set {ahead}")).await;
    assert_eq!(ran(&refrain, "sync@2020-06-02").await, "06-02 done 1");
    assert_eq!(seen.all(), ["written", "written"]);
}
