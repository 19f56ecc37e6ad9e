//! A job gets another name, or other jobs take its place while a process serves: what was done stays done.

use refrain::core::JobName;
use refrain::{Ask, Did};

use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};
use crate::support::work::{Seen, is_sound, open, shown, told};

fn names(names: &[&str]) -> Vec<JobName> {
    names.iter().map(|name| JobName::parse(name).unwrap()).collect()
}

every_store! {
    async fn a_renamed_job_keeps_its_runs_and_their_ids(database) {
        let seen = Seen::default();
        let refrain = open(&database, [seen.job("mails")]).await;
        refrain.run("mails#ada", Ask::Once).await.unwrap();
        refrain.close().await;

        let renamed = seen.job("welcome-mails").formerly(names(&["mails"]));
        let refrain = open(&database, [renamed.clone()]).await;
        let again = refrain.run("welcome-mails#ada", Ask::Once).await.unwrap();
        assert_eq!((again.did, seen.all()), (Did::Deduplicated, vec!["ada".to_owned()]));
        refrain.close().await;

        let twice = seen.job("greetings").formerly(names(&["welcome-mails", "mails"]));
        let refrain = open(&database, [twice]).await;
        assert_eq!(told(&refrain, "greetings").await, ["ada done 1"]);
        let identities = database.store_texts("select name || ' ' || identity from refrain_jobs").await;
        assert_eq!(identities, ["greetings mails"], "units are remembered under the first name, for ever");
        is_sound(&refrain).await;
    }

    async fn a_former_name_that_another_job_has_taken_is_left_to_it(database) {
        let seen = Seen::default();
        let refrain = open(&database, [seen.job("old"), seen.job("new")]).await;
        refrain.run("old#1", Ask::Once).await.unwrap();
        refrain.close().await;
        let refrain = open(&database, [seen.job("new").formerly(names(&["old"])), seen.job("old")]).await;
        assert_eq!(told(&refrain, "old").await, ["1 done 1"], "both have runs of their own");
        assert_eq!(told(&refrain, "new").await, [] as [&str; 0]);
    }

    async fn jobs_are_replaced_while_a_process_serves(database) {
        let (before, after) = (Seen::default(), Seen::default());
        let refrain = open(&database, [before.job("mails")]).await;
        let serving = refrain.serve();
        let stop = serving.stop_handle();
        let serving = tokio::spawn(async move { serving.await.unwrap() });
        refrain.enqueue("mails", "ada", None).await.unwrap();
        eventually("the first is done", DEADLINE, async || shown(&refrain, "mails#ada").await.standing.is_done())
            .await;

        refrain.replace_jobs(vec![after.job("mails"), after.job("letters")]).await.unwrap();
        for job in ["mails", "letters"] {
            refrain.enqueue(job, "grace", None).await.unwrap();
        }
        eventually("the others are done", DEADLINE, async || after.all().len() == 2).await;
        assert_eq!(before.all(), ["ada"]);
        assert!(refrain.enqueue("unknown", "x", None).await.is_err());
        stop.drain();
        serving.await.unwrap();
        is_sound(&refrain).await;
    }
}
