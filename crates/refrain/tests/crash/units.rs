//! Units of a worker that was stopped, taken over or killed: each is written once, and stale
//! content is never written.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::world::{World, written_once};
use crate::zombies::{stop_outside_of_a_transaction, the_newer_attempt_has_the_word};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

const RUN: &str = "sync#stale-0";

/// Two attempts of one run have read the source, and the newer one has read newer content; it writes, and then the
/// older one tries to.
pub(crate) async fn written_late(
    world: &World,
    older: &[(&str, &str)],
    newer: &[(&str, &str)],
) -> Vec<String> {
    world.done(&["enqueue", "sync", "stale-", "1"], &[]).await;
    std::fs::write(world.path("source"), "1").unwrap();
    // Its lease is long, so it is not notified, and it has no slot for another run: only the fence protects.
    let alone = [("PROBE_LEASE", "60000"), ("PROBE_SLOTS", "1")];
    let mut older = world.probe(&["serve"], &[older, &alone[..]].concat());
    older.wait_for_line("read sync#stale-0 1").await;
    world.take_over("stale-0", 0).await;
    std::fs::write(world.path("source"), "2").unwrap();
    let mut newer = world.probe(&["serve"], newer);
    newer.wait_for_line("read sync#stale-0 2").await;
    world.touch("gate-stale-0-2");
    newer.wait_for_line("ended sync#stale-0 2").await;
    world.touch("gate-stale-0-1");
    world.touch("drain");
    assert!(older.wait().await.success() && newer.wait().await.success());
    let mut faults = world.verdict(&[RUN.to_owned()].into()).await;
    let invoices = world.invoices().await;
    if invoices != ["1 2 1"] {
        faults.push(format!("the row is {invoices:?}: it should say 2, written once"));
    }
    faults
}

#[both_databases]
async fn h3_an_attempt_taken_over_writes_none_of_its_units(database: TestDatabase) {
    let world = World::of(database);
    let faults = written_late(&world, &[], &[]).await;
    assert!(faults.is_empty(), "{faults:?}\n{}", world.effects_text());
}

#[both_databases]
async fn h3_a_worker_stopped_before_its_write_writes_nothing_when_continued(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "sync", "stale-", "1"], &[]).await;
    std::fs::write(world.path("source"), "1").unwrap();
    let mut older = world.probe(&["serve"], &[]);
    older.wait_for_line("read sync#stale-0 1").await;
    stop_outside_of_a_transaction(&world, &older).await;
    world.execute("update refrain_workers set process = 'elsewhere/1/1/1'").await.unwrap();
    std::fs::write(world.path("source"), "2").unwrap();
    let mut newer = world.probe(&["serve"], &[]);
    newer.wait_for_line("read sync#stale-0 2").await;
    world.touch("gate-stale-0-2");
    newer.wait_for_line("ended sync#stale-0 2").await;

    world.touch("gate-stale-0-1");
    world.touch("drain");
    older.signal(Signal::CONT);
    assert!(older.wait().await.success() && newer.wait().await.success());
    let faults = the_newer_attempt_has_the_word(&world, RUN).await;
    assert!(faults.is_empty(), "{faults:?}\n{}", world.effects_text());
    assert_eq!(world.invoices().await, ["1 2 1"]);
}

#[both_databases]
async fn f11_a_worker_stopped_inside_a_batch_does_not_block_its_successor(database: TestDatabase) {
    let world = World::of(database);
    world.touch("mended");
    world.done(&["enqueue", "sync", "s", "1"], &[]).await;
    let mut older = world.probe(&["serve"], &[("FAILPOINTS", "unit-apply.before-commit=1*return(stop)")]);
    eventually("the older one has stopped", DEADLINE, async || {
        world.struck() == ["unit-apply.before-commit"]
    })
    .await;
    assert_eq!(world.invoices().await, Vec::<String>::new());

    let mut newer = world.probe(&["serve"], &[]);
    newer.wait_for_line("ended sync#s0 2").await;
    world.touch("drain");
    assert!(newer.wait().await.success());
    // On SQLite it kept the file locked, and was ended; PostgreSQL ended only its transaction.
    if !world.is_sqlite() {
        older.signal(Signal::CONT);
    }
    let was_killed = older.wait().await.signal() == Some(Signal::KILL.as_raw());
    assert_eq!(was_killed, world.is_sqlite());
    assert_eq!(world.invoices().await, written_once());
    let faults = the_newer_attempt_has_the_word(&world, "sync#s0").await;
    assert!(faults.is_empty(), "{faults:?}\n{}", world.effects_text());
}

#[both_databases]
async fn f4_with_lost_replies_single_units_are_written_once(database: TestDatabase) {
    let world = World::of(database);
    world.touch("mended");
    world.done(&["enqueue", "sync", "s", "1"], &[]).await;
    let status =
        world.probe(&["work"], &[("FAILPOINTS", "unit-apply.before-commit=return(kill)")]).wait().await;
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    let lost = "unit-blame.reply=1*return(lost);unit-apply.reply=1*off->1*return(lost)";
    world.done(&["work"], &[("FAILPOINTS", lost)]).await;
    assert_eq!(world.struck(), ["unit-apply.before-commit", "unit-blame.reply", "unit-apply.reply"]);
    assert_eq!(world.invoices().await, written_once());
    world.assert_settled(["sync#s0".to_owned()]).await;
}
