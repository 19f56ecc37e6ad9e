//! Days on which the clock changes, worked out by hand.

use crate::compare::{beginnings_on, ticks_on};
use crate::day::{Day, Where};
use crate::ticks::{Fold, Gap, POLICIES};

const BERLIN_GAP: Where = ("Europe/Berlin", (2026, 3, 29));
const BERLIN_FOLD: Where = ("Europe/Berlin", (2026, 10, 25));

fn assert_ticks((zone, date): Where, pattern: &str, policy: (Gap, Fold), text: &str) {
    let day = Day::new(zone, date);
    let about = format!("{} on {date:?}, `{pattern}`, {policy:?}", day.zone);
    assert_eq!(day.times_of(&day.ticks(pattern, policy)), text, "the oracle, {about}");
    assert_eq!(day.times_of(&ticks_on(&day, pattern, policy)), text, "the code under test, {about}");
}

/// Compares only the first ticks of the day, as many as `text` lists, or none.
fn assert_first_ticks((zone, date): Where, pattern: &str, policy: (Gap, Fold), text: &str) {
    let day = Day::new(zone, date);
    let about = format!("{} on {date:?}, `{pattern}`, {policy:?}", day.zone);
    assert_eq!(day.times_like(text, &day.ticks(pattern, policy)), text, "the oracle, {about}");
    assert_eq!(day.times_like(text, &ticks_on(&day, pattern, policy)), text, "the code under test, {about}");
}

fn assert_beginnings((zone, date): Where, grid: &str, text: &str) {
    let day = Day::new(zone, date);
    let about = format!("{grid} windows of {} on {date:?}", day.zone);
    assert_eq!(day.times_like(text, &day.beginnings(grid)), text, "the oracle, {about}");
    assert_eq!(day.times_like(text, &beginnings_on(&day, grid)), text, "the code under test, {about}");
}

#[test]
fn f15_a_fixed_time_in_a_gap_ticks_once_at_its_end() {
    let cairo = ("Africa/Cairo", (2026, 4, 24));
    let lord_howe = ("Australia/Lord_Howe", (2026, 10, 4));
    let troll = ("Antarctica/Troll", (2026, 3, 29));
    for (place, pattern, text) in [
        (BERLIN_GAP, "30 2 * * *", "03:00+02:00"),
        (BERLIN_GAP, "15,45 2 * * *", "03:00+02:00"),
        (BERLIN_GAP, "0 2 */2 * SUN", "03:00+02:00"),
        (BERLIN_GAP, "30 0 2 * * *", "03:00+02:00"),
        (BERLIN_GAP, "20/15 2 * * *", "03:00+02:00"),
        (BERLIN_GAP, "10 1-3/2 * * *", "01:10+01:00 03:10+02:00"),
        (
            BERLIN_GAP,
            "0,30 0-3 * * *",
            "00:00+01:00 00:30+01:00 01:00+01:00 01:30+01:00 03:00+02:00 03:30+02:00",
        ),
        (cairo, "0 0 * * *", "01:00+03:00"),
        (cairo, "0 0 * * 5L", "01:00+03:00"),
        (cairo, "0 0 13 * 5", "01:00+03:00"),
        (cairo, "0,30 0-3 * * *", "01:00+03:00 01:30+03:00 02:00+03:00 02:30+03:00 03:00+03:00 03:30+03:00"),
        (lord_howe, "15 2 * * *", "02:30+11:00"),
        (lord_howe, "30 2 * * *", "02:30+11:00"),
        (lord_howe, "15,45 2 * * *", "02:30+11:00 02:45+11:00"),
        (troll, "30 1 * * *", "03:00+02:00"),
        (troll, "30 2 * * *", "03:00+02:00"),
        (troll, "10 1-3/2 * * *", "03:00+02:00 03:10+02:00"),
        (troll, "0,30 0-3 * * *", "00:00+00:00 00:30+00:00 03:00+02:00 03:30+02:00"),
        (("America/Nuuk", (2026, 3, 28)), "59 23 * * *", ""),
        (("America/Nuuk", (2026, 3, 29)), "59 23 * * *", "00:00-01:00 23:59-01:00"),
        (("America/Nuuk", (2026, 3, 29)), "0 0 * * *", "00:00-01:00"),
        (("Pacific/Apia", (2011, 12, 31)), "0 0 * * *", "00:00+14:00"),
        (("Pacific/Apia", (2011, 12, 31)), "30 2 * * *", "00:00+14:00 02:30+14:00"),
        (("Pacific/Apia", (2011, 12, 31)), "0 0 * * 5L", "00:00+14:00"),
    ] {
        for fold in [Fold::First, Fold::Last, Fold::Both] {
            assert_ticks(place, pattern, (Gap::Next, fold), text);
        }
    }
}

#[test]
fn f15_a_fixed_time_in_a_gap_is_left_out_when_the_policy_says_skip() {
    for (place, pattern, text) in [
        (BERLIN_GAP, "30 2 * * *", ""),
        (BERLIN_GAP, "15,45 2 * * *", ""),
        (BERLIN_GAP, "30 0 2 * * *", ""),
        (
            BERLIN_GAP,
            "0,30 0-3 * * *",
            "00:00+01:00 00:30+01:00 01:00+01:00 01:30+01:00 03:00+02:00 03:30+02:00",
        ),
        (("Africa/Cairo", (2026, 4, 24)), "0 0 * * *", ""),
        (("Australia/Lord_Howe", (2026, 10, 4)), "15,45 2 * * *", "02:45+11:00"),
        (
            ("Antarctica/Troll", (2026, 3, 29)),
            "0,30 0-3 * * *",
            "00:00+00:00 00:30+00:00 03:00+02:00 03:30+02:00",
        ),
        (("Pacific/Apia", (2011, 12, 31)), "0 0 * * 5L", ""),
        (("Pacific/Apia", (2011, 12, 31)), "0 0 * * *", "00:00+14:00"),
    ] {
        assert_ticks(place, pattern, (Gap::Skip, Fold::First), text);
    }
}

const FOLDS: [Fold; 3] = [Fold::First, Fold::Last, Fold::Both];

#[test]
fn f16_a_fixed_time_in_a_fold_ticks_in_the_passes_that_the_policy_names() {
    let lord_howe = ("Australia/Lord_Howe", (2026, 4, 5));
    let new_york = ("America/New_York", (2026, 11, 1));
    let havana = ("America/Havana", (2026, 11, 1));
    let cairo = ("Africa/Cairo", (2026, 10, 29));
    for (place, pattern, first, last) in [
        (BERLIN_FOLD, "30 2 * * *", "02:30+02:00", "02:30+01:00"),
        (BERLIN_FOLD, "30 0 2 * * *", "02:00:30+02:00", "02:00:30+01:00"),
        (
            BERLIN_FOLD,
            "20/15 2 * * *",
            "02:20+02:00 02:35+02:00 02:50+02:00",
            "02:20+01:00 02:35+01:00 02:50+01:00",
        ),
        (new_york, "30 1 * * *", "01:30-04:00", "01:30-05:00"),
        (lord_howe, "30 1 * * *", "01:30+11:00", "01:30+10:30"),
        (havana, "0 0 * * *", "00:00-04:00", "00:00-05:00"),
        (havana, "0 0 1 * *", "00:00-04:00", "00:00-05:00"),
        (cairo, "59 23 * * *", "23:59+03:00", "23:59+02:00"),
        (("America/St_Johns", (2010, 11, 6)), "59 23 * * *", "23:59-02:30", ""),
        (("America/St_Johns", (2010, 11, 7)), "0 0 * * *", "00:00-02:30", "00:00-03:30"),
    ] {
        let both = format!("{first} {last}");
        for (fold, text) in FOLDS.into_iter().zip([first, last, both.trim()]) {
            assert_ticks(place, pattern, (Gap::Next, fold), text);
        }
    }
}

#[test]
fn f16_both_passes_of_a_fold_stand_in_the_order_of_real_time() {
    let text = "00:00+02:00 00:30+02:00 01:00+02:00 01:30+02:00 02:00+02:00 02:30+02:00 \
                02:00+01:00 02:30+01:00 03:00+01:00 03:30+01:00";
    assert_ticks(BERLIN_FOLD, "0,30 0-3 * * *", (Gap::Skip, Fold::Both), text);
}

#[test]
fn f16_a_time_on_the_edge_of_a_fold_ticks_once_under_every_policy() {
    for policy in POLICIES {
        assert_ticks(("Africa/Cairo", (2026, 10, 30)), "0 0 * * *", policy, "00:00+02:00");
        assert_ticks(BERLIN_FOLD, "10 1-3/2 * * *", policy, "01:10+02:00 03:10+01:00");
        assert_ticks(BERLIN_GAP, "30 1 * * *", policy, "01:30+01:00");
    }
}

#[test]
fn f15_f16_an_interval_follows_real_time_through_gap_and_fold() {
    for (place, pattern, text) in [
        (BERLIN_GAP, "0 * * * *", "00:00+01:00 01:00+01:00 03:00+02:00 04:00+02:00"),
        (BERLIN_GAP, "@hourly", "00:00+01:00 01:00+01:00 03:00+02:00 04:00+02:00"),
        (BERLIN_GAP, "10/30 * * * *", "00:10+01:00 00:40+01:00 01:10+01:00 01:40+01:00 03:10+02:00"),
        (BERLIN_GAP, "0 */2 * * *", "00:00+01:00 04:00+02:00 06:00+02:00"),
        (BERLIN_GAP, "*/15 2 * * *", ""),
        (BERLIN_GAP, "*/20 30 2 * * *", ""),
        (
            BERLIN_FOLD,
            "10/30 * * * *",
            "00:10+02:00 00:40+02:00 01:10+02:00 01:40+02:00 02:10+02:00 02:40+02:00 02:10+01:00",
        ),
        (BERLIN_FOLD, "0 * * * *", "00:00+02:00 01:00+02:00 02:00+02:00 02:00+01:00 03:00+01:00"),
        (
            BERLIN_FOLD,
            "*/30 * * * *",
            "00:00+02:00 00:30+02:00 01:00+02:00 01:30+02:00 02:00+02:00 02:30+02:00 02:00+01:00 02:30+01:00 03:00+01:00",
        ),
        (BERLIN_FOLD, "0 */2 * * *", "00:00+02:00 02:00+02:00 02:00+01:00 04:00+01:00"),
        (
            BERLIN_FOLD,
            "*/20 30 2 * * *",
            "02:30+02:00 02:30:20+02:00 02:30:40+02:00 02:30+01:00 02:30:20+01:00 02:30:40+01:00",
        ),
        (
            ("Australia/Lord_Howe", (2026, 4, 5)),
            "*/30 * * * *",
            "00:00+11:00 00:30+11:00 01:00+11:00 01:30+11:00 01:30+10:30 02:00+10:30",
        ),
    ] {
        for policy in POLICIES {
            assert_first_ticks(place, pattern, policy, text);
        }
    }
}

#[test]
fn h2_calendar_windows_begin_at_midnight_or_where_the_clock_first_passes_it() {
    for (place, grid, text) in [
        (BERLIN_GAP, "day", "00:00+01:00"),
        (("Europe/Berlin", (2026, 3, 30)), "day", "00:00+02:00"),
        (("Europe/Berlin", (2026, 3, 30)), "week", "00:00+02:00"),
        (BERLIN_FOLD, "week", ""),
        (("Europe/Berlin", (2026, 10, 26)), "week", "00:00+01:00"),
        (("Europe/Berlin", (2026, 11, 1)), "month", "00:00+01:00"),
        (("Europe/Berlin", (2026, 11, 2)), "month", ""),
        (("Africa/Cairo", (2026, 4, 24)), "day", "01:00+03:00"),
        (("Africa/Cairo", (2026, 10, 30)), "day", "00:00+02:00"),
        (("America/Havana", (2026, 11, 1)), "day", "00:00-04:00"),
        (("America/Havana", (2026, 11, 1)), "month", "00:00-04:00"),
        (("America/St_Johns", (2010, 11, 7)), "day", "00:00-02:30"),
        (("Pacific/Apia", (2011, 12, 31)), "day", "00:00+14:00"),
    ] {
        assert_beginnings(place, grid, text);
    }
}

#[test]
fn h2_hour_windows_begin_each_time_that_the_clock_strikes() {
    let lord_howe_gap = ("Australia/Lord_Howe", (2026, 10, 4));
    let lord_howe_fold = ("Australia/Lord_Howe", (2026, 4, 5));
    let chatham_gap = ("Pacific/Chatham", (2026, 9, 27));
    let chatham_fold = ("Pacific/Chatham", (2026, 4, 5));
    for (place, grid, text) in [
        (BERLIN_GAP, "hour", "00:00+01:00 01:00+01:00 03:00+02:00 04:00+02:00"),
        (BERLIN_FOLD, "hour", "00:00+02:00 01:00+02:00 02:00+02:00 02:00+01:00 03:00+01:00"),
        (BERLIN_GAP, "2h", "00:00+01:00 03:00+02:00 04:00+02:00 06:00+02:00"),
        (BERLIN_FOLD, "2h", "00:00+02:00 02:00+02:00 04:00+01:00 06:00+01:00"),
        (BERLIN_GAP, "6h", "00:00+01:00 06:00+02:00 12:00+02:00 18:00+02:00"),
        (BERLIN_FOLD, "12h", "00:00+02:00 12:00+01:00"),
        (lord_howe_gap, "hour", "00:00+10:30 01:00+10:30 02:30+11:00 03:00+11:00"),
        (lord_howe_fold, "hour", "00:00+11:00 01:00+11:00 02:00+10:30 03:00+10:30"),
        (lord_howe_fold, "30m", "00:00+11:00 00:30+11:00 01:00+11:00 01:30+11:00 01:30+10:30 02:00+10:30"),
        (chatham_gap, "hour", "00:00+12:45 01:00+12:45 02:00+12:45 03:45+13:45 04:00+13:45"),
        (chatham_fold, "hour", "00:00+13:45 01:00+13:45 02:00+13:45 03:00+13:45 03:00+12:45 04:00+12:45"),
        (chatham_fold, "2h", "00:00+13:45 02:00+13:45 04:00+12:45"),
        (("America/Havana", (2026, 11, 1)), "hour", "00:00-04:00 00:00-05:00 01:00-05:00"),
        (("America/Havana", (2026, 11, 1)), "2h", "00:00-04:00 02:00-05:00"),
        (("Antarctica/Troll", (2026, 3, 29)), "30m", "00:00+00:00 00:30+00:00 03:00+02:00 03:30+02:00"),
        (("Antarctica/Troll", (2026, 10, 25)), "2h", "00:00+02:00 02:00+02:00 02:00+00:00 04:00+00:00"),
        (("Antarctica/Casey", (2018, 3, 11)), "2h", "00:00+11:00 02:00+11:00 04:00+08:00"),
        (("America/St_Johns", (2010, 11, 7)), "hour", "00:00-02:30 00:00-03:30 01:00-03:30"),
        (("Asia/Kolkata", (2026, 6, 9)), "hour", "00:00+05:30 01:00+05:30"),
        (("Pacific/Apia", (2011, 12, 31)), "6h", "00:00+14:00 06:00+14:00"),
    ] {
        assert_beginnings(place, grid, text);
    }
}
