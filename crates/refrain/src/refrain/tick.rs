//! One pass of the scheduler, and all runs that are due: for cron, CI and other callers that do not serve.

use std::time::Duration;

use jiff::Timestamp;

use super::Refrain;
use crate::engine::finisher::Counts;
use crate::engine::scheduler::Now;
use crate::error::Error;
use crate::failpoint;
use crate::store::{instant, show};

impl Refrain {
    /// Opens the windows that are due, does all runs that may begin, and returns. Once stopped, it begins nothing more.
    pub async fn tick(&self) -> Result<Counts, Error> {
        let now = match self.simulated {
            Some(now) => now,
            None => self.believed_time().await?,
        };
        self.tick_at(now).await
    }

    /// The time for schedules, compared with the clock of this machine and with what the store has recorded: a single call
    /// has no earlier time to compare with.
    async fn believed_time(&self) -> Result<Timestamp, Error> {
        let now = self.store().schedule_time().await?;
        self.store().believes(now)?;
        let latest = show::recent(self.store(), None, 1).await?.first().map(|(run, _)| run.opened_at);
        let latest = latest.map(instant).transpose()?.filter(|_| !failpoint::is_clock_set());
        let behind = latest.and_then(|latest| Duration::try_from(latest.duration_since(now)).ok());
        if let Some(behind) = behind.filter(|behind| *behind > self.engine.settings.lease) {
            let behind = refrain_core::duration::format(Duration::from_secs(behind.as_secs()));
            tracing::warn!(behind, "the clock is behind the newest run of the store; nothing is due twice");
        }
        Ok(now)
    }

    /// Ticks at another time, for a simulated store.
    pub async fn tick_at(&self, now: Timestamp) -> Result<Counts, Error> {
        let mut scheduler = self.engine.scheduler(Now::Given(now));
        let opened = scheduler.pass(now).await?;
        let counts = self.engine.run_all(&self.stop).await?;
        self.engine.watch(now).await;
        Ok(counts.with(opened))
    }

    /// Opens the windows that are due, and runs nothing.
    pub async fn open_due(&self, now: Timestamp) -> Result<Counts, Error> {
        let opened = self.engine.scheduler(Now::Given(now)).pass(now).await?;
        Ok(Counts::default().with(opened))
    }
}
