//! Cancel a run: before it begins at once, while it runs through its worker.

use refrain_core::person::Verb;

use super::Refrain;
use crate::error::Error;
use crate::store::cancel::{Cancelled, cancel};
use crate::store::show;

/// How a request to cancel a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelling {
    /// The run had not begun, and will not.
    Cancelled,
    /// The run is running; its worker was asked to stop it.
    Asked,
}

impl Refrain {
    /// Cancels a run. A run that has ended is refused; the error names what can be done instead.
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
}
