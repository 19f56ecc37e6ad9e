//! Reconcile: what a source has now, beside the table that its units went to.

use std::sync::Arc;
use std::time::Duration;

use refrain_core::feed::{Apply, Feed, FeedCursor};
use refrain_core::project::{Action, JobFile};
use refrain_core::publish::Mode;
use refrain_core::terminal::typed;
use refrain_core::{Per, RunId, RunName, Scope};

use super::Refrain;
use super::run_target::RunTarget;
use crate::action::feed::reconcile::Reconciled;
use crate::error::Error;
use crate::lease::Lease;
use crate::ledger::fence::AttemptFacts;
use crate::ledger::tally::Tally;
use crate::ledger::unapplied::TouchedLedgers;
use crate::project::Project;
use crate::publish::comparison::Differences;
use crate::run::awaited_task::AwaitedTask;
use crate::run::{Run, Surroundings};
use crate::store::finish::ClaimedAttempt;
use crate::store::queue_line::{JobNumber, Line, Priority};

impl Refrain {
    /// Reads the whole source of a run once more, and compares it with the table that its units are written to. For a
    /// job name it takes the latest window that is over. Nothing is applied, recorded or moved.
    pub async fn reconcile(&self, project: &Project, run: &str) -> Result<Reconciled, Error> {
        let run = &*self.full_name(run).await?;
        let name: RunName = run.parse()?;
        let Some(units_job) = project.units_job_of(name.job())? else {
            return Err(Error::NoUnits(name.job().clone()));
        };
        let attempt = self.as_if(&name, run).await?;
        let compared = units_job.reconcile(&attempt).await;
        let mut compared = compared.map_err(|error| Error::Unreconciled(error.to_string()))?;
        run.clone_into(&mut compared.run);
        if compared.agrees() {
            return Ok(compared);
        }
        let is_done = self.show(run).await?.is_some_and(|run| run.standing.is_done());
        compared.advice = match project.jobs().iter().find(|job| job.name == *name.job()) {
            Some(job) if is_done => advice(job, run, &compared.differences),
            _ => vec![format!("refrain run {}", typed(run))],
        };
        Ok(compared)
    }

    /// A run as an attempt of it would see it, for reading the source only: there is no attempt, and no lease, lane
    /// or slot.
    async fn as_if(&self, name: &RunName, run: &str) -> Result<Run, Error> {
        let target = self.target(run).await?;
        let recorded = self.recorded(&target).await?;
        let RunTarget { number, window, key, .. } = target;
        let (_, definition) = self.job(name.job().as_str())?;
        let scope = match name {
            RunName::Windowed { scope, .. } => scope.clone(),
            RunName::Queued { .. } => Scope::parse("")?,
        };
        let (store, project) = (self.store().clone(), self.engine.project.clone());
        let facts = AttemptFacts {
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
            tries: Some(definition.retry.attempts),
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
            touched: TouchedLedgers::default(),
            lease: Lease::new(Duration::ZERO),
            awaited: AwaitedTask::default(),
            setback: Arc::default(),
        })
    }
}

fn nothing(job: JobNumber) -> ClaimedAttempt {
    let line = Line::of(Priority::Live, job);
    ClaimedAttempt { run: 0, job, line, lease: 0, attempt: 0, lane: None, slot: false }
}

/// What to do about differences, one step each.
fn advice(job: &JobFile, run: &str, differences: &Differences) -> Vec<String> {
    let mut steps = Vec::new();
    let Action::Units(feed) = &job.action else { return steps };
    let Feed { apply: Apply::Publish(publish), cursor, watermark, .. } = &**feed else { return steps };
    let name = &job.name;
    let is_incomplete = differences.lost.count + differences.changed.count > 0;
    if is_incomplete && publish.mode == Mode::AppendOnce && publish.has_ledger {
        steps.push("insert the lost rows yourself: the ledger has them as inserted".to_owned());
    } else if is_incomplete {
        let rewind = match (cursor, watermark) {
            (Some(FeedCursor { name: cursor, per: Per::Ever }), _) => {
                format!("refrain checkpoint set {name} {} TOKEN, ", typed(cursor))
            }
            (Some(FeedCursor { name: cursor, per: Per::Window }), _) => {
                let window = run.split(['@', '/']).nth(1).unwrap_or_default();
                format!("refrain checkpoint set {name} {} TOKEN --window {window}, ", typed(cursor))
            }
            (None, Some(_)) => format!("refrain checkpoint rewind {name} watermark --by DURATION, "),
            (None, None) => String::new(),
        };
        let run = typed(run);
        steps.push(format!("raise `version` in jobs/{name}.toml, {rewind}then refrain run {run} --again"));
    }
    if differences.duplicated.count > 0 {
        steps.push("delete the duplicated rows; an operator must decide which".to_owned());
    }
    steps
}
