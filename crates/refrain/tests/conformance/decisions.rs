//! Decisions of people: each is written down with what it does, once, with who and why.

use std::time::Duration;

use refrain::core::Person;
use refrain::{Ask, Cancelling, JobError, Refrain};

use crate::support::TestDatabase;
use crate::support::work::{Gate, is_sound, job, nothing, open, shown};

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

every_store! {
    async fn a_decision_about_a_job_is_written_down_once_and_only_if_it_changed_something(database) {
        let refrain = open(&database, [nothing("welcome")]).await;
        let ada = ada(&refrain);
        assert!(ada.pause("welcome").await.unwrap());
        assert!(!refrain.pause("welcome").await.unwrap(), "it was paused");
        assert!(refrain.resume("welcome").await.unwrap());
        assert!(!ada.resume("welcome").await.unwrap());
        assert_eq!(decided(&refrain).await, ["ada@office pause welcome", "- resume welcome"]);
        let last = &refrain.decisions(1).await.unwrap()[0];
        assert_eq!((last.who.as_deref(), last.why.as_deref()), (None, None), "a program named no person");
    }

    async fn another_attempt_is_a_decision_of_the_person_who_got_it_and_not_of_one_who_follows(database) {
        let fails_first = job("report", |run| async move {
            if run.attempt() == 1 { Err(JobError::for_good("no")) } else { Ok(()) }
        });
        let refrain = open(&database, [fails_first]).await;
        let ada = ada(&refrain);
        ada.run("report#a", Ask::Once).await.unwrap();
        assert_eq!(decided(&refrain).await, Vec::<String>::new(), "that it was asked for is no decision");
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
        assert!(matches!(ada.run("report#b", Ask::Redo).await, Err(refrain::Error::NoRun(_))), "there is nothing to redo");
        is_sound(&refrain).await;
    }

    async fn a_redo_is_refused_while_an_attempt_is_open_that_would_not_do_it(database) {
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

    async fn a_run_that_is_called_off_says_by_whom_and_asking_twice_is_asking_once(database) {
        let gate = Gate::closed();
        let refrain = open(&database, [gate.job("export"), nothing("welcome")]).await;
        let ada = ada(&refrain);
        refrain.enqueue("welcome", "a", None).await.unwrap();
        assert_eq!(ada.cancel("welcome#a").await.unwrap(), Cancelling::Cancelled);
        assert!(ada.cancel("welcome#a").await.is_err());
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

    async fn what_a_person_forgot_is_remembered_and_never_forgotten(database) {
        let refrain = open(&database, [nothing("welcome")]).await;
        ada(&refrain).pause("welcome").await.unwrap();
        ada(&refrain).prune(Duration::ZERO, |_| {}).await.unwrap();
        refrain.prune(Duration::ZERO, |_| {}).await.unwrap();
        let verbs: Vec<String> = refrain.decisions(10).await.unwrap().into_iter().map(|one| one.verb).collect();
        assert_eq!(verbs[..3], ["prune", "prune", "pause"]);
        assert_eq!(refrain.decisions(1).await.unwrap()[0].detail.as_deref(), Some("older than 0s"));
    }

    async fn a_decision_about_a_run_that_is_not_there_is_found(database) {
        let refrain = open(&database, [nothing("welcome")]).await;
        database.store("insert into refrain_audit (at, verb, subject, run) values (0, 'again', 'welcome#a', 77)").await;
        let found = refrain.fsck().await.unwrap();
        let found: Vec<&str> = found.iter().map(|one| one.what).collect();
        assert_eq!(found, ["a decision is about a run that does not exist"]);
    }
}
