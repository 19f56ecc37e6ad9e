//! A part of a process panics, by a fault of ours: the rest notices, and nothing goes on half dead.

use rustix::process::Signal;

use crate::both_databases;
use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};
use crate::world::{Recorded, World};

/// A lease that does not run out by itself.
const LONG: &str = "600000";

/// The task that records endings panics each time that a handler has ended, and the runs go back by the word of the store.
const UNRECORDED: &str = "finish.before-commit=1*panic->1*off->1*panic->off";

both_databases! {
    async fn an_ending_that_was_lost_in_a_panic_costs_a_try(database) {
        let world = World::of(database);
        world.done(&["enqueue", "noop", "n", "1"], &[]).await;
        let variables = [("FAILPOINTS", UNRECORDED), ("PROBE_LEASE", LONG)];
        let mut worker = world.probe(&["serve"], &variables);
        let is_over = async || world.runs().await.iter().all(|run| !run.is_open);
        eventually("the run is over", DEADLINE, is_over).await;
        world.touch("drain");
        assert!(worker.finish().await.status.success());
        let failed = Recorded { run: "noop#n0".to_owned(), outcome: "failed".to_owned(), attempt: 2, is_open: false };
        assert_eq!(world.runs().await, [failed], "{}", world.told());
        assert_eq!(world.effects().len(), 4, "it was begun twice and ended twice: {}", world.told());
    }

    async fn without_a_look_at_what_it_holds_a_worker_keeps_a_run_whose_ending_was_lost(database) {
        let world = World::of(database);
        world.done(&["enqueue", "noop", "n", "1"], &[]).await;
        let failpoints = format!("{UNRECORDED};worker.unreconciled=return(weak)");
        let mut worker = world.probe(&["serve"], &[("FAILPOINTS", &failpoints), ("PROBE_LEASE", LONG)]);
        worker.wait_for_line("failpoint finish.before-commit panic").await;
        // Claimed after the worker would have looked.
        world.done(&["enqueue", "noop", "m", "1"], &[]).await;
        worker.wait_for_line("ended noop#m0").await;
        let begun: Vec<u32> = world.effects().iter().map(|effect| effect.attempt).collect();
        assert_eq!(begun, [1; 4], "{}", world.told());
        assert!(world.runs().await.iter().all(|run| run.is_open && run.attempt == 1));
        worker.signal(Signal::KILL);
        worker.wait().await;
    }
}
