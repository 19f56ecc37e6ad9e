//! Calls without a recorded end are in doubt, and are sent again only if the job or the operator
//! says so.

use std::collections::BTreeSet;

use refrain::admin::Settlement;
use rustix::process::Signal;

use crate::calls::{FINE, but, calling, in_doubt, keys};
use crate::receiver::{Receiver, Reply};
use crate::sync::{LEASE, RUN, Sync, lines, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};

/// The failpoints at which a worker with two calls in flight dies, with the least and the most calls that are then in
/// doubt.
/// The receiver drops a call only where its doubt is recorded: elsewhere that doubt, when recorded first, would be a
/// third.
const PLACES: [(&str, usize, usize); 8] = [
    ("unit-reserve.before-commit", 0, 0),
    ("unit-reserve.after-commit", 2, 2),
    ("call.reserved", 2, 2),
    ("call.answered", 2, 2),
    ("unit-apply.before-commit", 2, 2),
    ("unit-apply.after-commit", 0, 1),
    ("unit-doubt.before-commit", 1, 2),
    ("unit-doubt.after-commit", 1, 2),
];

/// Two units in doubt are sent again, one after the other: the receiver gets the first, and answers when the test
/// nods.
async fn sent_again(database: TestDatabase) -> (Receiver, Sync, ChildProcess) {
    let receiver = Receiver::answering(|_| Reply::Cut).await;
    let unit = "parallel = 1\nin-doubt = \"provider-key\"\nprovider-ttl = \"1h\"";
    let sync = calling(database, &receiver, "", unit).await;
    sync.source(lines(1..=2));
    sync.run().await;
    assert_eq!(in_doubt(&sync).await, ["invoice:1", "invoice:2"]);
    receiver.answers(|heard| if heard.id() == "nod" { FINE(heard) } else { Reply::When(4, 200) });
    let process = sync.shop.process(&["run", RUN], &[LEASE]);
    receiver.until(3).await;
    (receiver, sync, process)
}

#[both_databases]
async fn f1_killed_anywhere_each_call_is_made_once_or_in_doubt(database: TestDatabase) {
    for (place, least, most) in PLACES {
        let cut_off = if place.starts_with("unit-doubt") { "2" } else { "none" };
        let receiver = Receiver::answering(but(cut_off, Reply::Cut)).await;
        let sync = calling(TestDatabase::like(&database).await, &receiver, "", "parallel = 2").await;
        sync.killed(&format!("{place}=return(kill)")).await;
        receiver.answers(FINE);
        let mut became = String::new();
        for _ in 0..4 {
            became = sync.run().await.0;
            if became.contains(" done ") || became.contains(" partial ") {
                break;
            }
        }
        let (heard, doubt) = (receiver.ids(), in_doubt(&sync).await);
        assert_eq!(heard.iter().collect::<BTreeSet<_>>().len(), heard.len(), "{place}: {heard:?}");
        for id in texts(1..=6) {
            let is_in_doubt = doubt.contains(&format!("invoice:{id}"));
            assert!(heard.contains(&id) || is_in_doubt, "{place}: {id} is lost: {heard:?} {doubt:?}");
        }
        assert!((least..=most).contains(&doubt.len()), "{place}: {doubt:?}");
        let expected = if doubt.is_empty() { "done" } else { "partial" };
        assert!(became.contains(expected), "{place}: {became}, {doubt:?}");
    }
}

#[both_databases]
async fn f4_with_the_reply_to_a_commit_lost_each_call_is_made_once(database: TestDatabase) {
    for place in ["unit-reserve", "unit-apply", "unit-doubt"] {
        let receiver = Receiver::answering(but("2", Reply::Cut)).await;
        let sync = calling(TestDatabase::like(&database).await, &receiver, "", "").await;
        sync.prepare().await;
        let failpoints = format!("{place}.reply=1*return(lost)");
        let message = sync.shop.done_with(&["run", RUN], &[("FAILPOINTS", &failpoints)]).await;
        assert!(message.starts_with("did Ran partial 1"), "{place}: {message}");
        assert_eq!(sync.shop.lines("struck"), [format!("{place}.reply")]);
        assert_eq!(receiver.ids(), texts(1..=6), "{place}");
        assert_eq!(sync.counts().await, [[5, 0, 0, 1]], "{place}");
        assert_eq!(in_doubt(&sync).await, ["invoice:2"], "{place}");
    }
}

#[both_databases]
async fn without_a_reservation_a_call_is_made_twice_unnoticed(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "parallel = 1").await;
    sync.killed("call.unreserved=return(weak);call.answered=return(kill)").await;
    assert!(sync.run().await.0.starts_with("Ran done"));
    assert_eq!(receiver.ids(), ["1", "1", "2", "3", "4", "5", "6"]);
    assert_eq!(in_doubt(&sync).await, Vec::<String>::new());
}

#[both_databases]
async fn an_idempotent_receiver_gets_the_same_request_again(database: TestDatabase) {
    for (ttl, hears) in [("1h", ["1", "1", "2"]), ("15s", ["1", "2", ""])] {
        let receiver = Receiver::answering(FINE).await;
        let unit = format!("parallel = 1\nin-doubt = \"provider-key\"\nprovider-ttl = \"{ttl}\"");
        let sync = calling(TestDatabase::like(&database).await, &receiver, "", &unit).await;
        sync.source(lines(1..=2));
        sync.killed("call.answered=return(kill)").await;
        for _ in 0..3 {
            sync.run().await;
        }
        // The receiver may have forgotten the key when a second request arrives: then the operator has to check.
        let hears: Vec<&str> = hears.into_iter().filter(|id| !id.is_empty()).collect();
        assert_eq!(receiver.ids(), hears, "{ttl}");
        assert_eq!(keys(&receiver, "1").len(), 1, "the same key and the same bytes");
        assert_eq!(in_doubt(&sync).await.len(), 3 - hears.len(), "{ttl}");
    }
}

#[both_databases]
async fn a_second_request_that_is_refused_leaves_the_first_one_in_doubt(database: TestDatabase) {
    let receiver = Receiver::answering(but("1", Reply::Cut)).await;
    let unit = "parallel = 1\nin-doubt = \"provider-key\"\nprovider-ttl = \"1h\"";
    let sync = calling(database, &receiver, "", unit).await;
    sync.run().await;
    receiver.answers(but("1", Reply::Status(429, String::new())));
    sync.run().await;
    assert_eq!(in_doubt(&sync).await, ["invoice:1"]);
    receiver.answers(FINE);
    assert!(sync.run().await.0.starts_with("Ran done"));
    assert_eq!((keys(&receiver, "1").len(), receiver.ids().len()), (1, 8));
}

#[both_databases]
async fn a_key_in_doubt_blocks_other_content_and_versions(database: TestDatabase) {
    for policy in ["hold", "at-least-once"] {
        let receiver = Receiver::answering(but("1", Reply::Cut)).await;
        let unit = format!("parallel = 1\nin-doubt = \"{policy}\"\n[cursor]");
        let sync =
            calling(TestDatabase::like(&database).await, &receiver, "retry = { attempts = 9 }", &unit).await;
        // Two pages in one attempt; then in the following ones.
        sync.source(["{\"id\":1,\"total\":10}", "{\"$cursor\":\"a\"}", "{\"id\":1,\"total\":11}"]);
        sync.run().await;
        let heard = keys(&receiver, "1").len();
        sync.source(["{\"id\":1,\"total\":13}"]);
        sync.run().await;
        let job = sync.shop.lines("jobs/sync.toml").join("\n");
        sync.shop.job("sync", &format!("version = 2\n{job}"));
        sync.run().await;
        assert_eq!((heard, keys(&receiver, "1").len()), (1, 1), "{policy}: {:?}", receiver.ids());
        assert_eq!(in_doubt(&sync).await, ["invoice:1"], "{policy}");
        receiver.answers(FINE);
        let refrain = sync.shop.open().await;
        assert_eq!(refrain.confirm_unit(RUN, "invoice:1").await.unwrap(), 1);
        refrain.close().await;
        assert!(sync.again().await.0.contains(" done "), "{policy}");
        assert_eq!(keys(&receiver, "1").len(), 2, "then its present content is sent");
    }
}

#[both_databases]
async fn settling_the_doubts_of_one_window_leaves_other_windows_in_doubt(database: TestDatabase) {
    let receiver = Receiver::answering(but("1", Reply::Cut)).await;
    let sync = calling(database, &receiver, "retry = { attempts = 1 }", "").await;
    for run in ["sync@2020-06-08", RUN] {
        sync.ask(&["run", run]).await;
    }
    assert_eq!(in_doubt(&sync).await, ["invoice:1", "invoice:1"]);
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.confirm_unit(RUN, "invoice:1").await.unwrap(), 1);
    refrain.close().await;
    assert_eq!(in_doubt(&sync).await, ["invoice:1"]);
    assert!(sync.again().await.0.contains(" done "));
    assert!(sync.ask(&["run", "sync@2020-06-08", "--again"]).await.0.contains(" partial "));
    assert_eq!(receiver.ids().len(), 12);
}

#[both_databases]
async fn a_request_sent_again_keeps_the_time_of_the_first_one(database: TestDatabase) {
    let receiver = Receiver::answering(|_| Reply::Cut).await;
    let sync = calling(database, &receiver, "", "").await;
    sync.source(lines(1..=1));
    let mut since = Vec::new();
    for _ in 0..2 {
        sync.run().await;
        let refrain = sync.shop.open().await;
        since.push(refrain.trace("invoice:1").await.unwrap().units[0].in_doubt_since.unwrap());
        assert_eq!(refrain.unpark(RUN, "invoice:1").await.unwrap(), 1);
        assert_eq!(
            refrain.trace("invoice:1").await.unwrap().units[0].in_doubt_since,
            None,
            "it has been decided"
        );
        refrain.close().await;
    }
    assert_eq!(receiver.ids(), ["1", "1"]);
    assert_eq!(since[0], since[1], "the receiver counts from there");
}

#[both_databases]
async fn an_interrupted_resend_stays_in_doubt(database: TestDatabase) {
    let receiver =
        Receiver::answering(|heard| if heard.id() == "nod" { FINE(heard) } else { Reply::When(2, 502) })
            .await;
    let sync = calling(database, &receiver, "", "").await;
    sync.source(lines(1..=1));
    sync.prepare().await;
    let mut process = sync.shop.process(&["run", RUN], &[LEASE]);
    receiver.until(1).await;
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.unpark(RUN, "invoice:1").await.unwrap(), 1);
    refrain.close().await;
    receiver.nod().await;
    assert!(process.finish().await.status.success());
    assert_eq!(in_doubt(&sync).await, ["invoice:1"]);
}

#[both_databases]
async fn a_unit_settled_meanwhile_is_not_sent_again(database: TestDatabase) {
    let (receiver, sync, mut process) = sent_again(database).await;
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.settle_units(RUN, &["invoice:2"], Settlement::Done).await.unwrap(), 1);
    refrain.close().await;
    receiver.nod().await;
    process.finish().await;
    assert_eq!(receiver.ids(), ["1", "1", "2", "nod"]);
    assert_eq!(in_doubt(&sync).await, Vec::<String>::new());
}

#[both_databases]
async fn a_request_whose_resend_limit_has_passed_is_not_sent_again(database: TestDatabase) {
    let (receiver, sync, mut process) = sent_again(database).await;
    let an_hour_passes = sync.shop.either(
        "update refrain_units set sent = sent - 3600000000 where key = 'invoice:2'",
        "update refrain.units set sent = sent - 3600000000 where key = 'invoice:2'",
    );
    sync.shop.execute(an_hour_passes).await;
    receiver.nod().await;
    process.finish().await;
    assert_eq!(receiver.ids(), ["1", "1", "2", "nod"], "the receiver may have forgotten its key");
    assert_eq!(in_doubt(&sync).await, ["invoice:2"]);
}

#[both_databases]
async fn at_least_once_sends_again_without_a_doubt(database: TestDatabase) {
    let receiver = Receiver::answering(but("1", Reply::Status(500, String::new()))).await;
    let sync = calling(database, &receiver, "", "in-doubt = \"at-least-once\"").await;
    sync.run().await;
    receiver.answers(FINE);
    assert!(sync.run().await.0.starts_with("Ran done"));
    assert_eq!(receiver.ids(), ["1", "1", "2", "3", "4", "5", "6"]);
}

#[both_databases]
async fn two_runs_with_the_same_unit_make_one_call(database: TestDatabase) {
    let receiver = Receiver::answering(|_| Reply::When(2, 200)).await;
    let sync =
        calling(database, &receiver, "while-running = \"allow\"", "per = \"ever\"\nparallel = 8").await;
    sync.source(lines(1..=40));
    sync.prepare().await;
    let mut processes = ["sync@2020-06-08", RUN].map(|run| sync.shop.process(&["run", run], &[LEASE]));
    for process in &mut processes {
        let output = process.finish().await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(receiver.ids().len(), 40, "{:?}", receiver.ids());
    assert_eq!(sync.left().await, Vec::<String>::new());
}

#[both_databases]
async fn calls_in_flight_at_the_timeout_are_awaited_and_recorded(database: TestDatabase) {
    let receiver = Receiver::answering(|_| Reply::Late(200)).await;
    let sync = calling(database, &receiver, "timeout = \"4s\"", "parallel = 2").await;
    assert_eq!(
        (sync.run().await.0, sync.last_message().await),
        ("Ran due 2".to_owned(), "timed out after 4s".to_owned())
    );
    assert_eq!(receiver.ids(), ["1", "2"], "no others were begun");
    assert_eq!(in_doubt(&sync).await, Vec::<String>::new());
    receiver.answers(FINE);
    assert!(sync.run().await.0.starts_with("Ran done"));
    assert_eq!(receiver.ids(), texts(1..=6));
}

/// The statement that reserves a unit, without its comparison with the row that was read.
fn weakened(sync: &Sync) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/unit/reserve.sql");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, _) = text.rsplit_once("\nwhere ").unwrap();
    let weak = format!("{before}\nwhere coalesce($11 >= 0, $12 = 0, $13 = 0, $14 = '', $15 = 0)\n");
    sync.shop.write("reserve.sql", &weak);
    format!("sql/unit/reserve.sql={}", sync.shop.root().join("reserve.sql").display())
}

/// One run is stopped after it has reserved and before it commits; another one of the same job waits for its row,
/// until the first continues. On SQLite there is one writer at a time, and nothing can happen between a read and its
/// write.
async fn met_in_the_middle(is_weak: bool) -> Vec<String> {
    let receiver = Receiver::answering(FINE).await;
    let (top, unit) = ("while-running = \"allow\"", "per = \"ever\"\nparallel = 1");
    let sync = calling(TestDatabase::postgres().await, &receiver, top, unit).await;
    sync.source(lines(1..=1));
    sync.prepare().await;
    let weak = if is_weak { weakened(&sync) } else { String::new() };
    let variables = [("REFRAIN_WEAKENED", weak.as_str()), ("PROJECT_LEASE", "60000")];
    let stop = [
        &variables[..],
        &[("FAILPOINTS", "unit-reserve.before-commit=1*return(stop);transaction.patient=return(weak)")],
    ]
    .concat();
    let mut first = sync.shop.process(&["run", "sync@2020-06-08"], &stop);
    eventually("the first one has stopped", DEADLINE, async || !sync.shop.lines("struck").is_empty()).await;
    let mut second = sync.shop.process(&["run", RUN], &variables);
    let waiting = "select cast(pid as text) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%refrain.units%'";
    eventually("the second one waits", DEADLINE, async || !sync.shop.rows(waiting).await.is_empty()).await;
    first.signal(Signal::CONT);
    for process in [&mut first, &mut second] {
        assert!(process.finish().await.status.success());
    }
    receiver.ids()
}

#[tokio::test]
async fn a_run_that_waited_for_a_reservation_finds_it_taken() {
    assert_eq!(met_in_the_middle(false).await, ["1"]);
}

#[tokio::test]
async fn without_the_comparison_both_runs_make_the_call() {
    assert_eq!(met_in_the_middle(true).await, ["1", "1"]);
}
