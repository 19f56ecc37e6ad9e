//! The store: runs and what schedules them.
//!
//! One file per verb, each a transaction (or a few statements inside somebody's transaction) over the tables in
//! `migrations/store`. The rules that hold everywhere:
//!
//! - **A run exists once**, because `unique (job, key)` says so. Opening is an insert that may find it there.
//! - **An open run stands in one place**: in the queue, delayed, or waiting for its lane. It gets there when the run is
//!   inserted or by the compare-and-set of `reopen.rs`, and in no other way.
//! - **An attempt ends once**: whoever ends it takes it out of the queue under its lease and number; nobody else's
//!   word counts. Doing it again after a lost answer finds that it was done.
//! - **Locks are taken in one order**: job or schedule, worker, lease, lane, run, queue; rows of one table in the order
//!   of their keys.
//! - **Time is the database's**: leases and delays are counted by its clock, for machines disagree.

pub(crate) mod alarms;
pub(crate) mod audit;
pub(crate) mod begun_commands;
pub(crate) mod cancel;
pub(crate) mod catalog;
pub(crate) mod claim;
pub(crate) mod counts;
pub(crate) mod dedupes;
pub(crate) mod delayed;
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
pub(crate) mod migrate;
pub(crate) mod open;
pub(crate) mod outputs;
pub(crate) mod prune;
pub(crate) mod queue_line;
pub(crate) mod reopen;
pub(crate) mod revisions;
pub(crate) mod run_row;
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
use refrain_core::random::{Random, SystemRandom};

use crate::database::{Address, Database, Transaction, place, retried};
use crate::failpoint;
pub use error::StoreError;
use identity::{IdentityDoubt, StoreIdentity};

pub(crate) type Result<T> = std::result::Result<T, StoreError>;

/// Whose store it is.
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

/// Whether the schedules of a store read the real clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reality {
    Real,
    Simulated,
}

/// A store that is open, of the schema that this release knows.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) database: Database,
    address: Arc<Address>,
    idle: Duration,
    pub(crate) reality: Reality,
    /// What it is called: no other store has this name.
    pub(crate) id: Arc<str>,
    /// The file that was opened: its device and its number there.
    file: Option<(u64, u64)>,
    /// Where it is.
    pub(crate) identity: StoreIdentity,
    /// Why nothing may run before a person has looked at it; also as it turned out since it was opened.
    doubt: Arc<OnceLock<IdentityDoubt>>,
    /// When a person last said what it is.
    pub(crate) recovered_at: Option<i64>,
    /// If it was restored or copied: what is not known to it may have been done before then.
    pub(crate) forgets_before: Option<i64>,
    pub(crate) created_at: i64,
}

impl Store {
    /// Opens a store. A SQLite file is made and brought up to date at once, for it is ours alone; on a server
    /// that is somebody's decision, and [`migrate`](migrate::migrate) is how it is said.
    ///
    /// `idle` is how long a transaction may be silent; it is shorter than any lease.
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
        let owner = found(&database, project, wanted).await?;
        if owner.project != project.as_str() {
            return Err(StoreError::OtherProject { found: owner.project, asked: project.clone() });
        }
        let reality = match (owner.simulated, wanted) {
            (true, _) => Reality::Simulated,
            (false, Reality::Real) => Reality::Real,
            (false, Reality::Simulated) => with_retries(|| simulate(&database)).await?,
        };
        let file = match address {
            Address::Sqlite { path } => file_of(path),
            Address::Postgres { .. } => None,
        };
        let identity = StoreIdentity::of(&database, address).await?;
        let doubt = Arc::new(OnceLock::new());
        if let Some(found) = checked_identity(&database, &owner, &identity).await? {
            let _ = doubt.set(found);
        }
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

    /// Why nothing may run before a person has looked at it.
    pub(crate) fn doubt(&self) -> Option<IdentityDoubt> {
        self.doubt.get().copied()
    }

    /// Whether it is what it takes itself for, as far as it knows.
    pub(crate) fn is_sure(&self) -> Result<()> {
        self.doubt().map_or(Ok(()), |doubt| Err(StoreError::Unsure(doubt)))
    }

    /// It turned out that a person must look at it.
    pub(crate) fn doubted(&self, doubt: IdentityDoubt) -> StoreError {
        StoreError::Unsure(*self.doubt.get_or_init(|| doubt))
    }

    /// The same, written down for all who use it, unless an operator has said what the store is since this process opened it:
    /// then only this process must begin anew.
    pub(crate) async fn is_doubted(&self, doubt: IdentityDoubt) -> Result<StoreError> {
        retried(|| async {
            let mut transaction = self.database.write().await?;
            transaction.execute(catalog::STORE_DOUBT.bind(doubt.name()).bind(self.recovered_at)).await?;
            transaction.commit(place!("doubt")).await
        })
        .await?;
        Ok(self.doubted(doubt))
    }

    /// The same store over a connection of its own, for a thread that must not wait for anybody.
    pub(crate) async fn reopened(&self) -> Result<Store> {
        self.is_in_place()?;
        let database = Database::reopen(&self.address, 1, self.idle).await?.hurried();
        Ok(Store { database, ..self.clone() })
    }

    /// How long a transaction may be silent.
    pub(crate) fn idle(&self) -> Duration {
        self.idle
    }

    /// Where it is, for people.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Whether schedules may believe this time of the database; a simulated store has a clock of its own.
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

    /// Whether the file of the store is still the one that was opened. A server has none.
    pub(crate) fn is_in_place(&self) -> Result<()> {
        match (&*self.address, self.file) {
            (Address::Sqlite { path }, Some(file)) if file_of(path) != Some(file) => {
                Err(StoreError::Moved(path.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The time by the clock of the database, which all machines share.
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

/// Why a store may not be what it takes itself for. One that has never known its place learns it here.
async fn checked_identity(
    database: &Database,
    owner: &Owner,
    now: &StoreIdentity,
) -> Result<Option<IdentityDoubt>> {
    if let Some(doubt) = &owner.doubt {
        return Ok(Some(IdentityDoubt::named(doubt)));
    }
    if let Some(place) = &owner.place {
        return Ok(StoreIdentity::stored(place).doubt(now));
    }
    retried(|| async {
        let mut transaction = database.write().await?;
        transaction.execute(catalog::STORE_SETTLE_DOWN.bind(now.to_string())).await?;
        transaction.commit(place!("settle-down")).await
    })
    .await?;
    Ok(None)
}

/// A name that no other store has.
pub(crate) fn new_id() -> String {
    let mut random = SystemRandom::new();
    format!("{:016x}{:016x}", random.next_u64(), random.next_u64())
}

/// Repeats a step while it meets locks, conflicts and lost replies; any other error is returned as it is.
pub(crate) async fn with_retries<T, F: Future<Output = Result<T>>>(mut step: impl FnMut() -> F) -> Result<T> {
    retried(|| {
        let step = step();
        async {
            match step.await {
                Err(StoreError::Database(error)) => Err(error),
                ended => Ok(ended),
            }
        }
    })
    .await?
}

/// Makes a store simulated in which nothing real has happened: no run, and nobody who would make one. Timetables that
/// somebody has put in force by the real clock begin anew.
async fn simulate(database: &Database) -> Result<Reality> {
    let mut transaction = database.write().await?;
    transaction.execute(catalog::STORE_SIMULATE.bind(true)).await?;
    let last: Option<(i64,)> = transaction.fetch_optional(catalog::RUN_LAST.bound()).await?;
    let worker: Option<(i64,)> = transaction.fetch_optional(catalog::WORKER_ANY.bound()).await?;
    if last != Some((0,)) || worker.is_some() {
        return Err(StoreError::Real);
    }
    transaction.execute(catalog::SCHEDULE_FORGET.bound()).await?;
    transaction.execute(catalog::REVISION_FORGET.bound()).await?;
    transaction.commit(place!("simulate")).await?;
    Ok(Reality::Simulated)
}

/// Which file a path leads to: its device and its number there.
fn file_of(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// An instant as it is stored: microseconds since 1970.
pub(crate) fn instant(microseconds: i64) -> Result<Timestamp> {
    Timestamp::from_microsecond(microseconds)
        .map_err(|_| StoreError::Broken(format!("{microseconds} is no instant in microseconds")))
}

pub(crate) fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
