//! Statements of a process that is killed at any moment: their rows are written once.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

const WINDOW: &str = "total@2020-06-09";
/// Long, so that a process reaches the place where it is killed; the test expires it afterwards.
const LEASE: (&str, &str) = ("PROJECT_LEASE", "60000");

async fn shop(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    shop.execute("create table totals (day date, total integer); create table audit (day date)").await;
    let sql = "insert into totals values (:ds, 1); insert into audit values (:ds); \
         insert into totals values (:ds, 2)";
    shop.daily("total", sql, "");
    shop.open().await.close().await;
    shop
}

/// Requests the window in a process that is killed at this failpoint.
async fn killed(shop: &TestProject, place: &str) {
    let failpoints = format!("{place}=return(kill)");
    let mut process = shop.process(&["run", WINDOW], &[("FAILPOINTS", &failpoints), LEASE]);
    assert_eq!(process.wait().await.signal(), Some(Signal::KILL.as_raw()), "{place} was not reached");
    shop.expire().await;
}

async fn written(shop: &TestProject) -> Vec<String> {
    // The role of the tests has the name of our schema, which also has a table of this name.
    let audit = shop.either("audit", "public.audit");
    let day = format!("select cast(day as text) from {audit}");
    shop.rows(&format!("select cast(total as text) from totals union all {day} order by 1")).await
}

#[both_databases]
async fn f1_killed_before_the_commit_the_next_attempt_writes_the_rows(database: TestDatabase) {
    let shop = shop(database).await;
    killed(&shop, "unit-apply.before-commit").await;
    assert_eq!(written(&shop).await, [""; 0]);
    assert!(shop.done(&["run", WINDOW]).await.starts_with("did Ran done 2"));
    assert_eq!(written(&shop).await, ["1", "2", "2020-06-09"]);
}

#[both_databases]
async fn f2_killed_after_the_commit_the_next_attempt_finds_it_done(database: TestDatabase) {
    for place in ["unit-apply.after-commit", "finish.before-commit"] {
        let shop = shop(TestDatabase::like(&database).await).await;
        killed(&shop, place).await;
        assert_eq!(written(&shop).await, ["1", "2", "2020-06-09"], "{place}");
        assert!(shop.done(&["run", WINDOW]).await.starts_with("did Ran done 2"), "{place}");
        assert_eq!(written(&shop).await, ["1", "2", "2020-06-09"], "{place}");
        assert!(shop.done(&["run", WINDOW]).await.starts_with("did Deduplicated done 2"), "{place}");
    }
}

#[both_databases]
async fn f38_statements_killed_repeatedly_are_tried_as_often_as_their_run(database: TestDatabase) {
    let shop = shop(database).await;
    for _ in 0..2 {
        killed(&shop, "unit-apply.before-commit").await;
    }
    // The second death uses up an attempt, so its successor is delayed; a new request is not.
    let message = shop.done(&["run", WINDOW]).await;
    assert!(message.starts_with("did Followed due 3"), "{message}");
    let message = shop.done(&["run", WINDOW]).await;
    assert!(message.starts_with("did Ran done 3"), "{message}");
    assert_eq!(written(&shop).await, ["1", "2", "2020-06-09"]);
}

#[both_databases]
async fn f4_with_the_reply_to_the_commit_lost_the_rows_are_written_once(database: TestDatabase) {
    let shop = shop(database).await;
    let mut process = shop.process(&["run", WINDOW], &[("FAILPOINTS", "unit-apply.reply=1*return(lost)")]);
    let message = String::from_utf8(process.finish().await.stdout).unwrap();
    assert!(message.starts_with("did Ran done 1"), "{message}");
    assert_eq!(shop.lines("struck"), ["unit-apply.reply"]);
    assert_eq!(written(&shop).await, ["1", "2", "2020-06-09"]);
}
