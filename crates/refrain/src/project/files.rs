//! The files of a project: `refrain.toml`, and one file per job in `jobs/`.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use refrain_core::project::{Files, PartialProject, Problem, SourceFile, read_sound, secrets};
use refrain_core::redact::Redactor;
use rustix::fs::OFlags;

use super::{Problems, ProjectError};

/// The name of the project file.
pub const PROJECT_FILE: &str = "refrain.toml";
/// The folder of the job files.
pub const JOBS_FOLDER: &str = "jobs";

/// The most bytes of a file.
const BYTES_MAX: u64 = 1024 * 1024;
/// The most jobs of a project.
const JOBS_MAX: usize = 10_000;

/// Reads the valid files, and gives the problems of the others. `on_unreadable` decides about a job file that cannot be read:
/// an error ends the reading, else the job is left out.
pub(super) fn read(
    root: &Path,
    on_unreadable: impl Fn(ProjectError) -> Result<(), ProjectError>,
) -> Result<(PartialProject, Option<Problems>), ProjectError> {
    let folder = root.join(JOBS_FOLDER);
    let bounds = Bounds::of(root);
    bounds.holds_folder(&folder)?;
    let project = SourceFile::new(PROJECT_FILE, bounds.text(&root.join(PROJECT_FILE))?);
    let (mut jobs, mut unreadable) = (Vec::new(), Vec::new());
    for path in listed(&folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let shown = format!("{JOBS_FOLDER}/{name}");
        match bounds.text(&path) {
            Ok(text) => jobs.push(SourceFile::new(shown, text)),
            Err(error) => {
                let message = error.to_string();
                on_unreadable(error)?;
                let label = "the job is left out".to_owned();
                unreadable.push(Problem { path: shown, span: 0..0, message, label, help: None });
            }
        }
    }
    let environment = |name: &str| std::env::var_os(name);
    let sibling = |name: &str| bounds.sibling(&folder, name);
    let files = Files { project: &project, jobs: &jobs, environment: &environment, sibling: &sibling };
    let in_files = |problems: Vec<Problem>| {
        let redactor = Redactor::new(&secrets(&files));
        let mut sources: Vec<SourceFile> =
            std::iter::once(project.clone()).chain(jobs.iter().cloned()).collect();
        for problem in &problems {
            if !sources.iter().any(|source| source.path == problem.path) {
                sources.extend(beside(&problem.path, &sibling));
            }
        }
        Problems { problems, sources, redactor }
    };
    let mut reading = read_sound(&files).map_err(|problems| ProjectError::Problems(in_files(problems)))?;
    let name_of = |problem: &Problem| {
        let name = problem.path.strip_prefix(JOBS_FOLDER)?.strip_prefix('/')?.strip_suffix(".toml")?;
        Some(name.to_owned())
    };
    reading.left_out.extend(unreadable.iter().filter_map(name_of));
    reading.problems.extend(unreadable);
    let problems = Some(std::mem::take(&mut reading.problems)).filter(|problems| !problems.is_empty());
    let problems = problems.map(in_files);
    Ok((reading, problems))
}

/// A file that a job names, by its path in the project.
fn beside(path: &str, sibling: &dyn Fn(&str) -> Option<Result<String, String>>) -> Option<SourceFile> {
    let name = path.strip_prefix(JOBS_FOLDER)?.strip_prefix('/')?;
    Some(SourceFile::new(path, sibling(name)?.ok()?))
}

/// The job files, in the order of their names. A project may have none.
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
        return Err(unreadable(io::Error::other(format!("{} jobs; the maximum is {JOBS_MAX}", paths.len()))));
    }
    paths.sort();
    Ok(paths)
}

/// The folder that links must not leave: problems are shown with the lines of the file, and a user who may create a link in a
/// project must not read other files with the permissions of the user who checks it.
struct Bounds(Option<PathBuf>);

impl Bounds {
    fn of(root: &Path) -> Bounds {
        Bounds(root.canonicalize().ok())
    }

    fn hold(&self, target: &Path) -> bool {
        self.0.as_ref().is_some_and(|root| target.starts_with(root))
    }

    /// Checks the folder itself: if it is a link, none of its files is one.
    fn holds_folder(&self, folder: &Path) -> Result<(), ProjectError> {
        match folder.canonicalize() {
            Ok(target) if !self.hold(&target) => {
                let source = io::Error::other(
                    "it is a link to a folder outside the project; put the folder itself here",
                );
                Err(ProjectError::Unreadable { path: folder.to_owned(), source })
            }
            // Any other error is reported when the folder is listed.
            _ => Ok(()),
        }
    }

    fn text(&self, path: &Path) -> Result<String, ProjectError> {
        self.limited(path).map_err(|source| ProjectError::Unreadable { path: path.to_owned(), source })
    }

    /// A file beside the job files, or why it cannot be read; none if the name is a path.
    fn sibling(&self, folder: &Path, name: &str) -> Option<Result<String, String>> {
        let is_name = Path::new(name).file_name().is_some_and(|only| only == name);
        if !is_name {
            return None;
        }
        match self.limited(&folder.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(|error| error.to_string())),
        }
    }

    /// The text of a regular file. The type is checked before it is opened, because opening a pipe blocks and opening a device
    /// may have effects; and again afterwards.
    fn limited(&self, path: &Path) -> io::Result<String> {
        if fs::symlink_metadata(path)?.is_symlink() {
            let target = path.canonicalize()?;
            if !self.hold(&target) {
                return Err(io::Error::other(
                    "it is a link to a file outside the project; put the file itself here",
                ));
            }
        }
        let is_file = |metadata: &fs::Metadata| {
            if metadata.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
        };
        is_file(&fs::metadata(path)?)?;
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        is_file(&file.metadata()?)?;
        let mut bytes = Vec::new();
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(io::Error::other(format!("it has more than {BYTES_MAX} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
    }
}
