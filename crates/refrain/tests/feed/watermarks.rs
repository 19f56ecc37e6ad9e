//! A source that is read from a point in time on: the watermark passes only applied units.

use crate::sync::{Says, Sync, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

/// Prints what was changed since the watermark, compared as text.
const SINCE: &str = r#"#!/bin/sh
echo "from [$REFRAIN_WATERMARK]" >> log
awk -F'"' -v from="$REFRAIN_WATERMARK" '$8 >= from' source
[ ! -e broken ]
"#;

const MARK: &str = "[watermark]\nfield = \"at\"\noverlap = \"10m\"\n";

fn line(id: u32, total: u32, at: &str) -> String {
    format!("{{\"id\":{id},\"total\":{total},\"at\":\"2020-06-09T{at}:00Z\"}}")
}

async fn since(database: TestDatabase) -> Sync {
    let sync = Sync::into_table(database, Says { more: MARK, ..Says::default() }).await;
    sync.shop.program("list", SINCE);
    sync
}

async fn next(sync: &Sync, day: u32) -> String {
    sync.ask(&["run", &format!("sync@2020-06-{day}")]).await.0
}

#[both_databases]
async fn m6_a_late_row_is_found_in_the_overlap_and_written_once(database: TestDatabase) {
    let sync = since(database).await;
    sync.source([line(1, 1, "11:00"), line(2, 2, "12:00")]);
    assert_eq!(next(&sync, 10).await, "Ran done 1");
    assert_eq!(sync.position().await, ["2020-06-09T12:00:00Z"]);
    sync.source([line(1, 1, "11:00"), line(3, 3, "11:55"), line(2, 2, "12:00"), line(4, 4, "13:00")]);
    assert_eq!(next(&sync, 11).await, "Ran done 1");
    assert_eq!(next(&sync, 12).await, "Ran done 1");
    assert_eq!(
        sync.shop.lines("log"),
        ["from []", "from [2020-06-09T11:50:00Z]", "from [2020-06-09T12:50:00Z]"]
    );
    assert_eq!(sync.position().await, ["2020-06-09T13:00:00Z"]);
    assert_eq!(sync.writes().await, texts(1..=4));
}

#[both_databases]
async fn i8_neither_a_failed_nor_a_killed_script_moves_the_watermark(database: TestDatabase) {
    let sync = since(database).await;
    sync.source([line(1, 1, "11:00")]);
    next(&sync, 10).await;
    sync.source([line(1, 1, "11:00"), line(2, 2, "12:00")]);
    sync.shop.write("broken", "");
    assert_eq!(next(&sync, 11).await, "Ran due 2");
    assert_eq!(sync.position().await, ["2020-06-09T11:00:00Z"], "it may have had more to print");
    assert_eq!(sync.writes().await, texts(1..=2));
    std::fs::remove_file(sync.shop.root().join("broken")).unwrap();
    assert_eq!(next(&sync, 11).await, "Ran done 2");
    assert_eq!(sync.position().await, ["2020-06-09T12:00:00Z"]);
    assert_eq!(sync.writes().await, texts(1..=2));
}

#[both_databases]
async fn a_unit_without_a_time_is_malformed_and_the_others_move_the_watermark(database: TestDatabase) {
    let sync = since(database).await;
    sync.source([line(1, 1, "11:00"), "{\"id\":2,\"total\":2,\"at\":\"soon\"}".to_owned()]);
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!(sync.position().await, ["2020-06-09T11:00:00Z"]);
    let left = sync.left().await;
    assert!(left[0].contains("parked line 2, column 24: `at` is \"soon\": expected a timestamp"), "{left:?}");
}

#[both_databases]
async fn no_watermark_passes_a_truncated_line(database: TestDatabase) {
    let sync = since(database).await;
    let long = format!(
        "{{\"id\":2,\"total\":2,\"at\":\"2020-06-09T11:30:00Z\",\"note\":\"{}\"}}",
        "x".repeat(2 * 1024 * 1024)
    );
    sync.source([line(1, 1, "11:00"), long, line(3, 3, "12:00")]);
    assert_eq!(next(&sync, 10).await, "Ran due 2");
    assert_eq!((sync.position().await, sync.writes().await), (Vec::<String>::new(), texts([1, 3])));
    sync.source([line(1, 1, "11:00"), line(2, 2, "11:30"), line(3, 3, "12:00")]);
    assert_eq!(next(&sync, 10).await, "Ran done 2");
    assert_eq!(sync.position().await, ["2020-06-09T12:00:00Z"]);
    assert_eq!(sync.writes().await, texts(1..=3), "it is read when it is short enough");
}
