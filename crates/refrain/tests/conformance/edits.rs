//! An edited schedule: windows due under the old one belong to it, and windows of the two never
//! overlap.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use refrain::core::Timetable;
use refrain::{Ask, CatchUp, Definition, Did, Refrain, WhileRunning};
use refrain_harness::every_store;

use refrain_harness::TestDatabase;
use refrain_harness::work::{SETTINGS, Seen, daily, is_sound, june, open, run_states, short, timetable};

fn report(seen: &Seen, timetable: Timetable) -> Definition {
    seen.job("report").timetable(timetable).catch_up(CatchUp::All).while_running(WhileRunning::Allow)
}

/// From when to when each revision is in force, as stored.
async fn revisions(database: &TestDatabase) -> Vec<String> {
    database.store_texts("select schedule || ' ' || grid from refrain_revisions order by job, number").await
}

#[every_store]
async fn f19_windows_due_under_the_old_schedule_are_opened_by_it(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [report(&seen, daily())]).await;
    refrain.tick_at(june("03T00:01")).await.unwrap();
    refrain.close().await;

    let weekly = timetable("0 0 * * 1", "week", "2020-06-01");
    let refrain = open(&database, [report(&seen, weekly.clone())]).await;
    assert_eq!(revisions(&database).await, ["0 0 * * * day", "0 0 * * 1 week"]);
    let opened = database.store_numbers("select count(*) from refrain_runs").await[0];
    assert!(opened > 2000, "the old timetable opens every day before the edit");
    let days = refrain.runs("report", "").await.unwrap();
    assert!(days.windows(2).all(|two| two[0].window.unwrap().end() == two[1].window.unwrap().start()));
    assert_eq!(short(&days[2].key), "06-03");

    assert_eq!(refrain.run("report@2020-06-09", Ask::Once).await.unwrap().run.key, "2020-06-09T00:00:00Z");
    refrain.close().await;
    let again = open(&database, [report(&seen, weekly)]).await;
    assert_eq!(revisions(&database).await.len(), 2, "the same schedule again is not an edit");
    is_sound(&again).await;
}

#[every_store]
async fn a_schedule_that_opened_no_window_leaves_no_revision(database: TestDatabase) {
    let seen = Seen::default();
    let future = |grid: &str| timetable("0 0 * * *", grid, "2199-06-01");
    open(&database, [report(&seen, future("day"))]).await.close().await;
    let refrain = open(&database, [report(&seen, future("hour"))]).await;
    assert_eq!(revisions(&database).await, ["0 0 * * * hour"]);
    assert_eq!(run_states(&refrain, "report").await, [""; 0]);
}

#[every_store]
async fn f18_a_job_that_loses_its_schedule_opens_only_the_due_windows(database: TestDatabase) {
    let seen = Seen::default();
    let hourly = timetable("0 * * * *", "hour", "2020-06-01T00:00");
    let refrain = open_at(&database, june("01T03:30"), [report(&seen, hourly.clone())]).await;
    assert_eq!(refrain.tick().await.unwrap().opened, 3);
    refrain.close().await;

    let queued = || seen.job("report").catch_up(CatchUp::All);
    let refrain = open_at(&database, june("01T06:10"), [queued()]).await;
    assert_eq!(hours(&refrain).await, (0..6).collect::<Vec<_>>(), "03:00, 04:00 and 05:00 were due by then");
    assert_eq!(ends(&database).await, [june("01T06:00").as_microsecond()]);
    refrain.close().await;
    let refrain = open_at(&database, june("01T16:20"), [queued()]).await;
    assert_eq!(refrain.tick().await.unwrap().opened, 0, "no schedule, no window");
    refrain.enqueue("report", "by-hand", &()).await.unwrap();
    refrain.tick().await.unwrap();
    assert!(seen.all().contains(&"by-hand".to_owned()));
    refrain.close().await;

    let another = timetable("5 * * * *", "hour", "2020-06-01T00:00");
    let refrain = open_at(&database, june("01T16:30"), [report(&seen, another.clone())]).await;
    assert_eq!(refrain.tick().await.unwrap().opened, 0, "it starts as a new schedule");
    refrain.close().await;
    let refrain = open_at(&database, june("01T18:06"), [report(&seen, another)]).await;
    refrain.tick().await.unwrap();
    assert_eq!(hours(&refrain).await, [0, 1, 2, 3, 4, 5, 16, 17], "06:00 to 15:00 had no schedule");
    let why = refrain.why("report@2020-06-01T10:00").await.unwrap();
    assert!(why.names("left-out"), "{:?}", why.causes);
    assert_eq!(
        refrain.run("report@2020-06-01T10:00", Ask::Once).await.unwrap().did,
        Did::Ran,
        "the operator may"
    );
    assert_eq!(revisions(&database).await, ["0 * * * * hour", "5 * * * * hour"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_schedule_restored_before_its_next_window_leaves_no_gap(database: TestDatabase) {
    let seen = Seen::default();
    // Monday to Friday: on Monday it opens Friday, Saturday and Sunday.
    let weekdays = timetable("0 2 * * 1-5", "day", "2020-06-01");
    let refrain = open_at(&database, june("05T03:00"), [report(&seen, weekdays.clone())]).await;
    refrain.tick().await.unwrap();
    refrain.close().await;
    open_at(&database, june("06T10:00"), [seen.job("report")]).await.close().await;
    assert_eq!(ends(&database).await, [june("05T00:00").as_microsecond()]);
    let refrain = open_at(&database, june("06T10:01"), [report(&seen, weekdays.clone())]).await;
    assert_eq!(ends(&database).await, [0; 0], "the revision continues");
    refrain.close().await;
    let refrain = open_at(&database, june("08T02:01"), [report(&seen, weekdays)]).await;
    assert_eq!(refrain.tick().await.unwrap().opened, 3, "Friday, Saturday and Sunday");
    is_sound(&refrain).await;
}

#[every_store]
async fn an_edited_schedule_that_restarted_opens_no_window_of_the_gap(database: TestDatabase) {
    let seen = Seen::default();
    let days = |schedule: &str| report(&seen, timetable(schedule, "day", "2020-06-01"));
    let refrain = open_at(&database, june("03T03:00"), [days("0 2 * * *")]).await;
    refrain.tick().await.unwrap();
    refrain.close().await;
    open_at(&database, june("03T10:00"), [seen.job("report")]).await.close().await;
    open_at(&database, june("10T10:00"), [days("0 3 * * *")]).await.close().await;
    open_at(&database, june("10T11:00"), [days("0 4 * * *")]).await.close().await;
    let refrain = open_at(&database, june("12T05:00"), [days("0 4 * * *")]).await;
    refrain.tick().await.unwrap();
    let opened: Vec<String> = run_states(&refrain, "report").await;
    assert_eq!(opened, ["06-01 done 1", "06-02 done 1", "06-10 done 1", "06-11 done 1"]);
    is_sound(&refrain).await;
}

/// A store whose schedules read this time.
async fn open_at(
    database: &TestDatabase,
    now: Timestamp,
    jobs: impl IntoIterator<Item = Definition>,
) -> Refrain {
    Refrain::migrate(&database.url()).await.unwrap();
    let options = Refrain::at(&database.url(), "shop").unwrap().settings(SETTINGS).simulated(now);
    jobs.into_iter().fold(options, refrain::OpenOptions::job).open().await.unwrap()
}

/// The hours of the first of June that have a row.
async fn hours(refrain: &Refrain) -> Vec<i8> {
    let runs = refrain.runs("report", "").await.unwrap();
    let starts = runs.iter().filter_map(|run| run.window).map(|window| window.start().timestamp());
    starts.map(|start| start.to_zoned(TimeZone::UTC).hour()).collect()
}

/// When the ended revisions ended.
async fn ends(database: &TestDatabase) -> Vec<i64> {
    let ends = "select until_at from refrain_revisions where until_at is not null order by number";
    database.store_numbers(ends).await
}
