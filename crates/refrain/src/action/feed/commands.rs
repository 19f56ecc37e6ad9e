//! The commands of one attempt: the one that lists units, and those that process single units. They share one log.
//!
//! Each command has a task of its own. When the attempt ends, for whatever reason, running commands are cancelled, and the
//! attempt is over only when the last of them has ended. HTTP calls are only counted here: a request in flight cannot be
//! cancelled, so its response is awaited.

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use refrain_core::redact::Redactor;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::action::attempt_log::AttemptLog;
use crate::action::command::{Command, CommandRunner};
use crate::action::command_output::CommandOutput;
use crate::run::Run;
use crate::run::awaited_task::TaskResult;

pub(super) struct AttemptCommands {
    run: Run,
    log: Arc<AttemptLog>,
    cancelled: watch::Sender<bool>,
    /// Whether there are calls whose result is not recorded.
    calls: watch::Sender<bool>,
    /// A clone is held by every running command; when all are dropped, `tokens` is closed.
    token: mpsc::Sender<Infallible>,
    tokens: mpsc::Receiver<Infallible>,
    /// The token of the commands that these were separated from.
    outer: Option<mpsc::Sender<Infallible>>,
}

impl AttemptCommands {
    pub(super) fn begin(run: &Run, redactor: &Redactor) -> AttemptCommands {
        let (token, tokens) = mpsc::channel(1);
        let log = Arc::new(AttemptLog::begin(run, redactor));
        AttemptCommands {
            run: run.clone(),
            log,
            cancelled: watch::Sender::new(false),
            calls: watch::Sender::new(false),
            token,
            tokens,
            outer: None,
        }
    }

    /// Commands that can be ended before the others. They write to the same log, and the others wait for them.
    pub(super) fn separate(&self) -> AttemptCommands {
        let (token, tokens) = mpsc::channel(1);
        AttemptCommands {
            run: self.run.clone(),
            log: Arc::clone(&self.log),
            cancelled: watch::Sender::new(false),
            calls: watch::Sender::new(false),
            token,
            tokens,
            outer: Some(self.token.clone()),
        }
    }

    /// Executes a command. Its standard output goes to `stdout`, or into the log under this name.
    pub(super) fn execute(
        &self,
        command: Command,
        name: &str,
        stdout: Option<oneshot::Sender<OwnedFd>>,
    ) -> JoinHandle<TaskResult> {
        let output = CommandOutput::Shared { log: Arc::clone(&self.log), name: name.to_owned(), stdout };
        let (run, mut is_cancelled) = (self.run.clone(), self.cancelled.subscribe());
        let tokens = (self.token.clone(), self.outer.clone());
        tokio::spawn(async move {
            let (cancel, cancelled) = oneshot::channel();
            let seen = {
                let runner = CommandRunner::default();
                let mut attended = Box::pin(runner.attend(run, command, output, cancelled));
                tokio::select! {
                    seen = &mut attended => seen,
                    () = async { drop(is_cancelled.wait_for(|is_cancelled| *is_cancelled).await) } => {
                        // The command may have ended by itself.
                        let _ = cancel.send(());
                        attended.await
                    }
                }
            };
            drop(tokens);
            seen
        })
    }

    /// Starts nothing more, and ends every command.
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// From now on there are calls whose result is not recorded.
    pub(super) fn calls_begin(&self) {
        self.calls.send_replace(true);
    }

    /// All calls that were sent are recorded.
    pub(super) fn calls_end(&self) {
        self.calls.send_replace(false);
    }

    /// Waits until the result of every call is recorded.
    pub(super) async fn calls_are_over(&self) {
        // It cannot fail: `self` holds the sender.
        drop(self.calls.subscribe().wait_for(|calls| !calls).await);
    }

    /// Cancels commands that are still running, waits until they have ended, and stores the rest of the log.
    pub(super) async fn end(self) {
        let AttemptCommands { log, cancelled, token, mut tokens, .. } = self;
        cancelled.send_replace(true);
        drop(token);
        let _ = tokens.recv().await;
        if let Some(log) = Arc::into_inner(log) {
            log.end().await;
        }
    }
}
