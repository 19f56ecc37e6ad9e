//! Where what a command prints goes: into a log of its own, or into one that it shares, and perhaps to somebody who waits for
//! its standard output.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use refrain_core::redact::Redactor;
use tokio::sync::oneshot;

use super::attempt_log::{Log, Voice};
use super::output_recorder::Recording;
use crate::run::Run;

/// Where what a command prints goes.
pub(super) enum Printing {
    /// Into the log of its attempt, which is its own.
    Alone,
    /// Into the log of an attempt that has more of them, under a name. Its standard output goes to whoever waits for it.
    Beside { log: Arc<Log>, name: String, stdout: Option<oneshot::Sender<OwnedFd>> },
}

/// What a command prints, while it is being read.
pub(super) enum Printed {
    Alone(Box<Recording>),
    Beside(Voice),
}

impl Printing {
    /// Gives it with the ends to which the command is to print.
    pub(super) fn begin(self, redactor: &Redactor) -> io::Result<(Printed, Vec<OwnedFd>)> {
        let Printing::Beside { log, name, stdout: reader } = self else {
            let (recording, pipes) = Recording::new(redactor)?;
            return Ok((Printed::Alone(Box::new(recording)), pipes));
        };
        let (stdout, to_stdout) = io::pipe()?;
        let (stderr, to_stderr) = io::pipe()?;
        let heard = match reader {
            None => Some(stdout.into()),
            Some(reader) => {
                // Whoever does not wait any more has called it off.
                let _ = reader.send(stdout.into());
                None
            }
        };
        let voice = log.hear(&name, heard, stderr.into())?;
        Ok((Printed::Beside(voice), vec![to_stdout.into(), to_stderr.into()]))
    }
}

impl Printed {
    /// Reads until the work is over, and the rest then. Gives what the work came to, and the end of standard error, for people.
    pub(super) async fn during<T>(self, run: &Run, work: impl Future<Output = T>) -> (T, String) {
        match self {
            Printed::Alone(recording) => recording.during(run, work).await,
            Printed::Beside(voice) => {
                let came_to = work.await;
                (came_to, voice.end().await)
            }
        }
    }
}
