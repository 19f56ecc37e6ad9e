//! A run exists once, however many callers request it at once; every further request is recorded as
//! a dedupe.

use refrain_harness::every_store;
use std::collections::BTreeMap;

use refrain::admin::{PAYLOAD_BYTES_MAX, RequestWay};
use refrain::run::PayloadError;
use refrain::{Ask, CatchUp, Did, Enqueued, Error, Refrain};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinSet;

use refrain_harness::TestDatabase;
use refrain_harness::work::{Seen, daily, is_sound, job, june, nothing, open, run_states, shown};

/// Does the same this many times at once, and returns every answer.
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
        at_once(50, &refrain, |refrain| async move { refrain.enqueue("welcome", "42", &()).await.unwrap() });
    let answers = answers.await;
    assert_eq!(answers.iter().filter(|answer| **answer == Enqueued::New).count(), 1);

    refrain.tick().await.unwrap();
    assert_eq!(seen.all(), ["42"], "done once");
    assert_eq!(run_states(&refrain, "welcome").await, ["42 done 1"]);
    let winner = shown(&refrain, "welcome#42").await;
    let dedupes = refrain.dedupes(&winner).await.unwrap();
    assert_eq!(dedupes.len(), 49, "each names the first request");
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
    assert!(reports.iter().all(refrain::RunReport::is_done), "every caller learns that it is done");
    assert_eq!(reports.iter().filter(|report| report.did == Did::Ran).count(), 1);
    assert_eq!(seen.all(), ["06-01"]);
    assert_eq!(run_states(&refrain, "report").await, ["06-01 done 1"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_key_given_twice_in_one_batch_is_one_run(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    let offers = ["b", "a", "b", "c", "a"].map(|key| (key, ()));
    let answers = refrain.enqueue_many("welcome", offers).await.unwrap();
    let (new, known) = (Enqueued::New, Enqueued::Deduplicated);
    assert_eq!(answers, [new, new, known, new, known]);
    assert_eq!(run_states(&refrain, "welcome").await, ["a due 1", "b due 1", "c due 1"]);
    let b = shown(&refrain, "welcome#b").await;
    assert_eq!(refrain.dedupes(&b).await.unwrap().len(), 1);
    assert_eq!(refrain.enqueue_many("welcome", Vec::<(&str, ())>::new()).await.unwrap(), []);
}

#[every_store]
async fn a_done_run_stays_done_for_a_request_a_week_later(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("welcome")]).await;
    refrain.enqueue_json("welcome", "42", Some(r#"{"user": 42}"#)).await.unwrap();
    refrain.tick().await.unwrap();
    assert!(!refrain.enqueue_json("welcome", "42", Some(r#"{"user": 43}"#)).await.unwrap().did.is_new());
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
        assert!(refrain.enqueue("welcome", key, &()).await.unwrap().is_new(), "{key}");
    }
    for unfit in ["", "a\nb", "a\0", &"x".repeat(513)] {
        assert!(matches!(refrain.enqueue("welcome", unfit, &()).await, Err(Error::Parse(_))), "{unfit:?}");
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
    let received = seen.clone();
    let work = job("welcome", move |run| {
        received.push(run.payload_json().unwrap_or("none"));
        async { Ok(()) }
    });
    let refrain = open(&database, [work]).await;
    let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    let largest = text(PAYLOAD_BYTES_MAX);
    let odd = r#"{"a": "'$1\u0000🦀", "b": [1.50, null]}"#;
    let fit = [Some(odd), Some("null"), Some(largest.as_str()), None];
    for (number, payload) in fit.iter().enumerate() {
        refrain.enqueue_json("welcome", &format!("{number}"), *payload).await.unwrap();
        refrain.tick().await.unwrap();
    }
    assert_eq!(seen.all(), [odd, "null", &largest, "none"]);
    let too_large = text(PAYLOAD_BYTES_MAX + 1);
    for unfit in [too_large.as_str(), "{", "", "a", "{} {}"] {
        let refused = refrain.enqueue_json("welcome", "unfit", Some(unfit)).await;
        assert!(matches!(refused, Err(Error::Payload { .. })), "{unfit:.20}");
    }
    assert!(refrain.show("welcome#unfit").await.unwrap().is_none(), "nothing of it was kept");
}

#[derive(Serialize, Deserialize)]
struct Order {
    customer: String,
    lines: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    amount: u32,
}

#[every_store]
async fn a_typed_payload_arrives_and_one_that_does_not_fit_is_named_by_its_place(database: TestDatabase) {
    let seen = Seen::default();
    let (orders, notes) = (seen.clone(), seen.clone());
    let order = job("order", move |run| {
        let order: Result<Order, PayloadError> = run.payload();
        match order {
            Ok(Order { customer, lines }) => orders.push(format!("{customer} {}", lines[0].amount)),
            Err(error) => orders.push(error.to_string()),
        }
        async { Ok(()) }
    });
    let note = job("note", move |run| {
        let note: Option<String> = run.payload().unwrap();
        notes.push(note.unwrap_or_else(|| "no note".to_owned()));
        async { Ok(()) }
    });
    let refrain = open(&database, [order, note]).await;
    let ada = Order { customer: "Ada".to_owned(), lines: vec![Line { amount: 7 }] };
    refrain.enqueue("order", "1", &ada).await.unwrap();
    let strings = json!({"customer": "Bob", "lines": [{"amount": 1}, {"amount": "7"}]});
    refrain.enqueue("order", "2", &strings).await.unwrap();
    refrain.enqueue("order", "3", &[1]).await.unwrap();
    refrain.enqueue("order", "4", &()).await.unwrap();
    refrain.enqueue_many("note", [("1", Some("fragile")), ("2", None)]).await.unwrap();
    refrain.tick().await.unwrap();
    let lines = seen.all();
    let expected = [
        "Ada 7",
        "the payload of order#2 is not a valid conformance::opening::Order: `lines[1].amount`: invalid type: \
         string \"7\", expected u32 at line 1 column 53",
        "the payload of order#3 is not a valid conformance::opening::Order: `[0]`: invalid type: integer `1`, \
         expected a string at line 1 column 2",
        "the payload of order#4 is not a valid conformance::opening::Order: it was enqueued without one",
        "fragile",
        "no note",
    ];
    for line in expected {
        assert!(lines.iter().any(|one| one == line), "{line}: {lines:#?}");
    }
    assert_eq!(lines.len(), expected.len());
    assert_eq!(shown(&refrain, "order#4").await.payload, None, "`()` is stored as none");
    let fits = "x".repeat(PAYLOAD_BYTES_MAX - 2);
    assert!(refrain.enqueue("note", "3", &fits).await.unwrap().is_new());
    let refused = refrain.enqueue("note", "4", &format!("{fits}x")).await;
    assert!(matches!(refused, Err(Error::Payload { .. })), "one byte too many");
    assert!(refrain.show("note#4").await.unwrap().is_none());
}

#[every_store]
async fn a_payload_given_as_json_is_compared_with_the_first_one(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    let first = refrain.enqueue_json("welcome", "42", Some(r#"{"a": 1, "b": [2.50]}"#)).await.unwrap();
    assert_eq!((first.run.as_str(), first.did, first.payload_differs), ("welcome#42", Enqueued::New, false));
    let again = [
        (Some(r#"{"b":[2.5],"a":1}"#), false),
        (Some(r#"{"a": 1, "b": [2.51]}"#), true),
        (Some("null"), true),
        (None, false),
    ];
    for (payload, differs) in again {
        let report = refrain.enqueue_json("welcome", "42", payload).await.unwrap();
        assert_eq!((report.did, report.payload_differs), (Enqueued::Deduplicated, differs), "{payload:?}");
        assert_eq!(report.counts.deduplicated, 1);
    }
    database.store("update refrain_runs set payload = ''").await;
    let pruned = refrain.enqueue_json("welcome", "42", Some("7")).await.unwrap();
    assert!(!pruned.payload_differs, "a payload that was pruned cannot be compared");
}

#[every_store]
async fn an_invalid_run_name_is_refused_with_advice(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome"), nothing("report").timetable(daily())]).await;
    let message = |error: Error| error.to_string();
    let unknown = message(refrain.enqueue("wellcome", "42", &()).await.unwrap_err());
    assert!(unknown.contains("report, welcome"), "{unknown}");
    let windowed = message(refrain.enqueue("report", "42", &()).await.unwrap_err());
    assert!(windowed.contains("report@2026-06-09"), "{windowed}");
    let queued = message(refrain.run("welcome@2020-06-01", Ask::Once).await.unwrap_err());
    assert!(queued.contains("welcome#KEY"), "{queued}");
    let not_over = refrain.run("report@2199-06-01", Ask::Once).await.unwrap_err();
    assert!(matches!(not_over, Error::NotOver { .. }), "{not_over}");
    assert!(matches!(refrain.cancel("welcome#42").await, Err(Error::NoRun(_))));
}
