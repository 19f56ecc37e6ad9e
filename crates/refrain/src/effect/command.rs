//! A command that is executed for an effect, with the standard streams of its caller.
//!
//! It runs under a supervisor, so it ends with its caller, and its end is known as long as one of the two lives. Exit code 0 confirms
//! the effect; 75, or a code that the caller names, means that nothing was done; after any other end it may have been done. A signal
//! or an error of a program says nothing about what it did before.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use refrain_core::state::SendAnswer;
use tokio::sync::oneshot;

use crate::failpoint;
use crate::lease::Lease;
use crate::store::effect_reservation::SendEnd;
use crate::supervision::client::{Executed, MARK, SupervisorProcess};
use crate::supervision::protocol::{Answer, EndReason, Orders, ProcessEnd, StartFault};
use crate::supervision::supervisor::milliseconds;

/// The exit code by which a command says that it did nothing and may be executed again: `EX_TEMPFAIL` of sysexits.
pub const NOT_DONE: i32 = 75;

/// A command and its surroundings.
#[derive(Debug)]
pub(crate) struct EffectCommand {
    pub(crate) argv: Vec<String>,
    pub(crate) directory: PathBuf,
    /// Variables in addition to those of this process.
    pub(crate) environment: Vec<(String, String)>,
    /// Exit codes that mean that nothing was done.
    pub(crate) not_done: Vec<i32>,
    /// How long it has to end after it was asked to.
    pub(crate) grace: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    /// By itself, with an exit code or by a signal.
    Ended(ProcessEnd),
    /// After its caller was told to stop, with an exit code or by a signal.
    Stopped(ProcessEnd),
    /// It was not started, for this reason.
    NotStarted(String),
    /// The lease of its worker had expired before it was started.
    TooLate,
    /// It was ended because the lease of its worker was not renewed, or its supervisor was killed.
    CutOff,
}

impl EffectCommand {
    /// Executes it, and waits until no process of it is left.
    pub(crate) async fn execute(&self, lease: &Lease, mut cancelled: oneshot::Receiver<()>) -> CommandEnd {
        let mut streams = match streams() {
            Ok(streams) => streams,
            Err(error) => return CommandEnd::NotStarted(format!("its streams cannot be passed on: {error}")),
        };
        loop {
            let mut supervisor = match SupervisorProcess::start(None).await {
                Ok(supervisor) => supervisor,
                Err(error) => {
                    return CommandEnd::NotStarted(format!("no supervisor could be started: {error}"));
                }
            };
            failpoint::reach("effect-command.begin");
            let until = lease.until();
            let orders = self.orders(supervisor.mark(), until);
            let executed = supervisor.execute(&orders, &mut streams, (lease, until), &mut cancelled).await;
            match executed {
                Executed::Ready(answer) | Executed::Over(answer) => {
                    supervisor.stop().await;
                    return self.ended(answer);
                }
                Executed::Died => {
                    supervisor.kill_all().await;
                    return CommandEnd::CutOff;
                }
                // It was dead before it received the command: another supervisor is given the same.
                Executed::Unheard => supervisor.kill_all().await,
            }
        }
    }

    fn orders(&self, mark: &str, until: Duration) -> Orders {
        let mark = (MARK.to_owned(), mark.to_owned());
        Orders {
            argv: self.argv.clone(),
            inherited: inherited(),
            environment: self.environment.iter().cloned().chain([mark]).collect(),
            directory: self.directory.clone().into_os_string(),
            grace: milliseconds(self.grace),
            until: milliseconds(until),
        }
    }

    fn ended(&self, answer: Answer) -> CommandEnd {
        match answer {
            Answer::Ended { end, why: EndReason::Itself } => CommandEnd::Ended(end),
            Answer::Ended { end, why: EndReason::Told } => CommandEnd::Stopped(end),
            Answer::Ended { why: EndReason::Silence, .. } => CommandEnd::CutOff,
            Answer::NotStarted { fault: StartFault::Program, said, .. } => {
                let program = self.argv.first().map(String::as_str).unwrap_or_default();
                CommandEnd::NotStarted(format!("{program} cannot be started: {said}"))
            }
            Answer::NotStarted { fault: StartFault::Directory, said, .. } => {
                CommandEnd::NotStarted(format!("{} cannot be entered: {said}", self.directory.display()))
            }
            Answer::TooLate | Answer::Ready => CommandEnd::TooLate,
        }
    }

    /// What its end means for the effect.
    pub(crate) fn meaning(&self, end: &CommandEnd) -> SendEnd {
        let (answer, message) = match end {
            CommandEnd::Ended(ProcessEnd::Code(0)) => (SendAnswer::Confirmed, None),
            CommandEnd::Ended(ProcessEnd::Code(code)) | CommandEnd::Stopped(ProcessEnd::Code(code))
                if self.is_not_done(*code) =>
            {
                let message = format!("its command ended with exit code {code}: nothing was done");
                (SendAnswer::NotSent, Some(message))
            }
            CommandEnd::Ended(ProcessEnd::Code(code)) => {
                (SendAnswer::Unknown, Some(format!("its command ended with exit code {code}")))
            }
            CommandEnd::Ended(ProcessEnd::Signal(signal)) => {
                (SendAnswer::Unknown, Some(format!("its command was ended by signal {signal}")))
            }
            // A program that is asked to stop may end with 0, and not have done its work.
            CommandEnd::Stopped(_) => (
                SendAnswer::Unknown,
                Some("its command was ended because its caller was told to stop".to_owned()),
            ),
            CommandEnd::NotStarted(why) => (SendAnswer::NotSent, Some(why.clone())),
            CommandEnd::TooLate => {
                (SendAnswer::NotSent, Some("the lease of its worker had expired before it began".to_owned()))
            }
            CommandEnd::CutOff => (SendAnswer::Unknown, Some("its command was cut off".to_owned())),
        };
        SendEnd::new(answer, None, message)
    }

    /// Whether an exit code means that nothing was done.
    pub(crate) fn is_not_done(&self, code: i32) -> bool {
        code == NOT_DONE || self.not_done.contains(&code)
    }
}

/// The standard streams of this process: output, errors and input.
fn streams() -> io::Result<Vec<OwnedFd>> {
    Ok(vec![
        io::stdout().as_fd().try_clone_to_owned()?,
        io::stderr().as_fd().try_clone_to_owned()?,
        io::stdin().as_fd().try_clone_to_owned()?,
    ])
}

/// All variables of this process: the command is the caller's own.
fn inherited() -> Vec<(OsString, OsString)> {
    env::vars_os().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f8_only_the_exit_codes_that_say_so_mean_that_nothing_was_done() {
        let command = EffectCommand {
            argv: vec!["mail".to_owned()],
            directory: PathBuf::from("/"),
            environment: Vec::new(),
            not_done: vec![3, 22],
            grace: Duration::ZERO,
        };
        let code = |code| CommandEnd::Ended(ProcessEnd::Code(code));
        for (end, answer) in [
            (code(0), SendAnswer::Confirmed),
            (code(75), SendAnswer::NotSent),
            (code(3), SendAnswer::NotSent),
            (code(22), SendAnswer::NotSent),
            (code(1), SendAnswer::Unknown),
            (code(143), SendAnswer::Unknown),
            (CommandEnd::Ended(ProcessEnd::Signal(9)), SendAnswer::Unknown),
            (CommandEnd::Stopped(ProcessEnd::Code(0)), SendAnswer::Unknown),
            (CommandEnd::Stopped(ProcessEnd::Code(75)), SendAnswer::NotSent),
            (CommandEnd::CutOff, SendAnswer::Unknown),
            (CommandEnd::TooLate, SendAnswer::NotSent),
            (CommandEnd::NotStarted("no such file".to_owned()), SendAnswer::NotSent),
        ] {
            assert_eq!(command.meaning(&end).answer(), answer, "{end:?}");
        }
    }
}
