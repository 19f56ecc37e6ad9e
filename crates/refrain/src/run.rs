//! What a job sees of the attempt it is doing.

pub(crate) mod awaited_task;
mod horizon;
mod job_error;
mod payload;
mod step;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use refrain_core::{JobName, ProjectName, RunId, Scope, Window};
use sqlx::Pool;

use crate::lease::Lease;
use crate::ledger::apply::BATCH;
use crate::ledger::claim_group::Claims;
use crate::ledger::destination::{Destination, Destinations, attach};
use crate::ledger::fence::{AttemptFacts, Footing, Raised, height, raise};
use crate::ledger::ledger_id::Ledgers;
use crate::ledger::tally::Tally;
use crate::ledger::unapplied::TouchedLedgers;
use crate::ledger::{Fence, LedgerError};
use crate::store::claim::CHANCES;
use crate::store::counts::UnitCounts;
use crate::store::finish::ClaimedAttempt;
use crate::store::identity::IdentityDoubt;
use crate::store::{Store, claim};
use crate::supervision::pool::Supervisors;
use crate::user_database::Backend;
use awaited_task::AwaitedTask;

pub use horizon::Horizon;
pub use job_error::JobError;
pub use payload::PayloadError;
pub use step::RunStep;

/// What all attempts of a worker share.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) store: Store,
    pub(crate) project: ProjectName,
    pub(crate) destinations: Destinations,
    /// Single claims, in the store's own database.
    pub(crate) claims: Claims,
    pub(crate) ledgers: Ledgers,
    /// Idle supervisors of commands.
    pub(crate) supervisors: Supervisors,
}

impl Surroundings {
    pub(crate) fn new(store: Store, project: ProjectName, destinations: Destinations) -> Surroundings {
        let claims = Claims::new(store.database.clone(), project.clone());
        Surroundings {
            store,
            project,
            destinations,
            claims,
            ledgers: Ledgers::default(),
            supervisors: Supervisors::default(),
        }
    }
}

/// One attempt of a run, with its window or key.
///
/// It has no clock: everything a job needs comes from the window or the key, so that an attempt next week does the same work.
#[derive(Debug, Clone)]
pub struct Run {
    pub(crate) id: RunId,
    /// Its row in the store.
    pub(crate) row: i64,
    /// The run and the attempt as the store knows them.
    pub(crate) held: ClaimedAttempt,
    pub(crate) facts: AttemptFacts,
    pub(crate) payload: Option<String>,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) tally: Tally,
    pub(crate) touched: TouchedLedgers,
    pub(crate) lease: Lease,
    pub(crate) awaited: AwaitedTask,
    /// The highest attempt of this run that a database knows and the store does not.
    pub(crate) setback: Arc<OnceLock<i32>>,
}

impl Run {
    /// The id of the run: the same on every machine, for ever.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Its name, as the command line takes it.
    pub fn name(&self) -> String {
        let sign = if self.window().is_some() { '@' } else { '#' };
        format!("{}{sign}{}", self.job(), self.key())
    }

    /// The job.
    pub fn job(&self) -> &JobName {
        &self.facts.job
    }

    /// The key under which the run exists once: the caller's, or the window's start and the scope.
    pub fn key(&self) -> &str {
        &self.facts.run
    }

    /// The window; none for an enqueued run.
    pub fn window(&self) -> Option<Window> {
        self.facts.window
    }

    /// The scope, for example a tenant; empty if the job has no scopes.
    pub fn scope(&self) -> &Scope {
        &self.facts.scope
    }

    /// The number of this attempt. It only grows, and fences off those before.
    pub fn attempt(&self) -> u64 {
        self.facts.number()
    }

    /// The counts of the units that this attempt has processed so far.
    pub fn counts(&self) -> UnitCounts {
        self.tally.summary().counts
    }

    /// Raises the fence of this run in a database: from here on no earlier attempt can write there. Call it before you read
    /// anything.
    pub async fn fence<DB: Backend>(&self, pool: &Pool<DB>) -> Result<Fence<DB>, LedgerError> {
        let Surroundings { store, project, destinations, .. } = &*self.surroundings;
        let identity = DB::identity(pool);
        let destination = if let Some(destination) = destinations.find(&identity) {
            destination
        } else {
            let destination = attach(DB::database(pool, store.idle()), project, Some(&store.id)).await?;
            destinations.insert(identity, destination.clone());
            destination
        };
        self.raised(destination).await
    }

    /// Raises the fence in the store's own database, for units that write to no other database.
    pub(crate) async fn fence_at_the_store<DB: Backend>(&self) -> Result<Fence<DB>, LedgerError> {
        let Surroundings { store, project, ledgers, .. } = &*self.surroundings;
        let destination = attach(store.database.clone(), project, Some(&store.id)).await?;
        self.raised(Destination { ledgers: ledgers.clone(), ..destination }).await
    }

    async fn raised<DB: Backend>(&self, destination: Destination) -> Result<Fence<DB>, LedgerError> {
        let Surroundings { store, destinations, .. } = &*self.surroundings;
        let raised = match raise(&destination.database, &self.facts).await {
            // Boxed, because it is rare and would make the future of every attempt larger.
            Err(LedgerError::Fenced { .. }) => Err(Box::pin(self.outnumbered(&destination)).await?),
            raised => raised,
        };
        let Footing { fence: id, lane } = raised?;
        let (facts, tally, store) = (self.facts.clone(), self.tally.clone(), store.clone());
        let touched = self.touched.clone();
        let caution = AtomicUsize::new(if facts.suspicion > 0 { BATCH } else { 0 });
        let relayed = destinations.is_relayed(&destination);
        let is_of_the_store = destinations.relayed().first().is_some_and(|store| store.id == destination.id);
        let lease = self.lease.clone();
        Ok(Fence::of(Raised {
            destination,
            store,
            id,
            lane,
            facts,
            tally,
            touched,
            caution,
            lease,
            relayed,
            is_of_the_store,
        }))
    }

    /// Decides what to do if a database has a higher fence than this attempt. If the store still considers the attempt current,
    /// the store has lost what raised the fence: it was restored from an older state. The operator must confirm that; once
    /// that has happened, the run continues above that number.
    async fn outnumbered(&self, destination: &Destination) -> Result<LedgerError, LedgerError> {
        let (store, fenced) = (&self.surroundings.store, LedgerError::Fenced { attempt: self.attempt() });
        if !claim::is_held(store, &self.held).await? {
            return Ok(fenced);
        }
        let (attempt, nonce) = height(&destination.database, &self.facts).await?;
        let _ = self.setback.set(attempt);
        if store.recovered_at.is_some_and(|at| nonce / CHANCES < at) {
            return Ok(fenced);
        }
        Ok(store.is_doubted(IdentityDoubt::Behind).await?.into())
    }
}
