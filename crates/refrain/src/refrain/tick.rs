//! One scheduler pass, and all that is due: for cron, CI and anything else that only calls now and then.

use jiff::Timestamp;

use super::Refrain;
use crate::engine::finisher::Counts;
use crate::engine::scheduler::Now;
use crate::engine::service::Stop;
use crate::error::Error;

/// What a tick did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TickReport {
    /// Windows that were opened to run.
    pub opened: u64,
    /// Windows that were passed over; each has a row that says why.
    pub skipped: u64,
    /// Windows that were there already.
    pub deduplicated: u64,
    /// Runs that ended here.
    pub ended: u64,
    /// Attempts that ended here and will be followed by another one.
    pub again: u64,
    /// Attempts of ours whose run had been taken over.
    pub lost: u64,
}

impl Refrain {
    /// Opens what is due, runs all that may begin, and returns.
    pub async fn tick(&self) -> Result<TickReport, Error> {
        let now = self.store().now().await?;
        self.tick_at(now).await
    }

    /// The same at another time, for a store that is simulated.
    pub async fn tick_at(&self, now: Timestamp) -> Result<TickReport, Error> {
        let mut scheduler = self.engine.scheduler(Now::Given(now));
        let opened = scheduler.pass(now).await?;
        let Counts { ended, again, lost } = self.engine.run_all(&Stop::new()).await?;
        Ok(TickReport {
            opened: opened.opened as u64,
            skipped: opened.skipped as u64,
            deduplicated: opened.deduplicated as u64,
            ended,
            again,
            lost,
        })
    }

    /// Opens what is due, and runs nothing.
    pub async fn open_due(&self, now: Timestamp) -> Result<TickReport, Error> {
        let opened = self.engine.scheduler(Now::Given(now)).pass(now).await?;
        Ok(TickReport {
            opened: opened.opened as u64,
            skipped: opened.skipped as u64,
            deduplicated: opened.deduplicated as u64,
            ..TickReport::default()
        })
    }
}
