//! Why something did or did not happen to a key.

use refrain_core::state::{EffectState, UnitStatus};
use refrain_core::why::{EffectFacts, KeyFacts, UnitFacts, WhyFacts, why};

use super::{at, is_explained};

fn unit(status: UnitStatus) -> UnitFacts {
    UnitFacts {
        ledger: "sync/acme".to_owned(),
        status,
        run: Some("sync#42".to_owned()),
        attempt: Some(2),
        version: 1,
        at: at("09T10:00"),
        message: Some("total is negative".to_owned()),
        in_doubt_since: None,
        left_alone: Vec::new(),
    }
}

fn no_key() -> KeyFacts {
    KeyFacts {
        key: "invoice:7".to_owned(),
        units: Vec::new(),
        effects: Vec::new(),
        runs: 0,
        databases: 2,
        job: None,
    }
}

#[test]
fn a_unit_in_doubt_is_explained_with_the_commands_that_decide_it() {
    let doubtful = UnitFacts {
        in_doubt_since: Some(at("09T09:00")),
        message: Some("in doubt: there was no answer within 30s".to_owned()),
        ..unit(UnitStatus::Parked)
    };
    is_explained(
        &WhyFacts::Key(KeyFacts { units: vec![doubtful], ..no_key() }),
        &["in-doubt"],
        "`invoice:7` of sync/acme is in doubt since 2026-06-09T09:00:00Z, last tried by sync#42, attempt 2, at \
         2026-06-09T10:00:00Z under version 1: \"in doubt: there was no answer within 30s\".\n  check with the receiver; if it \
         was done: refrain retry sync#42 --unit invoice:7 --done; if not: refrain retry sync#42 --unit invoice:7",
    );
}

#[test]
fn a_key_is_explained_as_a_unit_an_effect_or_unknown() {
    let nothing = no_key();
    let met = vec![("sync#43".to_owned(), "stale".to_owned())];
    let applied = UnitFacts { message: None, left_alone: met, ..unit(UnitStatus::Applied) };
    let units = |units: Vec<UnitFacts>| WhyFacts::Key(KeyFacts { units, ..nothing.clone() });
    is_explained(
        &units(vec![applied.clone(), unit(UnitStatus::Parked)]),
        &["parked", "applied", "unit-deduplicated"],
        "`invoice:7` of sync/acme is parked: its attempts are used up, last by sync#42, attempt 2, at 2026-06-09T10:00:00Z \
         under version 1: \"total is negative\".\n  refrain retry sync#42 --unit invoice:7",
    );
    is_explained(
        &units(vec![unit(UnitStatus::Failed(2))]),
        &["unit-failed"],
        "`invoice:7` of sync/acme failed twice, last by sync#42, attempt 2, at 2026-06-09T10:00:00Z under version 1: \
         \"total is negative\".\n  refrain retry sync#42 --unit invoice:7",
    );
    is_explained(
        &units(vec![applied]),
        &["applied", "unit-deduplicated"],
        "`invoice:7` of sync/acme is applied, by sync#42, attempt 2, at 2026-06-09T10:00:00Z under version 1.\n  \
         refrain trace invoice:7",
    );
    let (state, run) = (EffectState::Pending, Some("sync#42".to_owned()));
    let effect =
        EffectFacts { name: "mail".to_owned(), version: 2, state, run, at: at("09T10:00"), dedupes: 3 };
    is_explained(
        &WhyFacts::Key(KeyFacts { effects: vec![effect], ..nothing.clone() }),
        &["effect"],
        "The effect `mail` about `invoice:7`, version 2, is pending: requested by sync#42 at 2026-06-09T10:00:00Z, and \
         deduplicated 3 times since.\n  refrain trace invoice:7",
    );
    is_explained(
        &WhyFacts::Key(nothing.clone()),
        &["nothing-known"],
        "Nothing is known of `invoice:7`: no unit in the searched databases (2), no effect, no run.\n  \
         a run is written JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY; a key as its job makes it",
    );
    let job = Some(Some("sync#42".to_owned()));
    is_explained(
        &WhyFacts::Key(KeyFacts { key: "sync".to_owned(), job, ..nothing.clone() }),
        &["a-job"],
        "sync is a job, and not one of its runs.\n  its newest run: refrain why sync#42",
    );
    assert!(
        why(&WhyFacts::Key(KeyFacts { runs: 1, ..nothing })).is_empty(),
        "its runs are told by themselves"
    );
}
