//! The store becomes another one while a worker is alive: a server that repeated its own has taken over, and may have lost its last
//! commits, a reservation among them; or another process has come to doubt it.

use std::future::IntoFuture;

use refrain::Refrain;
use rustix::process::Signal;

use crate::both_databases;
use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};
use crate::support::server::PrivateServer;
use crate::support::work::{SETTINGS, Seen};
use crate::world::World;

#[tokio::test]
async fn f21_a_store_that_fails_over_under_a_worker_claims_nothing() {
    let mut server = PrivateServer::create().await;
    let database = server.create_database().await;
    let world = World::at(&server.url(&database));
    world.done(&["enqueue", "noop", "before", "1"], &[]).await;
    let mut worker = world.probe(&["serve"], &[("PROBE_LEASE", "600000")]);
    worker.wait_for_line("ended noop#before0").await;
    worker.signal(Signal::STOP);
    world.done(&["enqueue", "noop", "after", "1"], &[]).await;
    server.fail_over().await;
    worker.signal(Signal::CONT);
    let is_over = async || worker.has_ended() || world.told().contains("after0");
    eventually("the worker has ended, or has claimed", DEADLINE, is_over).await;
    assert!(!world.told().contains("after0"), "{}", world.told());
    let said = String::from_utf8(worker.finish().await.stderr).unwrap();
    assert!(said.contains("the server of this store has another timeline"), "{said}");
    let open: Vec<String> =
        world.runs().await.into_iter().filter(|run| run.is_open).map(|run| run.run).collect();
    assert_eq!(open, ["noop#after0"]);
    assert_eq!(world.texts("select doubt from refrain_store").await, ["timeline"]);
}

both_databases! {
    async fn f21_a_worker_claims_nothing_from_a_store_that_another_process_doubts(database) {
        let seen = Seen::default();
        Refrain::migrate(&database.url()).await.unwrap();
        let opening = Refrain::at(&database.url(), "shop").unwrap().job(seen.job("idle"));
        let refrain = opening.settings(SETTINGS).open().await.unwrap();
        let serving = tokio::spawn(refrain.serve().into_future());
        let is_registered = async || !refrain.workers().await.unwrap().is_empty();
        eventually("the worker is registered", DEADLINE, is_registered).await;
        database.store("update refrain_store set doubt = 'behind'").await;
        refrain.enqueue("idle", "1", None).await.unwrap();
        let is_over = async || serving.is_finished() || !seen.all().is_empty();
        eventually("the worker has ended, or has claimed", DEADLINE, is_over).await;
        assert_eq!(seen.all(), Vec::<String>::new());
        let ended = serving.await.unwrap().unwrap_err();
        assert!(ended.is_for_a_person(), "{ended}");
        refrain.close().await;
    }
}
