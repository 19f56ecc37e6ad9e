//! Another attempt of a run: requested in only one way, one at a time, and a done window stays done meanwhile.

use refrain_harness::every_store;
use std::time::Duration;

use refrain::admin::QueuePosition;
use refrain::core::state::RunOutcome;
use refrain::{Ask, CatchUp, Did, JobError};
use tokio::task::JoinSet;

use refrain_harness::TestDatabase;
use refrain_harness::work::{
    Gate, Seen, daily, history, is_sound, job, june, nothing, open, run_states, shown,
};

#[every_store]
async fn a_done_window_stays_done_while_it_is_computed_again(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("report").timetable(daily()).version(7)]).await;
    gate.let_through(1);
    refrain.run("report@2020-06-01", Ask::Once).await.unwrap();
    gate.have_begun(1).await;
    let again = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.run("report@2020-06-01", Ask::Again).await.unwrap() }
    });
    gate.have_begun(1).await;
    let run = shown(&refrain, "report@2020-06-01").await;
    assert!(run.standing.is_done() && run.standing.is_open());
    assert_eq!((run.attempt, run.version, run.place), (2, Some(7), Some(QueuePosition::Running)));
    gate.let_through(1);
    assert_eq!(again.await.unwrap().did, Did::Ran);
    assert_eq!(run_states(&refrain, "report").await, ["06-01 done 2"]);
    assert_eq!(history(&refrain, "report@2020-06-01").await, ["1 done"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_recompute_that_fails_leaves_a_failed_window(database: TestDatabase) {
    let work = job("report", |run| async move {
        if run.attempt() == 1 { Ok(()) } else { Err(JobError::for_good("the source is gone")) }
    });
    let refrain = open(&database, [work.timetable(daily())]).await;
    refrain.run("report@2020-06-01", Ask::Once).await.unwrap();
    let again = refrain.run("report@2020-06-01", Ask::Again).await.unwrap();
    assert_eq!(again.run.standing.outcome, Some(RunOutcome::Failed));
    assert_eq!(
        history(&refrain, "report@2020-06-01").await,
        ["1 done"],
        "that it was done once is not forgotten"
    );
}

#[every_store]
async fn a_second_request_for_an_open_attempt_follows_it(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("report").timetable(daily())]).await;
    let first = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.run("report@2020-06-01", Ask::Again).await.unwrap() }
    });
    gate.have_begun(1).await;
    let asked = Duration::from_millis(300);
    let second = tokio::time::timeout(asked, refrain.run("report@2020-06-01", Ask::Again)).await;
    assert!(second.is_err(), "it waits for the end of the first");
    assert_eq!(run_states(&refrain, "report").await, ["06-01 running 1"]);
    gate.let_through(1);
    assert!(first.await.unwrap().is_done());
    assert_eq!((gate.waiting(), run_states(&refrain, "report").await), (0, vec!["06-01 done 1".to_owned()]));
}

#[every_store]
async fn sixteen_simultaneous_requests_each_make_or_follow_an_attempt(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("report").timetable(daily())]).await;
    gate.let_through(1);
    refrain.run("report@2020-06-01", Ask::Once).await.unwrap();
    gate.have_begun(1).await;
    let mut asking = JoinSet::new();
    for _ in 0..16 {
        let refrain = refrain.clone();
        asking.spawn(async move { refrain.run("report@2020-06-01", Ask::Again).await.unwrap() });
    }
    gate.have_begun(1).await;
    gate.let_through(16);
    let reports = asking.join_all().await;
    let attempts = shown(&refrain, "report@2020-06-01").await.attempt - 1;
    let began = reports.iter().filter(|report| report.did == Did::Ran).count() as u64;
    assert!(reports.iter().all(|report| report.run.standing.is_done()), "also while it is computed again");
    assert_eq!(began, attempts, "each attempt has one caller, and all others followed one");
    is_sound(&refrain).await;
}

#[every_store]
async fn again_makes_a_planned_retry_now_instead_of_adding_one(database: TestDatabase) {
    let seen = Seen::default();
    let message = seen.clone();
    let work = job("flaky", move |run| {
        message.push(run.attempt().to_string());
        async move { if run.attempt() == 1 { Err(JobError::new("not yet")) } else { Ok(()) } }
    });
    let refrain = open(&database, [work]).await;
    refrain.enqueue("flaky", "a", &()).await.unwrap();
    refrain.tick().await.unwrap();
    let again = refrain.run("flaky#a", Ask::Again).await.unwrap();
    assert_eq!((again.did, again.is_done()), (Did::Ran, true));
    database.store("update refrain_delayed set wake_at = 0").await;
    refrain.tick().await.unwrap();
    assert_eq!(seen.all(), ["1", "2"]);
    assert_eq!(run_states(&refrain, "flaky").await, ["a done 2"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_skipped_or_failed_run_is_done_on_request_and_a_done_one_is_not(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("report").timetable(daily()).catch_up(CatchUp::None)]).await;
    refrain.tick_at(june("03T12:00")).await.unwrap();
    assert_eq!(run_states(&refrain, "report").await, ["06-01 skipped 0", "06-02 skipped 0"]);
    for expected in [Did::Ran, Did::Deduplicated] {
        assert_eq!(refrain.run("report@2020-06-01", Ask::Once).await.unwrap().did, expected);
    }
    assert_eq!(seen.all(), ["06-01"]);
    assert_eq!(run_states(&refrain, "report").await[0], "06-01 done 1");
    assert_eq!(history(&refrain, "report@2020-06-01").await, ["0 skipped"]);
}

#[every_store]
async fn a_run_of_one_process_can_be_followed_in_another(database: TestDatabase) {
    let gate = Gate::closed();
    let (here, there) =
        (open(&database, [gate.job("export")]).await, open(&database, [nothing("export")]).await);
    here.enqueue("export", "a", &()).await.unwrap();
    let running = tokio::spawn(async move { here.tick().await.unwrap() });
    gate.have_begun(1).await;
    let following = tokio::spawn(async move { there.run("export#a", Ask::Once).await.unwrap() });
    gate.let_through(1);
    let report = following.await.unwrap();
    assert!(report.is_done() && report.did != Did::Ran, "{:?}", report.did);
    assert_eq!(running.await.unwrap().ended, 1);
}
