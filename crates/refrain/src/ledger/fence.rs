//! The fence of a run at a database: raised before anything is read there, held in every transaction that writes.
//!
//! Attempt 2 of a run may begin while attempt 1 still exists, stopped in the middle of a write. Once attempt 2 has raised the
//! fence, attempt 1 cannot write any more; and because 2 reads only after that, it sees everything that 1 wrote.
//!
//! Two things make this hold beyond the numbers of one run. Besides the number, a fence has the nonce of the claim: a restored
//! store gives out attempt 2 again, and only one of the two may write. And a run that has ended has no further attempt: the
//! next to write is another run, which holds the same lane now. So the lane has a fence as well, raised and held together
//! with that of the run, always before it.
//!
//! A fence stops an old attempt once a newer one has begun. Until then the lease does: no transaction under a fence begins or
//! is committed after the lease of its worker has expired.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use refrain_core::{JobName, Key, KeyError, ProjectName, Scope, Window};

use super::destination::Destination;
use super::ledger_id::LedgerName;
use super::tally::Tally;
use super::unapplied::TouchedLedgers;
use super::units::{Per, Units};
use super::{LedgerError, Result, catalog};
use crate::database::statement::{Bound, Statement};
use crate::database::{Database, DatabaseError, Transaction, place, retried};
use crate::failpoint;
use crate::lease::Lease;
use crate::schemas::LEDGER;
use crate::store::Store;
use crate::user_database::Backend;

/// The facts about an attempt that the ledger needs.
#[derive(Debug, Clone)]
pub(crate) struct AttemptFacts {
    pub(crate) project: ProjectName,
    pub(crate) job: JobName,
    /// The first name of the job, under which its units are remembered.
    pub(crate) identity: JobName,
    /// The key of the run.
    pub(crate) run: String,
    pub(crate) scope: Scope,
    pub(crate) window: Option<Window>,
    pub(crate) attempt: i32,
    /// Tells this claim of the attempt from every other one with the same number.
    pub(crate) nonce: i64,
    /// Whether the run holds the lane of its scope.
    pub(crate) in_lane: bool,
    pub(crate) version: u32,
    /// How often a unit may fail before it is parked; none if the run fails as a whole.
    pub(crate) tries: Option<u32>,
    /// How many of the run's tries are spent.
    pub(crate) spent: u32,
    /// How often a worker died while it held this run.
    pub(crate) suspicion: u32,
    /// The attempt with which an operator began the redo that this attempt belongs to.
    pub(crate) redo: Option<i32>,
}

impl AttemptFacts {
    /// The run fails as a whole, and the policies of its job apply to it: no unit is parked, and none is tried alone after a
    /// worker died.
    pub(crate) fn fail_as_a_whole(&mut self) {
        (self.tries, self.suspicion) = (None, 0);
    }

    /// The number of failures that parks a unit, as it is compared and stored.
    pub(crate) fn failures_max(&self) -> u32 {
        self.tries.unwrap_or(i32::MAX.unsigned_abs())
    }
}

/// A run at a database with a raised fence: units are applied and checkpoints moved through it.
///
/// It comes from [`Run::fence`](crate::Run::fence).
pub struct Fence<DB: Backend> {
    pub(crate) raised: Arc<Raised>,
    database: PhantomData<fn() -> DB>,
}

impl<DB: Backend> Clone for Fence<DB> {
    fn clone(&self) -> Self {
        Fence { raised: Arc::clone(&self.raised), database: PhantomData }
    }
}

impl<DB: Backend> std::fmt::Debug for Fence<DB> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fence").field("raised", &self.raised).finish()
    }
}

/// A raised fence.
#[derive(Debug)]
pub(crate) struct Raised {
    pub(crate) destination: Destination,
    pub(crate) store: Store,
    pub(crate) id: i64,
    /// The fence of the lane, if the run holds one.
    pub(crate) lane: Option<i64>,
    pub(crate) facts: AttemptFacts,
    pub(crate) tally: Tally,
    pub(crate) touched: TouchedLedgers,
    /// How many units are still parked before they are tried, until this attempt trusts units again.
    pub(crate) caution: AtomicUsize,
    /// As long as the lease is good, known outcomes are recorded, with any number of retries.
    pub(crate) lease: Lease,
    /// Whether the intents of this database are relayed to the store.
    pub(crate) relayed: bool,
    /// Whether it is the store's own database.
    pub(crate) is_of_the_store: bool,
}

/// The fences of an attempt at a database: that of its run, and that of its lane, if it holds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footing {
    pub(crate) fence: i64,
    pub(crate) lane: Option<i64>,
}

#[derive(sqlx_macros::FromRow)]
struct FenceRow {
    id: i64,
    attempt: i32,
    nonce: i64,
    lane: Option<i64>,
}

impl FenceRow {
    /// The fences of the attempt, if none of them is higher.
    fn footing(self, facts: &AttemptFacts) -> Option<Footing> {
        let is_own = self.attempt == facts.attempt && self.nonce == facts.nonce;
        let is_held = self.lane.is_some() || !facts.in_lane;
        (is_own && is_held).then_some(Footing { fence: self.id, lane: self.lane })
    }
}

/// Raises the fences of a run and its lane to the number of this attempt, and commits.
pub(crate) async fn raise(database: &Database, facts: &AttemptFacts) -> Result<Footing> {
    // This attempt has raised them before: writing them again would wait for an open batch of its own.
    if let Some(footing) = footing(database, facts).await? {
        return Ok(footing);
    }
    let raised: Option<Footing> = retried(|| async {
        let mut transaction = database.write().await?;
        let of_job = |statement: &'static Statement| {
            statement.bind(facts.project.as_str()).bind(facts.identity.as_str())
        };
        if facts.in_lane {
            let raise = of_job(&catalog::FENCE_RAISE_LANE).bind(facts.scope.as_str());
            transaction.execute(raise.bind(facts.nonce)).await?;
        }
        let raise = of_job(&catalog::FENCE_RAISE).bind(facts.run.as_str());
        transaction.execute(raise.bind(facts.attempt).bind(facts.nonce)).await?;
        let stored: Option<FenceRow> = transaction.fetch_optional(facts.fence()).await?;
        let Some(footing) = stored.and_then(|stored| stored.footing(facts)) else {
            transaction.rollback().await?;
            return Ok(None);
        };
        transaction.commit(place!("fence-raise")).await?;
        Ok::<_, DatabaseError>(Some(footing))
    })
    .await?;
    raised.ok_or(LedgerError::Fenced { attempt: facts.number() })
}

/// The fences of this attempt, if they are where it has raised them.
async fn footing(database: &Database, facts: &AttemptFacts) -> Result<Option<Footing>> {
    let mut reading = database.read().await?;
    let stored: Option<FenceRow> = reading.fetch_optional(facts.fence()).await?;
    reading.rollback().await?;
    Ok(stored.and_then(|stored| stored.footing(facts)))
}

/// The height of a run's fence: the number of an attempt, and the nonce of its claim.
pub(crate) async fn height(database: &Database, facts: &AttemptFacts) -> Result<(i32, i64)> {
    let mut reading = database.read().await?;
    let stored: Option<FenceRow> = reading.fetch_optional(facts.fence()).await?;
    reading.rollback().await?;
    Ok(stored.map_or((0, 0), |stored| (stored.attempt, stored.nonce)))
}

/// Fails if a newer attempt has raised the fence; does not stop one from doing so.
pub(crate) async fn stands(database: &Database, facts: &AttemptFacts) -> Result<()> {
    match footing(database, facts).await? {
        Some(_) => Ok(()),
        None => Err(LedgerError::Fenced { attempt: facts.number() }),
    }
}

/// Locks the fences until the transaction ends. It is refused if one of them has been raised, and after a breaking migration that
/// this release does not know: the database may belong to several projects, and a migration sees the workers of one alone.
pub(crate) async fn held(
    transaction: &mut Transaction,
    footing: Footing,
    facts: &AttemptFacts,
) -> std::result::Result<Result<()>, DatabaseError> {
    let own = catalog::FENCE_HOLD.bind(footing.fence).bind(facts.attempt).bind(facts.nonce);
    let held: Option<(i64, Option<i64>, i32)> = transaction.fetch_optional(own.bind(footing.lane)).await?;
    Ok(match held {
        Some((_, _, oldest)) if oldest > LEDGER.known() => {
            Err(LedgerError::TooNew { found: oldest, known: LEDGER.known() })
        }
        Some((_, lane, _)) if lane == footing.lane => Ok(()),
        _ => Err(LedgerError::Fenced { attempt: facts.number() }),
    })
}

impl AttemptFacts {
    fn fence(&self) -> Bound<'_> {
        let find = catalog::FENCE_FIND.bind(self.project.as_str()).bind(self.identity.as_str());
        let lane = self.in_lane.then(|| self.scope.as_str().to_owned());
        find.bind(self.run.as_str()).bind(lane).bind(self.nonce)
    }

    /// The ledger of this job and scope, for ever or for this window.
    pub(crate) fn book(&self, per: Per) -> Result<LedgerName> {
        let window = match (per, self.window) {
            (Per::Ever, _) => String::new(),
            (Per::Window, Some(window)) => window.start().timestamp().to_string(),
            (Per::Window, None) => return Err(LedgerError::NoWindow { run: self.run.clone() }),
        };
        let (project, job) = (self.project.clone(), self.identity.clone());
        Ok(LedgerName { project, job, scope: self.scope.clone(), window })
    }

    pub(crate) fn number(&self) -> u64 {
        u64::try_from(self.attempt).unwrap_or_default()
    }
}

impl Raised {
    /// Begins a transaction that locks the fences.
    pub(crate) async fn write(&self) -> Result<Transaction> {
        self.is_leased()?;
        let mut transaction = self.destination.database.write().await?;
        self.hold(&mut transaction).await?;
        Ok(transaction)
    }

    /// Locks the fences until the transaction ends, or fails if one has been raised. The transaction is committed only while the
    /// lease is good.
    pub(crate) async fn hold(&self, transaction: &mut Transaction) -> Result<()> {
        self.is_leased()?;
        let footing = Footing { fence: self.id, lane: self.lane };
        held(transaction, footing, &self.facts).await??;
        transaction.only_under(self.lease.clone());
        Ok(())
    }

    fn is_leased(&self) -> Result<()> {
        if self.lease.is_good() || failpoint::is_weakened("lease.unseen") {
            return Ok(());
        }
        Err(LedgerError::Expired)
    }

    /// Whether units are parked before they are tried: a worker died while it held this run, and a unit may be the cause.
    pub(crate) fn is_careful(&self) -> bool {
        self.caution.load(Ordering::Relaxed) > 0
    }

    /// Counts units that are about to be tried; after as many as a batch has, none of them was the cause.
    pub(crate) fn trust_more(&self, units: usize) {
        let left = self.caution.load(Ordering::Relaxed);
        self.caution.store(left.saturating_sub(units), Ordering::Relaxed);
    }

    /// The number of the ledger of this job and scope, for ever or for this window.
    pub(crate) async fn ledger(&self, per: Per) -> Result<i64> {
        let Destination { database, ledgers, .. } = &self.destination;
        let ledger = ledgers.find(database, self.facts.book(per)?).await?;
        self.touched.note(&self.destination, self.id, ledger);
        Ok(ledger)
    }

    /// The time by the clock of the store, which all attempts share.
    pub(crate) async fn now(&self) -> Result<Timestamp> {
        let mut transaction = self.store.database.read().await?;
        Ok(crate::store::now(&mut transaction).await?)
    }
}

impl<DB: Backend> Fence<DB> {
    pub(crate) fn of(raised: Raised) -> Fence<DB> {
        Fence { raised: Arc::new(raised), database: PhantomData }
    }

    /// The units of this run: how each gets its key, and whether a key is unique for ever or within this window.
    ///
    /// The key must name the same fact in every attempt. It cannot contain the time:
    ///
    /// ```compile_fail,E0277
    /// # async fn example(fence: refrain::ledger::Fence<sqlx::Sqlite>) {
    /// use refrain::ledger::Per;
    /// use refrain::key;
    /// fence.units(Per::Ever, |_: &u32| key!("row", std::time::SystemTime::now()));
    /// # }
    /// ```
    pub fn units<T>(
        &self,
        per: Per,
        key: impl Fn(&T) -> std::result::Result<Key, KeyError> + Send + Sync + 'static,
    ) -> Units<DB, T> {
        Units::new(self.clone(), per, Box::new(key))
    }
}
