//! A paused job starts no run, and its windows are recorded.

use refrain::{Ask, CatchUp};
use refrain_harness::every_store;

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Gate, Seen, daily, is_sound, june, nothing, open, run_states, shown};

#[every_store]
async fn queued_runs_of_a_paused_job_wait_until_it_is_resumed(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("paused"), seen.job("other")]).await;
    assert!(refrain.pause("paused").await.unwrap());
    assert!(!refrain.pause("paused").await.unwrap(), "it is paused already");
    for job in ["paused", "other"] {
        refrain.enqueue(job, job, &()).await.unwrap();
    }
    assert_eq!(refrain.tick().await.unwrap().ended, 1);
    assert_eq!(seen.all(), ["other"]);
    assert!(refrain.resume("paused").await.unwrap());
    assert!(!refrain.resume("paused").await.unwrap());
    refrain.tick().await.unwrap();
    assert_eq!(seen.all(), ["other", "paused"]);
}

#[every_store]
async fn windows_skipped_by_a_pause_are_recorded_as_such(database: TestDatabase) {
    let refrain = open(&database, [nothing("report").timetable(daily()).catch_up(CatchUp::All)]).await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    refrain.pause("report").await.unwrap();
    let report = refrain.tick_at(june("05T00:01")).await.unwrap();
    assert_eq!((report.opened, report.skipped), (0, 3));
    assert_eq!(shown(&refrain, "report@2020-06-03").await.message.as_deref(), Some("the job is paused"));
    refrain.resume("report").await.unwrap();
    refrain.tick_at(june("06T00:01")).await.unwrap();
    let states = ["06-01 done 1", "06-02 skipped 0", "06-03 skipped 0", "06-04 skipped 0", "06-05 done 1"];
    assert_eq!(run_states(&refrain, "report").await, states);
    assert!(
        refrain.run("report@2020-06-03", Ask::Once).await.unwrap().is_done(),
        "the cancelled run is requested again"
    );
    is_sound(&refrain).await;
}

#[every_store]
async fn a_pause_lets_running_attempts_end_and_resume_acts_at_once(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("export")]).await;
    refrain.enqueue("export", "a", &()).await.unwrap();
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    gate.have_begun(1).await;
    refrain.pause("export").await.unwrap();
    refrain.enqueue("export", "b", &()).await.unwrap();
    gate.let_through(1);
    eventually("the running attempt is done", DEADLINE, async || {
        shown(&refrain, "export#a").await.standing.is_done()
    })
    .await;
    assert_eq!(gate.waiting(), 0, "nothing new began");
    refrain.resume("export").await.unwrap();
    gate.have_begun(1).await;
    gate.let_through(1);
    stop.drain();
    assert_eq!(serving.await.unwrap().ended, 2);
}
