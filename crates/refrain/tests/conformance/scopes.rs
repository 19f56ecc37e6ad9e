//! One run per window and scope: the set is frozen when the run of the window evaluates it.

use refrain_harness::every_store;
use std::sync::{Arc, Mutex};

use refrain::core::Scope;
use refrain::{Ask, CatchUp, Definition, Did, JobError};

use refrain_harness::TestDatabase;
use refrain_harness::work::{Seen, daily, is_sound, june, open, run_states, short};

/// A job whose scopes are those of the list when they are evaluated.
fn digest(seen: &Seen, scopes: &Arc<Mutex<Vec<&'static str>>>) -> Definition {
    let scopes = scopes.clone();
    seen.job("digest").timetable(daily()).catch_up(CatchUp::All).scopes(move |_| {
        let found: Vec<Scope> =
            scopes.lock().unwrap().iter().map(|scope| Scope::parse(scope).unwrap()).collect();
        async move { if found.is_empty() { Err(JobError::for_good("no scopes")) } else { Ok(found) } }
    })
}

async fn expansions(database: &TestDatabase) -> Vec<String> {
    database.store_texts("select scopes || ' ' || hash from refrain_expansions order by run").await
}

#[every_store]
async fn a_window_is_one_run_per_scope_frozen_when_it_opens(database: TestDatabase) {
    let seen = Seen::default();
    let scopes = Arc::new(Mutex::new(vec!["beta", "acme", "beta"]));
    let refrain = open(&database, [digest(&seen, &scopes)]).await;
    let report = refrain.tick_at(june("02T00:01")).await.unwrap();
    assert_eq!((report.opened, report.ended), (1, 3), "the window's own run, and one for each scope");
    let of_first = ["06-01 done 1", "06-01/acme done 1", "06-01/beta done 1"];
    assert_eq!(run_states(&refrain, "digest").await, of_first);
    let mut began = seen.all();
    began.sort();
    assert_eq!(began, ["06-01/acme", "06-01/beta"], "the window's own run does no work of the job");
    let frozen = expansions(&database).await;
    assert!(frozen[0].starts_with("2 "), "{frozen:?}");

    scopes.lock().unwrap().push("late");
    let again = refrain.run("digest@2020-06-01", Ask::Again).await.unwrap();
    assert_eq!(expansions(&database).await, frozen, "it is found frozen");
    let scopes_again: Vec<&str> = again.scopes.iter().map(|scope| scope.name.as_str()).collect();
    assert_eq!(scopes_again, ["digest@2020-06-01/acme", "digest@2020-06-01/beta"]);
    assert!(again.is_done() && again.scopes.iter().all(|scope| scope.did == Did::Ran), "{again:?}");
    assert_eq!(run_states(&refrain, "digest").await[1..], ["06-01/acme done 2", "06-01/beta done 2"]);
    assert_eq!(seen.all().len(), 4, "a window that is run again includes its scopes");

    refrain.tick_at(june("03T00:01")).await.unwrap();
    assert_eq!(run_states(&refrain, "digest").await[3..].len(), 4, "the next window has the later scope too");
    let both = expansions(&database).await;
    assert!(both[1].starts_with("3 ") && both[1][2..] != both[0][2..], "{both:?}");
    is_sound(&refrain).await;
}

#[every_store]
async fn the_same_scopes_have_the_same_hash_in_any_order(database: TestDatabase) {
    let seen = Seen::default();
    let scopes = Arc::new(Mutex::new(vec!["acme", "beta"]));
    let refrain =
        open(&database, [digest(&seen, &scopes), digest(&seen, &scopes).named("other").unwrap()]).await;
    refrain.open_due(june("02T00:01")).await.unwrap();
    refrain.run("digest@2020-06-01", Ask::Once).await.unwrap();
    scopes.lock().unwrap().reverse();
    refrain.run("other@2020-06-01", Ask::Once).await.unwrap();
    let frozen = expansions(&database).await;
    assert_eq!(frozen[0], frozen[1]);
}

#[every_store]
async fn each_scope_has_its_own_lane_in_the_order_of_windows(database: TestDatabase) {
    let seen = Seen::default();
    let scopes = Arc::new(Mutex::new(vec!["acme", "beta"]));
    let refrain = open(&database, [digest(&seen, &scopes)]).await;
    refrain.tick_at(june("04T06:00")).await.unwrap();
    for scope in ["acme", "beta"] {
        let of_scope: Vec<String> = seen.all().into_iter().filter(|key| key.ends_with(scope)).collect();
        assert_eq!(of_scope, ["01", "02", "03"].map(|day| format!("06-{day}/{scope}")));
    }
    is_sound(&refrain).await;
}

#[every_store]
async fn a_window_whose_scopes_query_fails_is_expanded_by_a_retry(database: TestDatabase) {
    let seen = Seen::default();
    let scopes = Arc::new(Mutex::new(Vec::new()));
    let refrain = open(&database, [digest(&seen, &scopes)]).await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    assert_eq!(run_states(&refrain, "digest").await, ["06-01 failed 1"]);
    assert_eq!(expansions(&database).await, [""; 0]);
    scopes.lock().unwrap().push("acme");
    assert!(refrain.run("digest@2020-06-01", Ask::Once).await.unwrap().is_done());
    refrain.tick_at(june("02T00:01")).await.unwrap();
    assert_eq!(run_states(&refrain, "digest").await, ["06-01 done 2", "06-01/acme done 1"]);
    let key = &refrain.runs("digest", "").await.unwrap()[1].key;
    assert_eq!(short(key), "06-01/acme");
}

#[every_store]
async fn an_error_of_a_scope_keeps_the_reports_of_the_scopes_before_it(database: TestDatabase) {
    let seen = Seen::default();
    let scopes = Arc::new(Mutex::new(vec!["acme", "beta", "gamma"]));
    let refrain = open(&database, [digest(&seen, &scopes)]).await;
    assert!(refrain.run("digest@2020-06-01", Ask::Once).await.unwrap().is_done());
    // A scope whose payload is gone cannot be tried again.
    database.store("update refrain_runs set payload = '' where key like '%beta'").await;

    let report = refrain.run("digest@2020-06-01", Ask::Again).await.unwrap();
    assert_eq!(report.scopes.len(), 1, "{report:?}");
    assert_eq!((report.scopes[0].name.as_str(), report.scopes[0].did), ("digest@2020-06-01/acme", Did::Ran));
    let error = report.scope_error.as_ref().unwrap();
    assert_eq!(error.run, "digest@2020-06-01/beta");
    assert!(matches!(*error.error, refrain::Error::Forgotten(_)), "{error}");
    assert!(report.is_done_alone() && !report.is_done());
    assert_eq!(
        run_states(&refrain, "digest").await,
        ["06-01 done 2", "06-01/acme done 2", "06-01/beta done 1", "06-01/gamma done 1"]
    );

    database.store("update refrain_runs set outcome = 'failed' where key like '%beta'").await;
    let once = refrain.run("digest@2020-06-01", Ask::Once).await.unwrap();
    assert_eq!(once.scopes.len(), 1, "acme is done already");
    assert!(once.scope_error.is_some() && !once.is_done());
}

#[every_store]
async fn a_retry_of_a_window_leaves_its_scopes_alone(database: TestDatabase) {
    let seen = Seen::default();
    let scopes = Arc::new(Mutex::new(vec!["acme", "beta"]));
    let refrain = open(&database, [digest(&seen, &scopes)]).await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    assert_eq!(seen.all().len(), 2);
    // The scopes are frozen before the run of the window ends: it may fail although they have run.
    let failed = "update refrain_runs set outcome = 'failed' where key not like '%/%'";
    let cancelled = "update refrain_runs set outcome = 'cancelled' where key like '%/beta'";
    database.store(failed).await;
    database.store(cancelled).await;
    let report = refrain.run("digest@2020-06-01", Ask::Retry).await.unwrap();
    assert_eq!((report.did, report.scopes.len()), (Did::Ran, 0));
    assert!(report.scope_error.is_none(), "{report:?}");
    let of_window = ["06-01 done 2", "06-01/acme done 1", "06-01/beta cancelled 1"];
    assert_eq!(run_states(&refrain, "digest").await, of_window);
    assert_eq!(seen.all().len(), 2, "no scope has run again");
}
