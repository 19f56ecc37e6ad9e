//! The clocks to compare: every zone's clock, grouped by equal offsets, and the intervals worth a close look.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use jiff::tz::TimeZoneDatabase;

use crate::calendar::DAY;
use crate::clock::{Change, Clock, Offsets, Period, offsets, zone};

/// Zones whose clocks agree throughout a period.
pub(crate) struct Group {
    pub(crate) names: Vec<String>,
    pub(crate) period: Period,
    pub(crate) changes: Vec<Change>,
    offsets: Offsets,
}

impl Group {
    fn new(names: Vec<String>, period: Period, offsets: Offsets) -> Self {
        let Clock { changes, .. } = Clock::new(period, &offsets);
        Self { names, period, changes, offsets }
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::new(self.period, &self.offsets)
    }
}

/// Clock changes of kinds that do not occur in the coming years: by a whole day, by three hours, by half an hour
/// around midnight, a minute past midnight.
const ODD_CHANGES: [(&str, (i64, i64, i64)); 11] = [
    ("Pacific/Apia", (2011, 12, 30)),
    ("Pacific/Kwajalein", (1993, 8, 21)),
    ("Antarctica/Casey", (2018, 3, 10)),
    ("Antarctica/Casey", (2020, 10, 4)),
    ("America/St_Johns", (2010, 3, 14)),
    ("America/St_Johns", (2010, 11, 7)),
    ("America/Caracas", (2016, 5, 1)),
    ("America/Sao_Paulo", (2018, 11, 4)),
    ("Asia/Pyongyang", (2015, 8, 15)),
    ("Asia/Pyongyang", (2018, 5, 5)),
    ("Asia/Kathmandu", (1986, 1, 1)),
];

/// Whether every zone is swept over the whole period instead of one of each group around its changes.
pub(crate) fn is_full() -> bool {
    std::env::var_os("REFRAIN_FULL").is_some_and(|value| value == "1")
}

/// All zones over two years. Offsets are read hourly, or at each minute of the full sweep.
pub(crate) fn groups() -> &'static [Group] {
    static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(gather);
    &GROUPS
}

fn gather() -> Vec<Group> {
    let period = Period::two_years();
    let probe = if is_full() { 1 } else { 60 };
    let names: Vec<_> = TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect();
    let read = Mutex::new(BTreeMap::<Offsets, Vec<String>>::new());
    in_parallel(&names, |name| {
        let offsets = offsets(&zone(name), period, probe);
        read.lock().unwrap().entry(offsets).or_default().push(name.clone());
    });
    let gathered = read.into_inner().unwrap().into_iter();
    gathered
        .map(|(offsets, mut names)| {
            names.sort();
            Group::new(names, period, offsets)
        })
        .collect()
}

/// The unusual changes of the past, each in the middle of eighty days.
pub(crate) fn odd_groups() -> Vec<Group> {
    let of = |&(name, day): &(&str, _)| {
        let period = Period::around(day, 40);
        Group::new(vec![name.to_owned()], period, offsets(&zone(name), period, 1))
    };
    ODD_CHANGES.iter().map(of).collect()
}

/// From this many days before each change to this many days after it, in seconds.
pub(crate) fn around(changes: &[Change], days: i64) -> impl Iterator<Item = (i64, i64)> {
    changes.iter().map(move |change| ((change.at - days * DAY) * 60, (change.at + days * DAY) * 60))
}

/// Does the work for each item, on all cores.
pub(crate) fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}
