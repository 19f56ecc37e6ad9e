//! Each guard is removed, and the fault that it prevents happens.

use rustix::process::Signal;

use crate::warehouse::{daily, warehouse, window, written};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::TestProject;

const PLAIN: &str = r#"
    query = "select day, region, amount from orders where day = :ds"
    [publish]
    table = "revenue"
    mode = "overwrite"
    owns = "day = :ds"
"#;

fn weak(guard: &str) -> String {
    format!("{guard}=return(weak)")
}

#[both_databases]
async fn without_the_record_rows_are_appended_twice(database: TestDatabase) {
    for (guard, rows) in [("nothing", 2), ("publish.unrecorded", 4)] {
        let shop = warehouse(TestDatabase::like(&database).await).await;
        shop.open().await.close().await;
        for _ in 0..2 {
            shop.done_with(&["run", &window("append"), "--again"], &[("FAILPOINTS", &weak(guard))]).await;
        }
        assert_eq!(written(&shop, "append").await.len(), rows, "{guard}");
    }
}

#[both_databases]
async fn without_the_recorded_amounts_a_delta_is_applied_twice(database: TestDatabase) {
    for (guard, stock) in [("nothing", "eu 970 a"), ("publish.unremembered", "eu 940 a")] {
        let shop = warehouse(TestDatabase::like(&database).await).await;
        shop.open().await.close().await;
        for _ in 0..2 {
            shop.done_with(&["run", &window("delta"), "--again"], &[("FAILPOINTS", &weak(guard))]).await;
        }
        assert_eq!(written(&shop, "delta").await[1], stock, "{guard}");
    }
}

#[both_databases]
async fn without_the_owns_check_rows_of_another_day_are_doubled(database: TestDatabase) {
    for (guard, rows) in [("nothing", 0), ("publish.outside", 6)] {
        let shop = warehouse(TestDatabase::like(&database).await).await;
        daily(&shop, "overwrite", &PLAIN.replace("where day = :ds\"", "\""));
        shop.open().await.close().await;
        for _ in 0..2 {
            shop.done_with(&["run", &window("overwrite"), "--again"], &[("FAILPOINTS", &weak(guard))]).await;
        }
        assert_eq!(
            written(&shop, "overwrite").await.len(),
            rows,
            "{guard}: the 8th is written again and again"
        );
    }
}

/// Two projects on one server. One is stopped between deleting and inserting while the other publishes the same rows.
async fn raced(guards: &str, lease: &str) -> usize {
    let one = warehouse(TestDatabase::postgres().await).await;
    let other = TestProject::of(TestDatabase::postgres().await);
    other.settings_of("other", &other.database.url(), &format!("shop = \"{}\"", one.database.url()));
    for shop in [&one, &other] {
        daily(shop, "overwrite", PLAIN);
        shop.open().await.close().await;
    }
    let stop = format!("publish.deleted=1*return(stop);{guards}");
    let mut stopped =
        one.process(&["run", &window("overwrite")], &[("FAILPOINTS", &stop), ("PROJECT_LEASE", lease)]);
    eventually("it has deleted", DEADLINE, async || one.lines("struck") == ["publish.deleted"]).await;
    other.done_with(&["run", &window("overwrite")], &[("FAILPOINTS", guards)]).await;
    stopped.signal(Signal::CONT);
    stopped.wait().await;
    written(&one, "overwrite").await.len()
}

#[tokio::test]
async fn without_the_table_lock_two_overwrites_double_the_rows() {
    // The stopped process keeps the other waiting, until the server ends its transaction.
    assert_eq!(raced("", "3000").await, 4);
    // Without a lock the other process does not wait. The server never ends the transaction of the stopped one, so it is
    // still open when that process continues.
    let weak = "publish.unlocked=return(weak);transaction.patient=return(weak)";
    assert_eq!(raced(weak, "60000").await, 8);
}

/// An attempt is stopped when its rows are staged, and taken over. The source changes, and the newer attempt
/// publishes; then the older one continues with what it read. Its lease is long, so it does not know: only the fence
/// protects.
async fn overtaken(guards: &str) -> usize {
    let shop = warehouse(TestDatabase::postgres().await).await;
    daily(&shop, "overwrite", PLAIN);
    shop.open().await.close().await;
    let halt = format!("publish.staged=1*return(stop);{guards}");
    let long = ("PROJECT_LEASE", "60000");
    let mut older = shop.process(&["run", &window("overwrite")], &[("FAILPOINTS", &halt), long]);
    eventually("it has staged", DEADLINE, async || shop.lines("struck") == ["publish.staged"]).await;
    shop.execute(
        "insert into refrain.delayed (run, wake_at, line, attempt, spent, suspicion, lane)
             select run, 0, line, 2, 0, 0, lane from refrain.queue;
         delete from refrain.queue;
         delete from orders where region = 'us'",
    )
    .await;
    let message = shop.done(&["run", &window("overwrite")]).await;
    assert!(message.starts_with("did Ran done 2"), "{message}");
    older.signal(Signal::CONT);
    older.wait().await;
    written(&shop, "overwrite").await.len()
}

#[tokio::test]
async fn f11_without_the_fence_a_superseded_attempt_writes_last() {
    assert_eq!(overtaken("").await, 2);
    assert_eq!(overtaken("publish.unfenced=return(weak)").await, 4);
}
