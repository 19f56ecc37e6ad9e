//! Each guard is removed, one at a time: the tests must notice, or they prove nothing.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use rustix::process::Signal;

use crate::units::written_late;
use crate::world::{World, numbered, written_once};
use crate::zombies::stopped_past_its_lease;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

pub(crate) const FIRST_MINUTE: &str = "2026-01-01T00:00:00Z";

/// The variable that replaces statements by weaker ones.
pub(crate) fn weak(statements: &[(&str, &str)]) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/weakened");
    let entries =
        statements.iter().map(|(statement, name)| format!("{statement}={}", directory.join(name).display()));
    entries.collect::<Vec<_>>().join(";")
}

/// Two processes enqueue the same key and request one window twice; then all runs are done.
async fn offered_twice(world: &World, variables: &[(&str, &str)]) -> Vec<String> {
    let window = format!("hourly@{}", world.start());
    for _ in 0..2 {
        world.done(&["enqueue", "noop", "n", "1"], variables).await;
        world.done(&["run", &window], variables).await;
    }
    world.done(&["enqueue", "noop", "m", "1"], variables).await;
    world.verdict(&BTreeSet::new()).await
}

async fn drop_the_constraint(world: &World) {
    if !world.is_sqlite() {
        return world.execute("alter table refrain_runs drop constraint runs_are_unique").await.unwrap();
    }
    let table = world.texts("select sql from sqlite_schema where name = 'refrain_runs'").await.concat();
    let without = table.replace("constraint runs_are_unique unique (job, key),", "");
    assert_ne!(without, table, "the constraint was not found");
    world.execute(&format!("drop table refrain_runs; {without}")).await.unwrap();
}

/// Eight processes request another attempt at once, and the first of them is stopped in the middle of its request.
async fn requested_again_by_eight(world: &World, weakened: &str) -> Vec<String> {
    world.done(&["run", "again#a0"], &[]).await;
    let (again, weak) = (["run", "again#a0", "--again"], ("REFRAIN_WEAKENED", weakened));
    // The look before the compare-and-set only saves a write.
    let look = if weakened.is_empty() { "" } else { "reopen.no-look-up=return(weak)" };
    let stop = format!("reopen.before-commit=1*return(stop);{look}");
    let mut first = world.probe(&again, &[weak, ("FAILPOINTS", &stop)]);
    eventually("the first one has stopped", DEADLINE, async || world.struck().len() == 1).await;
    // The others have also seen the run before the first one commits.
    let seen = format!("reopen.requested=1*return(stop);{look}");
    let mut others: Vec<_> = (0..7).map(|_| world.probe(&again, &[weak, ("FAILPOINTS", &seen)])).collect();
    eventually("the others have stopped", DEADLINE, async || world.struck().len() == 8).await;
    for other in &mut others {
        other.signal(Signal::CONT);
    }
    first.signal(Signal::CONT);
    let mut faults = Vec::new();
    for process in others.iter_mut().chain([&mut first]) {
        let output = process.finish().await;
        if !output.status.success() {
            faults.push(String::from_utf8_lossy(&output.stderr).into_owned());
        }
    }
    faults.extend(world.verdict(&["again#a0".to_owned()].into()).await);
    faults
}

/// One worker is stopped in the middle of its claim; another one claims beside it, or waits for it.
async fn claimed_beside_one_that_stopped(world: &World, weakened: &str) -> Vec<String> {
    let variables = [("REFRAIN_WEAKENED", weakened), ("PROBE_LEASE", "60000")];
    world.done(&["enqueue", "slow", "s", "4"], &[]).await;
    let stop = [&variables[..], &[("FAILPOINTS", "claim.before-commit=1*return(stop)")]].concat();
    let mut first = world.probe(&["serve"], &stop);
    eventually("the first one has stopped", DEADLINE, async || world.struck().len() == 1).await;
    let mut second = world.probe(&["serve"], &variables);
    if weakened.is_empty() {
        world.done(&["enqueue", "noop", "n", "1"], &[]).await;
        second.wait_for_line("ended noop#n0").await;
        first.signal(Signal::CONT);
    } else {
        eventually("the second one waits", DEADLINE, async || world.is_waiting("update refrain.queue").await)
            .await;
        first.signal(Signal::CONT);
        // While no run can end, the second worker finds every run that it has read.
        first.wait_for_line("begun slow#s").await;
        second.wait_for_line("begun slow#s").await;
    }
    for gate in numbered("gate-s", 4) {
        world.touch(&gate);
    }
    eventually("the queue is empty", DEADLINE, async || {
        world.texts("select cast(run as text) from refrain_queue").await.is_empty()
    })
    .await;
    world.touch("drain");
    first.wait().await;
    second.wait().await;
    world.verdict(&numbered("slow#s", 4).collect()).await
}

/// Three intents are written, and a relay is killed half way; then another one runs.
async fn intents_relayed_by_a_process_that_dies(world: &World, failpoints: &str) -> Vec<String> {
    world.done(&["intend", "noop", "w", "3"], &[]).await;
    let status = world.probe(&["tick", FIRST_MINUTE], &[("FAILPOINTS", failpoints)]).wait().await;
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{failpoints}");
    world.done(&["tick", FIRST_MINUTE], &[]).await;
    let mut faults = world.verdict(&numbered("noop#w", 3).collect()).await;
    let left = world.texts("select key from refrain_intents").await;
    faults.extend(left.into_iter().map(|key| format!("{key} is still to be relayed")));
    if world.dedupes().await > 0 {
        faults.push("a copy counts as another request".to_owned());
    }
    faults
}

/// One worker has claimed all that it can; another one looks for work.
async fn claimed_in_turn(world: &World, weakened: &str) -> Vec<String> {
    let variables = [("REFRAIN_WEAKENED", weakened), ("PROBE_LEASE", "600000")];
    world.done(&["enqueue", "slow", "s", "4"], &[]).await;
    let mut first = world.probe(&["serve"], &[&variables[..], &[("PROBE_SLOTS", "4")]].concat());
    for _ in 0..4 {
        first.wait_for_line("begun slow#s").await;
    }
    let mut second = world.probe(&["serve"], &variables);
    world.done(&["enqueue", "slow", "s", "5"], &[]).await;
    second.wait_for_line("begun slow#s4").await;
    for gate in numbered("gate-s", 5) {
        world.touch(&gate);
    }
    world.touch("drain");
    first.wait().await;
    second.wait().await;
    world.verdict(&numbered("slow#s", 5).collect()).await
}

/// A scheduler dies in the middle of a tick, and another one ticks.
async fn ticked_by_a_scheduler_that_dies(world: &World, failpoints: &str) -> Vec<String> {
    let (arguments, minutes) = (["schedule", FIRST_MINUTE, "10", "10", "1"], ("PROBE_MINUTES", FIRST_MINUTE));
    let status = world.probe(&arguments, &[minutes, ("FAILPOINTS", failpoints)]).wait().await;
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "it did not die");
    world.done(&arguments, &[minutes]).await;
    let opened = world.runs().await.len();
    if opened == 10 { Vec::new() } else { vec![format!("{opened} of 10 windows were opened")] }
}

/// A sync whose first attempt marks a page as done that it has skipped.
async fn careless(world: &World, failpoints: &str) -> Vec<String> {
    world.touch("mended");
    world.done(&["enqueue", "sync", "careless-", "1"], &[]).await;
    world.done(&["work"], &[("FAILPOINTS", failpoints)]).await;
    world.invoices().await
}

/// A sync that is killed in the middle of a batch, and done again.
async fn killed_in_a_batch(world: &World, failpoints: &str) -> Vec<String> {
    world.touch("mended");
    world.done(&["enqueue", "sync", "s", "1"], &[]).await;
    let failpoints = format!("{failpoints}unit-apply.before-commit=return(kill)");
    let status = world.probe(&["work"], &[("FAILPOINTS", &failpoints)]).wait().await;
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "it did not die");
    world.done(&["work"], &[]).await;
    world.invoices().await
}

#[both_databases]
async fn without_comparing_the_fence_a_stale_attempt_writes(database: TestDatabase) {
    let weak = weak(&[("sql/fence/hold.sql", "fence_hold.sql")]);
    let faults = written_late(&World::of(database), &[("REFRAIN_WEAKENED", &weak)], &[]).await;
    assert!(faults.iter().any(|fault| fault.contains("1 1 2")), "{faults:?}");
}

#[both_databases]
async fn without_raising_the_fence_a_stale_attempt_writes(database: TestDatabase) {
    let lower = ("sql/fence/hold.sql", "fence_hold_or_lower.sql");
    let guarded = weak(&[lower]);
    let faults = written_late(&World::like(&database).await, &[], &[("REFRAIN_WEAKENED", &guarded)]).await;
    assert_eq!(faults, Vec::<String>::new());
    let weak =
        weak(&[lower, ("sql/fence/raise.sql", "fence_raise.sql"), ("sql/fence/find.sql", "fence_find.sql")]);
    let faults = written_late(&World::of(database), &[], &[("REFRAIN_WEAKENED", &weak)]).await;
    assert!(faults.iter().any(|fault| fault.contains("1 1 2")), "{faults:?}");
}

#[both_databases]
async fn without_a_proof_a_checkpoint_passes_missing_units(database: TestDatabase) {
    assert_eq!(careless(&World::like(&database).await, "").await, written_once());
    let invoices = careless(&World::of(database), "checkpoint.unproven=return(weak)").await;
    assert_eq!(invoices, written_once().split_off(4));
}

#[both_databases]
async fn without_one_transaction_for_both_a_unit_is_recorded_and_not_written(database: TestDatabase) {
    assert_eq!(killed_in_a_batch(&World::like(&database).await, "").await, written_once());
    let invoices = killed_in_a_batch(&World::of(database), "unit.apart=return(weak);").await;
    assert_eq!(invoices, written_once().split_off(4));
}

#[both_databases]
async fn without_the_unique_constraint_a_run_exists_twice(database: TestDatabase) {
    let guarded = World::like(&database).await;
    let start = ("PROBE_START", guarded.start());
    let faults = offered_twice(&guarded, &[start]).await;
    assert!(!faults.iter().any(|fault| fault.contains("names") || fault.contains("twice")), "{faults:?}");

    let world = World::of(database);
    world.done(&["enqueue", "again", "a", "0"], &[("PROBE_START", world.start())]).await;
    drop_the_constraint(&world).await;
    let weak = weak(&[
        ("sql/run/open.sql", "open.sql"),
        ("sql/run/enqueue.sql", "enqueue.sql"),
        ("sql/run/enqueue_alone.postgres.sql", "enqueue_alone.sql"),
    ]);
    let no_look_up = ("FAILPOINTS", "run.no-look-up=return(weak)");
    let variables = [("PROBE_START", world.start()), ("REFRAIN_WEAKENED", &weak), no_look_up];
    let faults = offered_twice(&world, &variables).await;
    assert!(faults.iter().any(|fault| fault.contains("a run exists twice")), "{faults:?}");
    assert!(faults.contains(&"5 runs have 3 names".to_owned()), "{faults:?}");
}

#[both_databases]
async fn without_the_fence_the_result_of_a_stopped_worker_counts(database: TestDatabase) {
    let weak = weak(&[("sql/queue/leave.sql", "leave.sql")]);
    let failpoints = ("FAILPOINTS", "finish.no-fence=return(weak)");
    // So long that the continued worker has written its result before its heartbeat learns that the lease is lost.
    let lease = ("PROBE_LEASE", "600000");
    let variables = [failpoints, ("REFRAIN_WEAKENED", &weak), lease];
    let faults = stopped_past_its_lease(&World::of(database), &variables).await;
    assert_ne!(faults, Vec::<String>::new());
}

#[both_databases]
async fn a_scheduler_that_advances_before_it_inserts_loses_windows(database: TestDatabase) {
    let guarded = World::like(&database).await;
    for failpoints in ["tick.before-commit=return(kill)", "tick.after-commit=return(kill)"] {
        let world = World::like(&database).await;
        assert_eq!(ticked_by_a_scheduler_that_dies(&world, failpoints).await, Vec::<String>::new());
    }
    let weak = "tick.advance-first=return(weak);tick-weakened.after-commit=return(kill)";
    assert_ne!(ticked_by_a_scheduler_that_dies(&guarded, weak).await, Vec::<String>::new());
}

#[both_databases]
async fn a_relay_that_deletes_before_it_copies_loses_intents(database: TestDatabase) {
    for place in ["relay-copy.before", "relay-copy.after", "relay-forget.before", "relay-forget.after"] {
        let world = World::like(&database).await;
        let failpoints = format!("{place}-commit=return(kill)");
        let faults = intents_relayed_by_a_process_that_dies(&world, &failpoints).await;
        assert_eq!(faults, Vec::<String>::new(), "{place}");
    }
    let weak = "relay.forget-first=return(weak);relay-forget.after-commit=return(kill)";
    let faults = intents_relayed_by_a_process_that_dies(&World::of(database), weak).await;
    assert!(faults.contains(&"noop#w0 is missing".to_owned()), "{faults:?}");
}

#[both_databases]
async fn without_its_compare_and_set_a_run_is_queued_twice(database: TestDatabase) {
    let guarded = World::like(&database).await;
    assert_eq!(requested_again_by_eight(&guarded, "").await, Vec::<String>::new());
    let weak = weak(&[("sql/run/reopen.sql", "reopen.sql")]);
    assert_ne!(requested_again_by_eight(&World::of(database), &weak).await, Vec::<String>::new());
}

#[both_databases]
async fn without_a_lease_check_an_attempt_begins_twice(database: TestDatabase) {
    let guarded = World::like(&database).await;
    assert_eq!(claimed_in_turn(&guarded, "").await, Vec::<String>::new());
    let weak = weak(&[("sql/queue/front.sql", "front_of_all.sql"), ("sql/queue/lease.sql", "lease.sql")]);
    let faults = claimed_in_turn(&World::of(database), &weak).await;
    assert!(faults.iter().any(|fault| fault.contains("was begun")), "{faults:?}");
}

/// On PostgreSQL only: SQLite has one writer at a time, so no other worker reads between a read and a lease.
#[tokio::test]
async fn without_a_lock_before_leasing_an_attempt_begins_twice() {
    let guarded = World::of(TestDatabase::postgres().await);
    assert_eq!(claimed_beside_one_that_stopped(&guarded, "").await, Vec::<String>::new());
    let weak = weak(&[("sql/queue/front.sql", "front.sql"), ("sql/queue/lease.sql", "lease.sql")]);
    let world = World::of(TestDatabase::postgres().await);
    let faults = claimed_beside_one_that_stopped(&world, &weak).await;
    assert!(faults.iter().any(|fault| fault.contains("was begun")), "{faults:?}\n{}", world.effects_text());
}
