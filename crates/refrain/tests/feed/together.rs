//! Two windows at once that read the same source.

use crate::both_databases;
use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};
use crate::sync::{Says, Sync, lines, rows, texts};

/// Prints when everybody is there.
const GATED: &str = r#"#!/bin/sh
echo "$REFRAIN_DS" >> here
until [ -e gate ]; do sleep 0.01; done
cat source
"#;

both_databases! {
    async fn two_windows_at_once_that_read_the_same_write_each_unit_once(database) {
        let says = Says { top: "while-running = \"allow\"", unit: "per = \"ever\"", ..Says::default() };
        let sync = Sync::into_table(database, says).await;
        sync.shop.program("list", GATED);
        sync.source(lines(1..=500));
        sync.prepare().await;
        let ask = |day| sync.shop.process(&["run", &format!("sync@2020-06-{day}")], &[]);
        let mut processes = [ask("09"), ask("10")];
        eventually("both are there", DEADLINE, async || sync.shop.lines("here").len() == 2).await;
        sync.shop.write("gate", "");
        for process in &mut processes {
            let output = process.finish().await;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.starts_with("did Ran done 1"), "{said}{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!((sync.invoices().await, sync.writes().await), (rows(1..=500), texts(1..=500)));
    }
}
