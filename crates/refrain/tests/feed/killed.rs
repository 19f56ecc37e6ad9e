//! Killed at every commit and run again: each row is written once.

use crate::sync::{Says, Sync, lines, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const ORPHAN: &str = "{\"id\":4,\"total\":40,\"customer\":9}";

#[both_databases]
async fn f1_killed_at_any_commit_each_unit_is_written_once(database: TestDatabase) {
    for place in ["fence-raise", "ledger-open", "unit-fail", "unit-apply", "finish"] {
        for when in ["before-commit", "after-commit"] {
            let sync = Sync::into_table(TestDatabase::like(&database).await, Says::default()).await;
            let mut source = lines(1..=3);
            source.extend([ORPHAN.to_owned(), "odd".to_owned()]);
            sync.source(source);
            sync.killed(&format!("{place}.{when}=return(kill)")).await;
            sync.run().await;
            let left: Vec<String> =
                sync.left().await.iter().map(|one| one.split(' ').next().unwrap().to_owned()).collect();
            assert_eq!(left, ["$line:2020-06-09T00:00:00Z:5", "invoice:4"], "{place}.{when}");
            assert_eq!(sync.writes().await, texts(1..=3), "{place}.{when}");
            sync.shop.execute("insert into customers values (9)").await;
            sync.source(lines(1..=4));
            let mut became = sync.run().await.0;
            // A death alone uses up a try, so a unit that was alone then may need another one.
            if became.starts_with("Followed") {
                became = sync.run().await.0;
            }
            assert!(became.contains(" done "), "{place}.{when}: {became} {:?}", sync.left().await);
            assert_eq!(sync.invoices().await, ["1 10", "2 20", "3 30", "4 40"], "{place}.{when}");
        }
    }
}

#[both_databases]
async fn f4_with_the_reply_to_any_commit_lost_each_unit_is_written_once(database: TestDatabase) {
    for place in ["fence-raise", "ledger-open", "unit-fail", "unit-apply"] {
        let sync = Sync::into_table(TestDatabase::like(&database).await, Says::default()).await;
        sync.source(lines(1..=3).into_iter().chain(["odd".to_owned()]));
        sync.prepare().await;
        let failpoints = format!("{place}.reply=1*return(lost)");
        let message = sync.shop.done_with(&["run", crate::sync::RUN], &[("FAILPOINTS", &failpoints)]).await;
        assert!(message.starts_with("did Ran due 2"), "{place}: {message}");
        assert_eq!(sync.shop.lines("struck"), [format!("{place}.reply")]);
        assert_eq!(sync.counts().await, [[3, 0, 0, 1]], "{place}");
        assert_eq!(sync.writes().await, texts(1..=3), "{place}");
    }
}
