//! A step of a run: work that a later attempt does not repeat once it is done.

use refrain_core::key;

use super::{Run, Surroundings};
use crate::ledger::claim_group::{ClaimRequest, Claimant};
use crate::ledger::fence::raise;
use crate::ledger::{Claim, Per, PriorClaimRow, Result, catalog};
use crate::store::counts::Reason;

/// A step that has to be executed. It comes from [`Run::step`].
///
/// If it is dropped without [`done`](Self::done), the next attempt executes it.
#[must_use = "say `done` when it is done"]
#[derive(Debug)]
pub struct RunStep<'r> {
    run: &'r Run,
    request: ClaimRequest,
}

impl Run {
    /// A step of this run with a name of its own; none if an earlier attempt has executed it.
    ///
    /// If the process dies during a step, the step is executed again, so its writes must be idempotent, like an upsert. Write
    /// other rows as [units](crate::ledger::Fence::units), which are committed together with their record.
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
    pub async fn step(&self, name: &str) -> Result<Option<RunStep<'_>>> {
        let Surroundings { store, ledgers, .. } = &*self.surroundings;
        let ledger = ledgers.find(&store.database, self.facts.book(Per::Ever)?).await?;
        let key = key!("step", self.id.to_string(), self.facts.version, name)?;
        self.tally.discovered(1);
        // Attempt numbers are never reused, so nothing can have been recorded before the first attempt.
        if self.facts.attempt > 1 {
            raise(&store.database, &self.facts).await?;
            let mut transaction = store.database.read().await?;
            let past = catalog::UNIT_PAST.bind(ledger).bind(key.as_str());
            if !transaction.fetch_all::<PriorClaimRow>(past).await?.is_empty() {
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
        let request = ClaimRequest {
            ledger,
            key,
            fingerprint: None,
            version: self.facts.version,
            claimant: Some(claimant),
        };
        Ok(Some(RunStep { run: self, request }))
    }
}

impl RunStep<'_> {
    /// Records that the step is done, in one transaction with others that end at the same time.
    pub async fn done(self) -> Result<()> {
        let shown = self.request.key.to_string();
        match self.run.surroundings.claims.claim(self.request).await? {
            Claim::Fresh => self.run.tally.processed(1),
            Claim::Done(_) => self.run.tally.deduplicated(Reason::AlreadyApplied, [shown.as_str()]),
        }
        Ok(())
    }
}
