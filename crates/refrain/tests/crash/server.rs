//! The server of the store is stopped at random moments, and its connections are ended, again and again.

use crate::world::{World, numbered};
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::server::PrivateServer;

const RUNS: usize = 400;
/// How many faults there are in all, and every how many of them is a restart.
const HITS: usize = 60;
const HITS_IN_FULL: usize = 200;
const RESTART_EVERY: usize = 10;

#[tokio::test]
async fn f20_a_server_that_crashes_repeatedly_loses_and_doubles_no_run() {
    let mut server = PrivateServer::create().await;
    let database = server.create_database().await;
    let world = World::at(&server.url(&database));
    let variables = [("PROBE_LEASE", "5000"), ("PROBE_SLOTS", "2")];
    world.done(&["enqueue", "brief", "b", &RUNS.to_string()], &[]).await;
    let mut workers: Vec<_> = (0..2).map(|_| world.probe(&["serve"], &variables)).collect();
    for worker in &mut workers {
        worker.wait_for_line("begun").await;
    }
    let mut ended = 0;
    let hits = if std::env::var_os("REFRAIN_FULL").is_some() { HITS_IN_FULL } else { HITS };
    for hit in 1..=hits {
        if hit % RESTART_EVERY == 0 {
            server.restart().await;
        } else {
            let before = ended;
            eventually("a connection is open", DEADLINE, async || {
                ended += server.terminate_backends(&database).await;
                ended > before
            })
            .await;
        }
    }
    world.touch("drain");
    for worker in &mut workers {
        let output = worker.finish().await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    world.done(&["work"], &variables).await;
    world.assert_settled(numbered("brief#b", RUNS)).await;
}
