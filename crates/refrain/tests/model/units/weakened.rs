//! The units' protocol with all its guards, and with each removed.
//!
//! A line of the tables says which guards are removed, within which bounds, and which promise breaks; or that none
//! breaks, and which other guard covers for it.

use super::properties::*;
use super::{Bounds, Guard, Units};
use crate::check::{self, protocol};

/// One run, taken over again and again. Only its fence keeps its attempts apart.
const ONE_RUN: Bounds = Bounds {
    runs: 1,
    in_lane: false,
    gives_up: false,
    relays: 0,
    contents: 2,
    crashes: 1,
    expiries: 2,
    lost_replies: 1,
    failures: 1,
};

/// Two runs of one job at once, each with a fence of its own, that share units and a checkpoint.
const TWO_RUNS: Bounds = Bounds { runs: 2, crashes: 0, expiries: 1, ..ONE_RUN };

/// Two runs of one job, one after the other.
const LANE: Bounds = Bounds { in_lane: true, ..TWO_RUNS };

/// One run, and two relays that carry its intents.
const RELAYS: Bounds = Bounds { relays: 2, expiries: 1, lost_replies: 0, failures: 0, ..ONE_RUN };

/// Two runs, and a run that is over may leave an attempt behind without a successor.
const GIVEN_UP: Bounds = Bounds { gives_up: true, ..LANE };

/// One run whose units never fail.
const NO_FAILURES: Bounds = Bounds { failures: 0, ..ONE_RUN };

fn holds(title: &str, bounds: Bounds) {
    check::holds(Units { bounds, without: &[] }, title);
}

#[test]
fn one_run_taken_over_writes_each_unit_once() {
    let wide = Bounds { crashes: 2, lost_replies: 2, failures: 2, ..ONE_RUN };
    holds("one run", check::chosen(ONE_RUN, wide));
}

#[test]
fn two_runs_that_share_units_write_each_once() {
    holds("two runs", check::chosen(TWO_RUNS, Bounds { crashes: 1, ..TWO_RUNS }));
}

#[test]
fn two_runs_in_a_lane_write_each_unit_once() {
    holds("a lane", check::chosen(LANE, Bounds { crashes: 1, expiries: 2, ..LANE }));
}

#[test]
fn every_intent_reaches_the_store_once() {
    holds("relays", check::chosen(RELAYS, Bounds { lost_replies: 1, failures: 1, ..RELAYS }));
}

// Without one, or without those that cover for each other.
protocol! { Units:
    a_fence_that_is_not_raised_stops_no_attempt: [FenceRaised] in ONE_RUN breaks FENCED;
    a_fence_raised_after_reading_lets_older_content_win: [RaisedBeforeReading, Order] in ONE_RUN breaks NEVER_OLDER;
    applying_without_the_fence_lets_an_old_attempt_write: [FenceOfApply] in ONE_RUN breaks FENCED;
    applying_without_the_fence_lets_older_content_win: [FenceOfApply, Order] in ONE_RUN breaks NEVER_OLDER;
    a_checkpoint_without_the_fence_is_moved_by_an_old_attempt: [FenceOfCheckpoint] in ONE_RUN breaks FENCED;
    a_fence_that_is_only_looked_at_is_passed_too_late: [FenceHeld] in ONE_RUN breaks FENCED;
    a_take_over_under_the_same_number_lets_the_old_attempt_write_on: [NewNumber] in ONE_RUN breaks OVER;
    a_take_over_under_the_same_number_lets_older_content_win: [NewNumber, Order] in ONE_RUN breaks NEVER_OLDER;
    a_unit_that_is_not_in_the_ledger_is_applied_twice: [LedgerKey] in ONE_RUN breaks APPLIED_ONCE;
    without_an_order_a_slow_run_brings_older_content_back: [Order] in TWO_RUNS breaks NEVER_OLDER;
    a_ledger_that_commits_before_the_rows_says_what_is_not_so: [LedgerWithRows] in ONE_RUN breaks TOGETHER;
    an_intent_after_its_rows_is_lost: [IntentWithRows] in ONE_RUN breaks INTENT_KEPT;
    a_failure_over_what_was_applied_has_it_applied_twice: [AppliedStands] in TWO_RUNS breaks APPLIED_ONCE;
    a_failure_of_newer_content_forgets_what_was_applied: [AppliedRemembered] in ONE_RUN breaks TOGETHER;
    a_lost_reply_taken_for_success_leaves_a_unit_out: [DoubtResolved] in ONE_RUN breaks DONE_IS_SETTLED;
    a_relay_without_a_unique_key_records_twice: [RelayKey] in RELAYS breaks RECORDED_ONCE;
    a_relay_that_deletes_first_loses_what_it_carries: [CopiedBeforeDeleted] in RELAYS breaks INTENT_KEPT;
    a_checkpoint_before_its_units_skips_them: [SettledFirst, SettledProven] in ONE_RUN breaks SETTLED;
    a_page_that_is_left_early_ends_with_a_commit_in_flight: [SettledFirst] in ONE_RUN breaks OVER;
    a_checkpoint_without_a_horizon_passes_what_comes_late: [Horizon] in ONE_RUN breaks NONE_PASSED;
    a_horizon_seen_after_the_page_passes_what_came_between: [HorizonOfPage] in ONE_RUN breaks SETTLED;
    a_checkpoint_that_is_not_compared_goes_back: [CheckpointCompared] in TWO_RUNS breaks ONLY_ONWARD;
    a_run_ended_without_its_lease_leaves_units_behind: [FenceOfFinish] in ONE_RUN breaks DONE_IS_SETTLED;
    a_run_ended_without_its_lease_is_written_to_afterwards: [FenceOfFinish] in ONE_RUN breaks OVER;
}

// Guards that another one covers, so that a mistake in one of them is not yet a mistake in the rows.
protocol! { Units:
    covered_by_the_order_a_fence_raised_after_reading: [RaisedBeforeReading] in NO_FAILURES holds;
    covered_by_the_fence_content_without_an_order_in_one_run: [Order] in NO_FAILURES holds;
    covered_by_the_lane_content_without_an_order_in_two_runs: [Order] in LANE holds;
    covered_by_the_fence_a_checkpoint_that_is_not_compared_in_one_run: [CheckpointCompared] in NO_FAILURES holds;
    covered_by_the_proof_a_checkpoint_that_comes_early: [SettledFirst] in NO_FAILURES holds;
    covered_by_the_order_of_work_a_checkpoint_that_proves_nothing: [SettledProven] in NO_FAILURES holds;
}

// Not promised: a run that is given up has no newer attempt to raise its fence. Content is still never older, if it
// has an order; and nothing else breaks.
protocol! { Units:
    an_attempt_without_a_successor_is_not_fenced: [] in GIVEN_UP breaks_only OVER;
    an_attempt_without_a_successor_brings_older_content_into_the_lane: [Order] in GIVEN_UP breaks NEVER_OLDER;
}
