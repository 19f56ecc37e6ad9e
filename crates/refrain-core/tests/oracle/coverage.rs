//! The oracle covers the critical cases: an oracle that has seen no gap agrees with anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::calendar::{DAY, reading};
use crate::clock::{Change, Period};
use crate::groups::{Group, groups, odd_groups};
use crate::pattern::{Matches, PATTERNS};
use crate::ticks::{Found, Place};

fn changes(groups: &[Group]) -> Vec<Change> {
    groups.iter().flat_map(|group| group.changes.clone()).collect()
}

/// Whether midnight is among the wall times that are skipped or repeated.
fn concerns_midnight(change: &Change) -> bool {
    let (from, until) = (change.before.min(change.after), change.before.max(change.after));
    (from..until).any(|wall| wall % DAY == 0)
}

#[test]
fn f15_f16_the_sweep_meets_every_kind_of_gap_and_fold() {
    let groups = groups();
    let changes = changes(groups);
    let count = |kind: fn(&Change) -> bool| changes.iter().filter(|change| kind(change)).count();
    let zones: BTreeSet<_> = groups.iter().flat_map(|group| &group.names).collect();
    assert!(zones.len() > 400, "{} zones", zones.len());
    assert!(groups.iter().filter(|group| group.changes.is_empty()).count() > 30, "zones at rest");
    assert!(count(Change::is_gap) > 50, "{} gaps", count(Change::is_gap));
    assert!(count(|change| !change.is_gap()) > 50, "{} folds", count(|change| !change.is_gap()));
    for length in [30, -30, 60, -60, 120, -120] {
        assert!(changes.iter().any(|change| change.after - change.before == length), "{length} minutes");
    }
    assert!(count(|change| change.is_gap() && concerns_midnight(change)) > 4, "gaps over midnight");
    assert!(count(|change| !change.is_gap() && concerns_midnight(change)) > 1, "midnight twice");
    assert!(count(|change| change.before % 60 != 0) > 1, "changes within the hour");
    assert!(count(|change| !change.is_gap() && change.before % DAY == 0) > 1, "folds that end at midnight");
    assert!(count(|change| reading(change.at).date.weekday != 7) > 8, "changes that are not on a Sunday");
}

#[test]
fn f15_f16_the_odd_changes_of_the_past_are_as_described() {
    let lengths: Vec<_> = changes(&odd_groups()).iter().map(|change| change.after - change.before).collect();
    assert_eq!(lengths, [24 * 60, 24 * 60, -180, 180, 60, -60, 30, 60, -30, 30, 15]);
}

#[test]
fn f15_f16_every_fixed_pattern_of_the_night_falls_into_gaps_and_folds() {
    let matches = Matches::new(Period::two_years());
    let mut counts = BTreeMap::new();
    for group in groups().iter().filter(|group| !group.changes.is_empty()) {
        let found = Found::on(&group.clock(), &matches);
        for (index, pattern) in PATTERNS.iter().enumerate() {
            for place in [Place::Plain, Place::JumpedOver, Place::FirstPass, Place::SecondPass] {
                *counts.entry((pattern.text, place)).or_insert(0) += found.count(index, place);
            }
        }
    }
    let count = |text, place| counts[&(text, place)];
    for text in [
        "30 2 * * *",
        "15,45 2 * * *",
        "0 0 * * *",
        "30 1 * * *",
        "30 0 2 * * *",
        "59 23 * * *",
        "0 0 13 * 5",
    ] {
        assert!(count(text, Place::JumpedOver) > 0, "`{text}` in gaps");
    }
    for text in ["30 2 * * *", "0 0 * * *", "0 0 1 * *", "30 1 * * *", "30 0 2 * * *", "59 23 * * *"] {
        assert!(count(text, Place::FirstPass) > 0, "`{text}` in folds");
        assert_eq!(
            count(text, Place::FirstPass),
            count(text, Place::SecondPass),
            "`{text}`: a fold has two passes"
        );
    }
    for pattern in PATTERNS.iter().filter(|pattern| pattern.text != "0 0 29 2 *") {
        assert!(count(pattern.text, Place::Plain) > 24, "`{}` at all", pattern.text);
    }
}
