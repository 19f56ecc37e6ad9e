//! A command that writes files, which become visible together when it has ended well.
//!
//! It is told in `REFRAIN_OUTPUT` where to write. The end of the command is not that of the attempt: a command that has ended
//! well in the moment in which its time was up has published nothing. So the attempt is seen through as one, and the
//! command within it.

use std::fmt;
use std::sync::Arc;

use refrain_core::publish::FilesPublish;
use tokio::sync::oneshot;

use super::about::About;
use super::command::{Command, CommandJob};
use crate::job::{Job, JobError};
use crate::leaving::{Leaving, Seen};
use crate::publish::error::WriteError;
use crate::publish::files::Publication;
use crate::run::Run;

/// Where a command finds the directory to write into.
const OUTPUT: &str = "REFRAIN_OUTPUT";

type Make = dyn Fn(&Run) -> Result<Command, JobError> + Send + Sync;

/// A job that publishes what a command writes.
#[derive(Clone)]
pub(crate) struct WritingCommand {
    pub(crate) make: Arc<Make>,
    pub(crate) files: FilesPublish,
    pub(crate) about: About,
}

impl Job for WritingCommand {
    const NAME: &'static str = "command";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        let (job, attended) = (self.clone(), run.clone());
        run.leaving.see_through(|called_off| job.attend(attended, called_off)).await
    }
}

impl WritingCommand {
    async fn attend(self, run: Run, mut called_off: oneshot::Receiver<()>) -> Seen {
        let told = |error: WriteError| Some(Err(error.told(&self.about.redactor)));
        let values = self.about.values(&run);
        let publication = tokio::select! {
            biased;
            _ = &mut called_off => return None,
            begun = Publication::begin(&run, &self.about, &self.files, &values) => match begun {
                Ok(publication) => publication,
                Err(error) => return told(error),
            },
        };
        match self.execute(&run, &publication, &mut called_off).await {
            Some(Ok(())) => {}
            seen => {
                publication.abandon().await;
                return seen;
            }
        }
        let published = async {
            let files = publication.seal().await?;
            publication.show(files).await
        };
        // Cut off here, the link may be moving: the directory is left to the next attempt.
        let published = tokio::select! {
            biased;
            _ = &mut called_off => return None,
            published = published => published,
        };
        match published {
            Ok(()) => Some(Ok(())),
            Err(error) => {
                publication.abandon().await;
                told(error)
            }
        }
    }

    /// What became of the command; none if it was cut off.
    async fn execute(
        &self,
        run: &Run,
        publication: &Publication,
        called_off: &mut oneshot::Receiver<()>,
    ) -> Seen {
        let directory = publication.directory();
        let Some(output) = directory.to_str().map(str::to_owned) else {
            let told = format!("`{}` is no text, and cannot be told to a command", directory.display());
            return Some(Err(JobError::for_good(told)));
        };
        let make = Arc::clone(&self.make);
        let command = CommandJob::new(move |run| {
            let mut command = make(run)?;
            command.environment.push((OUTPUT.to_owned(), output.clone()));
            Ok(command)
        });
        let mut within = Run { leaving: Leaving::default(), ..run.clone() };
        let ended = tokio::select! {
            biased;
            _ = called_off => None,
            ended = command.run(&mut within) => Some(ended),
        };
        let seen = match ended {
            Some(Err(error)) if error.is_lost() => None,
            Some(ended) => Some(ended),
            None => within.leaving.leave().await.filter(Result::is_err),
        };
        if within.leaving.is_settled() {
            run.leaving.settle();
        }
        seen
    }
}

impl fmt::Debug for WritingCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WritingCommand").field("files", &self.files).finish_non_exhaustive()
    }
}
