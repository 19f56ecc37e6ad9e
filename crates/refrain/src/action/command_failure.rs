//! The ends of a command, told apart, in words that say what to look at.

use refrain_core::terminal::typed;
use rustix::process::Signal;

use super::supervisor_protocol::{End, Fault};
use crate::job::JobError;

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

/// A command that ended by itself.
pub(super) fn ended(end: End, last_words: &str) -> Result<(), JobError> {
    let what = match end {
        End::Code(0) => return Ok(()),
        End::Code(code) => format!("exit code {code}"),
        End::Signal(number) => {
            let name = SIGNALS.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| *name);
            format!("killed by signal {number}{}", name.map(|name| format!(" ({name})")).unwrap_or_default())
        }
    };
    Err(JobError::new(if last_words.is_empty() { what } else { format!("{what}\n{last_words}") }))
}

/// A command that could not begin.
pub(super) fn not_started(
    program: &str,
    directory: &str,
    fault: Fault,
    errno: Option<i32>,
    said: &str,
) -> JobError {
    let what = match fault {
        Fault::Directory => format!("the directory {directory} cannot be entered: {said}"),
        Fault::Program => format!("`{program}` could not be started: {said}"),
    };
    let is_path = program.contains('/');
    let advice = match (fault, errno) {
        (Fault::Directory, _) => {
            "the command's directory is that of the project: check that it is there".to_owned()
        }
        (Fault::Program, Some(ENOENT)) if is_path => format!(
            "check the path, which counts from {directory}; if the file is there, the program that its first line \
             names after `#!` is not"
        ),
        (Fault::Program, Some(ENOENT)) => {
            format!("it is in no directory of PATH; a file of the project is written ./{program}")
        }
        (Fault::Program, Some(EACCES)) => format!("make it executable: chmod +x {program}"),
        (Fault::Program, Some(E2BIG)) => {
            "its arguments or its environment are too large; a long payload is better read from the store"
                .to_owned()
        }
        (Fault::Program, _) => {
            "check its first line (`#!/bin/sh`) and for which machine it was built".to_owned()
        }
    };
    let said = format!("{what}\n  {advice}");
    match errno {
        Some(ENOENT | E2BIG | ENOEXEC | EACCES) | None => JobError::for_good(said),
        // The system was short of something, or the file is being written: another time it may be.
        Some(errno) => JobError::of_errno(what, Some(errno)),
    }
}

/// A command that was cut off, and is not to be executed again by itself.
pub(super) fn held(run: &str, attempt: i64, how: &str) -> JobError {
    JobError::held(format!(
        "{how} at attempt {attempt}: it may or may not have done its work, so it is not executed again by itself\n  \
         look what it has done; if it was done: refrain retry {0} --done; to execute it again: refrain retry {0}",
        typed(run)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(ended(End::Code(0), "warning: x"), Ok(()));
        let table = [
            (End::Code(3), "", "exit code 3"),
            (End::Code(127), "sh: no such file", "exit code 127\nsh: no such file"),
            (End::Signal(9), "", "killed by signal 9 (SIGKILL)"),
            (End::Signal(63), "", "killed by signal 63"),
        ];
        for (end, words, expected) in table {
            let error = ended(end, words).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.is_retryable()), (expected, true));
        }
    }

    #[test]
    fn what_cannot_begin_says_what_to_check_and_is_not_tried_again() {
        let table = [
            ("./x.sh", Fault::Program, Some(ENOENT), "which counts from /srv/shop"),
            ("x.sh", Fault::Program, Some(ENOENT), "written ./x.sh"),
            ("./x.sh", Fault::Program, Some(EACCES), "chmod +x ./x.sh"),
            ("./x.sh", Fault::Program, Some(8), "`#!/bin/sh`"),
            ("./x.sh", Fault::Program, None, "`#!/bin/sh`"),
            ("./x.sh", Fault::Program, Some(E2BIG), "too large"),
            ("./x.sh", Fault::Directory, Some(ENOENT), "the directory /srv/shop cannot be entered"),
        ];
        for (program, fault, errno, expected) in table {
            let error = not_started(program, "/srv/shop", fault, errno, "said so");
            assert!(!error.is_retryable() && error.to_string().contains(expected), "{error}");
        }
    }
}
