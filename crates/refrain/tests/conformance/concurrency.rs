//! How many runs execute at once, and in which order.

use refrain_harness::every_store;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use refrain::{CatchUp, WhileRunning};
use tokio::task::JoinSet;

use refrain_harness::TestDatabase;
use refrain_harness::work::{Gate, SETTINGS, Seen, daily, is_sound, job, june, open, open_with};

/// How many runs execute at once now, and the most so far.
#[derive(Default)]
struct Inside {
    present: AtomicUsize,
    most: AtomicUsize,
}

impl Inside {
    async fn stay(&self) {
        let present = self.present.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(present, Ordering::SeqCst);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.present.fetch_sub(1, Ordering::SeqCst);
    }
}

#[every_store]
async fn h5_no_more_runs_execute_at_once_than_the_job_allows(database: TestDatabase) {
    let inside = Arc::new(Inside::default());
    let mut engines = Vec::new();
    for _ in 0..3 {
        let inside = inside.clone();
        let work = job("export", move |_| {
            let inside = inside.clone();
            async move {
                inside.stay().await;
                Ok(())
            }
        });
        engines.push(open(&database, [work.concurrency(3)]).await);
    }
    let keys = (0..120).map(|number| (format!("{number:03}"), ()));
    engines[0].enqueue_many("export", keys).await.unwrap();
    let mut tasks = JoinSet::new();
    for engine in engines.clone() {
        tasks.spawn(async move { engine.tick().await.unwrap().ended });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u64>(), 120);
    assert!((1..=3).contains(&inside.most.load(Ordering::SeqCst)), "{}", inside.most.load(Ordering::SeqCst));
    assert_eq!(database.store_numbers("select count(*) from refrain_slots").await, [0]);
    is_sound(&engines[0]).await;
}

#[every_store]
async fn h5_all_slots_are_used_and_each_is_taken_by_one_run(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("export").concurrency(3)]).await;
    let keys = (0..9).map(|number| (number.to_string(), ()));
    refrain.enqueue_many("export", keys).await.unwrap();
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick().await.unwrap() }
    });
    gate.have_begun(3).await;
    let slots = "select slot from refrain_slots as slots join refrain_queue as queue on queue.run = slots.run
            where queue.lease is not null order by slot";
    let slots = slots.replace("slot from", "cast(slot as bigint) from");
    assert_eq!(database.store_numbers(&slots).await, [1, 2, 3]);
    gate.let_through(1);
    gate.have_begun(1).await;
    assert_eq!(gate.waiting(), 0, "one run ended, and another began");
    assert_eq!(database.store_numbers(&slots).await, [1, 2, 3]);
    gate.let_through(8);
    assert_eq!(running.await.unwrap().ended, 9);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_worker_begins_no_more_runs_than_it_has_slots(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open_with(&database, SETTINGS.slots(2), [gate.job("export")]).await;
    let keys = (0..5).map(|number| (number.to_string(), ()));
    refrain.enqueue_many("export", keys).await.unwrap();
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick().await.unwrap() }
    });
    for _ in 0..2 {
        gate.have_begun(2).await;
        assert_eq!(gate.waiting(), 0);
        gate.let_through(2);
    }
    gate.let_through(1);
    assert_eq!(running.await.unwrap().ended, 5);
}

#[every_store]
async fn windows_on_time_run_before_missed_ones(database: TestDatabase) {
    let seen = Seen::default();
    let work =
        seen.job("report").timetable(daily()).catch_up(CatchUp::All).while_running(WhileRunning::Allow);
    let refrain = open_with(&database, SETTINGS.slots(1), [work, seen.job("welcome")]).await;
    refrain.open_due(june("06T00:01")).await.unwrap();
    refrain.enqueue("welcome", "42", &()).await.unwrap();
    refrain.tick_at(june("06T00:01")).await.unwrap();
    let mut order = seen.all();
    order[..2].sort();
    assert_eq!(order, ["06-05", "42", "06-01", "06-02", "06-03", "06-04"], "the live ones in any order");
}

#[every_store]
async fn jobs_of_one_priority_take_turns(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open_with(&database, SETTINGS.slots(2), [seen.job("large"), seen.job("small")]).await;
    let many = (0..40).map(|number| (format!("large-{number:02}"), ()));
    refrain.enqueue_many("large", many).await.unwrap();
    refrain.enqueue("small", "small", &()).await.unwrap();
    refrain.tick().await.unwrap();
    let place = seen.all().iter().position(|key| key == "small").unwrap();
    assert!(place < 10, "it stood behind {place} others");
}
