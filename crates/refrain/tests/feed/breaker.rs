//! The circuit breaker: when many calls in a row fail, the attempt fails, and no unit is blamed.

use std::collections::BTreeSet;

use crate::calls::{FINE, calling, in_doubt};
use crate::receiver::{Heard, Receiver, Reply};
use crate::sync::lines;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

#[both_databases]
async fn when_every_call_is_refused_no_unit_is_blamed(database: TestDatabase) {
    let receiver = Receiver::answering(|_| Reply::Status(429, String::new())).await;
    let sync = calling(database, &receiver, "", "").await;
    sync.source(lines(1..=60));
    assert_eq!(sync.run().await.0, "Ran due 2");
    let message = sync.last_message().await;
    assert!(message.contains("20 units in a row") && message.contains("the response was 429"), "{message}");
    assert!(receiver.heard().len() < 30, "it goes on asking: {}", receiver.heard().len());
    assert_eq!(in_doubt(&sync).await, Vec::<String>::new());
    receiver.answers(FINE);
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(receiver.ids().into_iter().collect::<BTreeSet<_>>().len(), 60);
}

#[both_databases]
async fn a_request_that_fails_for_every_unit_fails_the_attempt(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "").await;
    let job = sync.shop.lines("jobs/sync.toml").join("\n");
    sync.shop.job("sync", &job.replace("X-Job = \"{job}\"", "X-Job = \"{custmer}\""));
    sync.source(lines(1..=60));
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert!(
        sync.last_message().await.contains("20 units in a row")
            && sync.last_message().await.contains("{custmer}"),
        "{}",
        sync.last_message().await
    );
    assert_eq!(sync.left().await, Vec::<String>::new());
    sync.shop.job("sync", &job);
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(receiver.heard().len(), 60);
}

#[both_databases]
async fn many_refused_calls_do_not_delay_the_other_units(database: TestDatabase) {
    let bad = |heard: &Heard| heard.id().len() == 4 && heard.id().ends_with(['0', '2', '4', '6', '8']);
    let receiver =
        Receiver::answering(
            move |heard| if bad(heard) { Reply::Status(422, String::new()) } else { FINE(heard) },
        )
        .await;
    let sync = calling(database, &receiver, "", "per = \"ever\"").await;
    // Between each two refused calls one succeeds, so that the circuit breaker stays closed.
    sync.source(lines(1000..=1047));
    sync.run().await;
    assert_eq!(sync.left().await.len(), 24);
    sync.source(lines(200..=210));
    sync.run().await;
    assert!(receiver.ids().contains(&"210".to_owned()), "the source was read");
}

#[both_databases]
async fn calls_stop_when_all_of_them_are_in_doubt(database: TestDatabase) {
    let receiver = Receiver::answering(|_| Reply::Cut).await;
    let sync = calling(database, &receiver, "", "").await;
    sync.source(lines(1..=60));
    assert_eq!(sync.run().await.0, "Ran due 2");
    let heard = receiver.heard().len();
    assert!(heard < 30, "{heard}");
    assert_eq!(in_doubt(&sync).await.len(), heard, "each of them is known");
    receiver.answers(FINE);
    sync.run().await;
    assert_eq!(receiver.ids().len(), 60, "no request was sent twice");
}

#[both_databases]
async fn the_next_page_is_not_read_when_a_whole_page_is_in_doubt(database: TestDatabase) {
    let receiver = Receiver::answering(|_| Reply::Cut).await;
    let sync = calling(database, &receiver, "", "").await;
    let job = sync.shop.lines("jobs/sync.toml").join("\n");
    sync.shop.job("sync", &format!("{job}\n[cursor]\n"));
    let page = |ids: std::ops::RangeInclusive<u32>, token: &str| {
        [lines(ids), vec![format!("{{\"$cursor\":\"{token}\"}}")]].concat()
    };
    sync.source([page(1..=20, "a"), page(21..=40, "b")].concat());
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!(receiver.ids().len(), 20, "the operator has to check each of them");
}
