//! Watches dedupes, and raises an alarm when they become a spike.
//!
//! Every engine watches, none of them leads: they read the same dedupes, apply the same rule, and an alarm exists once. A minute is
//! evaluated when it is over, by the clock of the database, and ten seconds later, because a transaction may take that long to
//! commit a dedupe. A watcher evaluates a minute once. When it starts it reads the dedupes of the past days: the older half is the
//! baseline for the newer half. So a spike is found even if no process watched at the time, and none is found for lack of a past.
//!
//! Dedupes get their numbers before they are committed, so a lower number may become visible later. Reading continues after the last
//! dedupe before a minute that is not evaluated yet; the rest is read again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::AlarmKind;
use refrain_core::spike::{MEMORY, Spike, SpikeDetector};

use super::service::{Next, Service};
use crate::store::alarms::{Alarm, raise};
use crate::store::dedupes::{Counted, PAGE, counted, last};
use crate::store::queue_line::JobNumber;
use crate::store::{Result, Store, StoreError};

const MINUTE: i64 = 60_000_000;
/// How long after its end a minute is evaluated, in microseconds: as long as a transaction may be idle.
const COMMITS_WITHIN: i64 = 10_000_000;
/// The most pages of dedupes that are read of the past.
const PAGES_MAX: i64 = 10;

pub(crate) struct Watcher {
    store: Store,
    /// For how many minutes the store keeps dedupes.
    kept: i64,
    /// The last dedupe that need not be read again; none before the first tick.
    after: Option<i64>,
    /// The last minute that was evaluated.
    evaluated: i64,
    detectors: HashMap<JobNumber, SpikeDetector>,
    unraised: VecDeque<Alarm>,
}

/// A part of the dedupes.
struct Read {
    counts: Vec<Counted>,
    /// The last of them.
    last: i64,
    /// Minutes up to this one are not counted.
    from: i64,
}

impl Watcher {
    pub(crate) fn new(store: Store, keep: Duration) -> Watcher {
        let kept = i64::try_from(keep.as_secs() / 60).unwrap_or(i64::MAX);
        Watcher {
            store,
            kept,
            after: None,
            evaluated: 0,
            detectors: HashMap::new(),
            unraised: VecDeque::new(),
        }
    }

    /// One look at the current time.
    pub(crate) async fn look(&mut self) -> Result<Duration> {
        let now = self.store.now().await?;
        self.look_at(now).await?;
        Ok(until_next(now))
    }

    async fn look_at(&mut self, now: Timestamp) -> Result<()> {
        let through = last_complete(now);
        let read = match self.after {
            // The clock may have been set back.
            Some(_) if through <= self.evaluated => {
                self.evaluated = through;
                None
            }
            Some(after) => Some(self.read_on(after).await?),
            None => Some(self.recall(through).await?),
        };
        if let Some(read) = read {
            self.after = Some(read.complete(through, minute_of(now)));
            self.evaluate(read, through);
        }
        while let Some(alarm) = self.unraised.front() {
            if raise(&self.store, alarm).await? {
                tracing::warn!(kind = %alarm.kind, subject = alarm.subject, "{}", alarm.message);
            }
            self.unraised.pop_front();
        }
        Ok(())
    }

    /// All dedupes after one.
    async fn read_on(&self, after: i64) -> Result<Read> {
        let last = last(&self.store).await?;
        let mut counts = Vec::new();
        let mut first = after.saturating_add(1);
        while first <= last {
            let end = last.min(first.saturating_add(PAGE - 1));
            counts.extend(counted(&self.store, first, end).await?);
            first = end.saturating_add(1);
        }
        Ok(Read { counts, last, from: self.evaluated })
    }

    /// The past, backwards from now: as much as the rule needs, the store keeps, and the limit allows. Only its newer half is left to
    /// evaluate.
    async fn recall(&mut self, through: i64) -> Result<Read> {
        let last = last(&self.store).await?;
        let mut from = through.saturating_sub(self.kept.min(2 * MEMORY));
        let mut counts: Vec<Counted> = Vec::new();
        let mut end = last;
        for number in 1..=PAGES_MAX {
            let page = counted(&self.store, end.saturating_sub(PAGE - 1), end).await?;
            let oldest = page.iter().map(|counted| counted.minute).min();
            counts.extend(page);
            end = end.saturating_sub(PAGE);
            if end <= 0 || oldest.is_some_and(|oldest| oldest <= from) {
                break;
            }
            if number == PAGES_MAX {
                from = oldest.unwrap_or(from);
            }
        }
        self.evaluated = from.midpoint(through);
        Ok(Read { counts, last, from })
    }

    /// Feeds each minute to the detector of its job, in the order of time.
    fn evaluate(&mut self, read: Read, through: i64) {
        let mut minutes: BTreeMap<(i64, JobNumber), (String, u64)> = BTreeMap::new();
        for Counted { job, name, minute, dedupes, .. } in read.counts {
            if minute > read.from && minute <= through {
                let (_, sum) = minutes.entry((minute, job)).or_insert((name, 0));
                *sum = sum.saturating_add(u64::try_from(dedupes).unwrap_or(0));
            }
        }
        for ((minute, job), (name, dedupes)) in minutes {
            let spike = self.detectors.entry(job).or_default().observe(minute, dedupes);
            let spike = spike.filter(|spike| spike.minute > self.evaluated);
            self.unraised.extend(spike.map(|spike| alarm(job, name, spike)));
        }
        self.evaluated = through;
        self.detectors.retain(|_, detector| detector.remembers(through));
    }
}

impl Read {
    /// The last dedupe before all that are to be evaluated later. Dedupes of a time far ahead do not count: the clock was there and
    /// was set back.
    fn complete(&self, through: i64, present: i64) -> i64 {
        let later =
            self.counts.iter().filter(|counted| (through + 1..=present + 1).contains(&counted.minute));
        later.map(|counted| counted.first.saturating_sub(1)).min().unwrap_or(self.last)
    }
}

fn alarm(job: JobNumber, name: String, Spike { minute, count, base }: Spike) -> Alarm {
    let message = format!(
        "{count} dedupes within two minutes; the busiest two minutes of the day before had {base}: find out which caller repeats the same keys"
    );
    let at = minute.saturating_mul(MINUTE);
    Alarm { kind: AlarmKind::DedupeSpike, job: Some(job), at, subject: name, message }
}

fn minute_of(now: Timestamp) -> i64 {
    now.as_microsecond().div_euclid(MINUTE)
}

/// The last minute in which no further dedupe can appear.
fn last_complete(now: Timestamp) -> i64 {
    (now.as_microsecond() - COMMITS_WITHIN).div_euclid(MINUTE) - 1
}

/// How long until the next minute is complete.
fn until_next(now: Timestamp) -> Duration {
    let left = MINUTE - (now.as_microsecond() - COMMITS_WITHIN).rem_euclid(MINUTE);
    Duration::from_micros(left.unsigned_abs())
}

impl Service for Watcher {
    const NAME: &'static str = "watcher";
    type Error = StoreError;

    async fn tick(&mut self) -> Result<Next> {
        Ok(Next::After(self.look().await?))
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use refrain_core::{JobName, Key, ProjectName, RunKey};

    use super::*;
    use crate::database::Address;
    use crate::store::Reality;
    use crate::store::alarms::list;
    use crate::store::enqueue::{Offer, enqueue};
    use crate::store::jobs::{JobRow, Registered, register};
    use crate::store::queue_line::{Line, Priority};

    const IDLE: Duration = Duration::from_secs(10);

    struct Fixture {
        store: Store,
        job: JobNumber,
        began: Timestamp,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        async fn new() -> Fixture {
            let directory = tempfile::tempdir().unwrap();
            let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
            let (address, project) = (Address::parse(&address).unwrap(), ProjectName::parse("shop").unwrap());
            let store = Store::open(&address, &project, 1, IDLE, Reality::Real).await.unwrap();
            let name = JobName::parse("welcome").unwrap();
            let Registered::As(JobRow { id: job, .. }) = register(&store, &name, &name, &[]).await.unwrap()
            else {
                panic!("the name is free")
            };
            let began = store.now().await.unwrap();
            Fixture { store, job, began, _directory: directory }
        }

        fn watcher(&self) -> Watcher {
            Watcher::new(self.store.clone(), Duration::from_hours(24 * 90))
        }

        /// Enqueues the same key so often; the first time it is new.
        async fn requested(&self, times: usize) {
            let key = RunKey::queued(Key::parse("42").unwrap());
            let offers = vec![Offer { key, payload: None }; times];
            let line = Line::of(Priority::Live, self.job);
            enqueue(&self.store, self.job, line, &offers, "enqueue").await.unwrap();
        }

        /// Has the watcher look after so many minutes; returns how many alarms there are.
        async fn look(&self, watcher: &mut Watcher, minutes: i64) -> usize {
            watcher.look_at(self.began + SignedDuration::from_mins(minutes)).await.unwrap();
            list(&self.store, 100).await.unwrap().len()
        }
    }

    #[tokio::test]
    async fn a_minute_is_evaluated_when_it_is_over_and_not_before() {
        let fixture = Fixture::new().await;
        let mut watcher = fixture.watcher();
        fixture.requested(1).await;
        assert_eq!(fixture.look(&mut watcher, 0).await, 0);
        fixture.requested(15).await;
        assert_eq!(fixture.look(&mut watcher, 0).await, 0, "it goes on");
        fixture.requested(15).await;
        assert_eq!(fixture.look(&mut watcher, 3).await, 1, "dedupes that were read before count, too");
        fixture.requested(1_000).await;
        for minutes in [3, 4, 60, 24 * 60] {
            assert_eq!(fixture.look(&mut watcher, minutes).await, 1, "its minute has been evaluated");
        }
    }

    #[tokio::test]
    async fn a_clock_that_was_ahead_does_not_stop_the_watcher() {
        let fixture = Fixture::new().await;
        let mut watcher = fixture.watcher();
        let year = 365 * 24 * 60;
        assert_eq!(fixture.look(&mut watcher, year).await, 0);
        assert_eq!(fixture.look(&mut watcher, -1).await, 0);
        fixture.requested(100).await;
        assert_eq!(fixture.look(&mut watcher, 3).await, 1);
    }

    #[tokio::test]
    async fn an_alarm_that_could_not_be_raised_is_raised_later() {
        let fixture = Fixture::new().await;
        let mut watcher = fixture.watcher();
        fixture.requested(100).await;
        let later = fixture.began + SignedDuration::from_mins(3);
        let through = last_complete(later);
        let read = watcher.recall(through).await.unwrap();
        watcher.after = Some(read.last);
        watcher.evaluate(read, through);
        assert_eq!(watcher.unraised.len(), 1, "and then the database is unreachable for a while");
        assert_eq!(fixture.look(&mut watcher, 3).await, 1);
        assert!(watcher.unraised.is_empty());
    }

    #[tokio::test]
    async fn one_of_two_watchers_that_raise_an_alarm_learns_that_it_is_new() {
        let fixture = Fixture::new().await;
        let spike = Spike { minute: 7, count: 20, base: 1 };
        let alarm = alarm(fixture.job, "welcome".to_owned(), spike);
        assert!(raise(&fixture.store, &alarm).await.unwrap());
        assert!(!raise(&fixture.store, &alarm).await.unwrap());
        assert!(raise(&fixture.store, &Alarm { at: alarm.at + 1, ..alarm }).await.unwrap(), "another one");
    }

    #[tokio::test]
    async fn more_dedupes_than_the_limit_are_evaluated_by_those_that_were_read() {
        let fixture = Fixture::new().await;
        let mut transaction = fixture.store.database.write().await.unwrap();
        // Two hundred a minute for ten hours: more than the most that is read.
        let busy =
            "insert into refrain_runs (job, attempt, opened_at, open, key) values (1, 0, 0, true, '42');
            with recursive n (i) as (select 0 union all select i + 1 from n where i < 120000)
            insert into refrain_dedupes (run, at, asked)
            select 1, (select now from refrain_clock) - (120000 - i) * 300000, 'enqueue' from n";
        transaction.script(busy).await.unwrap();
        transaction.commit(crate::database::place!("enqueue")).await.unwrap();
        let mut watcher = fixture.watcher();
        assert_eq!(fixture.look(&mut watcher, 3).await, 0);
        assert!(watcher.after > Some(119_000), "{:?}", watcher.after);
        let kept: Vec<_> = watcher.detectors.values().collect();
        assert!(matches!(kept.as_slice(), [one] if one.remembers(watcher.evaluated)));
    }

    #[test]
    fn a_minute_is_complete_ten_seconds_after_its_end() {
        let at = |text: &str| -> Timestamp { format!("2026-06-09T{text}Z").parse().unwrap() };
        let noon = minute_of(at("12:00:00"));
        for (now, settled, left) in
            [("12:01:09.999999", -1, 0), ("12:01:10", 0, 60), ("12:01:40", 0, 30), ("12:02:09", 0, 1)]
        {
            assert_eq!(last_complete(at(now)) - noon, settled, "{now}");
            assert_eq!(until_next(at(now)).as_secs(), left, "{now}");
        }
    }
}
