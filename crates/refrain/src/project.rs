//! Finds a project on disk, reads its files, and makes jobs of them.
//!
//! The core decides what the files mean; this module adds the folder, the environment and the databases. An invalid job file
//! stops its own job and no other; an invalid `refrain.toml` stops all.

mod definition;
mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use refrain_core::feed::Apply;
use refrain_core::project::{self as core, Action, JobFile, Problem, SourceFile};
use refrain_core::publish::{Mode, Publish, PublishStep};
use refrain_core::redact::Redactor;
use refrain_core::{JobName, ParseError, ProjectName, Redo, RunName};

use crate::database::Address;
use crate::error::Error;
use crate::user_database::{UserDatabase, on_pool};

pub use crate::user_database::DatabaseUnavailable;
pub use files::{JOBS_FOLDER, PROJECT_FILE};

/// A project whose files were read.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    files: Arc<core::ProjectConfig>,
    /// Made once and shared by all jobs: its search tables are larger than the secrets.
    redactor: Redactor,
    databases: BTreeMap<String, Arc<UserDatabase>>,
    left_out: Arc<LeftOut>,
}

/// Jobs that are left out because of problems.
#[derive(Debug, Clone, Default)]
struct LeftOut {
    /// The names of their files, without the extension.
    names: BTreeSet<String>,
    problems: Option<Problems>,
}

/// Why a project cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// No project was found.
    #[error(
        "there is no {PROJECT_FILE} in {} or above it\n  create one with `refrain init`, or name the folder: refrain -C DIR …", .from.display()
    )]
    NotFound {
        /// Where the search began.
        from: PathBuf,
    },
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Files have problems.
    #[error("{}", counted(.0))]
    Problems(Problems),
    /// A URL or a name is not valid.
    #[error(transparent)]
    Refused(#[from] Error),
}

/// All problems of a project, with the files they are in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Problems {
    /// The problems.
    pub problems: Vec<Problem>,
    /// All files that were read.
    pub sources: Vec<SourceFile>,
    /// Removes secrets that came from the environment.
    pub redactor: Redactor,
}

/// What a redo of a run does a second time, for a question to the operator.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct RedoQuestion {
    /// The run, as the caller wrote it.
    pub run: String,
    /// What is done once more: `` `./export.sh` is executed once more ``.
    pub what: String,
}

/// A database URL whose path, if it has one, is relative to a folder.
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
    /// The folder of a project: this folder, or the nearest parent with a `refrain.toml`.
    pub fn find(from: &Path) -> Result<PathBuf, ProjectError> {
        let found = from.ancestors().find(|folder| folder.join(PROJECT_FILE).is_file());
        found.map(Path::to_owned).ok_or_else(|| ProjectError::NotFound { from: from.to_owned() })
    }

    /// Reads a project, or gives all its problems. Opens no database.
    pub fn load(root: &Path) -> Result<Project, ProjectError> {
        let project = Project::read(root, Err)?;
        match &project.left_out.problems {
            None => Ok(project),
            Some(problems) => Err(ProjectError::Problems(problems.clone())),
        }
    }

    /// Reads the valid jobs of a project. A job with an invalid file is left out, and so are two jobs that contradict each
    /// other. Only an invalid `refrain.toml` is an error. Opens no database.
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
            databases.insert(name.clone(), UserDatabase::new(name, address, file));
        }
        let redactor = Redactor::new(&files.secrets);
        Ok(Project { root, files: Arc::new(files), redactor, databases, left_out: Arc::new(left_out) })
    }

    /// The same project, whose databases are only looked at: nothing is made or changed in them.
    #[must_use]
    pub fn only_looking(mut self) -> Project {
        self.databases.values_mut().for_each(|database| *database = database.only_looking());
        self
    }

    /// The problems of the jobs that were left out, if any.
    pub fn left_out(&self) -> Option<&Problems> {
        self.left_out.problems.as_ref()
    }

    /// The files of the jobs that were left out, relative to the project.
    pub fn left_out_files(&self) -> Vec<String> {
        self.left_out.names.iter().map(|name| format!("{JOBS_FOLDER}/{name}.toml")).collect()
    }

    /// Why the job of this name was left out, if it was.
    pub fn why_left_out(&self, job: &str) -> Option<ProjectError> {
        let problems = self.left_out.problems.as_ref().filter(|_| self.left_out.names.contains(job))?;
        Some(ProjectError::Problems(problems.clone()))
    }

    /// Keeps a job that is left out here as it was in the former project, unless another job has taken its name or a table that
    /// it overwrites.
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
        let mut files = core::ProjectConfig::clone(&self.files);
        files.jobs.extend(former);
        files.jobs.sort_by(|one, other| one.name.cmp(&other.name));
        self.files = Arc::new(files);
        self
    }

    /// The names of its jobs, and whether these are all.
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

    /// Its job files.
    pub fn jobs(&self) -> &[JobFile] {
        &self.files.jobs
    }

    /// The keys whose URL contains a plain password, for example `[store] url`.
    pub fn plain_passwords(&self) -> Vec<String> {
        let store = self.files.store.has_plain_password().then(|| "[store] url".to_owned());
        let databases = self.files.databases.iter().filter(|(_, database)| database.url.has_plain_password());
        store.into_iter().chain(databases.map(|(name, _)| format!("[databases] {name}"))).collect()
    }

    /// Removes secrets that came from the environment. Cheap to clone.
    pub fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// What the operator must confirm before the finished work of a run is done once more; none if it only replaces its own rows
    /// or files. Refused if the work cannot be repeated. A job alone stands for its latest window.
    pub fn redo_question(&self, run: &str) -> Result<Option<RedoQuestion>, Error> {
        let is_named = run.contains(['@', '#']);
        let name = if is_named { run.parse::<RunName>()?.job().clone() } else { JobName::parse(run)? };
        match Redo::of(self.job(&name)?) {
            Redo::Asks(what) => Ok(Some(RedoQuestion { run: run.to_owned(), what })),
            Redo::Refused(why) => Err(Error::Unrepeatable { run: run.to_owned(), why }),
            _ => Ok(None),
        }
    }

    /// The file of a job.
    fn job(&self, name: &JobName) -> Result<&JobFile, Error> {
        let known = || self.files.jobs.iter().map(|job| job.name.clone()).collect();
        let found = self.files.jobs.iter().find(|job| job.name == *name);
        found.ok_or_else(|| Error::UnknownJob { name: name.clone(), known: known() })
    }

    /// The names of the databases that jobs write to.
    pub fn destinations(&self) -> Vec<&str> {
        self.written().map(|database| database.name.as_str()).collect()
    }

    /// Creates or migrates the tables of the ledger in every database that jobs write to. Returns the applied migrations by
    /// database.
    pub async fn migrate(&self) -> Result<Vec<(String, Vec<&'static str>)>, Error> {
        let mut taken = Vec::new();
        for database in self.written() {
            let steps = on_pool!(database.connect().await?, |pool| crate::Ledger::migrate(pool).await);
            let name = database.name.clone();
            let refused =
                |source| Error::Destination { name: database.name.clone(), source: Box::new(source) };
            taken.push((name, steps.map_err(refused)?));
        }
        Ok(taken)
    }

    /// The migrations of a PostgreSQL database that jobs write to, as a script; none for any other database.
    pub fn migration_script(&self, database: &str) -> Option<String> {
        let database = self.written().find(|one| one.name == database)?;
        database.is_postgres().then(crate::Ledger::<sqlx::Postgres>::migration_script)
    }

    /// Closes its databases.
    pub async fn close(&self) {
        for database in self.databases.values() {
            database.close().await;
        }
    }

    /// Where its store is, or another one that was named.
    pub(crate) fn store_address(&self, other: Option<&str>) -> Result<Address, ParseError> {
        let address = Address::parse(other.unwrap_or(self.files.store.expose()))?;
        Ok(if other.is_some() { address } else { inside(&self.root, address) })
    }

    /// The databases that jobs write to.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Arc<UserDatabase>> {
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

/// The tables in which a job replaces rows, each with its database.
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
    /// Whether these are all. If not, a missing job may have been deleted, or renamed in a file that cannot be read.
    pub(crate) is_whole: bool,
}

fn database_of(step: &PublishStep) -> Option<&str> {
    match &step.publish {
        Publish::Table(publish) => Some(&publish.database),
        Publish::Files(_) => None,
    }
}
