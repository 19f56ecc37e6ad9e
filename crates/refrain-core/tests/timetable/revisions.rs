//! Edits of a timetable: the past stays, the seam is one short window, nothing overlaps.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use refrain_core::{CatchUp, Revisions, Shape};

use super::{at, first, since, timetable};

/// Lets the current revision open all that is due, and gives up to where.
fn work_off(revisions: &Revisions, covered: Timestamp, now: Timestamp) -> Timestamp {
    revisions.current().pass(covered, CatchUp::All, now, usize::MAX).covered
}

#[test]
fn f19_past_windows_are_judged_by_the_schedule_in_force_then() {
    let daily = since("2026-06-01T00:00:00Z", timetable("0 2 * * *", "UTC", "day"));
    let mut revisions = first(daily, "2026-06-01T00:00:00Z");
    let edited_at = at("2026-06-11T10:30:00Z");
    let covered = work_off(&revisions, revisions.current().from, edited_at);
    let hourly = since("2026-06-01T00:00:00Z", timetable("5 * * * *", "UTC", "hour"));
    assert!(revisions.edit(hourly.clone(), covered, edited_at));
    assert!(!revisions.edit(hourly, covered, edited_at), "the same timetable again is no edit");

    // A backfill of the first ten days has ten windows, not two hundred and forty.
    let first_days = revisions.windows(at("2026-06-01T00:00:00Z"), at("2026-06-11T00:00:00Z"));
    assert_eq!(first_days.count(), 10);
    let day_of_the_edit = revisions.windows(at("2026-06-11T00:00:00Z"), at("2026-06-12T00:00:00Z"));
    assert_eq!(day_of_the_edit.count(), 24);
}

#[test]
fn f19_what_the_edit_finds_uncovered_opens_at_the_next_tick_on_time() {
    let mut revisions =
        first(since("2026-06-01T00:00:00Z", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T00:00:00Z");
    let edited_at = at("2026-06-11T10:30:00Z");
    let covered = work_off(&revisions, revisions.current().from, edited_at);
    revisions.edit(timetable("5 * * * *", "UTC", "hour"), covered, edited_at);
    let pass = revisions.current().pass(covered, CatchUp::None, at("2026-06-11T11:05:00Z"), usize::MAX);
    assert_eq!(pass.rows.len(), 11);
    assert!(pass.rows.iter().all(|(opening, verdict)| {
        opening.tick == at("2026-06-11T11:05:00Z") && *verdict == refrain_core::Verdict::OnTime
    }));
}

#[test]
fn the_seam_between_two_grids_is_one_short_window() {
    let mut revisions =
        first(since("2026-06-01T00:00:00Z", timetable("5 * * * *", "UTC", "hour")), "2026-06-01T00:00:00Z");
    let edited_at = at("2026-06-03T10:30:00Z");
    let covered = work_off(&revisions, revisions.current().from, edited_at);
    revisions.edit(timetable("0 2 * * *", "UTC", "day"), covered, edited_at);
    let around: Vec<String> = revisions
        .windows(at("2026-06-03T09:00:00Z"), at("2026-06-05T00:00:00Z"))
        .map(|(window, shape)| format!("{shape:?} {window}"))
        .collect();
    assert_eq!(
        around,
        [
            "Whole [2026-06-03T09:00:00Z, 2026-06-03T10:00:00Z)",
            "Remainder [2026-06-03T10:00:00Z, 2026-06-04T00:00:00Z)",
            "Whole [2026-06-04T00:00:00Z, 2026-06-05T00:00:00Z)",
        ]
    );
    // It is called by its start: the day's own name would mean another window.
    assert_eq!(revisions.find("2026-06-03T10:00").unwrap().length().as_secs(), 14 * 3_600);
    assert_eq!(revisions.find("2026-06-03T09:00").unwrap().length().as_secs(), 3_600);
    let error = revisions.find("2026-06-03T12:00").unwrap_err();
    assert_eq!(error.advice(), Some("it lies in the window 2026-06-03T10:00"));
}

#[test]
fn a_start_moved_later_leaves_time_out_and_one_moved_earlier_opens_nothing() {
    let covered = at("2026-06-05T00:00:00Z");
    let now = at("2026-06-05T12:00:00Z");
    let original =
        first(since("2026-06-01T00:00:00Z", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T00:00:00Z");
    for (start, next) in
        [("2026-06-09T00:00:00Z", "2026-06-09T00:00:00Z"), ("2026-05-01T00:00:00Z", "2026-06-05T00:00:00Z")]
    {
        let mut revisions = original.clone();
        revisions.edit(since(start, timetable("0 2 * * *", "UTC", "day")), covered, now);
        let opening = revisions.current().openings(covered).next().unwrap();
        assert_eq!(opening.window.start().timestamp(), at(next), "start = {start}");
        assert_eq!(opening.shape, Shape::Whole);
    }
}

#[test]
fn a_start_between_two_lines_begins_with_the_next_whole_window() {
    let revisions =
        first(since("2026-06-01T10:00:00Z", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T10:00:00Z");
    let opening = revisions.current().openings(revisions.current().from).next().unwrap();
    assert_eq!(opening.window.start().timestamp(), at("2026-06-02T00:00:00Z"));
}

#[test]
fn windows_before_the_first_revision_can_be_named_for_a_backfill() {
    for grid in ["day", "hour", "tick"] {
        let revisions = first(timetable("0 2 * * *", "UTC", grid), "2026-06-09T12:00:00Z");
        let name = if grid == "tick" { "2025-01-01T02:00" } else { "2025-01-01T00:00" };
        assert!(revisions.find(name).unwrap().length().as_secs() <= 86_400, "{grid}");
    }
}

#[test]
fn an_hour_that_comes_twice_has_two_names() {
    let revisions = first(timetable("5 * * * *", "Europe/Berlin", "hour"), "2026-06-09T12:00:00Z");
    let error = revisions.find("2026-10-25T02:00").unwrap_err();
    assert_eq!(error.advice(), Some("write 2026-10-25T00:00:00Z or 2026-10-25T01:00:00Z"));
    let both = ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"].map(|name| revisions.find(name).unwrap());
    assert_eq!(both[0].end(), both[1].start());
    let gone = revisions.find("2026-03-29T02:00").unwrap_err();
    assert_eq!(gone.reason(), "this time does not exist in Europe/Berlin");
}

fn any_part() -> impl Strategy<Value = (&'static str, &'static str, &'static str)> {
    (
        prop::sample::select(vec!["0 2 * * *", "*/20 * * * *", "5 * * * *", "0 2 * * 1-5", "every 7h"]),
        prop::sample::select(vec![
            "Europe/Berlin",
            "America/New_York",
            "Australia/Lord_Howe",
            "Asia/Kolkata",
        ]),
        prop::sample::select(vec!["hour", "day", "week", "month", "6h", "tick"]),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn windows_of_revisions_never_overlap_and_leave_no_time_out(
        start in 1_767_225_600_i64..1_793_000_000,
        parts in prop::collection::vec((any_part(), 1_i64..3_000_000), 1..6),
    ) {
        let mut now = Timestamp::from_second(start).unwrap();
        let mut edits = parts.into_iter();
        let ((schedule, zone, grid), stay) = edits.next().unwrap();
        let mut revisions = first(timetable(schedule, zone, grid), &now.to_string());
        let mut covered = revisions.current().from;
        let begin = covered;
        now += SignedDuration::from_secs(stay);
        covered = work_off(&revisions, covered, now);
        for ((schedule, zone, grid), stay) in edits {
            revisions.edit(timetable(schedule, zone, grid), covered, now);
            now += SignedDuration::from_secs(stay);
            covered = work_off(&revisions, covered, now);
        }
        let mut end = begin;
        let mut count = 0;
        for (window, _) in revisions.windows(begin, covered) {
            prop_assert_eq!(window.start().timestamp(), end);
            end = window.end().timestamp();
            count += 1;
        }
        prop_assert_eq!(end, covered, "after {} windows", count);
        for (window, _) in revisions.windows(begin, covered).take(20) {
            prop_assert_eq!(revisions.find(&window.start().to_string()).unwrap(), window);
        }
    }
}
