//! A run that kills its worker every time is found, and other runs lose nothing by it.

use std::collections::BTreeSet;

use crate::world::{World, numbered, written_once};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const INNOCENT: usize = 20;
/// More restarts than it can take: each crash raises the suspicion of every suspect by one, or costs the culprit a
/// try.
const RESTARTS_MAX: usize = 20;
/// A worker that does not get its turn for a while does not look dead; the test expires the lease of a dead one.
const LONG_LEASE: (&str, &str) = ("PROBE_LEASE", "60000");

#[both_databases]
async fn f38_a_run_that_kills_its_worker_costs_other_runs_no_attempt(database: TestDatabase) {
    let world = World::of(database);
    let variables = [LONG_LEASE, ("PROBE_SLOTS", "32")];
    world.done(&["enqueue", "poison", "innocent-", "10"], &[]).await;
    world.done(&["enqueue", "poison", "kill-", "1"], &[]).await;
    world.done(&["enqueue", "poison", "innocent-1", "10"], &[]).await;
    let mut crashes = 0;
    while !world.probe(&["work"], &variables).wait().await.success() {
        crashes += 1;
        world.execute("update refrain_workers set expires_at = 1").await.unwrap();
        assert!(crashes < RESTARTS_MAX, "it is not found out: {:?}", world.history().await);
    }
    assert!(crashes >= 2, "it was not to blame before it had crashed alone");

    let culprit = world.runs().await.into_iter().find(|run| run.run == "poison#kill-0").unwrap();
    assert_eq!((culprit.outcome.as_str(), culprit.is_open), ("failed", false));
    let innocent: BTreeSet<String> =
        numbered("poison#innocent-", 10).chain(numbered("poison#innocent-1", 10)).collect();
    assert_eq!(innocent.len(), INNOCENT);
    world.assert_settled(innocent).await;
    let paid: Vec<String> = world
        .history()
        .await
        .into_iter()
        .filter(|past| past.starts_with("poison#innocent"))
        .filter(|past| past.ends_with("errored") || past.ends_with("crashed-alone"))
        .collect();
    assert!(paid.is_empty(), "{paid:?}");
}

#[both_databases]
async fn f38_a_unit_that_kills_its_worker_is_parked_and_the_others_are_written(database: TestDatabase) {
    let world = World::of(database);
    world.touch("mended");
    world.done(&["enqueue", "sync", "poison-", "1"], &[]).await;
    let mut crashes = 0;
    while !world.probe(&["work"], &[LONG_LEASE]).wait().await.success() {
        crashes += 1;
        world.execute("update refrain_workers set expires_at = 1").await.unwrap();
        assert!(crashes < RESTARTS_MAX, "it is not found out: {:?}", world.history().await);
    }
    assert_eq!(crashes, 2, "once among others, once alone");
    let neighbours: Vec<String> =
        written_once().into_iter().filter(|invoice| !invoice.starts_with("5 ")).collect();
    assert_eq!(world.invoices().await, neighbours);
    let run = world.runs().await.pop().unwrap();
    assert_eq!((run.outcome.as_str(), run.is_open), ("partial", false));
    let kept = "select key || ' ' || status || ' ' || input from refrain_units where status <> 'applied'";
    assert_eq!(world.texts(kept).await, [r#"invoice:5 parked {"id":5,"total":50}"#]);
}

#[both_databases]
async fn f38_a_deadly_unit_among_a_thousand_is_found_in_few_transactions(database: TestDatabase) {
    for culprit in ["1", "500", "999"] {
        let world = World::of(TestDatabase::like(&database).await);
        world.done(&["enqueue", "sync", "many-poison-", "1"], &[]).await;
        let mut crashes = 0;
        while !world.probe(&["work"], &[LONG_LEASE, ("PROBE_POISON", culprit)]).wait().await.success() {
            crashes += 1;
            world.execute("update refrain_workers set expires_at = 1").await.unwrap();
            assert!(crashes < RESTARTS_MAX, "it is not found out: {:?}", world.history().await);
        }
        assert_eq!(crashes, 3, "{culprit}: once among a thousand, once among a few, once alone");
        let [first, second, third, fourth] = [1, 2, 3, 4].map(|attempt| world.batches(attempt));
        assert_eq!(first, [1_000]);
        assert!(second.iter().all(|units| *units <= 32) && second.len() <= 32, "{culprit}: {second:?}");
        assert!(third.iter().all(|units| *units == 1) && third.len() <= 32, "{culprit}: {third:?}");
        assert!(fourth.len() <= 8, "{culprit}: {fourth:?}");
        let there = world.invoices().await;
        assert!(
            there.len() == 999 && there.iter().all(|invoice| invoice.ends_with(" 1")),
            "{culprit}: each once"
        );
        let left =
            "select key || ' ' || status || ' ' || message from refrain_units where status <> 'applied'";
        assert_eq!(
            world.texts(left).await,
            [format!("invoice:{culprit} parked the worker died while it was being applied, alone")]
        );
        let run = world.runs().await.pop().unwrap();
        assert_eq!((run.outcome.as_str(), run.is_open), ("partial", false));
    }
}

#[both_databases]
async fn after_an_unrelated_crash_a_thousand_units_take_few_transactions(database: TestDatabase) {
    const KILLED: &str = "unit-apply.before-commit=return(kill)";
    for failpoints in [&[KILLED][..], &[KILLED, "unit-blame.after-commit=return(kill)"]] {
        let world = World::of(TestDatabase::like(&database).await);
        world.done(&["enqueue", "sync", "many-", "1"], &[]).await;
        for failpoint in failpoints {
            assert!(!world.probe(&["work"], &[LONG_LEASE, ("FAILPOINTS", failpoint)]).wait().await.success());
            world.execute("update refrain_workers set expires_at = 1").await.unwrap();
        }
        world.done(&["work"], &[LONG_LEASE]).await;
        let batches = world.batches(u32::try_from(failpoints.len()).unwrap() + 1);
        assert!(batches.len() <= 33 && batches.iter().sum::<usize>() == 1_000, "{failpoints:?}: {batches:?}");
        let there = world.invoices().await;
        assert!(
            there.len() == 1_000 && there.iter().all(|invoice| invoice.ends_with(" 1")),
            "{failpoints:?}: each once"
        );
        assert_eq!(
            world.texts("select key from refrain_units where status <> 'applied'").await,
            [""; 0],
            "{failpoints:?}"
        );
    }
}

#[both_databases]
async fn a_run_present_at_many_crashes_runs_alone(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "limited", "l", "3"], &[]).await;
    world.done(&["enqueue", "brief", "b", "3"], &[]).await;
    // A suspect is in a line of its own.
    let suspect = "update refrain_queue set suspicion = 3, line = line + 4294967296
            where run = (select id from refrain_runs where key = 'b1')";
    world.execute(suspect).await.unwrap();
    world.done(&["work"], &[("PROBE_LEASE", "600000")]).await;
    world.assert_settled(numbered("limited#l", 3).chain(numbered("brief#b", 3))).await;
    let effects = world.effects();
    let begun = effects.iter().position(|effect| effect.run == "brief#b1").unwrap();
    let before = effects.iter().take(begun);
    let under_way = before.fold(0, |count, effect| if effect.has_ended { count - 1 } else { count + 1 });
    assert_eq!(under_way, 0, "{}", world.effects_text());
    assert!(effects.get(begun + 1).is_some_and(|next| next.run == "brief#b1"), "{}", world.effects_text());
}
