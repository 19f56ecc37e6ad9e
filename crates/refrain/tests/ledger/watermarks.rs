//! Watermarks: the time up to which a source was read, and the overlap before it that is read
//! again.

use refrain_harness::both_shops;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use refrain::ledger::{LedgerError, Per, Units};
use refrain::{Ask, Definition};

use crate::shop::{Backend, Invoice, Rules, Shop, Source, counts, invoice, key_of, ran, work, write_all};
use refrain_harness::work::{Gate, Seen, daily, june, open, shown};

const OVERLAP: Duration = Duration::from_mins(10);

/// An invoice with the time of its last change in June 2020.
fn at(time: &str, id: i64, total: i64) -> Invoice {
    Invoice { updated: june(time).as_second(), ..invoice(id, total) }
}

fn time_of(invoice: &Invoice) -> Timestamp {
    Timestamp::from_second(invoice.updated).unwrap()
}

/// Reads the source from the watermark on. Records from where, and the position of the watermark afterwards.
fn reading<DB: Backend>(shop: &Shop<DB>, source: &Source, seen: &Seen, rules: Rules<DB>) -> Definition {
    let (source, seen) = (source.clone(), seen.clone());
    work(shop, "sync", move |run, pool| {
        let (source, seen) = (source.clone(), seen.clone());
        async move {
            let units = rules(run.fence(&pool).await?.units(Per::Ever, key_of));
            let mut mark = units.watermark("updated", OVERLAP, time_of).await?;
            let from = mark.from();
            let new = source.all().into_iter().filter(|one| from.is_none_or(|from| time_of(one) >= from));
            let page = mark.page(new.collect())?;
            write_all(page.apply()).await?;
            page.done().await?;
            let mark = mark.advance().await?;
            let text = |time: Option<Timestamp>| {
                time.map_or("-".to_owned(), |time| time.strftime("%d %H:%M").to_string())
            };
            seen.push(format!("{} to {}", text(from), text(mark)));
            Ok(())
        }
    })
}

async fn mark<DB: Backend>(shop: &Shop<DB>) -> Vec<String> {
    shop.database.store_texts("select position from refrain_checkpoints").await
}

#[both_shops]
async fn f29_a_late_row_is_read_once_within_the_overlap<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(vec![at("09T09:00", 1, 1), at("09T10:58", 2, 1)]), Seen::default());
    let refrain = open(&shop.store, [reading(&shop, &source, &seen, |units| units)]).await;
    ran(&refrain, "sync#one").await;
    // Two rows that were written late: one within the overlap, one too late for it.
    source.shows(vec![
        at("09T10:30", 4, 1),
        at("09T10:50", 3, 1),
        at("09T10:58", 2, 1),
        at("09T11:05", 5, 1),
    ]);
    ran(&refrain, "sync#two").await;
    ran(&refrain, "sync#three").await;
    assert_eq!(seen.all(), ["- to 09 10:58", "09 10:48 to 09 11:05", "09 10:55 to 09 11:05"]);
    assert_eq!(shop.numbers("select id from invoices order by id").await, [1, 2, 3, 5]);
    assert_eq!(shop.writes().await, vec![1; 4]);
    assert_eq!(counts(&refrain, "sync#two").await, [2, 0, 1, 0]);
}

#[both_shops]
async fn m6_a_watermark_with_wait_does_not_pass_a_failed_unit<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(vec![at("09T09:00", 1, 1)]), Seen::default());
    let refrain = open(&shop.store, [reading(&shop, &source, &seen, Units::waits_for_failed)]).await;
    ran(&refrain, "sync#one").await;
    let ten = |bad: i64| (1..=10).map(|id| at("09T10:00", id + 1, if id == 5 { bad } else { id })).collect();
    source.shows(ten(-1));
    assert_eq!(ran(&refrain, "sync#two").await, "two due 2");
    assert_eq!(mark(&shop).await, [june("09T09:00").to_string()]);
    let reported =
        refrain.attempts(&shown(&refrain, "sync#two").await).await.unwrap()[0].message.clone().unwrap();
    assert!(
        reported.contains("1 of the units before this position") && reported.contains("invoice:6"),
        "{reported}"
    );
    source.shows(ten(5));
    assert_eq!(ran(&refrain, "sync#two").await, "two done 2");
    assert_eq!(mark(&shop).await, [june("09T10:00").to_string()]);
    assert_eq!(shop.writes().await, vec![1; 11]);
}

#[both_shops]
async fn m6_a_watermark_passes_a_failed_unit_whose_input_is_stored<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(vec![at("09T09:00", 1, 1), at("09T10:00", 2, -1)]), Seen::default());
    let refrain = open(&shop.store, [reading(&shop, &source, &seen, |units| units)]).await;
    ran(&refrain, "sync#one").await;
    assert_eq!((mark(&shop).await, shop.count_of("failed").await), (vec![june("09T10:00").to_string()], 1));
}

#[both_shops]
async fn m6_a_date_in_2099_does_not_hide_later_rows<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::default(), Seen::default());
    let refrain = open(&shop.store, [reading(&shop, &source, &seen, |units| units)]).await;
    let absurd: Timestamp = "2099-01-01T00:00:00Z".parse().unwrap();
    let absurd = Invoice { updated: absurd.as_second(), ..invoice(1, 1) };
    source.shows(vec![absurd.clone(), at("09T09:00", 2, 1)]);
    let before = Timestamp::now() - SignedDuration::from_mins(1);
    ran(&refrain, "sync#one").await;
    let stands: Timestamp = mark(&shop).await[0].parse().unwrap();
    assert!((before..=Timestamp::now() + SignedDuration::from_mins(1)).contains(&stands), "{stands}");
    let later = Invoice { updated: Timestamp::now().as_second(), ..invoice(3, 1) };
    source.shows(vec![absurd, later]);
    ran(&refrain, "sync#two").await;
    assert_eq!(shop.writes().await, [1, 1, 1]);
}

#[both_shops]
async fn m6_an_empty_source_does_not_move_the_watermark<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::default(), Seen::default());
    let refrain = open(&shop.store, [reading(&shop, &source, &seen, |units| units)]).await;
    ran(&refrain, "sync#one").await;
    source.shows(vec![at("09T09:00", 1, 1)]);
    ran(&refrain, "sync#two").await;
    source.shows(Vec::new());
    ran(&refrain, "sync#three").await;
    assert_eq!(seen.all(), ["- to -", "- to 09 09:00", "09 08:50 to 09 09:00"]);
}

#[both_shops]
async fn m6_rereading_an_older_window_does_not_move_the_watermark<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::default(), Seen::default());
    let windows = reading(&shop, &source, &seen, |units| units).timetable(daily());
    let refrain = open(&shop.store, [windows]).await;
    source.shows(vec![at("01T12:00", 1, 1), at("02T12:00", 2, 1)]);
    ran(&refrain, "sync@2020-06-02").await;
    source.shows(vec![at("01T12:00", 1, 1), at("01T13:00", 3, 1), at("02T12:00", 2, 1)]);
    ran(&refrain, "sync@2020-06-01").await;
    refrain.run("sync@2020-06-01", Ask::Again).await.unwrap();
    assert_eq!(seen.all(), ["- to 02 12:00", "31 23:50 to 02 12:00", "31 23:50 to 02 12:00"]);
    assert_eq!(shop.writes().await, [1, 1, 1]);
}

#[both_shops]
async fn m6_a_unit_undone_after_its_page_holds_the_watermark<DB: Backend>(shop: Shop<DB>) {
    let undone = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let mut mark = units.watermark("updated", OVERLAP, time_of).await?;
        for (time, id) in [("09T09:00", 1), ("09T10:00", 2)] {
            let page = mark.page(vec![at(time, id, 1)])?;
            write_all(page.apply()).await?;
            page.done().await?;
        }
        if run.attempt() <= 2 {
            // Another run had other content of it, which failed and was too large to be stored.
            DB::meanwhile(
                &pool,
                if DB::IS_SQLITE {
                    "update refrain_units set status = 'failed', failures = 1, fingerprint = 7, \
                     input = null where key = 'invoice:1'"
                } else {
                    "update refrain.units set status = 'failed', failures = 1, fingerprint = 7, \
                     input = null where key = 'invoice:1'"
                },
            );
        }
        mark.advance().await.map(|_| ())
    });
    let refrain = open(&shop.store, [undone]).await;
    assert_eq!(ran(&refrain, "sync#one").await, "one due 2");
    let reported =
        refrain.attempts(&shown(&refrain, "sync#one").await).await.unwrap()[0].message.clone().unwrap();
    assert!(
        reported.contains("1 of the units before this position") && reported.contains("invoice:1"),
        "{reported}"
    );
    assert_eq!(mark(&shop).await, Vec::<String>::new());
    assert_eq!(ran(&refrain, "sync#one").await, "one due 3", "settled once more, and unsettled once more");
    assert_eq!(mark(&shop).await, Vec::<String>::new());
    assert_eq!(ran(&refrain, "sync#one").await, "one done 3");
    assert_eq!(mark(&shop).await, [june("09T10:00").to_string()]);
}

#[both_shops]
async fn m6_an_older_unsettled_unit_does_not_hold_the_watermark<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(vec![at("09T09:00", 1, 1)]), Seen::default());
    let refrain = open(&shop.store, [reading(&shop, &source, &seen, |units| units)]).await;
    ran(&refrain, "sync#one").await;
    shop.database.store("update refrain_units set status = 'parked', failures = 3, fingerprint = 7").await;
    source.shows(vec![at("09T10:00", 2, 1)]);
    ran(&refrain, "sync#two").await;
    assert_eq!(mark(&shop).await, [june("09T10:00").to_string()]);
}

#[both_shops]
async fn m6_too_many_unsettled_units_hold_the_watermark<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(vec![at("09T09:00", 1, 1)]), Seen::default());
    let refrain = open(&shop.store, [reading(&shop, &source, &seen, |units| units)]).await;
    ran(&refrain, "sync#one").await;
    let many = "insert into refrain_units (ledger, key, fingerprint, at, version, failures, written, \
         status)
            with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 10001)
            select (select ledger from refrain_units limit 1), \
            'other:' || n, 7, 1, 1, 3, false, 'parked' from numbers";
    shop.database.store(many).await;
    source.shows(vec![at("09T10:00", 2, 1)]);
    assert_eq!(ran(&refrain, "sync#two").await, "two due 2");
    assert_eq!(mark(&shop).await, [june("09T09:00").to_string()]);
}

#[both_shops]
async fn m6_an_unfinished_page_holds_the_watermark<DB: Backend>(shop: Shop<DB>) {
    let dropping = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let mut mark = units.watermark("updated", OVERLAP, time_of).await?;
        for (time, is_done) in [("09T09:00", true), ("09T10:00", false)] {
            let page = mark.page(vec![at(time, 1, 1)])?;
            write_all(page.apply()).await?;
            if is_done {
                page.done().await?;
            }
        }
        mark.advance().await.map(|_| ())
    });
    let refrain = open(&shop.store, [dropping]).await;
    assert_eq!(ran(&refrain, "sync#one").await, "one due 2");
    let reported =
        refrain.attempts(&shown(&refrain, "sync#one").await).await.unwrap()[0].message.clone().unwrap();
    assert!(reported.contains("a page of `updated` was not done"), "{reported}");
    assert!(mark(&shop).await.is_empty());
}

#[both_shops]
async fn i9_one_of_two_runs_moves_a_watermark_and_the_other_gets_an_error<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let (held, text) = (gate.clone(), seen.clone());
    let waiting = work(&shop, "sync", move |run, pool| {
        let (gate, seen) = (held.clone(), text.clone());
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let mut mark = units.watermark("updated", OVERLAP, time_of).await?;
            let time = if run.key() == "newer" { "09T10:00" } else { "09T09:00" };
            let page = mark.page(vec![at(time, 1, 1)])?;
            write_all(page.apply()).await?;
            page.done().await?;
            if run.key() == "older" && run.attempt() == 1 {
                gate.pass().await;
            }
            match mark.advance().await {
                Err(LedgerError::Moved { name }) => seen.push(format!("{name} was moved")),
                went => seen.push(format!("{:?}", went?)),
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [waiting]).await;
    let older = tokio::spawn({
        let refrain = refrain.clone();
        async move { ran(&refrain, "sync#older").await }
    });
    gate.have_begun(1).await;
    ran(&refrain, "sync#newer").await;
    gate.let_through(1);
    older.await.unwrap();
    assert_eq!(seen.all(), ["Some(2020-06-09T10:00:00Z)", "updated was moved"]);
    assert_eq!(mark(&shop).await, [june("09T10:00").to_string()], "it does not go back");
}
