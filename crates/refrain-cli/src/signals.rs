//! SIGINT and SIGTERM: each one heard ends a command a little harder.

use std::pin::pin;

use refrain::StopHandle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Fault;
use crate::output::Output;

/// What the next signal does. After the last one, the process does not wait any longer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// Let what is under way end.
    Drain,
    /// Give back what is under way.
    StopNow,
}

/// Work that has ended.
pub(crate) struct Ended<T> {
    /// What it came to; none if it was not waited for.
    pub(crate) result: Option<T>,
    /// Whether it was ended before its time.
    pub(crate) is_interrupted: bool,
}

/// Signals, heard from now on.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Signals, Fault> {
        let hear = |kind| signal(kind).map_err(Fault::Signals);
        Ok(Signals { interrupt: hear(SignalKind::interrupt())?, terminate: hear(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for work, and takes a step towards its end with every signal.
    pub(crate) async fn see_through<T>(
        mut self,
        work: impl Future<Output = T>,
        stop: &StopHandle,
        steps: &[Step],
        output: Output,
    ) -> Ended<T> {
        let mut work = pin!(work);
        let mut steps = steps.iter();
        let mut is_interrupted = false;
        loop {
            tokio::select! {
                biased;
                result = &mut work => return Ended { result: Some(result), is_interrupted },
                () = self.next() => {}
            }
            match steps.next() {
                Some(Step::Drain) => {
                    stop.drain();
                    output.say(
                        "draining: runs under way may finish; the next signal returns them to the queue",
                    );
                }
                Some(Step::StopNow) => {
                    is_interrupted = true;
                    stop.stop_now();
                    output.say("stopping: runs under way return to the queue");
                }
                None => return Ended { result: None, is_interrupted: true },
            }
        }
    }
}
