//! A run exists once, however many callers request it at once; every further request is recorded as
//! a dedupe.

use refrain_harness::every_store;
use std::collections::BTreeMap;

use refrain::admin::{PAYLOAD_BYTES_MAX, RequestWay};
use refrain::{Ask, CatchUp, Did, Enqueued, Error, Refrain};
use tokio::task::JoinSet;

use refrain_harness::TestDatabase;
use refrain_harness::work::{Seen, daily, is_sound, job, june, nothing, open, shown, told};

/// Does the same as often at once, and gives every answer.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    times: usize,
    refrain: &Refrain,
    act: impl Fn(Refrain) -> F,
) -> Vec<T> {
    let mut tasks = JoinSet::new();
    for _ in 0..times {
        tasks.spawn(act(refrain.clone()));
    }
    tasks.join_all().await
}

#[every_store]
async fn m1_fifty_offers_of_one_key_are_one_run_and_forty_nine_dedupes(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("welcome")]).await;
    let answers =
        at_once(50, &refrain, |refrain| async move { refrain.enqueue("welcome", "42", None).await.unwrap() });
    let answers = answers.await;
    assert_eq!(answers.iter().filter(|answer| **answer == Enqueued::New).count(), 1);

    refrain.tick().await.unwrap();
    assert_eq!(seen.all(), ["42"], "done once");
    assert_eq!(told(&refrain, "welcome").await, ["42 done 1"]);
    let winner = shown(&refrain, "welcome#42").await;
    let dedupes = refrain.dedupes(&winner).await.unwrap();
    assert_eq!(dedupes.len(), 49, "each with the one who was first");
    assert!(
        dedupes.iter().all(|dedupe| dedupe.asked.way == RequestWay::Enqueue && dedupe.at >= winner.opened_at)
    );
    is_sound(&refrain).await;
}

#[every_store]
async fn m1_fifty_requests_for_one_window_run_it_once(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("report").timetable(daily())]).await;
    let reports =
        at_once(
            50,
            &refrain,
            |refrain| async move { refrain.run("report@2020-06-01", Ask::Once).await.unwrap() },
        );
    let reports = reports.await;
    assert!(reports.iter().all(refrain::RunReport::is_done), "everybody hears that it is done");
    assert_eq!(reports.iter().filter(|report| report.did == Did::Ran).count(), 1);
    assert_eq!(seen.all(), ["06-01"]);
    assert_eq!(told(&refrain, "report").await, ["06-01 done 1"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_key_given_twice_in_one_batch_is_one_run(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    let offers = ["b", "a", "b", "c", "a"].map(|key| (key, None::<&str>));
    let answers = refrain.enqueue_many("welcome", offers).await.unwrap();
    let (new, known) = (Enqueued::New, Enqueued::Deduplicated);
    assert_eq!(answers, [new, new, known, new, known]);
    assert_eq!(told(&refrain, "welcome").await, ["a due 1", "b due 1", "c due 1"]);
    let b = shown(&refrain, "welcome#b").await;
    assert_eq!(refrain.dedupes(&b).await.unwrap().len(), 1);
    assert_eq!(refrain.enqueue_many("welcome", Vec::<(&str, Option<&str>)>::new()).await.unwrap(), []);
}

#[every_store]
async fn a_done_run_stays_done_for_a_request_a_week_later(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("welcome")]).await;
    refrain.enqueue("welcome", "42", Some(r#"{"user": 42}"#)).await.unwrap();
    refrain.tick().await.unwrap();
    assert!(!refrain.enqueue("welcome", "42", Some(r#"{"user": 43}"#)).await.unwrap().is_new());
    assert_eq!(refrain.run("welcome#42", Ask::Once).await.unwrap().did, Did::Deduplicated);
    refrain.tick().await.unwrap();
    assert_eq!(seen.all(), ["42"]);
    let run = shown(&refrain, "welcome#42").await;
    assert_eq!(run.payload.as_deref(), Some(r#"{"user": 42}"#), "the first offer counts");
    let asked: Vec<String> =
        refrain.dedupes(&run).await.unwrap().into_iter().map(|dedupe| dedupe.asked.to_string()).collect();
    assert_eq!(asked, ["enqueue with another payload", "run"]);
}

#[every_store]
async fn f10_eight_schedulers_open_each_window_once(database: TestDatabase) {
    let seen = Seen::default();
    let mut schedulers = Vec::new();
    for _ in 0..8 {
        let job = seen.job("report").timetable(daily()).catch_up(CatchUp::All);
        schedulers.push(open(&database, [job]).await);
    }
    let mut tasks = JoinSet::new();
    for scheduler in schedulers.clone() {
        tasks.spawn(async move {
            let mut opened = 0;
            for day in 2..=21 {
                opened += scheduler.open_due(june(&format!("{day:02}T00:01"))).await.unwrap().opened;
            }
            opened
        });
    }
    let opened: u64 = tasks.join_all().await.into_iter().sum();
    assert_eq!(opened, 20);
    let (first, runs) = (&schedulers[0], schedulers[0].runs("report", "").await.unwrap());
    let mut windows = BTreeMap::new();
    for run in &runs {
        *windows.entry(run.window.unwrap().start().timestamp()).or_insert(0) += 1;
    }
    assert_eq!(windows.len(), 20);
    assert!(windows.values().all(|count| *count == 1));
    first.tick_at(june("21T00:01")).await.unwrap();
    assert_eq!(seen.all().len(), 20);
    assert!(seen.all().is_sorted(), "one after another, the oldest first");
    is_sound(first).await;
}

#[every_store]
async fn f37_unusual_keys_are_separate_runs(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("welcome")]).await;
    let long = "x".repeat(512);
    let mut odd =
        vec!["a", "A", "a ", " a", "ä", "a\u{308}", "a/b", "a#b@c", "'", "%", "\\", "$1", "🦀", &long];
    for key in &odd {
        assert!(refrain.enqueue("welcome", key, None).await.unwrap().is_new(), "{key}");
    }
    for unfit in ["", "a\nb", "a\0", &"x".repeat(513)] {
        assert!(matches!(refrain.enqueue("welcome", unfit, None).await, Err(Error::Parse(_))), "{unfit:?}");
    }
    refrain.tick().await.unwrap();
    odd.sort_unstable();
    let listed = refrain.runs("welcome", "").await.unwrap();
    assert_eq!(
        listed.iter().map(|run| run.key.as_str()).collect::<Vec<_>>(),
        odd,
        "in the order of their bytes"
    );
    for key in odd {
        assert_eq!(seen.all().iter().filter(|one| *one == key).count(), 1);
        let name = format!("welcome#{key}");
        assert_eq!(refrain.run(&name, Ask::Once).await.unwrap().did, Did::Deduplicated, "{name}");
    }
}

#[every_store]
async fn a_payload_is_json_of_a_bounded_size_and_arrives_unchanged(database: TestDatabase) {
    let seen = Seen::default();
    let told = seen.clone();
    let work = job("welcome", move |run| {
        told.push(run.payload().unwrap_or("none"));
        async { Ok(()) }
    });
    let refrain = open(&database, [work]).await;
    let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    let largest = text(PAYLOAD_BYTES_MAX);
    let odd = r#"{"a": "'$1\u0000🦀", "b": [1.50, null]}"#;
    let fit = [Some(odd), Some("null"), Some(largest.as_str()), None];
    for (number, payload) in fit.iter().enumerate() {
        refrain.enqueue("welcome", &format!("{number}"), *payload).await.unwrap();
        refrain.tick().await.unwrap();
    }
    assert_eq!(seen.all(), [odd, "null", &largest, "none"]);
    let too_large = text(PAYLOAD_BYTES_MAX + 1);
    for unfit in [too_large.as_str(), "{", "", "a", "{} {}"] {
        let refused = refrain.enqueue("welcome", "unfit", Some(unfit)).await;
        assert!(matches!(refused, Err(Error::Payload { .. })), "{unfit:.20}");
    }
    assert!(refrain.show("welcome#unfit").await.unwrap().is_none(), "nothing of it was kept");
}

#[every_store]
async fn an_invalid_run_name_is_refused_with_advice(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome"), nothing("report").timetable(daily())]).await;
    let said = |error: Error| error.to_string();
    let unknown = said(refrain.enqueue("wellcome", "42", None).await.unwrap_err());
    assert!(unknown.contains("report, welcome"), "{unknown}");
    let windowed = said(refrain.enqueue("report", "42", None).await.unwrap_err());
    assert!(windowed.contains("report@2026-06-09"), "{windowed}");
    let queued = said(refrain.run("welcome@2020-06-01", Ask::Once).await.unwrap_err());
    assert!(queued.contains("welcome#KEY"), "{queued}");
    let not_over = refrain.run("report@2199-06-01", Ask::Once).await.unwrap_err();
    assert!(matches!(not_over, Error::NotOver { .. }), "{not_over}");
    assert!(matches!(refrain.cancel("welcome#42").await, Err(Error::NoRun(_))));
}
