//! A job gets another name: its windows stay done, also while somebody still works under the old one.

use refrain::{Ask, Did};

use crate::both_databases;
use crate::shop::Shop;
use crate::support::TestDatabase;
use crate::support::work::is_sound;

const SQL: &str = "insert into totals values (:ds, :job)";

async fn shop(database: TestDatabase) -> Shop {
    let shop = Shop::of(database);
    shop.execute("create table totals (day date, job text)").await;
    shop.daily("total", SQL, "");
    shop
}

fn rename(shop: &Shop) {
    shop.remove("total");
    shop.daily("revenue", SQL, "formerly = \"total\"");
}

async fn written(shop: &Shop) -> Vec<String> {
    shop.rows("select cast(day as text) || ' ' || job from totals order by day").await
}

both_databases! {
    async fn windows_of_a_renamed_job_stay_done(database) {
        let shop = shop(database).await;
        shop.run("total@2020-06-09", Ask::Once).await;
        rename(&shop);
        assert_eq!(shop.run("revenue@2020-06-09", Ask::Once).await.did, Did::Deduplicated);
        assert!(shop.run("revenue@2020-06-09", Ask::Again).await.is_done());
        shop.run("revenue@2020-06-10", Ask::Once).await;
        assert_eq!(written(&shop).await, ["2020-06-09 total", "2020-06-10 revenue"]);
    }

    async fn a_process_that_works_under_the_old_name_writes_nothing_twice(database) {
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

        // One that is started with the old files is told so: a job of its own would do everything again.
        shop.remove("revenue");
        shop.daily("total", SQL, "");
        let refused = shop.opened().await.err().unwrap().to_string();
        assert!(refused.contains("`revenue` was called before"), "{refused}");
        assert_eq!(written(&shop).await, ["2020-06-09 total", "2020-06-10 revenue"]);
    }
}
