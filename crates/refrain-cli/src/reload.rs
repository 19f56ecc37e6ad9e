//! Other files, while a process serves: read again on SIGHUP and when one of them has changed.
//!
//! A project that cannot be read changes nothing: the jobs go on as they were, and what is wrong is said. Files are looked at
//! and not watched: what tells of changes differs between systems and is silent on network disks.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use refrain::{FILE, JOBS, Project, ProjectError, Refrain};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinError;

use crate::exit::Fault;
use crate::output::{Output, ProblemLine};

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
    pub(crate) async fn go_on(mut self, refrain: Refrain, output: Output) {
        loop {
            let is_asked = tokio::select! {
                asked = self.hangup.recv() => asked.is_some(),
                () = tokio::time::sleep(LOOK) => false,
            };
            let now = look(&self.root);
            if is_asked || now != self.seen {
                // Before it is read: what is written meanwhile is seen the next time.
                self.seen = now;
                reload(&self.root, &refrain, output).await;
            }
        }
    }
}

async fn reload(root: &Path, refrain: &Refrain, output: Output) {
    let folder = root.to_owned();
    // Not on a thread of the runtime: a large file, or a slow disk, must not keep a signal from being heard.
    let loaded = tokio::task::spawn_blocking(move || Project::load(&folder)).await;
    let project = match loaded.unwrap_or_else(|error| Err(failed(root, error))) {
        Ok(project) => project,
        Err(error) => {
            let fault = Fault::from(error);
            fault.redactor().into_iter().for_each(|redactor| output.hide(redactor.clone()));
            for problem in fault.problems() {
                let ProblemLine { path, line, column, message, label, help } = problem;
                tracing::error!(file = path, line, column, problem = message, label, help, "a file is wrong");
            }
            tracing::error!(
                error = fault.to_string(),
                "the files cannot be read; the jobs stay as they were"
            );
            return;
        }
    };
    output.hide(project.redactor());
    let replaced = match project.definitions() {
        Ok(definitions) => refrain.replace_jobs(definitions).await,
        Err(error) => Err(error),
    };
    match replaced {
        Ok(()) => tracing::info!(jobs = refrain.jobs().len(), "the files were read again"),
        Err(error) => {
            tracing::error!(%error, "the files were read, and not taken; the jobs stay as they were");
        }
    }
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
