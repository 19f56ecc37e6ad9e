//! Requested ends of workers: a drain lets runs end, a stop returns them at no cost. And a
//! heartbeat that does not stop before its worker does.

use rustix::process::Signal;

use crate::world::{World, numbered};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const RUNS: usize = 200;
const ROUNDS: usize = 6;
/// A worker that does not get its turn for a while does not look dead.
const LONG_LEASE: (&str, &str) = ("PROBE_LEASE", "60000");

#[both_databases]
async fn f50_a_drain_lets_runs_end_and_starts_no_new_ones(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "slow", "s", "2"], &[]).await;
    let mut worker = world.probe(&["serve"], &[LONG_LEASE]);
    worker.wait_for_line("begun slow#s").await;
    worker.wait_for_line("begun slow#s").await;
    world.touch("drain");
    worker.wait_for_line("told to end").await;
    // A run that is enqueued later is left to other workers, however long the drain takes.
    world.touch("gate-s0");
    worker.wait_for_line("ended slow#s0").await;
    world.done(&["enqueue", "slow", "late", "1"], &[]).await;
    world.touch("gate-s1");
    assert!(worker.wait().await.success());

    let runs = world.runs().await;
    let standings: Vec<(&str, u32, bool)> =
        runs.iter().map(|run| (run.outcome.as_str(), run.attempt, run.is_open)).collect();
    assert_eq!(standings, [("done", 1, false), ("done", 1, false), ("-", 1, true)]);
    assert_eq!(world.history().await, Vec::<String>::new());
    assert_eq!(world.effects().len(), 4, "{}", world.effects_text());
}

#[both_databases]
async fn f50_a_stop_returns_runs_at_no_cost(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "slow", "s", "2"], &[]).await;
    let mut worker = world.probe(&["serve"], &[LONG_LEASE]);
    worker.wait_for_line("begun slow#s").await;
    worker.wait_for_line("begun slow#s").await;
    world.touch("stop");
    assert!(worker.wait().await.success());
    let spent =
        world.texts("select cast(spent + suspicion as text) from refrain_queue where lease is null").await;
    assert_eq!(spent, ["0", "0"]);

    for gate in ["gate-s0", "gate-s1"] {
        world.touch(gate);
    }
    world.done(&["work"], &[]).await;
    world.assert_settled(numbered("slow#s", 2)).await;
    assert_eq!(world.history().await, ["slow#s0 1 stopped", "slow#s1 1 stopped"]);
}

#[both_databases]
async fn f50_two_hundred_runs_are_done_despite_drains_and_kills(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "brief", "b", &RUNS.to_string()], &[]).await;
    let variables = [("PROBE_SLOTS", "2")];
    for round in 0..ROUNDS {
        // As many runs as both have slots, and none of them ends: each worker has begun two, however fast the other
        // is.
        let gated = format!("g{round}-");
        world.done(&["enqueue", "gated", &gated, "4"], &[]).await;
        let mut workers = [world.probe(&["serve"], &variables), world.probe(&["serve"], &variables)];
        for worker in &mut workers {
            worker.wait_for_line(&format!("begun gated#{gated}")).await;
        }
        let [drained, killed] = &mut workers;
        killed.signal(Signal::KILL);
        world.touch(&format!("drain-{}", drained.id()));
        numbered(&format!("gate-{gated}"), 4).for_each(|gate| world.touch(&gate));
        assert!(drained.wait().await.success(), "in round {round}");
        killed.wait().await;
    }
    world.done(&["work"], &[]).await;
    let gated = (0..ROUNDS).flat_map(|round| numbered(&format!("gated#g{round}-"), 4).collect::<Vec<_>>());
    world.assert_settled(numbered("brief#b", RUNS).chain(gated)).await;
}

#[both_databases]
async fn f39_a_run_that_blocks_every_thread_keeps_its_lease(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "hog", "h", "1"], &[]).await;
    let variables = [("PROBE_LEASE", "4000"), ("PROBE_BUSY", "9000")];
    let mut hog = world.probe(&["work"], &variables);
    hog.wait_for_line("begun hog#h0").await;
    let mut rescuer = world.probe(&["work"], &variables);
    hog.wait_for_line("ended hog#h0").await;
    assert!(hog.wait().await.success() && rescuer.wait().await.success());
    world.assert_settled(["hog#h0".to_owned()]).await;
    assert_eq!(world.history().await, Vec::<String>::new(), "it was not taken over");
}
