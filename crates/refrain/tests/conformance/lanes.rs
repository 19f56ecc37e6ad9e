//! `while-running`: the windows of one lane run one after another, and the lane is freed however a
//! run ends.

use refrain_harness::every_store;
use std::sync::Arc;
use std::time::Duration;

use refrain::admin::{Cancelling, QueuePosition};
use refrain::core::retry::{Backoff, Retry};
use refrain::{Ask, CatchUp, Definition, Did, Error, JobError, Patience, WhileRunning};

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{
    Gate, Seen, daily, is_sound, job, june, open, run_states, short, shown, timetable,
};

/// Backs off for hours, so that only a test lets an attempt begin again; two tries.
const RETRY: Retry =
    Retry { attempts: 2, backoff: Backoff { min: Duration::from_hours(1), max: Duration::from_hours(3) } };

/// Daily windows: the first of June always fails, the others wait at the gate.
fn uneven(gate: &Gate, seen: &Seen) -> Definition {
    let (gate, seen) = (gate.clone(), seen.clone());
    let work = job("report", move |run| {
        let (gate, day) = (gate.clone(), short(run.key()));
        seen.push(format!("{day} {}", run.attempt()));
        async move {
            if day == "06-01" {
                return Err(JobError::new("not yet"));
            }
            gate.pass().await;
            Ok(())
        }
    });
    work.timetable(daily()).catch_up(CatchUp::All).retry(RETRY)
}

/// Lets every waiting attempt begin.
async fn time_passes(database: &TestDatabase) {
    database.store("update refrain_delayed set wake_at = 0").await;
}

#[every_store]
async fn windows_of_a_lane_run_one_after_another_the_oldest_first(database: TestDatabase) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let (held, text) = (gate.clone(), seen.clone());
    let work = job("report", move |run| {
        text.push(format!("begin {}", short(run.key())));
        let (gate, text) = (held.clone(), text.clone());
        async move {
            gate.pass().await;
            text.push(format!("end {}", short(run.key())));
            Ok(())
        }
    });
    let refrain = open(&database, [work.timetable(daily()).catch_up(CatchUp::All)]).await;
    refrain.open_due(june("04T06:00")).await.unwrap();
    assert_eq!(shown(&refrain, "report@2020-06-01").await.place, Some(QueuePosition::Queued));
    assert_eq!(shown(&refrain, "report@2020-06-02").await.place, Some(QueuePosition::BehindItsLane));
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick_at(june("04T06:00")).await.unwrap() }
    });
    for _ in 0..3 {
        gate.have_begun(1).await;
        assert_eq!(gate.waiting(), 0, "one at a time");
        gate.let_through(1);
    }
    assert_eq!(running.await.unwrap().ended, 3);
    let expected = ["06-01", "06-02", "06-03"].map(|day| [format!("begin {day}"), format!("end {day}")]);
    assert_eq!(seen.all(), expected.concat());
    is_sound(&refrain).await;
}

#[every_store]
async fn a_lane_is_free_after_a_failure_and_after_a_cancellation(database: TestDatabase) {
    let seen = Seen::default();
    let text = seen.clone();
    let work = job("report", move |run| {
        let day = short(run.key());
        text.push(day.clone());
        async move { if day == "06-01" { Err(JobError::for_good("no data")) } else { Ok(()) } }
    });
    let refrain = open(&database, [work.timetable(daily()).catch_up(CatchUp::All)]).await;
    refrain.open_due(june("05T06:00")).await.unwrap();
    assert_eq!(
        refrain.cancel("report@2020-06-03").await.unwrap(),
        Cancelling::Cancelled,
        "it waits in the lane"
    );
    refrain.tick_at(june("05T06:00")).await.unwrap();
    assert_eq!(seen.all(), ["06-01", "06-02", "06-04"]);
    let expected = ["06-01 failed 1", "06-02 done 1", "06-03 cancelled 1", "06-04 done 1"];
    assert_eq!(run_states(&refrain, "report").await, expected);

    refrain.open_due(june("07T06:00")).await.unwrap();
    assert_eq!(refrain.cancel("report@2020-06-05").await.unwrap(), Cancelling::Cancelled, "it held the lane");
    refrain.tick_at(june("07T06:00")).await.unwrap();
    assert_eq!(run_states(&refrain, "report").await[4..], ["06-05 cancelled 1", "06-06 done 1"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_run_in_back_off_leaves_its_lane_and_returns_oldest_first(database: TestDatabase) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let refrain = open(&database, [uneven(&gate, &seen)]).await;
    refrain.open_due(june("04T06:00")).await.unwrap();
    let ticking = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick_at(june("04T06:00")).await.unwrap() }
    });
    gate.have_begun(1).await;
    assert_eq!(seen.all(), ["06-01 1", "06-02 1"], "the window after the one that backs off runs meanwhile");
    assert!(matches!(shown(&refrain, "report@2020-06-01").await.place, Some(QueuePosition::Delayed(_))));
    assert_eq!(shown(&refrain, "report@2020-06-02").await.place, Some(QueuePosition::Running));
    is_sound(&refrain).await;

    time_passes(&database).await;
    refrain.open_due(june("04T06:00")).await.unwrap();
    assert_eq!(shown(&refrain, "report@2020-06-01").await.place, Some(QueuePosition::BehindItsLane));
    let why = refrain.why("report@2020-06-01").await.unwrap();
    assert!(why.causes[0].to_string().contains("waits for report@2020-06-02"), "{}", why.causes[0]);
    is_sound(&refrain).await;
    gate.let_through(2);
    ticking.await.unwrap();
    assert_eq!(seen.all()[2..], ["06-01 2", "06-03 1"], "the oldest window goes first");
    assert_eq!(
        run_states(&refrain, "report").await,
        ["06-01 failed 2", "06-02 done 1", "06-03 done 1"],
        "waiting for the lane gave it no further try"
    );
    is_sound(&refrain).await;
}

#[every_store]
async fn a_delayed_run_of_an_older_store_that_holds_its_lane_is_queued_when_due(database: TestDatabase) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let refrain = open(&database, [uneven(&gate, &seen)]).await;
    refrain.open_due(june("03T06:00")).await.unwrap();
    // An older release left the lane with the run that backs off, and the next window behind it.
    for statement in [
        "insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane)
             select run, 0, line, attempt, spent, suspicion, lane from refrain_queue",
        "delete from refrain_queue",
    ] {
        assert_eq!(database.store(statement).await, 1, "{statement}");
    }
    is_sound(&refrain).await;
    refrain.open_due(june("03T06:00")).await.unwrap();
    assert_eq!(shown(&refrain, "report@2020-06-01").await.place, Some(QueuePosition::Queued));
    assert_eq!(shown(&refrain, "report@2020-06-02").await.place, Some(QueuePosition::BehindItsLane));
    is_sound(&refrain).await;
    gate.let_through(1);
    refrain.tick_at(june("03T06:00")).await.unwrap();
    assert_eq!(seen.all(), ["06-01 1", "06-02 1"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_run_cancelled_in_back_off_does_not_free_the_lane_of_another(database: TestDatabase) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let refrain = open(&database, [uneven(&gate, &seen)]).await;
    let ticking = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick_at(june("04T06:00")).await.unwrap() }
    });
    gate.have_begun(1).await;
    assert_eq!(refrain.cancel("report@2020-06-01").await.unwrap(), Cancelling::Cancelled);
    assert_eq!(
        shown(&refrain, "report@2020-06-03").await.place,
        Some(QueuePosition::BehindItsLane),
        "of 06-02"
    );
    is_sound(&refrain).await;
    gate.let_through(2);
    ticking.await.unwrap();
    assert_eq!(run_states(&refrain, "report").await, ["06-01 cancelled 2", "06-02 done 1", "06-03 done 1"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_caller_waiting_for_a_lane_learns_why_and_gives_up_in_time(database: TestDatabase) {
    let (gate, heard) = (Gate::closed(), Seen::default());
    let refrain = open(&database, [gate.job("report").timetable(daily()).catch_up(CatchUp::All)]).await;
    let elsewhere = open(&database, [gate.job("report").timetable(daily()).catch_up(CatchUp::All)]).await;
    let holder = tokio::spawn(async move { elsewhere.run("report@2020-06-01", Ask::Once).await.unwrap() });
    gate.have_begun(1).await;
    for (at, (run, rule)) in
        [("report@2020-06-02", "lane-held"), ("report@2020-06-01", "running")].into_iter().enumerate()
    {
        let patience = Patience::of(Duration::from_millis(400));
        let report = refrain.run_within(run, Ask::Once, &patience).await.unwrap();
        assert_eq!((report.did, report.is_done()), (Did::GaveUp, false), "{run}");
        assert_eq!(report.waits_for.unwrap().rule(), rule);

        // The other one waits until it learns the reason.
        let (listener, waiting) = (heard.clone(), refrain.clone());
        let waiting = tokio::spawn(async move {
            let patience = Patience::endless().telling(move |cause| listener.push(cause.to_string()));
            waiting.run_within(run, Ask::Once, &patience).await
        });
        eventually("it is told", DEADLINE, async || heard.all().len() > at).await;
        waiting.abort();
        assert!(waiting.await.is_err_and(|error| error.is_cancelled()), "{run}: it goes on waiting");
    }
    let heard = heard.all();
    assert_eq!(heard.len(), 2, "each is told once: {heard:?}");
    assert!(
        heard[0].contains("waits for report@2020-06-01") && heard[0].contains("is running by worker"),
        "{heard:?}"
    );
    assert!(heard[1].starts_with("report@2020-06-01 is running: worker"), "{heard:?}");
    assert_eq!(
        shown(&refrain, "report@2020-06-02").await.place,
        Some(QueuePosition::BehindItsLane),
        "it stays queued"
    );
    gate.let_through(2);
    assert!(holder.await.unwrap().is_done());
    assert!(refrain.run("report@2020-06-02", Ask::Once).await.unwrap().is_done());
    is_sound(&refrain).await;
}

#[every_store]
async fn a_waiting_caller_runs_the_queue_before_it_and_that_time_is_free(database: TestDatabase) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let (passing, text) = (gate.clone(), seen.clone());
    let slow = job("report", move |run| {
        let (gate, seen) = (passing.clone(), text.clone());
        async move {
            seen.push(short(run.key()));
            gate.pass().await;
            Ok(())
        }
    });
    let refrain = open(&database, [slow.timetable(daily()).catch_up(CatchUp::All)]).await;
    refrain.open_due(june("03T06:00")).await.unwrap();
    let asked = tokio::spawn({
        let refrain = refrain.clone();
        // It waits for other processes for no time at all, but as long as needed for work that it does itself.
        async move {
            refrain.run_within("report@2020-06-02", Ask::Once, &Patience::of(Duration::from_nanos(1))).await
        }
    });
    gate.have_begun(1).await;
    gate.let_through(1);
    gate.have_begun(1).await;
    gate.let_through(1);
    assert_eq!(asked.await.unwrap().unwrap().did, Did::Ran);
    assert_eq!(seen.all(), ["06-01", "06-02"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_window_before_the_start_of_its_job_is_run_only_if_it_has_a_row(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("report").timetable(daily())]).await;
    let refused = refrain.run("report@2020-05-31", Ask::Once).await.unwrap_err();
    assert!(matches!(refused, Error::BeforeStart { .. }) && refused.is_usage(), "{refused}");
    assert!(refused.to_string().contains("is before the `start` of its job, 2020-06-01"), "{refused}");
    refrain.close().await;
    let earlier = timetable("0 0 * * *", "day", "2020-05-30");
    let refrain = open(&database, [seen.job("report").timetable(earlier)]).await;
    assert!(
        refrain.run("report@2020-05-31", Ask::Once).await.unwrap().is_done(),
        "what the error says helps"
    );
    refrain.close().await;
    let refrain = open(&database, [seen.job("report").timetable(daily())]).await;
    let again = refrain.run("report@2020-05-31", Ask::Again).await.unwrap();
    assert_eq!((again.did, again.attempt), (Did::Ran, 2), "it has a row");
    assert_eq!(seen.all().iter().filter(|day| *day == "05-31").count(), 2);
}

#[every_store]
async fn while_running_skip_leaves_a_row_that_says_so(database: TestDatabase) {
    let gate = Gate::closed();
    let work = gate.job("report").timetable(daily()).catch_up(CatchUp::All);
    let refrain = Arc::new(open(&database, [work.while_running(WhileRunning::Skip)]).await);
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick_at(june("02T00:01")).await.unwrap() }
    });
    gate.have_begun(1).await;
    let report = refrain.open_due(june("03T00:01")).await.unwrap();
    assert_eq!((report.opened, report.skipped), (0, 1));
    let skipped = shown(&refrain, "report@2020-06-02").await;
    assert!(skipped.message.unwrap().contains("another run of this job was running"));
    gate.let_through(1);
    running.await.unwrap();
    gate.let_through(1);
    refrain.tick_at(june("04T00:01")).await.unwrap();
    assert_eq!(run_states(&refrain, "report").await, ["06-01 done 1", "06-02 skipped 0", "06-03 done 1"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn while_running_allow_lets_windows_run_beside_each_other(database: TestDatabase) {
    let gate = Gate::closed();
    let work = gate.job("report").timetable(daily()).catch_up(CatchUp::All);
    let refrain = open(&database, [work.while_running(WhileRunning::Allow)]).await;
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick_at(june("05T00:01")).await.unwrap() }
    });
    gate.have_begun(4).await;
    gate.let_through(4);
    assert_eq!(running.await.unwrap().ended, 4);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_window_run_by_hand_waits_for_its_lane(database: TestDatabase) {
    let gate = Gate::closed();
    let work = gate.job("report").timetable(daily()).catch_up(CatchUp::All);
    let refrain = open(&database, [work.while_running(WhileRunning::Skip)]).await;
    let first = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.run("report@2020-06-03", Ask::Once).await.unwrap() }
    });
    gate.have_begun(1).await;
    let second = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.run("report@2020-06-01", Ask::Once).await.unwrap() }
    });
    eventually("the older window waits", DEADLINE, async || {
        let run = refrain.show("report@2020-06-01").await.unwrap();
        run.is_some_and(|run| run.place == Some(QueuePosition::BehindItsLane))
    })
    .await;
    gate.let_through(2);
    assert!(first.await.unwrap().is_done() && second.await.unwrap().is_done());
    is_sound(&refrain).await;
}
