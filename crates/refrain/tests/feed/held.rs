//! A script that must not be executed twice lists units: cut off, it waits for a person.

use rustix::process::Signal;

use crate::both_databases;
use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};
use crate::sync::{LEASE, RUN, Says, Sync, lines};

/// Says that it began, and prints when it may.
const ONCE: &str = "#!/bin/sh\necho begun >> told\nuntil [ -e go ]; do sleep 0.01; done\ncat source\n";

both_databases! {
    async fn a_script_that_was_cut_off_is_not_executed_again_before_a_person_has_looked(database) {
        let sync = Sync::into_table(database, Says { top: "interrupted = \"hold\"", ..Says::default() }).await;
        sync.shop.program("list", ONCE);
        sync.source(lines(1..=3));
        sync.prepare().await;
        let mut process = sync.shop.process(&["run", RUN], &[LEASE]);
        eventually("it has begun", DEADLINE, async || sync.shop.lines("told").len() == 1).await;
        process.signal(Signal::KILL);
        process.wait().await;
        sync.shop.write("go", "");
        sync.shop.expire().await;
        sync.run().await;
        assert_eq!(sync.shop.lines("told"), ["begun"]);
        assert_eq!(sync.invoices().await, Vec::<String>::new());
        assert!(sync.again().await.0.contains(" done "), "a person has looked");
        assert_eq!(sync.shop.lines("told").len(), 2);
    }
}
