//! When duplicates come in a burst: the decision whether a job's dedupes have become a spike.
//!
//! Duplicates are counted by the minute, and judged by a minute together with the one before it: a burst keeps to no
//! minutes, and twenty within sixty seconds nearly always lie on both sides of a line. Such a stretch is a spike when it
//! holds at least [`LEAST`] and at least [`TIMES`] as many as the busiest stretch that is remembered. The last hour does
//! not count as remembered, or a burst that grows for some minutes would be its own excuse. Once a spike was reported, its
//! height does count, so a level that continues is reported once, and only a far higher one is reported again.
//!
//! A job without history is judged like a quiet one: it is not expected to deduplicate, and the deployment that causes
//! duplicates is often the first one. It costs one alarm in the life of a job that has many by nature.
//!
//! Rejected: a mean with its deviation, which calls the fourth duplicate a spike for a job that has three a day, and
//! which one spike spoils for a day; and a fixed limit, which is wrong for every second job.

use std::collections::VecDeque;

/// The fewest duplicates that can be a spike.
pub const LEAST: u64 = 20;

/// How many times as many as the busiest remembered stretch a spike needs.
pub const TIMES: u64 = 4;

/// For how many minutes a stretch is remembered: a day, the hour by which a day can be longer, and one for a nightly batch
/// that is late, so that a nightly burst is not a spike.
pub const MEMORY: i64 = 26 * 60;

/// How many minutes old a stretch is before others are compared with it.
const RECENT: i64 = 60;

/// For how many minutes after its beginning a spike may grow and count as the same one. A steady stream that begins late
/// in a minute fills the next one, and only the minute after that has a full minute before it.
const GROWS: i64 = 2;

/// A minute that stands out, with the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spike {
    /// The number of the minute since 1970.
    pub minute: i64,
    /// The duplicates in this minute and the one before.
    pub count: u64,
    /// The duplicates of the busiest two remembered minutes.
    pub base: u64,
}

/// The history of one job.
///
/// ```
/// use refrain_core::spike::{Spike, SpikeDetector};
///
/// let mut detector = SpikeDetector::default();
/// for hour in 0..48 {
///     assert_eq!(detector.observe(hour * 60, 1), None, "one an hour is normal");
/// }
/// let spike = Spike { minute: 48 * 60, count: 20, base: 1 };
/// assert_eq!(detector.observe(48 * 60, 20), Some(spike));
/// assert_eq!(detector.observe(48 * 60 + 1, 20), None, "it is reported once");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpikeDetector {
    /// The stretches of the last hour, by the number of their last minute: at most one a minute.
    recent: VecDeque<Stretch>,
    /// Of those before it, each that is busier than all after it: the first is the busiest.
    older: VecDeque<Stretch>,
    last: Option<Stretch>,
    reported: Option<Reported>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    minute: i64,
    count: u64,
}

/// A spike that was reported, and the busiest stretch since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reported {
    began: i64,
    height: Stretch,
}

impl SpikeDetector {
    /// Records a finished minute and returns a spike that begins in it. Minutes arrive in order; those without duplicates may
    /// be left out. When a minute arrives after a later one, the clock was set back, and the records of the time ahead are
    /// dropped.
    pub fn observe(&mut self, minute: i64, count: u64) -> Option<Spike> {
        self.turn_to(minute);
        let before = self.last.filter(|last| last.minute.saturating_add(1) == minute);
        let stretch =
            Stretch { minute, count: count.saturating_add(before.map_or(0, |before| before.count)) };
        self.last = Some(Stretch { minute, count });
        let older = self.older.front().map_or(0, |busiest| busiest.count);
        let base = older.max(self.reported.map_or(0, |reported| reported.height.count));
        remember(&mut self.recent, stretch);
        let is_high = stretch.count >= LEAST && stretch.count / TIMES >= base;
        match &mut self.reported {
            Some(reported) if !is_high || minute.saturating_sub(reported.began) <= GROWS => {
                if reported.height.count <= stretch.count {
                    reported.height = stretch;
                }
                None
            }
            reported => {
                *reported = is_high.then_some(Reported { began: minute, height: stretch });
                is_high.then_some(Spike { minute, count: stretch.count, base })
            }
        }
    }

    /// Whether anything is left to compare that minute with; otherwise the detector may be dropped.
    pub fn remembers(&self, minute: i64) -> bool {
        let newest = self.recent.back().or(self.older.back());
        newest.is_some_and(|newest| newest.minute >= minute.saturating_sub(MEMORY))
    }

    /// Drops records that are too old or lie in the future, and moves recent ones to the older.
    fn turn_to(&mut self, minute: i64) {
        let (complete, oldest) = (minute.saturating_sub(RECENT), minute.saturating_sub(MEMORY));
        let is_ahead = |stretch: &Stretch| stretch.minute > minute;
        self.recent.retain(|stretch| !is_ahead(stretch));
        self.older.retain(|stretch| !is_ahead(stretch));
        while let Some(stretch) = self.recent.front().copied().filter(|stretch| stretch.minute < complete) {
            self.recent.pop_front();
            while self.older.back().is_some_and(|less| less.count <= stretch.count) {
                self.older.pop_back();
            }
            remember(&mut self.older, stretch);
        }
        self.older.retain(|stretch| stretch.minute >= oldest);
        self.last = self.last.filter(|last| last.minute < minute);
        // By then the height is among the older ones.
        self.reported =
            self.reported.filter(|reported| (complete..=minute).contains(&reported.height.minute));
    }
}

/// Adds a stretch at the end; of two of the same minute the busier stays.
fn remember(stretches: &mut VecDeque<Stretch>, stretch: Stretch) {
    match stretches.back_mut() {
        Some(last) if last.minute == stretch.minute => last.count = last.count.max(stretch.count),
        _ => stretches.push_back(stretch),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 60;
    const DAY: i64 = 24 * HOUR;

    /// The minutes in which a spike begins.
    fn spikes(series: impl IntoIterator<Item = (i64, u64)>) -> Vec<i64> {
        let mut detector = SpikeDetector::default();
        series
            .into_iter()
            .filter_map(|(minute, count)| detector.observe(minute, count))
            .map(|spike| spike.minute)
            .collect()
    }

    /// One an hour for two days, then this from the next hour on.
    fn after_a_quiet_base(burst: &[u64]) -> Vec<i64> {
        let begin = 2 * DAY;
        let base = (0..48).map(|hour| (hour * HOUR, 1));
        let found = spikes(base.chain((begin..).zip(burst.iter().copied())));
        found.into_iter().map(|minute| minute - begin).collect()
    }

    #[test]
    fn twenty_in_a_minute_over_one_an_hour_are_one_spike() {
        for (burst, expected) in [
            (&[19][..], &[][..]),
            (&[20], &[0]),
            (&[20, 20, 20, 20], &[0]),
            (&[10, 10], &[1]),
            (&[1, 18, 1], &[]),
            (&[12, 8, 12], &[1]),
            (&[20, 100, 100, 100, 100], &[0]),
            (&[1_000_000, 5, 1_000_000], &[0]),
            (&[20, 0, 0, 79], &[0]),
            (&[20, 0, 0, 80], &[0, 3]),
            (&[u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX], &[0]),
        ] {
            assert_eq!(after_a_quiet_base(burst), expected, "{burst:?}");
        }
    }

    #[test]
    fn a_job_without_history_is_judged_like_a_quiet_one() {
        assert_eq!(spikes([(0, 19)]), [0; 0]);
        assert_eq!(spikes([(0, 20), (1, 20), (2, 20), (3, 20)]), [0]);
    }

    #[test]
    fn a_burst_that_grows_slowly_does_not_excuse_itself() {
        let growing = [2, 5, 8, 15, 30, 60, 100, 150, 250, 400];
        assert_eq!(after_a_quiet_base(&growing), [3]);
        let on_and_on: Vec<u64> = growing.into_iter().chain([400; 3 * 60]).collect();
        assert_eq!(after_a_quiet_base(&on_and_on), [3]);
    }

    #[test]
    fn a_busy_job_needs_a_larger_burst() {
        let busy = (0..DAY).map(|minute| (minute, 50));
        assert_eq!(spikes(busy.clone().chain([(DAY, 349)])), [0], "with the fifty before, one too few");
        assert_eq!(spikes(busy.chain([(DAY, 350)])), [0, DAY]);
    }

    #[test]
    fn a_nightly_batch_is_not_a_spike_even_if_it_is_late_or_the_day_is_long() {
        let mut night = 0;
        let nights = [0, DAY, DAY + HOUR, DAY - HOUR, DAY + HOUR + 59].map(|later| {
            night += later;
            (night, 500)
        });
        assert_eq!(spikes(nights), [0]);
        assert_eq!(spikes([(0, 500), (MEMORY, 500)]), [0]);
        assert_eq!(spikes([(0, 500), (MEMORY + 1, 500)]), [0, MEMORY + 1], "then it is forgotten");
    }

    #[test]
    fn a_detector_is_empty_when_its_history_has_expired() {
        let mut detector = SpikeDetector::default();
        assert!(!detector.remembers(0));
        detector.observe(0, 1);
        assert!(detector.remembers(MEMORY) && !detector.remembers(MEMORY + 1));
    }

    #[test]
    fn a_clock_that_was_ahead_leaves_no_history() {
        let mut detector = SpikeDetector::default();
        assert!(detector.observe(400 * DAY, 1_000).is_some());
        assert_eq!(detector.observe(0, 20), Some(Spike { minute: 0, count: 20, base: 0 }));
        assert_eq!(detector.observe(0, 20), None, "the same minute again");
    }

    proptest! {
        #[test]
        fn a_steady_series_is_reported_at_most_once_and_only_when_it_begins(
            rate in 0..10_000_u64, every in 1..=MEMORY, length in 1..5_000_i64,
        ) {
            let steady = (0..length).map(|at| (at * every, rate));
            let reported = spikes(steady);
            prop_assert!(reported.len() <= 1 && reported.iter().all(|minute| *minute <= 1), "{:?}", reported);
        }

        #[test]
        fn a_series_that_wavers_up_to_twofold_is_steady(
            rate in 1..1_000_u64, wavers in prop::collection::vec((1..3_i64, 0..100_u64), 1..2_000),
        ) {
            let mut minute = 0;
            let series: Vec<_> = wavers.into_iter().map(|(gap, percent)| {
                minute += gap;
                (minute, rate + rate * percent / 100)
            }).collect();
            let beginning = series.first().map_or(0, |(minute, _)| *minute);
            let reported = spikes(series);
            prop_assert!(reported.len() <= 1 && reported.iter().all(|minute| *minute <= beginning + HOUR), "{:?}", reported);
        }

        #[test]
        fn a_burst_at_any_pace_from_any_second_on_is_reported_once(
            second in 0..60_u64, pace in 1..=3_000_u64, count in 20..5_000_u64,
        ) {
            let mut burst: BTreeMap<i64, u64> = BTreeMap::new();
            for at in 0..count {
                let minute = i64::try_from((second * 1_000 + at * pace) / 60_000).unwrap();
                *burst.entry(2 * DAY + minute).or_default() += 1;
            }
            let base = (0..48).map(|hour| (hour * HOUR, 1));
            prop_assert_eq!(spikes(base.chain(burst)).len(), 1);
        }

        #[test]
        fn memory_is_bounded_for_dedupes_in_any_order(
            series in prop::collection::vec((prop_oneof![0..5_000_i64, any::<i64>()], any::<u64>()), 0..2_000),
        ) {
            let mut detector = SpikeDetector::default();
            for (minute, count) in series {
                let spike = detector.observe(minute, count);
                prop_assert!(spike.is_none_or(|spike| spike.count >= LEAST && spike.minute == minute));
                prop_assert!(detector.remembers(minute));
                let kept = [&detector.recent, &detector.older].map(VecDeque::len);
                prop_assert!(kept.iter().sum::<usize>() <= usize::try_from(MEMORY + 2).unwrap());
            }
        }
    }
}
