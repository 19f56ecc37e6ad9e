//! What a row says of a unit, by every column that is compared: each row of a table differs in one thing from one that counts.

use super::*;

const FENCE: i64 = 7;
const ATTEMPT: i32 = 4;
const NONCE: i64 = 100;

pub(in crate::ledger) fn judge() -> Judge {
    Judge {
        version: 1,
        on_change: OnChange::Update,
        fence: FENCE,
        attempt: ATTEMPT,
        nonce: NONCE,
        suspicion: 0,
        trial: None,
        waits_for_failed: false,
        adds: false,
        is_of_the_run: false,
        redo: None,
    }
}

/// A unit that this very attempt has reserved.
fn reserved() -> Entry {
    Entry { status: "parked".to_owned(), kept: true, sent: true, unanswered: true, ..applied() }
}

/// A unit that this very attempt has applied.
pub(in crate::ledger) fn applied() -> Entry {
    Entry {
        key: "a".to_owned(),
        fingerprint: Some(5),
        ordinal: None,
        fence: Some(FENCE),
        version: 1,
        attempt: Some(ATTEMPT),
        nonce: Some(NONCE),
        failures: 0,
        written: false,
        status: APPLIED.to_owned(),
        kept: false,
        sent: false,
        unanswered: false,
        at: None,
        applied_version: None,
        applied_fingerprint: None,
        applied_at: None,
        applied_fence: None,
        applied_attempt: None,
    }
}

/// A unit whose content was tried over other content that is applied, and failed.
fn failed_over_other() -> Entry {
    let status = "failed".to_owned();
    Entry { status, failures: 1, kept: true, written: true, applied_version: Some(1), ..applied() }
}

fn arrival() -> Arrival {
    Arrival { key: Key::parse("a").unwrap(), fingerprint: Some(5), ordinal: None }
}

#[test]
fn a_reservation_is_recognised_by_fence_attempt_claim_content_and_version() {
    for (what, entry, is_own) in [
        ("its own", reserved(), true),
        ("of another run", Entry { fence: Some(FENCE + 1), ..reserved() }, false),
        ("of another attempt", Entry { attempt: Some(ATTEMPT - 1), ..reserved() }, false),
        ("of another claim of the same number", Entry { nonce: Some(NONCE + 1), ..reserved() }, false),
        ("of a claim without a nonce", Entry { nonce: None, ..reserved() }, false),
        ("of other content", Entry { fingerprint: Some(6), ..reserved() }, false),
        ("of another version", Entry { version: 2, ..reserved() }, false),
        ("whose end is recorded", Entry { sent: false, ..reserved() }, false),
    ] {
        assert_eq!(judge().has_reserved(&entry, &arrival()), is_own, "{what}");
    }
}

#[test]
fn a_reserved_unit_is_parked_for_all_other_attempts() {
    let status = |entry: &Entry| entry.recorded(&judge()).status;
    assert_eq!(status(&reserved()), UnitStatus::Failed(0));
    assert_eq!(status(&Entry { attempt: Some(ATTEMPT - 1), ..reserved() }), UnitStatus::Parked);
}

#[test]
fn a_unit_is_guilty_if_it_was_alone_and_every_attempt_since_has_ended_in_a_death() {
    let on_trial = |attempt, suspicion, is_alone| {
        let failures = i32::try_from(TrialMark { suspicion, is_alone }.stored()).unwrap();
        Entry { status: "parked".to_owned(), attempt: Some(attempt), failures, ..applied() }
    };
    let judge = Judge { suspicion: 3, trial: Some(Trial { attempt: 3, units: 1 }), ..judge() };
    for (what, entry, is_guilty, is_suspect) in [
        ("alone in the attempt that died last", on_trial(3, 2, true), true, true),
        ("among others", on_trial(3, 2, false), false, true),
        ("alone two deaths ago", on_trial(2, 1, true), true, false),
        ("its attempt was merely stopped", on_trial(3, 3, true), false, false),
        ("one attempt since was merely stopped", on_trial(2, 2, true), false, false),
        ("on trial in this very attempt", on_trial(ATTEMPT, 3, true), false, false),
        ("of another run", Entry { fence: Some(FENCE + 1), ..on_trial(3, 2, true) }, false, false),
        ("its end is known", Entry { status: APPLIED.to_owned(), ..on_trial(3, 2, true) }, false, false),
    ] {
        assert_eq!(judge.is_guilty(&entry), is_guilty, "{what}");
        assert_eq!(judge.is_suspect(&entry), is_suspect, "{what}");
    }
}

#[test]
fn a_unit_is_on_trial_for_the_attempt_that_parked_it_in_advance() {
    let parked = Entry { status: "parked".to_owned(), failures: -1, ..applied() };
    for (what, entry, is_on_trial) in [
        ("parked in advance", parked.clone(), true),
        ("by another attempt", Entry { attempt: Some(ATTEMPT - 1), ..parked.clone() }, false),
        ("parked because it failed", Entry { failures: 1, ..parked.clone() }, false),
        ("applied since", Entry { status: APPLIED.to_owned(), ..parked }, false),
    ] {
        assert_eq!(judge().is_on_trial(&entry), is_on_trial, "{what}");
    }
}

#[test]
fn a_checkpoint_passes_applied_units_and_failed_ones_with_input() {
    let failed = Entry { status: "failed".to_owned(), failures: 1, kept: true, ..applied() };
    let later = Entry { ordinal: Some(9), fingerprint: Some(6), ..failed.clone() };
    for (what, entry, is_settled) in [
        ("applied", applied(), true),
        ("applied with other content", Entry { fingerprint: Some(6), ..applied() }, false),
        ("failed and kept", failed.clone(), true),
        ("failed, and too long to be kept", Entry { kept: false, ..failed.clone() }, false),
        ("other content failed", Entry { fingerprint: Some(6), ..failed.clone() }, false),
        ("parked and kept", Entry { status: "parked".to_owned(), ..failed.clone() }, true),
        ("failed over what is applied, and kept", failed_over_other(), true),
        ("the same, not kept", Entry { kept: false, ..failed_over_other() }, false),
        ("other content failed over it", Entry { fingerprint: Some(6), ..failed_over_other() }, false),
        ("later content failed and is kept", later.clone(), true),
        ("later content failed and is not kept", Entry { kept: false, ..later.clone() }, false),
        ("later content is applied", Entry { kept: false, status: APPLIED.to_owned(), ..later }, true),
    ] {
        let arrival = Arrival { ordinal: entry.ordinal.map(|ordinal| ordinal - 1), ..arrival() };
        assert_eq!(judge().is_settled(&arrival, Some(&entry)), is_settled, "{what}");
    }
    assert!(!judge().is_settled(&arrival(), None), "never seen");
    let newer = Judge { version: 2, ..judge() };
    assert!(!newer.is_settled(&arrival(), Some(&Entry { kept: true, ..applied() })), "by an older version");
    let waiting = Judge { waits_for_failed: true, ..judge() };
    assert!(!waiting.is_settled(&arrival(), Some(&failed)), "what failed is waited for");
}

#[test]
fn only_a_higher_order_is_raised_over_content_that_is_done() {
    let done = [UnitVerdict::Deduplicated(Reason::AlreadyApplied)];
    let raised = |known: Option<i64>, ordinal: Option<i64>| {
        let (entry, arrival) = (Entry { ordinal: known, ..applied() }, Arrival { ordinal, ..arrival() });
        !later(&[&arrival], &[entry], &done).is_empty()
    };
    assert!(raised(Some(5), Some(6)));
    assert!(!raised(Some(6), Some(6)));
    assert!(!raised(Some(6), Some(5)));
    assert!(!raised(None, Some(5)), "what had no order gets none");
}

#[test]
fn only_an_existing_row_settles_the_failure_of_later_content() {
    let adding = Judge { adds: true, on_change: OnChange::First, ..judge() };
    let kept = |judge: &Judge, entry: Entry| {
        let first = [UnitVerdict::Deduplicated(Reason::FirstWins)];
        !judge.kept_first(&[&arrival()], &[entry], &first).is_empty()
    };
    assert!(kept(&adding, failed_over_other()));
    assert!(!kept(&adding, Entry { written: false, ..failed_over_other() }), "nothing was added");
    assert!(!kept(&adding, Entry { written: true, ..applied() }), "nothing failed");
    assert!(!kept(&judge(), failed_over_other()), "rows are not only added");
}

#[test]
fn only_the_attempt_whose_answer_was_lost_changes_a_reserved_unit() {
    let verdict = |entry: Entry, after_a_lost_answer| {
        judge().judge(&[&arrival()], &[entry], after_a_lost_answer).unwrap().verdicts[0]
    };
    assert_eq!(verdict(reserved(), false), UnitVerdict::Parked);
    assert_eq!(verdict(reserved(), true), UnitVerdict::Fresh);
    let of_another_run = Entry { fence: Some(FENCE + 1), fingerprint: Some(6), ..reserved() };
    assert_eq!(verdict(of_another_run, true), UnitVerdict::Parked, "whatever it stands for since");
}

#[test]
fn a_key_with_a_written_row_has_no_new_content() {
    let failed = Entry { status: "failed".to_owned(), failures: 1, ..applied() };
    for (written, verdict) in [(false, UnitVerdict::Fresh), (true, UnitVerdict::Changed)] {
        let entry = Entry { written, ..failed.clone() };
        assert_eq!(judge().judge(&[&arrival()], &[entry], false).unwrap().verdicts, [verdict]);
    }
}

#[test]
fn content_under_an_unanswered_request_may_not_be_applied() {
    let covered = Entry { applied_fingerprint: Some(5), fingerprint: Some(6), ..failed_over_other() };
    let known = |entry: &Entry| entry.recorded(&judge()).applied.is_some();
    assert!(known(&covered));
    assert!(!known(&Entry { unanswered: true, ..covered }));
}

#[test]
fn a_key_with_two_contents_in_one_attempt_and_no_order_is_too_wide() {
    let suspects = |judge: &Judge, entry: Entry, ordinal: Option<i64>| {
        let arrival = Arrival { ordinal, ..arrival() };
        judge.judge(&[&arrival], &[entry], false).unwrap().suspects.len()
    };
    let other = Entry { fingerprint: Some(6), ..applied() };
    assert_eq!(suspects(&judge(), other.clone(), None), 1);
    assert_eq!(suspects(&judge(), applied(), None), 0, "the same content");
    assert_eq!(suspects(&judge(), Entry { attempt: Some(ATTEMPT - 1), ..other.clone() }, None), 0, "earlier");
    let ordered = Entry { ordinal: Some(1), ..other };
    assert_eq!(suspects(&judge(), ordered.clone(), Some(2)), 0, "newer content");
    assert_eq!(suspects(&Judge { is_of_the_run: true, ..judge() }, ordered, Some(2)), 1, "of the run alone");
}

#[test]
fn a_failure_is_counted_once_and_a_trial_is_not_a_failure() {
    let failed = Entry { status: "failed".to_owned(), failures: 1, ..applied() };
    for (what, entry, has_failed) in [
        ("this content, in this attempt", failed.clone(), true),
        ("in an earlier one", Entry { attempt: Some(ATTEMPT - 1), ..failed.clone() }, false),
        ("other content", Entry { fingerprint: Some(6), ..failed.clone() }, false),
        ("of another version", Entry { version: 2, ..failed.clone() }, false),
        ("parked in advance", Entry { failures: -1, status: "parked".to_owned(), ..failed }, false),
        ("applied", applied(), false),
    ] {
        assert_eq!(judge().has_failed(&entry, &arrival()), has_failed, "{what}");
    }
}
