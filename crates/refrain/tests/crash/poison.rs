//! A run that kills its worker every time is found out, and its neighbours do not pay for it.

use std::collections::BTreeSet;

use crate::both_databases;
use crate::support::TestDatabase;
use crate::world::{World, numbered};

const INNOCENT: usize = 20;
/// More restarts than it can take: each crash makes every suspect one step more so, or costs the culprit a try.
const RESTARTS_MAX: usize = 20;

both_databases! {
    async fn f38_a_run_that_kills_its_worker_costs_its_neighbours_no_try(database) {
        let world = World::of(database);
        let variables = [("PROBE_LEASE", "1500"), ("PROBE_SLOTS", "32")];
        world.done(&["enqueue", "poison", "innocent-", "10"], &[]).await;
        world.done(&["enqueue", "poison", "kill-", "1"], &[]).await;
        world.done(&["enqueue", "poison", "innocent-1", "10"], &[]).await;
        let mut crashes = 0;
        while !world.probe(&["work"], &variables).wait().await.success() {
            crashes += 1;
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
}
