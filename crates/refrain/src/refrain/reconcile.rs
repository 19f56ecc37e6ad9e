//! Reconcile: what a source has now, beside the table that its units went to.

use std::sync::Arc;
use std::time::Duration;

use refrain_core::{RunId, RunName, Scope};

use super::Refrain;
use super::show::parsed;
use crate::action::feed::reconcile::Reconciled;
use crate::error::Error;
use crate::lease::Lease;
use crate::leaving::Leaving;
use crate::ledger::fence::Facts;
use crate::ledger::tally::Tally;
use crate::ledger::unapplied::Touched;
use crate::project::Project;
use crate::run::{Run, Surroundings};
use crate::store::finish::Held;
use crate::store::queue_line::{JobNumber, Line, Priority};

impl Refrain {
    /// Reads the source of a run once more, all of it, and compares it with the table that its units are rows of. Nothing is
    /// applied, recorded or moved.
    pub async fn reconcile(&self, project: &Project, run: &str) -> Result<Reconciled, Error> {
        let name = parsed(run)?;
        let Some(feeding) = project.feeding(name.job())? else {
            return Err(Error::NoUnits(name.job().clone()));
        };
        let run = self.as_if(&name, run).await?;
        feeding.reconcile(&run).await.map_err(|error| Error::Unreconciled(error.to_string()))
    }

    /// A run as an attempt of it would see it; it is none, and holds nothing.
    async fn as_if(&self, name: &RunName, run: &str) -> Result<Run, Error> {
        let (number, window, key) = self.named(run).await?;
        let (_, definition) = self.job(name.job().as_str())?;
        let scope = match name {
            RunName::Windowed { scope, .. } => scope.clone(),
            RunName::Queued { .. } => Scope::parse("")?,
        };
        let recorded = self.show(run).await?;
        let (store, project) = (self.store().clone(), self.engine.project.clone());
        let facts = Facts {
            project: project.clone(),
            job: definition.name.clone(),
            identity: definition.identity().clone(),
            run: key.to_string(),
            scope,
            window,
            attempt: 0,
            nonce: 0,
            in_lane: false,
            version: definition.version,
            tries: definition.retry.attempts,
            spent: 0,
            suspicion: 0,
            redo: None,
        };
        Ok(Run {
            id: RunId::of(&project, definition.identity(), &key),
            row: 0,
            held: nothing(number),
            facts,
            payload: recorded.and_then(|record| record.payload),
            surroundings: Arc::new(Surroundings::new(store, project, self.engine.destinations.clone())),
            tally: Tally::default(),
            touched: Touched::default(),
            lease: Lease::new(Duration::ZERO),
            leaving: Leaving::default(),
            setback: Arc::default(),
        })
    }
}

fn nothing(job: JobNumber) -> Held {
    let line = Line::of(Priority::Live, job);
    Held { run: 0, job, line, lease: 0, attempt: 0, lane: None, slot: false }
}
