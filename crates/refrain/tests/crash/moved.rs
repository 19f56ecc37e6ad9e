//! The file of a store is moved away under a process that has not renewed its lease yet.

use rustix::process::Signal;

use crate::world::World;
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};

/// The log and the index of the file lie beside its old path: a new file there would be read with the log of another.
#[tokio::test]
async fn a_heartbeat_after_the_store_was_moved_creates_no_file() {
    let world = World::of(TestDatabase::sqlite().await);
    world.done(&["enqueue", "noop", "n", "1"], &[]).await;
    let stop = ("FAILPOINTS", "heartbeat.connect=1*return(stop)");
    let mut worker = world.probe(&["serve"], &[stop, ("PROBE_LEASE", "600000")]);
    eventually("it has stopped", DEADLINE, async || world.struck() == ["heartbeat.connect"]).await;
    let file = world.file();
    std::fs::rename(&file, file.with_extension("moved")).unwrap();
    worker.signal(Signal::CONT);
    let ended = worker.finish().await;
    let message = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{message}");
    assert!(message.contains("was moved, removed or replaced while it was in use"), "{message}");
    assert!(!file.exists(), "a new file was made");
}
