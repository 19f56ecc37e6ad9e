//! An import that starts over each night: the position of its cursor belongs to the window, and
//! changed invoices are applied.

use std::os::unix::process::ExitStatusExt as _;

use jiff::Timestamp;
use refrain::admin::CheckpointOf;
use rustix::process::Signal;

use crate::cursors::PAGES;
use crate::sync::{LEASE, RUN, Says, Sync, lines, rows, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const NIGHTLY: Says<'_> = Says { top: "", unit: "", more: "[cursor]\nper = \"window\"\n" };
const SECOND_NIGHT: &str = "sync@2020-06-10";

fn page(sync: &Sync, number: u32, lines: &[String]) {
    sync.shop.write(&format!("page-{number}"), &format!("{}\n", lines.join("\n")));
}

async fn nightly(database: TestDatabase) -> Sync {
    let sync = Sync::into_table(database, NIGHTLY).await;
    sync.shop.program("list", PAGES);
    for number in 1..=5 {
        page(&sync, number, &lines(3 * number - 2..=3 * number));
    }
    sync
}

/// Positions with their windows, the latest first.
async fn positions(sync: &Sync) -> Vec<String> {
    let refrain = sync.shop.open().await;
    let checkpoints = refrain.checkpoints(Some("sync")).await.unwrap();
    refrain.close().await;
    let line = |one: &refrain::admin::CheckpointRecord| format!("{} {}", one.window.unwrap(), one.position);
    checkpoints.iter().map(line).collect()
}

#[both_databases]
async fn m12_each_night_reads_the_whole_source_and_applies_changes(database: TestDatabase) {
    let sync = nightly(database).await;
    assert_eq!(sync.run().await.0, "Ran done 1");
    page(&sync, 2, &["{\"id\":4,\"total\":44}".to_owned(), lines(5..=6).join("\n")]);
    let (became, message) = sync.ask(&["run", SECOND_NIGHT]).await;
    assert_eq!(became, "Ran done 1", "{message}");
    assert_eq!(sync.shop.lines("log"), ["from 0", "from 0"], "the second night starts over");
    let mut expected = rows(1..=15);
    "4 44".clone_into(&mut expected[3]);
    assert_eq!(sync.invoices().await, expected);
    assert_eq!(
        sync.writes().await,
        [texts(1..=4), texts([4]), texts(5..=15)].concat(),
        "the other fourteen are deduplicated"
    );
    assert_eq!(positions(&sync).await, ["2020-06-10T00:00:00Z 5", "2020-06-09T00:00:00Z 5"]);
}

#[both_databases]
async fn m12_a_killed_night_resumes_and_the_next_one_starts_over(database: TestDatabase) {
    for failpoint in
        ["checkpoint.after-commit=1*off->return(kill)", "checkpoint.before-commit=2*off->return(kill)"]
    {
        let sync = nightly(TestDatabase::like(&database).await).await;
        sync.killed(failpoint).await;
        assert_eq!(positions(&sync).await, ["2020-06-09T00:00:00Z 2"], "{failpoint}");
        assert_eq!(sync.run().await.0, "Ran done 2", "{failpoint}");
        assert_eq!(sync.ask(&["run", SECOND_NIGHT]).await.0, "Ran done 1", "{failpoint}");
        assert_eq!(sync.shop.lines("log"), ["from 0", "from 2", "from 0"], "{failpoint}");
        assert_eq!(sync.writes().await, texts(1..=15), "{failpoint}");
    }
}

#[both_databases]
async fn a_malformed_line_of_one_night_survives_a_clean_night(database: TestDatabase) {
    let sync = nightly(database).await;
    page(&sync, 2, &["oops".to_owned(), lines(4..=6).join("\n")]);
    assert_eq!(sync.run().await.0, "Ran due 2");
    page(&sync, 2, &lines(4..=6));
    assert_eq!(sync.ask(&["run", SECOND_NIGHT]).await.0, "Ran done 1");
    let left = sync.left().await;
    assert!(left.len() == 1 && left[0].starts_with("$line:2020-06-09T00:00:00Z:"), "{left:?}");
}

#[both_databases]
async fn moving_the_cursor_of_a_window_needs_the_name_of_the_window(database: TestDatabase) {
    let sync = nightly(database).await;
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(sync.ask(&["run", SECOND_NIGHT]).await.0, "Ran done 1");
    let refrain = sync.shop.open().await;
    let window = refrain.window_start(SECOND_NIGHT).await.unwrap();
    assert_eq!(window, Some("2020-06-10T00:00:00Z".parse::<Timestamp>().unwrap()));
    let of = CheckpointOf::new("sync", "cursor").window(window);
    let unnamed = refrain.checkpoint_of("sync", "cursor", "", None).await.unwrap_err();
    let message =
        "each window of sync has a checkpoint `cursor` of its own\n  say which is meant: --window W";
    assert_eq!((unnamed.to_string().as_str(), unnamed.is_usage()), (message, true));
    assert_eq!(refrain.checkpoint_of("sync", "cursor", "", Some("2020-06-10")).await.unwrap(), of);
    assert_eq!(refrain.checkpoint_position(of).await.unwrap().as_deref(), Some("5"));
    let refused = refrain.set_checkpoint(of.window(None), "3", None).await.unwrap_err().to_string();
    assert!(
        refused.contains(
            "has a checkpoint `cursor` of its own\n  say which is meant: --window 2020-06-10T00:00:00Z"
        ),
        "{refused}"
    );
    refrain.set_checkpoint(of, "3", Some("5")).await.unwrap();
    refrain.close().await;
    assert_eq!(positions(&sync).await, ["2020-06-10T00:00:00Z 3", "2020-06-09T00:00:00Z 5"]);
    sync.ask(&["run", SECOND_NIGHT, "--again"]).await;
    assert_eq!(sync.shop.lines("log"), ["from 0", "from 0", "from 3"]);
}

#[both_databases]
async fn m12_a_kill_leaves_a_moved_cursor_at_its_old_or_its_new_place(database: TestDatabase) {
    let moved = ["set-checkpoint", RUN, "cursor", "3", "5"];
    for (when, position) in [("before-commit", 5), ("after-commit", 3)] {
        let sync = nightly(TestDatabase::like(&database).await).await;
        assert_eq!(sync.run().await.0, "Ran done 1");
        let failpoints = format!("set-checkpoint.{when}=return(kill)");
        let killed = sync.shop.process(&moved, &[("FAILPOINTS", &failpoints)]).wait().await;
        assert_eq!(killed.signal(), Some(Signal::KILL.as_raw()), "{when}");
        assert_eq!(positions(&sync).await, [format!("2020-06-09T00:00:00Z {position}")]);
        sync.shop.done(&moved).await;
        assert_eq!(positions(&sync).await, ["2020-06-09T00:00:00Z 3"], "{when}");
        sync.ask(&["run", RUN, "--again"]).await;
        assert_eq!(sync.shop.lines("log"), ["from 0", "from 3"], "{when}");
    }
    let sync = nightly(database).await;
    assert_eq!(sync.run().await.0, "Ran done 1");
    sync.shop.done_with(&moved, &[("FAILPOINTS", "set-checkpoint.reply=1*return(lost)")]).await;
    assert_eq!(sync.shop.lines("struck"), ["set-checkpoint.reply"]);
    assert_eq!(positions(&sync).await, ["2020-06-09T00:00:00Z 3"]);
}

#[both_databases]
async fn f2_a_redo_of_a_night_starts_at_its_first_page_even_after_a_kill(database: TestDatabase) {
    let sync = nightly(database).await;
    assert_eq!(sync.run().await.0, "Ran done 1");
    sync.shop.execute("delete from invoices where id in (2, 14)").await;
    let variables = [("FAILPOINTS", "checkpoint.after-commit=1*off->return(kill)"), LEASE];
    let killed = sync.shop.process(&["run", RUN, "--redo"], &variables).wait().await;
    assert_eq!(killed.signal(), Some(Signal::KILL.as_raw()));
    sync.shop.expire().await;
    assert_eq!(sync.run().await.0, "Ran done 3");
    assert_eq!(sync.invoices().await, rows(1..=15));
    assert_eq!(sync.shop.lines("log"), ["from 0"; 3]);
    assert_eq!(positions(&sync).await, ["2020-06-09T00:00:00Z 5"]);
}
