//! One window, one run: for any number of requests and schedulers.

use std::collections::BTreeSet;

use crate::world::World;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

/// How many processes request the window at once.
const PROCESSES: usize = 50;
/// How many minute windows there are in all, and how many schedulers open them.
const MINUTES: usize = 10_000;
const SCHEDULERS: usize = 32;
const FIRST_MINUTE: &str = "2026-01-01T00:00:00Z";

/// Fifty processes request the same window; returns how many of them ran it.
async fn requested_by_fifty(world: &World, failpoints: &str) -> usize {
    let window = format!("hourly@{}", world.start());
    world.done(&["enqueue", "noop", "n", "0"], &[("PROBE_START", world.start())]).await;
    // Fifty of them share two processors: none may lose its lease because it has to wait.
    let variables = [("PROBE_START", world.start()), ("FAILPOINTS", failpoints), ("PROBE_LEASE", "60000")];
    let mut asking: Vec<_> = (0..PROCESSES).map(|_| world.probe(&["run", &window], &variables)).collect();
    let mut ran = 0;
    for process in &mut asking {
        let output = process.finish().await;
        let message = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{message}{}", String::from_utf8_lossy(&output.stderr));
        ran += usize::from(message.contains("did Ran"));
    }
    ran
}

async fn once_for_fifty(world: World, failpoints: &str) {
    assert_eq!(requested_by_fifty(&world, failpoints).await, 1, "{}", world.effects_text());
    let runs: BTreeSet<String> = world.runs().await.into_iter().map(|run| run.run).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    world.assert_settled(runs).await;
    assert_eq!(world.effects().len(), 2, "{}", world.effects_text());
    assert_eq!(world.dedupes().await, PROCESSES - 1);
}

#[both_databases]
async fn m1_fifty_processes_ask_for_one_window_and_it_runs_once(database: TestDatabase) {
    once_for_fifty(World::of(database), "").await;
}

#[both_databases]
async fn m1_the_unique_constraint_alone_gives_one_run(database: TestDatabase) {
    once_for_fifty(World::of(database), "run.no-look-up=return(weak)").await;
}

#[both_databases]
async fn f10_thirty_two_schedulers_open_ten_thousand_windows_each_once(database: TestDatabase) {
    let world = World::of(database);
    let step = if std::env::var_os("REFRAIN_FULL").is_some() { "1" } else { "20" };
    world.done(&["enqueue", "noop", "n", "0"], &[("PROBE_MINUTES", FIRST_MINUTE)]).await;
    let arguments = ["schedule", FIRST_MINUTE, &MINUTES.to_string(), step, &(SCHEDULERS / 4).to_string()];
    // A long lease: on a busy machine, the server would end the transaction of one of so many.
    let variables = [("PROBE_MINUTES", FIRST_MINUTE), ("PROBE_LEASE", "60000")];
    let mut schedulers: Vec<_> = (0..4).map(|_| world.probe(&arguments, &variables)).collect();
    let mut opened = Vec::new();
    for scheduler in &mut schedulers {
        let output = scheduler.finish().await;
        let message = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{message}{}", String::from_utf8_lossy(&output.stderr));
        opened.push(message.rsplit("opened ").next().unwrap().trim().parse::<usize>().unwrap());
    }
    assert_eq!(opened.iter().sum::<usize>(), MINUTES, "{opened:?}");
    assert!(opened.iter().filter(|opened| **opened > 0).count() > 1, "no process raced: {opened:?}");

    let first: jiff::Timestamp = FIRST_MINUTE.parse().unwrap();
    let minutes = 0..i64::try_from(MINUTES).unwrap();
    let due = minutes.map(|minute| first + jiff::SignedDuration::from_mins(minute));
    let due: BTreeSet<String> = due.map(|window| format!("minutely#{window}")).collect();
    let runs: Vec<String> = world.runs().await.into_iter().map(|run| run.run).collect();
    assert_eq!(runs.len(), MINUTES);
    assert_eq!(runs.into_iter().collect::<BTreeSet<String>>(), due);
}
