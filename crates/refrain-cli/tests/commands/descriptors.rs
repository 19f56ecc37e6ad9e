//! A process whose limit of open files is too low delays its runs, at no cost of attempts.

use std::process::Command;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use crate::support::{Desk, PROGRAM, output_of};

/// A limit at which the store can be opened and no command can be started; the test searches for it.
const LIMITS: std::ops::Range<usize> = 12..64;

/// Lets every delayed attempt begin.
async fn time_passes(desk: &Desk) {
    let file = SqliteConnectOptions::new().filename(desk.file("store.db"));
    let mut store = SqliteConnection::connect_with(&file).await.unwrap();
    store.execute("update refrain_delayed set wake_at = 0").await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_run_that_finds_no_file_descriptor_is_delayed_at_no_cost() {
    let desk = Desk::sqlite();
    for key in ["1", "2", "3"] {
        desk.enqueue("noop-once", key, "{}");
    }
    let mut has_struck = false;
    for limit in LIMITS {
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -n {limit}; exec {PROGRAM} tick")]).current_dir(desk.path());
        limited.env("REFRAIN_STORE", "sqlite:store.db");
        has_struck = output_of(&mut limited).stderr.contains("too many open files: attempts");
        if has_struck {
            break;
        }
        let runs = desk.refrain("--json runs --job noop-once").stdout;
        assert!(runs.contains("noop-once#3") && !runs.contains("failed"), "{limit}: {runs}");
    }
    assert!(has_struck, "no limit was too low for a command and enough for the store");
    time_passes(&desk).await;
    desk.refrain("tick").succeeds(&[" 0 failed"]);
    let runs = desk.refrain("--json runs --job noop-once").stdout;
    assert_eq!(runs.matches(r#""state":"done""#).count(), 3, "{runs}");
    desk.refrain("fsck").succeeds(&["0 findings"]);
}
