//! A command for each unit: executed once, a few at a time, and retried only if it failed.

use std::collections::BTreeSet;

use sqlx::Executor;

use crate::sync::{LEASE, RUN, Sync, lines};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

/// Records its arguments.
const TELL: &str = r#"#!/bin/sh
echo "$1 $REFRAIN_UNIT_KEY $REFRAIN_IDEMPOTENCY_KEY $REFRAIN_UNIT" >> log
echo "seen $1"
[ ! -e "bad-$1" ] || { echo "this one is bad" >&2; exit 3; }
"#;

/// Counts how many run at once, and ends when all slots are in use.
const AT_ONCE: &str = r#"#!/bin/sh
: > "here-$1"
ls | grep -c ^here- >> at-once
until [ -e gate ]; do [ "$(wc -l < at-once)" -lt 3 ] || : > gate; sleep 0.01; done
rm "here-$1"
"#;

/// Prints its process id, and does not end by itself.
const LINGER: &str = "#!/bin/sh\necho \"$$\" >> log\nsleep 600\n";

/// Waits until it may end.
const WAIT: &str = "#!/bin/sh\necho \"$1\" >> log\nuntil [ -e gate ]; do sleep 0.01; done\n";

fn none_is_left(sync: &Sync) {
    for process in sync.shop.lines("log") {
        assert!(!std::path::Path::new(&format!("/proc/{process}")).exists(), "{process} is still there");
    }
}

/// Where the ledger of the units is: in the store, or in a database of the project.
const PLACES: [&str; 2] = ["", "database = \"shop\""];

async fn each(database: TestDatabase, top: &str, script: &str, unit: &str) -> Sync {
    let sync = Sync::of(database).await;
    sync.shop.program("apply", script);
    let unit = format!("command = [\"./apply\", \"{{id}}\"]\n{unit}");
    sync.job("command = [\"./list\"]\noutput = \"units\"", top, &unit, "");
    sync.source(lines(1..=6));
    sync
}

/// The ids that commands were executed for, in their order.
fn executed(sync: &Sync) -> Vec<String> {
    let mut ids: Vec<String> =
        sync.shop.lines("log").iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[both_databases]
async fn a_command_runs_once_per_unit_and_again_when_it_changes(database: TestDatabase) {
    for top in PLACES {
        let sync = each(TestDatabase::like(&database).await, top, TELL, "").await;
        let (became, log) = sync.run().await;
        assert_eq!(became, "Ran done 1", "{log}");
        let mut log: Vec<&str> = log.lines().collect();
        log.sort_unstable();
        assert_eq!(log[..2], ["invoice:1: seen 1", "invoice:2: seen 2"]);
        assert_eq!(sync.again().await.0, "Ran done 2");
        assert_eq!(executed(&sync), ["1", "2", "3", "4", "5", "6"]);
        sync.source(["{\"id\":1,\"total\":11}"]);
        assert_eq!(sync.again().await.0, "Ran done 3");
        assert_eq!(sync.counts().await, [[6, 0, 0, 0], [0, 0, 6, 0], [1, 0, 0, 0]]);
        let lines = sync.shop.lines("log");
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("1 invoice:1 ") && line.ends_with("{\"id\":1,\"total\":10}")),
            "{lines:?}"
        );
        let keys: BTreeSet<&str> = lines.iter().filter_map(|line| line.split(' ').nth(2)).collect();
        assert_eq!((lines.len(), keys.len()), (7, 7), "each content has a key of its own: {lines:?}");
    }
}

#[both_databases]
async fn m13_only_a_failed_command_runs_again(database: TestDatabase) {
    for top in PLACES {
        let sync = each(TestDatabase::like(&database).await, top, TELL, "").await;
        sync.shop.write("bad-4", "");
        assert_eq!(sync.run().await.0, "Ran due 2");
        assert_eq!(
            sync.last_message().await,
            "1 of 6 units are not applied: invoice:4: exit code 3\nthis one is bad"
        );
        std::fs::remove_file(sync.shop.root().join("bad-4")).unwrap();
        assert_eq!(sync.run().await.0, "Ran done 2");
        assert_eq!(executed(&sync), ["1", "2", "3", "4", "4", "5", "6"]);
        assert_eq!(sync.counts().await, [[5, 0, 0, 1], [1, 0, 5, 0]]);
        let fours = sync.shop.lines("log").into_iter().filter(|line| line.starts_with("4 "));
        assert_eq!(fours.collect::<BTreeSet<String>>().len(), 1, "its key is the same both times");
    }
}

#[both_databases]
async fn h5_never_more_commands_at_once_than_the_job_says(database: TestDatabase) {
    let sync = each(database, "", AT_ONCE, "parallel = 3").await;
    assert_eq!(sync.run().await.0, "Ran done 1");
    let most = sync.shop.lines("at-once").iter().map(|line| line.parse::<u32>().unwrap()).max();
    assert_eq!(most, Some(3));
    assert_eq!(sync.counts().await, [[6, 0, 0, 0]]);
}

#[both_databases]
async fn f2_a_unit_recorded_before_a_kill_is_not_executed_again(database: TestDatabase) {
    for top in PLACES {
        let sync = each(TestDatabase::like(&database).await, top, TELL, "parallel = 1").await;
        sync.killed("unit-apply.after-commit=1*off->return(kill)").await;
        assert_eq!(sync.run().await.0, "Ran done 2");
        let twice = executed(&sync);
        assert_eq!(&twice[..2], ["1", "2"]);
        // One may have been running.
        assert!(twice.len() <= 7, "{twice:?}");
        assert_eq!(twice.iter().collect::<BTreeSet<_>>().len(), 6);
    }
}

#[both_databases]
async fn a_missing_program_fails_the_job_and_no_unit(database: TestDatabase) {
    let sync = each(database, "", TELL, "").await;
    std::fs::remove_file(sync.shop.root().join("apply")).unwrap();
    let (became, message) = sync.ask(&["run", RUN]).await;
    assert_eq!(became, "Ran failed 1");
    assert!(message.contains("`./apply` could not be started"), "{message}");
}

#[both_databases]
async fn f42_after_a_timeout_no_process_of_a_unit_is_left(database: TestDatabase) {
    let sync = each(database, "timeout = \"2s\"", LINGER, "").await;
    assert_eq!(
        (sync.run().await.0, sync.last_message().await),
        ("Ran due 2".to_owned(), "timed out after 2s".to_owned())
    );
    none_is_left(&sync);
}

#[both_databases]
async fn f42_after_a_cancellation_no_process_of_a_unit_is_left(database: TestDatabase) {
    let sync = each(database, "", LINGER, "").await;
    sync.prepare().await;
    let mut process = sync.shop.process(&["run", RUN], &[LEASE]);
    eventually("as many as may be have begun", DEADLINE, async || sync.shop.lines("log").len() == 4).await;
    let refrain = sync.shop.open().await;
    refrain.cancel(RUN).await.unwrap();
    refrain.close().await;
    process.finish().await;
    assert_eq!(sync.shop.lines("log").len(), 4);
    none_is_left(&sync);
}

#[both_databases]
async fn a_failed_unit_is_not_executed_again_in_the_same_attempt(database: TestDatabase) {
    let sync = each(database, "", TELL, "").await;
    let unit = "command = [\"./apply\", \"{id}\"]";
    sync.job("command = [\"./list\"]\noutput = \"units\"", "", unit, "[cursor]\n");
    sync.shop.write("bad-4", "");
    let page = |token: &str| [lines([4]).concat(), format!("{{\"$cursor\":\"{token}\"}}")];
    sync.source([page("a"), page("b")].concat());
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!(executed(&sync), ["4"], "the source shows it on two pages");
    assert_eq!(sync.run().await.0, "Ran due 3");
    assert_eq!(executed(&sync), ["4", "4"]);
}

#[both_databases]
async fn a_unit_too_long_for_a_variable_fails_alone(database: TestDatabase) {
    let sync = each(database, "", TELL, "").await;
    let long = format!("{{\"id\":2,\"note\":\"{}\"}}", "x".repeat(130 * 1_024));
    sync.source([lines([1]).concat(), long, lines([3]).concat()]);
    assert_eq!(sync.run().await.0, "Ran due 2");
    let message = sync.last_message().await;
    assert!(
        message.contains("invoice:2: the unit has ") && message.contains("pass a reference, not the content"),
        "{message}"
    );
    assert_eq!(executed(&sync), ["1", "3"]);
}

/// Another run records other content under the key, uncommitted yet, when the command has ended.
#[tokio::test]
async fn an_execution_over_newer_content_is_recorded_and_not_repeated() {
    let sync = each(TestDatabase::postgres().await, "", WAIT, "").await;
    sync.source(lines(1..=1));
    sync.prepare().await;
    let mut process = sync.shop.process(&["run", RUN], &[LEASE]);
    eventually("the command is there", DEADLINE, async || executed(&sync) == ["1"]).await;
    let TestDatabase::Postgres { pool, .. } = &sync.shop.database else { unreachable!() };
    let mut other = pool.begin().await.unwrap();
    let record =
        "insert into refrain.units (ledger, key, fingerprint, at, version, failures, written, status)
        select id, 'invoice:1', 77, 1, 1, 0, true, 'applied' from refrain.ledgers where job = 'sync'";
    other.execute(record).await.unwrap();
    sync.shop.write("gate", "");
    let waiting = "select query from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()";
    eventually("its record waits", DEADLINE, async || sync.shop.rows(waiting).await.len() == 1).await;
    other.commit().await.unwrap();
    assert!(process.finish().await.status.success());
    assert_eq!(sync.again().await.0, "Ran done 2");
    assert_eq!(
        (executed(&sync), sync.counts().await),
        (vec!["1".to_owned()], vec![[1, 0, 0, 0], [0, 0, 1, 0]])
    );
}
