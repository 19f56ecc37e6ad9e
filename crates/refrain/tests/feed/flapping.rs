//! A source that goes to other content and back: what is applied is not done again, and what was changed back is.

use crate::both_databases;
use crate::calls::{FINE, calling, in_doubt, keys};
use crate::receiver::{Heard, Receiver, Reply};
use crate::support::TestDatabase;
use crate::sync::{RUN, Sync};

const FIRST: &str = "{\"id\":1,\"total\":10}";
const OTHER: &str = "{\"id\":1,\"total\":20}";

/// Whoever says twenty is refused.
fn but_twenty(reply: Reply) -> impl Fn(&Heard) -> Reply {
    move |heard| if heard.body.contains("20") { reply.clone() } else { FINE(heard) }
}

/// A job that tells a machine the total of one invoice.
async fn telling(database: TestDatabase, receiver: &Receiver, top: &str) -> Sync {
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

both_databases! {
    async fn f35_a_call_is_not_made_again_because_other_content_was_refused_in_between(database) {
        let receiver = Receiver::answering(but_twenty(Reply::Status(422, String::new()))).await;
        let sync = telling(database, &receiver, "").await;
        sync.source([OTHER]);
        sync.again().await;
        assert_eq!((bodies(&receiver), sync.left().await.len()), (vec!["10", "20"], 1));
        sync.source([FIRST]);
        // What failed is tried once more from what was kept; then the source says that it is not wanted any more.
        sync.again().await;
        sync.again().await;
        assert_eq!(bodies(&receiver), ["10", "20", "20"], "ten is applied, and stays so");
        assert_eq!(sync.left().await, Vec::<String>::new());
        assert!(sync.again().await.0.contains(" done "));
    }

    async fn f35_content_that_was_changed_back_is_sent_under_a_key_of_its_own(database) {
        let receiver = Receiver::answering(FINE).await;
        let sync = telling(database, &receiver, "").await;
        for line in [OTHER, FIRST, OTHER] {
            sync.source([line]);
            assert!(sync.again().await.0.contains(" done "));
        }
        assert_eq!(bodies(&receiver), ["10", "20", "10", "20"]);
        assert_eq!(keys(&receiver, "1").len(), 4, "a provider that remembers the first would keep what came between");
    }

    async fn f9_content_beneath_a_request_without_an_answer_is_not_known_to_be_applied(database) {
        let receiver = Receiver::answering(but_twenty(Reply::Cut)).await;
        let sync = telling(database, &receiver, "").await;
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
        assert_eq!(bodies(&receiver), ["10", "20", "20", "10"], "twenty may have been done, so ten is sent again");
        assert_eq!(sync.left().await, Vec::<String>::new());
    }

    async fn f1_killed_while_a_failed_try_is_taken_off_it_is_taken_off_by_the_next(database) {
        for ending in ["before-commit=return(kill)", "after-commit=return(kill)", "reply=1*return(lost)"] {
            let receiver = Receiver::answering(but_twenty(Reply::Status(422, String::new()))).await;
            let sync = telling(TestDatabase::like(&database).await, &receiver, "retry = { attempts = 1 }").await;
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

    async fn f35_a_row_is_not_appended_again_because_other_content_was_refused_in_between(database) {
        let sync = Sync::of(database).await;
        sync.shop.execute("create table log (id bigint not null, total bigint not null check (total < 20))").await;
        let into = "[publish]\ndatabase = \"shop\"\ntable = \"log\"\nmode = \"append-once\"\n";
        sync.job("command = [\"./list\"]\noutput = \"units\"", "", "per = \"ever\"", into);
        for line in [FIRST, OTHER, FIRST, FIRST] {
            sync.source([line]);
            sync.ask(&["run", RUN, "--again"]).await;
        }
        assert_eq!(sync.shop.rows("select cast(total as text) from log").await, ["10"]);
        assert_eq!(sync.left().await, Vec::<String>::new());
    }
}
