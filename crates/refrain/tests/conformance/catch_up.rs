//! Ticks and missed windows: every window has a row, and a skipped one has its reason.

use refrain_harness::every_store;
use std::time::Duration;

use refrain::{CatchUp, Counts};

use refrain_harness::TestDatabase;
use refrain_harness::work::{Seen, daily, is_sound, june, nothing, open, run_states, short};

#[every_store]
async fn m2_a_scheduler_that_was_stopped_over_seven_ticks_catches_up_by_policy(database: TestDatabase) {
    let policies = [
        ("all", CatchUp::All, 7, "all of them"),
        ("latest", CatchUp::Latest, 1, "only the latest"),
        ("none", CatchUp::None, 0, "none"),
        ("within", CatchUp::Within(Duration::from_hours(72)), 3, "those of the last three days"),
    ];
    let seen = Seen::default();
    let jobs = policies.map(|(name, policy, ..)| seen.job(name).timetable(daily()).catch_up(policy));
    let refrain = open(&database, jobs).await;
    let report = refrain.tick_at(june("08T06:00")).await.unwrap();
    assert_eq!((report.opened, report.skipped, report.ended), (11, 17, 11));

    for (name, _, started, which) in policies {
        let runs = refrain.runs(name, "").await.unwrap();
        assert_eq!(runs.len(), 7, "{name}: every window has a row");
        let (done, skipped): (Vec<_>, Vec<_>) = runs.iter().partition(|run| run.standing.is_done());
        assert_eq!(done.len(), started, "{name}: {which}");
        let last: Vec<String> = (8 - started..=7).map(|day| format!("06-{day:02}")).collect();
        assert_eq!(done.iter().map(|run| short(&run.key)).collect::<Vec<_>>(), last);
        for run in skipped {
            let reason = run.message.as_deref().unwrap_or_default();
            assert!(reason.len() > 10, "{name}: {} was skipped and does not say why", run.key);
            assert_eq!((run.attempt, run.started_at), (0, None));
        }
    }
    assert_eq!(seen.all().len(), 11);
    is_sound(&refrain).await;
}

#[every_store]
async fn f18_after_an_outage_every_due_window_ran_or_was_skipped(database: TestDatabase) {
    let job = nothing("report").timetable(daily()).catch_up(CatchUp::Within(Duration::from_hours(24)));
    let refrain = open(&database, [job]).await;
    let days = ["02T00:01", "02T00:02", "03T00:04", "03T12:00", "09T18:00", "10T00:01", "10T00:01"];
    let mut total = (0, 0);
    for day in days {
        let Counts { opened, skipped, deduplicated, .. } = refrain.tick_at(june(day)).await.unwrap();
        assert_eq!(deduplicated, 0);
        total = (total.0 + opened, total.1 + skipped);
    }
    assert_eq!(total, (4, 5), "nine windows are due before the tenth");
    let runs = refrain.runs("report", "").await.unwrap();
    let keys: Vec<String> = runs.iter().map(|run| short(&run.key)).collect();
    assert_eq!(keys, (1..=9).map(|day| format!("06-{day:02}")).collect::<Vec<_>>());
}

#[every_store]
async fn an_outage_of_years_is_caught_up_in_small_steps(database: TestDatabase) {
    let hourly = refrain_harness::work::timetable("0 * * * *", "hour", "2020-06-01");
    let refrain = open(&database, [nothing("digest").timetable(hourly).catch_up(CatchUp::None)]).await;
    let report = refrain.tick_at("2020-09-01T00:30:00Z".parse().unwrap()).await.unwrap();
    assert_eq!((report.opened, report.skipped), (0, 92 * 24), "more than one transaction may write");
    let (mut after, mut runs) = (String::new(), 0);
    while let Some(last) = refrain.runs("digest", &after).await.unwrap().last() {
        runs += refrain.runs("digest", &after).await.unwrap().len();
        after.clone_from(&last.key);
    }
    assert_eq!(runs, 92 * 24, "page by page, all of them");
}

#[every_store]
async fn a_clock_that_goes_back_opens_no_window_again(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("report").timetable(daily()).catch_up(CatchUp::All)]).await;
    refrain.tick_at(june("04T06:00")).await.unwrap();
    let report = refrain.tick_at(june("02T00:01")).await.unwrap();
    assert_eq!((report.opened, report.deduplicated), (0, 0));
    refrain.tick_at(june("04T06:01")).await.unwrap();
    assert_eq!(seen.all(), ["06-01", "06-02", "06-03"]);
}

#[every_store]
async fn a_window_that_was_run_by_hand_is_a_dedupe_at_its_tick(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("report").timetable(daily()).catch_up(CatchUp::All)]).await;
    refrain.run("report@2020-06-01", refrain::Ask::Once).await.unwrap();
    let report = refrain.tick_at(june("03T00:01")).await.unwrap();
    assert_eq!((report.opened, report.deduplicated), (1, 1));
    assert_eq!(seen.all(), ["06-01", "06-02"]);
    let first = refrain_harness::work::shown(&refrain, "report@2020-06-01").await;
    assert_eq!(refrain.dedupes(&first).await.unwrap()[0].asked.to_string(), "tick");
    assert_eq!(run_states(&refrain, "report").await, ["06-01 done 1", "06-02 done 1"]);
}

#[every_store]
async fn a_scheduler_that_does_not_know_a_job_leaves_its_windows_alone(database: TestDatabase) {
    let daily_job = || nothing("report").timetable(daily()).catch_up(CatchUp::All);
    let knows = open(&database, [daily_job()]).await;
    let other = open(&database, [nothing("other").timetable(daily()).catch_up(CatchUp::All)]).await;
    assert_eq!(other.tick_at(june("03T00:01")).await.unwrap().opened, 2, "its own");
    assert_eq!(run_states(&knows, "report").await, [""; 0]);
    assert_eq!(knows.tick_at(june("03T00:01")).await.unwrap().opened, 2);
}
