//! The operator settles units in doubt: many at once, once, and recorded before it takes effect.

use std::os::unix::process::ExitStatusExt;

use refrain::Error;
use refrain::admin::Settlement;
use refrain::core::state::FailureReason;
use rustix::process::Signal;

use crate::calls::{FINE, calling, in_doubt};
use crate::receiver::{Receiver, Reply};
use crate::sync::{RUN, Sync, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

/// Calls for the second and the fifth invoice get no answer.
async fn doubtful(database: TestDatabase, receiver: &Receiver) -> Sync {
    receiver.answers(|heard| match heard.id() {
        "2" | "5" => Reply::Cut,
        _ => FINE(heard),
    });
    let sync = calling(database, receiver, "", "").await;
    assert_eq!(sync.run().await.0, "Ran partial 1", "another attempt would leave them in doubt");
    receiver.answers(FINE);
    sync
}

/// Decisions as `verb unit`, without the migrations.
async fn decided(sync: &Sync) -> Vec<String> {
    let refrain = sync.shop.open().await;
    let mut decisions = refrain.decisions(100).await.unwrap();
    refrain.close().await;
    decisions.reverse();
    let decisions = decisions.into_iter().filter(|one| one.verb != "migrate");
    decisions.map(|one| format!("{} {}", one.verb, one.unit.unwrap_or_default())).collect()
}

#[both_databases]
async fn all_doubts_are_listed_and_settled_with_one_attempt(database: TestDatabase) {
    for (settlement, calls) in [(Settlement::Done, 6), (Settlement::Again, 8)] {
        let receiver = Receiver::answering(FINE).await;
        let sync = doubtful(TestDatabase::like(&database).await, &receiver).await;
        let refrain = sync.shop.open().await;
        let run = refrain.show(RUN).await.unwrap().unwrap();
        assert_eq!(run.reason, Some(FailureReason::InDoubt));
        let doubts = refrain.doubts(&run).await.unwrap();
        let units: Vec<&str> = doubts.iter().filter_map(|doubt| doubt.unit.as_deref()).collect();
        assert_eq!(units, ["invoice:2", "invoice:5"]);
        assert!(doubts.iter().all(|doubt| doubt.since.is_some()));
        assert_eq!(refrain.settle_units(RUN, &units, settlement).await.unwrap(), 2);
        refrain.close().await;
        assert_eq!(sync.ask(&["retry", RUN]).await.0, "Ran done 2", "{settlement:?}");
        let refrain = sync.shop.open().await;
        let run = refrain.show(RUN).await.unwrap().unwrap();
        assert_eq!((run.reason, refrain.doubts(&run).await.unwrap()), (None, Vec::new()));
        refrain.close().await;
        assert_eq!(receiver.ids().len(), calls, "{settlement:?}");
    }
}

#[both_databases]
async fn several_units_are_settled_all_or_none(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = doubtful(database, &receiver).await;
    let refrain = sync.shop.open().await;
    let refused = refrain.settle_units(RUN, &["invoice:2", "invoice:1"], Settlement::Done).await.unwrap_err();
    assert!(refused.to_string().contains("no unit `invoice:1` of sync@2020-06-09 is in doubt"), "{refused}");
    refrain.close().await;
    assert_eq!(in_doubt(&sync).await, ["invoice:2", "invoice:5"]);
    assert_eq!(decided(&sync).await, Vec::<String>::new());
}

#[both_databases]
async fn settling_is_refused_for_a_unit_of_a_done_run(database: TestDatabase) {
    let receiver = Receiver::answering(FINE).await;
    let sync = calling(database, &receiver, "", "").await;
    sync.run().await;
    // The state that a later run of the same ledger would leave.
    let park = "update refrain_units set status = 'parked', message = 'no' where key = 'invoice:3'";
    let park =
        if sync.shop.database.is_sqlite() { park.to_owned() } else { park.replace("refrain_", "refrain.") };
    sync.shop.execute(&park).await;
    let refrain = sync.shop.open().await;
    assert!(matches!(refrain.unpark(RUN, "invoice:3").await, Err(Error::Done { .. })));
    refrain.close().await;
    assert_eq!(sync.left().await, ["invoice:3 parked no"]);
    assert_eq!(decided(&sync).await, Vec::<String>::new());
}

#[both_databases]
async fn f2_a_kill_settles_no_unit_without_a_recorded_decision(database: TestDatabase) {
    for place in
        ["audit.before-commit", "audit.after-commit", "confirm.before-commit", "confirm.after-commit"]
    {
        let receiver = Receiver::answering(FINE).await;
        let sync = doubtful(TestDatabase::like(&database).await, &receiver).await;
        let failpoints = format!("{place}=return(kill)");
        let confirm = ["confirm", RUN, "invoice:2"];
        let killed = sync.shop.process(&confirm, &[("FAILPOINTS", &failpoints)]).finish().await;
        assert_eq!(killed.status.signal(), Some(Signal::KILL.as_raw()), "{place}");
        let is_settled = !in_doubt(&sync).await.contains(&"invoice:2".to_owned());
        let decisions = decided(&sync).await.len();
        assert!(!is_settled || decisions == 1, "{place}: the operator must have decided it");
        assert_eq!(is_settled, place == "confirm.after-commit", "{place}");
        sync.shop.done(&confirm).await;
        assert_eq!(in_doubt(&sync).await, ["invoice:5"], "{place}");
        assert_eq!(receiver.ids(), texts(1..=6), "{place}: nothing was sent again");
    }
}
