//! Opens the windows of schedules that are due, and queues delayed attempts.
//!
//! Any number of schedulers may run at once. Each schedule is locked for one tick by one of them, and a window that two of them open
//! all the same exists once. The time is the database's, so that machines need not agree; a clock that jumps far ahead is not
//! believed at once.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use refrain_core::clock_watch::{ClockReading, ClockWatch};

use super::Engine;
use super::service::{Next, Service, Wake};
use crate::failpoint;
use crate::job::Jobs;
use crate::store::delayed::{next as next_delayed, wake};
use crate::store::open::OpenCounts;
use crate::store::schedules::{Due, PAGE, due, next as next_due};
use crate::store::tick::{Scheduled, tick};
use crate::store::{Result, Store, StoreError};

/// The most delayed attempts that are moved in one transaction.
const WAKE: usize = 1_000;

/// The clock of the schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    /// The database's.
    Database,
    /// The time that a test or a simulation sets.
    Given(Timestamp),
}

pub(crate) struct Scheduler {
    store: Store,
    jobs: Jobs,
    now: Now,
    watch: Option<ClockWatch>,
    since: Instant,
    workers: Wake,
    /// The longest wait: an attempt that is delayed meanwhile may be due before the next window.
    poll: Duration,
    /// The sum of what this scheduler has opened.
    pub(crate) total: OpenCounts,
}

impl Scheduler {
    pub(crate) fn new(engine: &Engine, now: Now) -> Scheduler {
        Scheduler {
            store: engine.store.clone(),
            jobs: engine.jobs.clone(),
            now,
            watch: None,
            since: Instant::now(),
            poll: engine.settings.poll,
            workers: engine.wake.clone(),
            total: OpenCounts::default(),
        }
    }

    /// The time, if the clock can be believed.
    async fn believed(&mut self) -> Result<Option<Timestamp>> {
        let now = match self.now {
            Now::Given(now) => return Ok(Some(now)),
            Now::Database => self.store.schedule_time().await?,
        };
        if failpoint::is_clock_set() {
            return Ok(Some(now));
        }
        let reading = ClockReading { wall: now, monotonic: self.since.elapsed() };
        let Some(watch) = self.watch else {
            // There is no earlier reading to compare it with, only the clock of this machine.
            if let Err(error) = self.store.believes(now) {
                tracing::warn!(error = error.to_string(), "schedules wait until the clocks agree");
                return Ok(None);
            }
            self.watch = Some(ClockWatch::from(reading));
            return Ok(Some(now));
        };
        let (watch, verdict) = watch.observe(reading);
        self.watch = Some(watch);
        if verdict.holds_schedules() {
            tracing::warn!(?verdict, "schedules wait until the clock can be believed");
            return Ok(None);
        }
        Ok(Some(now))
    }

    /// One pass over everything that is due. Returns how many runs were opened.
    pub(crate) async fn pass(&mut self, now: Timestamp) -> Result<OpenCounts> {
        self.wake_delayed().await?;
        let mut total = OpenCounts::default();
        let mut after = Due::FIRST;
        loop {
            let page = due(&self.store, now, after).await?;
            for schedule in &page {
                match self.schedule(*schedule, now).await {
                    Ok(ticked) => total.add(ticked),
                    // A schedule that cannot be read must not keep the others waiting.
                    Err(StoreError::Broken(what)) => {
                        tracing::error!(
                            job = schedule.job,
                            "schedule cannot be read, and opens nothing: {what}"
                        );
                    }
                    Err(error) => return Err(error),
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = *last,
                _ => return Ok(total),
            }
        }
    }

    async fn wake_delayed(&self) -> Result<()> {
        loop {
            let woken = wake(&self.store, WAKE).await?;
            if woken > 0 {
                self.workers.wake();
            }
            if woken < WAKE {
                return Ok(());
            }
        }
    }

    async fn schedule(&self, schedule: Due, now: Timestamp) -> Result<OpenCounts> {
        let mut total = OpenCounts::default();
        let Some(definition) = self.jobs.get(schedule.job) else { return Ok(total) };
        let scheduled = Scheduled {
            job: schedule.job,
            catch_up: definition.catch_up,
            while_running: definition.while_running,
        };
        while let Some(ticked) = tick(&self.store, scheduled, now).await? {
            total.add(ticked);
            self.workers.wake();
            if !ticked.more {
                break;
            }
        }
        Ok(total)
    }
}

impl Service for Scheduler {
    const NAME: &'static str = "scheduler";
    type Error = StoreError;

    async fn tick(&mut self) -> Result<Next> {
        let Some(now) = self.believed().await? else { return Ok(Next::Idle) };
        let opened = self.pass(now).await?;
        self.total.add(opened);
        let schedule = next_due(&self.store, now).await?;
        let delayed = next_delayed(&self.store).await?;
        // A schedule that is still due after a pass belongs to a job that this process does not have.
        let schedule = schedule.filter(|left| !left.is_zero()).map(failpoint::real_wait);
        let soonest = schedule.into_iter().chain(delayed).min();
        // The wait of a loop varies by a tenth: an hour in one piece could end six minutes late.
        Ok(soonest.map_or(Next::Idle, |left| Next::After(left.min(self.poll).max(Duration::from_millis(1)))))
    }
}

#[cfg(test)]
mod tests {
    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection};

    use super::*;
    use crate::database::Address;
    use crate::store::Reality;

    #[tokio::test]
    async fn f14_schedules_wait_after_the_clock_has_jumped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("refrain.db");
        let address = Address::parse(&format!("sqlite:{}", path.display())).unwrap();
        let project = "shop".parse().unwrap();
        let store = Store::open(&address, &project, 1, Duration::from_hours(1), Reality::Real).await.unwrap();
        let mut scheduler = Scheduler {
            store,
            jobs: Jobs::default(),
            now: Now::Database,
            watch: None,
            since: Instant::now(),
            workers: Wake::default(),
            poll: Duration::from_secs(1),
            total: OpenCounts::default(),
        };
        assert!(scheduler.believed().await.unwrap().is_some());
        assert!(scheduler.believed().await.unwrap().is_some());
        let later = Timestamp::now() + Duration::from_hours(2);
        let jump = format!(
            "drop view refrain_clock; create view refrain_clock as select {} as now",
            later.as_microsecond()
        );
        let file = SqliteConnectOptions::new().filename(&path);
        let mut behind = SqliteConnection::connect_with(&file).await.unwrap();
        behind.execute(sqlx::raw_sql(AssertSqlSafe(jump))).await.unwrap();
        behind.close().await.unwrap();
        assert_eq!(scheduler.believed().await.unwrap(), None);
    }
}
