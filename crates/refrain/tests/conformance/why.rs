//! Why did it run, or why not? Each cause is planted with the real engine and must be named: the
//! rule, the run, and the command to type next.

use refrain_harness::every_store;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use refrain::core::retry::{Backoff, Retry};
use refrain::core::{Scope, Timetable};
use refrain::{Ask, CatchUp, Definition, JobError, Refrain, WhileRunning};

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Gate, SETTINGS, daily, job, june, nothing, open, open_with, timetable};

/// The rules that an answer names, the deciding one first.
async fn rules(refrain: &Refrain, asked: &str) -> Vec<&'static str> {
    let why = refrain.why(asked).await.unwrap();
    assert!(!why.causes.is_empty(), "no cause for {asked}");
    why.causes.iter().map(refrain::core::why::Cause::rule).collect()
}

/// Asserts that the first cause has this rule, and that the answer contains these words.
async fn answers(refrain: &Refrain, asked: &str, rule: &str, words: &[&str]) {
    let why = refrain.why(asked).await.unwrap();
    assert_eq!(why.causes[0].rule(), rule, "{asked}: {:?}", why.causes);
    let text = why.causes[0].to_string();
    for word in words {
        assert!(text.contains(word), "{word} is not in: {text}");
    }
}

/// Asserts that another cause has this rule and contains these words.
async fn adds(refrain: &Refrain, asked: &str, rule: &str, words: &[&str]) {
    let why = refrain.why(asked).await.unwrap();
    let cause = why.causes[1..].iter().find(|cause| cause.rule() == rule);
    let text = cause.unwrap_or_else(|| panic!("{rule} is not among {:?}", why.causes)).to_string();
    for word in words {
        assert!(text.contains(word), "{word} is not in: {text}");
    }
}

/// A store whose clock stands at noon of the ninth of June.
async fn at_noon(database: &TestDatabase, jobs: impl IntoIterator<Item = Definition>) -> Refrain {
    Refrain::migrate(&database.url()).await.unwrap();
    let options =
        Refrain::at(&database.url(), "shop").unwrap().settings(SETTINGS).simulated(june("09T12:00"));
    jobs.into_iter().fold(options, refrain::OpenOptions::job).open().await.unwrap()
}

/// Daily windows that open at two in the afternoon.
fn afternoons() -> Timetable {
    timetable("0 14 * * *", "day", "2020-06-01")
}

/// An engine that serves in a task, and is told to stop when this is dropped into `drained`.
async fn drained(serving: tokio::task::JoinHandle<refrain::Counts>, stop: &refrain::StopHandle) {
    stop.drain();
    serving.await.unwrap();
}

#[every_store]
async fn x3_why_of_a_future_window_says_when_it_opens(database: TestDatabase) {
    let refrain = at_noon(&database, [nothing("report").timetable(afternoons())]).await;
    let opens = ["2020-06-10T00:00:00Z", "opens at 2020-06-10T14:00:00Z"];
    answers(&refrain, "report@2020-06-09", "not-over", &["report@2020-06-09", opens[0], opens[1]]).await;
    let words = ["2020-06-09T14:00:00Z", "refrain run report@2020-06-08"];
    answers(&refrain, "report@2020-06-08", "not-due", &words).await;
    adds(&refrain, "report@2020-06-08", "simulated", &["refrain tick --now"]).await;
}

#[every_store]
async fn x3_why_names_the_revision_that_left_a_window_out_or_its_neighbours(database: TestDatabase) {
    let from = |start: &str| {
        nothing("report").timetable(timetable("0 14 * * *", "day", start)).catch_up(CatchUp::All)
    };
    let refrain = at_noon(&database, [from("2020-06-05")]).await;
    answers(
        &refrain,
        "report@2020-06-04",
        "left-out",
        &["revision 1", "2020-06-05", "refrain run report@2020-06-04"],
    )
    .await;
    refrain.tick_at(june("09T12:00")).await.unwrap();
    refrain.close().await;
    let refrain = at_noon(&database, [from("2020-06-20")]).await;
    answers(&refrain, "report@2020-06-15", "left-out", &["revision 2", "begin at 2020-06-20"]).await;
    assert_eq!(rules(&refrain, "report@2020-06-06").await[0], "done", "the past does not change");
    let neighbours = ["report@2020-06-06", "report@2020-06-07", "no window of this job begins then"];
    answers(&refrain, "report@2020-06-06T12:00", "no-such-window", &neighbours).await;
    answers(&refrain, "report@yesterday", "no-such-window", &["refrain next report"]).await;
}

#[every_store]
async fn x3_why_of_an_unopened_window_names_the_last_scheduler(database: TestDatabase) {
    let refrain = open(&database, [nothing("report").timetable(daily()), nothing("welcome")]).await;
    let words = [
        "report@2020-06-01",
        "was due at 2020-06-02T00:00:00Z",
        "no worker is alive",
        "nothing has ever run",
        "refrain serve",
    ];
    answers(&refrain, "report@2020-06-01", "never-opened", &words).await;
    refrain.enqueue("welcome", "42", &()).await.unwrap();
    refrain.tick_at(june("01T00:00")).await.unwrap();
    answers(&refrain, "report@2020-06-01", "never-opened", &["the last attempt in this store ended at 20"])
        .await;
}

#[every_store]
async fn x3_why_of_a_skipped_window_gives_the_stored_reason(database: TestDatabase) {
    let gate = Gate::closed();
    let late = nothing("late").timetable(daily()).catch_up(CatchUp::Latest);
    let paused = nothing("paused").timetable(daily()).catch_up(CatchUp::All);
    let busy = gate.job("busy").timetable(daily()).catch_up(CatchUp::All).while_running(WhileRunning::Skip);
    let refrain = open(&database, [late, paused, busy]).await;
    refrain.pause("paused").await.unwrap();
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick_at(june("03T06:00")).await.unwrap() }
    });
    gate.have_begun(1).await;
    for (run, words) in [
        ("late@2020-06-01", "catch-up = \"latest\""),
        ("paused@2020-06-01", "the job is paused"),
        ("busy@2020-06-02", "while-running = \"skip\""),
    ] {
        answers(&refrain, run, "skipped", &[run, words, &format!("refrain run {run}")]).await;
    }
    gate.let_through(2);
    running.await.unwrap();
}

#[every_store]
async fn x3_why_of_a_done_run_names_its_attempt_version_and_dedupes(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome").version(2)]).await;
    refrain.enqueue("welcome", "42", &()).await.unwrap();
    refrain.tick().await.unwrap();
    answers(&refrain, "welcome#42", "done", &["attempt 1", "version 2", "refrain run welcome#42 --again"])
        .await;
    refrain.enqueue("welcome", "42", &()).await.unwrap();
    refrain.run("welcome#42", Ask::Once).await.unwrap();
    adds(&refrain, "welcome#42", "deduplicated", &["welcome#42", "twice", "by run"]).await;
    refrain.close().await;
    let newer = open(&database, [nothing("welcome").version(3)]).await;
    adds(&newer, "welcome#42", "outdated", &["version 2", "version 3"]).await;
    newer.close().await;
    let older = open(&database, [nothing("welcome").version(1)]).await;
    adds(&older, "welcome#42", "worker-too-old", &["version 2", "version 1"]).await;
    older.close().await;
    let elsewhere = open(&database, [nothing("other")]).await;
    adds(&elsewhere, "welcome#42", "not-here", &["welcome"]).await;
}

#[every_store]
async fn x3_why_of_a_queued_run_says_no_worker_or_paused(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    refrain.enqueue("welcome", "42", &()).await.unwrap();
    answers(&refrain, "welcome#42", "no-worker", &["welcome#42", "no worker is alive", "refrain serve"])
        .await;
    refrain.pause("welcome").await.unwrap();
    answers(&refrain, "welcome#42", "paused", &["paused since 20", "refrain resume welcome"]).await;
}

#[every_store]
async fn x3_why_of_a_queued_run_names_the_runs_before_it(database: TestDatabase) {
    let gate = Gate::closed();
    let few = SETTINGS.slots(1);
    let refrain = open_with(&database, few, [gate.job("export"), gate.job("narrow").concurrency(1)]).await;
    let keys = ["a", "b", "c"].map(|key| (key, ()));
    refrain.enqueue_many("export", keys).await.unwrap();
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    gate.have_begun(1).await;
    answers(&refrain, "export#c", "queued", &["behind 1 other", "live workers: 1, running runs: 1"]).await;
    answers(
        &refrain,
        "export#a",
        "running",
        &["attempt 1", &std::process::id().to_string(), "refrain cancel export#a"],
    )
    .await;
    gate.let_through(3);
    eventually("all are done", DEADLINE, async || refrain.open_runs().await.unwrap() == 0).await;
    refrain.enqueue_many("narrow", keys).await.unwrap();
    gate.have_begun(2).await;
    eventually("one is running", DEADLINE, async || rules(&refrain, "narrow#a").await[0] == "running").await;
    answers(&refrain, "narrow#c", "slots-taken", &["narrow#c", "concurrency = 1", "narrow#a"]).await;
    refrain.cancel("narrow#a").await.unwrap();
    eventually("it is cancelled", DEADLINE, async || rules(&refrain, "narrow#a").await[0] == "cancelled")
        .await;
    answers(&refrain, "narrow#a", "cancelled", &["by an operator", "refrain retry narrow#a"]).await;
    gate.let_through(3);
    drained(serving, &stop).await;
}

#[every_store]
async fn x3_why_of_a_waiting_window_names_the_holder_of_its_lane(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("report").timetable(daily()).catch_up(CatchUp::All)]).await;
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick_at(june("03T06:00")).await.unwrap() }
    });
    gate.have_begun(1).await;
    let words =
        ["report@2020-06-02", "waits for report@2020-06-01", "is running", "refrain why report@2020-06-01"];
    answers(&refrain, "report@2020-06-02", "lane-held", &words).await;
    gate.let_through(2);
    running.await.unwrap();
}

#[every_store]
async fn x3_why_of_a_failed_run_gives_the_error_and_the_next_retry(database: TestDatabase) {
    let retry = Retry {
        attempts: 2,
        backoff: Backoff { min: Duration::from_hours(1), max: Duration::from_hours(1) },
    };
    let refrain =
        open(&database, [job("flaky", |_| async { Err(JobError::new("429: slow down")) }).retry(retry)])
            .await;
    refrain.enqueue("flaky", "1", &()).await.unwrap();
    refrain.tick().await.unwrap();
    answers(&refrain, "flaky#1", "backing-off", &["\"429: slow down\"", "attempt 2", "refrain run flaky#1"])
        .await;
    database.store("update refrain_delayed set wake_at = 0").await;
    refrain.tick().await.unwrap();
    answers(
        &refrain,
        "flaky#1",
        "failed",
        &["for good with attempt 2", "\"429: slow down\"", "refrain retry flaky#1"],
    )
    .await;
}

#[every_store]
async fn x3_why_of_a_run_whose_workers_died_calls_it_a_suspect(database: TestDatabase) {
    let refrain = open(&database, [nothing("export")]).await;
    refrain.enqueue("export", "a", &()).await.unwrap();
    for claimed_by_the_dead in [
        "insert into refrain_workers (process, started_at, expires_at) values ('boot/1/4242/7', 1, 1)",
        "insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at)
             select 7, (select max(id) from refrain_workers), line, run, run, 1 from refrain_queue",
        "update refrain_queue set lease = 7",
    ] {
        assert_eq!(database.store(claimed_by_the_dead).await, 1);
    }
    let words = ["export#a", "boot/1/4242/7", "stopped sending heartbeats", "refrain tick"];
    answers(&refrain, "export#a", "worker-silent", &words).await;
    // A worker that does not have the job takes over, and leaves the run to others. By its lease it counts how long a
    // silent worker may still be heard of.
    let settings = SETTINGS.lease(Duration::from_secs(3));
    open_with(&database, settings, [nothing("other")]).await.tick().await.unwrap();
    answers(&refrain, "export#a", "no-worker", &["export#a"]).await;
    adds(&refrain, "export#a", "taken-over", &["export#a", "once", "suspect"]).await;
    refrain.tick().await.unwrap();
    adds(&refrain, "export#a", "taken-over", &["once from workers that died."]).await;
}

#[every_store]
async fn x3_why_of_an_unknown_scope_suggests_a_similar_one(database: TestDatabase) {
    let scopes = Arc::new(Mutex::new(Vec::new()));
    let listed = scopes.clone();
    let digest = nothing("digest").timetable(daily()).scopes(move |_| {
        let found: Vec<Scope> =
            listed.lock().unwrap().iter().map(|one: &&str| Scope::parse(one).unwrap()).collect();
        async move { if found.is_empty() { Err(JobError::for_good("no scopes")) } else { Ok(found) } }
    });
    let refrain = open(&database, [digest, nothing("plain").timetable(daily())]).await;
    answers(&refrain, "digest@2020-06-01/acme", "never-opened", &["digest@2020-06-01/acme"]).await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    answers(
        &refrain,
        "digest@2020-06-01/acme",
        "not-expanded",
        &["is failed", "refrain why digest@2020-06-01"],
    )
    .await;
    scopes.lock().unwrap().extend(["acme", "beta"]);
    refrain.retry("digest@2020-06-01").await.unwrap();
    answers(
        &refrain,
        "digest@2020-06-01/acne",
        "unknown-scope",
        &["2 of them", "did you mean digest@2020-06-01/acme?"],
    )
    .await;
    answers(
        &refrain,
        "digest@2020-06-01/omega",
        "unknown-scope",
        &["a new scope begins with the next window"],
    )
    .await;
    answers(&refrain, "plain@2020-06-01/acme", "unknown-scope", &["0 of them"]).await;
}

#[every_store]
async fn x3_why_of_an_unknown_job_suggests_a_similar_one(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome"), nothing("report").timetable(daily())]).await;
    answers(&refrain, "wellcome#42", "unknown-job", &["`wellcome`", "did you mean welcome?"]).await;
    assert_eq!(rules(&refrain, "wellcome#42").await, ["unknown-job"]);
    answers(&refrain, "welcome#42", "never-enqueued", &["refrain enqueue welcome --key 42"]).await;
    answers(&refrain, "welcome", "a-job", &["it has no run yet"]).await;
    answers(&refrain, "who@example.org", "unknown-job", &["`who`"]).await;
    answers(&refrain, "invoice:7", "nothing-known", &["`invoice:7`"]).await;
    refrain.enqueue("welcome", "who@example.org", &()).await.unwrap();
    answers(&refrain, "who@example.org", "no-worker", &["welcome#who@example.org"]).await;
    answers(&refrain, "welcome", "a-job", &["refrain why welcome#who@example.org"]).await;
    for refused in ["welcome@2020-06-01", "report#42", ""] {
        assert!(refrain.why(refused).await.is_err(), "{refused}");
    }
}

#[every_store]
async fn x3_why_of_a_late_or_pruned_run_says_so(database: TestDatabase) {
    let report = job("report", |_| async { Err(JobError::for_good("no orders table")) });
    let report = report.timetable(daily()).grace(Duration::from_mins(30));
    let refrain = open(&database, [report, nothing("welcome")]).await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    adds(&refrain, "report@2020-06-01", "late", &["report@2020-06-01", "2020-06-02T00:30:00Z"]).await;
    refrain.enqueue_json("welcome", "42", Some("{}")).await.unwrap();
    refrain.tick_at(june("02T00:01")).await.unwrap();
    database.store("update refrain_runs set payload = '' where key = '42'").await;
    adds(&refrain, "welcome#42", "forgotten", &["welcome#42", "no longer kept"]).await;
}
