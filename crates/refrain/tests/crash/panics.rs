//! A task of a process panics because of a bug of Refrain: the process notices and does not continue with a missing
//! task.

use rustix::process::Signal;

use crate::world::{Recorded, World, numbered};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::TestProject;

/// A lease that does not expire, and no heartbeat, during a story.
const LONG: &str = "36000000";

/// A project with a queue, and its tables.
async fn queue(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    shop.job("noop", "queue = true\ncommand = [\"true\"]\n");
    shop.prepare().await;
    shop
}

#[both_databases]
async fn a_loop_that_panics_ends_its_process_with_an_error(database: TestDatabase) {
    let shop = queue(database).await;
    for place in ["rescuer", "scheduler", "worker", "relay", "relaying", "pruner", "watcher", "lateness"] {
        let mut process = shop.process(&["serve"], &[("FAILPOINTS", &format!("{place}=panic"))]);
        let ended = process.finish().await;
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{place}: {message}");
        assert!(message.contains(&format!("project: the {place} of this process has ended")), "{message}");
    }
}

#[both_databases]
async fn a_worker_whose_heartbeat_panics_registers_again(database: TestDatabase) {
    let shop = queue(database).await;
    let variables = [("FAILPOINTS", "heartbeat.connect=1*panic"), ("PROJECT_LEASE", LONG)];
    let mut process = shop.process(&["serve"], &variables);
    process.wait_for_line("refrain-heartbeat").await;
    let refrain = shop.open().await;
    let is_anew = async || refrain.workers().await.unwrap().iter().any(|worker| worker.id > 1);
    eventually("there is another worker", DEADLINE, is_anew).await;
    refrain.enqueue("noop", "1", &()).await.unwrap();
    let is_done = async || refrain.open_runs().await.unwrap() == 0;
    eventually("it works", DEADLINE, is_done).await;
    process.signal(Signal::TERM);
    assert!(process.finish().await.status.success());
    assert_eq!(refrain.workers().await.unwrap().len(), 0, "both have left");
    refrain.close().await;
}

// In a process started for one run, no other task checks the worker before the run has ended.

#[both_databases]
async fn a_running_attempt_is_ended_when_its_heartbeat_panics(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "slow", "s", "2"], &[]).await;
    let variables = [("FAILPOINTS", "heartbeat.heard=1*panic"), ("PROBE_LEASE", LONG)];
    let mut asking = world.probe(&["run", "slow#s0"], &variables);
    asking.wait_for_line("begun slow#s0 1").await;
    // The thread panics when it is told to end another run.
    let cancellation = "insert into refrain_cancellations (run, asked_at) values (2, 1)";
    world.execute(cancellation).await.unwrap();
    asking.wait_for_line("left slow#s0 1").await;
    let requested = asking.finish().await;
    assert!(
        requested.status.success()
            && String::from_utf8_lossy(&requested.stderr).contains("refrain-heartbeat"),
        "{requested:?}"
    );
    assert!(!world.effects_text().contains("ended slow#s0 1"), "{}", world.effects_text());

    world.execute("delete from refrain_cancellations").await.unwrap();
    (0..2).for_each(|number| world.touch(&format!("gate-s{number}")));
    world.done(&["work"], &[("PROBE_LEASE", LONG)]).await;
    world.assert_settled(numbered("slow#s", 2)).await;
}

/// The task that records endings panics each time a handler has ended, and the runs go back because the store still
/// lists them.
const UNRECORDED: &str = "finish.before-commit=1*panic->1*off->1*panic->off";

#[both_databases]
async fn an_ending_lost_in_a_panic_costs_an_attempt(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "noop", "n", "1"], &[]).await;
    let variables = [("FAILPOINTS", UNRECORDED), ("PROBE_LEASE", LONG)];
    let mut worker = world.probe(&["serve"], &variables);
    let is_over = async || world.runs().await.iter().all(|run| !run.is_open);
    eventually("the run is over", DEADLINE, is_over).await;
    world.touch("drain");
    assert!(worker.finish().await.status.success());
    let failed =
        Recorded { run: "noop#n0".to_owned(), outcome: "failed".to_owned(), attempt: 2, is_open: false };
    assert_eq!(world.runs().await, [failed], "{}", world.effects_text());
    assert_eq!(world.effects().len(), 4, "it was begun twice and ended twice: {}", world.effects_text());
}

#[both_databases]
async fn without_a_lookup_a_worker_keeps_a_run_whose_ending_was_lost(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "noop", "n", "1"], &[]).await;
    let failpoints = format!("{UNRECORDED};worker.unreconciled=return(weak)");
    let mut worker = world.probe(&["serve"], &[("FAILPOINTS", &failpoints), ("PROBE_LEASE", LONG)]);
    worker.wait_for_line("failpoint finish.before-commit panic").await;
    // Claimed after the worker would have compared its runs with the store.
    world.done(&["enqueue", "noop", "m", "1"], &[]).await;
    worker.wait_for_line("ended noop#m0").await;
    let begun: Vec<u32> = world.effects().iter().map(|effect| effect.attempt).collect();
    assert_eq!(begun, [1; 4], "{}", world.effects_text());
    assert!(world.runs().await.iter().all(|run| run.is_open && run.attempt == 1));
    worker.signal(Signal::KILL);
    worker.wait().await;
}
