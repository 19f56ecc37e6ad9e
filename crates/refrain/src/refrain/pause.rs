//! Pause and resume a job.

use refrain_core::person::Verb;

use super::Refrain;
use crate::error::Error;
use crate::store::jobs;

impl Refrain {
    /// Pauses a job: none of its runs is claimed, and its windows are skipped with that reason. Returns false if the job
    /// was paused already.
    pub async fn pause(&self, job: &str) -> Result<bool, Error> {
        let (number, _) = self.job(job)?;
        Ok(jobs::set_paused(self.store(), number, &self.decision(Verb::Pause, job)).await?)
    }

    /// Resumes a job. Returns false if the job was not paused.
    pub async fn resume(&self, job: &str) -> Result<bool, Error> {
        let (number, _) = self.job(job)?;
        let changed = jobs::set_paused(self.store(), number, &self.decision(Verb::Resume, job)).await?;
        self.notifier.notify();
        Ok(changed)
    }
}
