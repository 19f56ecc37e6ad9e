//! Edits of a timetable: the past stays, the old and new windows meet in a short one, and nothing overlaps.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use refrain_core::{CatchUp, Revisions, Zone};

use super::{at, first, since, timetable};

/// Opens everything that is due under the current revision, and returns how far that is.
fn work_off(revisions: &Revisions, covered: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    revisions.current().pass(covered, CatchUp::All, now, usize::MAX).covered
}

/// The first window that the timetable in force opens.
fn next(revisions: &Revisions, covered: Option<Timestamp>) -> String {
    revisions.current().due_windows(covered).next().unwrap().window.start().to_string()
}

#[test]
fn f19_past_windows_are_judged_by_the_schedule_in_force_then() {
    let daily = since("2026-06-01T00:00:00Z", timetable("0 2 * * *", "UTC", "day"));
    let mut revisions = first(daily, "2026-06-01T00:00:00Z");
    let edited_at = at("2026-06-11T10:30:00Z");
    let covered = work_off(&revisions, None, edited_at);
    let hourly = since("2026-06-01T00:00:00Z", timetable("5 * * * *", "UTC", "hour"));
    assert!(revisions.edit(hourly.clone(), covered, edited_at).unwrap());
    assert!(!revisions.edit(hourly, covered, edited_at).unwrap(), "an equal timetable is not an edit");

    // The first ten days have ten windows, not two hundred and forty.
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
    let covered = work_off(&revisions, None, edited_at);
    revisions.edit(timetable("5 * * * *", "UTC", "hour"), covered, edited_at).unwrap();
    let pass = revisions.current().pass(covered, CatchUp::None, at("2026-06-11T11:05:00Z"), usize::MAX);
    assert_eq!(pass.rows.len(), 11);
    assert!(pass.rows.iter().all(|(due, verdict)| {
        due.tick == at("2026-06-11T11:05:00Z") && *verdict == refrain_core::CatchUpVerdict::OnTime
    }));
}

#[test]
fn the_seam_between_two_grids_is_one_short_window() {
    let mut revisions =
        first(since("2026-06-01T00:00:00Z", timetable("5 * * * *", "UTC", "hour")), "2026-06-01T00:00:00Z");
    let edited_at = at("2026-06-03T10:30:00Z");
    let covered = work_off(&revisions, None, edited_at);
    revisions.edit(timetable("0 2 * * *", "UTC", "day"), covered, edited_at).unwrap();
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
    // Its name is its start: the date alone would mean another window.
    assert_eq!(revisions.find("2026-06-03T10:00").unwrap().length().as_secs(), 14 * 3_600);
    assert_eq!(revisions.find("2026-06-03T09:00").unwrap().length().as_secs(), 3_600);
    let error = revisions.find("2026-06-03T12:00").unwrap_err();
    assert_eq!(error.advice(), Some("it lies in the window 2026-06-03T10:00"));
}

#[test]
fn a_start_moved_later_leaves_time_out_and_one_moved_earlier_opens_nothing() {
    let (covered, now) = (Some(at("2026-06-05T00:00:00Z")), at("2026-06-05T12:00:00Z"));
    let original = first(since("2026-06-01", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T00:00:00Z");
    for (start, expected) in [("2026-06-09", "2026-06-09T00:00:00Z"), ("2026-05-01", "2026-06-05T00:00:00Z")]
    {
        let mut revisions = original.clone();
        revisions.edit(since(start, timetable("0 2 * * *", "UTC", "day")), covered, now).unwrap();
        assert_eq!(next(&revisions, covered), expected, "start = {start}");
    }
}

#[test]
fn a_timetable_that_opened_nothing_is_replaced_without_a_trace() {
    // Weekly on Monday, seen on a Tuesday: its first window lies in the future.
    let mut revisions = first(timetable("0 2 * * 1", "UTC", "day"), "2026-06-09T12:00:00Z");
    revisions.edit(timetable("0 2 * * *", "UTC", "day"), None, at("2026-06-09T13:00:00Z")).unwrap();
    assert_eq!(next(&revisions, None), "2026-06-09T00:00:00Z");

    // A start in the wrong year is corrected.
    let daily = || timetable("0 2 * * *", "UTC", "day");
    let mut revisions = first(since("2027-06-01", daily()), "2026-06-01T12:00:00Z");
    revisions.edit(since("2026-06-01", daily()), None, at("2026-06-01T13:00:00Z")).unwrap();
    assert_eq!(next(&revisions, None), "2026-06-01T00:00:00Z");

    // The same mistake in a job that has run.
    let mut revisions = first(since("2026-06-01", daily()), "2026-06-01T00:00:00Z");
    let now = at("2026-06-05T12:00:00Z");
    let covered = work_off(&revisions, None, now);
    revisions.edit(since("2027-06-01", daily()), covered, now).unwrap();
    revisions.edit(since("2026-06-01", daily()), covered, now).unwrap();
    assert_eq!(next(&revisions, covered), "2026-06-05T00:00:00Z");
    assert_eq!(revisions.iter().count(), 2, "the slip is not kept");
    revisions.edit(since("2027-06-01", daily()), covered, now).unwrap();
    revisions.edit(since("2026-12-01", daily()), covered, now).unwrap();
    assert_eq!(
        next(&revisions, covered),
        "2026-12-01T00:00:00Z",
        "later than what was, if not than the slip"
    );
}

#[test]
fn f19_windows_due_under_the_old_timetable_are_opened_by_it_first() {
    let mut revisions =
        first(since("2026-06-01", timetable("5 * * * *", "UTC", "hour")), "2026-06-01T00:00:00Z");
    let now = at("2026-06-03T12:00:00Z");
    let cut_short = revisions.current().pass(None, CatchUp::None, now, 10);
    let daily = timetable("0 2 * * *", "UTC", "day");
    let refused = revisions.edit(daily.clone(), cut_short.covered, now).unwrap_err();
    assert!(refused.to_string().contains("was due at 2026-06-01T11:05:00Z"), "{refused}");
    let covered = work_off(&revisions, cut_short.covered, now);
    assert!(revisions.edit(daily, covered, now).unwrap());
}

#[test]
fn the_seam_of_tick_windows_is_marked_and_found_from_everywhere() {
    let mut revisions = first(timetable("0 10 * * *", "UTC", "tick"), "2026-06-08T12:00:00Z");
    let edited_at = at("2026-06-09T12:30:00Z");
    let covered = work_off(&revisions, None, edited_at);
    revisions.edit(timetable("0 * * * *", "UTC", "tick"), covered, edited_at).unwrap();
    let seam = revisions.current().due_windows(covered).next().unwrap();
    assert_eq!(
        format!("{:?} {}", seam.shape, seam.window),
        "Remainder [2026-06-09T10:00:00Z, 2026-06-09T13:00:00Z)"
    );
    for after in ["2026-06-09T10:00:00Z", "2026-06-09T11:30:00Z", "2026-06-09T12:59:59Z"] {
        let (window, _) = revisions.windows(at(after), Timestamp::MAX).next().unwrap();
        assert_eq!(window, seam.window, "asked from {after}");
    }
    assert_eq!(revisions.find("2026-06-09T11:00").unwrap_err().reason(), "no window of this job begins then");
}

#[test]
fn a_name_that_means_two_windows_after_an_edit_is_refused_with_both() {
    let mut revisions =
        first(since("2026-06-10", timetable("5 * * * *", "Europe/Berlin", "hour")), "2026-06-09T22:00:00Z");
    let now = at("2026-06-10T10:30:00Z");
    let covered = work_off(&revisions, None, now);
    revisions.edit(timetable("5 * * * *", "UTC", "hour"), covered, now).unwrap();
    let error = revisions.find("2026-06-10T11:00").unwrap_err();
    assert_eq!(error.advice(), Some("write 2026-06-10T09:00:00Z or 2026-06-10T11:00:00Z"), "{error}");
    assert_eq!(
        revisions.find("2026-06-10T09:00:00Z").unwrap().start().timestamp(),
        at("2026-06-10T09:00:00Z")
    );
}

#[test]
fn a_start_between_two_boundaries_begins_with_the_next_whole_window() {
    let revisions =
        first(since("2026-06-01T10:00", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T10:00:00Z");
    assert_eq!(next(&revisions, None), "2026-06-02T00:00:00Z");
    let expected = revisions.windows(Timestamp::MIN, at("2026-06-03T00:00:00Z"));
    assert_eq!(expected.count(), 1, "what lies before the start is not expected");
}

#[test]
fn stored_revisions_must_join() {
    let mut revisions = first(timetable("0 2 * * *", "UTC", "day"), "2026-06-08T12:00:00Z");
    let now = at("2026-06-10T12:00:00Z");
    let covered = work_off(&revisions, None, now);
    revisions.edit(timetable("0 3 * * *", "UTC", "day"), covered, now).unwrap();
    let stored: Vec<_> = revisions.iter().cloned().collect();
    assert_eq!(Revisions::stored(stored.clone()), Ok(revisions));
    for (joins, hours) in [(true, -1), (true, 1), (false, -1)] {
        let mut apart = stored.clone();
        apart[1].joins = joins;
        apart[1].from += SignedDuration::from_hours(hours);
        assert!(Revisions::stored(apart).is_err(), "joins: {joins}, {hours} h");
    }
    assert!(Revisions::stored(stored.into_iter().rev().collect()).is_err());
    assert!(Revisions::stored(Vec::new()).is_err());
}

#[test]
fn opened_windows_count_even_if_the_caller_omits_them() {
    let mut revisions =
        first(since("2026-06-01", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T00:00:00Z");
    let now = at("2026-06-05T12:00:00Z");
    let covered = work_off(&revisions, None, now);
    revisions.edit(since("2026-06-01", timetable("5 * * * *", "UTC", "hour")), covered, now).unwrap();
    revisions.edit(since("2026-06-01", timetable("6 * * * *", "UTC", "hour")), None, now).unwrap();
    assert_eq!(next(&revisions, covered), "2026-06-05T00:00:00Z");
    let stored: Vec<_> = revisions.iter().cloned().collect();
    assert_eq!(Revisions::stored(stored), Ok(revisions));
}

#[test]
fn a_closed_revision_opens_nothing_after_its_end() {
    let mut revisions =
        first(since("2026-06-01", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T00:00:00Z");
    let now = at("2026-06-05T12:00:00Z");
    let covered = work_off(&revisions, None, now);
    revisions.edit(timetable("5 * * * *", "UTC", "hour"), covered, now).unwrap();
    let closed = revisions.iter().next().unwrap().clone();
    assert_eq!(closed.pass(covered, CatchUp::All, at("2026-06-20T00:00:00Z"), 100).rows, []);
    assert!(Revisions::stored(vec![closed]).unwrap().is_retired(), "and none is in force");
}

#[test]
fn time_that_a_later_start_left_out_can_still_be_named() {
    let daily = |start: &str| since(start, timetable("0 2 * * *", "UTC", "day"));
    let mut revisions = first(daily("2026-06-01"), "2026-06-01T00:00:00Z");
    let mut covered = work_off(&revisions, None, at("2026-06-05T12:00:00Z"));
    revisions.edit(daily("2026-06-09"), covered, at("2026-06-05T12:00:00Z")).unwrap();
    covered = work_off(&revisions, covered, at("2026-06-11T12:00:00Z"));
    revisions.edit(daily("2026-06-01"), covered, at("2026-06-11T12:00:00Z")).unwrap();
    assert_eq!(revisions.find("2026-06-06").unwrap().start().to_string(), "2026-06-06T00:00:00Z");
    let left_out: Vec<String> = revisions
        .left_out(at("2026-05-31T00:00:00Z"), at("2026-06-30T00:00:00Z"))
        .map(|(window, _)| window.start().to_string()[5..10].to_owned())
        .collect();
    assert_eq!(left_out, ["05-31", "06-05", "06-06", "06-07", "06-08"]);
}

#[test]
fn a_start_that_only_moves_with_its_zone_leaves_nothing_out() {
    let hourly = |zone| since("2026-06-01", timetable("5 * * * *", zone, "hour"));
    let mut revisions = first(hourly("UTC"), "2026-06-01T00:00:00Z");
    let now = at("2026-06-01T02:30:00Z");
    let covered = work_off(&revisions, None, now);
    revisions.edit(hourly("America/New_York"), covered, now).unwrap();
    assert_eq!(next(&revisions, covered), "2026-06-01T02:00:00Z");
}

#[test]
fn f17_a_release_with_older_zone_rules_leaves_the_newer_ones_in_force() {
    let with = |version| {
        let mut daily = timetable("0 2 * * *", "UTC", "day");
        daily.zone = Zone::with_rules("Europe/Berlin", version, TimeZone::posix("CET-1").unwrap());
        daily
    };
    let now = at("2026-06-05T12:00:00Z");
    let mut revisions = first(with("2026b"), "2026-06-05T12:00:00Z");
    assert!(!revisions.edit(with("2026a"), None, now).unwrap());
    assert!(revisions.edit(with("2026c"), None, now).unwrap());
}

#[test]
fn windows_before_the_first_revision_can_still_be_named() {
    let from_ten =
        first(since("2026-06-09T10:00", timetable("0 2 * * *", "UTC", "tick")), "2026-06-09T12:00:00Z");
    assert_eq!(from_ten.find("2026-06-09T02:00").unwrap().length().as_secs(), 8 * 3_600, "up to the start");
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
    let two_hours = first(timetable("5 * * * *", "Europe/Berlin", "2h"), "2026-06-09T12:00:00Z");
    assert_eq!(
        two_hours.find("2026-10-25T02:00").unwrap().length().as_secs(),
        3 * 3_600,
        "only one begins then"
    );
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
        questions in prop::collection::vec(-1_000_000_i64..10_000_000, 10),
    ) {
        let mut now = Timestamp::from_second(start).unwrap();
        let mut covered = None;
        let mut edits = parts.into_iter();
        let ((schedule, zone, grid), stay) = edits.next().unwrap();
        let mut revisions = first(timetable(schedule, zone, grid), &now.to_string());
        now += SignedDuration::from_secs(stay);
        let mut opened: Vec<_> = revisions.current().pass(covered, CatchUp::All, now, usize::MAX).rows;
        covered = work_off(&revisions, covered, now);
        for ((schedule, zone, grid), stay) in edits {
            revisions.edit(timetable(schedule, zone, grid), covered, now).unwrap();
            now += SignedDuration::from_secs(stay);
            opened.extend(revisions.current().pass(covered, CatchUp::All, now, usize::MAX).rows);
            covered = work_off(&revisions, covered, now);
        }
        let Some(covered) = covered else { return Ok(()) };
        let opened: Vec<_> = opened.into_iter().map(|(due, _)| (due.window, due.shape)).collect();
        for pair in opened.windows(2) {
            prop_assert_eq!(pair[0].0.end(), pair[1].0.start());
        }
        let expected: Vec<_> = revisions.windows(Timestamp::MIN, covered).collect();
        prop_assert_eq!(&expected, &opened, "what must exist is what was opened");
        for question in questions {
            let after = Timestamp::from_second(start + question).unwrap();
            let rest: Vec<_> = opened.iter().filter(|(window, _)| window.end().timestamp() > after).copied().collect();
            prop_assert_eq!(revisions.windows(after, covered).collect::<Vec<_>>(), rest, "asked from {}", after);
        }
        for (window, _) in opened.iter().take(20) {
            prop_assert_eq!(revisions.find(&window.start().to_string()).unwrap(), *window);
        }
    }
}
