//! The facade: everything that a program, a command or a page does with Refrain, one method each.

mod alarms;
mod backup;
mod cancel;
mod checkpoints;
mod decisions;
mod doubts;
mod effects;
mod enqueue;
mod job_view;
mod jobs;
mod migrate;
mod output;
mod patience;
mod pause;
mod prune;
mod reconcile;
mod recover;
mod run;
mod serve;
mod show;
mod status;
mod tick;
mod trace;
mod units;
mod wanted;
mod why;
mod workers;

use std::sync::Arc;

use jiff::Timestamp;
use refrain_core::{JobName, Person, ProjectName};

pub use crate::engine::vitals::Unwell;
pub use alarms::AlarmRecord;
pub use cancel::Cancelling;
pub use checkpoints::{CheckpointError, CheckpointOf, CheckpointRecord, POSITION_BYTES_MAX};
pub use decisions::DecisionRecord;
pub use doubts::{DoubtRecord, Settlement};
pub use effects::EffectRecord;
pub use enqueue::Enqueued;
pub use job_view::JobView;
pub use output::{OutputPlace, OutputRecord};
pub use patience::Patience;
pub use recover::{Adopted, Statement};
pub use run::{Ask, Did, RunReport};
pub use serve::{Serving, StopHandle};
pub use show::{AttemptRecord, DedupeRecord, RunRecord};
pub use status::JobRecord;
pub use trace::Trace;
pub use units::{AttemptUnits, UnitDedupes};
pub use why::Why;
pub use workers::WorkerRecord;

use crate::database::{Address, Database};
use crate::engine::Engine;
use crate::engine::away::Away;
use crate::engine::bell::{Bell, Hints};
use crate::engine::service::{Stop, Wake};
use crate::engine::settings::Settings;
use crate::engine::vitals::Vitals;
use crate::error::Error;
use crate::job::{Definition, Jobs};
use crate::ledger::destination::{Destination, Destinations, attach};
use crate::ledger::{Backend, LedgerError};
use crate::project::JobFiles;
use crate::project::databases::Database as ProjectDatabase;
use crate::store::fsck::{self, Finding};
use crate::store::queue_line::JobNumber;
use crate::store::{Reality, Store};

/// A project's store, open, with the jobs that this process knows.
///
/// ```
/// use refrain::{Definition, Job, JobError, Refrain, Run};
///
/// struct Welcome;
///
/// impl Job for Welcome {
///     const NAME: &'static str = "welcome";
///     async fn run(&self, run: &mut Run) -> Result<(), JobError> {
///         println!("welcome, {}", run.key());
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
/// let refrain = Refrain::at(&address, "shop")?.job(Definition::of(Welcome)?).open().await?;
///
/// assert!(refrain.enqueue("welcome", "42", None).await?.is_new());
/// assert!(!refrain.enqueue("welcome", "42", None).await?.is_new(), "the key is known, for ever");
///
/// let report = refrain.tick().await?;
/// assert_eq!(report.ended, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Refrain {
    engine: Engine,
    bell: Bell,
    stop: Stop,
    simulated: Option<Timestamp>,
    /// Who decides what is decided here; none if a program decides and names no person.
    person: Option<Person>,
}

/// A store that is about to be opened.
#[derive(Debug)]
pub struct OpenOptions {
    address: Address,
    project: ProjectName,
    settings: Settings,
    connections: u32,
    jobs: Vec<Definition>,
    /// The jobs of the project that have files, if it has files.
    files: Option<JobFiles>,
    destinations: Vec<Named>,
    /// Those that do not answer.
    away: Vec<Arc<ProjectDatabase>>,
    /// Whether jobs write to a SQLite file.
    has_file: bool,
    simulated: Option<Timestamp>,
    only_looks: bool,
    person: Option<Person>,
}

/// A database that jobs write to.
#[derive(Debug)]
struct Named {
    database: Database,
    /// Which one it is of the project, if the store may be opened without it: only the jobs that need it fail then.
    spare: Option<Arc<ProjectDatabase>>,
}

/// Connections to a PostgreSQL store, unless said otherwise.
const CONNECTIONS: u32 = 8;

impl Refrain {
    /// Names a store: `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`, and the project whose it is.
    pub fn at(address: &str, project: &str) -> Result<OpenOptions, Error> {
        Ok(Refrain::at_address(Address::parse(address)?, ProjectName::parse(project)?))
    }

    pub(crate) fn at_address(address: Address, project: ProjectName) -> OpenOptions {
        OpenOptions {
            address,
            project,
            settings: Settings::default(),
            connections: CONNECTIONS,
            jobs: Vec::new(),
            files: None,
            destinations: Vec::new(),
            away: Vec::new(),
            has_file: false,
            simulated: None,
            only_looks: false,
            person: None,
        }
    }

    /// Looks for what must not be.
    pub async fn fsck(&self) -> Result<Vec<Finding>, Error> {
        Ok(fsck::fsck(&self.engine.store).await?)
    }

    /// Where the store is, for people: without the password.
    pub fn address(&self) -> String {
        self.store().address()
    }

    /// The names of the jobs that this process knows.
    pub fn jobs(&self) -> Vec<JobName> {
        let mut names: Vec<JobName> = self.engine.jobs.now().names().cloned().collect();
        names.sort();
        names
    }

    /// Where to say that [`run`](Self::run) and [`tick`](Self::tick) are to end, here and in clones. A [`Serving`] has a
    /// handle of its own.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::of(&self.stop)
    }

    /// Lets go of the database.
    pub async fn close(self) {
        self.engine.store.database.close().await;
    }

    fn job(&self, name: &str) -> Result<(JobNumber, Arc<Definition>), Error> {
        let name = JobName::parse(name)?;
        self.engine.jobs.find(&name).ok_or_else(|| Error::UnknownJob { name, known: self.jobs() })
    }

    /// A job that is known here, or at least to the store.
    async fn recorded_job(&self, name: &str) -> Result<(JobNumber, Option<Arc<Definition>>), Error> {
        let unknown = match self.job(name) {
            Ok((number, definition)) => return Ok((number, Some(definition))),
            Err(error) => error,
        };
        let Error::UnknownJob { name, .. } = &unknown else { return Err(unknown) };
        let recorded = crate::store::jobs::find(&self.engine.store, name).await?;
        recorded.map(|row| (row.id, None)).ok_or(unknown)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.engine.store
    }
}

impl OpenOptions {
    /// Adds a job.
    #[must_use]
    pub fn job(mut self, definition: Definition) -> OpenOptions {
        self.jobs.push(definition);
        self
    }

    /// Says which jobs have a file: one that had one and is not among them opens nothing any more.
    pub(crate) fn files(self, files: JobFiles) -> OpenOptions {
        OpenOptions { files: Some(files), ..self }
    }

    /// Names a database beside the store that jobs write to: what is intended there is relayed to the store. It is looked
    /// at when the store is opened; on PostgreSQL the tables of the ledger must be there
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

    /// Jobs write to a SQLite file, whether or not it answers now.
    pub(crate) fn beside_a_file(mut self) -> OpenOptions {
        self.has_file = true;
        self
    }

    /// The same for one of several databases of a project: if it does not answer, or has no ledger yet, the others work on.
    pub(crate) fn spare_destination<DB: Backend>(
        mut self,
        pool: &sqlx::Pool<DB>,
        spare: &Arc<ProjectDatabase>,
    ) -> OpenOptions {
        let database = DB::database(pool, self.settings.idle());
        self.destinations.push(Named { database, spare: Some(Arc::clone(spare)) });
        self
    }

    /// The same for one that does not answer now.
    pub(crate) fn away(mut self, database: &Arc<ProjectDatabase>) -> OpenOptions {
        self.away.push(Arc::clone(database));
        self
    }

    /// How the engine behaves.
    #[must_use]
    pub fn settings(self, settings: Settings) -> OpenOptions {
        OpenOptions { settings, ..self }
    }

    /// How many connections to a PostgreSQL store may be open at once.
    #[must_use]
    pub fn connections(self, connections: u32) -> OpenOptions {
        OpenOptions { connections: connections.max(2), ..self }
    }

    /// Opens it to look and not to work: no job is registered, no timetable is put in force. A job that the store has never
    /// seen is not known then.
    #[must_use]
    pub fn only_looking(self) -> OpenOptions {
        OpenOptions { only_looks: true, ..self }
    }

    /// Sets the clock that schedules read, never that of leases. It makes a new store simulated for good; one in which
    /// something real has happened is refused when it is opened, and a simulated one when it is to be served.
    #[must_use]
    pub fn simulated(self, now: Timestamp) -> OpenOptions {
        OpenOptions { simulated: Some(now), ..self }
    }

    /// Opens it for a person: what is decided through it is written down under that name.
    #[must_use]
    pub fn by(self, person: Person) -> OpenOptions {
        OpenOptions { person: Some(person), ..self }
    }

    /// The address for people, without the password.
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
        let store =
            Box::pin(Store::open(&self.address, &self.project, self.connections, idle, reality)).await?;
        if !self.only_looks {
            store.is_sure()?;
        }
        let now = match self.simulated {
            Some(now) => now,
            None => store.schedule_time().await?,
        };
        let registry = if self.only_looks {
            jobs::recognise(&store, self.jobs).await?
        } else {
            Box::pin(jobs::register(&store, self.jobs, self.files.as_ref(), now)).await?
        };
        // Whoever only looks may look into what belongs to another store: a backup, say.
        let owner = if self.only_looks { None } else { Some(&*store.id) };
        let away = Away::default();
        self.away.iter().for_each(|database| away.add(database));
        let attached = Box::pin(attached(&store, &self.project, self.destinations, owner, &away)).await?;
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
            away,
            vitals: Vitals::default(),
        };
        Ok(Refrain {
            engine,
            bell: Bell::new(store, wake, hints),
            stop: Stop::new(),
            simulated: self.simulated,
            person: self.person,
        })
    }
}

/// Looks whose the ledgers are in the databases whose intents are relayed: those that were named, and the store's own.
async fn attached(
    store: &Store,
    project: &ProjectName,
    named: Vec<Named>,
    owner: Option<&str>,
    away: &Away,
) -> Result<Vec<Destination>, Error> {
    let mut attached = vec![attach(store.database.clone(), project, owner).await?];
    for Named { database, spare } in named {
        match (attach(database.with_idle(store.idle()), project, owner).await, spare) {
            (Ok(destination), spare) => {
                if let Some(database) = spare {
                    away.is_attached(&database);
                }
                attached.push(destination);
            }
            (Err(error), Some(spare)) if !matches!(error, LedgerError::OtherStore { .. }) => {
                let (name, error) = (spare.name.as_str(), error.to_string());
                tracing::warn!(database = name, error, "this database is left out; its jobs will fail");
                away.add(&spare);
            }
            (Err(error), Some(spare)) => {
                return Err(Error::Destination { name: spare.name.clone(), source: Box::new(error) });
            }
            (Err(error), None) => return Err(error.into()),
        }
    }
    Ok(attached)
}
