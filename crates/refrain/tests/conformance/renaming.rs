//! A job is renamed, or jobs are replaced while a process serves: done runs stay done.

use refrain::core::JobName;
use refrain::{Ask, Did, Refrain};
use refrain_harness::every_store;

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{Seen, is_sound, open, run_states, shown};

fn names(names: &[&str]) -> Vec<JobName> {
    names.iter().map(|name| JobName::parse(name).unwrap()).collect()
}

#[every_store]
async fn a_renamed_job_keeps_its_runs_and_their_ids(database: TestDatabase) {
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
    assert_eq!(run_states(&refrain, "greetings").await, ["ada done 1"]);
    let identities = database.store_texts("select name || ' ' || identity from refrain_jobs").await;
    assert_eq!(identities, ["greetings mails"], "units are remembered under the first name, for ever");
    is_sound(&refrain).await;
}

#[every_store]
async fn two_jobs_with_runs_of_their_own_cannot_be_merged(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("old"), seen.job("new")]).await;
    for run in ["old#1", "new#1"] {
        refrain.run(run, Ask::Once).await.unwrap();
    }
    refrain.close().await;
    let options = Refrain::at(&database.url(), "shop").unwrap();
    let refused = options.job(seen.job("new").formerly(names(&["old"]))).open().await.err().unwrap();
    assert!(refused.to_string().contains("both have runs of their own"), "{refused}");
    let refrain = open(&database, [seen.job("old"), seen.job("new")]).await;
    assert_eq!(run_states(&refrain, "old").await, ["1 done 1"], "nothing was changed");
}

#[every_store]
async fn a_name_registered_too_early_yields_to_the_job_with_history(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("old")]).await;
    refrain.run("old#1", Ask::Once).await.unwrap();
    open(&database, [seen.job("new")]).await.close().await;
    let refrain = open(&database, [seen.job("new").formerly(names(&["old"]))]).await;
    assert_eq!(run_states(&refrain, "new").await, ["1 done 1"]);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_former_name_of_a_job_is_never_given_to_another(database: TestDatabase) {
    let seen = Seen::default();
    let refrain = open(&database, [seen.job("old")]).await;
    refrain.run("old#1", Ask::Once).await.unwrap();
    refrain.close().await;
    open(&database, [seen.job("middle").formerly(names(&["old"]))]).await.close().await;
    open(&database, [seen.job("new").formerly(names(&["middle", "old"]))]).await.close().await;
    for former in ["old", "middle"] {
        let options = Refrain::at(&database.url(), "shop").unwrap().job(seen.job(former));
        let refused = options.open().await.err().unwrap().to_string();
        assert!(refused.contains("is a former name of the job `new`"), "{refused}");
    }
    assert_eq!(seen.all(), ["1"], "an old process does not do the work again");
}

#[every_store]
async fn an_opening_that_only_reads_changes_nothing(database: TestDatabase) {
    let seen = Seen::default();
    open(&database, [seen.job("mails")]).await.close().await;
    let options = Refrain::at(&database.url(), "shop").unwrap().job(seen.job("letters"));
    let looking = options.job(seen.job("mails")).only_looking().open().await.unwrap();
    assert_eq!(looking.jobs().iter().map(JobName::as_str).collect::<Vec<_>>(), ["mails"]);
    assert_eq!(database.store_texts("select name from refrain_jobs").await, ["mails"]);
}

#[every_store]
async fn jobs_are_replaced_while_a_process_serves(database: TestDatabase) {
    let (before, after) = (Seen::default(), Seen::default());
    let refrain = open(&database, [before.job("mails")]).await;
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    refrain.enqueue("mails", "ada", &()).await.unwrap();
    eventually("the first is done", DEADLINE, async || shown(&refrain, "mails#ada").await.standing.is_done())
        .await;

    refrain.replace_jobs(vec![after.job("mails"), after.job("letters")]).await.unwrap();
    for job in ["mails", "letters"] {
        refrain.enqueue(job, "grace", &()).await.unwrap();
    }
    eventually("the others are done", DEADLINE, async || after.all().len() == 2).await;
    assert_eq!(before.all(), ["ada"]);
    assert!(refrain.enqueue("unknown", "x", &()).await.is_err());
    stop.drain();
    serving.await.unwrap();
    is_sound(&refrain).await;
}
