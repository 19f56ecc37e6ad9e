//! Cursors: a source is read page by page and resumed where it was left.

use refrain_harness::both_shops;
use std::future::ready;

use refrain::ledger::{Cursor, FetchedPage, LedgerError, Per, Units};
use refrain::{Definition, Refrain};

use crate::shop::{
    Backend, Invoice, Rules, Shop, Source, counts, invoice, invoices, key_of, ran, work, write, write_all,
};
use refrain_harness::work::{Gate, Seen, history, open, shown};

const PAGE: usize = 10;

/// The next invoices after a number, and the last of their numbers.
fn read(source: &Source, at: Option<&str>) -> FetchedPage<Invoice> {
    let after: i64 = at.map_or(0, |at| at.parse().unwrap());
    let mut units: Vec<Invoice> = source.all().into_iter().filter(|one| one.id > after).collect();
    units.sort_by_key(|one| one.id);
    units.truncate(PAGE);
    let next = units.last().map(|last| last.id.to_string());
    FetchedPage { units, next }
}

/// Reads the whole source, page by page. `stumbles` says what happens when a page from this position is applied.
fn paging<DB: Backend>(shop: &Shop<DB>, source: &Source, seen: &Seen, stumbles: Stumble) -> Definition {
    let (source, seen) = (source.clone(), seen.clone());
    work(shop, "sync", move |run, pool| {
        let (source, seen) = (source.clone(), seen.clone());
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let mut pages = units.cursor("billing").await?;
            while let Some(page) =
                pages.next(|at| ready(Ok::<_, LedgerError>(seen_at(&seen, &source, at.as_deref())))).await?
            {
                write_all(page.apply()).await?;
                let first = page.units()[0].id;
                if run.attempt() == 1 && stumbles == Stumble::Before(first) {
                    return Err(LedgerError::Contended);
                }
                page.done().await?;
                if run.attempt() == 1 && stumbles == Stumble::After(first) {
                    return Err(LedgerError::Contended);
                }
            }
            Ok(())
        }
    })
}

/// Where the first attempt fails: before or after the page that begins with this invoice is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stumble {
    Never,
    Before(i64),
    After(i64),
}

fn seen_at(seen: &Seen, source: &Source, at: Option<&str>) -> FetchedPage<Invoice> {
    seen.push(at.unwrap_or_default());
    read(source, at)
}

async fn position<DB: Backend>(shop: &Shop<DB>) -> Vec<String> {
    shop.database.store_texts("select position from refrain_checkpoints").await
}

#[both_shops]
async fn m12_an_attempt_interrupted_after_page_2_of_5_resumes_with_page_3<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(invoices(50)), Seen::default());
    let refrain = open(&shop.store, [paging(&shop, &source, &seen, Stumble::After(11))]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    assert_eq!(
        (seen.all(), position(&shop).await),
        (vec![String::new(), "10".into()], vec!["20".to_owned()])
    );
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 2");
    assert_eq!(seen.all(), ["", "10", "20", "30", "40", "50"]);
    assert_eq!(shop.writes().await, vec![1; 50], "as if it had never failed");
    assert_eq!(shop.totals().await, (1..=50).map(|id| id * 10).collect::<Vec<_>>());
    assert_eq!(counts(&refrain, "sync#monday").await, [30, 0, 0, 0]);
}

#[both_shops]
async fn m12_a_page_applied_but_not_done_is_read_again_and_written_once<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(invoices(50)), Seen::default());
    let refrain = open(&shop.store, [paging(&shop, &source, &seen, Stumble::Before(11))]).await;
    ran(&refrain, "sync#monday").await;
    assert_eq!((shop.writes().await, position(&shop).await), (vec![1; 20], vec!["10".to_owned()]));
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 2");
    assert_eq!(seen.all(), ["", "10", "10", "20", "30", "40", "50"]);
    assert_eq!(shop.writes().await, vec![1; 50]);
    assert_eq!(counts(&refrain, "sync#monday").await, [30, 0, 10, 0]);
}

#[both_shops]
async fn m12_the_next_run_resumes_where_the_last_one_ended<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(invoices(15)), Seen::default());
    let refrain = open(&shop.store, [paging(&shop, &source, &seen, Stumble::Never)]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(invoices(17));
    ran(&refrain, "sync#tuesday").await;
    assert_eq!(seen.all(), ["", "10", "15", "15", "17"]);
    assert_eq!((shop.writes().await, position(&shop).await), (vec![1; 17], vec!["17".to_owned()]));
}

#[both_shops]
async fn f31_a_source_that_shifts_between_pages_hides_nothing_from_a_cursor_by_key<DB: Backend>(
    shop: Shop<DB>,
) {
    let (source, seen) = (Source::of(invoices(30)), Seen::default());
    let refrain = open(&shop.store, [paging(&shop, &source, &seen, Stumble::After(1))]).await;
    ran(&refrain, "sync#monday").await;
    // Counted by an offset of ten, the next page would begin with the sixteenth.
    source.shows(invoices(33).into_iter().filter(|one| one.id > 5).collect());
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 2");
    assert_eq!(shop.writes().await, vec![1; 33]);
}

type Answers = Vec<String>;

/// Does one page in a run of its own, with this fault. Returns the answers of the ledger, and the position of the
/// checkpoint.
async fn one_page<DB: Backend>(shop: &Shop<DB>, rules: Rules<DB>, how: How) -> (Answers, Vec<String>) {
    let seen = Seen::default();
    let answers = seen.clone();
    let story = work(shop, "sync", move |run, pool| {
        let answers = answers.clone();
        async move {
            let units = rules(run.fence(&pool).await?.units(Per::Ever, key_of));
            let mut pages = units.cursor("billing").await?;
            let went = advance(&mut pages, how, &pool).await;
            answers.push(went.map_or_else(|error| error.to_string(), |()| "done".to_owned()));
            let again = pages
                .next(|_| async { Ok::<_, LedgerError>(FetchedPage { units: Vec::new(), next: None }) })
                .await;
            answers.push(match again {
                Ok(_) => "goes on".to_owned(),
                Err(LedgerError::NotDone { name }) => format!("{name} is not done"),
                Err(error) => error.to_string(),
            });
            Ok(())
        }
    });
    let refrain = open(&shop.store, [story]).await;
    ran(&refrain, "sync#monday").await;
    (seen.all(), position(shop).await)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Dropped,
    NotApplied,
    BatchDropped,
    OneFailed,
    OneFailedAndForgotten,
    TwiceInIt,
}

async fn advance<DB: Backend>(
    pages: &mut Cursor<'_, DB, Invoice>,
    how: How,
    pool: &sqlx::Pool<DB>,
) -> Result<(), LedgerError> {
    let list = match how {
        How::OneFailed | How::OneFailedAndForgotten => vec![invoice(1, 10), invoice(2, -1), invoice(3, 30)],
        How::TwiceInIt => vec![invoice(1, 10), invoice(2, 20), invoice(2, 21)],
        _ => invoices(3),
    };
    let page = FetchedPage { units: list, next: Some("3".to_owned()) };
    let page = pages.next(|_| async { Ok::<_, LedgerError>(page) }).await?.unwrap();
    match how {
        How::Dropped => return Ok(()),
        How::NotApplied => {}
        How::BatchDropped => {
            let mut batches = page.apply();
            let mut batch = batches.next().await?.unwrap();
            write(&mut batch).await.unwrap();
        }
        How::OneFailed | How::TwiceInIt => write_all(page.apply()).await?,
        How::OneFailedAndForgotten => {
            write_all(page.apply()).await?;
            let forgotten = if DB::IS_SQLITE {
                "update refrain_units set input = null"
            } else {
                "update refrain.units set input = null"
            };
            DB::execute(pool, forgotten).await.unwrap();
        }
    }
    page.done().await
}

#[both_shops]
async fn m12_a_dropped_page_does_not_advance_the_cursor<DB: Backend>(shop: Shop<DB>) {
    let (answers, position) = one_page(&shop, |units| units, How::Dropped).await;
    assert_eq!(answers, ["done", "billing is not done"]);
    assert!(position.is_empty());
}

#[both_shops]
async fn f32_a_page_whose_units_were_not_applied_is_not_passed<DB: Backend>(shop: Shop<DB>) {
    let (answers, position) = one_page(&shop, |units| units, How::NotApplied).await;
    assert!(answers[0].starts_with("3 of the units before this position are neither"), "{}", answers[0]);
    assert!(answers[1].ends_with("is not done") && position.is_empty(), "{answers:?}");
}

#[both_shops]
async fn f32_a_page_whose_batch_was_dropped_is_not_passed<DB: Backend>(shop: Shop<DB>) {
    let (answers, position) = one_page(&shop, |units| units, How::BatchDropped).await;
    assert!(answers[0].starts_with("3 of the units before this position are neither"), "{}", answers[0]);
    assert!(answers[1].ends_with("is not done") && position.is_empty(), "{answers:?}");
    assert!(shop.writes().await.is_empty());
}

#[both_shops]
async fn i8_a_cursor_passes_a_failed_unit_whose_input_is_stored<DB: Backend>(shop: Shop<DB>) {
    let (answers, position) = one_page(&shop, |units| units, How::OneFailed).await;
    assert_eq!((answers, position), (vec!["done".into(), "goes on".into()], vec!["3".to_owned()]));
}

#[both_shops]
async fn i8_a_cursor_does_not_pass_a_failed_unit_without_stored_input<DB: Backend>(shop: Shop<DB>) {
    let (answers, position) = one_page(&shop, |units| units, How::OneFailedAndForgotten).await;
    assert!(answers[0].starts_with("1 of the units") && answers[0].contains("`invoice:2`"), "{}", answers[0]);
    assert!(position.is_empty());
}

#[both_shops]
async fn i8_a_cursor_with_wait_does_not_pass_a_failed_unit<DB: Backend>(shop: Shop<DB>) {
    let (answers, position) = one_page(&shop, Units::waits_for_failed, How::OneFailed).await;
    assert!(answers[0].starts_with("1 of the units") && answers[0].contains("`invoice:2`"), "{}", answers[0]);
    assert!(position.is_empty());
}

#[both_shops]
async fn i8_a_page_with_one_key_twice_is_passed<DB: Backend>(shop: Shop<DB>) {
    let (answers, position) = one_page(&shop, |units| units, How::TwiceInIt).await;
    assert_eq!((answers, position), (vec!["done".into(), "goes on".into()], vec!["3".to_owned()]));
}

/// A run that waits at the gate after each page that it has applied.
fn held<DB: Backend>(shop: &Shop<DB>, source: &Source, gate: &Gate, seen: &Seen) -> Definition {
    let (source, gate, seen) = (source.clone(), gate.clone(), seen.clone());
    work(shop, "sync", move |run, pool| {
        let (source, gate, seen) = (source.clone(), gate.clone(), seen.clone());
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let mut pages = units.cursor("billing").await?;
            while let Some(page) =
                pages.next(|at| ready(Ok::<_, LedgerError>(read(&source, at.as_deref())))).await?
            {
                write_all(page.apply()).await?;
                gate.pass().await;
                let next = page.units().last().unwrap().id;
                page.done().await?;
                seen.push(format!("{} {next}", run.key()));
            }
            Ok(())
        }
    })
}

async fn both_held(refrain: &Refrain, gate: &Gate) -> Vec<String> {
    let runs = ["sync#one", "sync#two"].map(|run| {
        let refrain = refrain.clone();
        tokio::spawn(async move { ran(&refrain, run).await })
    });
    gate.have_begun(2).await;
    gate.let_through(1_000);
    let mut states = Vec::new();
    for run in runs {
        states.push(run.await.unwrap());
    }
    states
}

#[both_shops]
async fn i9_a_cursor_read_twice_in_one_attempt_is_moved_once<DB: Backend>(shop: Shop<DB>) {
    let twice = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let (mut one, mut other) = (units.cursor("billing").await?, units.cursor("billing").await?);
        for (pages, id) in [(&mut one, 1), (&mut other, 2)] {
            let next = Some(id.to_string());
            let fetched = FetchedPage { units: vec![invoice(id, 1)], next };
            let page = pages.next(|_| ready(Ok::<_, LedgerError>(fetched))).await?.unwrap();
            write_all(page.apply()).await?;
            page.done().await?;
        }
        Ok(())
    });
    let refrain = open(&shop.store, [twice]).await;
    assert_eq!(ran(&refrain, "sync#one").await, "one due 2");
    let text =
        refrain.attempts(&shown(&refrain, "sync#one").await).await.unwrap()[0].message.clone().unwrap();
    assert!(text.contains("is not where it was read"), "{text}");
    assert_eq!(position(&shop).await, ["1"]);
}

#[both_shops]
async fn i8_the_last_page_is_not_done_with_an_unsettled_unit<DB: Backend>(shop: Shop<DB>) {
    let dropping = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let mut pages = units.cursor("billing").await?;
        let fetched = FetchedPage { units: vec![invoice(1, 1)], next: None };
        let page = pages.next(|_| ready(Ok::<_, LedgerError>(fetched))).await?.unwrap();
        page.done().await
    });
    let refrain = open(&shop.store, [dropping]).await;
    assert_eq!(ran(&refrain, "sync#one").await, "one due 2");
    let text =
        refrain.attempts(&shown(&refrain, "sync#one").await).await.unwrap()[0].message.clone().unwrap();
    assert!(text.starts_with("1 of the units"), "{text}");
}

#[both_shops]
async fn after_the_last_page_the_source_is_not_read_again<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let answers = seen.clone();
    let reading = work(&shop, "sync", move |run, pool| {
        let answers = answers.clone();
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let mut pages = units.cursor("billing").await?;
            for _ in 0..2 {
                let fetched = FetchedPage { units: vec![invoice(1, 1)], next: None };
                let Some(page) = pages.next(|_| ready(Ok::<_, LedgerError>(fetched))).await? else { break };
                write_all(page.apply()).await?;
                page.done().await?;
                answers.push("a page");
            }
            Ok(())
        }
    });
    ran(&open(&shop.store, [reading]).await, "sync#one").await;
    assert_eq!(seen.all(), ["a page"]);
}

#[both_shops]
async fn a_run_without_a_window_has_no_cursor_of_its_window<DB: Backend>(shop: Shop<DB>) {
    let windowed = work(&shop, "sync", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        units.cursor_per(Per::Window, "billing").await.map(|_| ())
    });
    let refrain = open(&shop.store, [windowed]).await;
    assert_eq!(ran(&refrain, "sync#one").await, "one due 2");
    let text =
        refrain.attempts(&shown(&refrain, "sync#one").await).await.unwrap()[0].message.clone().unwrap();
    assert!(text.contains("window"), "{text}");
}

#[both_shops]
async fn i9_one_of_two_runs_moves_a_cursor_and_the_other_gets_an_error<DB: Backend>(shop: Shop<DB>) {
    let (source, gate, seen) = (Source::of(invoices(30)), Gate::closed(), Seen::default());
    let refrain = open(&shop.store, [held(&shop, &source, &gate, &seen)]).await;
    both_held(&refrain, &gate).await;
    let mut again = 0;
    for run in ["sync#one", "sync#two"] {
        while !ran(&refrain, run).await.contains("done") {}
        let messages = refrain.attempts(&shown(&refrain, run).await).await.unwrap();
        let moved = messages.iter().filter_map(|one| one.message.as_deref());
        again += moved.filter(|text| text.contains("is not where it was read")).count();
        assert_eq!(history(&refrain, run).await.len(), messages.len());
    }
    assert!(again >= 1, "one of them got the error");
    let mut passed: Vec<i64> =
        seen.all().iter().map(|line| line.split(' ').next_back().unwrap().parse().unwrap()).collect();
    passed.sort_unstable();
    assert_eq!(passed, [10, 20, 30], "each page by one of them");
    assert_eq!((shop.writes().await, position(&shop).await), (vec![1; 30], vec!["30".to_owned()]));
}
