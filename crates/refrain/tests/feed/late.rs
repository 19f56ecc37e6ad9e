//! A worker is stopped with a call in flight and continues after another one has taken its run
//! over.
//!
//! Where the store is a SQLite file, a worker that takes over ends a stopped holder, which may have
//! the file locked. It never continues, so most of these tests run on a server only.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use refrain::Ask;
use refrain::project::Project;
use rustix::process::Signal;
use tokio::task::JoinHandle;

use crate::calls::{FINE, calling, in_doubt};
use crate::receiver::{Heard, Receiver, Reply};
use crate::sync::{RUN, Sync, lines, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::SETTINGS;

/// The lease also expires by the clock of the stopped worker, as these tests need.
const LEASE: (&str, &str) = ("PROJECT_LEASE", "4000");
/// A stopped worker is looked at twice, a third of this lease apart, before its runs are taken over.
const TAKES_OVER: (&str, &str) = ("PROJECT_LEASE", "3000");

/// Another worker takes the run over, and finds the only unit in doubt.
async fn taken_over(sync: &Sync) {
    let became = sync.ask_with(&["run", RUN], &[TAKES_OVER]).await.0;
    assert!(!became.ends_with(" 1"), "{became}");
    assert_eq!(in_doubt(sync).await, ["invoice:1"]);
}

/// The operator has checked the receiver, which got no request, and has the unit sent again.
async fn sent_again_by_a_person(sync: &Sync) {
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.unpark(RUN, "invoice:1").await.unwrap(), 1);
    refrain.close().await;
    assert!(sync.run().await.0.contains(" done "));
}

/// A worker is stopped at a failpoint between its reservation and the first byte, until another one has done the run.
async fn stopped_at(database: TestDatabase, place: &str, weak: &str) -> Vec<String> {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "parallel = 1").await;
    sync.source(lines(1..=1));
    sync.prepare().await;
    let failpoints = format!("{place}=1*return(stop);{weak}");
    let mut first = sync.shop.process(&["run", RUN], &[("FAILPOINTS", &failpoints), LEASE]);
    eventually("it has stopped", DEADLINE, async || sync.shop.lines("struck") == [place]).await;
    taken_over(&sync).await;
    assert_eq!(receiver.ids().len(), 0, "nothing was sent yet");
    sent_again_by_a_person(&sync).await;
    first.signal(Signal::CONT);
    first.finish().await;
    receiver.ids()
}

#[both_databases]
async fn f12_a_worker_stopped_before_the_first_byte_sends_nothing_after_its_lease(database: TestDatabase) {
    for place in ["call.reserved", "call.connected"] {
        assert_eq!(stopped_at(TestDatabase::like(&database).await, place, "").await, ["1"], "{place}");
    }
}

#[both_databases]
async fn f23_a_reservation_by_an_attempt_of_the_same_number_is_in_doubt(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "parallel = 1").await;
    sync.source(lines(1..=1));
    sync.prepare().await;
    let stop = ("FAILPOINTS", "call.reserved=1*return(stop)");
    let mut first = sync.shop.process(&["run", RUN], &[stop, ("PROJECT_LEASE", "60000")]);
    eventually("it has stopped", DEADLINE, async || sync.shop.lines("struck") == ["call.reserved"]).await;
    // The store has lost the commit of the claim, and assigns the same number again.
    sync.shop.at_the_store("update refrain_queue set lease = null, nonce = 0").await;
    let became = sync.run().await.0;
    assert!(became.ends_with(" 1"), "{became}");
    assert_eq!((receiver.ids(), in_doubt(&sync).await), (Vec::new(), vec!["invoice:1".to_owned()]));
    first.signal(Signal::KILL);
    first.finish().await;
}

#[tokio::test]
async fn without_the_last_lease_check_a_request_is_sent_twice() {
    for place in ["call.reserved", "call.connected"] {
        let heard = stopped_at(TestDatabase::postgres().await, place, "call.unlooked=return(weak)").await;
        assert_eq!(heard, ["1", "1"], "{place}");
    }
}

/// A worker whose request has arrived is stopped, its run is taken over, and then its request is answered.
async fn answered_after_a_takeover(failpoints: &str) -> (Sync, Receiver, ChildProcess) {
    let receiver = Receiver::answering(|heard| match heard.id() {
        "1" => Reply::When(2, 200),
        _ => FINE(heard),
    })
    .await;
    let sync = calling(TestDatabase::postgres().await, &receiver, "", "parallel = 1").await;
    sync.source(lines(1..=1));
    sync.prepare().await;
    let first = sync.shop.process(&["run", RUN], &[("FAILPOINTS", failpoints), LEASE]);
    receiver.until(1).await;
    first.signal(Signal::STOP);
    taken_over(&sync).await;
    (sync, receiver, first)
}

#[tokio::test]
async fn f12_an_answer_that_comes_after_a_takeover_ends_the_doubt() {
    for (ending, is_known) in [
        ("", true),
        ("unit-late.before-commit=return(kill)", false),
        ("unit-late.after-commit=return(kill)", true),
        ("unit-late.reply=1*return(lost)", true),
    ] {
        let (sync, receiver, mut first) = answered_after_a_takeover(ending).await;
        receiver.nod().await;
        first.signal(Signal::CONT);
        first.finish().await;
        assert_eq!(sync.shop.lines("struck").len(), usize::from(!ending.is_empty()), "{ending}");
        assert_eq!(in_doubt(&sync).await.is_empty(), is_known, "{ending}");
        let expected = if is_known { " done " } else { " partial " };
        assert!(sync.again().await.0.contains(expected), "{ending}");
        assert_eq!(receiver.ids(), ["1", "nod"], "{ending}");
    }
}

#[tokio::test]
async fn f12_an_answer_after_a_manual_resend_is_recorded() {
    let (sync, receiver, mut first) = answered_after_a_takeover("").await;
    sent_again_by_a_person(&sync).await;
    first.signal(Signal::CONT);
    first.finish().await;
    assert_eq!(receiver.ids(), ["1", "1"]);
    let refrain = sync.shop.open().await;
    let unit = refrain.trace("invoice:1").await.unwrap().units.remove(0);
    refrain.close().await;
    let text = unit.message.unwrap_or_default();
    assert!(text.starts_with("attempt 1 of 2020-06-09") && text.contains("was answered late"), "{text}");
}

/// A worker in the same process takes over, so the old one is not killed first.
async fn taken_over_here(sync: &Sync) {
    sync.shop.expire().await;
    let project = Project::load(sync.shop.root()).unwrap();
    let lease = Duration::from_secs(3);
    let options = project.opening(None).await.unwrap().settings(SETTINGS.lease(lease));
    let refrain = options.open().await.unwrap();
    let report = refrain.run(RUN, Ask::Once).await.unwrap();
    assert_eq!(report.run.attempt, 2);
    refrain.close().await;
    project.close().await;
}

/// A worker of this process has `calls` calls in flight when its run is taken over. The task that is returned ends with
/// the attempt.
async fn calls_in_flight(database: TestDatabase, receiver: &Receiver, calls: u32) -> (Sync, JoinHandle<()>) {
    let sync = calling(database, receiver, "", &format!("parallel = {calls}")).await;
    // A program would need a supervisor, which the test program is not.
    let job = sync.shop.lines("jobs/sync.toml").join("\n");
    let query = "query = \"select id, total from invoices\"";
    sync.shop.job("sync", &job.replace("command = [\"./list\"]\noutput = \"units\"", query));
    for id in 1..=calls {
        sync.shop.execute(&format!("insert into invoices (id, total) values ({id}, {id})")).await;
    }
    let first = sync.shop.open().await;
    let running = tokio::spawn(async move {
        drop(first.run(RUN, Ask::Once).await);
        first.close().await;
    });
    receiver.until(calls as usize).await;
    taken_over_here(&sync).await;
    assert_eq!((receiver.ids(), in_doubt(&sync).await.len()), (texts(1..=calls), calls as usize));
    (sync, running)
}

#[both_databases]
async fn f12_of_two_answers_after_a_takeover_the_success_counts(database: TestDatabase) {
    let refused = |heard: &Heard| if heard.id() == "4" { Reply::When(7, 422) } else { Reply::When(7, 200) };
    let receiver = Receiver::answering(refused).await;
    let (sync, running) = calls_in_flight(database, &receiver, 6).await;
    // All of them are answered at once.
    receiver.nod().await;
    running.await.unwrap();
    assert_eq!(in_doubt(&sync).await, ["invoice:4"], "a late answer may confirm, but not refuse");
}

#[both_databases]
async fn f12_every_late_answer_is_recorded(database: TestDatabase) {
    let one_by_one = |heard: &Heard| match heard.id() {
        "1" => Reply::When(3, 200),
        "2" => Reply::When(4, 200),
        _ => FINE(heard),
    };
    let receiver = Receiver::answering(one_by_one).await;
    let (sync, running) = calls_in_flight(database, &receiver, 2).await;
    receiver.nod().await;
    eventually("the first is known", DEADLINE, async || in_doubt(&sync).await == ["invoice:2"]).await;
    receiver.nod().await;
    running.await.unwrap();
    assert_eq!(in_doubt(&sync).await, Vec::<String>::new());
}

#[both_databases]
async fn f9_the_result_of_a_call_is_recorded_however_often_recording_fails(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "parallel = 1").await;
    sync.source(lines(1..=1));
    sync.prepare().await;
    let away = [("FAILPOINTS", "outside-done.away=12*return(lost)")];
    assert!(sync.shop.done_with(&["run", RUN], &away).await.starts_with("did Ran done 1"));
    assert_eq!(sync.shop.lines("struck").len(), 12);
    assert_eq!((receiver.ids().len(), in_doubt(&sync).await.len()), (1, 0));
}

#[tokio::test]
async fn f12_an_older_attempt_does_not_overwrite_the_result_of_a_newer_one() {
    let sync = Sync::of(TestDatabase::postgres().await).await;
    sync.job(
        "command = [\"./list\"]\noutput = \"units\"",
        "database = \"shop\"",
        "command = [\"true\"]\nparallel = 1",
        "",
    );
    sync.source(lines(1..=1));
    sync.prepare().await;
    let stop = ("FAILPOINTS", "outside-done.away=1*return(stop)");
    let mut first = sync.shop.process(&["run", RUN], &[stop, ("PROJECT_LEASE", "60000")]);
    eventually("it has stopped", DEADLINE, async || !sync.shop.lines("struck").is_empty()).await;
    // It still believes in its lease, so only the fence keeps it out.
    sync.shop.execute("update refrain.workers set expires_at = 1").await;
    sync.source(["{\"id\":1,\"total\":11}"]);
    eventually("another one has done it", DEADLINE, async || {
        sync.ask_with(&["run", RUN], &[TAKES_OVER]).await.0.contains(" done ")
    })
    .await;
    first.signal(Signal::CONT);
    first.finish().await;
    let refrain = sync.shop.open().await;
    let unit = refrain.trace("invoice:1").await.unwrap().units.remove(0);
    refrain.close().await;
    assert_eq!(unit.attempt, Some(2));
}

/// One run has sent a request and waits; the operator has the unit sent again by another run. Then the first one is
/// answered.
async fn answered_beside_another(database: TestDatabase, first: u16, second: Reply) -> (Sync, Receiver) {
    let (count, is_silent) = (AtomicUsize::new(0), matches!(second, Reply::Silence));
    let receiver =
        Receiver::answering(move |heard| match (heard.id(), count.fetch_add(1, Ordering::SeqCst)) {
            ("1", 0) => Reply::When(3, first),
            ("1", _) => second.clone(),
            _ => FINE(heard),
        })
        .await;
    let top = "while-running = \"allow\"";
    let sync = calling(database, &receiver, top, "per = \"ever\"\nparallel = 1").await;
    sync.source(lines(1..=1));
    sync.prepare().await;
    let patient = [("PROJECT_LEASE", "60000")];
    let mut one = sync.shop.process(&["run", "sync@2020-06-08"], &patient);
    receiver.until(1).await;
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.unpark("sync@2020-06-08", "invoice:1").await.unwrap(), 1);
    refrain.close().await;
    let mut other = sync.shop.process(&["run", RUN], &patient);
    receiver.until(2).await;
    if is_silent {
        receiver.nod().await;
        one.finish().await;
        other.signal(Signal::KILL);
        other.finish().await;
    } else {
        other.finish().await;
        receiver.nod().await;
        one.finish().await;
    }
    (sync, receiver)
}

#[both_databases]
async fn f12_a_refusal_to_one_run_does_not_settle_the_request_of_another(database: TestDatabase) {
    let (sync, _receiver) = answered_beside_another(database, 422, Reply::Silence).await;
    assert_eq!(in_doubt(&sync).await, ["invoice:1"]);
}

#[both_databases]
async fn f12_a_missing_answer_to_one_run_doubts_nothing_that_another_did(database: TestDatabase) {
    let (sync, receiver) = answered_beside_another(database, 502, Reply::Status(200, String::new())).await;
    assert_eq!((in_doubt(&sync).await, sync.left().await), (Vec::new(), Vec::new()));
    assert_eq!(receiver.ids(), ["1", "1", "nod"]);
}

/// On PostgreSQL only: SQLite has one writer at a time. A reservation waits for a row that another run has reserved
/// meanwhile.
#[tokio::test]
async fn f12_a_unit_reserved_meanwhile_by_another_run_is_not_sent() {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(TestDatabase::postgres().await, &receiver, "", "per = \"ever\"\nparallel = 1").await;
    sync.source(lines(1..=1));
    sync.run().await;
    sync.shop.execute("update refrain.units set status = 'parked', failures = 0").await;
    let job = sync.shop.lines("jobs/sync.toml").join("\n");
    sync.shop.job("sync", &format!("version = 2\n{job}"));
    sync.prepare().await;
    let TestDatabase::Postgres { pool, .. } = &sync.shop.database else { unreachable!() };
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("select key from refrain.units for update").execute(&mut *holder).await.unwrap();
    let mut process = sync.shop.process(&["run", RUN, "--again"], &[("PROJECT_LEASE", "60000")]);
    let waiting = "select cast(pid as text) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%refrain.units%'";
    eventually("it waits for the row", DEADLINE, async || !sync.shop.rows(waiting).await.is_empty()).await;
    let reserved =
        "update refrain.units set sent = 9000000000000000, fence = -1, message = 'in doubt: begun'";
    sqlx::query(reserved).execute(&mut *holder).await.unwrap();
    holder.commit().await.unwrap();
    process.finish().await;
    assert_eq!((receiver.ids(), in_doubt(&sync).await), (vec!["1".to_owned()], vec!["invoice:1".to_owned()]));
}

/// The commit of a reservation is in flight when its reply is lost: a trigger waits at its end, and the network is cut.
#[tokio::test]
async fn f4_an_attempt_recognizes_its_own_reservation_in_commit() {
    use refrain_harness::proxy::Proxy;
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(TestDatabase::postgres().await, &receiver, "", "parallel = 1").await;
    sync.source(lines(1..=2));
    sync.prepare().await;
    let url = sync.shop.database.url();
    let network = Proxy::in_front_of(&url).await;
    let name = sync.shop.rows("select cast(current_database() as text)").await.remove(0);
    sync.shop.settings(&url, &format!("shop = \"{}\"", network.url(&name)));
    sync.shop
        .execute(
            "create function hold() returns trigger language plpgsql as
                 $$ begin perform pg_advisory_xact_lock(77); return null; end $$;
             create constraint trigger hold after insert or update on refrain.units
                 deferrable initially deferred for each row when (new.sent is not null) \
                 execute function hold()",
        )
        .await;
    let TestDatabase::Postgres { pool, .. } = &sync.shop.database else { unreachable!() };
    let mut holder = pool.acquire().await.unwrap();
    sqlx::query("select pg_advisory_lock(77)").execute(&mut *holder).await.unwrap();
    let mut process = sync.shop.process(&["run", RUN], &[("PROJECT_LEASE", "60000")]);
    let waiting = |what: &str| {
        format!(
            "select cast(pid as text) from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock' and wait_event {what} 'advisory'"
        )
    };
    let [committing, next] = ["=", "<>"].map(waiting);
    eventually("a commit is in flight", DEADLINE, async || !sync.shop.rows(&committing).await.is_empty())
        .await;
    network.cut_all().await;
    eventually("the next try waits for it", DEADLINE, async || !sync.shop.rows(&next).await.is_empty()).await;
    sqlx::query("select pg_advisory_unlock(77)").execute(&mut *holder).await.unwrap();
    let output = process.finish().await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("did Ran done 1"), "{text}");
    assert_eq!((receiver.ids(), in_doubt(&sync).await), (vec!["1".to_owned(), "2".to_owned()], Vec::new()));
}
