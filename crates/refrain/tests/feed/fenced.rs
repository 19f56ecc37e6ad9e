//! The fence is raised over an attempt whose script is still printing: nothing that the script
//! prints afterwards is written, and no call is made.

use crate::calls::{FINE, calling};
use crate::receiver::Receiver;
use crate::sync::{LEASE, RUN, Says, Sync, lines};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

/// Prints the source once it may.
const GATED: &str = "#!/bin/sh\n: > waits\nuntil [ -e go ]; do sleep 0.01; done\ncat source\n";

/// Runs the job with a source that waits until a newer attempt has raised the fence. Returns the output of the
/// process.
async fn overtaken(sync: &Sync) -> String {
    sync.shop.program("list", GATED);
    sync.prepare().await;
    let mut process = sync.shop.process(&["run", RUN, "--again"], &[LEASE]);
    eventually("the script waits", DEADLINE, async || sync.shop.root().join("waits").exists()).await;
    let raise = sync.shop.either(
        "update refrain_fences set attempt = attempt + 1",
        "update refrain.fences set attempt = attempt + 1",
    );
    sync.shop.execute(raise).await;
    sync.shop.write("go", "");
    let output = process.finish().await;
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[both_databases]
async fn i5_a_fenced_attempt_makes_no_call(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "").await;
    overtaken(&sync).await;
    assert_eq!((receiver.ids(), sync.left().await), (Vec::<String>::new(), Vec::<String>::new()));
}

#[both_databases]
async fn i5_a_fenced_attempt_stores_no_malformed_line(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.source(["oops"]);
    overtaken(&sync).await;
    assert_eq!(sync.left().await, Vec::<String>::new());
}

#[both_databases]
async fn i5_a_fenced_attempt_clears_no_malformed_line(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.shop.program("list", "#!/bin/sh\ncat source\n");
    sync.source(["oops"]);
    sync.run().await;
    let left = sync.left().await;
    assert_eq!(left.len(), 1);
    sync.source([""; 0]);
    overtaken(&sync).await;
    assert_eq!(sync.left().await, left);
}

#[both_databases]
async fn i5_a_fenced_attempt_writes_no_page(database: TestDatabase) {
    let sync = Sync::of(database).await;
    let into = r#"
        [publish]
        database = "shop"
        table = "invoices"
        mode = "merge"
        key = ["id"]
        ledger = false
    "#;
    sync.job("command = [\"./list\"]\noutput = \"units\"", "", "", into);
    sync.source(lines(1..=3));
    overtaken(&sync).await;
    assert_eq!((sync.invoices().await, sync.left().await), (Vec::<String>::new(), Vec::<String>::new()));
}
