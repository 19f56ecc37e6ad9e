//! A database that attempts write to: its owner and its identity.
//!
//! The first attempt records the project and its store. A store that is not the recorded one is new, restored or a copy; it
//! would take old work for undone and do it again, so it does nothing here before an operator decides.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use refrain_core::ProjectName;

use super::ledger_id::Ledgers;
use super::{LedgerError, Result, catalog, migrate};
use crate::database::{Database, DatabaseError, place, random_id, retried};
use crate::user_database::Identity;

/// The most pools that are remembered.
const POOLS_MAX: usize = 32;

/// A database with a ledger of this project.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) database: Database,
    /// Its identity: the same for every client, and different for every database.
    pub(crate) id: Arc<str>,
    pub(crate) ledgers: Ledgers,
}

/// The databases that this process has met, by pool, and those whose intents it relays, by name: one database may be met
/// through several pools. A database that was away at first is relayed from once it answers.
#[derive(Debug, Clone)]
pub(crate) struct Destinations {
    met: Arc<Mutex<VecDeque<(Identity, Destination)>>>,
    relayed: Arc<RwLock<Arc<[Destination]>>>,
    /// Whether a configured database is a SQLite file, even if it did not answer.
    has_file: Arc<AtomicBool>,
}

impl Destinations {
    /// No database is met yet; intents of these are relayed.
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

    /// Relays intents of this database from now on. A database that is known already has a new URL: it is relayed from there,
    /// except the store's own.
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

    /// Records that jobs write to a SQLite file, whether or not it answers now.
    pub(crate) fn are_beside_a_file(&self) {
        self.has_file.store(true, Ordering::Release);
    }

    /// Whether any of them is a SQLite file, in which one stopped process can block all others.
    pub(crate) fn has_file(&self) -> bool {
        let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        self.has_file.load(Ordering::Acquire)
            || met.iter().any(|(_, destination)| destination.database.is_sqlite())
    }

    /// The databases whose intents are relayed at present, the store's own first.
    pub(crate) fn relayed(&self) -> Arc<[Destination]> {
        Arc::clone(&self.relayed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same database at its present URL.
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

    /// Remembers a pool. With too many pools the oldest is dropped: a job that connects anew in each run would keep all of its
    /// connections open.
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

/// Reads the owner of the ledger in a database; a new ledger gets this project and this store.
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

/// The ledger of a project in a database, to look at; none if the project has written nothing there.
pub(crate) async fn look(database: Database, project: &ProjectName) -> Result<Option<Destination>> {
    if !migrate::check_for_look(&database).await? {
        return Ok(None);
    }
    let mut transaction = database.read().await?;
    let owner: Option<Owner> =
        transaction.fetch_optional(catalog::PROJECT_FIND.bind(project.as_str())).await?;
    drop(transaction);
    let of =
        |owner: Owner| Destination { database, id: owner.destination.into(), ledgers: Ledgers::default() };
    Ok(owner.map(of))
}

async fn attached(database: &Database, project: &ProjectName, store: Option<&str>) -> Result<Owner> {
    let id = random_id();
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
