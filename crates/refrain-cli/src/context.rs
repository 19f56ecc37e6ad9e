//! Which project and store a command works on, and how they are opened.
//!
//! A project is found upwards from the current directory, or named with `-C` or `REFRAIN_PROJECT`.

use std::fs::DirBuilder;
use std::io;
use std::mem;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use refrain::core::project::JobFile;
use refrain::core::{JobName, Person};
use refrain::project::{Project, ProjectError};
use refrain::{OpenOptions, Refrain};

use crate::exit::{CliError, Exit};
use crate::output::Output;

/// The folder of the default store.
const FOLDER: &str = ".refrain";

/// The global options of a command.
pub(crate) struct Context {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) store: Option<String>,
    pub(crate) output: Output,
    /// The operator, if the command decides something.
    pub(crate) person: Option<Person>,
    /// What was opened to look.
    pub(crate) looks: Looks,
}

/// Stores and projects that are looked at. They are closed however the command ends: until then, a SQLite file may have an empty
/// log beside it.
#[derive(Default)]
pub(crate) struct Looks(Mutex<(Vec<Refrain>, Vec<Project>)>);

impl Looks {
    fn lock(&self) -> MutexGuard<'_, (Vec<Refrain>, Vec<Project>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of all of them.
    pub(crate) async fn close(&self) {
        let (stores, projects) = mem::take(&mut *self.lock());
        for store in stores {
            store.close().await;
        }
        for project in projects {
            project.close().await;
        }
    }
}

/// An open store, and its project.
pub(crate) struct OpenProject {
    pub(crate) refrain: Refrain,
    pub(crate) project: Project,
}

impl OpenProject {
    /// Closes the store and the databases of the project.
    pub(crate) async fn close(self) {
        self.refrain.close().await;
        self.project.close().await;
    }
}

impl Context {
    /// The folder of the project.
    pub(crate) fn root(&self) -> Result<PathBuf, CliError> {
        let here = PathBuf::from(".");
        let from = self.folder.as_ref().unwrap_or(&here);
        // Resolved first: the folder above `a/..` is not `a`.
        let resolved = from.canonicalize();
        let resolved = resolved.map_err(|source| ProjectError::Unreadable { path: from.clone(), source })?;
        Ok(Project::find(&resolved)?)
    }

    /// The project, without the jobs whose files are invalid: those are reported. Its secrets are hidden in all output
    /// from now on.
    pub(crate) fn project(&self) -> Result<Project, CliError> {
        let project = Project::load_sound(&self.root()?)?;
        self.output.hide(project.redactor());
        if let Some(problems) = project.left_out() {
            self.output.hide(problems.redactor.clone());
            let files = project.left_out_files().join(", ");
            self.output.say(format_args!(
                "ignored, because their files are invalid: {files}; what is wrong: refrain check"
            ));
        }
        Ok(project)
    }

    /// The project; an invalid file is an error.
    pub(crate) fn whole_project(&self) -> Result<Project, CliError> {
        let project = Project::load(&self.root()?)?;
        self.output.hide(project.redactor());
        Ok(project)
    }

    fn by(&self, opening: OpenOptions) -> OpenOptions {
        match &self.person {
            Some(person) => opening.by(person.clone()),
            None => opening,
        }
    }

    /// The store of a project, not yet opened, with its jobs. If it is created, that is reported.
    pub(crate) async fn prepared(&self, project: &Project) -> Result<OpenOptions, CliError> {
        let opening = self.by(project.opening(self.store.as_deref()).await?);
        if self.store.is_none() && opening.is_new() {
            self.make_folder(project.root())?;
        }
        if opening.is_new() {
            self.output.say(format_args!("creating a new store at {}", opening.address()));
        }
        Ok(opening)
    }

    /// Opens the store for work.
    pub(crate) async fn open(&self) -> Result<OpenProject, CliError> {
        self.open_for(self.project()?).await
    }

    /// Opens the store for work once the name of the job has been checked: a typing error must not create a store.
    pub(crate) async fn open_for(&self, project: Project) -> Result<OpenProject, CliError> {
        let refrain = self.prepared(&project).await?.open().await?;
        Ok(OpenProject { refrain, project })
    }

    /// Opens an existing store for reading.
    pub(crate) async fn look(&self) -> Result<OpenProject, CliError> {
        let project = self.project_to_look()?;
        let opening = project.opening_alone(self.store.as_deref())?;
        self.looked(opening, project).await
    }

    /// Opens an existing store for reading, and the databases that jobs write to.
    pub(crate) async fn look_around(&self) -> Result<OpenProject, CliError> {
        let project = self.project_to_look()?;
        let opening = project.opening(self.store.as_deref()).await?;
        self.looked(opening, project).await
    }

    fn project_to_look(&self) -> Result<Project, CliError> {
        let project = self.project()?.only_looking();
        self.looks.lock().1.push(project.clone());
        Ok(project)
    }

    async fn looked(&self, opening: OpenOptions, project: Project) -> Result<OpenProject, CliError> {
        if opening.is_new() {
            return Err(CliError::NoStore(opening.address()));
        }
        let refrain = opening.only_looking().open().await?;
        self.looks.lock().0.push(refrain.clone());
        Ok(OpenProject { refrain, project })
    }

    /// Opens a store for a decision about what is recorded in it: one that is not there is not made.
    pub(crate) async fn decide(&self) -> Result<OpenProject, CliError> {
        let project = self.project()?;
        let opening = self.by(project.opening_alone(self.store.as_deref())?);
        decided(opening, project).await
    }

    /// Opens the store to guard a command of the caller. It is created if there is none; jobs and their databases are left alone.
    pub(crate) async fn guard(&self) -> Result<OpenProject, CliError> {
        let project = self.project()?;
        let opening = project.opening_alone(self.store.as_deref())?;
        if self.store.is_none() && opening.is_new() {
            self.make_folder(project.root())?;
        }
        let refrain = opening.only_deciding().open().await?;
        Ok(OpenProject { refrain, project })
    }

    /// The same, with the databases that jobs write to.
    pub(crate) async fn decide_around(&self) -> Result<OpenProject, CliError> {
        let project = self.project()?;
        let opening = self.by(project.opening(self.store.as_deref()).await?);
        decided(opening, project).await
    }

    /// Opens an existing store for a list; none if nothing has run yet. A store named with `--store` must exist.
    pub(crate) async fn look_if_any(&self) -> Result<Option<OpenProject>, CliError> {
        match self.look().await {
            Err(CliError::NoStore(_)) if self.store.is_none() => {
                self.output.say("nothing has run yet; next: refrain run JOB, refrain tick, or refrain serve");
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// The end of a list where nothing has run yet; a job that does not exist is still an error.
    pub(crate) fn nothing_of(&self, name: Option<&str>) -> Result<Exit, CliError> {
        if let Some(name) = name {
            job(&self.project()?, name)?;
        }
        Ok(Exit::Done)
    }

    /// Warns that commands run as root. Nothing is refused: in a container it may be the only user.
    pub(crate) fn say_if_root(&self) {
        if refrain::host::is_root() {
            self.output.say("running as root, and so do the commands of jobs; a separate user is safer");
        }
    }

    /// Creates the folder of the default store only: a typing error in `--store` would create a second, empty store.
    fn make_folder(&self, root: &Path) -> Result<(), CliError> {
        let path = root.join(FOLDER);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => self.output.say(format_args!("created the directory {}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(CliError::Directory { path, source }),
        }
        Ok(())
    }
}

/// The job of this name, or an error that lists the jobs.
pub(crate) fn job<'p>(project: &'p Project, name: &str) -> Result<&'p JobFile, CliError> {
    let name = JobName::parse(name)?;
    let found = project.jobs().iter().find(|job| job.name == name);
    if let Some(error) = project.why_left_out(name.as_str()) {
        return Err(error.into());
    }
    let known = || project.jobs().iter().map(|job| job.name.clone()).collect();
    found.ok_or_else(|| refrain::Error::UnknownJob { name, known: known() }.into())
}

async fn decided(opening: OpenOptions, project: Project) -> Result<OpenProject, CliError> {
    if opening.is_new() {
        return Err(CliError::NoStore(opening.address()));
    }
    let refrain = opening.only_deciding().open().await?;
    Ok(OpenProject { refrain, project })
}
