//! Two attempts with one number: the store has lost its last commits, or was restored, and claims the run again.
//!
//! The first attempt is running when the store forgets it. Both write to the same database, which has forgotten
//! nothing.

use refrain_harness::both_shops;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use refrain::ledger::Per;
use refrain::{Definition, Refrain};

use crate::fences::record_answer;
use crate::shop::{Backend, Shop, invoices, key_of, ran, work, write_all};
use refrain_harness::TestDatabase;
use refrain_harness::work::{Gate, Seen, job, open};

/// Makes the store forget that a run was claimed.
async fn forget(store: &TestDatabase, key: &str) {
    let run = format!("run = (select id from refrain_runs where key = '{key}')");
    store.store(&format!("update refrain_queue set lease = null, nonce = 0 where {run}")).await;
}

/// The number of a claim of the attempt, in the order in which they begin.
#[derive(Clone, Default)]
struct Turn(Arc<AtomicUsize>);

impl Turn {
    fn is_first(&self) -> bool {
        self.0.fetch_add(1, Ordering::SeqCst) == 0
    }
}

/// The first claim waits at a gate, the store forgets it, the second is done from start to end, and then the first
/// continues.
async fn given_twice<DB: Backend>(shop: &Shop<DB>, gate: &Gate, job: impl Fn() -> Definition) -> Refrain {
    let (old, new) = (open(&shop.store, [job()]).await, open(&shop.store, [job()]).await);
    let first = tokio::spawn(async move { ran(&old, "sync#monday").await });
    gate.have_begun(1).await;
    forget(&shop.store, "monday").await;
    assert_eq!(ran(&new, "sync#monday").await, "monday done 1");
    gate.let_through(1);
    first.await.unwrap();
    new
}

#[both_shops]
async fn f23_only_the_later_of_two_attempts_with_one_number_writes<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen, turn) = (Gate::closed(), Seen::default(), Turn::default());
    given_twice(&shop, &gate, || {
        let (gate, seen, turn) = (gate.clone(), seen.clone(), turn.clone());
        work(&shop, "sync", move |run, pool| {
            let (gate, seen, is_first) = (gate.clone(), seen.clone(), turn.is_first());
            async move {
                let units = run.fence(&pool).await?.units(Per::Ever, key_of);
                if is_first {
                    gate.pass().await;
                }
                let list = invoices(if is_first { 5 } else { 3 });
                record_answer(&seen, &write_all(units.apply(&list).await?).await);
                Ok(())
            }
        })
    })
    .await;
    assert_eq!(seen.all(), ["written", "1 is fenced"]);
    assert_eq!(shop.writes().await, [1, 1, 1]);
}

#[both_shops]
async fn f23_the_earlier_of_two_attempts_with_one_number_raises_no_fence_over_the_later<DB: Backend>(
    shop: Shop<DB>,
) {
    let (gate, seen, turn) = (Gate::closed(), Seen::default(), Turn::default());
    given_twice(&shop, &gate, || {
        let (gate, seen, turn) = (gate.clone(), seen.clone(), turn.clone());
        work(&shop, "sync", move |run, pool| {
            let (gate, seen, is_first) = (gate.clone(), seen.clone(), turn.is_first());
            async move {
                if is_first {
                    gate.pass().await;
                }
                let fence = run.fence(&pool).await;
                record_answer(&seen, &fence);
                let list = invoices(3);
                write_all(fence?.units(Per::Ever, key_of).apply(&list).await?).await
            }
        })
    })
    .await;
    assert_eq!(seen.all(), ["written", "1 is fenced"]);
    assert_eq!(shop.writes().await, [1, 1, 1]);
}

#[both_shops]
async fn f23_the_earlier_of_two_attempts_with_one_number_ends_no_step<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen, turn) = (Gate::closed(), Seen::default(), Turn::default());
    given_twice(&shop, &gate, || {
        let (gate, seen, turn) = (gate.clone(), seen.clone(), turn.clone());
        work(&shop, "sync", move |run, _| {
            let (gate, seen, is_first) = (gate.clone(), seen.clone(), turn.is_first());
            async move {
                let step = run.step(if is_first { "download" } else { "another" }).await?.unwrap();
                if is_first {
                    gate.pass().await;
                }
                record_answer(&seen, &step.done().await);
                Ok(())
            }
        })
    })
    .await;
    assert_eq!(seen.all(), ["written", "1 is fenced"]);
}

#[both_shops]
async fn f23_an_attempt_ends_no_step_below_a_later_one_that_was_claimed_before_it<DB: Backend>(
    shop: Shop<DB>,
) {
    for nonce in ["nonce", "nonce - 1"] {
        let seen = Seen::default();
        let (told_to, store) = (seen.clone(), Arc::new(TestDatabase::like(&shop.store).await));
        let known = Arc::clone(&store);
        let job = job("sync", move |run| {
            let (seen, store) = (told_to.clone(), Arc::clone(&known));
            async move {
                let step = run.step("download").await?.unwrap();
                let later = format!(
                    "insert into refrain_fences (project, job, run, attempt, nonce)
                         select 'shop', 'sync', 'monday', 3, {nonce} from refrain_queue"
                );
                store.store(&later).await;
                record_answer(&seen, &step.done().await);
                Ok(())
            }
        });
        let refrain = open(&store, [job]).await;
        refrain.enqueue("sync", "monday", &()).await.unwrap();
        refrain.tick().await.unwrap();
        assert_eq!(seen.all(), ["1 is fenced"], "{nonce}");
    }
}

#[both_shops]
async fn a_claim_is_higher_than_the_one_before_it_whatever_the_clock_says<DB: Backend>(shop: Shop<DB>) {
    let job = || work(&shop, "sync", |_, _| async { Ok(()) });
    let refrain = open(&shop.store, [job()]).await;
    refrain.pause("sync").await.unwrap();
    refrain.enqueue("sync", "monday", &()).await.unwrap();
    // As if the clock had been years ahead when it was claimed before.
    let ahead = "update refrain_queue set nonce = 9000000000000000000";
    shop.store.store(ahead).await;
    refrain.resume("sync").await.unwrap();
    let gate = Gate::closed();
    let waiting = open(&shop.store, [gate.job("sync")]).await;
    let run = tokio::spawn(async move { ran(&waiting, "sync#monday").await });
    gate.have_begun(1).await;
    let nonces = shop.store.store_numbers("select nonce from refrain_queue").await;
    assert!(matches!(nonces.as_slice(), [nonce] if *nonce > 9_000_000_000_000_000_000), "{nonces:?}");
    gate.let_through(1);
    assert_eq!(run.await.unwrap(), "monday done 1");
}
