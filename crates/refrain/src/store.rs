//! The store: runs and what schedules them.
//!
//! One file per verb, each a transaction (or a few statements inside the caller's transaction) over the tables in
//! `migrations/store`. The rules that hold everywhere:
//!
//! - **A run exists once**, because of `unique (job, key)`. Opening is an insert that may find it.
//! - **An open run is in one place**: in the queue, delayed, or waiting for its lane. It gets there when the run is inserted or by
//!   the compare-and-set of `reopen.rs`, and in no other way.
//! - **The state of a run is written in `run_state.rs`**, that of an effect in `effect_state.rs`, by transitions of the tables in
//!   `refrain_core::state`.
//! - **An attempt ends once**: its ending takes it out of the queue under its lease and number, and no other ending is recorded.
//!   Recording it again after a lost answer finds that it was recorded.
//! - **Locks are taken in one order**: job or schedule, worker, lease, lane, run, queue, effect; rows of one table in the order of their
//!   keys.
//! - **Time is the database's**: leases and delays are counted by its clock, because the clocks of machines differ.

pub(crate) mod alarms;
pub(crate) mod audit;
pub(crate) mod begun_commands;
pub(crate) mod cancel;
pub(crate) mod catalog;
pub(crate) mod claim;
pub(crate) mod counts;
pub(crate) mod dedupes;
pub(crate) mod delayed;
pub(crate) mod effect_decision;
pub(crate) mod effect_reservation;
pub(crate) mod effect_state;
pub(crate) mod effects;
pub(crate) mod enqueue;
mod error;
pub(crate) mod expand;
pub(crate) mod finish;
pub(crate) mod fsck;
pub(crate) mod identity;
pub(crate) mod intents;
pub(crate) mod jobs;
pub(crate) mod lanes;
pub(crate) mod message;
pub(crate) mod migrate;
pub(crate) mod open;
pub(crate) mod outputs;
pub(crate) mod payload;
pub(crate) mod prune;
pub(crate) mod queue;
pub(crate) mod queue_line;
pub(crate) mod reopen;
pub(crate) mod revisions;
pub(crate) mod run_row;
pub(crate) mod run_state;
pub(crate) mod schedules;
pub(crate) mod show;
pub(crate) mod take_over;
pub(crate) mod tick;
pub(crate) mod vouch;
pub(crate) mod why;
pub(crate) mod workers;

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::ProjectName;
use refrain_core::clock_watch;

use crate::database::{Address, Database, Transaction, place, retried};
use crate::failpoint;
pub use error::StoreError;
use identity::{IdentityDoubt, StoreIdentity};

pub(crate) type Result<T> = std::result::Result<T, StoreError>;

/// The row about the store itself.
#[derive(sqlx_macros::FromRow)]
struct Owner {
    id: String,
    project: String,
    simulated: bool,
    created_at: i64,
    place: Option<String>,
    doubt: Option<String>,
    recovered_at: Option<i64>,
    forgets_before: Option<i64>,
}

impl Owner {
    /// Of a store that has no owner yet.
    fn first(project: &ProjectName) -> Owner {
        Owner {
            id: String::new(),
            project: project.as_str().to_owned(),
            simulated: false,
            created_at: 0,
            place: None,
            doubt: None,
            recovered_at: None,
            forgets_before: None,
        }
    }

    fn is(&self, project: &ProjectName) -> Result<()> {
        if self.project == project.as_str() {
            return Ok(());
        }
        Err(StoreError::OtherProject { found: self.project.clone(), asked: project.clone() })
    }

    /// Why the store may not be what it takes itself for.
    fn doubt(&self, now: &StoreIdentity) -> Option<IdentityDoubt> {
        match (&self.doubt, &self.place) {
            (Some(doubt), _) => Some(IdentityDoubt::named(doubt)),
            (None, Some(place)) => StoreIdentity::stored(place).doubt(now),
            (None, None) => None,
        }
    }
}

/// Whether the schedules of a store read the real clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reality {
    Real,
    Simulated,
}

/// An open store, with the schema of this release.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) database: Database,
    address: Arc<Address>,
    idle: Duration,
    pub(crate) reality: Reality,
    /// Its id; no other store has the same.
    pub(crate) id: Arc<str>,
    /// The file that was opened: its device and inode.
    file: Option<(u64, u64)>,
    /// Where it is.
    pub(crate) identity: StoreIdentity,
    /// Why nothing may run before the operator decides; it may turn out after the store was opened.
    doubt: Arc<OnceLock<IdentityDoubt>>,
    /// When the operator last declared what the store is.
    pub(crate) recovered_at: Option<i64>,
    /// If it was restored or copied: it does not know all that was done before this time.
    pub(crate) forgets_before: Option<i64>,
    pub(crate) created_at: i64,
}

impl Store {
    /// Opens a store. A SQLite file is created and migrated at once, because only Refrain uses it; on a server the operator decides,
    /// by [`migrate`](migrate::migrate).
    ///
    /// `idle` is how long a transaction may be idle; it is shorter than any lease.
    pub(crate) async fn open(
        address: &Address,
        project: &ProjectName,
        connections: u32,
        idle: Duration,
        wanted: Reality,
    ) -> Result<Store> {
        let database = Database::open(address, connections, idle).await?;
        if database.is_sqlite() {
            migrate::migrate(&database).await?;
        }
        migrate::check(&database).await?;
        let mut owner = found(&database, project, wanted).await?;
        owner.is(project)?;
        if !owner.simulated && wanted == Reality::Simulated {
            with_retries(|| simulate(&database)).await?;
            owner.simulated = true;
        }
        let is_at_home = owner.place.is_some() || owner.doubt.is_some();
        let store = Store::of(database, address, idle, owner).await?;
        if !is_at_home {
            set_place(&store).await?;
        }
        Ok(store)
    }

    /// Opens a store to look: it must be there, and nothing in it is changed. It may be of an older schema, and a doubt about it
    /// is only told.
    pub(crate) async fn look(
        address: &Address,
        project: &ProjectName,
        connections: u32,
        idle: Duration,
    ) -> Result<Store> {
        let database = Database::open_to_look(address, connections, idle).await?;
        let owner = match Box::pin(looked_at(&database, project)).await {
            Ok(owner) => owner,
            Err(error) => {
                database.close().await;
                return Err(error);
            }
        };
        Store::of(database, address, idle, owner).await
    }

    async fn of(database: Database, address: &Address, idle: Duration, owner: Owner) -> Result<Store> {
        let file = match address {
            Address::Sqlite { path } => file_of(path),
            Address::Postgres { .. } => None,
        };
        let identity = StoreIdentity::of(&database, address).await?;
        let doubt = Arc::new(OnceLock::new());
        if let Some(found) = owner.doubt(&identity) {
            let _ = doubt.set(found);
        }
        let reality = if owner.simulated { Reality::Simulated } else { Reality::Real };
        Ok(Store {
            database,
            address: Arc::new(address.clone()),
            idle,
            reality,
            id: owner.id.into(),
            file,
            identity,
            doubt,
            recovered_at: owner.recovered_at,
            forgets_before: owner.forgets_before,
            created_at: owner.created_at,
        })
    }

    /// Why nothing may run before the operator decides.
    pub(crate) fn doubt(&self) -> Option<IdentityDoubt> {
        self.doubt.get().copied()
    }

    /// An error if nothing may run before the operator decides.
    pub(crate) fn is_sure(&self) -> Result<()> {
        self.doubt().map_or(Ok(()), |doubt| Err(StoreError::Unsure(doubt)))
    }

    /// Records in this process that the operator must decide.
    pub(crate) fn doubted(&self, doubt: IdentityDoubt) -> StoreError {
        StoreError::Unsure(*self.doubt.get_or_init(|| doubt))
    }

    /// Records it in the store, for all processes; unless the operator has declared what the store is since this process opened it:
    /// then only this process must start again.
    pub(crate) async fn is_doubted(&self, doubt: IdentityDoubt) -> Result<StoreError> {
        retried(|| async {
            let mut transaction = self.database.write().await?;
            transaction.execute(catalog::STORE_DOUBT.bind(doubt.name()).bind(self.recovered_at)).await?;
            transaction.commit(place!("doubt")).await
        })
        .await?;
        Ok(self.doubted(doubt))
    }

    /// The same store over a connection of its own, for a thread that must not wait for other users of the pool.
    pub(crate) async fn reopened(&self) -> Result<Store> {
        self.is_in_place()?;
        let database = Database::reopen(&self.address, 1, self.idle).await?.hurried();
        Ok(Store { database, ..self.clone() })
    }

    /// How long a transaction may be idle.
    pub(crate) fn idle(&self) -> Duration {
        self.idle
    }

    /// Its URL without the password.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// An error if the clock of the database is far from that of this machine. A simulated store has a clock of its own.
    pub(crate) fn believes(&self, now: Timestamp) -> Result<()> {
        let machine = Timestamp::now();
        if self.reality == Reality::Simulated || failpoint::is_clock_set() {
            return Ok(());
        }
        match clock_watch::apart(now, machine) {
            Some(_) => Err(StoreError::ClocksApart { store: now, machine }),
            None => Ok(()),
        }
    }

    /// An error if the file of the store is not the one that was opened. On a server there is no file.
    pub(crate) fn is_in_place(&self) -> Result<()> {
        match (&*self.address, self.file) {
            (Address::Sqlite { path }, Some(file)) if file_of(path) != Some(file) => {
                Err(StoreError::Moved(path.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The time by the clock of the database, which is the same for all machines.
    pub(crate) async fn now(&self) -> Result<Timestamp> {
        let mut transaction = self.database.read().await?;
        now(&mut transaction).await
    }

    /// The time that schedules read: the same, unless a test has set another clock for them.
    pub(crate) async fn schedule_time(&self) -> Result<Timestamp> {
        Ok(failpoint::schedule_time(self.now().await?))
    }
}

pub(crate) async fn now(transaction: &mut Transaction) -> Result<Timestamp> {
    let row: Option<(i64,)> = transaction.fetch_optional(catalog::CLOCK_NOW.bound()).await?;
    instant(row.map_or(0, |(now,)| now))
}

async fn looked_at(database: &Database, project: &ProjectName) -> Result<Owner> {
    migrate::check_for_look(database).await?;
    let mut transaction = database.read().await?;
    let owner: Option<Owner> = transaction.fetch_optional(catalog::STORE_FIND.bound()).await?;
    transaction.rollback().await?;
    // A store that no project has used yet is empty.
    let owner = owner.unwrap_or_else(|| Owner::first(project));
    owner.is(project)?;
    Ok(owner)
}

/// Finds whose store it is; a new one is given to `project`.
async fn found(database: &Database, project: &ProjectName, wanted: Reality) -> Result<Owner> {
    let mut transaction = database.read().await?;
    let owner: Option<Owner> = transaction.fetch_optional(catalog::STORE_FIND.bound()).await?;
    drop(transaction);
    if let Some(owner) = owner {
        return Ok(owner);
    }
    let id = new_id();
    let owner: Option<Owner> = retried(|| async {
        let mut transaction = database.write().await?;
        let found =
            catalog::STORE_FOUND.bind(id.as_str()).bind(project.as_str()).bind(wanted == Reality::Simulated);
        transaction.execute(found).await?;
        let owner = transaction.fetch_optional(catalog::STORE_FIND.bound()).await?;
        transaction.commit(place!("found")).await?;
        Ok(owner)
    })
    .await?;
    owner.ok_or(StoreError::Missing)
}

/// Records the place of a store that has none recorded.
async fn set_place(store: &Store) -> Result<()> {
    Ok(retried(|| async {
        let mut transaction = store.database.write().await?;
        transaction.execute(catalog::STORE_SET_PLACE.bind(store.identity.to_string())).await?;
        transaction.commit(place!("set-place")).await
    })
    .await?)
}

/// An id that no other store or destination has: 128 bits of the system's randomness.
pub(crate) fn new_id() -> String {
    crate::database::random_id()
}

/// Repeats an operation after locks, conflicts and lost answers; any other error is returned as it is.
pub(crate) async fn with_retries<T, F: Future<Output = Result<T>>>(
    mut operation: impl FnMut() -> F,
) -> Result<T> {
    retried(|| {
        let operation = operation();
        async {
            match operation.await {
                Err(StoreError::Database(error)) => Err(error),
                ended => Ok(ended),
            }
        }
    })
    .await?
}

/// Marks a store as simulated, if nothing real has happened in it: it has no run and no worker. Timetables that are in force by the
/// real clock start again.
async fn simulate(database: &Database) -> Result<()> {
    let mut transaction = database.write().await?;
    transaction.execute(catalog::STORE_SIMULATE.bind(true)).await?;
    let last: Option<(i64,)> = transaction.fetch_optional(catalog::RUN_LAST.bound()).await?;
    let worker: Option<(i64,)> = transaction.fetch_optional(catalog::WORKER_ANY.bound()).await?;
    if last != Some((0,)) || worker.is_some() {
        return Err(StoreError::Real);
    }
    transaction.execute(catalog::SCHEDULE_FORGET.bound()).await?;
    transaction.execute(catalog::REVISION_FORGET.bound()).await?;
    Ok(transaction.commit(place!("simulate")).await?)
}

/// The file at a path: its device and inode.
fn file_of(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// An instant as it is stored: microseconds since 1970.
pub(crate) fn instant(microseconds: i64) -> Result<Timestamp> {
    Timestamp::from_microsecond(microseconds)
        .map_err(|_| StoreError::Broken(format!("{microseconds} is not a valid timestamp in microseconds")))
}

pub(crate) fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
