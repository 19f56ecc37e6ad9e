//! Where a command works: which project, which store, and how they are opened.
//!
//! A project is found upwards from the current directory, or named with `-C` or `REFRAIN_PROJECT`. A command that only keeps
//! a store well also works without one, on a store that is named.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use refrain::core::project::JobFile;
use refrain::core::{JobName, Person};
use refrain::{OpenOptions, Project, ProjectError, Refrain};

use crate::exit::{Exit, Fault};
use crate::output::Output;

/// The folder of the store that nobody has named.
const FOLDER: &str = ".refrain";

/// What was typed of it.
pub(crate) struct Context {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) store: Option<String>,
    pub(crate) output: Output,
    /// Who decides, if the command decides something.
    pub(crate) person: Option<Person>,
}

/// A store that is open, and the project whose it is.
pub(crate) struct Opened {
    pub(crate) refrain: Refrain,
    pub(crate) project: Project,
}

impl Opened {
    /// Lets go of everything.
    pub(crate) async fn close(self) {
        self.refrain.close().await;
        self.project.close().await;
    }
}

impl Context {
    /// The folder of the project.
    pub(crate) fn root(&self) -> Result<PathBuf, Fault> {
        let here = PathBuf::from(".");
        let from = self.folder.as_ref().unwrap_or(&here);
        // Resolved first: the folder above `a/..` is not `a`.
        let resolved = from.canonicalize();
        let resolved = resolved.map_err(|source| ProjectError::Unreadable { path: from.clone(), source })?;
        Ok(Project::find(&resolved)?)
    }

    /// The project, as far as its files are sound; jobs that are left out are named. What it hides is hidden in all that is
    /// printed from now on.
    pub(crate) fn project(&self) -> Result<Project, Fault> {
        let project = Project::load_sound(&self.root()?)?;
        self.output.hide(project.redactor());
        if let Some(problems) = project.left_out() {
            self.output.hide(problems.redactor.clone());
            let files = project.left_out_files().join(", ");
            self.output.say(format_args!(
                "left out, for their files are wrong: {files}; what is wrong: refrain check"
            ));
        }
        Ok(project)
    }

    /// The project, all of whose files must be sound.
    pub(crate) fn whole_project(&self) -> Result<Project, Fault> {
        let project = Project::load(&self.root()?)?;
        self.output.hide(project.redactor());
        Ok(project)
    }

    /// Its store, not yet opened, with its jobs.
    pub(crate) async fn opening(&self, project: &Project) -> Result<OpenOptions, Fault> {
        Ok(self.by(project.opening(self.store.as_deref()).await?))
    }

    fn by(&self, opening: OpenOptions) -> OpenOptions {
        match &self.person {
            Some(person) => opening.by(person.clone()),
            None => opening,
        }
    }

    /// Its store, which is made if need be and said so.
    pub(crate) async fn prepared(&self, project: &Project) -> Result<OpenOptions, Fault> {
        let opening = self.opening(project).await?;
        if self.store.is_none() && opening.is_new() {
            self.make_folder(project.root())?;
        }
        if opening.is_new() {
            self.output.say(format_args!("making a new store at {}", opening.address()));
        }
        Ok(opening)
    }

    /// Opens the store for work.
    pub(crate) async fn open(&self) -> Result<Opened, Fault> {
        self.open_for(self.project()?).await
    }

    /// The same for a project in which somebody has looked before: a mistyped name makes no store.
    pub(crate) async fn open_for(&self, project: Project) -> Result<Opened, Fault> {
        let refrain = self.prepared(&project).await?.open().await?;
        Ok(Opened { refrain, project })
    }

    /// Opens a store to look at: one that is not there is not made, and nothing is written.
    pub(crate) async fn look(&self) -> Result<Opened, Fault> {
        let project = self.project()?;
        let opening = self.by(project.opening_alone(self.store.as_deref())?);
        looked(opening, project).await
    }

    /// The same, with the databases that jobs write to.
    pub(crate) async fn look_around(&self) -> Result<Opened, Fault> {
        let project = self.project()?;
        let opening = self.opening(&project).await?;
        looked(opening, project).await
    }

    /// The same for commands that list: none if nothing has run yet. A store that somebody has named must be there.
    pub(crate) async fn look_if_any(&self) -> Result<Option<Opened>, Fault> {
        match self.look().await {
            Err(Fault::NoStore(_)) if self.store.is_none() => {
                self.output.say("nothing has run yet; next: refrain run JOB, refrain tick, or refrain serve");
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// Where nothing has run yet: there is nothing to list, but a job that does not exist is still a mistake.
    pub(crate) fn nothing_of(&self, name: Option<&str>) -> Result<Exit, Fault> {
        if let Some(name) = name {
            job(&self.project()?, name)?;
        }
        Ok(Exit::Done)
    }

    /// Says once that commands get the rights of root. Nothing is refused: in a container it may be the only user.
    pub(crate) fn say_if_root(&self) {
        if refrain::is_root() {
            self.output.say("this is root, and so are the commands of jobs; a user of their own is safer");
        }
    }

    /// Only the one that nobody has named: a mistyped path would make a second, empty store.
    fn make_folder(&self, root: &Path) -> Result<(), Fault> {
        let path = root.join(FOLDER);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => self.output.say(format_args!("made the directory {}", path.display())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(Fault::Directory { path, source }),
        }
        Ok(())
    }
}

/// The job of this name, or which there are.
pub(crate) fn job<'p>(project: &'p Project, name: &str) -> Result<&'p JobFile, Fault> {
    let name = JobName::parse(name)?;
    let found = project.jobs().iter().find(|job| job.name == name);
    if let Some(error) = project.why_left_out(name.as_str()) {
        return Err(error.into());
    }
    let known = || project.jobs().iter().map(|job| job.name.clone()).collect();
    found.ok_or_else(|| refrain::Error::UnknownJob { name, known: known() }.into())
}

async fn looked(opening: OpenOptions, project: Project) -> Result<Opened, Fault> {
    if opening.is_new() {
        return Err(Fault::NoStore(opening.address()));
    }
    let refrain = opening.only_looking().open().await?;
    Ok(Opened { refrain, project })
}
