//! A project on disk: finds it, reads its files, and makes jobs of what they say.
//!
//! What the files mean is decided in the core; here are only the folder, the environment and the databases. One job file
//! that is wrong stops its own job and no other; a `refrain.toml` that is wrong stops all.

pub(crate) mod databases;
mod definition;
mod files;
mod unopened;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain_core::feed::Apply;
use refrain_core::project::{self as core, Action, JobFile, Problem, Source};
use refrain_core::publish::{Mode, Publish, Step};
use refrain_core::redact::Redactor;
use refrain_core::{JobName, ProjectName};

use crate::database::Address;
use crate::error::Error;
use crate::refrain::{OpenOptions, Refrain};
use databases::{Connected, Database};

pub use files::{FILE, JOBS};
pub use unopened::Unopened;

/// What is said of a database that does not answer when a store is opened.
const AWAY: &str =
    "this database does not answer; until it does, its jobs fail and nothing is relayed from it";

/// A project that was read.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    files: Arc<core::Project>,
    /// Made once: what is searched for is larger than the secrets, and every job has a use for it.
    redactor: Redactor,
    databases: BTreeMap<String, Arc<Database>>,
    left_out: Arc<LeftOut>,
}

/// Jobs that are left out, and why.
#[derive(Debug, Clone, Default)]
struct LeftOut {
    /// The names of their files, without their endings.
    names: BTreeSet<String>,
    problems: Option<Problems>,
}

/// Why a project cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// There is none.
    #[error(
        "there is no {FILE} in {} or above it\n  begin with `refrain init`, or name the folder: refrain -C DIR …", .from.display()
    )]
    NotFound {
        /// Where the search began.
        from: PathBuf,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Files are wrong.
    #[error("{}", counted(.0))]
    Problems(Problems),
    /// An address or a name cannot be taken.
    #[error(transparent)]
    Refused(#[from] Error),
}

/// All that is wrong with a project, and the files it is in.
#[derive(Debug, Clone)]
pub struct Problems {
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// All files that were read.
    pub sources: Vec<Source>,
    /// Hides what came from the environment.
    pub redactor: Redactor,
}

/// An address whose path, if it has one, is meant from a folder.
fn inside(folder: &Path, address: Address) -> Address {
    match address {
        Address::Sqlite { path } => Address::Sqlite { path: folder.join(path) },
        server @ Address::Postgres { .. } => server,
    }
}

fn counted(Problems { problems, .. }: &Problems) -> String {
    let files: BTreeSet<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    let number = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    format!("{} in {}", number(problems.len(), "problem"), number(files.len(), "file"))
}

impl Project {
    /// The folder of a project: this one, or the nearest above it that has a `refrain.toml`.
    pub fn find(from: &Path) -> Result<PathBuf, ProjectError> {
        let found = from.ancestors().find(|folder| folder.join(FILE).is_file());
        found.map(Path::to_owned).ok_or_else(|| ProjectError::NotFound { from: from.to_owned() })
    }

    /// Reads a project, or says everything that is wrong with it. Nothing is opened.
    pub fn load(root: &Path) -> Result<Project, ProjectError> {
        let project = Project::read(root, Err)?;
        match &project.left_out.problems {
            None => Ok(project),
            Some(problems) => Err(ProjectError::Problems(problems.clone())),
        }
    }

    /// Reads what is sound of a project: a job whose file is wrong is left out, and so are two jobs that do not go
    /// together. Only a wrong `refrain.toml` is an error. Nothing is opened.
    pub fn load_sound(root: &Path) -> Result<Project, ProjectError> {
        Project::read(root, |_| Ok(()))
    }

    fn read(
        root: &Path,
        on_unreadable: impl Fn(ProjectError) -> Result<(), ProjectError>,
    ) -> Result<Project, ProjectError> {
        let root = std::path::absolute(root)
            .map_err(|source| ProjectError::Unreadable { path: root.to_owned(), source })?;
        let (reading, problems) = files::read(&root, on_unreadable)?;
        let (files, left_out) = (reading.project, LeftOut { names: reading.left_out, problems });
        let mut databases = BTreeMap::new();
        for (name, file) in &files.databases {
            let address = Address::parse(file.url.expose()).map_err(Error::from)?;
            let address = inside(&root, address);
            databases.insert(name.clone(), Database::new(name, address, file));
        }
        let redactor = Redactor::new(&files.secrets);
        Ok(Project { root, files: Arc::new(files), redactor, databases, left_out: Arc::new(left_out) })
    }

    /// What is wrong with the jobs that were left out, if any were.
    pub fn left_out(&self) -> Option<&Problems> {
        self.left_out.problems.as_ref()
    }

    /// The files of the jobs that were left out, as people call them.
    pub fn left_out_files(&self) -> Vec<String> {
        self.left_out.names.iter().map(|name| format!("{JOBS}/{name}.toml")).collect()
    }

    /// Why the job of this name was left out, if it was.
    pub fn why_left_out(&self, job: &str) -> Option<ProjectError> {
        let problems = self.left_out.problems.as_ref().filter(|_| self.left_out.names.contains(job))?;
        Some(ProjectError::Problems(problems.clone()))
    }

    /// A job that is left out here goes on as it was in the project before, if nothing else has taken its place since: its
    /// name, or a table that it overwrites.
    #[must_use]
    pub fn with_former_jobs(mut self, before: &Project) -> Project {
        let taken = |job: &JobFile| {
            let tables = overwritten_by(job);
            self.files.jobs.iter().any(|one| {
                one.formerly.contains(&job.name)
                    || overwritten_by(one).iter().any(|table| tables.contains(table))
            })
        };
        let is_left_out = |job: &&JobFile| self.left_out.names.contains(job.name.as_str());
        let former = before.files.jobs.iter().filter(is_left_out).filter(|job| !taken(job));
        let former: Vec<JobFile> = former.cloned().collect();
        let mut files = core::Project::clone(&self.files);
        files.jobs.extend(former);
        files.jobs.sort_by(|one, other| one.name.cmp(&other.name));
        self.files = Arc::new(files);
        self
    }

    /// The names of its jobs, of those too that are left out; whether all of them could be told.
    pub(crate) fn job_files(&self) -> JobFiles {
        let names = self.files.jobs.iter().map(|job| job.name.clone()).collect();
        JobFiles { names, is_whole: self.left_out.names.is_empty() }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its name.
    pub fn name(&self) -> &ProjectName {
        &self.files.name
    }

    /// Its jobs, as their files say.
    pub fn jobs(&self) -> &[JobFile] {
        &self.files.jobs
    }

    /// Where passwords stand in its files, each as a person would call the place: `[store] url`.
    pub fn plain_passwords(&self) -> Vec<String> {
        let store = self.files.store.has_plain_password().then(|| "[store] url".to_owned());
        let databases = self.files.databases.iter().filter(|(_, database)| database.url.has_plain_password());
        store.into_iter().chain(databases.map(|(name, _)| format!("[databases] {name}"))).collect()
    }

    /// Hides what came from the environment. All of them share their memory.
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// Its store, not yet opened, with its jobs. Another store may be named.
    pub fn opening_alone(&self, store: Option<&str>) -> Result<OpenOptions, Error> {
        let address = Address::parse(store.unwrap_or(self.files.store.expose()))?;
        let address = if store.is_some() { address } else { inside(&self.root, address) };
        let opening = Refrain::at_address(address, self.files.name.clone()).files(self.job_files());
        Ok(self.definitions()?.into_iter().fold(opening, OpenOptions::job))
    }

    /// The same, with the databases that its jobs write to.
    pub async fn opening(&self, store: Option<&str>) -> Result<OpenOptions, Error> {
        let mut opening = self.opening_alone(store)?;
        for database in self.written() {
            if !database.is_postgres() {
                opening = opening.beside_a_file();
            }
            opening = match database.connect().await {
                Ok(Connected::Sqlite(pool)) => opening.spare_destination(pool, database),
                Ok(Connected::Postgres(pool)) => opening.spare_destination(pool, database),
                Err(error) => {
                    let (name, error) = (database.name.as_str(), error.to_string());
                    tracing::warn!(database = name, error, "{AWAY}");
                    opening.away(database)
                }
            };
        }
        Ok(opening)
    }

    /// The names of the databases that jobs write to.
    pub fn destinations(&self) -> Vec<&str> {
        self.written().map(|database| database.name.as_str()).collect()
    }

    /// Makes the tables of the ledger, or brings them up to date, in every database that jobs write to. Gives what was done,
    /// by database.
    pub async fn migrate(&self) -> Result<Vec<(String, Vec<&'static str>)>, Error> {
        let mut taken = Vec::new();
        for database in self.written() {
            let steps = match database.connect().await? {
                Connected::Sqlite(pool) => crate::Ledger::migrate(pool).await,
                Connected::Postgres(pool) => crate::Ledger::migrate(pool).await,
            };
            let name = database.name.clone();
            let refused =
                |source| Error::Destination { name: database.name.clone(), source: Box::new(source) };
            taken.push((name, steps.map_err(refused)?));
        }
        Ok(taken)
    }

    /// What migrating does in a database on PostgreSQL that jobs write to, as a script; none for any other database.
    pub fn migration_script(&self, database: &str) -> Option<String> {
        let database = self.written().find(|one| one.name == database)?;
        database.is_postgres().then(crate::Ledger::<sqlx::Postgres>::migration_script)
    }

    /// Lets go of its databases.
    pub async fn close(&self) {
        for database in self.databases.values() {
            database.close().await;
        }
    }

    /// The databases that jobs write to.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.values().filter(|database| {
            self.files.jobs.iter().any(|job| written_by(job).any(|name| name == database.name))
        })
    }
}

/// The names of the databases that a job writes to.
fn written_by(job: &JobFile) -> impl Iterator<Item = &str> {
    let names: Vec<&str> = match &job.action {
        Action::Sql(_) => job.database.as_deref().into_iter().collect(),
        Action::Publish(steps) => steps.iter().filter_map(database_of).collect(),
        Action::Units(feed) => match &feed.apply {
            Apply::Publish(publish) => vec![publish.database.as_str()],
            Apply::Command { .. } | Apply::Http { .. } => job.database.as_deref().into_iter().collect(),
        },
        Action::Command(_) => Vec::new(),
    };
    names.into_iter()
}

/// The tables that a job replaces rows of, each with its database.
fn overwritten_by(job: &JobFile) -> Vec<(&str, String)> {
    let Action::Publish(steps) = &job.action else { return Vec::new() };
    let tables = steps.iter().filter_map(|step| match &step.publish {
        Publish::Table(publish) if publish.mode == Mode::Overwrite => {
            Some((publish.database.as_str(), publish.table.to_string().to_lowercase()))
        }
        _ => None,
    });
    tables.collect()
}

/// The jobs of a project that have files.
#[derive(Debug, Clone)]
pub(crate) struct JobFiles {
    pub(crate) names: BTreeSet<JobName>,
    /// Whether these are all. If not, nobody knows whether a job that is missing is gone, or was renamed in a file that
    /// cannot be read.
    pub(crate) is_whole: bool,
}

fn database_of(step: &Step) -> Option<&str> {
    match &step.publish {
        Publish::Table(publish) => Some(&publish.database),
        Publish::Files(_) => None,
    }
}
