//! A timetable is retired and comes back: windows that were due belong to it, and the time between belongs to none.

use jiff::Timestamp;
use refrain_core::{CatchUp, Dst, EditError, Grid, Revisions, Schedule, Timetable, Zone, window_name};

fn at(text: &str) -> Timestamp {
    format!("2026-06-{text}:00Z").parse().unwrap()
}

fn hourly(cron: &str, start: Option<&str>) -> Timetable {
    Timetable {
        schedule: Schedule::parse(cron).unwrap(),
        zone: Zone::utc(),
        grid: Grid::parse("hour").unwrap(),
        dst: Dst::default(),
        start: start.map(|start| window_name::parse(start, &Zone::utc()).unwrap()),
    }
}

/// The hours of June that are opened up to `now`, and the end of the last one.
fn opened(
    revisions: &Revisions,
    covered: Option<Timestamp>,
    now: Timestamp,
) -> (Vec<String>, Option<Timestamp>) {
    let pass = revisions.current().pass(covered, CatchUp::All, now, usize::MAX);
    let starts = pass.rows.iter().map(|(due, _)| due.window.start().timestamp());
    (starts.map(|start| start.strftime("%d %H").to_string()).collect(), pass.covered)
}

#[test]
fn what_is_due_must_be_opened_before_a_timetable_ends() {
    let revisions = Revisions::first(hourly("0 * * * *", Some("2026-06-09T00:00")), at("09T00:00")).unwrap();
    let refused = revisions.clone().retire(None, at("09T03:30"));
    assert!(matches!(refused, Err(EditError::StillDue(_))));
    let (hours, covered) = opened(&revisions, None, at("09T03:30"));
    assert_eq!(hours, ["09 00", "09 01", "09 02"]);
    let retired = revisions.retire(covered, at("09T03:30")).unwrap().unwrap();
    assert!(retired.is_retired());
    assert_eq!(opened(&retired, covered, at("30T00:00")).0, [""; 0], "it opens nothing more");
    let stored = Revisions::stored(retired.iter().cloned().collect()).unwrap();
    assert_eq!(stored, retired, "and is read back so");
}

#[test]
fn a_timetable_that_opened_nothing_leaves_no_trace() {
    let revisions = Revisions::first(hourly("0 * * * *", Some("2027-01-01")), at("09T00:00")).unwrap();
    assert_eq!(revisions.retire(None, at("09T03:30")).unwrap(), None);
}

/// The instant from which a returning timetable opens windows, after one that covered up to 03:00 on the ninth.
/// ninth.
fn back(cron: &str, start: Option<&str>, now: Timestamp, then: Timestamp) -> Vec<String> {
    let revisions = Revisions::first(hourly("0 * * * *", Some("2026-06-09T00:00")), at("09T00:00")).unwrap();
    let (_, covered) = opened(&revisions, None, at("09T03:30"));
    let mut revisions = revisions.retire(covered, at("09T03:30")).unwrap().unwrap();
    assert!(revisions.edit(hourly(cron, start), covered, now).unwrap());
    Revisions::stored(revisions.iter().cloned().collect()).unwrap();
    opened(&revisions, covered, then).0
}

#[test]
fn the_time_without_a_timetable_opens_no_window() {
    type Back<'b> = (&'b str, Option<&'b str>, &'b str, &'b str, &'b [&'b str]);
    let table: [Back<'_>; 5] = [
        ("0 * * * *", Some("2026-06-09T00:00"), "09T03:40", "09T05:00", &["09 03", "09 04"]),
        ("0 * * * *", Some("2026-06-09T00:00"), "09T16:30", "09T18:00", &["09 16", "09 17"]),
        ("5 * * * *", None, "09T16:30", "09T18:30", &["09 16", "09 17"]),
        ("0 * * * *", Some("2026-06-09T15:00"), "09T16:30", "09T17:00", &["09 15", "09 16"]),
        ("0 * * * *", Some("2026-06-10T00:00"), "09T16:30", "10T02:00", &["10 00", "10 01"]),
    ];
    for (cron, start, now, then, expected) in table {
        assert_eq!(back(cron, start, at(now), at(then)), expected, "{cron} {start:?} back at {now}");
    }
}
