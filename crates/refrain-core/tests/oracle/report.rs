//! A comparison over many clocks, and its result.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::calendar::DAY;
use crate::clock::{Clock, Period};
use crate::groups::{Group, in_parallel};
use crate::pattern::Matches;

/// Instants all over the period, at odd times of the day, in seconds.
pub(crate) fn sparse_instants(period: Period) -> impl Iterator<Item = i64> {
    let apart = 23 * DAY + 7 * 60 + 13;
    (period.from + DAY..period.until - DAY)
        .step_by(usize::try_from(apart).unwrap())
        .map(|minute| minute * 60 + 7)
}

/// Counts comparisons and keeps the first disagreements about each pattern or grid.
#[derive(Default)]
pub(crate) struct Report {
    compared: AtomicU64,
    disagreements: Mutex<BTreeMap<&'static str, Vec<String>>>,
}

impl Report {
    /// The most disagreements that are kept; more would be of the same kinds.
    const ENOUGH: usize = 500;
    const SHOWN_OF_EACH: usize = 2;

    pub(crate) fn compared(&self, count: u64) {
        self.compared.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn disagree(&self, about: &'static str, text: String) {
        self.disagreements.lock().unwrap().entry(about).or_default().push(text);
    }

    fn is_long_enough(&self) -> bool {
        self.disagreements.lock().unwrap().values().map(Vec::len).sum::<usize>() >= Self::ENOUGH
    }

    /// Fails with the disagreements, or if fewer than `least` comparisons were made.
    pub(crate) fn conclude(self, least: u64) {
        let compared = self.compared.into_inner();
        let disagreements = self.disagreements.into_inner().unwrap();
        let text: Vec<_> = disagreements
            .iter()
            .map(|(about, text)| {
                let first = text[..text.len().min(Self::SHOWN_OF_EACH)].join("\n");
                format!("`{about}`, disagreements: {}\n{first}", text.len())
            })
            .collect();
        assert!(text.is_empty(), "after {compared} comparisons:\n\n{}", text.join("\n\n"));
        assert!(compared >= least, "only {compared} comparisons: the sweep has looked away");
    }
}

/// Checks each group with its clock and the matches of all patterns over its period.
pub(crate) fn sweep(groups: &[Group], report: &Report, check: impl Fn(&Group, &Clock, &Matches) + Sync) {
    let shared = groups.first().map(|group| (group.period, Matches::new(group.period)));
    in_parallel(groups, |group| {
        if report.is_long_enough() {
            return;
        }
        match &shared {
            Some((period, matches)) if *period == group.period => check(group, &group.clock(), matches),
            _ => check(group, &group.clock(), &Matches::new(group.period)),
        }
    });
}
