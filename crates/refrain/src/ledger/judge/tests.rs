//! Whose reservation it is, by every number that tells claims apart.

use super::*;

#[test]
fn what_another_claim_of_the_same_number_has_reserved_is_not_its_own() {
    let (fence, attempt, version) = (7, 2, 1);
    let judge = |nonce| Judge {
        version: 1,
        on_change: OnChange::Update,
        fence,
        attempt,
        nonce,
        suspicion: 0,
        trial: None,
        waits_for_failed: false,
        adds: false,
        is_of_the_run: false,
        redo: None,
    };
    let reserved = Entry {
        key: "a".to_owned(),
        fingerprint: Some(5),
        ordinal: None,
        fence: Some(fence),
        version,
        attempt: Some(attempt),
        nonce: Some(100),
        failures: 0,
        written: false,
        status: "parked".to_owned(),
        kept: true,
        sent: true,
        unanswered: true,
        at: None,
        applied_version: None,
        applied_fingerprint: None,
        applied_at: None,
        applied_fence: None,
        applied_attempt: None,
    };
    let Ok(key) = Key::parse("a") else { return };
    let arrival = Arrival { key, fingerprint: Some(5), ordinal: None };
    for (nonce, entry_nonce, is_own) in [(100, Some(100), true), (101, Some(100), false), (100, None, false)]
    {
        let entry = Entry { nonce: entry_nonce, ..reserved.clone() };
        assert_eq!(judge(nonce).has_reserved(&entry, &arrival), is_own, "{nonce} {entry_nonce:?}");
    }
}
