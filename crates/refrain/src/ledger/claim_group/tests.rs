//! Claims that share a group: which fence counts, and which claims are an attempt's own.

use std::time::Duration;

use super::*;
use crate::database::Address;
use crate::store::{Reality, Store};

fn pending(attempt: i32, nonce: i64) -> PendingClaim {
    pending_for("a", attempt, nonce)
}

fn pending_for(key: &str, attempt: i32, nonce: i64) -> PendingClaim {
    let (job, run) = (JobName::parse("sync").unwrap(), "one".to_owned());
    let claimant = Some(Claimant { job, run, attempt, nonce });
    let key = Key::parse(key).unwrap();
    let request = ClaimRequest { ledger: 1, key, fingerprint: None, version: 1, claimant };
    PendingClaim { request, recorded_at: Some(5), answer: oneshot::channel().0 }
}

#[test]
fn of_two_attempts_in_one_group_only_the_highest_has_the_fence() {
    let fences = Fences::from([(("sync".to_owned(), "one".to_owned()), (7, (2, 20)))]);
    for (attempt, nonce, is_fenced) in [(2, 20, false), (1, 20, true), (2, 10, true), (3, 30, true)] {
        assert_eq!(pending(attempt, nonce).is_fenced(&fences), is_fenced, "{attempt} {nonce}");
    }
}

#[test]
fn a_claim_recognises_only_its_own_earlier_record() {
    let fences = Fences::from([(("sync".to_owned(), "one".to_owned()), (7, (2, 20)))]);
    let known = || Known {
        ledger: 1,
        key: "a".to_owned(),
        at: 5,
        fingerprint: None,
        attempt: Some(2),
        nonce: Some(20),
        fence: Some(7),
        status: "applied".to_owned(),
        run: None,
    };
    let is_own = |known: Known| pending(2, 20).answer(&fences, Some(&known)).unwrap().is_fresh();
    assert!(is_own(known()));
    for (what, other) in [
        ("recorded at another time", Known { at: 6, ..known() }),
        ("of another run", Known { fence: Some(8), ..known() }),
        ("of another attempt", Known { attempt: Some(1), ..known() }),
        ("of another claim", Known { nonce: Some(10), ..known() }),
    ] {
        assert!(!is_own(other), "{what}");
    }
}

#[tokio::test]
async fn of_two_attempts_in_one_group_the_highest_claims_in_any_order() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
    let (address, project) = (Address::parse(&address).unwrap(), ProjectName::parse("shop").unwrap());
    let store = Store::open(&address, &project, 1, Duration::from_hours(1), Reality::Real).await.unwrap();
    for (number, newer_comes_first) in [(2, true), (4, false)] {
        let older = pending_for(&format!("older:{number}"), number - 1, 10);
        let newer = pending_for(&format!("newer:{number}"), number, 20);
        let mut members = if newer_comes_first { [newer, older] } else { [older, newer] };
        let text = written(&store.database, &project, &mut members).await.unwrap();
        let is_fresh: Vec<bool> = text.iter().map(|text| text.as_ref().is_ok_and(Claim::is_fresh)).collect();
        assert_eq!(is_fresh, [newer_comes_first, !newer_comes_first], "{text:?}");
    }
}
