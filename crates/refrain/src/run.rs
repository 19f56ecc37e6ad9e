//! What a job sees of the attempt it is doing.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use refrain_core::{JobName, ProjectName, RunId, Scope, Window};
use sqlx::Pool;

use crate::action::supervisor_pool::Supervisors;
use crate::lease::Lease;
use crate::leaving::Leaving;
use crate::ledger::apply::BATCH;
use crate::ledger::claim_group::Claims;
use crate::ledger::destination::{Destination, Destinations, attach};
use crate::ledger::fence::{Facts, Footing, Raised, height, raise};
use crate::ledger::ledger_id::Ledgers;
use crate::ledger::tally::Tally;
use crate::ledger::unapplied::Touched;
use crate::ledger::{Backend, Fence, LedgerError, UnitCounts};
use crate::store::claim::CHANCES;
use crate::store::finish::Held;
use crate::store::identity::IdentityDoubt;
use crate::store::{Store, claim};

/// What all attempts of a worker share.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) store: Store,
    pub(crate) project: ProjectName,
    pub(crate) destinations: Destinations,
    /// Single claims, in the store's own database.
    pub(crate) claims: Claims,
    pub(crate) ledgers: Ledgers,
    /// Those who stand over commands.
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

/// One attempt of a run: what it is about, and who it is.
///
/// There is no clock in here. What a run is about comes from its window or its key, so an attempt next week is
/// about the same.
#[derive(Debug, Clone)]
pub struct Run {
    pub(crate) id: RunId,
    /// Its row in the store.
    pub(crate) row: i64,
    /// What it holds, and by what right.
    pub(crate) held: Held,
    pub(crate) facts: Facts,
    pub(crate) payload: Option<String>,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) tally: Tally,
    pub(crate) touched: Touched,
    pub(crate) lease: Lease,
    pub(crate) leaving: Leaving,
    /// The highest number of this run that a database remembers and the store does not.
    pub(crate) setback: Arc<OnceLock<i32>>,
}

impl Run {
    /// The id of the run: the same on every machine, for ever.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The job.
    pub fn job(&self) -> &JobName {
        &self.facts.job
    }

    /// The key under which the run exists once: the caller's, or the window's start and the scope.
    pub fn key(&self) -> &str {
        &self.facts.run
    }

    /// The window it is about; none for an enqueued key.
    pub fn window(&self) -> Option<Window> {
        self.facts.window
    }

    /// Which part of the world it is about; empty when there is only one.
    pub fn scope(&self) -> &Scope {
        &self.facts.scope
    }

    /// The number of this attempt. It only grows, and fences off those before.
    pub fn attempt(&self) -> u64 {
        self.facts.number()
    }

    /// What the caller gave with the key, as JSON.
    pub fn payload(&self) -> Option<&str> {
        self.payload.as_deref()
    }

    /// What became of the units that this attempt has met so far.
    pub fn counts(&self) -> UnitCounts {
        self.tally.told().counts
    }

    /// Raises the fence of this run at a database: from here on nothing of an earlier attempt is written there. Do it
    /// before anything is read.
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

    /// The same at the store's own database, for units of which nothing is written anywhere else.
    pub(crate) async fn fence_at_the_store<DB: Backend>(&self) -> Result<Fence<DB>, LedgerError> {
        let Surroundings { store, project, ledgers, .. } = &*self.surroundings;
        let destination = attach(store.database.clone(), project, Some(&store.id)).await?;
        self.raised(Destination { ledgers: ledgers.clone(), ..destination }).await
    }

    async fn raised<DB: Backend>(&self, destination: Destination) -> Result<Fence<DB>, LedgerError> {
        let Surroundings { store, destinations, .. } = &*self.surroundings;
        let raised = match raise(&destination.database, &self.facts).await {
            // In a box: it is rare, and would make the future of every attempt larger.
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

    /// What it means that a database has a higher fence than this attempt. If the store says that the attempt has its place, then
    /// the store has forgotten what raised the fence: it is older than what it has done. That is for a person to look at, unless
    /// one has done so since; then the run goes on above that number.
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
