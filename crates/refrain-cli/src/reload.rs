//! Other files, while a process serves: read again on SIGHUP and when one of them has changed.
//!
//! A job whose file is wrong goes on as it was, and the other files are taken; a project whose `refrain.toml` is wrong changes
//! nothing. What is wrong is said. Files are looked at and not watched: what tells of changes differs between systems and is
//! silent on network disks.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use refrain::{FILE, JOBS, Project, ProjectError, Refrain};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinError;

use crate::exit::Fault;
use crate::left_out::{LeftOut, log};
use crate::output::Output;

/// How often to look at the files.
const LOOK: Duration = Duration::from_secs(1);

/// What there was of each file: when it was written, and how long it was.
type Seen = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The files as they were before they were read: what is written while a process begins is not missed.
pub(crate) struct Watch {
    root: PathBuf,
    hangup: Signal,
    seen: Seen,
}

impl Watch {
    pub(crate) fn begin(root: PathBuf) -> Result<Watch, Fault> {
        let hangup = signal(SignalKind::hangup()).map_err(Fault::Signals)?;
        let seen = look(&root);
        Ok(Watch { root, hangup, seen })
    }

    /// Reads the project anew whenever there is reason to, until it is dropped.
    pub(crate) async fn go_on(
        mut self,
        refrain: Refrain,
        mut project: Project,
        left_out: LeftOut,
        output: Output,
    ) {
        loop {
            let is_asked = tokio::select! {
                asked = self.hangup.recv() => asked.is_some(),
                () = tokio::time::sleep(LOOK) => false,
            };
            let now = look(&self.root);
            if is_asked || now != self.seen {
                // Before it is read: what is written meanwhile is seen the next time.
                self.seen = now;
                if let Some(next) = reload(&self.root, &refrain, &project, &left_out, output).await {
                    project = next;
                }
            }
        }
    }
}

/// Takes the files as they are now, as far as they are sound. Gives the project that is in force then; none if it is the one
/// before.
async fn reload(
    root: &Path,
    refrain: &Refrain,
    before: &Project,
    left_out: &LeftOut,
    output: Output,
) -> Option<Project> {
    tracing::info!("files have changed, or it was asked for: they are being read");
    let folder = root.to_owned();
    // Not on a thread of the runtime: a large file, or a slow disk, must not keep a signal from being heard.
    let loaded = tokio::task::spawn_blocking(move || Project::load_sound(&folder)).await;
    let project = match loaded.unwrap_or_else(|error| Err(failed(root, error))) {
        Ok(project) => project.with_former_jobs(before),
        Err(error) => {
            let fault = Fault::from(error);
            fault.redactor().into_iter().for_each(|redactor| output.hide(redactor.clone()));
            log(&fault);
            tracing::error!(
                error = fault.to_string(),
                "the files cannot be read; the jobs stay as they were"
            );
            return None;
        }
    };
    output.hide(project.redactor());
    project.left_out().iter().for_each(|problems| output.hide(problems.redactor.clone()));
    if let Err(error) = refrain.replace_project(&project).await {
        tracing::error!(%error, "the files were read, and not taken; the jobs stay as they were");
        return None;
    }
    left_out.say(&project);
    let files = project.left_out_files().join(", ");
    if files.is_empty() {
        tracing::info!(jobs = refrain.jobs().len(), "the files were read again");
    } else {
        let jobs = refrain.jobs().len();
        tracing::error!(
            jobs,
            files,
            "the files were read again, but for some that are wrong: their jobs stay as they were"
        );
    }
    Some(project)
}

fn failed(root: &Path, error: JoinError) -> ProjectError {
    ProjectError::Unreadable { path: root.to_owned(), source: io::Error::other(error) }
}

fn look(root: &Path) -> Seen {
    let mut paths = vec![root.join(FILE)];
    if let Ok(entries) = std::fs::read_dir(root.join(JOBS)) {
        paths.extend(entries.flatten().map(|entry| entry.path()));
    }
    let seen = paths.into_iter().filter_map(|path| {
        let metadata = std::fs::metadata(&path).ok()?;
        Some((path, (metadata.modified().ok(), metadata.len())))
    });
    seen.collect()
}
