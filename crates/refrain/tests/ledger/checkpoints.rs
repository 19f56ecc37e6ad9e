//! Operators move checkpoints: only from the position that was shown, and never under an attempt
//! that uses it.

use refrain_harness::both_shops;
use std::future::ready;
use std::time::Duration;

use refrain::admin::CheckpointOf;
use refrain::core::Scope;
use refrain::error::CheckpointError;
use refrain::ledger::{FetchedPage, LedgerError, Per};
use refrain::{Definition, Error, Refrain};

use crate::fences::take_over;
use crate::intents::opened;
use crate::shop::{Backend, Invoice, Shop, Source, invoices, key_of, ran, work, write_all};
use refrain_harness::work::{Gate, Seen, daily, june};

/// Three invoices per page; the first attempt of `monday` waits at the gate after reading a page.
fn paging<DB: Backend>(shop: &Shop<DB>, source: &Source, gate: &Gate, seen: &Seen) -> Definition {
    let (source, gate, seen) = (source.clone(), gate.clone(), seen.clone());
    work(shop, "sync", move |run, pool| {
        let (source, gate, seen) = (source.clone(), gate.clone(), seen.clone());
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let mut pages = units.cursor("billing").await?;
            while let Some(page) =
                pages.next(|at| ready(Ok::<_, LedgerError>(read(&source, &seen, at.as_deref())))).await?
            {
                if run.key() == "monday" && run.attempt() == 1 {
                    gate.pass().await;
                }
                write_all(page.apply()).await?;
                if let Err(error) = page.done().await {
                    seen.push(error.to_string());
                    return Err(error);
                }
            }
            Ok(())
        }
    })
}

fn read(source: &Source, seen: &Seen, at: Option<&str>) -> FetchedPage<Invoice> {
    seen.push(format!("from {}", at.unwrap_or("-")));
    let after: i64 = at.map_or(0, |at| at.parse().unwrap());
    let units: Vec<Invoice> = source.all().into_iter().filter(|one| one.id > after).take(3).collect();
    let next = units.last().map(|last| last.id.to_string());
    FetchedPage { units, next }
}

/// `sync/acme billing 6 by monday 1` of each checkpoint.
async fn shown(refrain: &Refrain) -> Vec<String> {
    let checkpoints = refrain.checkpoints(None).await.unwrap();
    let line = |one: &refrain::admin::CheckpointRecord| {
        let by =
            one.run.as_ref().map_or("a person".to_owned(), |run| format!("{run} {}", one.attempt.unwrap()));
        format!("{}/{} {} {} by {by}", one.job, one.scope, one.name, one.position)
    };
    checkpoints.iter().map(line).collect()
}

/// The checkpoint of a job without scopes and windows.
fn of<'a>(job: &'a str, name: &'a str) -> CheckpointOf<'a> {
    CheckpointOf::new(job, name)
}

async fn set(refrain: &Refrain, position: &str, seen: Option<&str>) -> String {
    let set = refrain.set_checkpoint(of("sync", "billing"), position, seen).await;
    set.map_or_else(|error| error.to_string(), |_| "set".to_owned())
}

#[both_shops]
async fn the_next_run_reads_from_a_checkpoint_that_was_moved_back<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(invoices(6)), Seen::default());
    let refrain = opened(&shop, [paging(&shop, &source, &Gate::closed(), &seen)]).await;
    ran(&refrain, "sync#tuesday").await;
    assert_eq!(shown(&refrain).await, ["sync/ billing 6 by tuesday 1"]);
    assert_eq!(refrain.checkpoints(Some("sync")).await.unwrap().len(), 1);
    assert_eq!(refrain.checkpoints(Some("other")).await.unwrap(), []);

    assert_eq!(set(&refrain, "3", Some("6")).await, "set");
    assert_eq!(shown(&refrain).await, ["sync/ billing 3 by a person"]);
    assert_eq!(set(&refrain, "3", Some("6")).await, "set", "the same command again changes nothing");
    ran(&refrain, "sync#friday").await;
    assert_eq!(seen.all(), ["from -", "from 3", "from 6", "from 3", "from 6"]);
    assert_eq!(shop.writes().await, [1; 6], "read again, and written once");
    assert_eq!(shown(&refrain).await, ["sync/ billing 6 by friday 1"]);
}

#[both_shops]
async fn a_checkpoint_is_moved_only_from_the_position_that_was_shown<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(invoices(6)), Seen::default());
    let refrain = opened(&shop, [paging(&shop, &source, &Gate::closed(), &seen)]).await;
    ran(&refrain, "sync#tuesday").await;
    for seen in [Some("3"), None] {
        let refused = set(&refrain, "1", seen).await;
        assert!(refused.contains("is not where it was seen: it is at `6`"), "{refused}");
    }
    let refused = refrain.set_checkpoint(of("sync", "biling"), "1", Some("6")).await.unwrap_err();
    assert!(refused.to_string().contains("there are: billing"), "{refused}");
    let refused = refrain.set_checkpoint(of("sink", "billing"), "1", None).await.unwrap_err();
    assert!(matches!(refused, Error::UnknownJob { .. }), "{refused}");
    for unfit in ["", "a\0b"] {
        let refused = refrain.set_checkpoint(of("sync", "billing"), unfit, Some("6")).await.unwrap_err();
        assert!(matches!(refused, Error::Checkpoint(CheckpointError::Unfit)), "{refused}");
    }
    assert_eq!(shown(&refrain).await, ["sync/ billing 6 by tuesday 1"]);
}

#[both_shops]
async fn one_of_two_operators_moves_a_checkpoint<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(invoices(6)), Seen::default());
    let refrain = opened(&shop, [paging(&shop, &source, &Gate::closed(), &seen)]).await;
    ran(&refrain, "sync#tuesday").await;
    assert_eq!(set(&refrain, "3", Some("6")).await, "set");
    let refused = set(&refrain, "1", Some("6")).await;
    assert!(refused.contains("is not where it was seen: it is at `3`"), "{refused}");
    assert_eq!(shown(&refrain).await, ["sync/ billing 3 by a person"]);
}

#[both_shops]
async fn a_new_checkpoint_is_created_beside_the_units_of_its_job<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(invoices(6)), Seen::default());
    let refrain = opened(&shop, [paging(&shop, &source, &Gate::closed(), &seen)]).await;
    let refused = set(&refrain, "3", None).await;
    assert!(refused.contains("the name is ambiguous"), "two databases, and no unit in either: {refused}");
    source.shows(Vec::new());
    ran(&refrain, "sync#tuesday").await;
    assert_eq!(set(&refrain, "3", None).await, "set");
    source.shows(invoices(6));
    ran(&refrain, "sync#friday").await;
    assert_eq!(shop.numbers("select id from invoices order by id").await, [4, 5, 6]);
}

#[both_shops]
async fn no_checkpoint_is_moved_under_a_run_that_uses_it<DB: Backend>(shop: Shop<DB>) {
    let (source, gate, seen) = (Source::of(invoices(6)), Gate::closed(), Seen::default());
    let refrain = opened(&shop, [paging(&shop, &source, &gate, &seen)]).await;
    ran(&refrain, "sync#tuesday").await;
    source.shows(invoices(9));
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { ran(&refrain, "sync#monday").await }
    });
    gate.have_begun(1).await;
    let refused = set(&refrain, "3", Some("6")).await;
    assert!(refused.starts_with("sync#monday is running"), "{refused}");
    assert!(refused.contains("refrain cancel sync#monday"), "{refused}");
    refrain.pause("sync").await.unwrap();
    assert_eq!(set(&refrain, "3", Some("6")).await, refused, "a pause ends nothing");
    refrain.resume("sync").await.unwrap();
    gate.let_through(1);
    running.await.unwrap();

    refrain.enqueue("sync", "friday", &()).await.unwrap();
    let refused = set(&refrain, "3", Some("9")).await;
    assert!(refused.starts_with("sync#friday is queued"), "{refused}");
    assert!(refused.contains("refrain pause sync"), "{refused}");
    refrain.pause("sync").await.unwrap();
    assert_eq!(set(&refrain, "3", Some("9")).await, "set", "nothing of it can begin");
}

#[both_shops]
async fn an_attempt_that_read_the_old_position_cannot_advance_it<DB: Backend>(shop: Shop<DB>) {
    let (source, gate, seen) = (Source::of(invoices(6)), Gate::closed(), Seen::default());
    let refrain = opened(&shop, [paging(&shop, &source, &gate, &seen)]).await;
    ran(&refrain, "sync#tuesday").await;
    source.shows(invoices(9));
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { ran(&refrain, "sync#monday").await }
    });
    gate.have_begun(1).await;
    // The store considers the attempt ended before it begins; the attempt continues all the same.
    take_over(&shop.store, "monday").await;
    refrain.cancel("sync#monday").await.unwrap();
    assert_eq!(set(&refrain, "3", Some("6")).await, "set");
    gate.let_through(1);
    running.await.unwrap();
    let last = seen.all().pop().unwrap();
    assert!(last.contains("`billing` is not where it was read"), "{last}");
    assert_eq!(shown(&refrain).await, ["sync/ billing 3 by a person"]);
    ran(&refrain, "sync#friday").await;
    assert_eq!(shop.writes().await, [1; 9]);
}

#[both_shops]
async fn a_watermark_can_be_moved_back_by_a_duration_and_a_cursor_cannot<DB: Backend>(shop: Shop<DB>) {
    let (source, seen) = (Source::of(invoices(3)), Seen::default());
    let marking = work(&shop, "mark", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let mut mark = units.watermark("updated", Duration::ZERO, |_: &Invoice| june("09T10:00")).await?;
        let page = mark.page(invoices(1))?;
        write_all(page.apply()).await?;
        page.done().await?;
        mark.advance().await.map(|_| ())
    });
    let refrain = opened(&shop, [marking, paging(&shop, &source, &Gate::closed(), &seen)]).await;
    ran(&refrain, "mark#monday").await;
    ran(&refrain, "sync#tuesday").await;
    let (mark, hour) = (june("09T10:00").to_string(), Duration::from_hours(1));
    let at = refrain.rewind_checkpoint(of("mark", "updated"), hour, Some(&mark)).await.unwrap();
    assert_eq!((at.was, at.position), (Some(mark), june("09T09:00").to_string()));
    assert_eq!(shown(&refrain).await[0], "mark/ updated 2020-06-09T09:00:00Z by a person");
    let refused = refrain.rewind_checkpoint(of("sync", "billing"), hour, Some("3")).await.unwrap_err();
    assert!(refused.to_string().contains("which is not a time"), "{refused}");
}

#[both_shops]
async fn a_run_of_another_scope_does_not_block_moving_a_checkpoint<DB: Backend>(shop: Shop<DB>) {
    let gate = Gate::closed();
    let held = gate.clone();
    let scoped = work(&shop, "sync", move |run, pool| {
        let gate = held.clone();
        async move {
            if run.scope().as_str() == "beta" {
                gate.pass().await;
            }
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            let mut pages = units.cursor("billing").await?;
            let fetched = FetchedPage { units: invoices(1), next: Some("1".to_owned()) };
            if let Some(page) = pages.next(|_| async { Ok::<_, LedgerError>(fetched) }).await? {
                write_all(page.apply()).await?;
                page.done().await?;
            }
            Ok(())
        }
    });
    let list = || ["acme", "beta"].iter().map(|scope| Scope::parse(scope).unwrap()).collect();
    let scoped = scoped.timetable(daily()).scopes(move |_| async move { Ok(list()) });
    let refrain = opened(&shop, [scoped]).await;
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick_at(june("02T00:01")).await.unwrap() }
    });
    gate.have_begun(1).await;
    refrain_harness::eventually::eventually(
        "acme is done",
        refrain_harness::eventually::DEADLINE,
        async || shown(&refrain).await == ["sync/acme billing 1 by 2020-06-01T00:00:00Z/acme 1"],
    )
    .await;
    refrain_harness::eventually::eventually(
        "and has ended",
        refrain_harness::eventually::DEADLINE,
        async || refrain.show("sync@2020-06-01/acme").await.unwrap().unwrap().standing.is_done(),
    )
    .await;
    let set = |scope: &'static str, position: &'static str, seen: Option<&'static str>| {
        refrain.set_checkpoint(of("sync", "billing").scope(scope), position, seen)
    };
    set("acme", "0", Some("1")).await.unwrap();
    let refused = set("beta", "0", None).await.unwrap_err().to_string();
    assert!(refused.starts_with("sync@2020-06-01/beta is running"), "{refused}");
    gate.let_through(1);
    running.await.unwrap();
}
