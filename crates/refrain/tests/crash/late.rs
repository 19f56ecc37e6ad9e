//! Writes that come too late: of a released run, of a list of scopes, and of a worker that is cut off from the store.

use crate::weakened::weak;
use crate::world::{World, numbered, written_once};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use rustix::process::Signal;

/// A suspect that must run alone is claimed beside another run, and is given back; before that is committed, its
/// worker is stopped and taken over from. Then the worker continues, and gives it back again.
async fn given_back_late(world: &World, weakened: &str) -> Vec<String> {
    world.done(&["enqueue", "slow", "s", "2"], &[]).await;
    let suspect = "update refrain_queue set line = line + 4294967296, suspicion = 3 where run = 2";
    world.execute(suspect).await.unwrap();
    let stop = ("FAILPOINTS", "finish.before-commit=1*return(stop)");
    let mut older = world.probe(&["serve"], &[("PROBE_LEASE", "3000"), stop, ("REFRAIN_WEAKENED", weakened)]);
    eventually("the older one has stopped", DEADLINE, async || world.struck().len() == 1).await;
    // As if its process were gone: workers whose own leases do not expire here take over from it at once.
    world.execute(&world.gone().await).await.unwrap();
    let long = [("PROBE_LEASE", "600000")];
    let mut newer = world.probe(&["serve"], &long);
    newer.wait_for_line("begun slow#s0 2").await;
    world.touch("gate-s0-2");
    newer.wait_for_line("begun slow#s1 2").await;

    world.touch(&format!("drain-{}", older.id()));
    older.signal(Signal::CONT);
    assert!(older.wait().await.success());
    let mut third = world.probe(&["serve"], &long);
    if weakened.is_empty() {
        // The newer worker begins nothing beside a suspect.
        world.done(&["enqueue", "noop", "n", "1"], &[]).await;
        third.wait_for_line("ended noop#n0").await;
    } else {
        third.wait_for_line("begun slow#s1 2").await;
    }
    world.touch("gate-s1");
    newer.wait_for_line("ended slow#s1 2").await;
    world.touch("drain");
    newer.wait().await;
    third.wait().await;
    world.verdict(&numbered("slow#s", 2).collect()).await
}

/// On PostgreSQL only: a worker that is stopped inside a transaction on a file is ended.
#[tokio::test]
async fn without_lease_and_number_a_late_release_begins_an_attempt_twice() {
    let guarded = World::of(TestDatabase::postgres().await);
    assert_eq!(given_back_late(&guarded, "").await, Vec::<String>::new());
    let weak = weak(&[("sql/queue/give_back.sql", "give_back.sql")]);
    let faults = given_back_late(&World::of(TestDatabase::postgres().await), &weak).await;
    assert!(faults.contains(&"attempt 2 of slow#s1 was begun 2 times".to_owned()), "{faults:?}");
}

/// A run is lost while it evaluates its scopes, and then freezes them. Returns how many windows are frozen.
async fn frozen_late(world: &World, weakened: &str) -> usize {
    let variables = [
        ("PROBE_START", world.start()),
        ("PROBE_LEASE", "60000"),
        ("PROBE_GATED", "yes"),
        ("REFRAIN_WEAKENED", weakened),
    ];
    let from = format!("{}:00Z", world.start());
    world.done(&["schedule", &from, "60", "60", "1"], &variables).await;
    let mut worker = world.probe(&["serve"], &variables);
    worker.wait_for_line("asked for scopes").await;
    // As if it had been given back: by now another worker holds it, under the same number.
    let taken_over = "update refrain_queue set lease = 999 where run =
        (select min(runs.id) from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job
         where jobs.name = 'scoped')";
    world.execute(taken_over).await.unwrap();
    world.touch("scopes");
    world.touch("drain");
    assert!(worker.wait().await.success());
    world.texts("select hash from refrain_expansions").await.len()
}

#[both_databases]
async fn without_a_held_queue_row_an_older_attempt_freezes_the_scopes(database: TestDatabase) {
    assert_eq!(frozen_late(&World::like(&database).await, "").await, 0);
    let weak = weak(&[("sql/queue/hold.sql", "queue_hold.sql")]);
    assert_eq!(frozen_late(&World::of(database), &weak).await, 1);
}

/// A worker is stopped at a failpoint in the middle of a sync until its lease has expired, and no rescuer takes over
/// from it. Returns which attempts have applied the first page.
async fn outlived(world: &World, place: &str, weak: &str) -> Vec<String> {
    world.touch("mended");
    world.done(&["enqueue", "sync", "s", "1"], &[]).await;
    let failpoints = format!("{place}=1*return(stop);{weak}");
    let mut worker = world.probe(&["work"], &[("FAILPOINTS", &failpoints), ("PROBE_LEASE", "3000")]);
    eventually("it has stopped", DEADLINE, async || world.struck() == [place]).await;
    let alive = "select process from refrain_workers where expires_at > (select now from refrain_clock)";
    eventually("its lease is over", DEADLINE, async || world.texts(alive).await.is_empty()).await;
    worker.signal(Signal::CONT);
    assert!(worker.wait().await.success());
    assert_eq!(world.invoices().await, written_once());
    world.assert_settled(numbered("sync#s", 1)).await;
    let first =
        "select distinct cast(attempt as text) from refrain_units where key in ('invoice:1', 'invoice:4')";
    world.texts(first).await
}

#[both_databases]
async fn h3_a_worker_with_an_expired_lease_begins_no_fenced_transaction(database: TestDatabase) {
    assert_eq!(outlived(&World::of(database), "claims.after-commit", "").await, ["2"]);
}

#[both_databases]
async fn without_a_lease_check_an_outlived_transaction_is_committed(database: TestDatabase) {
    let place = "unit-apply.before-commit";
    // A server would end a transaction that is silent for so long; here it is told to wait.
    let patient = "transaction.patient=return(weak)";
    assert_eq!(outlived(&World::like(&database).await, place, patient).await, ["2"]);
    let weak = format!("{patient};lease.unseen=return(weak)");
    assert_eq!(outlived(&World::of(database), place, &weak).await, ["1"]);
}

/// All traffic to the store is dropped without an error: only the worker's own deadline is left.
#[tokio::test]
async fn h3_a_worker_cut_off_from_the_store_ends_its_own_attempts() {
    let (world, network) = World::behind(TestDatabase::postgres().await).await;
    world.done(&["enqueue", "slow", "s", "1"], &[]).await;
    let mut worker = world.probe(&["serve"], &[("PROBE_LEASE", "3000")]);
    worker.wait_for_line("begun slow#s0 1").await;
    network.swallow(true);
    worker.wait_for_line("left slow#s0 1").await;
    assert!(!world.effects_text().contains("ended slow#s0 1"), "{}", world.effects_text());
    network.swallow(false);
    world.touch("gate-s0");
    worker.wait_for_line("ended slow#s0").await;
    world.touch("drain");
    assert!(worker.wait().await.success());
    world.assert_settled(numbered("slow#s", 1)).await;
}
