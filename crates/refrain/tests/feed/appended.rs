//! Appended units: a key has one row for ever, and other content under it is noticed.

use refrain::core::Fingerprint;

use crate::sync::{RUN, Sync};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const COMMAND: &str = "command = [\"./list\"]\noutput = \"units\"";
const INTO: &str = r#"
    [publish]
    database = "shop"
    table = "events"
    mode = "append-once"
"#;

/// A shop whose units are appended to a table, with a unique key or without.
async fn events(database: TestDatabase, unique: &str) -> Sync {
    let sync = Sync::of(database).await;
    sync.shop.execute(&format!("create table events (id bigint {unique}, total integer)")).await;
    appends(&sync, "");
    sync
}

fn appends(sync: &Sync, unit: &str) {
    sync.job(COMMAND, "retry = { attempts = 1 }", unit, INTO);
}

async fn rows(sync: &Sync) -> Vec<String> {
    sync.shop
        .rows("select cast(id as text) || ' ' || cast(total as text) from events order by events.id, total")
        .await
}

fn unit(id: u32, total: u32) -> String {
    format!("{{\"id\":{id},\"total\":{total}}}")
}

#[both_databases]
async fn m4_other_content_under_a_known_key_is_an_error_and_adds_no_row(database: TestDatabase) {
    for (unique, message) in [("", "nothing said"), ("primary key", "on-change = \"reject\"")] {
        let sync = events(TestDatabase::like(&database).await, unique).await;
        if message.starts_with("on-change") {
            appends(&sync, message);
        }
        sync.source([unit(7, 10), unit(8, 10)]);
        assert_eq!(sync.run().await.0, "Ran done 1");
        for total in [20, 10, 20] {
            sync.source([unit(7, total), unit(8, 10)]);
            let (became, text) = sync.again().await;
            assert_eq!(rows(&sync).await, ["7 10", "8 10"], "{message}: {total}");
            let is_other = text.contains(
                "unit `invoice:7`: other content is recorded under this key, and on-change is \"reject\"",
            );
            assert_eq!(
                (became.starts_with("Ran failed"), is_other),
                (total == 20, total == 20),
                "{became}: {text}"
            );
        }
        assert_eq!(sync.left().await, Vec::<String>::new(), "the existing row stays applied");
    }
}

#[both_databases]
async fn m4_the_first_content_stays_where_the_job_says_so_and_a_suspect_is_shown(database: TestDatabase) {
    for unique in ["", "primary key"] {
        let sync = events(TestDatabase::like(&database).await, unique).await;
        appends(&sync, "on-change = \"first\"");
        sync.source([unit(7, 10)]);
        assert_eq!(sync.run().await.0, "Ran done 1");
        sync.source([unit(7, 20), unit(8, 10)]);
        assert_eq!(sync.again().await.0, "Ran done 2");
        assert_eq!(rows(&sync).await, ["7 10", "8 10"]);
        assert_eq!(sync.counts().await, [[1, 0, 0, 0], [1, 0, 1, 0]]);
        let refrain = sync.shop.open().await;
        let run = refrain.show(RUN).await.unwrap().unwrap();
        let dedupes = refrain.units(&run).await.unwrap().pop().unwrap().dedupes;
        assert!(refrain.why(RUN).await.unwrap().names("wide-key"));
        refrain.close().await;
        let suspects: Vec<_> = dedupes.iter().filter(|one| one.is_suspect).collect();
        assert_eq!((suspects.len(), suspects[0].keys.as_slice()), (1, &["invoice:7".to_owned()][..]));
    }
}

#[both_databases]
async fn m4_a_higher_version_adds_no_second_row(database: TestDatabase) {
    let sync = events(database, "").await;
    sync.source([unit(7, 10)]);
    sync.run().await;
    for version in [2, 3] {
        sync.job(COMMAND, &format!("version = {version}"), "", INTO);
        assert_eq!(sync.again().await.0, format!("Ran done {version}"));
        assert_eq!(rows(&sync).await, ["7 10"], "version {version}");
    }
    assert_eq!(sync.counts().await, [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]]);
}

#[both_databases]
async fn m4_content_that_was_never_appended_can_be_corrected(database: TestDatabase) {
    let sync = events(database, "check (id <> 7 or total <> 10)").await;
    sync.source([unit(7, 10), unit(8, 10)]);
    sync.run().await;
    assert_eq!(rows(&sync).await, ["8 10"]);
    sync.source([unit(7, 11), unit(8, 10)]);
    let (became, message) = sync.again().await;
    assert!(became.starts_with("Ran done"), "{became}: {message}");
    assert_eq!(rows(&sync).await, ["7 11", "8 10"], "there was no row under this key");
}

#[both_databases]
async fn m4_the_first_content_wins_even_after_a_later_one_failed(database: TestDatabase) {
    let sync = events(database, "primary key").await;
    appends(&sync, "on-change = \"first\"");
    sync.source([unit(7, 10)]);
    assert_eq!(sync.run().await.0, "Ran done 1");
    // The state that an older release left after it tried to append other content and violated the unique key.
    let units = sync.shop.either("refrain_units", "refrain.units");
    let other = Fingerprint::of_json(&unit(7, 20)).unwrap().to_number();
    sync.shop
        .execute(&format!(
            "update {units} set status = 'failed', failures = 1, fingerprint = {other}, input = '{}', \
         message = 'unique'",
            unit(7, 20)
        ))
        .await;
    sync.source([unit(7, 20)]);
    let (became, message) = sync.again().await;
    assert_eq!(became, "Ran done 2", "{message}");
    assert_eq!((rows(&sync).await, sync.left().await), (vec!["7 10".to_owned()], Vec::new()));
    assert_eq!(sync.again().await.0, "Ran done 3", "and stays so");
}

#[both_databases]
async fn m4_in_bulk_a_changed_row_is_a_failed_unit_and_the_others_are_written(database: TestDatabase) {
    let sync = events(database, "primary key").await;
    let into = format!("{INTO}key = [\"id\"]\nledger = false\n");
    sync.job(COMMAND, "retry = { attempts = 1 }", "", &into);
    sync.source([unit(7, 10), unit(8, 10)]);
    assert_eq!(sync.run().await.0, "Ran done 1");
    sync.source([unit(7, 20), unit(8, 10), unit(9, 10)]);
    let (became, message) = sync.again().await;
    assert_eq!(became, "Ran partial 2", "{message}");
    assert_eq!(rows(&sync).await, ["7 10", "8 10", "9 10"]);
    let left = sync.left().await;
    assert_eq!(left.len(), 1);
    assert!(
        left[0].contains("invoice:7") && left[0].contains("has a row with this key (id) and other content"),
        "{left:?}"
    );
}
