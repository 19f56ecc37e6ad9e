//! Identifies a process beyond its id, and ends it and no other.
//!
//! A lease in a SQLite file may be taken over only from a holder that can no longer write. Its process id alone does not
//! identify it, because ids are reused. Boot id, namespace, process id and start time together identify one process for ever,
//! and a signal goes through a pidfd, which never refers to a successor.
//!
//! A process is never taken for dead without proof: one of another machine or container is `Elsewhere`, one that hides its
//! details is `Alive`. The time namespace is part of the name because start times are counted by its clock. Systems without
//! `/proc` and pidfds call every process `Elsewhere`.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::str::FromStr;

use refrain_core::ParseError;
use rustix::process::Pid;

#[cfg(target_os = "linux")]
#[path = "process/linux.rs"]
mod system;

#[cfg(not(target_os = "linux"))]
#[path = "process/elsewhere.rs"]
mod system;

/// A process, distinct from every other that had or will have its id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    boot: String,
    namespace: String,
    pid: u32,
    started: u64,
}

/// What is known about a process from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// It has ended, and will write nothing more.
    Gone,
    /// It runs, or is stopped, or at least nothing shows that it has ended.
    Alive,
    /// It belongs to another machine, another boot or another container: its state is unknown here.
    Elsewhere,
}

/// The result of ending a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was alive, was killed, and is gone.
    Killed,
    /// It had already ended.
    Gone,
    /// It is the calling process, which was not killed.
    Itself,
    /// It cannot be reached from here, and was not killed.
    Elsewhere,
}

impl Process {
    /// The calling process.
    pub(crate) fn this() -> io::Result<Process> {
        system::this()
    }

    /// Whether it has ended.
    pub(crate) fn state(&self) -> ProcessState {
        match Process::this() {
            Ok(this) if self.is_near(&this) => system::state(self),
            _ => ProcessState::Elsewhere,
        }
    }

    /// Kills it and waits until it is gone. Usually blocks for some milliseconds, for [`system::PATIENCE`] at most.
    pub(crate) fn end(&self) -> io::Result<Ended> {
        match self.state() {
            ProcessState::Elsewhere => Ok(Ended::Elsewhere),
            ProcessState::Gone => Ok(Ended::Gone),
            ProcessState::Alive if self.pid == std::process::id() => Ok(Ended::Itself),
            ProcessState::Alive => system::end(self),
        }
    }

    /// The prefix of the names of all processes that can be seen from here.
    pub(crate) fn here() -> io::Result<String> {
        Process::this().map(|this| format!("{}/{}/", this.boot, this.namespace))
    }

    fn is_near(&self, other: &Process) -> bool {
        (&self.boot, &self.namespace) == (&other.boot, &other.namespace)
    }
}

/// From here on, descendants of this process that lose their parent become its children.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    system::adopt_orphans()
}

/// The children of this process. Their ids are not reused until it reaps them.
pub(crate) fn children() -> Vec<Pid> {
    system::children()
}

/// A descriptor that becomes readable when a child has ended. The child is not reaped by that.
pub(crate) fn ending(child: Pid) -> io::Result<OwnedFd> {
    system::ending(child)
}

/// Whether some live process was started with such arguments (the program's name first), or has an environment variable with
/// this prefix, as far as the environment can be read. True where the arguments cannot be read.
pub(crate) fn is_running(arguments: impl Fn(&[&[u8]]) -> bool, variable: &[u8]) -> bool {
    system::is_running(arguments, variable)
}

/// Every live process of these sessions, or with this mark (`NAME=value`) in its environment, and their descendants, whose
/// sessions are added to the set. A session id must belong to a process that has not been reaped, or it may have been reused.
pub(crate) fn descendants(sessions: &mut HashSet<u32>, mark: &str) -> io::Result<Vec<Process>> {
    system::descendants(sessions, mark)
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.boot, self.namespace, self.pid, self.started)
    }
}

impl FromStr for Process {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parts: Vec<&str> = text.split('/').collect();
        let read = match *parts.as_slice() {
            [boot, namespace, pid, started] if !boot.is_empty() && !namespace.is_empty() => {
                pid.parse().ok().zip(started.parse().ok()).map(|(pid, started)| Process {
                    boot: boot.to_owned(),
                    namespace: namespace.to_owned(),
                    pid,
                    started,
                })
            }
            _ => None,
        };
        read.ok_or_else(|| {
            ParseError::whole("process", text, "it does not have the form boot/namespace/pid/started")
        })
    }
}

/// Keeps other processes of the same user from reading the memory of this process, and disables core dumps: the memory holds
/// passwords of databases.
pub fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// The effective user id of this process.
pub fn user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this process, and so the commands that it executes, runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this() -> Process {
        Process::this().unwrap()
    }

    #[test]
    fn a_printed_process_can_be_parsed() {
        let this = this();
        assert_eq!(this.to_string().parse(), Ok(this.clone()));
        assert_eq!(this.to_string().split('/').nth(2), Some(std::process::id().to_string().as_str()));
        for broken in
            ["", "a/b/1", "a/b/1/2/3", "a/b/-1/2", "a/b/1/x", "/b/1/2", "a//1/2", "a/b/4294967296/2"]
        {
            assert!(broken.parse::<Process>().is_err(), "{broken}");
        }
    }

    #[test]
    fn processes_of_another_boot_or_container_are_elsewhere_and_not_ended() {
        let this = this();
        for other in [
            Process { boot: "9d3b1f0e-0000-4000-8000-000000000000".to_owned(), ..this.clone() },
            Process { namespace: "1".to_owned(), ..this.clone() },
        ] {
            assert_eq!((other.state(), other.end().unwrap()), (ProcessState::Elsewhere, Ended::Elsewhere));
        }
    }
}
