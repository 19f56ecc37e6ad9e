//! A job is renamed: its windows stay done, even while a process still uses the old name.

use refrain::{Ask, Did};

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;
use refrain_harness::work::is_sound;

const SQL: &str = "insert into totals values (:ds, :job)";

async fn shop(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    shop.execute("create table totals (day date, job text)").await;
    shop.daily("total", SQL, "");
    shop
}

fn rename(shop: &TestProject) {
    shop.remove("total");
    shop.daily("revenue", SQL, "formerly = \"total\"");
}

async fn written(shop: &TestProject) -> Vec<String> {
    shop.rows("select cast(day as text) || ' ' || job from totals order by day").await
}

#[both_databases]
async fn windows_of_a_renamed_job_stay_done(database: TestDatabase) {
    let shop = shop(database).await;
    shop.run("total@2020-06-09", Ask::Once).await;
    rename(&shop);
    assert_eq!(shop.run("revenue@2020-06-09", Ask::Once).await.did, Did::Deduplicated);
    assert!(shop.run("revenue@2020-06-09", Ask::Again).await.is_done());
    shop.run("revenue@2020-06-10", Ask::Once).await;
    assert_eq!(written(&shop).await, ["2020-06-09 total", "2020-06-10 revenue"]);
}

#[both_databases]
async fn a_process_that_still_uses_the_old_name_writes_nothing_twice(database: TestDatabase) {
    let shop = shop(database).await;
    let older = shop.open().await;
    rename(&shop);
    let newer = shop.open().await;
    assert_eq!(older.run("total@2020-06-09", Ask::Once).await.unwrap().did, Did::Ran);
    assert_eq!(newer.run("revenue@2020-06-09", Ask::Once).await.unwrap().did, Did::Deduplicated);
    assert_eq!(newer.run("revenue@2020-06-10", Ask::Once).await.unwrap().did, Did::Ran);
    assert_eq!(older.run("total@2020-06-10", Ask::Once).await.unwrap().did, Did::Deduplicated);
    is_sound(&newer).await;
    older.close().await;

    // A process that starts with the old files gets an error: as a job of its own it would repeat everything.
    shop.remove("revenue");
    shop.daily("total", SQL, "");
    let refused = shop.opened().await.err().unwrap().to_string();
    assert!(refused.contains("is a former name of the job `revenue`"), "{refused}");
    assert_eq!(written(&shop).await, ["2020-06-09 total", "2020-06-10 revenue"]);
}
