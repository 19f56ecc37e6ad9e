//! Five zones around their clock changes: Berlin, New York, Lord Howe (half an hour), Cairo (at midnight), Kolkata
//! (none, and half an hour off UTC).

use jiff::Timestamp;
use refrain_core::{Dst, Fold, Gap, Grid, Schedule, Zone};

use super::{all_rules, at};

fn ticks(pattern: &str, zone: &str, dst: Dst, day: &str) -> Vec<String> {
    let (schedule, zone) = (Schedule::parse(pattern).unwrap(), Zone::parse(zone).unwrap());
    let wall = |tick: Timestamp| zone.wall(tick).strftime("%H:%M").to_string();
    let noon = at(&format!("{day}T12:00:00Z"));
    let from = noon - jiff::SignedDuration::from_hours(36);
    let until = noon + jiff::SignedDuration::from_hours(36);
    schedule
        .ticks(&zone, dst)
        .between(from, until)
        .filter(|tick| zone.wall(*tick).date().to_string() == day)
        .map(|tick| format!("{}={}", wall(tick), tick.strftime("%d %H:%MZ")))
        .collect()
}

/// pattern, zone, day, the result of each rule (`gap` for days on which the clock goes forward).
fn expect(pattern: &str, zone: &str, day: &str, rule: impl Fn(Dst) -> bool, expected: &[&str]) {
    for dst in all_rules().filter(|dst| rule(*dst)) {
        assert_eq!(ticks(pattern, zone, dst, day), expected, "{pattern} in {zone} on {day} with {dst:?}");
    }
}

/// A zone, a time of day that its clock skips, one that it shows twice, and windows around both.
struct Place {
    zone: &'static str,
    /// pattern, day, the tick when the clock jumps
    gap: Option<(&'static str, &'static str, &'static str)>,
    /// pattern, day, the first tick, the last
    fold: Option<(&'static str, &'static str, &'static str, &'static str)>,
    /// grid, after, until, each window's start and length
    windows: &'static [(&'static str, &'static str, &'static str, &'static [&'static str])],
}

const BERLIN: Place = Place {
    zone: "Europe/Berlin",
    gap: Some(("30 2 * * *", "2026-03-29", "03:00=29 01:00Z")),
    fold: Some(("30 2 * * *", "2026-10-25", "02:30=25 00:30Z", "02:30=25 01:30Z")),
    windows: &[
        ("day", "2026-03-28T12:00:00Z", "2026-03-30T00:00:00Z", &["28 00:00 1d", "29 00:00 23h"]),
        ("day", "2026-10-25T12:00:00Z", "2026-10-26T00:00:00Z", &["25 00:00 1d1h"]),
        ("hour", "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", &["25 02:00 1h", "25 02:00 1h"]),
        ("hour", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z", &["29 01:00 1h", "29 03:00 1h"]),
        ("2h", "2026-10-25T00:00:00Z", "2026-10-25T05:00:00Z", &["25 02:00 3h", "25 04:00 2h"]),
        (
            "2h",
            "2026-03-28T23:00:00Z",
            "2026-03-29T04:00:00Z",
            &["29 00:00 2h", "29 03:00 1h", "29 04:00 2h"],
        ),
        ("month", "2026-02-28T23:00:00Z", "2026-04-01T00:00:00Z", &["01 00:00 30d23h"]),
        ("week", "2026-10-19T00:00:00Z", "2026-10-26T00:00:00Z", &["19 00:00 7d1h"]),
    ],
};

const NEW_YORK: Place = Place {
    zone: "America/New_York",
    gap: Some(("30 2 * * *", "2026-03-08", "03:00=08 07:00Z")),
    fold: Some(("30 1 * * *", "2026-11-01", "01:30=01 05:30Z", "01:30=01 06:30Z")),
    windows: &[
        ("day", "2026-03-08T12:00:00Z", "2026-03-09T12:00:00Z", &["08 00:00 23h"]),
        ("2h", "2026-11-01T04:00:00Z", "2026-11-01T09:00:00Z", &["01 00:00 3h", "01 02:00 2h"]),
    ],
};

const LORD_HOWE: Place = Place {
    zone: "Australia/Lord_Howe",
    gap: Some(("15 2 * * *", "2026-10-04", "02:30=03 15:30Z")),
    fold: Some(("45 1 * * *", "2026-04-05", "01:45=04 14:45Z", "01:45=04 15:15Z")),
    windows: &[
        ("hour", "2026-04-04T14:00:00Z", "2026-04-04T16:30:00Z", &["05 01:00 1h30m", "05 02:00 1h"]),
        (
            "hour",
            "2026-10-03T14:30:00Z",
            "2026-10-03T17:00:00Z",
            &["04 01:00 1h", "04 02:30 30m", "04 03:00 1h"],
        ),
        ("30m", "2026-04-04T14:30:00Z", "2026-04-04T15:30:00Z", &["05 01:30 30m", "05 01:30 30m"]),
    ],
};

const CAIRO: Place = Place {
    zone: "Africa/Cairo",
    gap: Some(("0 0 * * *", "2026-04-24", "01:00=23 22:00Z")),
    fold: Some(("30 23 * * *", "2026-10-29", "23:30=29 20:30Z", "23:30=29 21:30Z")),
    windows: &[
        ("day", "2026-04-23T12:00:00Z", "2026-04-25T00:00:00Z", &["23 00:00 1d", "24 01:00 23h"]),
        ("day", "2026-10-29T12:00:00Z", "2026-10-30T00:00:00Z", &["29 00:00 1d1h"]),
    ],
};

const KOLKATA: Place = Place {
    zone: "Asia/Kolkata",
    gap: None,
    fold: None,
    windows: &[("12h", "2026-06-08T18:30:00Z", "2026-06-09T18:30:00Z", &["09 00:00 12h", "09 12:00 12h"])],
};

/// Havana shows midnight twice: the day begins at the first.
const HAVANA: Place = Place {
    zone: "America/Havana",
    gap: Some(("0 0 * * *", "2026-03-08", "01:00=08 05:00Z")),
    fold: Some(("0 0 * * *", "2026-11-01", "00:00=01 04:00Z", "00:00=01 05:00Z")),
    windows: &[("day", "2026-11-01T12:00:00Z", "2026-11-02T12:00:00Z", &["01 00:00 1d1h"])],
};

impl Place {
    fn check(&self) {
        if let Some((pattern, day, tick)) = self.gap {
            expect(pattern, self.zone, day, |dst| dst.gap == Gap::Next, &[tick]);
            expect(pattern, self.zone, day, |dst| dst.gap == Gap::Skip, &[]);
        }
        if let Some((pattern, day, first, last)) = self.fold {
            expect(pattern, self.zone, day, |dst| dst.fold == Fold::First, &[first]);
            expect(pattern, self.zone, day, |dst| dst.fold == Fold::Last, &[last]);
            expect(pattern, self.zone, day, |dst| dst.fold == Fold::Both, &[first, last]);
        }
        for (grid, after, until, expected) in self.windows {
            assert_eq!(
                lengths(grid, self.zone, after, until),
                *expected,
                "{grid} in {} after {after}",
                self.zone
            );
        }
    }
}

#[test]
fn h2_berlin_jumps_an_hour_in_the_night() {
    BERLIN.check();
}

#[test]
fn h2_new_york_jumps_at_two_and_repeats_one() {
    NEW_YORK.check();
}

#[test]
fn h2_lord_howe_jumps_half_an_hour() {
    LORD_HOWE.check();
}

#[test]
fn h2_cairo_jumps_at_midnight() {
    CAIRO.check();
}

#[test]
fn h2_havana_shows_midnight_twice() {
    HAVANA.check();
}

#[test]
fn h2_kolkata_never_jumps_and_is_half_an_hour_off() {
    KOLKATA.check();
    expect("30 2 * * *", "Asia/Kolkata", "2026-03-29", |_| true, &["02:30=28 21:00Z"]);
    expect("0 0 * * *", "Asia/Kolkata", "2026-10-25", |_| true, &["00:00=24 18:30Z"]);
}

#[test]
fn f15_times_in_a_gap_tick_once_together() {
    let next = |dst: Dst| dst.gap == Gap::Next;
    expect("15,45 2 * * *", "Europe/Berlin", "2026-03-29", next, &["03:00=29 01:00Z"]);
    // A pattern that ticks right after the gap anyway does not tick twice.
    expect("30 2,3 * * *", "Europe/Berlin", "2026-03-29", next, &["03:00=29 01:00Z", "03:30=29 01:30Z"]);
    expect("0 2,3 * * *", "Europe/Berlin", "2026-03-29", |_| true, &["03:00=29 01:00Z"]);
}

#[test]
fn f15_an_interval_has_nothing_to_do_in_a_gap() {
    expect("*/30 2 * * *", "Europe/Berlin", "2026-03-29", |_| true, &[]);
    let hours = ticks("0 * * * *", "Europe/Berlin", Dst::default(), "2026-03-29");
    assert_eq!(hours.len(), 23);
    assert_eq!(hours[1..3], ["01:00=29 00:00Z", "03:00=29 01:00Z"]);
}

#[test]
fn f16_times_that_come_twice_tick_in_the_order_of_real_time() {
    let both = Dst { fold: Fold::Both, ..Dst::default() };
    assert_eq!(
        ticks("15,45 2 * * *", "Europe/Berlin", both, "2026-10-25"),
        ["02:15=25 00:15Z", "02:45=25 00:45Z", "02:15=25 01:15Z", "02:45=25 01:45Z"]
    );
}

#[test]
fn f16_an_interval_goes_on_every_real_hour_through_a_fold() {
    for dst in all_rules() {
        let hours = ticks("0 * * * *", "Europe/Berlin", dst, "2026-10-25");
        assert_eq!(hours.len(), 25, "{dst:?}");
        assert_eq!(hours[2..4], ["02:00=25 00:00Z", "02:00=25 01:00Z"], "{dst:?}");
    }
}

#[test]
fn h2_two_years_in_five_zones_give_the_stated_number_of_ticks() {
    let (from, until) = (at("2025-12-31T23:59:59Z"), at("2027-12-31T23:59:59Z"));
    // Days of 2026 and 2027 that begin in UTC's two years; the fold falls into 02:30 (01:30 west) twice.
    for (zone, pattern, jumps) in [
        ("Europe/Berlin", "30 2 * * *", true),
        ("America/New_York", "30 1 * * *", true),
        ("Australia/Lord_Howe", "45 1 * * *", true),
        ("Africa/Cairo", "30 23 * * *", true),
        ("Asia/Kolkata", "30 2 * * *", false),
    ] {
        let (schedule, zone) = (Schedule::parse(pattern).unwrap(), Zone::parse(zone).unwrap());
        for dst in all_rules() {
            let mut expected = 730;
            if jumps && dst.fold == Fold::Both {
                expected += 2;
            }
            if dst.gap == Gap::Skip && pattern == "30 2 * * *" && jumps {
                expected -= 2;
            }
            assert_eq!(
                schedule.ticks(&zone, dst).between(from, until).count(),
                expected,
                "{pattern} {zone} {dst:?}"
            );
        }
    }
}

#[test]
fn h2_windows_of_every_grid_meet_without_gap_or_overlap() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata"] {
        let zone = Zone::parse(zone).unwrap();
        for grid in ["15m", "30m", "45m", "hour", "2h", "6h", "12h", "day", "week", "month"] {
            let grid = Grid::parse(grid).unwrap();
            let mut end = None;
            for window in grid.windows(&zone, at("2026-01-01T00:00:00Z"), at("2027-12-31T00:00:00Z")) {
                assert!(end.is_none_or(|end| end == window.start()), "{zone} {grid} {window}");
                end = Some(window.end());
            }
            assert!(end.is_some(), "{zone} {grid}");
        }
    }
}

fn lengths(grid: &str, zone: &str, after: &str, until: &str) -> Vec<String> {
    let zone = Zone::parse(zone).unwrap();
    Grid::parse(grid)
        .unwrap()
        .windows(&zone, at(after), at(until))
        .map(|window| {
            let start = zone.wall(window.start().timestamp());
            format!("{} {}", start.strftime("%d %H:%M"), refrain_core::duration::format(window.length()))
        })
        .collect()
}
