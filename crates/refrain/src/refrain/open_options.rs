//! Options for opening a store: to work, to decide, or to look.
//!
//! A look writes nothing: it registers no job, attaches no database, and reads what other processes have recorded.

use std::sync::Arc;

use jiff::Timestamp;
use refrain_core::{Person, ProjectName};

use super::Refrain;
use crate::database::{Address, Database};
use crate::effect::sending_worker::SendingWorker;
use crate::engine::Engine;
use crate::engine::notify::{Hints, Notifier};
use crate::engine::service::{Stop, Wake};
use crate::engine::settings::Settings;
use crate::engine::unattached::Unattached;
use crate::engine::vitals::Vitals;
use crate::error::Error;
use crate::job::{Definition, Jobs};
use crate::ledger::LedgerError;
use crate::ledger::destination::{Destination, Destinations, attach, look};
use crate::project::JobFiles;
use crate::store::{Reality, Store};
use crate::user_database::{Backend, UserDatabase};

/// A store that is about to be opened.
#[derive(Debug)]
pub struct OpenOptions {
    pub(super) address: Address,
    pub(super) project: ProjectName,
    pub(super) settings: Settings,
    pub(super) connections: u32,
    jobs: Vec<Definition>,
    /// The jobs of the project that have files, if it has files.
    files: Option<JobFiles>,
    pub(super) destinations: Vec<Named>,
    /// Databases that do not answer.
    unattached: Vec<Arc<UserDatabase>>,
    /// Whether jobs write to a SQLite file.
    has_file: bool,
    simulated: Option<Timestamp>,
    purpose: Purpose,
    pub(super) person: Option<Person>,
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Jobs are registered, and their schedules put in force.
    Work,
    /// An operator decides something about what is recorded; jobs stay as they are.
    Decide,
    /// Nothing is written.
    Look,
}

/// A database that jobs write to.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) database: Database,
    /// Its name in the project, if the store may be opened without it: only the jobs that need it fail then.
    pub(super) spare: Option<Arc<UserDatabase>>,
}

/// The default number of connections to a PostgreSQL store.
const CONNECTIONS: u32 = 8;

impl OpenOptions {
    /// A store by its URL, with the defaults of everything else.
    pub(crate) fn at(address: Address, project: ProjectName) -> OpenOptions {
        OpenOptions {
            address,
            project,
            settings: Settings::default(),
            connections: CONNECTIONS,
            jobs: Vec::new(),
            files: None,
            destinations: Vec::new(),
            unattached: Vec::new(),
            has_file: false,
            simulated: None,
            purpose: Purpose::Work,
            person: None,
        }
    }

    /// Adds a job.
    #[must_use]
    pub fn job(mut self, definition: Definition) -> OpenOptions {
        self.jobs.push(definition);
        self
    }

    /// Names the jobs that have a file: a job that had one and is not among them opens no more windows.
    pub(crate) fn files(self, files: JobFiles) -> OpenOptions {
        OpenOptions { files: Some(files), ..self }
    }

    /// Names a database beside the store that jobs write to: its intents are relayed to the store. It is checked when
    /// the store is opened; on PostgreSQL the tables of the ledger must exist
    /// ([`Ledger::migrate`](crate::Ledger::migrate)). The store's own database need not be named.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let store = format!("sqlite:{}", directory.path().join("refrain.db").display());
    /// # let file = sqlx::sqlite::SqliteConnectOptions::new().filename(directory.path().join("shop.db"));
    /// let shop = sqlx::SqlitePool::connect_with(file.create_if_missing(true)).await?;
    /// let refrain = refrain::Refrain::at(&store, "shop")?.destination(&shop).open().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn destination<DB: Backend>(mut self, pool: &sqlx::Pool<DB>) -> OpenOptions {
        let database = DB::database(pool, self.settings.idle());
        self.has_file |= database.is_sqlite();
        self.destinations.push(Named { database, spare: None });
        self
    }

    /// Records that jobs write to a SQLite file, whether or not it answers now.
    pub(crate) fn beside_a_file(mut self) -> OpenOptions {
        self.has_file = true;
        self
    }

    /// Like [`destination`](Self::destination), for one of several databases of a project: if it does not answer, or
    /// has no ledger yet, jobs of the others work on.
    pub(crate) fn spare_destination<DB: Backend>(
        mut self,
        pool: &sqlx::Pool<DB>,
        spare: &Arc<UserDatabase>,
    ) -> OpenOptions {
        let database = DB::database(pool, self.settings.idle());
        self.destinations.push(Named { database, spare: Some(Arc::clone(spare)) });
        self
    }

    /// Names a database of the project that does not answer now.
    pub(crate) fn unattached(mut self, database: &Arc<UserDatabase>) -> OpenOptions {
        self.unattached.push(Arc::clone(database));
        self
    }

    /// Sets how the engine behaves.
    #[must_use]
    pub fn settings(self, settings: Settings) -> OpenOptions {
        OpenOptions { settings, ..self }
    }

    /// Sets how many connections to a PostgreSQL store may be open at once.
    #[must_use]
    pub fn connections(self, connections: u32) -> OpenOptions {
        OpenOptions { connections: connections.max(2), ..self }
    }

    /// Opens it read-only: nothing is made, upgraded or written, neither in the store nor in the databases that jobs
    /// write to. The store must exist. A job that the store has never seen is unknown then.
    #[must_use]
    pub fn only_looking(self) -> OpenOptions {
        OpenOptions { purpose: Purpose::Look, ..self }
    }

    /// Opens it for a decision about recorded work, such as cancelling a run: no job is registered, and no timetable
    /// is put in force.
    #[must_use]
    pub fn only_deciding(self) -> OpenOptions {
        OpenOptions { purpose: Purpose::Decide, ..self }
    }

    /// Sets the clock that schedules read, never that of leases. It makes a new store simulated for good; one in which
    /// something real has happened is refused when it is opened, and a simulated one when it is to be served.
    #[must_use]
    pub fn simulated(self, now: Timestamp) -> OpenOptions {
        OpenOptions { simulated: Some(now), ..self }
    }

    /// Opens it for an operator: decisions are recorded under this name.
    #[must_use]
    pub fn by(self, person: Person) -> OpenOptions {
        OpenOptions { person: Some(person), ..self }
    }

    /// The URL for display, without the password.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Whether opening it will make its file.
    pub fn is_new(&self) -> bool {
        matches!(&self.address, Address::Sqlite { path } if !path.exists())
    }

    /// Opens the store, and puts the timetables of the jobs in force.
    pub async fn open(self) -> Result<Refrain, Error> {
        let idle = self.settings.idle();
        let reality = if self.simulated.is_some() { Reality::Simulated } else { Reality::Real };
        let (address, project, connections) = (&self.address, &self.project, self.connections);
        let store = match self.purpose {
            Purpose::Look => Box::pin(Store::look(address, project, connections, idle)).await?,
            Purpose::Work | Purpose::Decide => {
                Box::pin(Store::open(address, project, connections, idle, reality)).await?
            }
        };
        let database = store.database.clone();
        let opened = self.opened(store).await;
        if opened.is_err() {
            database.close().await;
        }
        opened
    }

    async fn opened(self, store: Store) -> Result<Refrain, Error> {
        if self.purpose == Purpose::Work {
            store.is_sure()?;
        }
        let now = match self.simulated {
            Some(now) => now,
            None => store.schedule_time().await?,
        };
        let registry = if self.purpose == Purpose::Work {
            Box::pin(super::jobs::register(&store, self.jobs, self.files.as_ref(), now)).await?
        } else {
            super::jobs::recognise(&store, self.jobs).await?
        };
        let unattached = Unattached::default();
        self.unattached.iter().for_each(|database| unattached.add(database));
        let attached =
            Box::pin(attached(&store, &self.project, self.destinations, self.purpose, &unattached)).await?;
        let destinations = Destinations::relaying(attached, self.has_file || store.database.is_sqlite());
        let (wake, hints) = (Wake::default(), Hints::default());
        let engine = Engine {
            store: store.clone(),
            project: self.project,
            jobs: Jobs::of(registry),
            settings: self.settings,
            wake: wake.clone(),
            hints: hints.clone(),
            destinations,
            unattached,
            vitals: Vitals::default(),
        };
        Ok(Refrain {
            engine,
            notifier: Notifier::new(store, wake, hints),
            stop: Stop::new(),
            simulated: self.simulated,
            person: self.person,
            sending: SendingWorker::default(),
        })
    }
}

/// Checks which project and store the ledgers belong to, in the databases whose intents are relayed: the named ones,
/// and the store's own.
async fn attached(
    store: &Store,
    project: &ProjectName,
    named: Vec<Named>,
    purpose: Purpose,
    unattached: &Unattached,
) -> Result<Vec<Destination>, Error> {
    let attach = async |database: Database| match purpose {
        Purpose::Work => attach(database, project, Some(&*store.id)).await.map(Some),
        // Such commands also work on a database of another store, such as a backup.
        Purpose::Decide => attach(database, project, None).await.map(Some),
        Purpose::Look => look(database.only_reading(), project).await,
    };
    let mut attached: Vec<Destination> = attach(store.database.clone()).await?.into_iter().collect();
    for Named { database, spare } in named {
        match (attach(database.with_idle(store.idle())).await, spare) {
            (Ok(destination), spare) => {
                if let Some(database) = spare {
                    unattached.is_attached(&database);
                }
                attached.extend(destination);
            }
            (Err(error), Some(spare)) if !matches!(error, LedgerError::OtherStore { .. }) => {
                let (name, error) = (spare.name.as_str(), error.to_string());
                tracing::warn!(database = name, error, "this database is left out; its jobs will fail");
                unattached.add(&spare);
            }
            (Err(error), Some(spare)) => {
                return Err(Error::Destination { name: spare.name.clone(), source: Box::new(error) });
            }
            (Err(error), None) => return Err(error.into()),
        }
    }
    Ok(attached)
}
