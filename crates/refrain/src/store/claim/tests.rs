//! Verbs of the store in sequences that the engine calls only by chance: a result that comes too late, from another
//! attempt, or about a lane that another run holds, changes nothing.

use std::time::Duration;

use refrain_core::person::Verb;
use refrain_core::retry::Retry;
use refrain_core::state::{FailureReason, RunEvent};
use refrain_core::{JobName, Key, RunKey, Scope, WhileRunning, Zone, window_name};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use super::*;
use crate::database::Address;
use crate::store::audit::Decision;
use crate::store::cancel::{Cancelled, cancel};
use crate::store::enqueue::{Offer, enqueue};
use crate::store::finish::{End, Ending, Landed, finish};
use crate::store::jobs::{Registered, register};
use crate::store::open::{NewRun, open_one};
use crate::store::queue_line::Priority;
use crate::store::reopen::{Reopened, Reopening, reopen};
use crate::store::take_over::take_over;
use crate::store::vouch::{Vouching, vouch};
use crate::store::workers::WorkerTask;
use crate::store::{Reality, StoreError, begun_commands, delayed, workers};

const LEASE: Duration = Duration::from_hours(1);

/// A store with one job, and how many leases were given out.
struct World {
    store: Store,
    job: JobNumber,
    leases: i64,
    directory: tempfile::TempDir,
}

impl World {
    async fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
        let address = Address::parse(&address).unwrap();
        let project = "shop".parse().unwrap();
        let store = Store::open(&address, &project, 1, LEASE, Reality::Real).await.unwrap();
        let name: JobName = "sync".parse().unwrap();
        let Registered::As(job) = register(&store, &name, &name, &[]).await.unwrap() else { panic!() };
        World { store, job: job.id, leases: 0, directory }
    }

    /// Opens the window of a day, in the lane of its job.
    async fn window(&self, day: u32) {
        let start = window_name::parse(&format!("2026-06-{day:02}"), &Zone::utc()).unwrap();
        let end = window_name::parse(&format!("2026-06-{:02}", day + 1), &Zone::utc()).unwrap();
        let new_run = NewRun {
            key: RunKey::windowed(start, &Scope::default()),
            start: start.timestamp(),
            end: end.timestamp(),
            priority: Priority::Live,
            skipped: None,
        };
        assert!(open_one(&self.store, self.job, WhileRunning::Queue, &new_run, "test").await.unwrap());
    }

    /// Executes a statement in the file, as another program would.
    async fn execute(&self, text: &str) {
        let file = SqliteConnectOptions::new().filename(self.directory.path().join("refrain.db"));
        let mut behind = SqliteConnection::connect_with(&file).await.unwrap();
        behind.execute(sqlx::AssertSqlSafe(text.to_owned())).await.unwrap();
        behind.close().await.unwrap();
    }

    async fn worker(&self) -> i64 {
        workers::register(&self.store, "elsewhere/1/1/1", LEASE, WorkerTask::Attempts).await.unwrap()
    }

    fn request(&mut self, worker: i64) -> QueueClaim {
        self.leases += 1;
        let line = Line::of(Priority::Live, self.job);
        let (lease, limit) = (self.leases, 10);
        QueueClaim { worker, lease, line, limit, after: 0, concurrency: None, run: None, chance: 0 }
    }

    /// The runs that a worker claims from the live line, with what it needs to hold them.
    async fn claimed(&mut self, request: QueueClaim) -> Vec<ClaimedAttempt> {
        let claimed = claim(&self.store, request).await.unwrap();
        let held = |one: Claimed| ClaimedAttempt {
            run: one.run,
            job: self.job,
            line: request.line,
            lease: request.lease,
            attempt: one.attempt,
            lane: one.lane.then(|| one.scope().to_owned()),
            slot: request.concurrency.is_some(),
        };
        claimed.into_iter().map(held).collect()
    }

    async fn ends(&self, worker: i64, held: &ClaimedAttempt, end: End) -> Landed {
        let (held, reason) = (held.clone(), None);
        let ending = Ending { held, started_at: None, end, units: None, clears_mark: true, reason };
        finish(&self.store, worker, &[ending], &[]).await.unwrap()[0]
    }

    async fn outcome(&self, run: i64) -> Option<String> {
        self.look(run).await.outcome
    }

    async fn look(&self, run: i64) -> crate::store::run_row::RunLook {
        let mut reading = self.store.database.read().await.unwrap();
        reading.fetch_optional(catalog::RUN_SHOW_END.bind(run)).await.unwrap().unwrap()
    }

    async fn reopens(&self, run: i64, after: u64) -> Reopened {
        let decision = Decision::new(None, Verb::Again, "sync");
        let (priority, in_lane, decision) = (Priority::Live, true, &decision);
        reopen(&self.store, &Reopening { run, after, priority, in_lane, decision }).await.unwrap()
    }

    async fn settles(&self, run: i64, after: u64) -> bool {
        let decision = Decision::new(None, Verb::Done, "sync");
        vouch(&self.store, &Vouching { run, after, version: None, decision: &decision }).await.unwrap()
    }
}

fn offer(key: &str) -> Offer {
    Offer { key: RunKey::queued(Key::parse(key).unwrap()), payload: None }
}

fn done() -> End {
    End::Closed { event: RunEvent::Succeeded, version: None, message: None }
}

fn again(wait: Duration) -> End {
    let attempts = Attempts { number: 2, spent: 1, suspicion: 0 };
    End::Again { event: RunEvent::Errored, attempts, wait: Some(wait), message: None }
}

#[tokio::test]
async fn a_living_worker_keeps_its_runs() {
    let mut world = World::new().await;
    world.window(1).await;
    let worker = world.worker().await;
    let request = world.request(worker);
    let held = world.claimed(request).await;
    assert_eq!(take_over(&world.store, worker, false, &|_| Retry::default()).await.unwrap(), None);
    assert!(is_held(&world.store, &held[0]).await.unwrap());
    assert_eq!(world.ends(worker, &held[0], done()).await, Landed::Yes);
}

#[tokio::test]
async fn a_cancelled_run_is_not_tried_again() {
    let mut world = World::new().await;
    world.window(1).await;
    let worker = world.worker().await;
    let request = world.request(worker);
    let held = world.claimed(request).await;
    let decision = Decision::new(None, Verb::Cancel, "sync");
    assert_eq!(cancel(&world.store, held[0].run, &decision).await.unwrap(), Some(Cancelled::Asked));
    assert_eq!(world.ends(worker, &held[0], again(LEASE)).await, Landed::Yes);
    assert_eq!(world.outcome(held[0].run).await.as_deref(), Some("cancelled"));
    assert_eq!(delayed::next(&world.store).await.unwrap(), None);
}

#[tokio::test]
async fn a_run_given_back_late_frees_no_slot_of_its_present_worker() {
    let mut world = World::new().await;
    let limited = |request: QueueClaim| QueueClaim { concurrency: Some(1), limit: 1, ..request };
    let offers = ["a", "b"].map(offer);
    let line = Line::of(Priority::Live, world.job);
    enqueue(&world.store, world.job, line, &offers, "test").await.unwrap();
    let (first, second) = (world.worker().await, world.worker().await);
    let request = limited(world.request(first));
    let early = world.claimed(request).await;
    world.ends(first, &early[0], End::GivenBack).await;
    let request = limited(world.request(second));
    let now = world.claimed(request).await;
    assert_eq!(now[0].run, early[0].run);
    world.ends(first, &early[0], End::GivenBack).await;
    let request = limited(world.request(first));
    assert!(world.claimed(request).await.is_empty(), "the only slot is taken");
    let one = QueueClaim { run: Some(now[0].run + 1), ..limited(world.request(first)) };
    assert!(world.claimed(one).await.is_empty(), "also for one that is asked for by its number");
}

#[tokio::test]
async fn a_retried_run_waits_for_a_lane_that_another_window_holds() {
    let mut world = World::new().await;
    for day in 1..=2 {
        world.window(day).await;
    }
    let worker = world.worker().await;
    let request = world.request(worker);
    let first = world.claimed(request).await;
    assert_eq!(first.len(), 1, "the second waits for the lane");
    world.ends(worker, &first[0], again(LEASE)).await;
    let request = world.request(worker);
    let second = world.claimed(request).await;
    assert_eq!(second.len(), 1, "the first has left it");
    assert!(delayed::pull(&world.store, first[0].run).await.unwrap());
    let request = world.request(worker);
    assert!(world.claimed(request).await.is_empty(), "a person who waits does not pass the lane");
    world.ends(worker, &second[0], done()).await;
    let request = world.request(worker);
    let first = world.claimed(request).await;
    assert_eq!(world.reopens(second[0].run, 1).await, Reopened::Queued);
    let request = world.request(worker);
    assert!(world.claimed(request).await.is_empty(), "nor does one who wants it done again");
    world.ends(worker, &first[0], done()).await;
    let request = world.request(worker);
    assert_eq!(world.claimed(request).await[0].run, second[0].run);
}

#[tokio::test]
async fn the_oldest_of_several_due_retries_enters_the_lane() {
    let mut world = World::new().await;
    let worker = world.worker().await;
    let mut runs = Vec::new();
    for (day, wait) in [(1, 2), (2, 1)] {
        world.window(day).await;
        let request = world.request(worker);
        let held = world.claimed(request).await;
        world.ends(worker, &held[0], again(Duration::from_hours(wait))).await;
        runs.push(held[0].run);
    }
    world.execute("update refrain_delayed set wake_at = wake_at - 86400000000").await;
    assert_eq!(delayed::wake(&world.store, 10).await.unwrap(), 2);
    let request = world.request(worker);
    let held = world.claimed(request).await;
    assert_eq!(held.iter().map(|one| one.run).collect::<Vec<_>>(), runs[..1], "although its time came later");
}

#[tokio::test]
async fn an_operator_settles_only_the_attempt_that_was_shown() {
    let mut world = World::new().await;
    world.window(1).await;
    let worker = world.worker().await;
    let request = world.request(worker);
    let held = world.claimed(request).await[0].clone();
    assert!(!world.settles(held.run, 1).await, "it is running");
    assert!(begun_commands::mark(&world.store, &held).await.unwrap());
    let end = End::Closed { event: RunEvent::Failed, version: None, message: None };
    let (run, reason) = (held.run, Some(FailureReason::Held));
    let ending = Ending { held, started_at: None, end, units: None, clears_mark: false, reason };
    finish(&world.store, worker, &[ending], &[]).await.unwrap();
    assert!(!world.settles(run, 2).await, "another attempt was seen");
    assert!(world.settles(run, 1).await);
    assert_eq!((world.outcome(run).await.as_deref(), world.look(run).await.attempt), (Some("done"), 2));
    assert!(!world.settles(run, 2).await, "it is done");
}

#[tokio::test]
async fn a_worker_registers_only_if_its_release_knows_both_schemas() {
    for table in ["refrain_migrations", "refrain_ledger_migrations"] {
        let world = World::new().await;
        world.worker().await;
        let later =
            format!("insert into {table} (number, name, applied_at, oldest) values (99, 'later', 0, 99)");
        world.execute(&later).await;
        let refused = workers::register(&world.store, "elsewhere/1/1/1", LEASE, WorkerTask::Attempts)
            .await
            .unwrap_err();
        assert!(matches!(refused, StoreError::TooNew { found: 99, .. }), "{table}: {refused}");
    }
}

#[tokio::test]
async fn no_suspect_pays_if_its_worker_held_several() {
    let mut world = World::new().await;
    let offers = ["a", "b"].map(offer);
    let live = Line::of(Priority::Live, world.job);
    enqueue(&world.store, world.job, live, &offers, "test").await.unwrap();
    for (priority, suspicion) in [(Priority::Live, 0), (Priority::Suspect, 1), (Priority::Suspect, 2)] {
        let worker = world.worker().await;
        let request = QueueClaim { line: Line::of(priority, world.job), ..world.request(worker) };
        let claimed = claim(&world.store, request).await.unwrap();
        let counts = claimed.iter().map(|one| (one.spent, one.suspicion)).collect::<Vec<_>>();
        assert_eq!(counts, [(0, suspicion); 2]);
        take_over(&world.store, worker, true, &|_| Retry::default()).await.unwrap().unwrap();
    }
}
