//! Databases of the jobs that cannot be relayed from yet: they do not answer, or have no ledger.
//!
//! The intents of a job stay in such a database until a relay copies them, and jobs write to it as soon as it answers. So each is
//! retried until it is attached, however long that takes; meanwhile the readiness check names it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use refrain_core::ProjectName;
use sqlx::Pool;

use crate::error::Error;
use crate::ledger::destination::{Destination, attach};
use crate::store::Store;
use crate::user_database::{Backend, UserDatabase, on_pool};

/// Which databases of a project this process relays from, and which it cannot.
#[derive(Clone, Default)]
pub(crate) struct Unattached(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// Databases that are relayed from: name and URL.
    attached: BTreeMap<String, String>,
    away: BTreeMap<String, Arc<UserDatabase>>,
}

impl Unattached {
    /// The database is relayed from.
    pub(crate) fn is_attached(&self, database: &UserDatabase) {
        let mut known = self.known();
        known.attached.insert(database.name.clone(), database.address());
        if known.away.get(&database.name).is_some_and(|one| one.address() == database.address()) {
            known.away.remove(&database.name);
        }
    }

    /// The database is to be relayed from, unless it is already.
    pub(crate) fn add(&self, database: &Arc<UserDatabase>) {
        let mut known = self.known();
        if known.attached.get(&database.name) == Some(&database.address()) {
            known.away.remove(&database.name);
        } else {
            known.away.insert(database.name.clone(), Arc::clone(database));
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<UserDatabase>> {
        self.known().away.values().cloned().collect()
    }

    /// Their names in the project.
    pub(crate) fn names(&self) -> Vec<String> {
        self.known().away.keys().cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects to a database, and checks which project and store its ledger belongs to.
pub(super) async fn attached(
    store: &Store,
    project: &ProjectName,
    database: &UserDatabase,
) -> Result<Destination, Error> {
    let opened = on_pool!(database.connect().await?, |pool| opened(pool, store.idle()));
    let attached = attach(opened, project, Some(&store.id)).await;
    attached.map_err(|source| Error::Destination { name: database.name.clone(), source: Box::new(source) })
}

fn opened<DB: Backend>(pool: &Pool<DB>, idle: Duration) -> crate::database::Database {
    DB::database(pool, idle)
}
