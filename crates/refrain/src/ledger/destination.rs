//! A database that attempts write to: whose it is, and what it is called.
//!
//! The first to come writes down the project and its store. A store that is not the one written down is new, restored or
//! a copy; it would take old work for undone and do it again, so it does nothing here until a person has looked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use refrain_core::ProjectName;
use refrain_core::random::{Random, SystemRandom};

use super::backend::Identity;
use super::ledger_id::Ledgers;
use super::{LedgerError, Result, catalog, migrate};
use crate::database::{Database, DatabaseError, place, retried};

/// How many pools are remembered.
const POOLS_MAX: usize = 32;

/// A database with a ledger of this project.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) database: Database,
    /// What it is called: the same for everyone who opens it, and another one for every database.
    pub(crate) id: Arc<str>,
    pub(crate) ledgers: Ledgers,
}

/// The databases that this process has met, by their pools, and those whose intents it relays, by their names: one database
/// may be met by several pools. One that was away at first is relayed from when it answers.
#[derive(Debug, Clone)]
pub(crate) struct Destinations {
    met: Arc<Mutex<VecDeque<(Identity, Destination)>>>,
    relayed: Arc<RwLock<Arc<[Destination]>>>,
    /// Whether one that was named is a SQLite file, even if it did not answer.
    has_file: Arc<AtomicBool>,
}

impl Destinations {
    /// Nothing is met yet; intents of these are relayed.
    pub(crate) fn relaying(
        destinations: impl IntoIterator<Item = Destination>,
        has_file: bool,
    ) -> Destinations {
        let mut relayed: Vec<Destination> = Vec::new();
        for destination in destinations {
            if relayed.iter().all(|one| one.id != destination.id) {
                relayed.push(destination);
            }
        }
        let relayed = Arc::new(RwLock::new(relayed.into()));
        Destinations { met: Arc::default(), relayed, has_file: Arc::new(has_file.into()) }
    }

    /// From here on intents of this one are relayed as well. One that is known has another address now: it is relayed from there,
    /// but for the store's own.
    pub(crate) fn relay_too(&self, destination: Destination) {
        let mut relayed = self.relayed.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = relayed.to_vec();
        match all.iter().position(|one| one.id == destination.id) {
            None => all.push(destination),
            Some(0) => {}
            Some(known) => all.splice(known..=known, [destination]).for_each(drop),
        }
        *relayed = all.into();
    }

    /// Jobs write to a SQLite file, whether or not it answers now.
    pub(crate) fn are_beside_a_file(&self) {
        self.has_file.store(true, Ordering::Release);
    }

    /// Whether any of them is a SQLite file, which one process that is stopped keeps from all others.
    pub(crate) fn has_file(&self) -> bool {
        let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_file.load(Ordering::Acquire)
            || met.iter().any(|(_, destination)| destination.database.is_sqlite())
    }

    /// Those whose intents are relayed at present, the store's own first.
    pub(crate) fn relayed(&self) -> Arc<[Destination]> {
        Arc::clone(&self.relayed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same database at the address that it has now.
    pub(crate) fn at_present(&self, destination: &Destination) -> Destination {
        let relayed = self.relayed();
        relayed.iter().find(|one| one.id == destination.id).unwrap_or(destination).clone()
    }

    pub(crate) fn is_relayed(&self, destination: &Destination) -> bool {
        self.relayed().iter().any(|one| one.id == destination.id)
    }

    pub(crate) fn find(&self, identity: &Identity) -> Option<Destination> {
        let known = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(one, _)| one == identity).map(|(_, destination)| destination.clone())
    }

    /// Remembers a pool. The oldest is forgotten when there are many: a job that connects anew in each run would keep all of
    /// its connections.
    pub(crate) fn insert(&self, identity: Identity, destination: Destination) {
        let mut known = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if known.iter().all(|(one, _)| *one != identity) {
            known.push_back((identity, destination));
        }
        if known.len() > POOLS_MAX {
            known.pop_front();
        }
    }
}

#[derive(sqlx_macros::FromRow)]
struct Owner {
    store: Option<String>,
    destination: String,
}

/// Looks whose the ledger in a database is; a new one is this project's and this store's.
pub(crate) async fn attach(
    database: Database,
    project: &ProjectName,
    store: Option<&str>,
) -> Result<Destination> {
    migrate::check(&database).await?;
    let mut transaction = database.read().await?;
    let owner: Option<Owner> =
        transaction.fetch_optional(catalog::PROJECT_FIND.bind(project.as_str())).await?;
    drop(transaction);
    let owner = match owner {
        Some(owner) if owner.store.is_some() || store.is_none() => owner,
        _ => attached(&database, project, store).await?,
    };
    match (owner.store.as_deref(), store) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            Err(LedgerError::OtherStore { project: project.to_string() })
        }
        _ => Ok(Destination { database, id: owner.destination.into(), ledgers: Ledgers::default() }),
    }
}

async fn attached(database: &Database, project: &ProjectName, store: Option<&str>) -> Result<Owner> {
    let mut random = SystemRandom::new();
    let id = format!("{:016x}{:016x}", random.next_u64(), random.next_u64());
    let owner: Option<Owner> = retried(|| async {
        let mut transaction = database.write().await?;
        let attach = catalog::PROJECT_ATTACH.bind(project.as_str()).bind(store.map(str::to_owned));
        transaction.execute(attach.bind(id.as_str())).await?;
        let owner = transaction.fetch_optional(catalog::PROJECT_FIND.bind(project.as_str())).await?;
        transaction.commit(place!("attach")).await?;
        Ok::<_, DatabaseError>(owner)
    })
    .await?;
    owner.ok_or_else(|| LedgerError::OtherStore { project: project.to_string() })
}
