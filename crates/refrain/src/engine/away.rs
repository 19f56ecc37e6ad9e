//! Databases that jobs write to and that cannot be relayed from yet: one that does not answer, or has no ledger.
//!
//! What a job wishes for stands in such a database until a relay copies it, and a job begins to write there as soon as it answers.
//! So each is tried again until it is attached, however long that takes, and is named to everyone who asks meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use refrain_core::ProjectName;
use sqlx::Pool;

use crate::error::Error;
use crate::ledger::Backend;
use crate::ledger::destination::{Destination, attach};
use crate::project::databases::{Connected, Database};
use crate::store::Store;

/// The databases of a project as far as this process relays from them.
#[derive(Clone, Default)]
pub(crate) struct Away(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// Those that are relayed from: their names, and where they are.
    attached: BTreeMap<String, String>,
    away: BTreeMap<String, Arc<Database>>,
}

impl Away {
    /// It is relayed from.
    pub(crate) fn is_attached(&self, database: &Database) {
        let mut known = self.known();
        known.attached.insert(database.name.clone(), database.address());
        if known.away.get(&database.name).is_some_and(|one| one.address() == database.address()) {
            known.away.remove(&database.name);
        }
    }

    /// It is to be relayed from, unless it is already.
    pub(crate) fn add(&self, database: &Arc<Database>) {
        let mut known = self.known();
        if known.attached.get(&database.name) == Some(&database.address()) {
            known.away.remove(&database.name);
        } else {
            known.away.insert(database.name.clone(), Arc::clone(database));
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Database>> {
        self.known().away.values().cloned().collect()
    }

    /// What the project calls them.
    pub(crate) fn names(&self) -> Vec<String> {
        self.known().away.keys().cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects to a database, and looks whose the ledger there is.
pub(super) async fn attached(
    store: &Store,
    project: &ProjectName,
    database: &Database,
) -> Result<Destination, Error> {
    let opened = match database.connect().await? {
        Connected::Sqlite(pool) => opened(pool, store.idle()),
        Connected::Postgres(pool) => opened(pool, store.idle()),
    };
    let attached = attach(opened, project, Some(&store.id)).await;
    attached.map_err(|source| Error::Destination { name: database.name.clone(), source: Box::new(source) })
}

fn opened<DB: Backend>(pool: &Pool<DB>, idle: Duration) -> crate::database::Database {
    DB::database(pool, idle)
}
