//! A script that is faster than the database waits for it, and no lines pile up in between.

use crate::sync::{RUN, Says, Sync};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

/// Prints the same line over and over, and counts in a file how many were written.
const FAST: &str = r#"#!/bin/sh
: > here
until [ -e gate ]; do sleep 0.01; done
awk 'BEGIN {
    for (i = 1; i <= 100000; i++) {
        print "{\"id\":" i % 100 ",\"total\":1}"
        if (i % 500 == 0) { fflush(); print i > "progress"; close("progress") }
    }
}'
"#;

/// Three parts of a thousand lines, and the capacity of pipes and buffers.
const BOUND: u32 = 20_000;

#[both_databases]
async fn a_script_blocks_on_its_pipe_while_the_table_is_locked(database: TestDatabase) {
    let sync = Sync::into_table(database, Says { unit: "per = \"ever\"", ..Says::default() }).await;
    sync.shop.program("list", FAST);
    sync.prepare().await;
    let progress =
        || sync.shop.lines("progress").first().and_then(|line| line.parse::<u32>().ok()).unwrap_or(0);
    let mut process = sync.shop.process(&["run", RUN], &[("PROJECT_LEASE", "60000")]);
    eventually("it has begun", DEADLINE, async || sync.shop.root().join("here").exists()).await;
    let hold = Hold::of(&sync).await;
    sync.shop.write("gate", "");
    let (mut last, mut still) = (0, 0);
    eventually("the script waits", DEADLINE, async || {
        still = if progress() == last && last > 0 { still + 1 } else { 0 };
        last = progress();
        still > 20
    })
    .await;
    assert!(last < BOUND, "{last} lines were taken while none could be applied");
    hold.release().await;
    let output = process.finish().await;
    let message = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(message.starts_with("did Ran done 1"), "{message}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((progress(), sync.invoices().await.len()), (100_000, 100));
    assert_eq!(sync.counts().await, [[100, 0, 99_900, 0]]);
    assert_eq!(sync.writes().await.len(), 100);
}

/// A lock that blocks every writer of invoices.
enum Hold {
    Sqlite(sqlx::Transaction<'static, sqlx::Sqlite>),
    Postgres(sqlx::Transaction<'static, sqlx::Postgres>),
}

impl Hold {
    async fn of(sync: &Sync) -> Hold {
        match &sync.shop.database {
            TestDatabase::Sqlite { pool, .. } => {
                Hold::Sqlite(pool.begin_with("begin immediate").await.unwrap())
            }
            TestDatabase::Postgres { pool, .. } => {
                let mut transaction = pool.begin().await.unwrap();
                sqlx::query("lock table invoices in exclusive mode")
                    .execute(&mut *transaction)
                    .await
                    .unwrap();
                Hold::Postgres(transaction)
            }
        }
    }

    async fn release(self) {
        match self {
            Hold::Sqlite(transaction) => transaction.rollback().await.unwrap(),
            Hold::Postgres(transaction) => transaction.rollback().await.unwrap(),
        }
    }
}
