//! One scheduler pass, and all that is due: for cron, CI and anything else that only calls now and then.

use jiff::Timestamp;

use super::Refrain;
use crate::engine::finisher::Counts;
use crate::engine::scheduler::Now;
use crate::error::Error;

impl Refrain {
    /// Opens what is due, runs all that may begin, and returns. Told to stop, it begins nothing more.
    pub async fn tick(&self) -> Result<Counts, Error> {
        let now = match self.simulated {
            Some(now) => now,
            None => self.store().schedule_time().await?,
        };
        self.tick_at(now).await
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
