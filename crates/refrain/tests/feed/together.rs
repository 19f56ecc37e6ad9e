//! Two simultaneous windows that read the same source.

use crate::sync::{RUN, Says, Sync, lines, rows, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

/// Prints when both are running.
const GATED: &str = r#"#!/bin/sh
echo "$REFRAIN_DS" >> here
until [ -e gate ]; do sleep 0.01; done
cat source
"#;

/// Prints the number of its attempt, when it may.
const NUMBERED: &str = r#"#!/bin/sh
echo "begun $REFRAIN_ATTEMPT" >> here
until [ -e "gate-$REFRAIN_ATTEMPT" ]; do sleep 0.01; done
echo "{\"id\":1,\"total\":$REFRAIN_ATTEMPT}"
"#;

/// Takes the only run over from its worker, which is alive and is not notified.
async fn take_over(sync: &Sync) {
    let statements = "insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane)
            select run, (select now from refrain_clock), line, 2, 0, 0, lane from refrain_queue;
        delete from refrain_queue";
    if sync.shop.database.is_sqlite() {
        let store = format!("sqlite:{}", sync.shop.root().join("refrain.db").display());
        let pool = sqlx::SqlitePool::connect(&store).await.unwrap();
        sqlx::raw_sql(statements).execute(&pool).await.unwrap();
        pool.close().await;
    } else {
        sync.shop.execute(&statements.replace("refrain_", "refrain.")).await;
    }
}

#[both_databases]
async fn h3_an_attempt_taken_over_writes_no_printed_unit(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.shop.program("list", NUMBERED);
    sync.prepare().await;
    let mut older = sync.shop.process(&["run", RUN], &[("PROJECT_LEASE", "60000")]);
    let begun = async |attempts: usize| {
        eventually("it has begun", DEADLINE, async || sync.shop.lines("here").len() == attempts).await;
    };
    begun(1).await;
    take_over(&sync).await;
    let mut newer = sync.shop.process(&["run", RUN], &[]);
    begun(2).await;
    sync.shop.write("gate-2", "");
    eventually("the newer one has written", DEADLINE, async || sync.invoices().await == ["1 2"]).await;
    sync.shop.write("gate-1", "");
    older.finish().await;
    assert!(newer.finish().await.status.success());
    assert_eq!((sync.invoices().await, sync.writes().await), (vec!["1 2".to_owned()], texts([1])));
    assert_eq!(sync.run().await.0, "Deduplicated done 2");
}

#[both_databases]
async fn two_windows_reading_the_same_source_write_each_unit_once(database: TestDatabase) {
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
        let message = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            message.starts_with("did Ran done 1"),
            "{message}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!((sync.invoices().await, sync.writes().await), (rows(1..=500), texts(1..=500)));
}
