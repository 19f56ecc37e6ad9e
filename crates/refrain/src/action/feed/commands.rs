//! The commands of one attempt: the one that lists units, and those that are executed for each, all in one log.
//!
//! Calls that are made for units are only counted here: one that is on its way cannot be called off, and its answer is
//! waited for.
//!
//! Each is attended by a task of its own. When the attempt is over, for whatever reason, those that are left are called off,
//! and nothing returns before the last of them has ended.

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use refrain_core::redact::Redactor;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::action::attempt_log::Log;
use crate::action::command::{Command, CommandJob};
use crate::action::command_output::Printing;
use crate::job::JobError;
use crate::leaving::Seen;
use crate::run::Run;

pub(super) struct Commands {
    run: Run,
    log: Arc<Log>,
    off: watch::Sender<bool>,
    /// Whether there are calls whose end is not recorded.
    calls: watch::Sender<bool>,
    /// Held by every command that is under way.
    token: mpsc::Sender<Infallible>,
    tokens: mpsc::Receiver<Infallible>,
    /// The token of those among which these are.
    outer: Option<mpsc::Sender<Infallible>>,
}

impl Commands {
    pub(super) fn begin(run: &Run, redactor: &Redactor) -> Commands {
        let (token, tokens) = mpsc::channel(1);
        let log = Arc::new(Log::begin(run, redactor));
        Commands {
            run: run.clone(),
            log,
            off: watch::Sender::new(false),
            calls: watch::Sender::new(false),
            token,
            tokens,
            outer: None,
        }
    }

    /// Commands that may be ended before the others are. They write into the same log, and the others wait for them.
    pub(super) fn apart(&self) -> Commands {
        let (token, tokens) = mpsc::channel(1);
        Commands {
            run: self.run.clone(),
            log: Arc::clone(&self.log),
            off: watch::Sender::new(false),
            calls: watch::Sender::new(false),
            token,
            tokens,
            outer: Some(self.token.clone()),
        }
    }

    /// Executes a command. Its standard output is for somebody else, or goes into the log as well, under its name.
    pub(super) fn execute(
        &self,
        command: Command,
        name: &str,
        stdout: Option<oneshot::Sender<OwnedFd>>,
    ) -> JoinHandle<Seen> {
        let printing = Printing::Beside { log: Arc::clone(&self.log), name: name.to_owned(), stdout };
        let job = CommandJob::new(|_| Err(JobError::for_good("it is made elsewhere")));
        let (run, mut off) = (self.run.clone(), self.off.subscribe());
        let tokens = (self.token.clone(), self.outer.clone());
        tokio::spawn(async move {
            let (call_off, called_off) = oneshot::channel();
            let seen = {
                let mut attended = Box::pin(job.attend(run, command, printing, called_off));
                tokio::select! {
                    seen = &mut attended => seen,
                    () = async { drop(off.wait_for(|off| *off).await) } => {
                        // Nobody hears it who has ended by itself.
                        let _ = call_off.send(());
                        attended.await
                    }
                }
            };
            drop(tokens);
            seen
        })
    }

    /// Nothing more is to be begun, and every command is to end.
    pub(super) fn call_off(&self) {
        self.off.send_replace(true);
    }

    pub(super) fn is_off(&self) -> bool {
        *self.off.borrow()
    }

    /// From now on there are calls whose end is not recorded.
    pub(super) fn calls_begin(&self) {
        self.calls.send_replace(true);
    }

    /// All calls that were begun are recorded.
    pub(super) fn calls_end(&self) {
        self.calls.send_replace(false);
    }

    /// Waits until there is no call whose end is not recorded.
    pub(super) async fn calls_are_over(&self) {
        // It cannot fail while the sender is here.
        drop(self.calls.subscribe().wait_for(|calls| !calls).await);
    }

    /// Calls off whatever is left, waits until it is over, and stores the rest of the log.
    pub(super) async fn end(self) {
        let Commands { log, off, token, mut tokens, .. } = self;
        off.send_replace(true);
        drop(token);
        let _ = tokens.recv().await;
        if let Some(log) = Arc::into_inner(log) {
            log.end().await;
        }
    }
}
