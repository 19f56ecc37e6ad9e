//! An attempt over which the fence was raised while its script was still printing: whatever the script prints then, nothing of it is
//! written and no call is made.

use crate::both_databases;
use crate::calls::{FINE, calling};
use crate::receiver::Receiver;
use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};
use crate::sync::{LEASE, RUN, Says, Sync, lines};

/// Prints what the source has once it may.
const GATED: &str = "#!/bin/sh\n: > waits\nuntil [ -e go ]; do sleep 0.01; done\ncat source\n";

/// Runs the job with a source that waits until a newer attempt has raised the fence. Gives what the process printed.
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

both_databases! {
    async fn i5_it_makes_no_call(database) {
        let receiver = Receiver::answering(FINE).await;
        let sync = calling(database, &receiver, "", "").await;
        overtaken(&sync).await;
        assert_eq!((receiver.ids(), sync.left().await), (Vec::<String>::new(), Vec::<String>::new()));
    }

    async fn i5_it_keeps_no_line_that_is_no_unit(database) {
        let sync = Sync::into_table(database, Says::default()).await;
        sync.source(["oops"]);
        overtaken(&sync).await;
        assert_eq!(sync.left().await, Vec::<String>::new());
    }

    async fn i5_it_clears_no_line_that_was_kept_before(database) {
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

    async fn i5_it_writes_no_page(database) {
        let sync = Sync::of(database).await;
        let into = "[publish]\ndatabase = \"shop\"\ntable = \"invoices\"\nmode = \"merge\"\nkey = [\"id\"]\nledger = false\n";
        sync.job("command = [\"./list\"]\noutput = \"units\"", "", "", into);
        sync.source(lines(1..=3));
        overtaken(&sync).await;
        assert_eq!((sync.invoices().await, sync.left().await), (Vec::<String>::new(), Vec::<String>::new()));
    }
}
