//! Where the output of a command goes: into a log of its own or into a shared one; its standard output may instead go to a
//! reader in this process.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use refrain_core::redact::Redactor;
use tokio::sync::oneshot;

use super::attempt_log::{AttemptLog, LogWriter};
use super::output_recorder::OutputRecorder;
use crate::run::Run;

/// Where the output of a command goes.
pub(super) enum CommandOutput {
    /// Into the log of the attempt, of which this is the only command.
    Alone,
    /// Into a log that the commands of an attempt share, each line prefixed with this name. If there is a sender, it gets the
    /// pipe of standard output instead.
    Shared { log: Arc<AttemptLog>, name: String, stdout: Option<oneshot::Sender<OwnedFd>> },
}

/// Reads the output of a command while it runs.
pub(super) enum OutputReader {
    Alone(Box<OutputRecorder>),
    Shared(LogWriter),
}

impl CommandOutput {
    /// Returns a reader, and the ends of the pipes that the command writes to.
    pub(super) fn begin(self, redactor: &Redactor) -> io::Result<(OutputReader, Vec<OwnedFd>)> {
        let CommandOutput::Shared { log, name, stdout: reader } = self else {
            let (recorder, pipes) = OutputRecorder::new(redactor)?;
            return Ok((OutputReader::Alone(Box::new(recorder)), pipes));
        };
        let (stdout, to_stdout) = io::pipe()?;
        let (stderr, to_stderr) = io::pipe()?;
        let logged = match reader {
            None => Some(stdout.into()),
            Some(reader) => {
                // A reader that is gone has cancelled the command.
                let _ = reader.send(stdout.into());
                None
            }
        };
        let writer = log.write(&name, logged, stderr.into())?;
        Ok((OutputReader::Shared(writer), vec![to_stdout.into(), to_stderr.into()]))
    }
}

impl OutputReader {
    /// Reads until the work has ended, then the rest. Returns the result of the work, and the end of standard error to show
    /// with a failure.
    pub(super) async fn during<T>(self, run: &Run, work: impl Future<Output = T>) -> (T, String) {
        match self {
            OutputReader::Alone(recorder) => recorder.during(run, work).await,
            OutputReader::Shared(writer) => {
                let result = work.await;
                (result, writer.end().await)
            }
        }
    }
}
