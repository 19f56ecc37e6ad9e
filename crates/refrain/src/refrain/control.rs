//! A person's word on runs and jobs: cancel, pause, resume.

use refrain_core::person::Verb;

use super::Refrain;
use crate::error::Error;
use crate::store::cancel::{Cancelled, cancel};
use crate::store::{jobs, show};

/// What became of a wish to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelling {
    /// It had not begun, and will not.
    Cancelled,
    /// It is under way; its worker has been asked to end it.
    Asked,
}

impl Refrain {
    /// Calls a run off. One that has ended is refused, with what can be done instead.
    pub async fn cancel(&self, run: &str) -> Result<Cancelling, Error> {
        let (number, _, key) = self.named(run).await?;
        let missing = || Error::NoRun(run.to_owned());
        let id = show::find(self.store(), number, &key.to_string()).await?.ok_or_else(missing)?;
        let decision = self.decision(Verb::Cancel, run).of_run(id);
        match cancel(self.store(), id, &decision).await?.ok_or_else(missing)? {
            Cancelled::Now => {
                self.bell.ring();
                Ok(Cancelling::Cancelled)
            }
            Cancelled::Asked => Ok(Cancelling::Asked),
            Cancelled::Ended(refusal) => Err(refusal.into()),
        }
    }

    /// Stops a job: nothing of it is claimed, and its windows are skipped with that reason. Gives whether it was not
    /// paused before.
    pub async fn pause(&self, job: &str) -> Result<bool, Error> {
        let (number, _) = self.job(job)?;
        Ok(jobs::set_paused(self.store(), number, &self.decision(Verb::Pause, job)).await?)
    }

    /// Allows a job again. Gives whether it was paused.
    pub async fn resume(&self, job: &str) -> Result<bool, Error> {
        let (number, _) = self.job(job)?;
        let changed = jobs::set_paused(self.store(), number, &self.decision(Verb::Resume, job)).await?;
        self.bell.ring();
        Ok(changed)
    }
}
