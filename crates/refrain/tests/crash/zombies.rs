//! A worker is stopped for longer than its lease and then continues: none of its writes counts.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::world::{Effect, Recorded, World};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};

/// The attempts of the one run that began, or ended, in order.
fn attempts(world: &World, has_ended: bool) -> Vec<u32> {
    let effects = world.effects().into_iter();
    effects.filter(|one: &Effect| one.has_ended == has_ended).map(|one| one.attempt).collect()
}

/// What holds after every story: there is one run, done by the newer attempt, and the record of the older one says
/// only that it was taken over.
pub(crate) async fn the_newer_attempt_has_the_word(world: &World, run: &str) -> Vec<String> {
    let mut faults = world.verdict(&[run.to_owned()].into()).await;
    let runs = world.runs().await;
    if runs.first().map(|run| run.attempt) != Some(2) {
        faults.push(format!("{runs:?} should be of attempt 2"));
    }
    let history = world.history().await;
    if history != [format!("{run} 1 taken-over")] {
        faults.push(format!("{history:?} should say that attempt 1 was taken over"));
    }
    faults
}

/// Stops a process where it does not hold the store.
pub(crate) async fn stop_outside_of_a_transaction(world: &World, process: &ChildProcess) {
    loop {
        process.signal(Signal::STOP);
        if !world.is_sqlite()
            || world.execute("pragma busy_timeout = 50; begin immediate; rollback").await.is_ok()
        {
            return;
        }
        process.signal(Signal::CONT);
    }
}

/// One process begins the run and is stopped; another takes over and begins it again; then the first
/// continues, and ends before the second.
pub(crate) async fn stopped_past_its_lease(world: &World, variables: &[(&str, &str)]) -> Vec<String> {
    world.done(&["enqueue", "slow", "s", "1"], &[]).await;
    let mut older = world.probe(&["serve"], variables);
    older.wait_for_line("begun slow#s0 1").await;
    stop_outside_of_a_transaction(world, &older).await;
    // As if it were on another machine: no worker can end it, and only the fence protects. Its lease is long, so that
    // it does not expire before the worker is stopped; the test expires it here.
    world.execute("update refrain_workers set process = 'elsewhere/1/1/1', expires_at = 1").await.unwrap();
    let mut newer = world.probe(&["serve"], &[]);
    newer.wait_for_line("begun slow#s0 2").await;

    world.touch("gate-s0-1");
    world.touch(&format!("drain-{}", older.id()));
    older.signal(Signal::CONT);
    assert!(older.wait().await.success());
    world.touch("gate-s0-2");
    newer.wait_for_line("ended slow#s0 2").await;
    world.touch("drain");
    assert!(newer.wait().await.success());
    the_newer_attempt_has_the_word(world, "slow#s0").await
}

#[both_databases]
async fn h3_a_worker_continued_after_its_lease_writes_nothing(database: TestDatabase) {
    let world = World::of(database);
    let faults = stopped_past_its_lease(&world, &[("PROBE_LEASE", "60000")]).await;
    assert!(faults.is_empty(), "{faults:?}\n{}", world.effects_text());
}

#[both_databases]
async fn h3_a_worker_does_not_mistake_the_end_by_its_successor_for_its_own(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "slow", "s", "1"], &[]).await;
    let mut older = world.probe(&["serve"], &[("PROBE_LEASE", "3600000")]);
    older.wait_for_line("begun slow#s0 1").await;
    stop_outside_of_a_transaction(&world, &older).await;
    world.execute("update refrain_queue set suspicion = 1, spent = 1").await.unwrap();
    world.execute("update refrain_workers set process = 'elsewhere/1/1/1', expires_at = 1").await.unwrap();
    world.done(&["work"], &[]).await;
    let given_up = |runs: Vec<Recorded>| runs.into_iter().map(|run| run.outcome).collect::<Vec<_>>();
    assert_eq!(given_up(world.runs().await), ["failed"]);

    world.touch("gate-s0");
    world.touch(&format!("drain-{}", older.id()));
    older.signal(Signal::CONT);
    let message = String::from_utf8(older.finish().await.stdout).unwrap();
    assert!(message.contains("ended=0 again=0 lost=1"), "{message}");
    assert_eq!(given_up(world.runs().await), ["failed"]);
}

#[both_databases]
async fn f11_a_worker_stopped_inside_a_transaction_does_not_block_its_successor(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "slow", "s", "1"], &[]).await;
    world.touch("gate-s0");
    let mut older = world.probe(&["serve"], &[("FAILPOINTS", "finish.before-commit=1*return(stop)")]);
    eventually("the older one has stopped", DEADLINE, async || world.struck() == ["finish.before-commit"])
        .await;
    assert_eq!(attempts(&world, true), [1]);

    let mut newer = world.probe(&["serve"], &[]);
    newer.wait_for_line("ended slow#s0 2").await;
    world.touch("drain");
    assert!(newer.wait().await.success());
    // On SQLite it kept the file locked, and was ended; PostgreSQL ended only its transaction.
    if !world.is_sqlite() {
        older.signal(Signal::CONT);
    }
    let was_killed = older.wait().await.signal() == Some(Signal::KILL.as_raw());
    assert_eq!(was_killed, world.is_sqlite());
    let faults = the_newer_attempt_has_the_word(&world, "slow#s0").await;
    assert!(faults.is_empty(), "{faults:?}\n{}", world.effects_text());
}
