//! A command that was cut off, and of which a person says that it has done its work.

use std::os::unix::process::ExitStatusExt;

use refrain::core::Person;
use refrain::core::state::FailureReason;
use refrain::{Ask, Did, Error};
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::both_databases;
use crate::shop::Shop;
use crate::support::TestDatabase;

const RUN: &str = "payment#1";

/// A shop in which a payment was cut off.
async fn cut_off(database: TestDatabase) -> Shop {
    let shop = Shop::of(database);
    let hold = "queue = true\nversion = 3\ninterrupted = \"hold\"\ncommand = [\"sh\", \"-c\", \"echo paid >> paid; kill -KILL $$\"]\n";
    shop.job("payment", hold);
    shop.job("fails", "queue = true\nretry = { attempts = 1 }\ncommand = [\"false\"]\n");
    shop.open().await.close().await;
    let report = shop.done(&["run", RUN]).await;
    assert!(report.starts_with("did Ran failed 1"), "{report}");
    shop
}

/// What was decided, as `verb subject`; without the making of tables.
async fn decided(shop: &Shop) -> Vec<String> {
    let refrain = shop.open().await;
    let decisions = refrain.decisions(100).await.unwrap();
    refrain.close().await;
    let decisions = decisions.into_iter().filter(|one| one.verb != "migrate");
    decisions.map(|one| format!("{} {}", one.verb, one.subject)).collect()
}

both_databases! {
    async fn it_becomes_done_is_not_executed_and_keeps_its_history(database) {
        let shop = cut_off(database).await;
        let refrain = shop.open().await.by(Person::named("ada@office").unwrap().because("the bank says so").unwrap());
        let before = refrain.show(RUN).await.unwrap().unwrap();
        assert_eq!(before.reason, Some(FailureReason::Held));
        assert_eq!(refrain.doubts(&before).await.unwrap().len(), 1);
        let report = refrain.settle_held(RUN).await.unwrap();
        assert_eq!((report.did, report.is_done(), report.run.attempt), (Did::Settled, true, 2));
        assert_eq!((report.run.version, report.run.reason), (Some(3), None));
        assert_eq!(refrain.doubts(&report.run).await.unwrap(), []);
        let history = refrain.attempts(&report.run).await.unwrap();
        assert_eq!((history.len(), history[0].ended.as_str(), history[0].reason), (1, "failed", Some(FailureReason::Held)));
        assert_eq!(refrain.run(RUN, Ask::Once).await.unwrap().did, Did::Deduplicated);
        let decisions = refrain.decisions_about(&report.run).await.unwrap();
        assert_eq!((decisions.len(), decisions[0].why.as_deref()), (1, Some("the bank says so")));
        assert!(refrain.fsck().await.unwrap().is_empty());
        refrain.close().await;
        assert_eq!(shop.lines("paid"), ["paid"]);
    }

    async fn nothing_else_is_settled_so(database) {
        let shop = cut_off(database).await;
        shop.done(&["run", "fails#1"]).await;
        let refrain = shop.open().await;
        for (run, state) in [("fails#1", "failed"), (RUN, "done")] {
            if run == RUN {
                refrain.settle_held(run).await.unwrap();
            }
            match refrain.settle_held(run).await {
                Err(Error::NotHeld { state: found, .. }) => assert_eq!(found, state),
                other => panic!("{run}: {other:?}"),
            }
        }
        assert!(matches!(refrain.settle_held("payment#2").await, Err(Error::NoRun(_))));
        refrain.close().await;
        assert_eq!(decided(&shop).await, ["done payment#1"], "what is refused is not decided");
    }

    async fn of_many_who_say_so_at_once_one_is_heard(database) {
        let shop = cut_off(database).await;
        let refrain = shop.open().await;
        let mut people = JoinSet::new();
        for number in 0..12 {
            let person = refrain.by(Person::named(&format!("person {number}")).unwrap());
            people.spawn(async move { person.settle_held(RUN).await.is_ok() });
        }
        let heard = people.join_all().await.into_iter().filter(|is_heard| *is_heard).count();
        let run = refrain.show(RUN).await.unwrap().unwrap();
        refrain.close().await;
        assert_eq!((heard, run.attempt), (1, 2));
        assert_eq!(decided(&shop).await, ["done payment#1"]);
    }

    async fn one_says_that_it_was_done_and_another_has_it_executed_again_and_one_of_them_is_refused(database) {
        let shop = cut_off(database).await;
        let refrain = shop.open().await;
        let (settled, retried) = tokio::join!(refrain.settle_held(RUN), refrain.retry(RUN));
        let executed = shop.lines("paid").len();
        match (&settled, &retried) {
            (Ok(_), Err(Error::Done { .. })) => assert_eq!(executed, 1),
            // It was tried again, was cut off again, and perhaps that was settled.
            (_, Ok(_)) => assert!((1..=2).contains(&executed), "{settled:?} {retried:?}"),
            other => panic!("{other:?}"),
        }
        assert!(refrain.fsck().await.unwrap().is_empty());
        refrain.close().await;
    }

    async fn f2_killed_while_that_is_recorded_it_is_said_again_and_decided_once(database) {
        for when in ["before-commit", "after-commit"] {
            let shop = cut_off(TestDatabase::like(&database).await).await;
            let failpoints = format!("settle.{when}=return(kill)");
            let killed = shop.process(&["settle", RUN], &[("FAILPOINTS", &failpoints)]).finish().await;
            assert_eq!(killed.status.signal(), Some(Signal::KILL.as_raw()), "{when}");
            let again = shop.process(&["settle", RUN], &[]).finish().await;
            assert_eq!(again.status.success(), when == "before-commit", "{when}");
            assert_eq!(decided(&shop).await, ["done payment#1"], "{when}");
            assert_eq!(shop.lines("paid"), ["paid"], "{when}");
        }
        let shop = cut_off(TestDatabase::like(&database).await).await;
        let lost = shop.done_with(&["settle", RUN], &[("FAILPOINTS", "settle.reply=1*return(lost)")]).await;
        assert_eq!(lost, "did Settled done 2\n", "its own word, whose answer was lost");
        assert_eq!(shop.lines("struck"), ["settle.reply"]);
        assert_eq!(decided(&shop).await, ["done payment#1"]);
    }

    async fn what_is_held_stays_so_when_old_bodies_are_forgotten(database) {
        let shop = cut_off(database).await;
        let refrain = shop.open().await;
        refrain.prune(std::time::Duration::ZERO, |_| {}).await.unwrap();
        assert_eq!(refrain.run(RUN, Ask::Once).await.unwrap().did, Did::Held);
        assert!(refrain.settle_held(RUN).await.unwrap().is_done());
        refrain.close().await;
        assert_eq!(shop.lines("paid"), ["paid"]);
    }
}
