//! A command that writes files, which become visible together when it succeeds.
//!
//! The command writes to the directory `REFRAIN_OUTPUT`. Its end is not the end of the attempt: a command that succeeded at
//! the moment its time ran out has published nothing. So one task awaits the whole attempt, with the command inside it.

use std::fmt;

use refrain_core::publish::FilesPublish;
use tokio::sync::oneshot;

use super::command::CommandRunner;
use super::command_template::CommandTemplate;
use crate::bind::context::About;
use crate::job::Job;
use crate::publish::error::WriteError;
use crate::publish::files::Publication;
use crate::run::awaited_task::{AwaitedTask, TaskResult};
use crate::run::{JobError, Run};

/// The variable that holds the directory to write to.
const OUTPUT: &str = "REFRAIN_OUTPUT";

/// A job that publishes the files that a command writes.
#[derive(Clone)]
pub(crate) struct FilesCommandJob {
    pub(crate) command: CommandTemplate,
    pub(crate) files: FilesPublish,
    pub(crate) about: About,
}

impl Job for FilesCommandJob {
    const NAME: &'static str = "command";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        let (job, attempt) = (self.clone(), run.clone());
        run.awaited.run_awaited(|cancelled| job.attend(attempt, cancelled)).await
    }
}

impl FilesCommandJob {
    async fn attend(self, run: Run, mut cancelled: oneshot::Receiver<()>) -> TaskResult {
        let failed = |error: WriteError| Some(Err(error.into_job_error(&self.about.redactor)));
        let values = self.about.values(&run);
        let publication = tokio::select! {
            biased;
            _ = &mut cancelled => return None,
            begun = Publication::begin(&run, &self.about, &self.files, &values) => match begun {
                Ok(publication) => publication,
                Err(error) => return failed(error),
            },
        };
        match self.execute(&run, &publication, &mut cancelled).await {
            Some(Ok(())) => {}
            seen => {
                publication.abandon().await;
                return seen;
            }
        }
        let published = async {
            let files = publication.seal().await?;
            publication.publish(files).await
        };
        // If this is cancelled, the link may be moving already: the next attempt cleans up the directory.
        let published = tokio::select! {
            biased;
            _ = &mut cancelled => return None,
            published = published => published,
        };
        match published {
            Ok(()) => Some(Ok(())),
            Err(error) => {
                publication.abandon().await;
                failed(error)
            }
        }
    }

    /// The result of the command; none if it was interrupted.
    async fn execute(
        &self,
        run: &Run,
        publication: &Publication,
        cancelled: &mut oneshot::Receiver<()>,
    ) -> TaskResult {
        let directory = publication.directory();
        let Some(output) = directory.to_str().map(str::to_owned) else {
            let message = format!(
                "`{}` is not valid UTF-8, so it cannot be passed to the command",
                directory.display()
            );
            return Some(Err(JobError::for_good(message)));
        };
        let mut command = match self.command.command(run, &self.about.values(run)) {
            Ok(command) => command,
            Err(error) => return Some(Err(error)),
        };
        command.environment.push((OUTPUT.to_owned(), output));
        let within = Run { awaited: AwaitedTask::default(), ..run.clone() };
        let runner = CommandRunner::default();
        let ended = tokio::select! {
            biased;
            _ = cancelled => None,
            ended = runner.run(&within, command) => Some(ended),
        };
        let seen = match ended {
            Some(Err(error)) if error.is_lost() => None,
            Some(ended) => Some(ended),
            None => within.awaited.cancel().await.filter(Result::is_err),
        };
        if within.awaited.is_end_known() {
            run.awaited.mark_end_known();
        }
        seen
    }
}

impl fmt::Debug for FilesCommandJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilesCommandJob").field("files", &self.files).finish_non_exhaustive()
    }
}
