//! The connection breaks while the server is still committing, and the server continues: a lookup
//! of the result must wait for that commit.
//!
//! On PostgreSQL only: a file has no server that could continue. A deferred trigger makes COMMIT
//! wait for a lock that the test holds, so that a commit stays in flight for exactly as long as a
//! test needs.

use rustix::process::Signal;
use sqlx::{Postgres, Transaction};

use crate::weakened::{FIRST_MINUTE, weak};
use crate::world::{World, numbered};
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::proxy::Proxy;

/// While it exists, matching commits wait.
struct HeldCommit(Transaction<'static, Postgres>);

impl HeldCommit {
    /// From here on, commits wait that have written such rows of a table.
    async fn of(world: &World, table: &str, rows: &str) -> HeldCommit {
        let trigger = format!(
            "create function public.hold_commit() returns trigger language plpgsql as $$
             begin perform pg_advisory_xact_lock_shared(4711); return null; end $$;
             create constraint trigger hold_commit after insert or update on refrain_{table}
             deferrable initially deferred for each row when ({rows}) execute function public.hold_commit()"
        );
        world.execute(&trigger).await.unwrap();
        HeldCommit(world.locked("select pg_advisory_xact_lock(4711)").await)
    }

    /// Waits until a commit is in flight, and cuts off its client.
    async fn cut(&self, world: &World, proxy: &Proxy) {
        let mut port = None;
        eventually("a commit is in flight", DEADLINE, async || {
            let waiting = "select cast(client_port as text) from pg_stat_activity
                where wait_event = 'advisory' and (query = 'COMMIT' or query like 'with settings as%')
                    and datname = current_database()";
            port = world.texts(waiting).await.pop();
            port.is_some()
        })
        .await;
        proxy.cut_in_the_middle(port.unwrap().parse().unwrap()).await;
    }

    async fn release(self) {
        self.0.rollback().await.unwrap();
    }
}

async fn waits(world: &World, statement: &str) {
    eventually("the look waits", DEADLINE, async || world.is_waiting(statement).await).await;
}

/// The lease of a worker that must not be lost on a slow machine.
const LONG: (&str, &str) = ("PROBE_LEASE", "600000");
const LOOK: &str = "select id from refrain.workers";
const OWNERLESS: &str = "select cast(id as text) from refrain_leases
    where worker not in (select id from refrain_workers)";

/// The connection breaks while the claim of one run is being committed. Returns how earlier attempts of the run
/// ended.
async fn claimed(failpoints: &str, weakened: &str) -> Vec<String> {
    let (world, proxy) = World::behind(TestDatabase::postgres().await).await;
    world.done(&["enqueue", "noop", "n", "1"], &[]).await;
    let commit = HeldCommit::of(&world, "leases", "new.first_run = 1").await;
    let variables = [("PROBE_LEASE", "45000"), ("FAILPOINTS", failpoints), ("REFRAIN_WEAKENED", weakened)];
    let mut worker = world.probe(&["serve"], &variables);
    commit.cut(&world, &proxy).await;
    if weakened.is_empty() {
        waits(&world, LOOK).await;
        // Heartbeats do not wait with it.
        let expiry = async || world.texts("select cast(max(expires_at) as text) from refrain_workers").await;
        let before = expiry().await;
        eventually("the worker is heard of", DEADLINE, async || expiry().await > before).await;
    } else {
        // The worker has looked, found nothing, and continued.
        world.done(&["enqueue", "noop", "m", "1"], &[]).await;
        worker.wait_for_line("ended noop#m0").await;
    }
    commit.release().await;
    worker.wait_for_line("ended noop#n0").await;
    world.touch("drain");
    assert!(worker.wait().await.success());
    world.assert_settled(numbered("noop#n", 1)).await;
    world.history().await
}

#[tokio::test]
async fn f4_a_claim_committed_after_its_connection_broke_begins_once() {
    assert_eq!(claimed("", "").await, Vec::<String>::new());
}

#[tokio::test]
async fn f4_a_claim_with_a_lost_reply_is_looked_up_and_begins_once() {
    assert_eq!(claimed("claim.once=1*return(weak)", "").await, Vec::<String>::new());
}

/// Even a run that a worker holds without knowing it is given back.
#[tokio::test]
async fn without_a_waiting_lookup_a_worker_holds_a_run_unknowingly() {
    let weak = weak(&[("sql/worker/wait.sql", "worker_wait.sql")]);
    for failpoints in ["", "claim.once=1*return(weak)"] {
        assert_eq!(claimed(failpoints, &weak).await, ["noop#n0 1 stopped"], "{failpoints}");
    }
}

/// A worker leaves while its claim is being committed. Returns the leases without a worker.
async fn left(weakened: &str) -> Vec<String> {
    let (world, proxy) = World::behind(TestDatabase::postgres().await).await;
    world.done(&["enqueue", "noop", "n", "1"], &[]).await;
    let commit = HeldCommit::of(&world, "leases", "new.first_run = 1").await;
    let once = ("FAILPOINTS", "claim.once=1*return(weak)");
    let mut worker = world.probe(&["tick", FIRST_MINUTE], &[LONG, once, ("REFRAIN_WEAKENED", weakened)]);
    commit.cut(&world, &proxy).await;
    // The removal waits as well, but it has read the leases before.
    waits(&world, if weakened.is_empty() { LOOK } else { "delete from refrain.workers" }).await;
    commit.release().await;
    worker.wait().await;
    let ownerless = world.texts(OWNERLESS).await;
    world.done(&["work"], &[LONG]).await;
    world.assert_settled(numbered("noop#n", 1)).await;
    assert_eq!(world.history().await, ["noop#n0 1 taken-over"]);
    ownerless
}

#[tokio::test]
async fn f2_runs_of_a_worker_that_left_during_its_claim_are_taken_over() {
    assert_eq!(left("").await, Vec::<String>::new());
}

/// Even such a lease is taken over.
#[tokio::test]
async fn without_a_waiting_leave_a_lease_has_no_worker() {
    let weak = weak(&[("sql/worker/wait.sql", "worker_wait.sql")]);
    assert_eq!(left(&weak).await.len(), 1);
}

/// A worker is killed while its claim is being committed, and a rescuer runs. Returns the leases without a worker.
async fn killed(weakened: &str) -> Vec<String> {
    let world = World::of(TestDatabase::postgres().await);
    world.done(&["enqueue", "noop", "n", "1"], &[]).await;
    let commit = HeldCommit::of(&world, "leases", "new.first_run = 1").await;
    let variables = [LONG, ("REFRAIN_WEAKENED", weakened)];
    let mut worker = world.probe(&["serve"], &variables);
    waits(&world, "COMMIT").await;
    worker.signal(Signal::KILL);
    worker.wait().await;
    let mut rescuer = world.probe(&["tick", FIRST_MINUTE], &variables);
    if weakened.is_empty() {
        commit.release().await;
        rescuer.wait().await;
    } else {
        // The rescuer has taken over the visible leases, and removed the worker.
        rescuer.wait().await;
        commit.release().await;
        let leases = async || world.texts("select cast(id as text) from refrain_leases").await;
        eventually("the claim is made", DEADLINE, async || !leases().await.is_empty()).await;
    }
    let ownerless = world.texts(OWNERLESS).await;
    world.done(&["work"], &[LONG]).await;
    world.assert_settled(numbered("noop#n", 1)).await;
    assert_eq!(world.history().await, ["noop#n0 1 taken-over"]);
    ownerless
}

#[tokio::test]
async fn f2_a_worker_killed_during_its_claim_is_removed_after_the_commit() {
    assert_eq!(killed("").await, Vec::<String>::new());
}

#[tokio::test]
async fn without_a_lock_on_the_worker_a_lease_has_no_worker() {
    let weak = weak(&[("sql/worker/claims.sql", "worker_claims.sql")]);
    assert_eq!(killed(&weak).await.len(), 1);
}

#[tokio::test]
async fn f4_an_ending_committed_after_its_connection_broke_counts_once() {
    let (world, proxy) = World::behind(TestDatabase::postgres().await).await;
    world.done(&["enqueue", "noop", "n", "1"], &[]).await;
    let commit = HeldCommit::of(&world, "runs", "new.id = 1 and not new.open").await;
    let mut worker = world.probe(&["serve"], &[LONG]);
    commit.cut(&world, &proxy).await;
    waits(&world, "update refrain.runs").await;
    commit.release().await;
    world.touch("drain");
    worker.wait_for_line("ended=1 again=0 lost=0").await;
    assert!(worker.wait().await.success());
    world.assert_settled(numbered("noop#n", 1)).await;
    assert_eq!(world.history().await, Vec::<String>::new());
}

#[tokio::test]
async fn f4_scopes_frozen_after_the_connection_broke_cost_no_attempt() {
    let (world, proxy) = World::behind(TestDatabase::postgres().await).await;
    let variables = [("PROBE_START", world.start()), LONG];
    let from = format!("{}:00Z", world.start());
    world.done(&["schedule", &from, "60", "60", "1"], &variables).await;
    let commit = HeldCommit::of(&world, "expansions", "true").await;
    let mut worker = world.probe(&["serve"], &variables);
    commit.cut(&world, &proxy).await;
    waits(&world, "insert into refrain.expansions").await;
    commit.release().await;
    eventually("the scopes are frozen", DEADLINE, async || {
        let frozen = "select key from refrain_expansions join refrain_runs on id = run where not open";
        !world.texts(frozen).await.is_empty()
    })
    .await;
    world.touch("drain");
    assert!(worker.wait().await.success());
    // The scheduler of the worker may have opened later windows, which a worker that drains does not begin.
    world.done(&["work"], &variables).await;
    let runs: Vec<String> = world.runs().await.into_iter().map(|run| run.run).collect();
    world.assert_settled(runs).await;
    assert_eq!((world.history().await, world.dedupes().await), (Vec::new(), 0));
}

#[tokio::test]
async fn f4_a_window_opened_after_the_connection_broke_is_one_request() {
    let (world, proxy) = World::behind(TestDatabase::postgres().await).await;
    let variables = [("PROBE_START", world.start()), LONG];
    world.done(&["enqueue", "noop", "n", "0"], &variables).await;
    let commit = HeldCommit::of(&world, "runs", "new.id = 1 and new.open").await;
    let window = format!("hourly@{}", world.start());
    let mut asking = world.probe(&["run", &window], &variables);
    commit.cut(&world, &proxy).await;
    waits(&world, "insert into refrain.runs").await;
    commit.release().await;
    asking.wait_for_line("did Ran 1").await;
    assert!(asking.wait().await.success());
    assert_eq!((world.history().await, world.dedupes().await), (Vec::new(), 0));
}

#[tokio::test]
async fn f4_a_run_offered_after_the_connection_broke_is_one_request() {
    let (world, proxy) = World::behind(TestDatabase::postgres().await).await;
    world.done(&["enqueue", "noop", "n", "0"], &[LONG]).await;
    let commit = HeldCommit::of(&world, "runs", "new.id = 1 and new.open").await;
    let mut asking = world.probe(&["enqueue", "noop", "n", "1"], &[LONG]);
    commit.cut(&world, &proxy).await;
    waits(&world, "insert into refrain.runs").await;
    commit.release().await;
    assert!(asking.wait().await.success());
    assert_eq!((world.history().await, world.dedupes().await), (Vec::new(), 0));
    assert_eq!(world.texts("select cast(run as text) from refrain_queue").await, ["1"]);
}
