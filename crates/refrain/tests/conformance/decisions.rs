//! Decisions of operators are recorded once, with who and why, in the transaction that carries them
//! out.

use refrain_harness::every_store;
use std::time::Duration;

use refrain::admin::Cancelling;
use refrain::core::Person;
use refrain::{Ask, JobError, Refrain};

use refrain_harness::TestDatabase;
use refrain_harness::work::{Gate, is_sound, job, nothing, open, shown};

fn ada(refrain: &Refrain) -> Refrain {
    refrain.by(Person::named("ada@office").unwrap().because("the bank asked for it").unwrap())
}

/// Decisions as `who verb subject`, oldest first.
async fn decided(refrain: &Refrain) -> Vec<String> {
    let mut records = refrain.decisions(100).await.unwrap();
    records.reverse();
    let records = records.into_iter().filter(|one| one.verb != "migrate");
    records.map(|one| format!("{} {} {}", one.who.as_deref().unwrap_or("-"), one.verb, one.subject)).collect()
}

#[every_store]
async fn a_decision_about_a_job_is_recorded_only_if_it_changed_something(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    let ada = ada(&refrain);
    assert!(ada.pause("welcome").await.unwrap());
    assert!(!refrain.pause("welcome").await.unwrap(), "it was paused");
    assert!(refrain.resume("welcome").await.unwrap());
    assert!(!ada.resume("welcome").await.unwrap());
    assert_eq!(decided(&refrain).await, ["ada@office pause welcome", "- resume welcome"]);
    let last = &refrain.decisions(1).await.unwrap()[0];
    assert_eq!((last.who.as_deref(), last.why.as_deref()), (None, None), "a program names no operator");
}

#[every_store]
async fn a_follower_of_another_attempt_is_not_recorded_as_its_decider(database: TestDatabase) {
    let fails_first = job("report", |run| async move {
        if run.attempt() == 1 { Err(JobError::for_good("no")) } else { Ok(()) }
    });
    let refrain = open(&database, [fails_first]).await;
    let ada = ada(&refrain);
    ada.run("report#a", Ask::Once).await.unwrap();
    assert_eq!(decided(&refrain).await, Vec::<String>::new(), "a request alone is not a decision");
    ada.retry("report#a").await.unwrap();
    assert!(ada.retry("report#a").await.is_err(), "it is done");
    refrain.run("report#a", Ask::Once).await.unwrap();
    ada.run("report#a", Ask::Again).await.unwrap();
    ada.run("report#a", Ask::Redo).await.unwrap();
    let expected = ["ada@office retry report#a", "ada@office again report#a", "ada@office redo report#a"];
    assert_eq!(decided(&refrain).await, expected);
    let about = refrain.decisions_about(&shown(&refrain, "report#a").await).await.unwrap();
    assert_eq!(about.len(), 3);
    assert!(about.iter().all(|one| one.why.as_deref() == Some("the bank asked for it")));
    assert!(
        matches!(ada.run("report#b", Ask::Redo).await, Err(refrain::Error::NoRun(_))),
        "there is nothing to redo"
    );
    is_sound(&refrain).await;
}

#[every_store]
async fn a_redo_is_refused_while_an_ordinary_attempt_is_open(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("report")]).await;
    let first = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.run("report#a", Ask::Once).await.unwrap() }
    });
    gate.have_begun(1).await;
    let refused = refrain.run("report#a", Ask::Redo).await.unwrap_err().to_string();
    assert!(refused.contains("is running") && refused.contains("refrain run report#a"), "{refused}");
    gate.let_through(1);
    assert!(first.await.unwrap().is_done());
    assert_eq!(decided(&refrain).await, Vec::<String>::new());
}

#[every_store]
async fn a_cancelled_run_names_who_cancelled_it_once(database: TestDatabase) {
    let gate = Gate::closed();
    let refrain = open(&database, [gate.job("export"), nothing("welcome")]).await;
    let ada = ada(&refrain);
    refrain.enqueue("welcome", "a", &()).await.unwrap();
    assert_eq!(ada.cancel("welcome#a").await.unwrap(), Cancelling::Cancelled);
    assert_eq!(ada.cancel("welcome#a").await.unwrap(), Cancelling::Deduplicated);
    let under_way = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.run("export#a", Ask::Once).await.unwrap() }
    });
    gate.have_begun(1).await;
    for _ in 0..2 {
        assert_eq!(ada.cancel("export#a").await.unwrap(), Cancelling::Asked);
    }
    under_way.await.unwrap();
    assert_eq!(decided(&refrain).await, ["ada@office cancel welcome#a", "ada@office cancel export#a"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn the_record_of_a_pruning_is_never_pruned(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    ada(&refrain).pause("welcome").await.unwrap();
    ada(&refrain).prune(Duration::ZERO, |_| {}).await.unwrap();
    refrain.prune(Duration::ZERO, |_| {}).await.unwrap();
    let verbs: Vec<String> = refrain.decisions(10).await.unwrap().into_iter().map(|one| one.verb).collect();
    assert_eq!(verbs[..3], ["prune", "prune", "pause"]);
    assert_eq!(refrain.decisions(1).await.unwrap()[0].detail.as_deref(), Some("older than 0s"));
}

#[every_store]
async fn fsck_finds_a_decision_about_a_missing_run(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    database
        .store("insert into refrain_audit (at, verb, subject, run) values (0, 'again', 'welcome#a', 77)")
        .await;
    let found = refrain.fsck().await.unwrap();
    let found: Vec<&str> = found.iter().map(|one| one.what).collect();
    assert_eq!(found, ["a decision is about a run that does not exist"]);
}
