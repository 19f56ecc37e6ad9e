//! Units: each is applied once, under a key that is unique in its scope for as long as the job
//! says.

use refrain::core::retry::Retry;
use refrain::core::state::UnitStatus;
use refrain::core::{CatchUp, Fingerprint, Scope};
use refrain::ledger::{LedgerError, Per};
use refrain::{Ask, Ledger, key};
use refrain_harness::both_shops;
use serde_json::Value;

use crate::shop::{Backend, Invoice, Shop, Source, counts, dedupes, invoice, invoices, key_of};
use crate::shop::{ran, sync, traced, work, write_all};
use refrain_harness::work::{Seen, daily, line, open, shown};

#[both_shops]
async fn i14_every_unit_is_written_once_however_often_the_source_shows_it<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(2_500));
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, |units| units)]).await;
    for (run, counted) in [("sync#monday", [2_500, 0, 0, 0]), ("sync#tuesday", [0, 0, 2_500, 0])] {
        assert!(ran(&refrain, run).await.ends_with("done 1"));
        assert_eq!(shop.writes().await, vec![1; 2_500]);
        assert_eq!(shop.count_of("applied").await, 2_500);
        assert_eq!(counts(&refrain, run).await, counted);
    }
    let run = shown(&refrain, "sync#tuesday").await;
    let attempts = refrain.units(&run).await.unwrap();
    assert_eq!((attempts[0].dedupes.len(), attempts[0].dedupes[0].keys.len()), (1, 100), "the first of them");
}

#[both_shops]
async fn an_empty_list_is_done_and_counts_no_unit<DB: Backend>(shop: Shop<DB>) {
    let refrain = open(&shop.store, [sync(&shop, &Source::default(), Per::Ever, |units| units)]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 1");
    let run = shown(&refrain, "sync#monday").await;
    assert_eq!(refrain.units(&run).await.unwrap(), []);
}

#[both_shops]
async fn new_units_among_known_ones_are_written_in_every_batch<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(2_500).into_iter().filter(|one| one.id % 3 == 0).collect());
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, |units| units)]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(invoices(2_500));
    ran(&refrain, "sync#tuesday").await;
    assert_eq!(shop.writes().await, vec![1; 2_500]);
    assert_eq!(counts(&refrain, "sync#tuesday").await, [1_667, 0, 833, 0]);
}

#[both_shops]
async fn m5_the_ledger_records_which_attempt_applied_a_unit_and_when<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(2));
    let work = sync(&shop, &source, Per::Ever, |units| units).version(3);
    let refrain = open(&shop.store, [work]).await;
    ran(&refrain, "sync#monday").await;
    let record = traced(&shop, key!("invoice", 2).unwrap()).await;
    assert_eq!((record.status, record.version), (UnitStatus::Applied, 3));
    assert_eq!((record.run.as_deref(), record.attempt), (Some("monday"), Some(1)));
    assert_eq!((record.input, record.message, record.window_start.as_str()), (None, None, ""));
    let ledger = Ledger::open(&shop.pool, "shop", "sync").await.unwrap();
    assert_eq!(ledger.trace(&key!("invoice", 3).unwrap()).await.unwrap(), []);
}

#[both_shops]
async fn per_decides_whether_a_key_is_unique_per_window_or_for_ever<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(3));
    let by_window = sync(&shop, &source, Per::Window, |units| units).timetable(daily());
    let for_ever = sync(&shop, &source, Per::Ever, |units| units).named("once").unwrap().timetable(daily());
    let refrain = open(&shop.store, [by_window, for_ever]).await;
    for window in ["06-01 done 1", "06-02 done 1"] {
        let name = format!("2020-{}", &window[..5]);
        assert_eq!(ran(&refrain, &format!("sync@{name}")).await, window);
        assert_eq!(ran(&refrain, &format!("once@{name}")).await, window);
    }
    assert_eq!(shop.writes().await, [3, 3, 3], "each window its own, and once for ever");
    let ledger = Ledger::open(&shop.pool, "shop", "sync").await.unwrap();
    let windows: Vec<String> = ledger
        .trace(&key!("invoice", 1).unwrap())
        .await
        .unwrap()
        .into_iter()
        .map(|one| one.window_start)
        .collect();
    assert_eq!(windows, ["2020-06-01T00:00:00Z", "2020-06-02T00:00:00Z"]);
    refrain.run("sync@2020-06-01", Ask::Again).await.unwrap();
    assert_eq!(shop.writes().await, [3, 3, 3], "a repeated window has the same units");
}

#[both_shops]
async fn the_same_key_in_another_scope_or_job_is_another_unit<DB: Backend>(shop: Shop<DB>) {
    let scoped = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        write_all(units.apply(&invoices(2)).await?).await
    });
    let found = |_| async { Ok(["acme", "umbrella"].map(|name| Scope::parse(name).unwrap()).to_vec()) };
    let scoped = scoped.timetable(daily()).catch_up(CatchUp::All).scopes(found);
    let other = sync(&shop, &Source::of(invoices(2)), Per::Ever, |units| units).named("other").unwrap();
    let refrain = open(&shop.store, [scoped, other]).await;
    ran(&refrain, "sync@2020-06-01").await;
    for run in ["sync@2020-06-01/acme", "sync@2020-06-01/umbrella", "other#monday"] {
        let report = refrain.run(run, Ask::Once).await.unwrap();
        assert!(report.is_done(), "{}", line(&report.run));
    }
    assert_eq!(shop.writes().await, [3, 3]);
    let ledger = Ledger::open(&shop.pool, "shop", "sync").await.unwrap();
    let records = ledger.trace(&key!("invoice", 1).unwrap()).await.unwrap();
    assert_eq!(records.iter().map(|one| one.scope.as_str()).collect::<Vec<_>>(), ["acme", "umbrella"]);
}

/// Applies lines of a file, which have no number, under a hash of their content. Returns the applied ones.
async fn landed<DB: Backend>(shop: &Shop<DB>, run: &str, lines: &[&str]) -> Vec<String> {
    let rows: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen = Seen::default();
    let output = seen.clone();
    let landing = work(shop, "sync", move |run, pool| {
        let (output, rows) = (output.clone(), rows.clone());
        async move {
            let by_content = |row: &Value| key!("row", Fingerprint::of_json(&row.to_string()).unwrap());
            let units = run.fence(&pool).await?.units(Per::Ever, by_content);
            let mut batches = units.apply(&rows).await?;
            while let Some(batch) = batches.next().await? {
                batch.all().iter().for_each(|row| output.push(row.to_string()));
                batch.settle(Ok::<_, LedgerError>(())).await?;
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [landing]).await;
    ran(&refrain, run).await;
    refrain.close().await;
    seen.all()
}

const ODD: [&str; 7] =
    ["a\"b", "back\\slash", "ümläut", "e\u{301} é", "😀", " spaces  ", "%_'; drop table invoices;--"];

#[both_shops]
async fn m3_a_row_without_an_id_is_identified_by_its_content<DB: Backend>(shop: Shop<DB>) {
    let first = [r#"{"id": 7, "total": 10.0}"#, r#"{"id": 8, "total": 1}"#];
    assert_eq!(landed(&shop, "sync#monday", &first).await.len(), 2);
    let reordered =
        [r#"{"total":1e1,"id":7}"#, "{ \"total\" : 1,\n\"id\":8 }", r#"{"id": "7", "total": 10.0}"#];
    let new = landed(&shop, "sync#tuesday", &reordered).await;
    assert_eq!(new, [r#"{"id":"7","total":10.0}"#], "a text is not a number");
}

#[both_shops]
async fn m3_only_selected_fields_make_a_change<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(2));
    let rules = |units: refrain::ledger::Units<_, _>| units.fields(["id", "total"]);
    let refrain = open(&shop.store, [sync(&shop, &source, Per::Ever, rules)]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(invoices(2).into_iter().map(|one| Invoice { updated: 99, ..one }).collect());
    ran(&refrain, "sync#tuesday").await;
    assert_eq!(shop.writes().await, [1, 1]);
    assert_eq!(dedupes(&refrain, "sync#tuesday").await, ["already-applied 2 invoice:1 invoice:2"]);
    source.shows(vec![invoice(2, 21)]);
    ran(&refrain, "sync#wednesday").await;
    assert_eq!(shop.totals().await, [10, 21]);
}

#[both_shops]
async fn f37_unusual_keys_are_stored_unchanged_and_stay_distinct<DB: Backend>(shop: Shop<DB>) {
    for run in ["sync#monday", "sync#tuesday"] {
        let odd = work(&shop, "sync", |run, pool| async move {
            let units = run.fence(&pool).await?.units(Per::Ever, |at: &usize| key!("odd", ODD[*at]));
            let places: Vec<usize> = (0..ODD.len()).collect();
            let mut batches = units.apply(&places).await?;
            while let Some(mut batch) = batches.next().await? {
                let mut went = Ok(());
                for at in batch.all() {
                    let id = i64::try_from(*at).unwrap();
                    went = went.and(DB::write(batch.tx(), &invoice(id, 1)).await);
                }
                batch.settle(went).await?;
            }
            Ok(())
        });
        let refrain = open(&shop.store, [odd]).await;
        assert!(ran(&refrain, run).await.ends_with("done 1"));
        refrain.close().await;
    }
    assert_eq!(shop.writes().await, vec![1; ODD.len()]);
    for text in ODD {
        assert_eq!(traced(&shop, key!("odd", text).unwrap()).await.status, UnitStatus::Applied, "{text:?}");
    }
}

#[both_shops]
async fn units_are_parked_in_advance_a_megabyte_at_a_time<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let output = seen.clone();
    let long = work(&shop, "sync", move |run, pool| {
        let seen = output.clone();
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, |text: &String| key!("text", &text[..1]));
            let texts = ["a", "b", "c", "d", "e"].map(|letter| letter.repeat(400_000));
            let mut batches = units.apply(&texts).await?;
            while let Some(batch) = batches.next().await? {
                seen.push(format!("{} together", batch.all().len()));
                batch.settle(Ok::<_, LedgerError>(())).await?;
            }
            Ok(())
        }
    });
    // Its only try must not be used up by a death, so all units that fit are tried together.
    let refrain = open(&shop.store, [long.retry(Retry { attempts: 1, ..Retry::default() })]).await;
    refrain.enqueue("sync", "monday", &()).await.unwrap();
    shop.store.store("update refrain_queue set suspicion = 1").await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 1");
    assert_eq!(seen.all(), ["2 together", "2 together", "1 together"]);
}
