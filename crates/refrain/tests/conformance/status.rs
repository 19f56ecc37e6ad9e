//! What readers are shown: jobs, pages of runs with the newest first, names that lead back, and
//! workers.

use refrain_harness::every_store;
use std::time::Duration;

use refrain::core::state::RunNode;
use refrain::core::{Scope, Timetable, Zone, window_name};
use refrain::{Ask, CatchUp, Refrain};

use refrain_harness::TestDatabase;
use refrain_harness::work::{Gate, daily, june, nothing, open, short, timetable};

/// Hours in Berlin, from the night on in which the clock goes back.
fn berlin() -> Timetable {
    let zone = Zone::parse("Europe/Berlin").unwrap();
    let start = Some(window_name::parse("2020-10-25T00:00", &zone).unwrap());
    Timetable { zone, start, ..timetable("5 * * * *", "hour", "2020-10-25") }
}

/// The names of all runs of a job, each of which leads back to its run.
async fn names(refrain: &Refrain, job: &str) -> Vec<String> {
    let view = refrain.view(job).await.unwrap();
    let mut names = Vec::new();
    for run in refrain.runs(job, "").await.unwrap() {
        let name = view.name_of(&run);
        assert_eq!(refrain.name_of(&run).await.unwrap(), name);
        assert_eq!(refrain.show(&name).await.unwrap().unwrap(), run, "{name}");
        names.push(name);
    }
    names
}

#[every_store]
async fn every_printed_run_name_leads_back_to_its_run(database: TestDatabase) {
    let digest = nothing("digest").timetable(daily()).scopes(|_| async {
        Ok(["acme", "a/b@c d"].iter().map(|scope| Scope::parse(scope).unwrap()).collect())
    });
    let hours = nothing("hours").timetable(berlin()).catch_up(CatchUp::All);
    let refrain = open(&database, [digest, hours, nothing("welcome")]).await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    refrain.tick_at("2020-10-25T03:06:00Z".parse().unwrap()).await.unwrap();
    refrain.enqueue_many("welcome", [("42", ()), ("a@b#c", ())]).await.unwrap();
    assert_eq!(names(&refrain, "welcome").await, ["welcome#42", "welcome#a@b#c"]);
    let of_first = ["digest@2020-06-01", "digest@2020-06-01/a/b@c d", "digest@2020-06-01/acme"];
    assert_eq!(names(&refrain, "digest").await[..3], of_first);
    let night = [
        "hours@2020-10-25T00:00",
        "hours@2020-10-25T01:00",
        "hours@2020-10-25T00:00:00Z",
        "hours@2020-10-25T01:00:00Z",
        "hours@2020-10-25T03:00",
    ];
    assert_eq!(names(&refrain, "hours").await, night, "two o'clock occurs twice, and has two names");
}

#[every_store]
async fn a_window_keeps_its_name_after_a_schedule_edit_or_a_removed_job(database: TestDatabase) {
    let report = || nothing("report").catch_up(CatchUp::Latest);
    open(&database, [report().timetable(daily())]).await.tick_at(june("03T00:01")).await.unwrap();
    let hourly = timetable("5 * * * *", "hour", "2020-06-01");
    let refrain = open(&database, [report().timetable(hourly)]).await;
    assert_eq!(names(&refrain, "report").await[..2], ["report@2020-06-01", "report@2020-06-02"]);
    let bare = open(&database, []).await;
    assert_eq!(names(&bare, "report").await[..2], ["report@2020-06-01", "report@2020-06-02"]);
    let text = bare.run("report@2020-06-01", Ask::Once).await.unwrap_err().to_string();
    assert!(text.contains("there is no job `report`"), "{text}");
}

#[every_store]
async fn pages_go_backwards_from_the_newest_window_without_gaps(database: TestDatabase) {
    let refrain =
        open(&database, [nothing("report").timetable(daily()).catch_up(CatchUp::All), nothing("welcome")])
            .await;
    refrain.tick_at(june("12T00:01")).await.unwrap();
    refrain.enqueue("welcome", "\u{10ffff}", &()).await.unwrap();
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = refrain.latest("report", before.as_deref(), 4).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.key.clone());
        seen.extend(page.iter().map(|run| short(&run.key)));
    }
    let expected: Vec<String> = (1..=11).rev().map(|day| format!("06-{day:02}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(refrain.latest("welcome", None, 9).await.unwrap().len(), 1, "the highest key there is");

    let newest = refrain.recent(None, 3).await.unwrap();
    let text: Vec<String> = newest.iter().map(|run| format!("{} {}", run.job, short(&run.key))).collect();
    assert_eq!(text, ["welcome \u{10ffff}", "report 06-11", "report 06-10"]);
    let older = refrain.recent(newest.last().map(refrain::admin::RunRecord::number), 500).await.unwrap();
    assert_eq!(older.len(), 9);
    let counted = refrain::admin::RunRecord::counted(&refrain.recent(None, 500).await.unwrap());
    assert_eq!(counted.into_iter().collect::<Vec<_>>(), [(RunNode::Due, 1), (RunNode::Done, 11)]);
}

#[every_store]
async fn every_job_is_listed_with_the_schedule_in_force(database: TestDatabase) {
    let report = nothing("report").timetable(daily()).version(3).grace(Duration::from_mins(30));
    open(&database, [report.clone(), nothing("gone")]).await.close().await;
    let refrain = open(&database, [report, nothing("welcome")]).await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    refrain.pause("welcome").await.unwrap();
    let jobs = refrain.job_records(None).await.unwrap();
    let names: Vec<(&str, bool)> = jobs.iter().map(|job| (job.name.as_str(), job.is_known)).collect();
    assert_eq!(names, [("gone", false), ("report", true), ("welcome", true)]);
    let [gone, report, welcome] = jobs.as_slice() else { panic!("{jobs:?}") };
    let timetable = report.timetable.as_ref().map(ToString::to_string);
    assert_eq!(timetable.as_deref(), Some("0 0 * * *, UTC, window = \"day\""));
    assert_eq!((report.next_at, report.revisions), (Some(june("03T00:00")), 1));
    assert_eq!((report.version, report.grace), (Some(3), Some(Duration::from_mins(30))));
    assert_eq!((gone.timetable.is_some(), gone.next_at, gone.version), (false, None, None));
    assert!(welcome.paused_at.is_some() && report.paused_at.is_none());
}

#[every_store]
async fn a_worker_is_listed_with_its_runs_until_it_leaves(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("export")]).await;
    refrain.enqueue_many("export", ["a", "b"].map(|key| (key, ()))).await.unwrap();
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick().await.unwrap() }
    });
    gate.have_begun(2).await;
    let workers = refrain.workers().await.unwrap();
    let [worker] = workers.as_slice() else { panic!("{workers:?}") };
    assert_eq!((worker.runs, worker.pid()), (2, Some(std::process::id())));
    let now = refrain.now().await.unwrap();
    assert!(worker.is_alive(now) && worker.started_at <= now);
    gate.let_through(2);
    running.await.unwrap();
    assert_eq!(refrain.workers().await.unwrap(), []);
}
