//! The preview of a schedule: its description, and the ticks around a change of the clocks.

use jiff::civil::{Date, date};
use refrain_core::schedule::{self, Preview};
use refrain_core::{Dst, Fold, Gap, Timetable};

use super::{first, since, timetable};

fn around(timetable: Timetable, date: Date) -> Preview {
    Preview::around(first(timetable, "2026-01-01T00:00:00Z").current(), date)
}

#[test]
fn a_timetable_is_described_in_words() {
    for (pattern, zone, grid, words) in [
        (
            "0 2 * * *",
            "UTC",
            "day",
            "At 02:00 (UTC). Each tick opens the days that ended since the tick before.",
        ),
        (
            "5 * * * *",
            "Europe/Berlin",
            "hour",
            "At minute 5 past every hour (Europe/Berlin). Each tick opens the hours that ended since the tick before.",
        ),
        (
            "every 90m",
            "Europe/Berlin",
            "tick",
            "Every 1h30m (Europe/Berlin). Each tick opens one window, from the tick before to itself.",
        ),
        (
            "0 6 LW * *",
            "UTC",
            "15m",
            "At 06:00, on the last weekday of the month (UTC). \
             Each tick opens the windows of 15m that ended since the tick before.",
        ),
    ] {
        assert_eq!(schedule::describe(&timetable(pattern, zone, grid)), words);
    }
    let mut nightly = timetable("30 2 * * *", "Europe/Berlin", "day");
    nightly.dst = Dst { gap: Gap::Skip, fold: Fold::Both };
    assert!(
        schedule::describe(&nightly).ends_with(
            "A time that the clock jumps over does not tick; one that comes twice ticks both times."
        )
    );
}

#[test]
fn the_days_around_a_fold_are_shown() {
    let shown = around(timetable("30 2 * * *", "Europe/Berlin", "day"), date(2026, 10, 25)).to_string();
    assert_eq!(
        shown,
        "\
2026-10-25 the clock of Europe/Berlin goes back from 03:00 to 02:00
2026-10-23 02:30 +02  2026-10-23T00:30:00Z  opens 2026-10-22 (1d)
2026-10-24 02:30 +02  2026-10-24T00:30:00Z  opens 2026-10-23 (1d)
2026-10-25 02:30 +02  2026-10-25T00:30:00Z  opens 2026-10-24 (1d)  the first of two 02:30
2026-10-26 02:30 +01  2026-10-26T01:30:00Z  opens 2026-10-25 (1d1h)
2026-10-27 02:30 +01  2026-10-27T01:30:00Z  opens 2026-10-26 (1d)
"
    );
}

#[test]
fn the_days_around_a_gap_are_shown() {
    let shown = around(timetable("15,45 2 * * *", "Europe/Berlin", "tick"), date(2026, 3, 29)).to_string();
    assert_eq!(
        shown,
        "\
2026-03-29 the clock of Europe/Berlin goes forward from 02:00 to 03:00
2026-03-27 02:15 +01  2026-03-27T01:15:00Z  opens 2026-03-26T02:45 (23h30m)
2026-03-27 02:45 +01  2026-03-27T01:45:00Z  opens 2026-03-27T02:15 (30m)
2026-03-28 02:15 +01  2026-03-28T01:15:00Z  opens 2026-03-27T02:45 (23h30m)
2026-03-28 02:45 +01  2026-03-28T01:45:00Z  opens 2026-03-28T02:15 (30m)
2026-03-29 03:00 +02  2026-03-29T01:00:00Z  opens 2026-03-28T02:45 (23h15m)  for 02:15, 02:45, which does not exist
2026-03-30 02:15 +02  2026-03-30T00:15:00Z  opens 2026-03-29T03:00 (23h15m)
2026-03-30 02:45 +02  2026-03-30T00:45:00Z  opens 2026-03-30T02:15 (30m)
2026-03-31 02:15 +02  2026-03-31T00:15:00Z  opens 2026-03-30T02:45 (23h30m)
2026-03-31 02:45 +02  2026-03-31T00:45:00Z  opens 2026-03-31T02:15 (30m)
"
    );
}

#[test]
fn a_busy_schedule_shows_a_handful_of_ticks_on_both_sides_of_the_jump() {
    for (day, jump) in
        [(date(2026, 3, 29), "2026-03-29T01:00:00Z"), (date(2026, 10, 25), "2026-10-25T01:00:00Z")]
    {
        let preview = around(timetable("*/5 * * * *", "Europe/Berlin", "tick"), day);
        assert_eq!(preview.lines.len(), 24);
        assert_eq!(preview.lines[12].tick, super::at(jump));
    }
}

#[test]
fn a_tick_that_opens_many_windows_counts_them() {
    let monthly = around(timetable("0 0 1 * *", "UTC", "hour"), date(2026, 7, 1));
    assert_eq!(
        monthly.to_string(),
        "2026-07-01 00:00 +00  2026-07-01T00:00:00Z  opens 720 windows, 2026-06-01T00:00 to 2026-06-30T23:00\n"
    );
    let yearly = around(timetable("0 0 1 1 *", "UTC", "1m"), date(2027, 1, 1));
    assert!(yearly.to_string().ends_with("opens 1000 windows or more, from 2026-01-01T00:00\n"), "{yearly}");
}

#[test]
fn nothing_opens_before_the_start() {
    let shown =
        around(since("2026-10-25", timetable("30 2 * * *", "Europe/Berlin", "day")), date(2026, 10, 25));
    let opens: Vec<String> = shown.lines.iter().map(|line| line.opens.to_string()).collect();
    assert_eq!(opens, ["nothing", "nothing", "nothing", "2026-10-25 (1d1h)", "2026-10-26 (1d)"]);
}

#[test]
fn a_preview_shows_what_the_revision_will_open() {
    let now = super::at("2026-06-09T10:30:00Z");
    let mut revisions =
        first(since("2026-06-01", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T00:00:00Z");
    let covered = revisions.current().pass(None, refrain_core::CatchUp::All, now, usize::MAX).covered;
    revisions.edit(timetable("5 */4 * * *", "UTC", "hour"), covered, now).unwrap();
    let preview = Preview::around(revisions.current(), date(2026, 6, 9));
    let opens = |hour: &str| {
        let line = preview.lines.iter().find(|line| line.wall.to_string() == format!("2026-06-09T{hour}:00"));
        line.unwrap().opens.to_string()
    };
    assert_eq!(opens("08:05"), "nothing", "that tick was not this timetable's");
    assert_eq!(opens("12:05"), "12 windows, 2026-06-09T00:00 to 2026-06-09T11:00");
    assert_eq!(opens("16:05"), "4 windows, 2026-06-09T12:00 to 2026-06-09T15:00");
}

#[test]
fn a_tick_that_comes_anyway_is_not_attributed_to_the_gap() {
    let mut both = timetable("0 2,3 * * *", "Europe/Berlin", "day");
    both.dst.gap = Gap::Skip;
    assert!(!around(both, date(2026, 3, 29)).to_string().contains("which does not exist"));
}

#[test]
fn a_jump_over_midnight_tells_the_date_it_jumps_to() {
    for (zone, day, text) in [
        ("Pacific/Apia", date(2011, 12, 30), "goes forward from 00:00 to 2011-12-31 00:00\n"),
        ("America/Nuuk", date(2026, 3, 28), "goes forward from 23:00 to 2026-03-29 00:00\n"),
        ("Europe/Berlin", date(2026, 3, 29), "goes forward from 02:00 to 03:00\n"),
    ] {
        let shown = around(timetable("0 12 * * *", zone, "day"), day).to_string();
        assert!(shown.contains(text), "{shown}");
    }
}
