//! Linux: `/proc` identifies the process that has an id, and a pidfd refers to that process and no other.
//!
//! A process that may not read another's `/proc` must not take it for absent, so `kill` is asked too. A thread group leader can
//! be a zombie while its threads still write: the process is gone only when the leader is the last thread.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper, test_kill_process,
};

use super::{Ended, Process, ProcessState};

/// How long to wait for a killed process to be gone. One that is stuck in the kernel, for example on a dead disk, can take for
/// ever.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// What `/proc` shows for an id.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    Absent,
    Hidden,
    There(Stat),
}

/// The fields of `/proc/PID/stat` that identify a process and its state.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: u32,
    session: u32,
    threads: u64,
    /// In clock ticks since boot.
    started: u64,
}

impl Stat {
    /// The program chooses the name in parentheses, which may contain parentheses: fields are counted from the last one.
    fn parse(text: &str) -> Option<Stat> {
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        Some(Stat {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

pub(super) fn this() -> io::Result<Process> {
    let strange = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let pid = std::process::id();
    let stat = fs::read_to_string("/proc/self/stat")?;
    if stat.split(' ').next() != Some(pid.to_string().as_str()) {
        return Err(strange("/proc belongs to another container: mount it for this one"));
    }
    let stat = Stat::parse(&stat).ok_or_else(|| strange("/proc/self/stat has an unknown form"))?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
    Ok(Process { boot, namespace: namespace()?, pid, started: stat.started })
}

/// Kernels before 5.6 have no time namespaces.
fn namespace() -> io::Result<String> {
    let inode = |name: &str| -> io::Result<String> {
        let link = fs::read_link(Path::new("/proc/self/ns").join(name))?;
        Ok(link.to_string_lossy().chars().filter(char::is_ascii_digit).collect())
    };
    let pid = inode("pid")?;
    Ok(inode("time").map_or_else(|_| pid.clone(), |time| format!("{pid}-{time}")))
}

pub(super) fn state(process: &Process) -> ProcessState {
    match look(process.pid) {
        Look::Absent => ProcessState::Gone,
        Look::There(stat) if stat.started != process.started || stat.is_dead() => ProcessState::Gone,
        Look::There(_) | Look::Hidden => ProcessState::Alive,
    }
}

fn look(pid: u32) -> Look {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => Stat::parse(&text).map_or(Look::Hidden, Look::There),
        Err(_) if number(pid).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH)) => Look::Absent,
        Err(_) => Look::Hidden,
    }
}

fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Opens the pidfd first and reads the start time afterwards: if the start time is right, so is the pidfd, even if the id is
/// reused later.
pub(super) fn end(process: &Process) -> io::Result<Ended> {
    let Some(pid) = number(process.pid) else { return Ok(Ended::Gone) };
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(Errno::SRCH) => return Ok(Ended::Gone),
        Err(error) => return Err(error.into()),
    };
    match look(process.pid) {
        Look::There(stat) if stat.started == process.started && !stat.is_dead() => {}
        Look::There(_) | Look::Absent => return Ok(Ended::Gone),
        Look::Hidden => {
            let what =
                format!("process {pid} hides its identity: end it as its own user, or wait for its end");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
    }
    match pidfd_send_signal(&pidfd, Signal::KILL) {
        Ok(()) => {}
        Err(Errno::SRCH) => return Ok(Ended::Gone),
        Err(error) => return Err(error.into()),
    }
    let patience = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
    let mut ends = [PollFd::new(&pidfd, PollFlags::IN)];
    match retry_on_intr(|| poll(&mut ends, Some(&patience)))? {
        0 => {
            let what = format!(
                "process {pid} was killed but is stuck in the kernel, for example on a dead disk: try again"
            );
            Err(io::Error::new(io::ErrorKind::TimedOut, what))
        }
        _ => Ok(Ended::Killed),
    }
}

pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

pub(super) fn children() -> Vec<Pid> {
    let this = std::process::id();
    all().into_iter().filter(|(_, stat)| stat.parent == this).filter_map(|(pid, _)| number(pid)).collect()
}

pub(super) fn ending(child: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(child, PidfdFlags::empty())?)
}

pub(super) fn descendants(sessions: &mut HashSet<u32>, mark: &str) -> io::Result<Vec<Process>> {
    let (all, this) = (all(), this()?);
    let marked = all.iter().filter(|(pid, _)| *pid != this.pid && has_mark(*pid, mark));
    let mut found: HashMap<u32, &Stat> = marked.map(|(pid, stat)| (*pid, stat)).collect();
    sessions.extend(found.values().map(|stat| stat.session));
    loop {
        let is_one = |stat: &Stat| sessions.contains(&stat.session) || found.contains_key(&stat.parent);
        let others = all.iter().filter(|(pid, _)| *pid != this.pid && !found.contains_key(pid));
        let more: Vec<_> = others.filter(|(_, stat)| is_one(stat)).map(|(pid, stat)| (*pid, stat)).collect();
        if more.is_empty() {
            break;
        }
        sessions.extend(more.iter().map(|(_, stat)| stat.session));
        found.extend(more);
    }
    let alive = found.into_iter().filter(|(_, stat)| !stat.is_dead());
    Ok(alive.map(|(pid, stat)| Process { pid, started: stat.started, ..this.clone() }).collect())
}

/// A process that has ended and is not reaped has neither arguments nor variables. Where processes of other users are hidden,
/// process 1 is hidden too.
pub(super) fn is_running(arguments: impl Fn(&[&[u8]]) -> bool, variable: &[u8]) -> bool {
    let is_hidden = !Path::new("/proc/1").exists();
    is_hidden
        || pids().any(|pid| match fs::read(format!("/proc/{pid}/cmdline")) {
            Ok(line) if arguments(&line.split(|byte| *byte == 0).collect::<Vec<_>>()) => true,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => true,
            _ => variables(pid, |one| one.starts_with(variable)),
        })
}

fn variables(pid: u32, is_one: impl Fn(&[u8]) -> bool) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(is_one)
}

fn has_mark(pid: u32, mark: &str) -> bool {
    variables(pid, |variable| variable == mark.as_bytes())
}

fn pids() -> impl Iterator<Item = u32> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse::<u32>().ok())
}

/// Every process that can be seen.
fn all() -> Vec<(u32, Stat)> {
    let seen = pids().filter_map(|pid| match look(pid) {
        Look::There(stat) => Some((pid, stat)),
        Look::Absent | Look::Hidden => None,
    });
    seen.collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};

    use rustix::process::{WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid};

    use super::*;

    /// A child that answers every line with the same line.
    fn echo() -> Child {
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    fn answers(child: &mut Child) -> bool {
        let mut answer = String::new();
        child.stdin.as_mut().unwrap().write_all(b"there\n").unwrap();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut answer).unwrap();
        answer == "there\n"
    }

    fn identity(child: &Child) -> Process {
        let Look::There(stat) = look(child.id()) else { panic!("the child cannot be seen") };
        Process { pid: child.id(), started: stat.started, ..this().unwrap() }
    }

    fn pid(child: &Child) -> Pid {
        number(child.id()).unwrap()
    }

    #[test]
    fn f43_another_process_that_got_the_id_of_a_dead_one_is_not_ended() {
        let mut stranger = echo();
        let dead = Process { started: identity(&stranger).started - 1, ..identity(&stranger) };

        assert_eq!(dead.state(), ProcessState::Gone);
        assert_eq!(dead.end().unwrap(), Ended::Gone);
        assert_eq!(end(&dead).unwrap(), Ended::Gone, "even if the id was reused a moment ago");

        assert!(answers(&mut stranger));
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_stopped_process_is_alive_and_is_ended() {
        let mut child = echo();
        let process = identity(&child);
        kill_process(pid(&child), Signal::STOP).unwrap();
        let (_, status) = waitpid(Some(pid(&child)), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped());
        assert_eq!(process.state(), ProcessState::Alive);

        assert_eq!(process.end().unwrap(), Ended::Killed);
        assert_eq!((process.state(), process.end().unwrap()), (ProcessState::Gone, Ended::Gone));
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        assert_eq!((process.state(), process.end().unwrap()), (ProcessState::Gone, Ended::Gone));
    }

    #[test]
    fn a_zombie_is_gone() {
        let mut child = echo();
        let process = identity(&child);
        drop(child.stdin.take());
        waitid(WaitId::Pid(pid(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert_eq!((process.state(), process.end().unwrap()), (ProcessState::Gone, Ended::Gone));
        child.wait().unwrap();
    }

    #[test]
    fn a_process_does_not_end_itself() {
        let this = this().unwrap();
        assert_eq!((this.state(), this.end().unwrap()), (ProcessState::Alive, Ended::Itself));
    }

    #[test]
    fn a_program_with_an_unusual_name_is_recognised() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("a) Z 1 (b c)");
        std::os::unix::fs::symlink("/bin/cat", &program).unwrap();
        let mut child =
            Command::new(&program).arg0("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        assert!(answers(&mut child), "it has its own name from its first answer on");
        let text = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        assert!(text.contains("(a) Z 1 (b c))"), "{text}");

        let process = identity(&child);
        assert_eq!(process.state(), ProcessState::Alive);
        assert_eq!(process.end().unwrap(), Ended::Killed);
        child.wait().unwrap();
    }

    #[test]
    fn a_leader_with_running_threads_is_not_dead() {
        let stat = |state: &str, threads: u64| {
            Stat::parse(&format!("7 (a b) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 0 0"))
                .unwrap()
        };
        assert_eq!(stat("S", 2), Stat { state: 'S', parent: 1, session: 7, threads: 2, started: 4711 });
        for (state, threads, dead) in
            [("Z", 1, true), ("Z", 2, false), ("X", 1, true), ("T", 1, false), ("D", 1, false)]
        {
            assert_eq!(stat(state, threads).is_dead(), dead, "{state} {threads}");
        }
        for broken in ["", "7 (a) S", "7 (a", "7 a S 1 2 3"] {
            assert_eq!(Stat::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn numbers_that_no_process_can_have_are_gone() {
        for pid in [0, u32::MAX] {
            let nobody = Process { pid, ..this().unwrap() };
            assert_eq!((nobody.state(), nobody.end().unwrap()), (ProcessState::Gone, Ended::Gone), "{pid}");
        }
    }
}
