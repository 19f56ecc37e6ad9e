//! SIGINT and SIGTERM: each further signal stops a command more firmly.

use std::pin::pin;

use refrain::StopHandle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::CliError;
use crate::output::Output;

/// What the next signal does. A signal after the last step ends the process at once.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StopStep {
    /// Let running attempts end.
    Drain,
    /// Return running attempts to the queue.
    StopNow,
    /// End the command of the caller.
    EndCommand,
}

/// Work that was waited for.
pub(crate) struct Finished<T> {
    /// Its result; none if the process must end at once.
    pub(crate) result: Option<T>,
    /// Whether a signal stopped it.
    pub(crate) is_interrupted: bool,
}

/// Signal handlers.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Signals, CliError> {
        let hear = |kind| signal(kind).map_err(CliError::Signals);
        Ok(Signals { interrupt: hear(SignalKind::interrupt())?, terminate: hear(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for work, and takes the next step with every signal.
    pub(crate) async fn see_through<T>(
        mut self,
        work: impl Future<Output = T>,
        stop: &StopHandle,
        steps: &[StopStep],
        output: Output,
    ) -> Finished<T> {
        let mut work = pin!(work);
        let mut steps = steps.iter();
        let mut is_interrupted = false;
        loop {
            tokio::select! {
                biased;
                result = &mut work => return Finished { result: Some(result), is_interrupted },
                () = self.next() => {}
            }
            match steps.next() {
                Some(StopStep::Drain) => {
                    stop.drain();
                    output.say(
                        "draining: running attempts may finish; the next signal returns them to the queue",
                    );
                }
                Some(StopStep::StopNow) => {
                    is_interrupted = true;
                    stop.stop_now();
                    output.say("stopping: running attempts return to the queue");
                }
                Some(StopStep::EndCommand) => {
                    is_interrupted = true;
                    stop.drain();
                    output.say("ending the command");
                }
                None => return Finished { result: None, is_interrupted: true },
            }
        }
    }
}
