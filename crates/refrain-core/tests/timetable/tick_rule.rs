//! The tick rule: a tick opens every whole window that ended since the tick before.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use refrain_core::{CatchUp, CatchUpVerdict, Revision, SkipReason, TickPlan, WindowShape, Zone};

use super::{at, first, since, timetable};

/// `tick: window starts` for each tick up to `until`.
fn opened(revision: &Revision, until: &str) -> Vec<String> {
    let zone = &revision.timetable.zone;
    let mut lines: Vec<(Timestamp, Vec<String>)> = Vec::new();
    for due in revision.due_windows(None).take_while(|due| due.tick <= at(until)) {
        let start = zone.wall(due.window.start().timestamp()).strftime("%a %H:%M").to_string();
        match lines.last_mut().filter(|(tick, _)| *tick == due.tick) {
            Some((_, starts)) => starts.push(start),
            None => lines.push((due.tick, vec![start])),
        }
    }
    lines
        .into_iter()
        .map(|(tick, starts)| format!("{}: {}", zone.wall(tick).strftime("%a %H:%M"), starts.join(", ")))
        .collect()
}

#[test]
fn a_weekday_schedule_opens_the_weekend_on_monday() {
    let revisions =
        first(since("2026-06-05", timetable("0 2 * * 1-5", "Europe/Berlin", "day")), "2026-06-05T00:00:00Z");
    let revision = revisions.current();
    assert_eq!(
        opened(revision, "2026-06-09T12:00:00Z"),
        ["Mon 02:00: Fri 00:00, Sat 00:00, Sun 00:00", "Tue 02:00: Mon 00:00"]
    );
}

#[test]
fn an_hourly_tick_opens_the_hour_that_ended() {
    let revisions = first(timetable("5 * * * *", "UTC", "hour"), "2026-06-09T12:30:00Z");
    let revision = revisions.current();
    assert_eq!(opened(revision, "2026-06-09T14:30:00Z"), ["Tue 13:05: Tue 12:00", "Tue 14:05: Tue 13:00"]);
}

#[test]
fn a_nightly_tick_opens_all_hours_since_the_night_before() {
    let revisions =
        first(since("2026-06-09T00:00:00Z", timetable("0 2 * * *", "UTC", "6h")), "2026-06-09T00:00:00Z");
    let revision = revisions.current();
    assert_eq!(
        opened(revision, "2026-06-11T02:00:00Z"),
        [
            "Wed 02:00: Tue 00:00, Tue 06:00, Tue 12:00, Tue 18:00",
            "Thu 02:00: Wed 00:00, Wed 06:00, Wed 12:00, Wed 18:00"
        ]
    );
}

#[test]
fn tick_windows_reach_from_one_tick_to_the_next() {
    let revisions = first(timetable("0 2 * * 1-5", "UTC", "tick"), "2026-06-12T12:00:00Z");
    let windows: Vec<String> = revisions
        .current()
        .due_windows(None)
        .take(2)
        .map(|due| format!("{} at {}", due.window, due.tick))
        .collect();
    assert_eq!(
        windows,
        [
            "[2026-06-12T02:00:00Z, 2026-06-15T02:00:00Z) at 2026-06-15T02:00:00Z",
            "[2026-06-15T02:00:00Z, 2026-06-16T02:00:00Z) at 2026-06-16T02:00:00Z",
        ]
    );
}

#[test]
fn without_a_start_the_first_tick_opens_the_last_whole_window() {
    for (now, expected) in [
        // In the middle of the day: tomorrow's tick opens today.
        ("2026-06-09T12:00:00Z", "[2026-06-09T00:00:00Z, 2026-06-10T00:00:00Z) at 2026-06-10T02:00:00Z"),
        // A tick at this very instant counts: a first `tick` from cron at 02:00 does its work.
        ("2026-06-09T02:00:03Z", "[2026-06-08T00:00:00Z, 2026-06-09T00:00:00Z) at 2026-06-09T02:00:00Z"),
        ("2026-06-09T02:06:00Z", "[2026-06-09T00:00:00Z, 2026-06-10T00:00:00Z) at 2026-06-10T02:00:00Z"),
    ] {
        let revisions = first(timetable("0 2 * * *", "UTC", "day"), now);
        let due = revisions.current().due_windows(None).next().unwrap();
        assert_eq!(format!("{} at {}", due.window, due.tick), expected, "{now}");
    }
}

#[test]
fn an_interval_is_counted_from_the_start_and_ignores_jumps_of_the_clock() {
    let every = first(
        since("2026-03-28T01:00", timetable("every 7h", "Europe/Berlin", "tick")),
        "2026-03-28T00:00:00Z",
    );
    assert_eq!(
        opened(every.current(), "2026-03-29T12:00:00Z"),
        [
            "Sat 08:00: Sat 01:00",
            "Sat 15:00: Sat 08:00",
            "Sat 22:00: Sat 15:00",
            "Sun 06:00: Sat 22:00",
            "Sun 13:00: Sun 06:00"
        ]
    );
}

#[test]
fn covered_is_used_unchanged_even_between_two_boundaries() {
    let revisions = first(since("2026-06-01", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T00:00:00Z");
    let due = revisions.current().due_windows(Some(at("2026-06-03T10:00:00Z"))).next().unwrap();
    assert_eq!(
        format!("{:?} {}", due.shape, due.window),
        "Remainder [2026-06-03T10:00:00Z, 2026-06-04T00:00:00Z)"
    );
}

#[test]
fn m17_a_run_started_days_later_is_about_the_same_window() {
    let revisions =
        first(since("2026-06-01T00:00:00Z", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T00:00:00Z");
    let revision = revisions.current();
    let on_time = revision.pass(None, CatchUp::All, at("2026-06-02T02:00:00Z"), 1);
    let three_days_later = revision.pass(None, CatchUp::All, at("2026-06-05T17:12:44Z"), 1);
    assert_eq!(on_time.rows[0].0, three_days_later.rows[0].0);
}

#[test]
fn f17_new_zone_rules_leave_opened_windows_alone_and_lose_no_time() {
    let rules = |version, posix| Zone::with_rules("Europe/Berlin", version, TimeZone::posix(posix).unwrap());
    let mut daily = timetable("0 2 * * *", "UTC", "day");
    daily.zone = rules("2026a", "CET-1CEST,M3.5.0,M10.5.0/3");
    let mut revisions = first(since("2026-06-02", daily.clone()), "2026-06-01T22:00:00Z");
    let now = "2026-06-05T12:00:00Z";
    let before = pass_until(revisions.current(), None, now);
    assert_eq!(before.covered, Some(at("2026-06-04T22:00:00Z")));
    let third_of_june = revisions.find("2026-06-03").unwrap();

    // A release whose zone rules have no summer time reads the same timetable.
    daily.zone = rules("2026b", "CET-1");
    assert!(revisions.edit(daily, before.covered, at(now)).unwrap(), "other rules are an edit");
    let after = pass_until(revisions.current(), before.covered, "2026-06-08T12:00:00Z");
    let shown: Vec<String> =
        after.rows.iter().map(|(due, _)| format!("{:?} {}", due.shape, due.window)).collect();
    assert_eq!(
        shown,
        [
            "Remainder [2026-06-04T22:00:00Z, 2026-06-04T23:00:00Z)",
            "Whole [2026-06-04T23:00:00Z, 2026-06-05T23:00:00Z)",
            "Whole [2026-06-05T23:00:00Z, 2026-06-06T23:00:00Z)",
            "Whole [2026-06-06T23:00:00Z, 2026-06-07T23:00:00Z)",
        ]
    );
    assert_eq!(revisions.find("2026-06-03").unwrap(), third_of_june, "an opened window keeps its name");
    assert_eq!(revisions.find("2026-06-04T22:00:00Z").unwrap().length(), Duration::from_hours(1));
    let all: Vec<_> = revisions.windows(at("2026-06-01T22:00:00Z"), at("2026-06-07T23:00:00Z")).collect();
    assert!(all.windows(2).all(|pair| pair[0].0.end() == pair[1].0.start()));
}

#[test]
fn f17_a_stored_zone_remembers_which_rules_cut_its_windows() {
    let present = Zone::parse("Europe/Berlin").unwrap();
    assert_eq!(present.version(), Zone::rules_version());
    assert_eq!(Zone::stored("Europe/Berlin", Zone::rules_version()).unwrap(), present);
    assert_ne!(Zone::stored("Europe/Berlin", "1999a").unwrap(), present);
}

fn pass_until(revision: &Revision, covered: Option<Timestamp>, now: &str) -> TickPlan {
    revision.pass(covered, CatchUp::All, at(now), usize::MAX)
}

fn any_timetable() -> impl Strategy<Value = (&'static str, &'static str, &'static str)> {
    (
        prop::sample::select(vec![
            "0 2 * * *",
            "*/20 * * * *",
            "5 * * * *",
            "0 2 * * 1-5",
            "every 7h",
            "30 1,2 1 * *",
        ]),
        prop::sample::select(vec![
            "Europe/Berlin",
            "America/New_York",
            "Australia/Lord_Howe",
            "Africa/Cairo",
            "UTC",
        ]),
        prop::sample::select(vec!["hour", "day", "week", "month", "6h", "tick"]),
    )
}

fn any_instant() -> impl Strategy<Value = Timestamp> {
    // 2026 and 2027.
    (1_767_225_600_i64..1_830_297_600).prop_map(|second| Timestamp::from_second(second).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The rule from the tick's side: the windows that ended after the previous tick and not after this one.
    #[test]
    fn each_window_opens_at_the_first_tick_after_its_end((schedule, zone, grid) in any_timetable(), now in any_instant()) {
        let revisions = first(timetable(schedule, zone, grid), &now.to_string());
        let revision = revisions.current();
        let ticks = revision.timetable.ticks();
        let mut end = revision.from;
        for due in revision.due_windows(None).take(30) {
            prop_assert_eq!(due.window.start().timestamp(), end);
            prop_assert_eq!(due.shape, WindowShape::Whole);
            end = due.window.end().timestamp();
            prop_assert!(end <= due.tick);
            let previous = ticks.at_or_before(due.tick - SignedDuration::from_secs(1)).unwrap();
            // Without a start, the first window is the last whole one, whenever it ended.
            let is_first = due.window.start().timestamp() == revision.from;
            prop_assert!(is_first || previous < end, "{} was due at {previous} already", due.window);
        }
    }

    /// I18: what a plan writes depends only on its inputs; smaller plans write the same rows.
    #[test]
    fn i18_small_passes_write_the_same_rows_as_a_large_one(
        (schedule, zone, grid) in any_timetable(), now in any_instant(), days in 0_i64..20, limit in 1_usize..7,
        policy in prop::sample::select(vec![CatchUp::All, CatchUp::Latest, CatchUp::None, CatchUp::Within(Duration::from_hours(50))]),
    ) {
        let revisions = first(timetable(schedule, zone, grid), &now.to_string());
        let revision = revisions.current();
        let later = now + SignedDuration::from_hours(24 * days);
        let whole = revision.pass(None, policy, later, usize::MAX);
        let mut rows = Vec::new();
        let mut covered = None;
        loop {
            let part = revision.pass(covered, policy, later, limit);
            prop_assert!(part.rows.len() <= limit);
            covered = part.covered;
            if part.rows.is_empty() {
                prop_assert_eq!(part.next, whole.next);
                prop_assert_eq!(part.covered, whole.covered);
                break;
            }
            rows.extend(part.rows);
        }
        prop_assert_eq!(&rows, &whole.rows);
        for (_, verdict) in &rows {
            if let CatchUpVerdict::Skipped(SkipReason::Superseded { by }) = verdict {
                prop_assert_eq!(Some(*by), rows.last().map(|(due, _)| due.window));
            }
        }
        prop_assert_eq!(covered, whole.covered);
    }

    /// F13: the clock jumps back and forth by up to 400 days; no window opens twice, none is left out.
    #[test]
    fn f13_a_jumping_clock_opens_no_window_twice(
        (schedule, zone, grid) in any_timetable(), now in any_instant(),
        jumps in prop::collection::vec(prop_oneof![1_i64..100_000, 100_000_i64..34_560_000], 20),
    ) {
        let revisions = first(timetable(schedule, zone, grid), &now.to_string());
        let revision = revisions.current();
        let mut covered = None;
        let mut end = revision.from;
        let mut clock = now;
        let mut rows_after_a_jump_back = 0;
        for pair in jumps.chunks(2) {
            for (jump, is_back) in [(-pair[0], true), (pair[0] + pair[1], false)] {
                clock += SignedDuration::from_secs(jump);
                let pass = revision.pass(covered, CatchUp::All, clock, 50);
                prop_assert!(pass.covered >= covered, "what is covered never shrinks");
                covered = pass.covered;
                rows_after_a_jump_back += if is_back { 0 } else { pass.rows.len() };
                for (due, _) in pass.rows {
                    prop_assert_eq!(due.window.start().timestamp(), end, "each begins where the last ended");
                    prop_assert!(due.tick <= clock);
                    end = due.window.end().timestamp();
                }
            }
        }
        let forward: i64 = jumps.chunks(2).map(|pair| pair[1]).sum();
        prop_assert!(rows_after_a_jump_back > 0 || forward < 32 * 86_400, "windows go on opening");
    }

    /// I16 for any instant, also between ticks, before 1970, and in both directions.
    #[test]
    fn i16_ticks_increase_and_are_found_from_both_sides(
        (schedule, zone, _) in any_timetable(), nanosecond in -2_000_000_000_000_000_000_i128..4_000_000_000_000_000_000,
    ) {
        let timetable = timetable(schedule, zone, "tick");
        let ticks = timetable.ticks();
        let mut last = Timestamp::from_nanosecond(nanosecond).unwrap();
        for round in 0..20 {
            let tick = ticks.after(last).unwrap();
            prop_assert!(tick > last);
            prop_assert_eq!(ticks.at_or_before(tick), Some(tick));
            let just_before = tick - SignedDuration::from_nanos(1);
            prop_assert_eq!(ticks.after(just_before), Some(tick));
            if round > 0 {
                prop_assert_eq!(ticks.at_or_before(just_before), Some(last), "nothing lies between two ticks");
            }
            last = tick;
        }
    }
}
