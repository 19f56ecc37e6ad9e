//! Reloads the files of the project while `serve` runs, on SIGHUP and when one of them has changed.
//!
//! A job whose file is invalid stays as it was, and the other files are applied; an invalid `refrain.toml` changes
//! nothing. Problems are logged. Files are polled: notifications differ between systems and do not work on network disks.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use refrain::Refrain;
use refrain::project::{JOBS_FOLDER, PROJECT_FILE, Project, ProjectError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinError;

use crate::exit::CliError;
use crate::left_out::{LeftOut, log};
use crate::output::Output;

/// How often to poll the files.
const LOOK: Duration = Duration::from_secs(1);

/// When each file was written, and its length.
type Seen = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The files as they were before they were read: a change during the start is not missed.
pub(crate) struct Watch {
    root: PathBuf,
    hangup: Signal,
    seen: Seen,
}

impl Watch {
    pub(crate) fn begin(root: PathBuf) -> Result<Watch, CliError> {
        let hangup = signal(SignalKind::hangup()).map_err(CliError::Signals)?;
        let seen = look(&root);
        Ok(Watch { root, hangup, seen })
    }

    /// Reloads the project when a file has changed or SIGHUP asks for it, until it is dropped.
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
                // Set before reading: a change meanwhile is seen the next time.
                self.seen = now;
                if let Some(next) = reload(&self.root, &refrain, &project, &left_out, output).await {
                    project = next;
                }
            }
        }
    }
}

/// Applies the valid files. Returns the new project; none if the one before stays.
async fn reload(
    root: &Path,
    refrain: &Refrain,
    before: &Project,
    left_out: &LeftOut,
    output: Output,
) -> Option<Project> {
    tracing::info!("reloading the project: files have changed, or SIGHUP asked for it");
    let folder = root.to_owned();
    // Not on a thread of the runtime: a large file or a slow disk must not delay a signal.
    let loaded = tokio::task::spawn_blocking(move || Project::load_sound(&folder)).await;
    let project = match loaded.unwrap_or_else(|error| Err(failed(root, error))) {
        Ok(project) => project.with_former_jobs(before),
        Err(error) => {
            let fault = CliError::from(error);
            fault.redactor().into_iter().for_each(|redactor| output.hide(redactor.clone()));
            log(&fault);
            tracing::error!(
                error = fault.to_string(),
                "the project cannot be reloaded; its jobs stay as they were"
            );
            return None;
        }
    };
    output.hide(project.redactor());
    project.left_out().iter().for_each(|problems| output.hide(problems.redactor.clone()));
    if let Err(error) = refrain.replace_project(&project).await {
        tracing::error!(%error, "the project cannot be reloaded; its jobs stay as they were");
        return None;
    }
    left_out.say(&project);
    let files = project.left_out_files().join(", ");
    if files.is_empty() {
        tracing::info!(jobs = refrain.jobs().len(), "the project was reloaded");
    } else {
        let jobs = refrain.jobs().len();
        tracing::error!(
            jobs,
            files,
            "the project was reloaded without invalid files; their jobs stay as they were"
        );
    }
    Some(project)
}

fn failed(root: &Path, error: JoinError) -> ProjectError {
    ProjectError::Unreadable { path: root.to_owned(), source: io::Error::other(error) }
}

fn look(root: &Path) -> Seen {
    let mut paths = vec![root.join(PROJECT_FILE)];
    if let Ok(entries) = std::fs::read_dir(root.join(JOBS_FOLDER)) {
        paths.extend(entries.flatten().map(|entry| entry.path()));
    }
    let seen = paths.into_iter().filter_map(|path| {
        let metadata = std::fs::metadata(&path).ok()?;
        Some((path, (metadata.modified().ok(), metadata.len())))
    });
    seen.collect()
}
