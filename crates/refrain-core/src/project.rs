//! A project according to its files: `refrain.toml` and one file per job.
//!
//! Text goes in, values or problems come out; the caller lists the files and reads the environment. Reading has two passes.
//! The first checks every file against one table of keys: which keys are valid, with which type and form. The JSON Schema
//! for editors is generated from the same table, so the two cannot differ. The second pass builds values from the valid
//! parts and checks how they fit together. Both continue after a problem, so people see all problems at once.
//!
//! Rejected: deriving the reader from Rust types. It stops at the first fault, cannot name the table that a misplaced key
//! belongs to, and its messages are for programmers.

mod across;
mod document;
mod environment;
mod job;
mod key_check;
mod keys;
mod names;
mod problem;
mod schema;
mod settings;
mod sql;
pub(crate) mod suggest;
#[cfg(test)]
mod tests;
mod text_form;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::feed::{Feed, FeedSource};
use crate::publish::{FilesPublish, PublishStep};
use crate::redact::Secret;
use crate::{CatchUp, JobName, ProjectName, Retry, Template, Timetable, WhileRunning};

pub use environment::passwords;
pub use problem::{Positions, Problem, SourceFile};
pub use schema::schema;
pub use sql::{Bind, Dialect, Sql};

use document::Document;
use key_check::KeyCheck;

/// The default store.
pub const STORE: &str = "sqlite:.refrain/refrain.db";

/// The most problems of one file that are shown.
const PROBLEMS_MAX: usize = 100;

/// The default time limit of an attempt.
pub const TIMEOUT: Duration = Duration::from_hours(1);

/// The files and the environment that a project is read from.
pub struct Files<'a> {
    /// `refrain.toml`.
    pub project: &'a SourceFile,
    /// The job files, each called `…/NAME.toml`.
    pub jobs: &'a [SourceFile],
    /// Reads an environment variable, which may hold any bytes.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
    /// Reads a `.sql` file next to the job files, by its name: the text, or why it cannot be read; `None` if it does not
    /// exist.
    pub sibling: &'a dyn Fn(&str) -> Option<Result<String, String>>,
}

/// A project as its files describe it.
#[derive(Debug, Clone)]
pub struct ProjectConfig {
    /// The name, which is part of every ledger key.
    pub name: ProjectName,
    /// The database of the store.
    pub store: Url,
    /// The databases that jobs read and write, by name.
    pub databases: BTreeMap<String, DatabaseConfig>,
    /// The jobs, sorted by name.
    pub jobs: Vec<JobFile>,
    /// Hosts that may resolve to private addresses although their names come from data.
    pub private_hosts: Vec<String>,
    /// All values that came from the environment, and the passwords in URLs.
    pub secrets: Vec<Secret>,
}

/// A database that jobs read and write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// The database URL.
    pub url: Url,
    /// The SQL dialect.
    pub dialect: Dialect,
    /// How it stores timestamps.
    pub time: TimeForm,
}

words! {
    /// How a database without a timestamp type stores timestamps.
    #[derive(Default)]
    TimeForm, "form of time" {
        /// `2026-06-09 12:00:00`, as SQLite's own functions write it.
        #[default]
        Text = "text",
        /// `2026-06-09T12:00:00Z`.
        Iso = "iso",
        /// Seconds since 1970.
        Unix = "unix",
        /// Milliseconds since 1970.
        UnixMs = "unix-ms",
    }
}

words! {
    /// What happens to a run whose process died half-way.
    #[derive(Default)]
    Interrupted, "rule for interrupted runs" {
        /// The next attempt executes it again.
        #[default]
        Again = "again",
        /// It waits for a decision of the operator.
        Hold = "hold",
    }
}

/// A URL with environment variables filled in. It prints without passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    value: String,
    shown: String,
    place: Option<(String, Range<usize>)>,
    has_plain_password: bool,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobFile {
    /// The name, which is that of the file.
    pub name: JobName,
    /// The path of the file, as messages show it.
    pub path: String,
    /// The timetable; `None` for a queued job.
    pub timetable: Option<Timetable>,
    /// Whether its runs are enqueued by key.
    pub queue: bool,
    /// What happens to missed windows.
    pub catch_up: CatchUp,
    /// What a window does while another run of its lane is open.
    pub while_running: WhileRunning,
    /// The version of the job's logic.
    pub version: u32,
    /// How often, and after what waits, a run is retried.
    pub retry: Retry,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How many of its runs may be running at once.
    pub concurrency: Option<u32>,
    /// How long after its tick a window that is not done counts as late.
    pub grace: Option<Duration>,
    /// Former names of the job.
    pub formerly: Vec<JobName>,
    /// The database of its statements.
    pub database: Option<String>,
    /// The query that returns the scopes of a window.
    pub scopes: Option<Sql>,
    /// The action.
    pub action: Action,
    /// Where the files that its command writes are published.
    pub files: Option<FilesPublish>,
    /// What happens to a run whose process died half-way.
    pub interrupted: Interrupted,
    /// The names of environment variables that its command receives.
    pub environment: Vec<String>,
}

/// The action of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Runs a program with arguments; the first element is the program.
    Command(Vec<Template>),
    /// Executes statements in one transaction.
    Sql(Vec<Sql>),
    /// Publishes the results of queries, all of one database at once.
    Publish(Vec<PublishStep>),
    /// Processes each unit of a source.
    Units(Box<Feed>),
}

impl JobFile {
    /// Whether a run needs the payload that was enqueued with its key.
    pub fn needs_payload(&self) -> bool {
        let is_payload = |name: &str| name.split('.').next() == Some(crate::values::PAYLOAD);
        let in_words = |words: &[Template]| words.iter().any(|word| word.names().any(is_payload));
        let in_sql = |sql: &Sql| sql.names().into_iter().any(is_payload);
        match &self.action {
            Action::Command(words) => in_words(words),
            Action::Sql(statements) => statements.iter().any(in_sql),
            Action::Publish(steps) => steps.iter().any(|step| in_sql(&step.query)),
            Action::Units(feed) => match &feed.source {
                FeedSource::Command(words) => in_words(words),
                FeedSource::Query(query) => in_sql(query),
            },
        }
    }
}

impl Url {
    /// A URL without secrets.
    pub fn plain(value: &str) -> Url {
        Url { value: value.to_owned(), shown: value.to_owned(), place: None, has_plain_password: false }
    }

    /// The URL with its secrets, for connecting.
    pub fn expose(&self) -> &str {
        &self.value
    }

    /// Whether its password is written in the file, where every reader of the file sees it.
    pub fn has_plain_password(&self) -> bool {
        self.has_plain_password
    }

    /// The file and the byte range where it is written; `None` for a default.
    pub fn place(&self) -> Option<(&str, Range<usize>)> {
        self.place.as_ref().map(|(path, span)| (path.as_str(), span.clone()))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shown)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({})", self.shown)
    }
}

/// Reads a project, or returns all problems, file by file and from top to bottom.
///
/// ```
/// use refrain_core::project::{Action, Files, SourceFile, read};
///
/// let project = SourceFile::new("refrain.toml", "[project]\nname = \"shop\"\n");
/// let export = SourceFile::new("jobs/export.toml", "schedule = \"@daily\"\ncommand = [\"./export.sh\", \"{ds}\"]\n");
/// let files = Files {
///     project: &project,
///     jobs: std::slice::from_ref(&export),
///     environment: &|_| None,
///     sibling: &|_| None,
/// };
/// let project = read(&files).unwrap();
/// assert_eq!(project.jobs[0].name.as_str(), "export");
/// assert!(matches!(&project.jobs[0].action, Action::Command(arguments) if arguments.len() == 2));
/// ```
pub fn read(files: &Files<'_>) -> Result<ProjectConfig, Vec<Problem>> {
    let PartialProject { project, problems, .. } = read_sound(files)?;
    if problems.is_empty() { Ok(project) } else { Err(problems) }
}

/// The valid part of a project.
#[derive(Debug, Clone)]
pub struct PartialProject {
    /// The project with the jobs that have no problems.
    pub project: ProjectConfig,
    /// The names of the other job files, without their extension.
    pub left_out: BTreeSet<String>,
    /// The problems of those files.
    pub problems: Vec<Problem>,
}

/// Reads the valid part of a project. A job is left out if its own file, or a file that it names, is invalid. If two jobs
/// conflict, both are left out, because either may be the intended one. A problem in `refrain.toml` fails the whole project.
///
/// ```
/// use refrain_core::project::{Files, SourceFile, read_sound};
///
/// let project = SourceFile::new("refrain.toml", "[project]\nname = \"shop\"\n");
/// let jobs = [
///     SourceFile::new("jobs/export.toml", "schedule = \"@daily\"\ncommand = [\"./export.sh\"]\n"),
///     SourceFile::new("jobs/import.toml", "shedule = \"@daily\"\ncommand = [\"./import.sh\"]\n"),
/// ];
/// let files = Files { project: &project, jobs: &jobs, environment: &|_| None, sibling: &|_| None };
/// let reading = read_sound(&files).unwrap();
/// assert_eq!(reading.project.jobs.len(), 1);
/// assert!(reading.left_out.contains("import"));
/// ```
pub fn read_sound(files: &Files<'_>) -> Result<PartialProject, Vec<Problem>> {
    let mut problems = Vec::new();
    let document = sound(files.project, &keys::PROJECT, files, &mut problems);
    let settings = settings::read(&document, files, &mut problems);
    let is_project_sound = problems.is_empty();
    let mut left_out = BTreeSet::new();
    let names = across::names(files.jobs, &mut problems, &mut left_out);
    let mut documents: Vec<Document<'_>> = Vec::new();
    for (source, name) in files.jobs.iter().zip(&names) {
        let before = problems.len();
        documents.push(sound(source, &keys::JOB, files, &mut problems));
        if problems.len() > before {
            left_out.insert(name.clone());
        }
    }
    let mut jobs = Vec::new();
    for (document, name) in documents.iter().zip(&names) {
        let reported = problems.iter().filter(|problem| problem.path == document.path()).count();
        if document.faults.is_empty() && reported < PROBLEMS_MAX {
            let before = problems.len();
            let read = job::JobReader::new(name, document.root(), &settings, files, &mut problems).read();
            if problems.len() > before || read.job.is_none() {
                left_out.insert(name.clone());
            }
            jobs.push((name, read));
        }
    }
    across::check(&jobs, &names, &mut problems, &mut left_out);
    let jobs = jobs.into_iter().filter(|(name, _)| !left_out.contains(*name));
    let mut jobs: Vec<JobFile> = jobs.filter_map(|(_, read)| read.job).collect();
    jobs.sort_by(|one, other| one.name.cmp(&other.name));
    let problems = in_order(problems, files);
    match settings.name {
        Some(name) if is_project_sound => {
            let (store, databases, private_hosts) =
                (settings.store, settings.databases, settings.private_hosts);
            let project =
                ProjectConfig { name, store, databases, jobs, private_hosts, secrets: secrets(files) };
            Ok(PartialProject { project, left_out, problems })
        }
        _ => Err(problems),
    }
}

/// All secrets of a project, even of an invalid one: code that quotes lines of its files hides them.
pub fn secrets(files: &Files<'_>) -> Vec<Secret> {
    let jobs = files.jobs.iter().map(|job| (job, &keys::JOB));
    let mut secrets: Vec<Secret> = Vec::new();
    for (source, table) in jobs.chain([(files.project, &keys::PROJECT)]) {
        let document = Document::read(source);
        secrets.extend(KeyCheck::of(table, &document.root(), files).secrets);
        secrets.extend(environment::passed_on(&document.root(), files.environment));
    }
    secrets.retain(|secret| !secret.expose().is_empty());
    secrets.sort_unstable();
    secrets.dedup();
    secrets
}

/// Checks a file against its table of keys. In a file with TOML errors, the parts outside of the errors are checked too.
fn sound<'s>(
    source: &'s SourceFile,
    table: &'static keys::Table,
    files: &Files<'_>,
    problems: &mut Vec<Problem>,
) -> Document<'s> {
    let document = Document::read(source);
    let key_check = KeyCheck::of(table, &document.root(), files);
    let positions = source.positions();
    let line = |problem: &Problem| positions.line(problem.span.start);
    let faulty: BTreeSet<usize> = document.faults.iter().map(line).collect();
    let is_sure = |problem: &Problem| {
        faulty.is_empty() || (!problem.span.is_empty() && !faulty.contains(&line(problem)))
    };
    problems.extend(key_check.problems.into_iter().filter(is_sure));
    problems.extend(document.faults.iter().cloned());
    document
}

fn in_order(mut problems: Vec<Problem>, files: &Files<'_>) -> Vec<Problem> {
    let file = |path: &str| {
        let jobs = files.jobs.iter().position(|source| source.path == path);
        if path == files.project.path { 0 } else { jobs.map_or(usize::MAX, |job| job + 1) }
    };
    problems.sort_by_cached_key(|problem| {
        (
            file(&problem.path),
            problem.path.clone(),
            problem.span.start,
            problem.span.end,
            problem.message.clone(),
        )
    });
    problems.dedup();
    shortened(&problems)
}

/// Keeps the first problems of each file. A file of another kind has a problem on every line: all of them would help
/// no one, and rendering them would take minutes.
fn shortened(problems: &[Problem]) -> Vec<Problem> {
    let mut kept: Vec<Problem> = Vec::new();
    for of_file in problems.chunk_by(|one, other| one.path == other.path) {
        kept.extend(of_file.iter().take(PROBLEMS_MAX).cloned());
        if let Some(next) = of_file.get(PROBLEMS_MAX) {
            let message = format!("{PROBLEMS_MAX} problems of this file are shown; there are more");
            kept.push(
                Problem::new(&next.path, next.span.clone(), message, "the next one")
                    .help("fix those above first"),
            );
        }
    }
    kept
}
