//! Concurrent work: two windows, two jobs, steps that read each other's rows, and a constant reader.

use std::time::Duration;

use refrain::{Ask, Did, RunReport};
use tokio::sync::watch;

use crate::warehouse::{MODES, daily, tables, warehouse, well, window, written};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

#[both_databases]
async fn each_mode_asked_for_twice_at_once_is_done_once(database: TestDatabase) {
    let shop = warehouse(database).await;
    let refrain = shop.open().await;
    for mode in MODES {
        let run = window(mode);
        for (ask, before) in [(Ask::Once, 0), (Ask::Again, 1)] {
            let (one, other) = tokio::join!(refrain.run(&run, ask), refrain.run(&run, ask));
            let reports = [one.unwrap(), other.unwrap()];
            assert!(reports.iter().all(RunReport::is_done), "{mode}: {reports:?}");
            let executed = reports.iter().filter(|report| report.did == Did::Ran).count() as u64;
            let attempt = refrain.show(&run).await.unwrap().unwrap().attempt;
            assert_eq!(attempt, before + executed, "{mode}: an attempt for each report that says so");
            assert!(executed == 1 || (ask == Ask::Again && executed == 2), "{mode}: {reports:?}");
        }
        let both = written(&shop, mode).await;
        well(&shop, &run, Ask::Again).await;
        assert_eq!(written(&shop, mode).await, both, "{mode}");
    }
    refrain.close().await;
}

#[both_databases]
async fn rows_do_not_double_when_two_projects_overwrite_the_same_rows_at_once(database: TestDatabase) {
    let one = warehouse(database).await;
    let other = TestProject::of(TestDatabase::like(&one.database).await);
    let store = if one.database.is_sqlite() { "sqlite:other.db".to_owned() } else { other.database.url() };
    other.settings_of("other", &store, &format!("shop = \"{}\"", one.database.url()));
    for shop in [&one, &other] {
        daily(
            shop,
            "overwrite",
            r#"
                query = "select day, region, amount from orders where day = :ds"
                [publish]
                table = "revenue"
                mode = "overwrite"
                owns = "day = :ds"
            "#,
        );
    }
    let (here, there) = (one.open().await, other.open().await);
    for _ in 0..10 {
        let run = window("overwrite");
        let (first, second) = tokio::join!(here.run(&run, Ask::Again), there.run(&run, Ask::Again));
        assert!(first.unwrap().is_done() && second.unwrap().is_done());
        assert_eq!(written(&one, "overwrite").await.len(), 4);
    }
    here.close().await;
    there.close().await;
}

#[both_databases]
async fn two_jobs_at_once_add_to_one_number_and_merge_into_one_table(database: TestDatabase) {
    let shop = warehouse(database).await;
    for job in ["one", "other"] {
        daily(
            &shop,
            job,
            r#"
                query = "select region, -sum(amount) as amount from orders where day = :ds group by region"
                [publish]
                table = "stock"
                mode = "apply-delta"
                key = ["region"]
                columns = ["amount"]
            "#,
        );
        daily(
            &shop,
            &format!("merge-{job}"),
            &format!(
                r#"
                    query = "select :ds as day, '{job}' as region, 1 as amount union all select :ds, 'both', 2"
                    [publish]
                    table = "regions"
                    mode = "merge"
                    key = ["day", "region"]
                "#
            ),
        );
    }
    let refrain = shop.open().await;
    for _ in 0..5 {
        let runs = ["one", "other", "merge-one", "merge-other"].map(|job| format!("{job}@2026-06-09"));
        let [one, other, merged, too] = runs.each_ref().map(|run| refrain.run(run, Ask::Again));
        let (one, other, merged, too) = tokio::join!(one, other, merged, too);
        for report in [one, other, merged, too] {
            let report = report.unwrap();
            assert!(report.is_done(), "{:?}", report.run.message);
        }
    }
    refrain.close().await;
    assert_eq!(written(&shop, "delta").await, ["asia 1000 c", "eu 940 a", "us 972 b"]);
    let merged = ["2026-06-09 both 2 null", "2026-06-09 one 1 null", "2026-06-09 other 1 null"];
    assert_eq!(written(&shop, "merge").await, merged);
}

#[both_databases]
async fn two_jobs_at_once_append_and_land_as_if_one_followed_the_other(database: TestDatabase) {
    let jobs = |shop: &TestProject| {
        for job in ["one", "other"] {
            daily(
                shop,
                &format!("append-{job}"),
                r#"
                    query = "select day, region, sum(amount) as amount from orders where day = :ds group by day, region"
                    [publish]
                    table = "sales"
                    mode = "append-once"
                    key = ["day", "region"]
                "#,
            );
            daily(
                shop,
                &format!("land-{job}"),
                r#"
                    query = "select day, region, amount from orders where day = :ds"
                    [publish]
                    table = "raw"
                    mode = "land"
                "#,
            );
        }
    };
    let runs =
        ["append-one", "append-other", "land-one", "land-other"].map(|job| format!("{job}@2026-06-09"));
    let clean = warehouse(TestDatabase::like(&database).await).await;
    jobs(&clean);
    for run in &runs {
        well(&clean, run, Ask::Once).await;
    }
    let shop = warehouse(database).await;
    jobs(&shop);
    let refrain = shop.open().await;
    for _ in 0..5 {
        let [one, other, landed, too] = runs.each_ref().map(|run| refrain.run(run, Ask::Again));
        let (one, other, landed, too) = tokio::join!(one, other, landed, too);
        for report in [one, other, landed, too] {
            let report = report.unwrap();
            assert!(report.is_done(), "{:?}", report.run.message);
        }
    }
    refrain.close().await;
    for mode in ["append", "land"] {
        assert_eq!(written(&shop, mode).await, written(&clean, mode).await, "{mode}");
    }
    let kept = "select source || ' ' || cast(count(*) as text) from raw group by source order by 1";
    assert_eq!(
        shop.rows(kept).await,
        ["land-one@2026-06-09T00:00:00Z 4", "land-other@2026-06-09T00:00:00Z 4"]
    );
    assert_eq!(written(&shop, "append").await.len(), 2 * 2, "each job has appended its own rows");
}

#[both_databases]
async fn two_steps_that_append_the_same_keys_are_independent(database: TestDatabase) {
    let shop = TestProject::of(database);
    tables(&shop).await;
    shop.execute("create table lines (id integer, day date); create table heads (id integer, day date)")
        .await;
    let step = |table: &str| {
        format!(
            "[[step]]\nquery = \"select id, day from orders where day = :ds\"
             publish = {{ table = \"{table}\", mode = \"append-once\", key = [\"id\"] }}\n"
        )
    };
    daily(&shop, "steps", &format!("{}{}", step("lines"), step("heads")));
    for _ in 0..2 {
        well(&shop, "steps@2026-06-09", Ask::Again).await;
        let rows =
            "select cast(count(*) as text) from lines union all select cast(count(*) as text) from heads";
        assert_eq!(shop.rows(rows).await, ["4", "4"]);
    }
}

#[both_databases]
async fn a_queued_run_replaces_only_its_own_delta(database: TestDatabase) {
    let shop = TestProject::of(database);
    tables(&shop).await;
    shop.job(
        "adjust",
        r#"
            queue = true
            query = "select cast(:payload.region as text) as region, cast(:payload.by as integer) as amount"
            [publish]
            table = "stock"
            mode = "apply-delta"
            key = ["region"]
            columns = ["amount"]
        "#,
    );
    let refrain = shop.open().await;
    for (key, payload) in [("1", r#"{"region":"eu","by":5}"#), ("2", r#"{"region":"us","by":3}"#)] {
        refrain.enqueue_json("adjust", key, Some(payload)).await.unwrap();
        for _ in 0..2 {
            assert!(refrain.run(&format!("adjust#{key}"), Ask::Again).await.unwrap().is_done());
        }
    }
    refrain.close().await;
    assert_eq!(written(&shop, "delta").await, ["asia 1000 c", "eu 1005 a", "us 1003 b"]);
}

#[both_databases]
async fn steps_of_one_database_are_published_together_or_not_at_all(database: TestDatabase) {
    let shop = TestProject::of(database);
    tables(&shop).await;
    let steps = |check: &str| {
        format!(
            r#"
                [[step]]
                query = "select day, region, amount from orders where day = :ds"
                publish = {{ table = "revenue", mode = "overwrite", owns = "day = :ds" }}
                [[step]]
                query = "select day, region, sum(amount) as amount from revenue where day = :ds group by day, region"
                publish = {{ table = "regions", mode = "merge", key = ["day", "region"], check = ["{check}"] }}
            "#
        )
    };
    daily(&shop, "steps", &steps("count(*) > 2"));
    let text = crate::warehouse::fails(&shop, "steps@2026-06-09").await;
    assert!(text.contains("`check` does not hold"), "{text}");
    assert!(
        written(&shop, "overwrite").await.is_empty(),
        "the first step is not committed without the second"
    );
    daily(&shop, "steps", &steps("count(*) = 2"));
    well(&shop, "steps@2026-06-09", Ask::Again).await;
    assert_eq!(written(&shop, "overwrite").await.len(), 4);
    assert_eq!(written(&shop, "merge").await, ["2026-06-09 eu 30 null", "2026-06-09 us 14 null"]);
}

#[both_databases]
async fn m7_a_constant_reader_sees_all_old_or_all_new_rows(database: TestDatabase) {
    let shop = warehouse(database).await;
    shop.execute("delete from orders").await;
    let series = shop.either(
        "with recursive n (i) as (select 1 union all select i + 1 from n where i < 2000) select i from n",
        "select i from generate_series(1, 2000) as n (i)",
    );
    let fill = |amount: u32| {
        format!("insert into orders select i, '2026-06-09', 'r' || i, {amount} from ({series}) as s")
    };
    shop.execute(&fill(1)).await;
    daily(
        &shop,
        "overwrite",
        r#"
            query = "select day, region, amount from orders where day = :ds"
            [publish]
            table = "revenue"
            mode = "overwrite"
            owns = "day = :ds"
        "#,
    );
    well(&shop, &window("overwrite"), Ask::Once).await;
    let refrain = shop.open().await;
    let (over, is_over) = watch::channel(false);
    let reader = async {
        let mut seen = std::collections::BTreeSet::new();
        while !*is_over.borrow() {
            let sums = "select cast(count(*) as text) || ' ' || cast(min(amount) as text) \
                 || ' ' || cast(max(amount) as text) from revenue";
            seen.extend(shop.rows(sums).await);
            tokio::task::yield_now().await;
        }
        seen
    };
    let writer = async {
        for amount in 2..8 {
            shop.execute("delete from orders").await;
            shop.execute(&fill(amount)).await;
            assert!(refrain.run(&window("overwrite"), Ask::Again).await.unwrap().is_done());
        }
        over.send(true).unwrap();
    };
    let (seen, ()) =
        tokio::time::timeout(Duration::from_mins(2), Box::pin(async { tokio::join!(reader, writer) }))
            .await
            .unwrap();
    assert!(seen.len() > 1, "{seen:?}");
    let is_whole = |row: &String| (1..8).any(|amount| *row == format!("2000 {amount} {amount}"));
    assert!(seen.iter().all(is_whole), "{seen:?}");
    refrain.close().await;
}
