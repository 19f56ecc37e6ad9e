//! Every accepted schedule is usable: no schedule, zone or instant leads to a panic or to a wrong order.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use refrain_core::schedule::{self, Preview};
use refrain_core::{CatchUp, Dst, Fold, Gap, Grid, Revisions, Schedule, Timetable, Zone};

/// Cron texts, many of which are accepted.
fn cron() -> impl Strategy<Value = String> {
    let time = "(\\*|\\*/[1-9]|[0-9]|[1-5][0-9]|[0-9],[1-5][0-9]|0-30/7)";
    let hour = "(\\*|\\*/[1-9]|[0-9]|1[0-9]|2[0-3]|[0-3],2[0-3]|1-4)";
    let day = "(\\*|[1-9]|[12][0-9]|L|LW|15W|1-7|\\?)";
    let month = "(\\*|[1-9]|JAN|3,10|1-6/2)";
    let weekday = "(\\*|[0-7]|MON-FRI|5L|7L|MON#1|SUN#5|\\?)";
    (prop::option::of(time), time, hour, day, month, weekday).prop_map(
        |(second, minute, hour, day, month, weekday)| {
            let second = second.map_or(String::new(), |second| format!("{second} "));
            format!("{second}{minute} {hour} {day} {month} {weekday}")
        },
    )
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![4 => cron(), 1 => "every [1-9][0-9]{0,3}[smhd]", 1 => "@(hourly|daily|weekly|monthly|yearly|midnight)"]
}

fn any_rule() -> impl Strategy<Value = Dst> {
    let gap = prop::sample::select(vec![Gap::Next, Gap::Skip]);
    let fold = prop::sample::select(vec![Fold::First, Fold::Last, Fold::Both]);
    (gap, fold).prop_map(|(gap, fold)| Dst { gap, fold })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_accepted_can_be_used(
        text in any_text(), zone in 0_usize..590, dst in any_rule(),
        grid in prop::sample::select(vec!["1m", "hour", "7h", "6h", "day", "week", "month", "tick"]),
        second in prop_oneof![-62_135_596_800_i64..253_402_207_200, 1_700_000_000_i64..1_900_000_000],
    ) {
        let (Ok(schedule), Ok(grid)) = (Schedule::parse(&text), Grid::parse(grid)) else { return Ok(()) };
        let zone = Zone::parse(Zone::all().nth(zone).unwrap()).unwrap();
        let timetable = Timetable { schedule, zone, grid, dst, start: None };
        prop_assert!(!schedule::describe(&timetable).is_empty());
        let now = Timestamp::from_second(second).unwrap();
        let date = timetable.zone.wall(now).date();
        let Ok(revisions) = Revisions::first(timetable, now) else { return Ok(()) };
        let revision = revisions.current();
        let ticks = revision.timetable.ticks();
        for tick in ticks.between(now, Timestamp::MAX).take(5) {
            prop_assert_eq!(ticks.at_or_before(tick), Some(tick));
        }
        let later = now.checked_add(SignedDuration::from_hours(1_000)).unwrap_or(Timestamp::MAX);
        let pass = revision.pass(None, CatchUp::Latest, later, 20);
        for pair in pass.rows.windows(2) {
            prop_assert_eq!(pair[0].0.window.end(), pair[1].0.window.start());
            prop_assert!(pair[0].0.tick <= pair[1].0.tick);
        }
        prop_assert!(Preview::around(revision, date).lines.len() <= 24);
    }
}
