//! The files of a project: `refrain.toml`, and one file per job in `jobs/`.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use refrain_core::project::{Files, Problem, Reading, Source, read_sound, secrets};
use refrain_core::redact::Redactor;

use super::{Problems, ProjectError};

/// What the file of a project is called.
pub const FILE: &str = "refrain.toml";
/// The folder of its jobs.
pub const JOBS: &str = "jobs";

/// The longest file that is read.
const BYTES_MAX: u64 = 1024 * 1024;
/// The most jobs of a project.
const JOBS_MAX: usize = 10_000;

/// Reads what is sound of them, and says what is wrong with the rest. `on_unreadable` decides about a job file that the
/// system does not give us: an error ends the reading, else its job is left out.
pub(super) fn read(
    root: &Path,
    on_unreadable: impl Fn(ProjectError) -> Result<(), ProjectError>,
) -> Result<(Reading, Option<Problems>), ProjectError> {
    let project = Source::new(FILE, text(&root.join(FILE))?);
    let folder = root.join(JOBS);
    let (mut jobs, mut unreadable) = (Vec::new(), Vec::new());
    for path in listed(&folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let shown = format!("{JOBS}/{name}");
        match text(&path) {
            Ok(text) => jobs.push(Source::new(shown, text)),
            Err(error) => {
                let message = error.to_string();
                on_unreadable(error)?;
                let label = "the job is left out".to_owned();
                unreadable.push(Problem { path: shown, span: 0..0, message, label, help: None });
            }
        }
    }
    let environment = |name: &str| std::env::var(name).ok();
    let sibling = |name: &str| sibling(&folder, name);
    let files = Files { project: &project, jobs: &jobs, environment: &environment, sibling: &sibling };
    let in_files = |problems: Vec<Problem>| {
        let redactor = Redactor::new(&secrets(&files));
        let mut sources: Vec<Source> = std::iter::once(project.clone()).chain(jobs.iter().cloned()).collect();
        for problem in &problems {
            if !sources.iter().any(|source| source.path == problem.path) {
                sources.extend(beside(&problem.path, &sibling));
            }
        }
        Problems { problems, sources, redactor }
    };
    let mut reading = read_sound(&files).map_err(|problems| ProjectError::Problems(in_files(problems)))?;
    let name_of = |problem: &Problem| {
        let name = problem.path.strip_prefix(JOBS)?.strip_prefix('/')?.strip_suffix(".toml")?;
        Some(name.to_owned())
    };
    reading.left_out.extend(unreadable.iter().filter_map(name_of));
    reading.problems.extend(unreadable);
    let problems = Some(std::mem::take(&mut reading.problems)).filter(|problems| !problems.is_empty());
    let problems = problems.map(in_files);
    Ok((reading, problems))
}

/// A file that a job names, by the path that people call it by.
fn beside(path: &str, sibling: &dyn Fn(&str) -> Option<String>) -> Option<Source> {
    let name = path.strip_prefix(JOBS)?.strip_prefix('/')?;
    Some(Source::new(path, sibling(name)?))
}

/// The job files, in the order of their names; a project need not have any.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, ProjectError> {
    let unreadable = |source| ProjectError::Unreadable { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    if paths.len() > JOBS_MAX {
        return Err(unreadable(io::Error::other(format!("{} jobs; {JOBS_MAX} is the most", paths.len()))));
    }
    paths.sort();
    Ok(paths)
}

fn text(path: &Path) -> Result<String, ProjectError> {
    limited(path).map_err(|source| ProjectError::Unreadable { path: path.to_owned(), source })
}

fn limited(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("it is longer than {BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// A file beside the job files. Its name is a name and not a path: nothing outside the folder is read.
fn sibling(folder: &Path, name: &str) -> Option<String> {
    let is_name = Path::new(name).file_name().is_some_and(|only| only == name);
    if is_name { limited(&folder.join(name)).ok() } else { None }
}
