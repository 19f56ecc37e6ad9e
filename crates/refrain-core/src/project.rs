//! A project as its files say it: `refrain.toml` and one file per job.
//!
//! Texts come in, values or problems come out; which files there are and what the environment holds is the caller's
//! to find out. Reading has two passes. The first holds every file against one table of keys: what is
//! known, of which type, in which form. The JSON Schema for editors is made of the same table, so the two cannot
//! differ. The second builds values of what is sound and checks what belongs together. Both go on after a
//! problem, so that a person sees all of them at once.
//!
//! Rejected: deriving the reader from Rust types. It stops at the first fault, knows nothing of the table a key
//! might have been meant for, and its words are a programmer's.

mod across;
mod document;
mod environment;
mod form;
mod job;
mod keys;
mod names;
mod problem;
mod schema;
mod settings;
mod shape;
mod sql;
pub(crate) mod suggest;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::feed::{Feed, FeedSource};
use crate::publish::{FilesPublish, Step};
use crate::redact::Secret;
use crate::{CatchUp, JobName, ProjectName, Retry, Template, Timetable, WhileRunning};

pub use environment::passwords;
pub use problem::{Positions, Problem, Source};
pub use schema::schema;
pub use sql::{Bind, Dialect, Sql};

use document::Document;
use shape::Shape;

/// Where a project's jobs stand unless it says otherwise.
pub const STORE: &str = "sqlite:.refrain/refrain.db";

/// The most problems of one file that are told.
const PROBLEMS_MAX: usize = 100;

/// How long an attempt may take unless its job says otherwise.
pub const TIMEOUT: Duration = Duration::from_hours(1);

/// What a project is read from.
pub struct Files<'a> {
    /// `refrain.toml`.
    pub project: &'a Source,
    /// The files of its jobs, each called `…/NAME.toml`.
    pub jobs: &'a [Source],
    /// The value of an environment variable, which may be any bytes.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
    /// The text of a `.sql` file beside the job files, by its name, or why it cannot be read; none if there is no such
    /// file.
    pub sibling: &'a dyn Fn(&str) -> Option<Result<String, String>>,
}

/// A project.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its name, which is part of every ledger key.
    pub name: ProjectName,
    /// Where runs are kept.
    pub store: Url,
    /// What jobs read and write, by name.
    pub databases: BTreeMap<String, Database>,
    /// Its jobs, by name.
    pub jobs: Vec<JobFile>,
    /// Hosts that may be private although their names come from data.
    pub private_hosts: Vec<String>,
    /// Every value that came from the environment, and the passwords in addresses.
    pub secrets: Vec<Secret>,
}

/// A database that jobs read and write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Where it is.
    pub url: Url,
    /// Whose SQL it speaks.
    pub dialect: Dialect,
    /// How it holds moments.
    pub time: TimeForm,
}

words! {
    /// How a database without a type for moments holds them.
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
    /// What becomes of a run whose process ended in the middle.
    #[derive(Default)]
    Interrupted, "rule for interrupted runs" {
        /// It is executed again.
        #[default]
        Again = "again",
        /// It waits for a person.
        Hold = "hold",
    }
}

/// An address with what the environment put into it. It prints as a person may see it.
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
    /// Its name, which is that of its file.
    pub name: JobName,
    /// Its file, as people call it.
    pub path: String,
    /// When it ticks; none for a job that is queued.
    pub timetable: Option<Timetable>,
    /// Whether its runs are enqueued by key.
    pub queue: bool,
    /// What becomes of missed windows.
    pub catch_up: CatchUp,
    /// What a window does while another runs.
    pub while_running: WhileRunning,
    /// The version of its logic.
    pub version: u32,
    /// How often, and after what waits, it is tried.
    pub retry: Retry,
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How many of its runs may be under way at once.
    pub concurrency: Option<u32>,
    /// How long after its tick a window may be not done before it is late.
    pub grace: Option<Duration>,
    /// What it was called before.
    pub formerly: Vec<JobName>,
    /// The database that its statements speak to.
    pub database: Option<String>,
    /// The query that gives the scopes of a window.
    pub scopes: Option<Sql>,
    /// What it does.
    pub action: Action,
    /// Where the files go that its command writes.
    pub files: Option<FilesPublish>,
    /// What becomes of a run whose process ended in the middle.
    pub interrupted: Interrupted,
    /// The names of environment variables that are passed on to its command.
    pub environment: Vec<String>,
}

/// What a job does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Runs a program with these arguments; the first is the program.
    Command(Vec<Template>),
    /// Executes statements, in one transaction.
    Sql(Vec<Sql>),
    /// Publishes what queries give; all of one database at once.
    Publish(Vec<Step>),
    /// Does something with each unit of a source.
    Units(Box<Feed>),
}

impl JobFile {
    /// Whether a run of it is about what it was given with its key.
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
    /// An address that holds no secret.
    pub fn plain(value: &str) -> Url {
        Url { value: value.to_owned(), shown: value.to_owned(), place: None, has_plain_password: false }
    }

    /// The address, for whoever connects.
    pub fn expose(&self) -> &str {
        &self.value
    }

    /// Whether its password stands in the file, where everyone reads it who reads the file.
    pub fn has_plain_password(&self) -> bool {
        self.has_plain_password
    }

    /// The file and the bytes of it where it is written; none for a default.
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

/// Reads a project, or says everything that is wrong with it, file by file and from top to bottom.
///
/// ```
/// use refrain_core::project::{Action, Files, Source, read};
///
/// let project = Source::new("refrain.toml", "[project]\nname = \"shop\"\n");
/// let export = Source::new("jobs/export.toml", "schedule = \"@daily\"\ncommand = [\"./export.sh\", \"{ds}\"]\n");
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
pub fn read(files: &Files<'_>) -> Result<Project, Vec<Problem>> {
    let Reading { project, problems, .. } = read_sound(files)?;
    if problems.is_empty() { Ok(project) } else { Err(problems) }
}

/// A project as far as its files are sound.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The project, with the jobs that nothing is wrong with.
    pub project: Project,
    /// The names of the files of all other jobs, without their endings.
    pub left_out: BTreeSet<String>,
    /// What is wrong with those.
    pub problems: Vec<Problem>,
}

/// Reads what is sound of a project. A job is left out if its own file is wrong, or a file that it names; and where two jobs
/// do not go together, both are: nobody knows which one is meant. What is wrong with `refrain.toml` is wrong with all.
///
/// ```
/// use refrain_core::project::{Files, Source, read_sound};
///
/// let project = Source::new("refrain.toml", "[project]\nname = \"shop\"\n");
/// let jobs = [
///     Source::new("jobs/export.toml", "schedule = \"@daily\"\ncommand = [\"./export.sh\"]\n"),
///     Source::new("jobs/import.toml", "shedule = \"@daily\"\ncommand = [\"./import.sh\"]\n"),
/// ];
/// let files = Files { project: &project, jobs: &jobs, environment: &|_| None, sibling: &|_| None };
/// let reading = read_sound(&files).unwrap();
/// assert_eq!(reading.project.jobs.len(), 1);
/// assert!(reading.left_out.contains("import"));
/// ```
pub fn read_sound(files: &Files<'_>) -> Result<Reading, Vec<Problem>> {
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
        let told = problems.iter().filter(|problem| problem.path == document.path()).count();
        if document.faults.is_empty() && told < PROBLEMS_MAX {
            let before = problems.len();
            let read = job::Reader::new(name, document.root(), &settings, files, &mut problems).read();
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
            let project = Project { name, store, databases, jobs, private_hosts, secrets: secrets(files) };
            Ok(Reading { project, left_out, problems })
        }
        _ => Err(problems),
    }
}

/// Every secret of a project, also of one that is broken: whoever shows a line of its files hides these in it.
pub fn secrets(files: &Files<'_>) -> Vec<Secret> {
    let jobs = files.jobs.iter().map(|job| (job, &keys::JOB));
    let mut secrets: Vec<Secret> = Vec::new();
    for (source, table) in jobs.chain([(files.project, &keys::PROJECT)]) {
        let document = Document::read(source);
        secrets.extend(Shape::of(table, &document.root(), files).secrets);
        secrets.extend(environment::passed_on(&document.root(), files.environment));
    }
    secrets.retain(|secret| !secret.expose().is_empty());
    secrets.sort_unstable();
    secrets.dedup();
    secrets
}

/// A file, held against its table. Of a file that is no TOML, what stands beside its faults is told too.
fn sound<'s>(
    source: &'s Source,
    table: &'static keys::Table,
    files: &Files<'_>,
    problems: &mut Vec<Problem>,
) -> Document<'s> {
    let document = Document::read(source);
    let shape = Shape::of(table, &document.root(), files);
    let positions = source.positions();
    let line = |problem: &Problem| positions.line(problem.span.start);
    let faulty: BTreeSet<usize> = document.faults.iter().map(line).collect();
    let is_sure = |problem: &Problem| {
        faulty.is_empty() || (!problem.span.is_empty() && !faulty.contains(&line(problem)))
    };
    problems.extend(shape.problems.into_iter().filter(is_sure));
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

/// The first problems of each file. A file that is something else altogether has one on every line, and nobody reads
/// them all; but drawing them would take minutes.
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
