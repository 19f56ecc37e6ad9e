//! Catch-up: an outage over seven ticks, and a row for every window whatever the policy.

use std::time::Duration;

use refrain_core::{CatchUp, CatchUpVerdict};

use super::{at, first, since, timetable};

/// The windows of 1 to 7 June after the scheduler was down until `now`: `+` runs, `-` is skipped.
fn after_outage(policy: CatchUp, now: &str) -> (String, Vec<String>) {
    let revisions =
        first(since("2026-06-01T00:00:00Z", timetable("0 2 * * *", "UTC", "day")), "2026-06-01T00:00:00Z");
    let revision = revisions.current();
    let pass = revision.pass(None, policy, at(now), usize::MAX);
    let marks = pass.rows.iter().map(|(_, verdict)| match verdict {
        CatchUpVerdict::OnTime => '!',
        CatchUpVerdict::CaughtUp => '+',
        CatchUpVerdict::Skipped(_) => '-',
    });
    let reasons = pass.rows.iter().filter_map(|(due, verdict)| match verdict {
        CatchUpVerdict::Skipped(_) => Some(format!("{} {verdict}", due.window.start())),
        _ => None,
    });
    (marks.collect(), reasons.collect())
}

#[test]
fn f18_after_seven_missed_ticks_each_policy_runs_its_windows_and_all_have_rows() {
    let noon_of_the_8th = "2026-06-08T12:00:00Z";
    for (policy, rows) in [
        (CatchUp::All, "+++++++"),
        (CatchUp::Latest, "------+"),
        (CatchUp::None, "-------"),
        (CatchUp::Within(Duration::from_hours(72)), "----+++"),
    ] {
        assert_eq!(after_outage(policy, noon_of_the_8th).0, rows, "{policy}");
    }
}

#[test]
fn f18_a_window_noticed_in_time_runs_under_every_policy() {
    for (policy, rows) in [
        (CatchUp::All, "++++++!"),
        (CatchUp::Latest, "------!"),
        (CatchUp::None, "------!"),
        (CatchUp::Within(Duration::from_hours(72)), "----++!"),
    ] {
        assert_eq!(after_outage(policy, "2026-06-08T02:04:59Z").0, rows, "{policy}");
    }
}

#[test]
fn f18_each_skipped_window_says_why() {
    let reason = |policy| after_outage(policy, "2026-06-08T12:00:00Z").1.remove(0);
    assert_eq!(
        reason(CatchUp::Latest),
        "2026-06-01T00:00:00Z skipped: missed; with catch-up = \"latest\" only the window from 2026-06-07T00:00:00Z runs"
    );
    assert_eq!(reason(CatchUp::None), "2026-06-01T00:00:00Z skipped: missed by 6d10h; catch-up = \"none\"");
    assert_eq!(
        reason(CatchUp::Within(Duration::from_hours(72))),
        "2026-06-01T00:00:00Z skipped: missed by 6d10h, more than catch-up = { within = \"3d\" } allows"
    );
}

#[test]
fn a_schedule_of_minutes_is_late_after_one_interval() {
    let revisions = first(timetable("* * * * *", "UTC", "tick"), "2026-06-01T00:00:00Z");
    let revision = revisions.current();
    let pass = revision.pass(None, CatchUp::None, at("2026-06-01T00:03:30Z"), usize::MAX);
    let verdicts: Vec<bool> =
        pass.rows.iter().map(|(_, verdict)| *verdict == CatchUpVerdict::OnTime).collect();
    assert_eq!(verdicts, [false, false, false, true], "00:00 to 00:02 are over, 00:03 is on time");
}

#[test]
fn a_monday_tick_that_is_on_time_runs_the_whole_weekend() {
    let revisions =
        first(since("2026-06-05T00:00:00Z", timetable("0 2 * * 1-5", "UTC", "day")), "2026-06-05T00:00:00Z");
    let revision = revisions.current();
    let pass = revision.pass(None, CatchUp::Latest, at("2026-06-08T02:00:01Z"), usize::MAX);
    assert_eq!(pass.rows.len(), 3);
    assert!(pass.rows.iter().all(|(_, verdict)| *verdict == CatchUpVerdict::OnTime));
}

#[test]
fn a_plan_says_when_to_look_again() {
    let revisions = first(timetable("0 2 * * *", "UTC", "day"), "2026-06-08T12:00:00Z");
    let revision = revisions.current();
    let idle = revision.pass(None, CatchUp::All, at("2026-06-08T12:00:00Z"), 10);
    assert_eq!((idle.rows.len(), idle.next), (0, Some(at("2026-06-09T02:00:00Z"))));
    let cut = revision.pass(None, CatchUp::All, at("2026-06-20T12:00:00Z"), 2);
    assert_eq!(
        (cut.rows.len(), cut.next),
        (2, Some(at("2026-06-11T02:00:00Z"))),
        "there is more to do at once"
    );
}

#[test]
fn a_span_reaches_exactly_as_far_as_stated() {
    let two_o_clock_of_the_8th = "2026-06-08T02:00:00Z";
    for (within, rows) in
        [(Duration::from_hours(72), "---+++!"), (Duration::from_secs(72 * 3_600 - 1), "----++!")]
    {
        assert_eq!(after_outage(CatchUp::Within(within), two_o_clock_of_the_8th).0, rows, "{within:?}");
    }
}
