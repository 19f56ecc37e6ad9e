//! Each mode, repeated.

use refrain::Ask;

use crate::warehouse::{MODES, daily, warehouse, well, window, written};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

#[both_databases]
async fn m4_each_mode_done_ten_times_leaves_what_one_clean_run_leaves(database: TestDatabase) {
    let shop = warehouse(database).await;
    for mode in MODES {
        well(&shop, &window(mode), Ask::Once).await;
        let clean = written(&shop, mode).await;
        assert!(clean.len() >= 2, "{mode}: {clean:?}");
        for _ in 0..9 {
            well(&shop, &window(mode), Ask::Again).await;
        }
        assert_eq!(written(&shop, mode).await, clean, "{mode}");
    }
    assert_eq!(written(&shop, "delta").await, ["asia 1000 c", "eu 970 a", "us 986 b"]);
    assert_eq!(written(&shop, "merge").await, ["2026-06-09 eu 30 1", "2026-06-09 us 14 1"]);
}

#[both_databases]
async fn each_mode_replaces_or_keeps_rows_when_its_source_changes(database: TestDatabase) {
    let shop = warehouse(database).await;
    for mode in MODES {
        well(&shop, &window(mode), Ask::Once).await;
        well(&shop, &format!("{mode}@2026-06-08"), Ask::Once).await;
    }
    shop.execute(
        "delete from orders where region = 'us'; update orders set amount = 11 where id = 2; \
         insert into orders values (6, '2026-06-09', 'asia', 3)",
    )
    .await;
    for mode in MODES {
        well(&shop, &window(mode), Ask::Again).await;
    }
    let amounts = |rows: Vec<String>| {
        rows.iter().map(|row| row.split(' ').take(3).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let replaced = ["2026-06-08 eu 5", "2026-06-09 asia 3", "2026-06-09 eu 31"];
    assert_eq!(amounts(written(&shop, "overwrite").await), replaced);
    assert_eq!(amounts(written(&shop, "merge").await), replaced);
    let appended = ["2026-06-08 eu 5", "2026-06-09 asia 3", "2026-06-09 eu 30", "2026-06-09 us 14"];
    assert_eq!(amounts(written(&shop, "append").await), appended, "appended rows stay");
    let stock = ["asia 997 c", "eu 964 a", "us 1000 b"];
    assert_eq!(written(&shop, "delta").await, stock, "a key that vanished counts as nothing");
    assert_eq!(written(&shop, "land").await.len(), 1 + 4 + 2, "landed rows stay");
}

#[both_databases]
async fn m25_rows_landed_in_three_windows_are_one_row_each_without_duplicates(database: TestDatabase) {
    let shop = warehouse(database).await;
    daily(
        &shop,
        "land",
        r#"
            query = "select region, amount from orders where day = '2026-06-09'"
            [publish]
            table = "raw"
            mode = "land"
        "#,
    );
    for day in ["2026-06-07", "2026-06-08", "2026-06-09"] {
        well(&shop, &format!("land@{day}"), Ask::Once).await;
        well(&shop, &format!("land@{day}"), Ask::Again).await;
    }
    assert_eq!(written(&shop, "land").await.len(), 3 * 4, "two rows with the same content stay two rows");
    let distinct = "select cast(count(distinct content_hash) as text) from raw";
    assert_eq!(shop.rows(distinct).await, ["3"]);
}

#[both_databases]
async fn m27_a_row_says_which_version_computed_it(database: TestDatabase) {
    let shop = warehouse(database).await;
    for mode in ["overwrite", "merge"] {
        well(&shop, &window(mode), Ask::Once).await;
        let text = std::fs::read_to_string(shop.root().join(format!("jobs/{mode}.toml"))).unwrap();
        shop.job(mode, &format!("version = 2\n{text}"));
        well(&shop, &format!("{mode}@2026-06-08"), Ask::Once).await;
        let versions = |rows: Vec<String>| {
            rows.iter().map(|row| row.rsplit(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(versions(written(&shop, mode).await), ["2", "1", "1"], "{mode}");
        well(&shop, &window(mode), Ask::Again).await;
        assert_eq!(versions(written(&shop, mode).await), ["2", "2", "2"], "{mode}");
    }
}

#[both_databases]
async fn a_window_without_rows_deletes_the_rows_it_owned(database: TestDatabase) {
    let shop = warehouse(database).await;
    shop.remove("overwrite");
    daily(
        &shop,
        "empty",
        r#"
            query = "select day, region, amount from orders where day = :ds"
            [publish]
            table = "revenue"
            mode = "overwrite"
            owns = "day = :ds"
        "#,
    );
    shop.execute(
        "insert into revenue (day, region, amount) values ('2026-06-01', 'old', 1), \
         ('2026-06-02', 'other', 1)",
    )
    .await;
    well(&shop, "empty@2026-06-01", Ask::Once).await;
    assert_eq!(written(&shop, "overwrite").await, ["2026-06-02 other 1 null null"]);
}

#[both_databases]
async fn two_windows_add_to_one_number_and_each_replaces_only_its_own_delta(database: TestDatabase) {
    let shop = warehouse(database).await;
    well(&shop, "delta@2026-06-08", Ask::Once).await;
    well(&shop, "delta@2026-06-09", Ask::Once).await;
    shop.execute("update stock set amount = amount - 100 where region = 'eu'").await;
    shop.execute("update orders set amount = 6 where id = 1").await;
    well(&shop, "delta@2026-06-08", Ask::Again).await;
    assert_eq!(
        written(&shop, "delta").await,
        ["asia 1000 c", "eu 864 a", "us 986 b"],
        "what others did stays"
    );
}

#[both_databases]
async fn insert_missing_creates_a_row_for_a_delta(database: TestDatabase) {
    let shop = warehouse(database).await;
    shop.execute("delete from stock where region = 'us'").await;
    daily(
        &shop,
        "delta",
        r#"
            query = "select region, -sum(amount) as amount from orders where day = :ds group by region"
            [publish]
            table = "stock"
            mode = "apply-delta"
            key = ["region"]
            columns = ["amount"]
            insert-missing = true
        "#,
    );
    for _ in 0..2 {
        well(&shop, &window("delta"), Ask::Again).await;
        assert_eq!(written(&shop, "delta").await, ["asia 1000 c", "eu 970 a", "us -14 null"]);
    }
}

#[both_databases]
async fn a_qualified_table_name_finds_the_deltas_of_the_plain_name(database: TestDatabase) {
    let shop = warehouse(database).await;
    well(&shop, &window("delta"), Ask::Once).await;
    let text = std::fs::read_to_string(shop.root().join("jobs/delta.toml")).unwrap();
    shop.job("delta", &text.replace("\"stock\"", shop.either("\"main.stock\"", "\"public.stock\"")));
    well(&shop, &window("delta"), Ask::Again).await;
    assert_eq!(written(&shop, "delta").await, ["asia 1000 c", "eu 970 a", "us 986 b"]);
}

#[both_databases]
async fn two_spellings_of_one_key_are_refused_on_sqlite_and_one_row_on_postgres(database: TestDatabase) {
    let shop = warehouse(database).await;
    let (kind, same) = (shop.either("text collate nocase", "numeric"), shop.either("'EU'", "1.0"));
    let first = shop.either("'eu'", "1");
    shop.execute(&format!(
        "create table levels (k {kind} primary key, n integer); insert into levels values ({first}, 100)"
    ))
    .await;
    let job = |value: &str, amount: u32| {
        format!(
            r#"
                query = "select {value} as k, {amount} as n"
                [publish]
                table = "levels"
                mode = "apply-delta"
                key = ["k"]
                columns = ["n"]
            "#
        )
    };
    daily(&shop, "level", &job(first, 5));
    well(&shop, "level@2026-06-09", Ask::Once).await;
    daily(&shop, "level", &job(same, 7));
    let report = shop.run("level@2026-06-09", Ask::Again).await;
    let level = shop.rows("select cast(n as text) from levels").await.concat();
    let outcome = if report.is_done() { "done" } else { "refused" };
    let expected = shop.either("refused 105", "done 107");
    assert_eq!(format!("{outcome} {level}"), expected, "{:?}", report.run.message);
}

#[both_databases]
async fn per_ever_appends_a_row_once_over_all_windows(database: TestDatabase) {
    for (per, expected) in [("window", 2), ("ever", 1)] {
        let shop = warehouse(TestDatabase::like(&database).await).await;
        daily(
            &shop,
            "append",
            &format!(
                r#"
                    query = "select 'eu' as region, 1 as amount"
                    [publish]
                    table = "sales"
                    mode = "append-once"
                    key = ["region"]
                    per = "{per}"
                "#
            ),
        );
        for day in ["2026-06-08", "2026-06-09"] {
            well(&shop, &format!("append@{day}"), Ask::Once).await;
        }
        assert_eq!(written(&shop, "append").await.len(), expected, "{per}");
    }
}
