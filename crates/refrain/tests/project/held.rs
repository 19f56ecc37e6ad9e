//! An interrupted command that the operator settles as done.

use std::os::unix::process::ExitStatusExt;

use refrain::core::Person;
use refrain::core::state::FailureReason;
use refrain::{Ask, Did, Error};
use rustix::process::Signal;
use tokio::task::JoinSet;

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

const RUN: &str = "payment#1";

/// A shop in which a payment was interrupted.
async fn cut_off(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    let hold = r#"
        queue = true
        version = 3
        interrupted = "hold"
        command = ["sh", "-c", "echo paid >> paid; kill -KILL $$"]
    "#;
    shop.job("payment", hold);
    shop.job("fails", "queue = true\nretry = { attempts = 1 }\ncommand = [\"false\"]\n");
    shop.open().await.close().await;
    let report = shop.done(&["run", RUN]).await;
    assert!(report.starts_with("did Ran failed 1"), "{report}");
    shop
}

/// Decisions as `verb subject`, without the migrations.
async fn decided(shop: &TestProject) -> Vec<String> {
    let refrain = shop.open().await;
    let decisions = refrain.decisions(100).await.unwrap();
    refrain.close().await;
    let decisions = decisions.into_iter().filter(|one| one.verb != "migrate");
    decisions.map(|one| format!("{} {}", one.verb, one.subject)).collect()
}

#[both_databases]
async fn a_held_run_settled_as_done_is_not_executed_and_keeps_its_history(database: TestDatabase) {
    let shop = cut_off(database).await;
    let refrain =
        shop.open().await.by(Person::named("ada@office").unwrap().because("the bank says so").unwrap());
    let before = refrain.show(RUN).await.unwrap().unwrap();
    assert_eq!(before.reason, Some(FailureReason::Held));
    assert_eq!(refrain.doubts(&before).await.unwrap().len(), 1);
    let report = refrain.settle_held(RUN).await.unwrap();
    assert_eq!((report.did, report.is_done(), report.run.attempt), (Did::Settled, true, 2));
    assert_eq!((report.run.version, report.run.reason), (Some(3), None));
    assert_eq!(refrain.doubts(&report.run).await.unwrap(), []);
    let history = refrain.attempts(&report.run).await.unwrap();
    assert_eq!(
        (history.len(), history[0].ended.name(), history[0].reason),
        (1, "failed", Some(FailureReason::Held))
    );
    assert_eq!(refrain.run(RUN, Ask::Once).await.unwrap().did, Did::Deduplicated);
    let decisions = refrain.decisions_about(&report.run).await.unwrap();
    assert_eq!((decisions.len(), decisions[0].why.as_deref()), (1, Some("the bank says so")));
    assert!(refrain.fsck().await.unwrap().is_empty());
    refrain.close().await;
    assert_eq!(shop.lines("paid"), ["paid"]);
}

#[both_databases]
async fn only_a_held_run_can_be_settled_as_done(database: TestDatabase) {
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

#[both_databases]
async fn one_of_many_simultaneous_decisions_counts(database: TestDatabase) {
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

#[both_databases]
async fn of_two_contradicting_decisions_one_is_refused(database: TestDatabase) {
    let shop = cut_off(database).await;
    let refrain = shop.open().await;
    let (settled, retried) = tokio::join!(refrain.settle_held(RUN), refrain.retry(RUN));
    let executed = shop.lines("paid").len();
    match (&settled, &retried) {
        (Ok(_), Err(Error::Done { .. })) => assert_eq!(executed, 1),
        // It was retried, interrupted again, and perhaps that was settled.
        (_, Ok(_)) => assert!((1..=2).contains(&executed), "{settled:?} {retried:?}"),
        other => panic!("{other:?}"),
    }
    assert!(refrain.fsck().await.unwrap().is_empty());
    refrain.close().await;
}

#[both_databases]
async fn f2_a_decision_cut_off_by_a_kill_can_be_repeated(database: TestDatabase) {
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

#[both_databases]
async fn a_held_run_stays_held_after_pruning(database: TestDatabase) {
    let shop = cut_off(database).await;
    let refrain = shop.open().await;
    refrain.prune(std::time::Duration::ZERO, |_| {}).await.unwrap();
    assert_eq!(refrain.run(RUN, Ask::Once).await.unwrap().did, Did::Held);
    assert!(refrain.settle_held(RUN).await.unwrap().is_done());
    refrain.close().await;
    assert_eq!(shop.lines("paid"), ["paid"]);
}
