//! The store changes while a worker is alive: a standby was promoted and may lack the last commits, a reservation
//! among them; or another process has come to doubt the store.

use std::future::IntoFuture;

use refrain::Refrain;
use refrain::admin::StoreOrigin;
use rustix::process::Signal;

use crate::world::World;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::server::PrivateServer;
use refrain_harness::work::{SETTINGS, Seen};

/// A worker that has done one run on a server of its own, and is stopped.
async fn stopped_worker() -> (PrivateServer, String, World, ChildProcess) {
    let server = PrivateServer::create().await;
    let url = server.url(&server.create_database().await);
    let world = World::at(&url);
    world.done(&["enqueue", "noop", "before", "1"], &[]).await;
    let mut worker = world.probe(&["serve"], &[("PROBE_LEASE", "600000")]);
    worker.wait_for_line("ended noop#before0").await;
    worker.signal(Signal::STOP);
    (server, url, world, worker)
}

#[tokio::test]
async fn f21_a_store_that_fails_over_under_a_worker_claims_nothing() {
    let (mut server, _, world, mut worker) = stopped_worker().await;
    world.done(&["enqueue", "noop", "after", "1"], &[]).await;
    server.fail_over().await;
    worker.signal(Signal::CONT);
    let is_over = async || worker.has_ended() || world.effects_text().contains("after0");
    eventually("the worker has ended, or has claimed", DEADLINE, is_over).await;
    assert!(!world.effects_text().contains("after0"), "{}", world.effects_text());
    let message = String::from_utf8(worker.finish().await.stderr).unwrap();
    assert!(message.contains("the server of this store has another timeline"), "{message}");
    let open: Vec<String> =
        world.runs().await.into_iter().filter(|run| run.is_open).map(|run| run.run).collect();
    assert_eq!(open, ["noop#after0"]);
    assert_eq!(world.texts("select doubt from refrain_store").await, ["timeline"]);
}

/// No loop checks the server here: the claim itself must notice.
#[tokio::test]
async fn f21_a_process_that_was_open_before_a_failover_claims_nothing_after_it() {
    let mut server = PrivateServer::create().await;
    let url = server.url(&server.create_database().await);
    Refrain::migrate(&url).await.unwrap();
    let seen = Seen::default();
    let options = Refrain::at(&url, "crash").unwrap().job(seen.job("idle"));
    let refrain = options.settings(SETTINGS).open().await.unwrap();
    server.fail_over().await;
    refrain.enqueue("idle", "1", &()).await.unwrap();
    let refused = refrain.tick().await.unwrap_err();
    assert!(refused.is_for_a_person(), "{refused}");
    assert_eq!(seen.all(), Vec::<String>::new());
    refrain.close().await;
}

/// A worker is stopped. The store fails over, and an operator checks and confirms it; then the worker is continued.
#[tokio::test]
async fn f21_a_worker_that_missed_failover_and_recovery_ends_without_writing() {
    let (mut server, url, world, mut worker) = stopped_worker().await;
    server.fail_over().await;
    Refrain::at(&url, "crash").unwrap().state(StoreOrigin::Moved).await.unwrap();
    worker.signal(Signal::CONT);
    let message = String::from_utf8(worker.finish().await.stderr).unwrap();
    assert!(message.contains("the server of this store has another timeline"), "{message}");
    assert_eq!(world.texts("select coalesce(doubt, 'none') from refrain_store").await, ["none"]);
    world.done(&["enqueue", "noop", "after", "1"], &[]).await;
    world.done(&["work"], &[]).await;
    assert_eq!(world.runs().await.iter().filter(|run| run.is_open).count(), 0);
}

#[both_databases]
async fn f21_a_worker_claims_nothing_from_a_store_that_another_process_doubts(database: TestDatabase) {
    let seen = Seen::default();
    Refrain::migrate(&database.url()).await.unwrap();
    let options = Refrain::at(&database.url(), "shop").unwrap().job(seen.job("idle"));
    let refrain = options.settings(SETTINGS).open().await.unwrap();
    let serving = tokio::spawn(refrain.serve().into_future());
    let is_registered = async || !refrain.workers().await.unwrap().is_empty();
    eventually("the worker is registered", DEADLINE, is_registered).await;
    database.store("update refrain_store set doubt = 'behind'").await;
    refrain.enqueue("idle", "1", &()).await.unwrap();
    let is_over = async || serving.is_finished() || !seen.all().is_empty();
    eventually("the worker has ended, or has claimed", DEADLINE, is_over).await;
    assert_eq!(seen.all(), Vec::<String>::new());
    let ended = serving.await.unwrap().unwrap_err();
    assert!(ended.is_for_a_person(), "{ended}");
    refrain.close().await;
}
