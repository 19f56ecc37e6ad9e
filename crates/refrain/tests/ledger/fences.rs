//! Fences: once a newer attempt has begun, an older one writes nothing, whatever it was doing.
//!
//! An older attempt is held at a gate, its run is taken from it in the store, and another engine
//! executes the newer one.

use refrain::ledger::{LedgerError, Per};
use refrain::{Definition, Refrain};
use refrain_harness::both_shops;
use sqlx::{Pool, Postgres};

use crate::shop::{After, Backend, Shop, counts, invoices, key_of, ran, work, write, write_all};
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Gate, Seen, open};

/// Gives a running run to its next attempt, whatever the present one does.
pub(crate) async fn take_over(store: &TestDatabase, key: &str) {
    let run = format!("run = (select id from refrain_runs where key = '{key}')");
    let taken = format!(
        "insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane)
            select run, 0, line, attempt + 1, 0, 0, lane from refrain_queue where {run};
        delete from refrain_queue where {run}"
    );
    store.store(&taken).await;
}

/// Records what the ledger answered to an attempt.
pub(crate) fn record_answer<T>(seen: &Seen, went: &Result<T, LedgerError>) {
    seen.push(match went {
        Ok(_) => "written".to_owned(),
        Err(LedgerError::Fenced { attempt }) => format!("{attempt} is fenced"),
        Err(error) => error.to_string(),
    });
}

/// Two attempts of one run: the first waits at a gate, the second is done from start to end, then the first
/// continues.
async fn overtaken<DB: Backend>(shop: &Shop<DB>, gate: &Gate, job: impl Fn() -> Definition) -> [Refrain; 2] {
    let (old, new) = (open(&shop.store, [job()]).await, open(&shop.store, [job()]).await);
    let first = tokio::spawn({
        let old = old.clone();
        async move { ran(&old, "sync#monday").await }
    });
    gate.have_begun(1).await;
    take_over(&shop.store, "monday").await;
    assert_eq!(ran(&new, "sync#monday").await, "monday done 2");
    gate.let_through(1);
    first.await.unwrap();
    assert_eq!(
        ran(&new, "sync#monday").await,
        "monday done 2",
        "the result of the first attempt is discarded"
    );
    [old, new]
}

/// A job whose first attempt waits at the gate before it applies anything; it has read more than any later one.
fn late<DB: Backend>(shop: &Shop<DB>, gate: &Gate, seen: &Seen) -> Definition {
    let (gate, seen) = (gate.clone(), seen.clone());
    work(shop, "sync", move |run, pool| {
        let (gate, seen) = (gate.clone(), seen.clone());
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            if run.attempt() == 1 {
                gate.pass().await;
            }
            let list = invoices(if run.attempt() == 1 { 5 } else { 3 });
            let went = write_all(units.apply(&list).await?).await;
            record_answer(&seen, &went);
            went
        }
    })
}

/// A job that applies this many invoices after a worker died; before this attempt opens a batch, the next one has
/// begun.
fn on_trial<DB: Backend>(shop: &Shop<DB>, seen: &Seen, count: i64, overtaken: u64) -> Definition {
    let seen = seen.clone();
    work(shop, "sync", move |run, pool| {
        let seen = seen.clone();
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let list = invoices(count);
            let mut batches = units.apply(&list).await?;
            if run.attempt() == overtaken {
                DB::execute(&pool, raised::<DB>()).await.unwrap();
            }
            record_answer(&seen, &batches.next().await);
            Err(LedgerError::Contended)
        }
    })
}

async fn height<DB: Backend>(shop: &Shop<DB>) -> Vec<i64> {
    shop.database
        .store_numbers("select cast(attempt as bigint) from refrain_fences where run = 'monday'")
        .await
}

#[both_shops]
async fn an_older_attempt_that_meets_a_newer_one_does_not_doubt_the_store<DB: Backend>(shop: Shop<DB>) {
    let (before, now, seen) = (Gate::closed(), Gate::closed(), Seen::default());
    let job = || {
        let (before, now, seen) = (before.clone(), now.clone(), seen.clone());
        work(&shop, "sync", move |run, pool| {
            let (before, now, seen) = (before.clone(), now.clone(), seen.clone());
            async move {
                if run.attempt() == 1 {
                    before.pass().await;
                    record_answer(&seen, &run.fence(&pool).await);
                    now.let_through(1);
                } else {
                    run.fence(&pool).await?;
                    before.let_through(1);
                    now.pass().await;
                }
                Ok(())
            }
        })
    };
    let (old, new) = (open(&shop.store, [job()]).await, open(&shop.store, [job()]).await);
    let first = tokio::spawn(async move { ran(&old, "sync#monday").await });
    before.have_begun(1).await;
    take_over(&shop.store, "monday").await;
    assert_eq!(ran(&new, "sync#monday").await, "monday done 2");
    first.await.unwrap();
    assert_eq!(seen.all(), ["1 is fenced"]);
}

#[both_shops]
async fn i5_an_older_attempt_applies_nothing_once_a_newer_one_has_begun<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    overtaken(&shop, &gate, || late(&shop, &gate, &seen)).await;
    assert_eq!(seen.all(), ["written", "1 is fenced"]);
    assert_eq!(shop.writes().await, [1, 1, 1]);
}

#[both_shops]
async fn i5_an_older_attempt_records_no_failure_once_a_newer_one_has_begun<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let told_by = seen.clone();
    let failing = work(&shop, "sync", move |run, pool| {
        let seen = told_by.clone();
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let list = invoices(1);
            let mut batches = units.apply(&list).await?;
            let batch = batches.next().await?.unwrap();
            batch.settle(Err::<(), _>(After::this(&pool, raised::<DB>()))).await?;
            let went = batches.next().await;
            record_answer(&seen, &went);
            Ok(())
        }
    });
    let refrain = open(&shop.store, [failing]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    assert_eq!(seen.all(), ["1 is fenced"]);
    assert_eq!(shop.database.store_numbers("select count(*) from refrain_units").await, [0]);
}

#[both_shops]
async fn i5_an_older_attempt_parks_no_unit_in_advance_once_a_newer_one_has_begun<DB: Backend>(
    shop: Shop<DB>,
) {
    let seen = Seen::default();
    let refrain = open(&shop.store, [on_trial(&shop, &seen, 2, 1)]).await;
    refrain.enqueue("sync", "monday", &()).await.unwrap();
    shop.store.store("update refrain_queue set suspicion = 1").await;
    ran(&refrain, "sync#monday").await;
    assert_eq!(seen.all(), ["1 is fenced"]);
    assert_eq!(shop.database.store_numbers("select count(*) from refrain_units").await, [0]);
}

#[both_shops]
async fn i5_an_older_attempt_convicts_no_unit_once_a_newer_one_has_begun<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let refrain = open(&shop.store, [on_trial(&shop, &seen, 1, 2)]).await;
    refrain.enqueue("sync", "monday", &()).await.unwrap();
    shop.store.store("update refrain_queue set suspicion = 1").await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    let parked = "select cast(failures as bigint) from refrain_units where status = 'parked'";
    let in_advance = shop.database.store_numbers(parked).await;
    assert!(in_advance[0] < 0, "{in_advance:?}");
    // The worker has died with only this unit in its batch.
    shop.store.store("update refrain_delayed set suspicion = 2").await;
    ran(&refrain, "sync#monday").await;
    assert_eq!(seen.all(), ["written", "2 is fenced"]);
    assert_eq!(
        shop.database.store_numbers(parked).await,
        in_advance,
        "whether it is to blame, the newer one says"
    );
}

#[both_shops]
async fn i5_an_older_attempt_ends_no_step_of_a_newer_one<DB: Backend>(shop: Shop<DB>) {
    let (gates, seen) = ([Gate::closed(), Gate::closed()], Seen::default());
    let stepping = || {
        let (gates, seen) = (gates.clone(), seen.clone());
        work(&shop, "sync", move |run, _| {
            let (gates, seen) = (gates.clone(), seen.clone());
            async move {
                let step = run.step("download").await?.unwrap();
                gates[usize::from(run.attempt() == 2)].pass().await;
                record_answer(&seen, &step.done().await);
                Ok(())
            }
        })
    };
    let mut runs = Vec::new();
    for gate in &gates {
        let refrain = open(&shop.store, [stepping()]).await;
        runs.push(tokio::spawn(async move { ran(&refrain, "sync#monday").await }));
        gate.have_begun(1).await;
        if runs.len() == 1 {
            take_over(&shop.store, "monday").await;
        }
    }
    for (gate, run) in gates.iter().zip(runs) {
        gate.let_through(1);
        run.await.unwrap();
    }
    assert_eq!(seen.all(), ["1 is fenced", "written"], "both attempts would have written");
}

#[both_shops]
async fn i5_an_older_attempt_moves_no_checkpoint_once_a_newer_one_has_begun<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let paging = || {
        let (gate, seen) = (gate.clone(), seen.clone());
        work(&shop, "sync", move |run, pool| {
            let (gate, seen) = (gate.clone(), seen.clone());
            async move {
                let units = run.fence(&pool).await?.units(Per::Ever, key_of);
                let mut pages = units.cursor("billing").await?;
                let next = format!("after {}", run.attempt());
                let read = |_| async {
                    Ok::<_, LedgerError>(refrain::ledger::FetchedPage {
                        units: invoices(3),
                        next: Some(next),
                    })
                };
                let page = pages.next(read).await?.unwrap();
                write_all(page.apply()).await?;
                if run.attempt() == 1 {
                    gate.pass().await;
                }
                record_answer(&seen, &page.done().await);
                Ok(())
            }
        })
    };
    overtaken(&shop, &gate, paging).await;
    assert_eq!(seen.all(), ["written", "1 is fenced"]);
    assert_eq!(shop.database.store_texts("select position from refrain_checkpoints").await, ["after 2"]);
    assert_eq!(shop.writes().await, [1, 1, 1]);
}

#[both_shops]
async fn i5_an_older_attempt_ends_no_step_once_a_newer_one_has_begun<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let stepping = || {
        let (gate, seen) = (gate.clone(), seen.clone());
        work(&shop, "sync", move |run, _| {
            let (gate, seen) = (gate.clone(), seen.clone());
            async move {
                let step = run.step("download").await?.unwrap();
                if run.attempt() == 1 {
                    gate.pass().await;
                }
                record_answer(&seen, &step.done().await);
                Ok(())
            }
        })
    };
    overtaken(&shop, &gate, stepping).await;
    assert_eq!(seen.all(), ["written", "1 is fenced"]);
}

#[both_shops]
async fn i6_a_fence_is_raised_again_without_harm_and_never_lowered<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let raising = || {
        let (gate, seen) = (gate.clone(), seen.clone());
        work(&shop, "sync", move |run, pool| {
            let (gate, seen) = (gate.clone(), seen.clone());
            async move {
                // Twice, as after a lost answer.
                let (one, two) = (run.fence(&pool).await?, run.fence(&pool).await?);
                if run.attempt() == 1 {
                    gate.pass().await;
                    record_answer(&seen, &run.fence(&pool).await);
                }
                for fence in [one, two] {
                    let units = fence.units(Per::Ever, key_of);
                    let list = invoices(if run.attempt() == 1 { 3 } else { 2 });
                    record_answer(&seen, &write_all(units.apply(&list).await?).await);
                }
                Ok(())
            }
        })
    };
    let [_, new] = overtaken(&shop, &gate, raising).await;
    assert_eq!(seen.all(), ["written", "written", "1 is fenced", "1 is fenced", "1 is fenced"]);
    assert_eq!((height(&shop).await, shop.writes().await), (vec![2], vec![1, 1]));
    assert_eq!(counts(&new, "sync#monday").await, [2, 0, 2, 0]);
}

#[both_shops]
async fn the_fence_of_a_run_affects_no_other_run<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let job = || late(&shop, &gate, &seen);
    let [_, new] = overtaken(&shop, &gate, job).await;
    let other = tokio::spawn(async move { ran(&new, "sync#tuesday").await });
    gate.have_begun(1).await;
    gate.let_through(1);
    assert_eq!(other.await.unwrap(), "tuesday done 1");
    assert_eq!(seen.all(), ["written", "1 is fenced", "written"]);
}

/// Another attempt has raised every fence.
fn raised<DB: Backend>() -> &'static str {
    if DB::IS_SQLITE {
        "update refrain_fences set attempt = attempt + 1"
    } else {
        "update refrain.fences set attempt = attempt + 1"
    }
}

/// An attempt that has written a row in an open batch when the next one begins. The test chooses how the batch ends.
async fn with_a_batch_open(goes_well: bool) -> (Shop<Postgres>, Vec<String>, [u64; 4]) {
    let shop = Shop::on_a_server().await;
    let (gate, seen) = (Gate::closed(), Seen::default());
    let job = || {
        let (gate, seen) = (gate.clone(), seen.clone());
        work(&shop, "sync", move |run, pool: Pool<Postgres>| {
            let (gate, seen) = (gate.clone(), seen.clone());
            async move {
                let units = run.fence(&pool).await?.units(Per::Ever, key_of);
                let list = invoices(1);
                let mut batches = units.apply(&list).await?;
                while let Some(mut batch) = batches.next().await? {
                    let mut went = write(&mut batch).await;
                    if run.attempt() == 1 {
                        gate.pass().await;
                        went = if goes_well { went } else { Err(sqlx::Error::RowNotFound) };
                    }
                    let settled = batch.settle(went).await;
                    record_answer(&seen, &settled);
                    settled?;
                }
                Ok(())
            }
        })
    };
    let (old, new) = (open(&shop.store, [job()]).await, open(&shop.store, [job()]).await);
    let first = tokio::spawn(async move { ran(&old, "sync#monday").await });
    gate.have_begun(1).await;
    take_over(&shop.store, "monday").await;
    let second = tokio::spawn({
        let new = new.clone();
        async move { ran(&new, "sync#monday").await }
    });
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
        and datname = current_database() and query like 'insert into refrain.fences%'";
    eventually("the newer attempt waits at the fence", DEADLINE, async || shop.numbers(waiting).await == [1])
        .await;
    assert_eq!(shop.writes().await, Vec::<i64>::new());
    gate.let_through(1);
    first.await.unwrap();
    assert_eq!(second.await.unwrap(), "monday done 2");
    let counted = counts(&new, "sync#monday").await;
    (shop, seen.all(), counted)
}

#[tokio::test]
async fn f11_an_open_batch_commits_before_the_fence_is_raised() {
    let (shop, seen, counted) = with_a_batch_open(true).await;
    assert_eq!((seen, counted), (vec!["written".to_owned()], [0, 0, 1, 0]));
    assert_eq!(shop.writes().await, [1]);
}

#[tokio::test]
async fn f11_a_failed_open_batch_is_retried_after_the_fence_is_raised() {
    let (shop, seen, counted) = with_a_batch_open(false).await;
    // The server decides whether its failure is recorded before the fence is raised, or refused afterwards.
    assert_eq!(seen.iter().filter(|record_answer| *record_answer == "written").count(), 2, "{seen:?}");
    assert_eq!(counted, [1, 0, 0, 0]);
    assert_eq!(shop.writes().await, [1]);
}
