//! `while-running = "queue"`: windows of one scope run one after another, the oldest first, on any
//! worker.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp, Unit};

use crate::world::World;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const WORKERS: usize = 16;
const WINDOWS: usize = 24;

/// The lane of a run: its job and its scope.
fn lane(run: &str) -> &str {
    match run.rsplit_once('/') {
        Some((_, scope)) => scope,
        None => "hourly",
    }
}

#[both_databases]
async fn sixteen_workers_never_run_two_windows_of_a_lane_at_once_nor_out_of_order(database: TestDatabase) {
    let world = World::of(database);
    let hours = SignedDuration::from_hours(i64::try_from(WINDOWS).unwrap() + 1);
    let from = Timestamp::now().round((Unit::Hour, 1)).unwrap() - hours;
    let start = from.strftime("%Y-%m-%dT%H:%M").to_string();
    let variables = [("PROBE_START", start.as_str()), ("PROBE_LEASE", "600000"), ("PROBE_SLOTS", "4")];
    let minutes = (WINDOWS * 60).to_string();
    let message = world.done(&["schedule", &from.to_string(), &minutes, &minutes, "1"], &variables).await;
    assert_eq!(message.trim(), format!("opened {}", 2 * WINDOWS));
    // All of them have started before the first begins: one process alone would finish quickly.
    let mut workers: Vec<_> = (0..WORKERS).map(|_| world.probe(&["work", "together"], &variables)).collect();
    for worker in &mut workers {
        worker.wait_for_line("ready").await;
    }
    world.touch("begin");
    for worker in &mut workers {
        let output = worker.finish().await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    world.done(&["work"], &variables).await;

    let runs: BTreeSet<String> = world.runs().await.into_iter().map(|run| run.run).collect();
    assert!(runs.len() >= 4 * WINDOWS, "{}", runs.len());
    world.assert_settled(runs).await;
    let mut under_way: BTreeMap<String, String> = BTreeMap::new();
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    let mut processes = BTreeSet::new();
    for effect in world.effects() {
        let lane = lane(&effect.run).to_owned();
        processes.insert(effect.process);
        if effect.has_ended {
            assert_eq!(under_way.remove(&lane), Some(effect.run));
        } else {
            assert_eq!(under_way.insert(lane.clone(), effect.run.clone()), None, "beside {}", effect.run);
            let before = last.insert(lane, effect.run.clone());
            assert!(before.is_none_or(|before| before < effect.run), "{} came late", effect.run);
        }
    }
    assert!(processes.len() > 1, "no process raced");
}

#[both_databases]
async fn a_window_on_time_runs_after_the_missed_ones_that_were_opened_with_it(database: TestDatabase) {
    let world = World::of(database);
    let variables = [("PROBE_START", world.start())];
    let from = format!("{}:00Z", world.start());
    let message = world.done(&["schedule", &from, "180", "180", "1"], &variables).await;
    assert_eq!(message.trim(), "opened 6", "three windows of two jobs, the last of them at its tick");
    world.done(&["work"], &variables).await;
    let effects = world.effects().into_iter();
    let begun = effects.filter(|effect| !effect.has_ended && effect.run.starts_with("hourly#"));
    assert!(begun.is_sorted_by_key(|effect| effect.run), "{}", world.effects_text());
}
