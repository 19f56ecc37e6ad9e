//! Failed units: each by itself, counted and stored, while the others are applied.

use refrain_harness::both_shops;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use refrain::core::random::{Random, SeededRandom};
use refrain::core::retry::{Backoff, Retry};
use refrain::core::state::UnitStatus;
use refrain::ledger::{BatchError, LedgerError, Per};
use refrain::{Definition, Ledger, key};

use crate::shop::{Backend, Invoice, Shop, Source, counts, dedupes, invoice, invoices, key_of, ran};
use crate::shop::{sync, traced, work, write, write_all};
use refrain_harness::work::{Gate, Seen, open, shown};

const TRIES: u32 = 3;

fn tries(attempts: u32) -> Retry {
    Retry { attempts, backoff: Backoff { min: Duration::from_millis(1), max: Duration::from_millis(1) } }
}

/// Invoices that cannot be written, until they can.
#[derive(Clone, Default)]
struct Poison(Arc<Mutex<BTreeSet<i64>>>);

impl Poison {
    fn of(ids: impl IntoIterator<Item = i64>) -> Poison {
        let poison = Poison::default();
        poison.is(ids);
        poison
    }

    fn is(&self, ids: impl IntoIterator<Item = i64>) {
        *self.0.lock().unwrap() = ids.into_iter().collect();
    }

    fn has(&self, id: i64) -> bool {
        self.0.lock().unwrap().contains(&id)
    }

    fn check(&self, invoices: &[&Invoice]) -> Result<(), BatchError> {
        let bad = self.0.lock().unwrap();
        match invoices.iter().find(|one| bad.contains(&one.id)) {
            Some(one) => Err(BatchError::new(format!("{} is poison", one.id))),
            None => Ok(()),
        }
    }
}

/// Applies earlier failures and the content of the source, except poisonous units.
fn fussy<DB: Backend>(shop: &Shop<DB>, source: &Source, poison: &Poison) -> Definition {
    let (source, poison) = (source.clone(), poison.clone());
    let job = work(shop, "sync", move |run, pool| {
        let (source, poison) = (source.clone(), poison.clone());
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            for invoices in [units.failed().await?, source.all()] {
                let mut batches = units.apply(&invoices).await?;
                while let Some(mut batch) = batches.next().await? {
                    let went = write(&mut batch).await.map_err(BatchError::from);
                    let went = went.and(poison.check(&batch.all()));
                    batch.settle(went).await?;
                }
            }
            Ok(())
        }
    });
    job.retry(tries(TRIES))
}

#[both_shops]
async fn failed_units_of_one_type_are_not_decoded_as_another<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let output = seen.clone();
    let kinds = work(&shop, "sync", move |run, pool| {
        let output = output.clone();
        async move {
            let fence = run.fence(&pool).await?;
            let orders = fence.units(Per::Ever, |order: &Invoice| key!("order", order.id));
            output.push(format!("{} orders", orders.failed().await?.len()));
            let (invoices, list) = (fence.units(Per::Ever, key_of), [invoice(1, 1)]);
            let mut batches = invoices.apply(&list).await?;
            while let Some(batch) = batches.next().await? {
                batch.settle(Err::<(), _>(BatchError::new("no"))).await?;
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [kinds]).await;
    ran(&refrain, "sync#one").await;
    ran(&refrain, "sync#one").await;
    assert_eq!(seen.all(), ["0 orders", "0 orders"]);
}

#[both_shops]
async fn m13_when_unit_37_of_100_fails_only_it_is_retried<DB: Backend>(shop: Shop<DB>) {
    let (source, poison) = (Source::of(invoices(100)), Poison::of([37]));
    let refrain = open(&shop.store, [fussy(&shop, &source, &poison)]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    assert_eq!(counts(&refrain, "sync#monday").await, [99, 0, 0, 1]);
    assert_eq!(shop.writes().await, vec![1; 99]);
    assert!(shop.numbers("select id from invoices where id = 37").await.is_empty());
    let failed = traced(&shop, key!("invoice", 37).unwrap()).await;
    assert_eq!((failed.status, failed.attempt), (UnitStatus::Failed(1), Some(1)));
    assert_eq!(failed.message.as_deref(), Some("37 is poison"));
    let input: Invoice = serde_json::from_str(&failed.input.unwrap()).unwrap();
    assert_eq!(input, invoice(37, 370));

    source.shows(Vec::new());
    poison.is([]);
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 2");
    assert_eq!(counts(&refrain, "sync#monday").await, [1, 0, 0, 0]);
    assert_eq!(shop.writes().await, vec![1; 100]);
    let mended = traced(&shop, key!("invoice", 37).unwrap()).await;
    assert_eq!((mended.status, mended.attempt), (UnitStatus::Applied, Some(2)));
    assert_eq!((mended.input, mended.message), (None, None));
    let untouched = "select count(*) from refrain_units where attempt = 1 and status = 'applied'";
    assert_eq!(shop.database.store_numbers(untouched).await, [99]);
}

#[both_shops]
async fn m13_a_run_without_attempts_left_is_partial_and_names_the_unit<DB: Backend>(shop: Shop<DB>) {
    let (source, poison) = (Source::of(invoices(3)), Poison::of([2]));
    let refrain = open(&shop.store, [fussy(&shop, &source, &poison).retry(tries(1))]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday partial 1");
    let reported = shown(&refrain, "sync#monday").await.message.unwrap();
    assert!(reported.contains("1 of 3 units") && reported.contains("invoice:2: 2 is poison"), "{reported}");
}

#[both_shops]
async fn f38_a_unit_that_keeps_failing_is_parked_until_the_operator_retries_it<DB: Backend>(shop: Shop<DB>) {
    let (source, poison) = (Source::of(invoices(3)), Poison::of([2]));
    let refrain = open(&shop.store, [fussy(&shop, &source, &poison)]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(Vec::new());
    for run_state in ["monday due 3", "monday partial 3"] {
        assert_eq!(ran(&refrain, "sync#monday").await, run_state);
        assert_eq!(counts(&refrain, "sync#monday").await, [0, 0, 0, 1]);
    }
    assert_eq!(traced(&shop, key!("invoice", 2).unwrap()).await.status, UnitStatus::Parked);

    source.shows(invoices(3));
    assert_eq!(ran(&refrain, "sync#monday").await, "monday partial 4");
    assert_eq!(counts(&refrain, "sync#monday").await, [0, 1, 2, 0], "it is skipped, with the reason");

    let ledger = Ledger::open(&shop.pool, "shop", "sync").await.unwrap();
    assert_eq!(ledger.unpark(&key!("invoice", 2).unwrap()).await.unwrap(), 1);
    assert_eq!(ledger.unpark(&key!("invoice", 1).unwrap()).await.unwrap(), 0, "it is not parked");
    source.shows(Vec::new());
    ran(&refrain, "sync#monday").await;
    assert_eq!(traced(&shop, key!("invoice", 2).unwrap()).await.status, UnitStatus::Failed(1));
    poison.is([]);
    assert!(ran(&refrain, "sync#monday").await.starts_with("monday done"));
    assert_eq!(shop.writes().await, [1, 1, 1]);
}

#[both_shops]
async fn f38_corrected_content_of_a_parked_unit_has_all_its_tries<DB: Backend>(shop: Shop<DB>) {
    let (source, poison) = (Source::of(invoices(3)), Poison::of([2]));
    let refrain = open(&shop.store, [fussy(&shop, &source, &poison).retry(tries(1))]).await;
    ran(&refrain, "sync#monday").await;
    assert_eq!(traced(&shop, key!("invoice", 2).unwrap()).await.status, UnitStatus::Parked);
    poison.is([]);
    source.shows(vec![invoice(2, 21)]);
    assert_eq!(ran(&refrain, "sync#tuesday").await, "tuesday done 1");
    assert_eq!(shop.totals().await, [10, 21, 30]);
}

#[both_shops]
async fn f38_one_poison_unit_of_a_hundred_leaves_the_others_written_once<DB: Backend>(shop: Shop<DB>) {
    let bad = || (1..=2_500).filter(|id| id % 100 == 7);
    let (source, poison) = (Source::of(invoices(2_500)), Poison::of(bad()));
    let refrain = open(&shop.store, [fussy(&shop, &source, &poison)]).await;
    ran(&refrain, "sync#monday").await;
    assert_eq!(counts(&refrain, "sync#monday").await, [2_475, 0, 0, 25]);
    assert_eq!(shop.writes().await, vec![1; 2_475]);
    assert_eq!((shop.count_of("applied").await, shop.count_of("failed").await), (2_475, 25));
}

#[both_shops]
async fn f38_twenty_failures_in_a_row_blame_no_unit_and_stop_the_attempt<DB: Backend>(shop: Shop<DB>) {
    let (source, poison) = (Source::of(invoices(100)), Poison::of(1..=100));
    let refrain = open(&shop.store, [fussy(&shop, &source, &poison)]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    let reported =
        refrain.attempts(&shown(&refrain, "sync#monday").await).await.unwrap()[0].message.clone().unwrap();
    assert!(reported.contains("20 units in a row failed"), "{reported}");
    assert_eq!(
        shop.database.store_numbers("select count(*) from refrain_units").await,
        [0],
        "no try is spent"
    );
    poison.is([]);
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 2");
    assert_eq!(shop.writes().await, vec![1; 100]);
}

#[both_shops]
async fn a_unit_that_the_table_refuses_fails_alone<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(vec![invoice(1, 10), invoice(2, -1), invoice(3, 30)]);
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, |units| units)]).await;
    ran(&refrain, "sync#monday").await;
    assert_eq!((counts(&refrain, "sync#monday").await, shop.totals().await), ([2, 0, 0, 1], vec![10, 30]));
    let failed = traced(&shop, key!("invoice", 2).unwrap()).await;
    assert!(failed.message.unwrap().to_lowercase().contains("constraint"));
}

#[both_shops]
async fn a_rule_that_is_checked_at_the_commit_finds_the_bad_unit_too<DB: Backend>(shop: Shop<DB>) {
    shop.execute("create table known (id bigint primary key)").await;
    shop.execute("insert into known (id) values (1), (2), (3), (4), (5), (6), (8), (9)").await;
    shop.execute("create table lines (id bigint references known (id) deferrable initially deferred)").await;
    let deferred = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let list = invoices(9);
        let mut batches = units.apply(&list).await?;
        while let Some(mut batch) = batches.next().await? {
            let mut went = Ok(0);
            for one in batch.all() {
                went = went.and(DB::tell(batch.tx(), "insert into lines (id) values ($1)", one.id).await);
            }
            batch.settle(went).await?;
        }
        Ok(())
    });
    let refrain = open(&shop.store, [deferred]).await;
    ran(&refrain, "sync#monday").await;
    assert_eq!(counts(&refrain, "sync#monday").await, [8, 0, 0, 1]);
    assert_eq!(shop.numbers("select id from lines order by id").await, [1, 2, 3, 4, 5, 6, 8, 9]);
    assert_eq!(traced(&shop, key!("invoice", 7).unwrap()).await.status, UnitStatus::Failed(1));
}

#[both_shops]
async fn a_dropped_batch_leaves_no_row_and_its_run_fails<DB: Backend>(shop: Shop<DB>) {
    let dropping = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let list = invoices(3);
        let mut batches = units.apply(&list).await?;
        let mut batch = batches.next().await?.unwrap();
        write(&mut batch).await.unwrap();
        if run.attempt() == 1 {
            drop(batch);
            return Ok(());
        }
        batch.settle(Ok::<_, LedgerError>(())).await
    });
    let refrain = open(&shop.store, [dropping]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    let reported =
        refrain.attempts(&shown(&refrain, "sync#monday").await).await.unwrap()[0].message.clone().unwrap();
    assert!(reported.contains("3 of 3 units were discovered and never settled"), "{reported}");
    assert_eq!((shop.writes().await, shop.count_of("applied").await), (Vec::new(), 0));
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 2");
    assert_eq!(shop.writes().await, [1, 1, 1]);
}

#[both_shops]
async fn a_unit_that_is_too_large_is_refused_before_anything_is_written<DB: Backend>(shop: Shop<DB>) {
    let large = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, |text: &String| key!("text", text.len()));
        let texts = ["small".to_owned(), "x".repeat(1 << 20)];
        units.apply(&texts).await.map(|_| ())
    });
    let refrain = open(&shop.store, [large]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    let reported =
        refrain.attempts(&shown(&refrain, "sync#monday").await).await.unwrap()[0].message.clone().unwrap();
    assert!(reported.contains("pass a reference, not the body"), "{reported}");
}

#[both_shops]
async fn m24_the_counts_of_every_attempt_add_up_to_what_it_discovered<DB: Backend>(shop: Shop<DB>) {
    let (source, poison) = (Source::default(), Poison::default());
    let refrain = open(&shop.store, [fussy(&shop, &source, &poison)]).await;
    let mut random = SeededRandom::new(24);
    for round in 0..12 {
        let mut draw = |below: u64| i64::try_from(random.next_u64() % below).unwrap();
        // Some units are known, some new, some changed, some occur twice, some are poisonous.
        let list: Vec<Invoice> = (0..60).map(|_| invoice(draw(40) + round * 4, draw(3))).collect();
        poison.is((0..6).map(|_| draw(40) + round * 4));
        let kept = shop.database.store_texts("select input from refrain_units where status = 'failed'").await;
        let kept: Vec<Invoice> = kept.iter().map(|input| serde_json::from_str(input).unwrap()).collect();
        // A unit that failed before and is in the source too counts once, unless it was applied from its stored input
        // and the source has newer content by now: then two contents of it were applied.
        let is_one = |kept: &&Invoice| {
            let shown = list.iter().rfind(|one| one.id == kept.id);
            shown.is_some_and(|shown| shown == *kept || poison.has(kept.id))
        };
        let expected = u64::try_from(60 + kept.len() - kept.iter().filter(is_one).count()).unwrap();
        source.shows(list);
        let run = format!("sync#{round}");
        ran(&refrain, &run).await;
        let counted: u64 = counts(&refrain, &run).await.iter().sum();
        assert_eq!(counted, expected, "round {round}: {:?}", dedupes(&refrain, &run).await);
    }
    let written = i64::try_from(shop.writes().await.len()).unwrap();
    assert_eq!(written, shop.count_of("applied").await + overwritten(&shop).await);
}

#[both_shops]
async fn m24_a_stopped_attempt_has_counts_of_its_own<DB: Backend>(shop: Shop<DB>) {
    let gate = Gate::closed();
    let held = gate.clone();
    let halting = work(&shop, "sync", move |run, pool| {
        let gate = held.clone();
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let all = invoices(100);
            write_all(units.apply(&all[..50]).await?).await?;
            gate.pass().await;
            write_all(units.apply(&all[50..]).await?).await
        }
    });
    let refrain = open(&shop.store, [halting]).await;
    refrain.enqueue("sync", "monday", &()).await.unwrap();
    let serving = refrain.serve();
    let handle = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    gate.have_begun(1).await;
    handle.stop_now();
    serving.await.unwrap();
    assert_eq!(shop.writes().await, vec![1; 50]);
    gate.let_through(1);
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 2");
    let attempts = refrain.units(&shown(&refrain, "sync#monday").await).await.unwrap();
    let counted: Vec<_> =
        attempts.iter().map(|one| (one.counts.processed, one.counts.deduplicated)).collect();
    assert_eq!(counted, [(50, 0), (50, 50)]);
    assert_eq!(shop.writes().await, vec![1; 100]);
}

/// Units whose older content is written, and whose newer one failed.
async fn overwritten<DB: Backend>(shop: &Shop<DB>) -> i64 {
    let ids: Vec<i64> = shop.numbers("select id from invoices").await;
    let failed = "select key from refrain_units where status <> 'applied'";
    let failed = shop.database.store_texts(failed).await;
    let is_written = |key: &String| ids.iter().any(|id| *key == format!("invoice:{id}"));
    i64::try_from(failed.iter().filter(|key| is_written(key)).count()).unwrap()
}

/// The handler hides an error, but the server knows: a statement failed, so nothing of the batch is committed.
#[tokio::test]
async fn f3_an_error_ignored_by_the_handler_does_not_count_as_success() {
    let shop = Shop::on_a_server().await;
    let silent = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let list = [invoice(1, 10), invoice(2, -1), invoice(3, 30)];
        let mut batches = units.apply(&list).await?;
        while let Some(mut batch) = batches.next().await? {
            let _ = write(&mut batch).await;
            batch.settle(Ok::<_, LedgerError>(())).await?;
        }
        Ok(())
    });
    let refrain = open(&shop.store, [silent]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    assert_eq!(counts(&refrain, "sync#monday").await, [2, 0, 0, 1]);
    assert_eq!((shop.totals().await, shop.count_of("applied").await), (vec![10, 30], 2));
}

/// A trigger ends the transaction, and the handler continues to write: those writes are committed one by one, and
/// must not be repeated.
#[tokio::test]
async fn an_error_after_a_lost_transaction_is_blamed_on_no_unit() {
    let shop = Shop::in_a_file().await;
    let end = "create trigger ends before insert on invoices when new.id = 1 begin select \
         raise(rollback, 'no'); end";
    shop.execute(end).await;
    let persistent = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let list = invoices(2);
        let mut batches = units.apply(&list).await?;
        while let Some(mut batch) = batches.next().await? {
            let mut went = Ok(());
            for invoice in batch.all() {
                went = sqlx::Sqlite::write(batch.tx(), invoice).await.and(went);
            }
            batch.settle(went).await?;
        }
        Ok(())
    });
    let refrain = open(&shop.store, [persistent]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    assert_eq!((shop.writes().await, shop.count_of("failed").await), (vec![1], 0));
    let attempt = refrain.attempts(&shown(&refrain, "sync#monday").await).await.unwrap().remove(0);
    let reported = attempt.message.unwrap();
    assert!(reported.contains("the database ended the transaction in the middle of it"), "{reported}");
}
