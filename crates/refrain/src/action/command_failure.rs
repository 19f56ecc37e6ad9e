//! The failures of a command, each with a message that says what to check.

use refrain_core::terminal::typed;
use rustix::process::Signal;

use crate::run::JobError;
use crate::supervision::protocol::{ProcessEnd, StartFault};

const ENOENT: i32 = 2;
const E2BIG: i32 = 7;
const ENOEXEC: i32 = 8;
const EACCES: i32 = 13;

const SIGNALS: [(Signal, &str); 16] = [
    (Signal::HUP, "SIGHUP"),
    (Signal::INT, "SIGINT"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::ILL, "SIGILL"),
    (Signal::TRAP, "SIGTRAP"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::KILL, "SIGKILL"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::TERM, "SIGTERM"),
    (Signal::XCPU, "SIGXCPU"),
];

/// The result of a command that ended by itself.
pub(super) fn ended(end: ProcessEnd, last_words: &str) -> Result<(), JobError> {
    let what = match end {
        ProcessEnd::Code(0) => return Ok(()),
        ProcessEnd::Code(code) => format!("exit code {code}"),
        ProcessEnd::Signal(number) => {
            let name = SIGNALS.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| *name);
            format!("killed by signal {number}{}", name.map(|name| format!(" ({name})")).unwrap_or_default())
        }
    };
    Err(JobError::new(if last_words.is_empty() { what } else { format!("{what}\n{last_words}") }))
}

/// The error of a command that could not be started.
pub(super) fn not_started(
    program: &str,
    directory: &str,
    fault: StartFault,
    errno: Option<i32>,
    said: &str,
) -> JobError {
    let what = match fault {
        StartFault::Directory => format!("the directory {directory} cannot be entered: {said}"),
        StartFault::Program => format!("`{program}` could not be started: {said}"),
    };
    let is_path = program.contains('/');
    let advice = match (fault, errno) {
        (StartFault::Directory, _) => {
            "commands run in the project's directory: check that it exists".to_owned()
        }
        (StartFault::Program, Some(ENOENT)) if is_path => format!(
            "check the path, which is relative to {directory}; if the file exists, the interpreter in its first line \
             (`#!`) is missing"
        ),
        (StartFault::Program, Some(ENOENT)) => {
            format!("it is not in PATH; for a file of the project write ./{program}")
        }
        (StartFault::Program, Some(EACCES)) => format!("make it executable: chmod +x {program}"),
        (StartFault::Program, Some(E2BIG)) => {
            "its arguments or its environment are too large; let it read a long payload from the store"
                .to_owned()
        }
        (StartFault::Program, _) => {
            "check its first line (`#!/bin/sh`) and the platform it was built for".to_owned()
        }
    };
    let said = format!("{what}\n  {advice}");
    match errno {
        Some(ENOENT | E2BIG | ENOEXEC | EACCES) | None => JobError::for_good(said),
        // The system was short of a resource, or the file is being written: a retry may succeed.
        Some(errno) => JobError::of_errno(what, Some(errno)),
    }
}

/// The error of a command that was interrupted, and must not be executed again automatically.
pub(super) fn held(run: &str, attempt: i64, how: &str) -> JobError {
    JobError::held(format!(
        "{how} at attempt {attempt}: it may or may not have done its work, so it is not retried automatically\n  \
         check what it did; if it succeeded: refrain retry {0} --done; to execute it again: refrain retry {0}",
        typed(run)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_message() {
        assert_eq!(ended(ProcessEnd::Code(0), "warning: x"), Ok(()));
        let table = [
            (ProcessEnd::Code(3), "", "exit code 3"),
            (ProcessEnd::Code(127), "sh: no such file", "exit code 127\nsh: no such file"),
            (ProcessEnd::Signal(9), "", "killed by signal 9 (SIGKILL)"),
            (ProcessEnd::Signal(63), "", "killed by signal 63"),
        ];
        for (end, words, expected) in table {
            let error = ended(end, words).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.is_retryable()), (expected, true));
        }
    }

    #[test]
    fn a_command_that_cannot_be_started_says_what_to_check_and_is_not_retried() {
        let table = [
            ("./x.sh", StartFault::Program, Some(ENOENT), "which is relative to /srv/shop"),
            ("x.sh", StartFault::Program, Some(ENOENT), "write ./x.sh"),
            ("./x.sh", StartFault::Program, Some(EACCES), "chmod +x ./x.sh"),
            ("./x.sh", StartFault::Program, Some(8), "`#!/bin/sh`"),
            ("./x.sh", StartFault::Program, None, "`#!/bin/sh`"),
            ("./x.sh", StartFault::Program, Some(E2BIG), "too large"),
            ("./x.sh", StartFault::Directory, Some(ENOENT), "the directory /srv/shop cannot be entered"),
        ];
        for (program, fault, errno, expected) in table {
            let error = not_started(program, "/srv/shop", fault, errno, "said so");
            assert!(!error.is_retryable() && error.to_string().contains(expected), "{error}");
        }
    }
}
