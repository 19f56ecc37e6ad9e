//! A call for each unit: made once, or known to be in doubt, whatever happens to either side.

use std::collections::BTreeSet;

use serde_json::json;

use crate::receiver::{Heard, Receiver, Reply};
use crate::sync::{LEASE, RUN, Sync, lines, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

pub(crate) const FINE: fn(&Heard) -> Reply = |_| Reply::Status(200, String::new());

/// A job that calls a receiver for each of six invoices.
pub(crate) async fn calling(database: TestDatabase, receiver: &Receiver, top: &str, unit: &str) -> Sync {
    let sync = Sync::of(database).await;
    let url = receiver.url();
    let http = format!(
        "http = {{ url = \"{url}/invoices/{{id}}\", headers = {{ X-Job = \"{{job}}\" }}, timeout = \"10m\", \
         json = {{ id = \"{{id}}\", note = \"no. {{id}}\" }} }}\n{unit}"
    );
    let top = format!("database = \"shop\"\n{top}");
    sync.job("command = [\"./list\"]\noutput = \"units\"", &top, &http, "");
    sync.source(lines(1..=6));
    sync
}

/// A receiver that answers one of the invoices differently.
pub(crate) fn but(id: &'static str, reply: Reply) -> impl Fn(&Heard) -> Reply {
    move |heard| if heard.id() == id { reply.clone() } else { FINE(heard) }
}

pub(crate) fn keys(receiver: &Receiver, id: &str) -> BTreeSet<(String, String)> {
    let heard = receiver.heard().into_iter().filter(|heard| heard.id() == id);
    heard.map(|heard| (heard.key().to_owned(), heard.body)).collect()
}

/// The keys of units that are in doubt.
pub(crate) async fn in_doubt(sync: &Sync) -> Vec<String> {
    let left = sync.left().await.into_iter().filter(|line| line.contains(" parked in doubt: "));
    left.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[both_databases]
async fn a_call_is_made_once_per_unit_and_again_when_it_changes(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "").await;
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!(sync.again().await.0, "Ran done 2");
    assert_eq!(receiver.ids(), texts(1..=6));
    sync.source(["{\"id\":1,\"total\":11}"]);
    assert_eq!(sync.again().await.0, "Ran done 3");
    assert_eq!(sync.counts().await, [[6, 0, 0, 0], [0, 0, 6, 0], [1, 0, 0, 0]]);
    let one = receiver.heard().into_iter().find(|heard| heard.id() == "1").unwrap();
    assert_eq!((one.method.as_str(), one.path.as_str()), ("POST", "/invoices/1"));
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&one.body).unwrap(),
        json!({"id": 1, "note": "no. 1"})
    );
    assert_eq!(
        (one.headers["x-job"].as_str(), one.headers["content-type"].as_str()),
        ("sync", "application/json")
    );
    let keys: BTreeSet<String> = receiver.heard().iter().map(|heard| heard.key().to_owned()).collect();
    assert_eq!((receiver.heard().len(), keys.len()), (7, 7), "each content has a key of its own");
    assert_eq!(sync.left().await, Vec::<String>::new());
}

#[both_databases]
async fn m13_only_a_refused_call_is_made_again(database: TestDatabase) {
    let receiver = Receiver::answering(but("4", Reply::Status(422, "no such customer".to_owned()))).await;
    let sync = calling(database, &receiver, "", "").await;
    assert_eq!(sync.run().await.0, "Ran due 2");
    let message = sync.last_message().await;
    assert!(
        message.starts_with("1 of 6 units are not applied: invoice:4: the response was 422"),
        "{message}"
    );
    assert!(message.ends_with(": no such customer"), "{message}");
    receiver.answers(FINE);
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(receiver.ids(), ["1", "2", "3", "4", "4", "5", "6"]);
    assert_eq!(keys(&receiver, "4").len(), 1, "its key is the same both times");
    assert_eq!(sync.counts().await, [[5, 0, 0, 1], [1, 0, 5, 0]]);
}

#[both_databases]
async fn a_unit_refused_too_often_is_parked_until_the_operator_retries_it(database: TestDatabase) {
    let receiver = Receiver::answering(but("4", Reply::Status(422, String::new()))).await;
    let sync = calling(database, &receiver, "retry = { attempts = 2, backoff = \"1s..1s\" }", "").await;
    sync.run().await;
    assert_eq!(sync.run().await.0, "Ran partial 2");
    assert_eq!(sync.again().await.0, "Ran partial 3");
    assert_eq!(receiver.ids(), ["1", "2", "3", "4", "4", "5", "6"]);
    assert_eq!(in_doubt(&sync).await, Vec::<String>::new());
    receiver.answers(FINE);
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.confirm_unit(RUN, "invoice:4").await.unwrap(), 0, "it is not in doubt");
    assert_eq!(refrain.unpark(RUN, "invoice:4").await.unwrap(), 1);
    refrain.close().await;
    assert_eq!(sync.again().await.0, "Ran done 4");
}

#[both_databases]
async fn f9_a_lost_answer_leaves_a_doubt_and_no_second_request(database: TestDatabase) {
    for reply in
        [Reply::Cut, Reply::Status(502, String::new()), Reply::Elsewhere(303, "/elsewhere".to_owned())]
    {
        let receiver = Receiver::answering(but("4", reply)).await;
        let sync = calling(TestDatabase::like(&database).await, &receiver, "", "").await;
        assert_eq!(sync.run().await.0, "Ran partial 1", "another attempt would change nothing");
        let message = sync.last_message().await;
        assert!(
            message.starts_with("1 of 6 units are not applied: invoice:4: in doubt: the response was "),
            "{message}"
        );
        receiver.answers(FINE);
        assert_eq!(sync.run().await.0, "Ran partial 2");
        assert_eq!(sync.run().await.0, "Ran partial 3");
        assert_eq!(sync.again().await.0, "Ran partial 4", "every later request reports it");
        assert_eq!(receiver.ids(), texts(1..=6));
        assert_eq!(in_doubt(&sync).await, ["invoice:4"]);
        // The receiver has got it.
        let refrain = sync.shop.open().await;
        let unit = refrain.trace("invoice:4").await.unwrap().units.remove(0);
        assert!(unit.in_doubt_since.is_some());
        assert_eq!(refrain.confirm_unit(RUN, "invoice:4").await.unwrap(), 1);
        refrain.close().await;
        assert_eq!(sync.again().await.0, "Ran done 5");
        assert_eq!(receiver.ids(), texts(1..=6));
        assert_eq!(sync.left().await, Vec::<String>::new());
    }
}

#[both_databases]
async fn the_operator_can_have_a_request_sent_again_under_the_same_key(database: TestDatabase) {
    let receiver = Receiver::answering(but("4", Reply::Cut)).await;
    let sync = calling(database, &receiver, "", "").await;
    sync.run().await;
    receiver.answers(FINE);
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.unpark(RUN, "invoice:4").await.unwrap(), 1);
    refrain.close().await;
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(receiver.ids(), ["1", "2", "3", "4", "4", "5", "6"]);
    assert_eq!(keys(&receiver, "4").len(), 1);
}

#[both_databases]
async fn a_call_without_an_answer_times_out_and_is_in_doubt(database: TestDatabase) {
    let receiver = Receiver::answering(but("4", Reply::Silence)).await;
    let sync = calling(database, &receiver, "", "").await;
    sync.source(lines([1, 2, 3, 5, 6]));
    assert_eq!(sync.run().await.0, "Ran done 1");
    let job = sync.shop.lines("jobs/sync.toml").join("\n").replace("timeout = \"10m\"", "timeout = \"1s\"");
    sync.shop.job("sync", &job);
    sync.source(lines(1..=6));
    sync.again().await;
    assert!(
        sync.last_message().await.contains("in doubt: no response within 1s"),
        "{}",
        sync.last_message().await
    );
    assert_eq!((receiver.ids(), in_doubt(&sync).await), (texts(1..=6), vec!["invoice:4".to_owned()]));
}

#[both_databases]
async fn without_a_connection_no_call_is_in_doubt_and_all_are_made_later(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "").await;
    let job = sync.shop.lines("jobs/sync.toml").join("\n");
    // Bound without listening: no other test gets the port, and a connection to it is refused.
    let unused = tokio::net::TcpSocket::new_v4().unwrap();
    unused.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let unused = (unused.local_addr().unwrap().port(), unused);
    sync.shop.job("sync", &job.replace(&receiver.port.to_string(), &unused.0.to_string()));
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert!(sync.last_message().await.contains("nothing was sent: "), "{}", sync.last_message().await);
    assert_eq!(in_doubt(&sync).await, Vec::<String>::new());
    sync.shop.job("sync", &job);
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(receiver.ids(), texts(1..=6));
}

#[both_databases]
async fn plain_http_works_on_a_host_without_ca_certificates(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "").await;
    let job = sync.shop.lines("jobs/sync.toml").join("\n");
    sync.source(lines(1..=1));
    sync.prepare().await;
    let no_certificates = [("SSL_CERT_FILE", "/nonexistent"), ("SSL_CERT_DIR", "/nonexistent")];
    assert!(sync.shop.done_with(&["run", RUN], &no_certificates).await.starts_with("did Ran done"));
    sync.shop.job("sync", &job.replace("http://127", "https://127"));
    sync.source(lines(2..=2));
    sync.shop.done_with(&["run", RUN, "--again"], &no_certificates).await;
    let message = sync.last_message().await;
    assert!(message.contains("nothing was sent") && message.contains("install ca-certificates"), "{message}");
    assert_eq!((receiver.ids(), in_doubt(&sync).await), (texts(1..=1), Vec::new()));
}

#[both_databases]
async fn s15_no_redirect_is_followed(database: TestDatabase) {
    let other = Receiver::answering(FINE).await;
    let to = other.url();
    let receiver = Receiver::answering(move |_| Reply::Elsewhere(307, to.clone())).await;
    let sync = calling(database, &receiver, "", "").await;
    sync.run().await;
    assert!(sync.last_message().await.contains("the response was 307"), "{}", sync.last_message().await);
    assert_eq!((receiver.ids(), other.ids()), (texts(1..=6), Vec::new()));
}

#[both_databases]
async fn h5_never_more_calls_at_once_than_the_job_says(database: TestDatabase) {
    // The fourth request never arrives while the first three are unanswered; otherwise all would be in flight.
    let receiver = Receiver::answering(|_| Reply::When(3, 200)).await;
    let sync = calling(database, &receiver, "", "parallel = 3").await;
    sync.source(lines(1..=3));
    assert_eq!(sync.run().await.0, "Ran done 1", "three are in flight at once");
    receiver.answers(|heard| if heard.id() == "nod" { FINE(heard) } else { Reply::When(7, 200) });
    sync.source(lines(4..=7));
    let mut process = sync.shop.process(&["run", RUN, "--again"], &[LEASE]);
    receiver.until(6).await;
    assert_eq!(receiver.heard().len(), 6);
    receiver.nod().await;
    process.finish().await;
    assert_eq!(receiver.ids(), [texts(1..=7), vec!["nod".to_owned()]].concat());
}

#[both_databases]
async fn s19_a_secret_echoed_by_the_server_is_not_stored(database: TestDatabase) {
    let receiver = Receiver::answering(|heard| {
        Reply::Status(401, format!("who is {}?", heard.headers["authorization"]))
    })
    .await;
    let sync = calling(database, &receiver, "", "").await;
    sync.prepare().await;
    let job = sync
        .shop
        .lines("jobs/sync.toml")
        .join("\n")
        .replace("X-Job = \"{job}\"", "Authorization = \"Bearer ${THE_TOKEN}\"");
    sync.shop.job("sync", &job);
    sync.source(lines(1..=1));
    let variables = [("THE_TOKEN", "hunter2-hunter2")];
    let message = sync.shop.done_with(&["run", RUN], &variables).await;
    assert_eq!(receiver.heard()[0].headers["authorization"], "Bearer hunter2-hunter2");
    let left = sync.left().await.concat();
    assert!(
        left.contains("who is Bearer") && !left.contains("hunter2") && !message.contains("hunter2"),
        "{left} {message}"
    );
}

#[both_databases]
async fn s19_the_error_of_a_missing_field_shows_no_other_value(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "").await;
    sync.prepare().await;
    let job = sync
        .shop
        .lines("jobs/sync.toml")
        .join("\n")
        .replace("X-Job = \"{job}\"", "X-Key = \"${THE_TOKEN} {gone}\"");
    sync.shop.job("sync", &job);
    sync.source(lines(1..=1));
    let message = sync.shop.done_with(&["run", RUN], &[("THE_TOKEN", "hun{ter2-hunter2")]).await;
    let left = sync.left().await.concat();
    assert!(left.contains("{gone} in `${THE_TOKEN} {gone}` has no value"), "{left}");
    assert!(!left.contains("ter2") && !message.contains("ter2"), "{left} {message}");
    assert_eq!(receiver.heard(), []);
}

#[both_databases]
async fn the_proxy_variables_of_the_environment_are_used(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "").await;
    let job = sync.shop.lines("jobs/sync.toml").join("\n");
    sync.shop.job("sync", &job.replace(&receiver.url(), "http://books.invalid"));
    sync.source(lines(1..=1));
    sync.prepare().await;
    let message = sync
        .shop
        .done_with(&["run", RUN], &[("HTTP_PROXY", &receiver.url()), ("http_proxy", &receiver.url())])
        .await;
    assert!(message.starts_with("did Ran done"), "{message}");
    assert_eq!(receiver.heard()[0].path, "http://books.invalid/invoices/1");
}

#[both_databases]
async fn a_value_that_is_invalid_in_a_header_fails_its_unit(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "").await;
    let job =
        sync.shop.lines("jobs/sync.toml").join("\n").replace("X-Job = \"{job}\"", "X-Note = \"{note}\"");
    sync.shop.job("sync", &job);
    sync.source([
        "{\"id\":1,\"note\":\"a\\r\\nHost: evil\"}",
        "{\"id\":2,\"note\":\"b\"}",
        "{\"id\":3}",
        "{\"id\":\"..\",\"note\":\"c\"}",
    ]);
    sync.run().await;
    assert_eq!(receiver.ids(), ["2"]);
    let left = sync.left().await;
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(
        left[0].contains("`.` or `..`")
            && left[1].contains("the header `X-Note` contains a line break")
            && left[2].contains("{note}"),
        "{left:?}"
    );
}

#[both_databases]
async fn a_unit_of_another_window_is_another_call(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "per = \"window\"").await;
    sync.source(lines(1..=1));
    for window in [RUN, "sync@2020-06-10"] {
        assert_eq!(sync.ask(&["run", window]).await.0, "Ran done 1");
    }
    assert_eq!(
        keys(&receiver, "1").len(),
        2,
        "a provider that remembers the key would take the second for the first"
    );
}
