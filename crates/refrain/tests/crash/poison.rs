//! A run that kills its worker every time is found out, and its neighbours do not pay for it.

use std::collections::BTreeSet;

use crate::both_databases;
use crate::support::TestDatabase;
use crate::world::{World, numbered, written_once};

const INNOCENT: usize = 20;
/// More restarts than it can take: each crash makes every suspect one step more so, or costs the culprit a try.
const RESTARTS_MAX: usize = 20;
/// A worker that does not get its turn for a while is not taken for dead; the lease of a dead one is made to run out.
const LONG_LEASE: (&str, &str) = ("PROBE_LEASE", "60000");

both_databases! {
    async fn f38_a_run_that_kills_its_worker_costs_its_neighbours_no_try(database) {
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

    async fn f38_a_unit_that_kills_its_worker_is_parked_after_it_was_alone_and_its_neighbours_are_written(database) {
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

    async fn a_run_that_was_there_at_many_crashes_runs_with_nothing_beside_it(database) {
        let world = World::of(database);
        world.done(&["enqueue", "limited", "l", "3"], &[]).await;
        world.done(&["enqueue", "brief", "b", "3"], &[]).await;
        // A suspect stands in a line of its own.
        let suspect = "update refrain_queue set suspicion = 3, line = line + 4294967296
            where run = (select id from refrain_runs where key = 'b1')";
        world.execute(suspect).await.unwrap();
        world.done(&["work"], &[("PROBE_LEASE", "10000")]).await;
        world.assert_settled(numbered("limited#l", 3).chain(numbered("brief#b", 3))).await;
        let effects = world.effects();
        let begun = effects.iter().position(|effect| effect.run == "brief#b1").unwrap();
        let before = effects.iter().take(begun);
        let under_way = before.fold(0, |count, effect| if effect.has_ended { count - 1 } else { count + 1 });
        assert_eq!(under_way, 0, "{}", world.told());
        assert!(effects.get(begun + 1).is_some_and(|next| next.run == "brief#b1"), "{}", world.told());
    }
}
