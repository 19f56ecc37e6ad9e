//! One scheduler pass, and all that is due: for cron, CI and anything else that only calls now and then.

use std::time::Duration;

use jiff::Timestamp;

use super::Refrain;
use crate::engine::finisher::Counts;
use crate::engine::scheduler::Now;
use crate::error::Error;
use crate::failpoint;
use crate::store::{instant, show};

impl Refrain {
    /// Opens what is due, runs all that may begin, and returns. Told to stop, it begins nothing more.
    pub async fn tick(&self) -> Result<Counts, Error> {
        let now = match self.simulated {
            Some(now) => now,
            None => self.believed_time().await?,
        };
        self.tick_at(now).await
    }

    /// The time for schedules, held against the clock of this machine and against what the store has recorded: each call
    /// begins anew and has no earlier look to compare with.
    async fn believed_time(&self) -> Result<Timestamp, Error> {
        let now = self.store().schedule_time().await?;
        self.store().believes(now)?;
        let latest = show::recent(self.store(), None, 1).await?.first().map(|run| run.opened_at);
        let latest = latest.map(instant).transpose()?.filter(|_| !failpoint::is_clock_set());
        let behind = latest.and_then(|latest| Duration::try_from(latest.duration_since(now)).ok());
        if let Some(behind) = behind.filter(|behind| *behind > self.engine.settings.lease) {
            let behind = refrain_core::duration::format(Duration::from_secs(behind.as_secs()));
            tracing::warn!(
                behind,
                "the clock stands before what the store has recorded; nothing is due twice"
            );
        }
        Ok(now)
    }

    /// The same at another time, for a store that is simulated.
    pub async fn tick_at(&self, now: Timestamp) -> Result<Counts, Error> {
        let mut scheduler = self.engine.scheduler(Now::Given(now));
        let opened = scheduler.pass(now).await?;
        let counts = self.engine.run_all(&self.stop).await?;
        self.engine.watch(now).await;
        Ok(counts.with(opened))
    }

    /// Opens what is due, and runs nothing.
    pub async fn open_due(&self, now: Timestamp) -> Result<Counts, Error> {
        let opened = self.engine.scheduler(Now::Given(now)).pass(now).await?;
        Ok(Counts::default().with(opened))
    }
}
