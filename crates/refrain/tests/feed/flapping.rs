//! A source that changes to other content and back: applied content is not applied again, and
//! content that changed back is.

use crate::calls::{FINE, calling, in_doubt, keys};
use crate::receiver::{Heard, Receiver, Reply};
use crate::sync::{RUN, Sync};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const FIRST: &str = "{\"id\":1,\"total\":10}";
const OTHER: &str = "{\"id\":1,\"total\":20}";

/// A unit with a total of twenty is refused.
fn but_twenty(reply: Reply) -> impl Fn(&Heard) -> Reply {
    move |heard| if heard.body.contains("20") { reply.clone() } else { FINE(heard) }
}

/// A job that sends the total of one invoice to a receiver.
async fn calling_with_total(database: TestDatabase, receiver: &Receiver, top: &str) -> Sync {
    let sync = calling(database, receiver, top, "per = \"ever\"").await;
    let job = sync.shop.lines("jobs/sync.toml").join("\n").replace("no. {id}", "{total}");
    sync.shop.job("sync", &job);
    sync.source([FIRST]);
    assert_eq!(sync.run().await.0, "Ran done 1");
    sync
}

fn bodies(receiver: &Receiver) -> Vec<&'static str> {
    let heard = receiver.heard();
    heard.iter().map(|heard| if heard.body.contains("20") { "20" } else { "10" }).collect()
}

#[both_databases]
async fn f35_refused_content_in_between_does_not_repeat_a_call(database: TestDatabase) {
    let receiver = Receiver::answering(but_twenty(Reply::Status(422, String::new()))).await;
    let sync = calling_with_total(database, &receiver, "").await;
    sync.source([OTHER]);
    sync.again().await;
    assert_eq!((bodies(&receiver), sync.left().await.len()), (vec!["10", "20"], 1));
    sync.source([FIRST]);
    // Failed content is tried once more from its stored input; then the source has withdrawn it.
    sync.again().await;
    sync.again().await;
    assert_eq!(bodies(&receiver), ["10", "20", "20"], "ten stays applied");
    assert_eq!(sync.left().await, Vec::<String>::new());
    assert!(sync.again().await.0.contains(" done "));
}

#[both_databases]
async fn f35_content_that_changes_back_is_sent_under_its_own_key(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling_with_total(database, &receiver, "").await;
    for line in [OTHER, FIRST, OTHER] {
        sync.source([line]);
        assert!(sync.again().await.0.contains(" done "));
    }
    assert_eq!(bodies(&receiver), ["10", "20", "10", "20"]);
    assert_eq!(
        keys(&receiver, "1").len(),
        4,
        "a provider that remembers the first would keep what came between"
    );
}

#[both_databases]
async fn f9_content_below_an_unanswered_request_is_not_taken_for_applied(database: TestDatabase) {
    let receiver = Receiver::answering(but_twenty(Reply::Cut)).await;
    let sync = calling_with_total(database, &receiver, "").await;
    sync.source([OTHER]);
    sync.again().await;
    sync.source([FIRST]);
    sync.again().await;
    assert_eq!(in_doubt(&sync).await, ["invoice:1"], "nothing is done under a key that is in doubt");
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.unpark(RUN, "invoice:1").await.unwrap(), 1);
    refrain.close().await;
    receiver.answers(but_twenty(Reply::Status(422, String::new())));
    for _ in 0..2 {
        sync.again().await;
    }
    assert_eq!(
        bodies(&receiver),
        ["10", "20", "20", "10"],
        "twenty may have been done, so ten is sent again"
    );
    assert_eq!(sync.left().await, Vec::<String>::new());
}

#[both_databases]
async fn f1_a_withdrawal_cut_off_by_a_kill_is_done_by_the_next_attempt(database: TestDatabase) {
    for ending in ["before-commit=return(kill)", "after-commit=return(kill)", "reply=1*return(lost)"] {
        let receiver = Receiver::answering(but_twenty(Reply::Status(422, String::new()))).await;
        let sync =
            calling_with_total(TestDatabase::like(&database).await, &receiver, "retry = { attempts = 1 }")
                .await;
        sync.source([OTHER]);
        sync.again().await;
        sync.source([FIRST]);
        let failpoints = format!("unit-restore.{ending}");
        let again = ["run", RUN, "--again"];
        sync.shop.process(&again, &[("FAILPOINTS", &failpoints), crate::sync::LEASE]).finish().await;
        assert_eq!(sync.shop.lines("struck").len(), 1, "{ending}");
        for _ in 0..3 {
            sync.run().await;
        }
        sync.again().await;
        assert_eq!((bodies(&receiver), sync.left().await.len()), (vec!["10", "20"], 0), "{ending}");
    }
}

#[both_databases]
async fn f35_refused_content_in_between_does_not_repeat_an_append(database: TestDatabase) {
    let sync = Sync::of(database).await;
    sync.shop
        .execute("create table log (id bigint not null, total bigint not null check (total < 20))")
        .await;
    let into = r#"
        [publish]
        database = "shop"
        table = "log"
        mode = "append-once"
    "#;
    sync.job("command = [\"./list\"]\noutput = \"units\"", "", "per = \"ever\"", into);
    for line in [FIRST, OTHER, FIRST, FIRST] {
        sync.source([line]);
        sync.ask(&["run", RUN, "--again"]).await;
    }
    assert_eq!(sync.shop.rows("select cast(total as text) from log").await, ["10"]);
    assert_eq!(sync.left().await, Vec::<String>::new());
}
