//! A step of a run: something it does once and need not do again when another attempt follows.

use refrain_core::key;

use super::claim_group::{Claimant, Wish};
use super::fence::raise;
use super::tally::Reason;
use super::units::Per;
use super::{Claim, Result, catalog};
use crate::run::{Run, Surroundings};

/// A step that is to be done. It comes from [`Run::step`].
///
/// Dropped without [`done`](Self::done) it was not done, and the next attempt does it.
#[must_use = "say `done` when it is done"]
#[derive(Debug)]
pub struct Step<'r> {
    run: &'r Run,
    wish: Wish,
}

impl Run {
    /// A step of this run under a name of its own; none if an earlier attempt has done it.
    ///
    /// A step that the process does not survive is done again: what it does must bear that, as an upsert does. Rows that
    /// do not are written as [units](crate::Fence::units), together with their record.
    ///
    /// ```
    /// # use refrain::{Job, JobError, Run};
    /// # struct Report;
    /// # impl Report { async fn download(&self) -> Result<(), JobError> { Ok(()) } }
    /// impl Job for Report {
    ///     const NAME: &'static str = "report";
    ///
    ///     async fn run(&self, run: &mut Run) -> Result<(), JobError> {
    ///         if let Some(step) = run.step("download").await? {
    ///             self.download().await?;
    ///             step.done().await?;
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// ```
    pub async fn step(&self, name: &str) -> Result<Option<Step<'_>>> {
        let Surroundings { store, ledgers, .. } = &*self.surroundings;
        let ledger = ledgers.find(&store.database, self.facts.book(Per::Ever)?).await?;
        let key = key!("step", self.id.to_string(), self.facts.version, name)?;
        self.tally.discovered(1);
        // Numbers are never given again, so nothing can have been recorded before the first.
        if self.facts.attempt > 1 {
            raise(&store.database, &self.facts).await?;
            let mut transaction = store.database.read().await?;
            let past = catalog::UNIT_PAST.bind(ledger).bind(key.as_str());
            if !transaction.fetch_all::<super::claim::PastRow>(past).await?.is_empty() {
                self.tally.deduplicated(Reason::AlreadyApplied, [key.as_str()]);
                return Ok(None);
            }
        }
        let claimant = Claimant {
            job: self.facts.identity.clone(),
            run: self.facts.run.clone(),
            attempt: self.facts.attempt,
            nonce: self.facts.nonce,
        };
        let wish =
            Wish { ledger, key, fingerprint: None, version: self.facts.version, claimant: Some(claimant) };
        Ok(Some(Step { run: self, wish }))
    }
}

impl Step<'_> {
    /// It is done: recorded, in a transaction that it shares with whatever ends at the same time.
    pub async fn done(self) -> Result<()> {
        let shown = self.wish.key.to_string();
        match self.run.surroundings.claims.claim(self.wish).await? {
            Claim::Fresh => self.run.tally.processed(1),
            Claim::Done(_) => self.run.tally.deduplicated(Reason::AlreadyApplied, [shown.as_str()]),
        }
        Ok(())
    }
}
