//! Statements about units: which attempt may change what is recorded about a unit.

use super::Case;

/// In doubt, as attempt 2 of the run 7 has reserved it.
const RESERVED: &str = "insert into refrain_units
    (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written, status, \
    input, message, sent)
    values (1, 'k', 5, 6, 7, 100, 1, 2, 9, 0, false, 'parked', '{}', 'begun', 50)";

/// It has failed once.
const FAILED: &str = "insert into refrain_units
    (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written, status, \
    input, place,
     applied_version, applied_fingerprint, applied_at)
    values (1, 'k', 5, 6, 7, 100, 1, 2, 9, 1, true, 'failed', '{}', 'page 1', 1, 3, 90)";

const APPLIED: &str = "insert into refrain_units
    (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written, status)
    values (1, 'k', 5, 6, 7, 100, 1, 2, 9, 0, true, 'applied')";

const OTHER_FENCE: &str = "update refrain_units set fence = 8";
const OTHER_ATTEMPT: &str = "update refrain_units set attempt = 4";
const OTHER_NONCE: &str = "update refrain_units set nonce = 10";
const OTHER_VERSION: &str = "update refrain_units set version = 2";
const OTHER_CONTENT: &str = "update refrain_units set fingerprint = 4";
const OTHER_ORDER: &str = "update refrain_units set ordinal = 7";
const NO_CONTENT: &str = "update refrain_units set fingerprint = null";
const IS_APPLIED: &str = "update refrain_units set status = 'applied', sent = null";
const IS_FAILED: &str = "update refrain_units set status = 'failed'";
const IS_PARKED: &str = "update refrain_units set status = 'parked'";
const IS_SENT: &str = "update refrain_units set sent = 50";
const NOT_SENT: &str = "update refrain_units set sent = null";
const FAILED_AGAIN: &str = "update refrain_units set failures = 2";

#[tokio::test]
async fn a_late_answer_confirms_only_its_own_reservation() {
    let late =
        Case::of("unit/confirm_late", &["1", "'k'", "7", "2", "1", "5", "9", "'applied'"], RESERVED).await;
    let changes = [OTHER_FENCE, OTHER_ATTEMPT, OTHER_NONCE, OTHER_VERSION, OTHER_CONTENT, NOT_SENT];
    late.compares(&changes).await;
}

#[tokio::test]
async fn a_late_answer_is_noted_when_the_unit_has_changed_since() {
    let note = Case::of("unit/note_late", &["1", "'k'", "8", "3", "1", "5", "11", "'done'"], APPLIED).await;
    let own = "update refrain_units set fence = 8, attempt = 3, nonce = 11";
    note.compares(&[OTHER_VERSION, OTHER_CONTENT, own]).await;
}

#[tokio::test]
async fn only_the_reserving_attempt_updates_the_message_of_a_doubt() {
    let doubt =
        Case::of("unit/doubt", &["1", "'k'", "7", "2", "'why'", "5", "9", "'parked'"], RESERVED).await;
    doubt.compares(&[OTHER_FENCE, OTHER_ATTEMPT, OTHER_NONCE, OTHER_CONTENT, IS_APPLIED]).await;
}

#[tokio::test]
async fn only_the_reserving_attempt_takes_a_reservation_back() {
    let unsend = Case::of("unit/unsend", &["1", "'k'", "7", "2", "5", "9", "'failed'"], RESERVED).await;
    unsend.compares(&[OTHER_FENCE, OTHER_ATTEMPT, OTHER_NONCE, OTHER_CONTENT, NOT_SENT]).await;
}

#[tokio::test]
async fn a_unit_is_reserved_only_as_it_was_read() {
    let first = ["1", "'k'", "1", "7", "3", "5", "6", "1", "'{}'", "'begun'"];
    let arguments = [&first[..], &["1", "5", "6", "'failed'", "1", "1000", "11", "'parked'"]].concat();
    let reserve = Case::of("unit/reserve", &arguments, FAILED).await;
    reserve.compares(&[OTHER_VERSION, OTHER_CONTENT, OTHER_ORDER, IS_PARKED, FAILED_AGAIN]).await;
}

#[tokio::test]
async fn a_unit_in_doubt_is_reserved_again_only_by_its_run_and_in_time() {
    let first = ["1", "'k'", "1", "7", "3", "5", "6", "0", "'{}'", "'begun'"];
    let an_hour = "3600000000";
    let arguments = [&first[..], &["1", "5", "6", "'parked'", "0", an_hour, "11", "'parked'"]].concat();
    let given = "insert into refrain_units
        (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written, \
        status, sent)
        values (1, 'k', 5, 6, 7, 100, 1, 2, 9, 0, false, 'parked', (select now from refrain_clock))";
    Case::of("unit/reserve", &arguments, given).await.compares(&[OTHER_FENCE, IS_SENT]).await;
}

#[tokio::test]
async fn a_unit_is_recorded_only_over_the_row_that_was_read() {
    let rows = r#"'[[1, "k", 8, 7, 1, 5, 6, "failed", 1]]'"#;
    let update = Case::of("unit/update", &["1", "7", "3", "9", "'applied'", rows], FAILED).await;
    update.compares(&[OTHER_VERSION, OTHER_CONTENT, OTHER_ORDER, IS_PARKED, FAILED_AGAIN]).await;
}

#[tokio::test]
async fn a_unit_in_doubt_is_recorded_only_by_the_reserving_attempt() {
    let rows = r#"'[[1, "k", 8, 7, 1, 5, 6, "parked", 0]]'"#;
    let update = Case::of("unit/update", &["1", "7", "2", "9", "'applied'", rows], RESERVED).await;
    update.compares(&[OTHER_FENCE, OTHER_ATTEMPT, OTHER_NONCE]).await;
}

#[tokio::test]
async fn a_failed_try_is_withdrawn_only_if_the_row_is_unchanged() {
    let rows = r#"'[[1, "k", 3, 7, 1, 5, 6, "failed", 1]]'"#;
    let restore = Case::of("unit/restore", &["1", "'applied'", rows], FAILED).await;
    let newer = "update refrain_units set applied_version = 2";
    let other = "update refrain_units set applied_fingerprint = 4";
    let changes = [OTHER_VERSION, OTHER_CONTENT, OTHER_ORDER, IS_PARKED, FAILED_AGAIN, newer, other, IS_SENT];
    restore.compares(&changes).await;
}

/// Units that were read as applied are left out before it is asked; the statement does not rest on that.
#[tokio::test]
async fn an_applied_unit_has_no_failed_try_to_withdraw() {
    let rows = r#"'[[1, "k", 3, 7, 1, 5, 6, "applied", 1]]'"#;
    let restore = Case::of("unit/restore", &["1", "'applied'", rows], FAILED).await;
    assert_eq!(restore.met(IS_APPLIED).await, 0);
}

#[tokio::test]
async fn the_first_content_is_kept_only_where_its_row_was_written() {
    let keep = Case::of("unit/keep_first", &["'applied'", r#"'[[1, "k"]]'"#], FAILED).await;
    keep.compares(&["update refrain_units set written = false", IS_APPLIED, IS_SENT]).await;
}

#[tokio::test]
async fn the_order_of_applied_content_is_raised_and_never_lowered() {
    let raise = Case::of("unit/raise_order", &[r#"'[[1, "k", 5, 8]]'"#], APPLIED).await;
    raise.compares(&[OTHER_CONTENT, "update refrain_units set ordinal = 8", IS_FAILED]).await;
}

/// Failures and suspicions replace the same records, and leave the same ones alone.
async fn is_recorded_over(statement: &str, arguments: impl Fn(&'static str) -> Vec<&'static str>) {
    let failed = Case::of(statement, &arguments("null"), FAILED).await;
    let reserved = "update refrain_units set status = 'parked', sent = 50";
    failed.compares(&[IS_APPLIED, OTHER_VERSION, OTHER_ORDER, reserved]).await;
    let own = "insert into refrain_units
        (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written, \
        status, sent)
        values (1, 'k', 5, 6, 7, 100, 1, 3, 9, 0, false, 'parked', 50)";
    let reserved = Case::of(statement, &arguments("null"), own).await;
    reserved.compares(&[OTHER_FENCE, OTHER_ATTEMPT, OTHER_NONCE]).await;
    let redone = Case::of(statement, &arguments("3"), APPLIED).await;
    redone.compares(&["update refrain_units set attempt = 3"]).await;
}

#[tokio::test]
async fn a_failure_is_recorded_only_over_an_older_unit_that_is_not_in_doubt() {
    is_recorded_over("unit/fail", |redo| {
        let first = ["1", "'k'", "1", "7", "3", "5", "6", "1", "'failed'", "'{}'", "'no'"];
        [&first[..], &[redo, "null", "9"]].concat()
    })
    .await;
}

#[tokio::test]
async fn a_unit_is_suspected_only_over_an_older_one_that_is_not_in_doubt() {
    is_recorded_over("unit/blame", |redo| {
        vec!["1", "1", "7", "3", "-1", "'tried'", "null", redo, "9", "'parked'", r#"'[["k", 5, 6, "{}"]]'"#]
    })
    .await;
}

#[tokio::test]
async fn only_a_suspect_is_convicted() {
    let given =
        "insert into refrain_units (ledger, key, fence, at, version, attempt, failures, written, status)
        values (1, 'k', 7, 100, 1, 2, -1, false, 'parked')";
    let no_suspect = "update refrain_units set failures = 0";
    let convict = Case::of("unit/convict", &["1", "'k'", "3"], given).await;
    convict.compares(&[IS_FAILED, no_suspect]).await;
    let trial = Case::of("unit/trial", &["1", "7", "3"], given).await;
    trial.compares(&[OTHER_FENCE, OTHER_ATTEMPT, no_suspect]).await;
}

#[tokio::test]
async fn a_malformed_line_is_cleared_only_by_a_later_reading_of_its_place() {
    let arguments = ["1", "'a'", "'z'", "7", "3", "11", "'page 1'"];
    let clear = Case::of("unit/clear", &arguments, FAILED).await;
    let own = "update refrain_units set attempt = 3, nonce = 11";
    clear.compares(&[IS_APPLIED, own, "update refrain_units set place = 'page 2'"]).await;
}

#[tokio::test]
async fn a_restored_store_parks_only_units_from_before_the_restore() {
    let arguments = ["1", "'k'", "1", "7", "5", "6", "'{}'", "'why'", "50", "200", "'parked'"];
    let forgotten = Case::of("unit/forgotten", &arguments, APPLIED).await;
    forgotten.compares(&["update refrain_units set at = 200"]).await;
}

#[tokio::test]
async fn page_records_are_deleted_only_where_they_are_applied() {
    let forget = Case::of("unit/forget_pages", &["1", "'a'", "'z'"], APPLIED).await;
    forget.compares(&[IS_FAILED]).await;
}

#[tokio::test]
async fn remaining_units_are_those_not_applied_with_stored_input() {
    let failed = Case::of("unit/failed", &["1", "10", "''"], FAILED).await;
    failed.compares(&[NO_CONTENT, IS_PARKED, "update refrain_units set input = null"]).await;
    let unkept =
        "insert into refrain_units (ledger, key, fingerprint, at, version, failures, written, status)
        values (1, 'k', 5, 100, 1, 1, false, 'failed')";
    let unkept = Case::of("unit/unkept", &["1", "10"], unkept).await;
    unkept.compares(&[NO_CONTENT, IS_APPLIED, "update refrain_units set input = '{}'"]).await;
    for statement in ["unit/unapplied", "unit/unreadable"] {
        Case::of(statement, &["1", "'a'", "'z'"], FAILED).await.compares(&[IS_APPLIED]).await;
    }
}

#[tokio::test]
async fn the_remaining_units_of_a_run_are_its_own_and_not_applied() {
    Case::of("unit/left", &["1", "7"], FAILED).await.compares(&[OTHER_FENCE, IS_APPLIED]).await;
}

#[tokio::test]
async fn a_unit_is_retried_only_with_cleared_failures_and_a_known_place() {
    let given =
        "insert into refrain_units (ledger, key, fingerprint, at, version, failures, written, status, place)
        values (1, 'k', 5, 100, 1, 0, false, 'failed', 'page 1')";
    let asked = Case::of("unit/asked", &["1", "10"], given).await;
    asked.compares(&[IS_PARKED, FAILED_AGAIN, "update refrain_units set place = null"]).await;
}

#[tokio::test]
async fn the_doubts_of_a_run_are_those_of_its_fence_and_version() {
    let doubts = Case::of("unit/doubts", &["1", "7", "''", "1", "10"], RESERVED).await;
    doubts.compares(&[IS_FAILED, NOT_SENT, OTHER_FENCE, OTHER_VERSION]).await;
}

#[tokio::test]
async fn the_operator_decides_only_about_units_as_they_were_shown() {
    let given = "insert into refrain_ledgers (id, project, job, scope, window_start) \
         values (1, 'shop', 'sync', 'here', '');
        insert into refrain_units (ledger, key, fingerprint, at, version, failures, written, status, sent)
        values (1, 'k', 5, 100, 1, 0, false, 'parked', 50)";
    let arguments = ["'shop'", "'sync'", "'k'", "'here'", "'2020'"];
    let elsewhere = "update refrain_ledgers set scope = 'there'";
    let later = "update refrain_ledgers set window_start = '2021'";
    let confirm = Case::of("unit/confirm", &[&arguments[..], &["'applied'"]].concat(), given).await;
    confirm.compares(&[IS_FAILED, NOT_SENT, elsewhere, later]).await;
    let unpark = Case::of("unit/unpark", &[&arguments[..], &["'failed'"]].concat(), given).await;
    unpark.compares(&[IS_APPLIED, elsewhere, later]).await;
}

#[tokio::test]
async fn an_attempt_finds_only_its_own_publishes() {
    let given =
        "insert into refrain_publishes (ledger, target, mode, rows, fence, attempt, nonce, version, at)
        values (1, 'totals', 'overwrite', 1, 7, 2, 9, 1, 0)";
    let find = Case::of("publish/find", &["1", "7", "2", "9"], given).await;
    let other =
        ["fence = 8", "attempt = 3", "nonce = 10"].map(|what| format!("update refrain_publishes set {what}"));
    find.compares(&other.each_ref().map(String::as_str)).await;
}
