//! A script that must not run twice prints units: interrupted, it waits for the operator.

use rustix::process::Signal;

use crate::sync::{LEASE, RUN, Says, Sync, lines};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

/// Reports that it began, and prints when it may.
const ONCE: &str = "#!/bin/sh\necho begun >> log\nuntil [ -e go ]; do sleep 0.01; done\ncat source\n";

#[both_databases]
async fn an_interrupted_held_script_waits_for_the_operator(database: TestDatabase) {
    let sync = Sync::into_table(database, Says { top: "interrupted = \"hold\"", ..Says::default() }).await;
    sync.shop.program("list", ONCE);
    sync.source(lines(1..=3));
    sync.prepare().await;
    let mut process = sync.shop.process(&["run", RUN], &[LEASE]);
    eventually("it has begun", DEADLINE, async || sync.shop.lines("log").len() == 1).await;
    process.signal(Signal::KILL);
    process.wait().await;
    sync.shop.write("go", "");
    sync.shop.expire().await;
    sync.run().await;
    assert_eq!(sync.shop.lines("log"), ["begun"]);
    assert_eq!(sync.invoices().await, Vec::<String>::new());
    assert!(sync.again().await.0.contains(" done "), "the operator has checked");
    assert_eq!(sync.shop.lines("log").len(), 2);
}
