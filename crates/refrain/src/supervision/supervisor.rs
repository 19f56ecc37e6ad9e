//! The process between a worker and a command. It ends the command, with every process the command started, when the worker
//! tells it to, when the worker is dead, when the worker's lease was not renewed, and when the command itself has ended.
//!
//! It is the same program as the worker, started with one argument that is checked before everything else. It has a session of
//! its own, so no key of a terminal reaches it, and it ignores every signal but SIGKILL. Descendants of the command that lose
//! their parent become its children, so none escapes by leaving the process group. It signals a process id only while the id
//! cannot have been reused: while it belongs to a child that has not been reaped.
//!
//! It has one command at a time. It reports when no process of it is left, and only then takes another one, which inherits
//! nothing from the first: directory, variables and pipes come with the orders.
//!
//! Rejected: a signal at the parent's death (it is tied to a thread, and grandchildren do not get it), a control group (not
//! every user may create one), passing the output through (a pipe to the worker applies backpressure by itself), and a
//! supervisor per command (starting one costs more than most commands).

use std::collections::HashSet;
use std::env;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, setsid, wait, waitid,
};
use tokio::signal::unix::{SignalKind, signal};

use super::protocol::{self, Answer, EndReason, Inbox, Orders, ProcessEnd, StartFault, Streams};
use crate::lease::{self, since_boot};
use crate::{failpoint, process};

/// The first argument of a process that is to be a supervisor.
pub(crate) const SUPERVISE: &str = "supervise";

/// How often to check whether terminated processes have ended.
const POLL: Duration = Duration::from_millis(5);

static CAN_SUPERVISE: AtomicBool = AtomicBool::new(false);

/// Turns this process into a supervisor if it was started as one, and then does not return. A program whose jobs run commands
/// must call it first in `main`; in any other process it does nothing.
///
/// ```
/// // The first line of `main`; the program itself follows.
/// refrain::host::supervise();
/// ```
pub fn supervise() {
    if env::args_os().nth(1).is_some_and(|word| word == SUPERVISE) {
        failpoint::arm();
        std::process::exit(i32::from(supervised().is_err()));
    }
    CAN_SUPERVISE.store(true, Ordering::Release);
}

/// Whether this program has called [`supervise`]. A program that has not would start as another worker.
pub(crate) fn can_supervise() -> bool {
    CAN_SUPERVISE.load(Ordering::Acquire)
}

/// The worker, as its supervisor sees it.
struct Worker {
    socket: UnixStream,
    heard: Inbox,
    /// Whether the worker's side of the socket is closed.
    is_over: bool,
}

/// A message of the worker.
enum WorkerMessage {
    /// The end of the lease, in milliseconds since boot.
    Good(u64),
    Orders(Box<Orders>, Streams),
}

impl Worker {
    fn say(&self, answer: &Answer) -> io::Result<()> {
        let line = protocol::line(answer)?;
        let mut said = 0;
        while let Some(rest) = line.get(said..).filter(|rest| !rest.is_empty()) {
            said += protocol::say(&self.socket, rest, &[])?;
        }
        Ok(())
    }

    /// The next message that was received; none if there is none yet.
    fn word(&mut self) -> io::Result<Option<WorkerMessage>> {
        let Some(line) = self.heard.line() else { return Ok(None) };
        if let Ok(until) = serde_json::from_slice(&line) {
            return Ok(Some(WorkerMessage::Good(until)));
        }
        let orders = serde_json::from_slice(&line)?;
        let streams = self.heard.streams().ok_or_else(|| io::Error::other("orders without pipes"))?;
        Ok(Some(WorkerMessage::Orders(orders, streams)))
    }

    /// Waits for the next message; none if the worker is gone.
    fn hear(&mut self) -> io::Result<Option<WorkerMessage>> {
        loop {
            if let Some(word) = self.word()? {
                return Ok(Some(word));
            }
            if !self.heard.listen(&self.socket)? {
                return Ok(None);
            }
        }
    }
}

fn supervised() -> io::Result<()> {
    let _ignoring = ignore_signals()?;
    setsid()?;
    process::adopt_orphans()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut worker = Worker { socket, heard: Inbox::default(), is_over: false };
    worker.say(&Answer::Ready)?;
    while let Some(word) = worker.hear()? {
        // A renewal between two commands: the next orders contain the end of the lease.
        let WorkerMessage::Orders(orders, streams) = word else { continue };
        let answer = execute(&mut worker, &orders, &streams)?;
        env::set_current_dir("/")?;
        worker.say(&answer)?;
        // Closed only now, so that the worker is woken once, and not by the end of each stream before.
        drop(streams);
    }
    Ok(())
}

/// Executes a command, and returns when no process of it is left.
fn execute(worker: &mut Worker, orders: &Orders, streams: &Streams) -> io::Result<Answer> {
    if now() >= orders.until {
        return Ok(Answer::TooLate);
    }
    match begin(orders, streams) {
        Ok(child) => RunningCommand::new(worker, child, orders).wait_and_end(),
        Err((fault, error)) => {
            let (errno, said) = (error.raw_os_error(), error.to_string());
            Ok(Answer::NotStarted { fault, errno, said })
        }
    }
}

/// Ignores signals, which are meant for the worker and for the command: the supervisor must outlive both.
fn ignore_signals() -> io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()] {
        drop(signal(kind)?);
    }
    drop(guard);
    Ok(runtime)
}

fn begin(orders: &Orders, streams: &Streams) -> Result<Child, (StartFault, io::Error)> {
    // Entered before the program is looked up, so that a relative path starts there on every system.
    env::set_current_dir(&orders.directory).map_err(|error| (StartFault::Directory, error))?;
    let (program, arguments) = orders.argv.split_first().ok_or_else(|| {
        (StartFault::Program, io::Error::new(io::ErrorKind::InvalidInput, "there is no program to start"))
    })?;
    let start = |path: PathBuf| {
        let mut command = Command::new(path);
        command.arg0(program).args(arguments).process_group(0);
        command.stdin(
            streams
                .stdin
                .as_ref()
                .map_or_else(|| Ok(Stdio::null()), |stdin| stdin.try_clone().map(Stdio::from))?,
        );
        command.stdout(streams.stdout.try_clone()?).stderr(streams.stderr.try_clone()?);
        command.env_clear().envs(orders.inherited.iter().map(|(name, value)| (name, value)));
        command.envs(orders.environment.iter().map(|(name, value)| (name, value)));
        command.spawn()
    };
    // With a full path the program is spawned without forking this process. If that fails, the second try reports the error.
    let started = found(program, orders).and_then(|path| start(path).ok());
    started.map_or_else(|| start(program.into()), Ok).map_err(|error| (StartFault::Program, error))
}

/// The full path of a program that is named without a `/`.
fn found(program: &str, orders: &Orders) -> Option<PathBuf> {
    if program.contains('/') {
        return None;
    }
    let said =
        orders.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_ref());
    let inherited =
        || orders.inherited.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
    let mut paths = env::split_paths(said.or_else(inherited)?).map(|directory| directory.join(program));
    paths.find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// What can happen while a command runs.
enum Event {
    /// The lease was renewed until this time, in milliseconds since boot.
    Good(u64),
    /// The worker is gone, or has closed its side.
    Over,
    /// The command has ended; it is not reaped yet.
    Ended,
    /// Nothing happened for a while.
    Nothing,
}

/// A running command.
struct RunningCommand<'a> {
    worker: &'a mut Worker,
    child: Child,
    /// Becomes readable when the command has ended; none if the system could not give it.
    ending: Option<OwnedFd>,
    until: u64,
    grace: u64,
}

impl RunningCommand<'_> {
    fn new<'a>(worker: &'a mut Worker, child: Child, orders: &Orders) -> RunningCommand<'a> {
        let ending = process::ending(Pid::from_child(&child)).ok();
        RunningCommand { worker, child, ending, until: orders.until, grace: orders.grace }
    }

    /// Waits for a reason to end the command, and ends all its processes.
    fn wait_and_end(mut self) -> io::Result<Answer> {
        let why = self.reason();
        let kill_at = kill_at(now(), self.until, self.grace);
        if why != EndReason::Itself {
            self.end_group(kill_at);
        }
        // The command has ended and is not reaped, so its id still belongs to its process group.
        let group = Pid::from_child(&self.child);
        terminate(group, kill_process_group);
        let status = self.child.wait()?;
        if !failpoint::is_weakened("supervise.group-alone") {
            end_children(kill_at);
        }
        Ok(Answer::Ended { end: end_of(status), why })
    }

    fn reason(&mut self) -> EndReason {
        let mut heard = now();
        loop {
            let silent_at = silent_at(heard, self.until, self.grace);
            match self.event(silent_at) {
                Event::Good(until) => {
                    heard = now();
                    self.until = until;
                }
                Event::Ended => return EndReason::Itself,
                Event::Over if failpoint::is_weakened("supervise.orphan") => {}
                Event::Over => return EndReason::Told,
                Event::Nothing if now() < silent_at => {}
                Event::Nothing if failpoint::is_weakened("supervise.silence") => self.until = u64::MAX,
                Event::Nothing => return EndReason::Silence,
            }
        }
    }

    /// Terminates the process group, then kills it. Returns when the command has ended.
    fn end_group(&mut self, kill_at: u64) {
        let group = Pid::from_child(&self.child);
        terminate(group, kill_process_group);
        let mut deadline = kill_at;
        loop {
            if matches!(self.event(deadline), Event::Ended) {
                return;
            }
            if now() >= deadline {
                let _ = kill_process_group(group, Signal::KILL);
                deadline = u64::MAX;
            }
        }
    }

    /// Waits for an event, at most until the deadline.
    fn event(&mut self, deadline: u64) -> Event {
        if let Ok(Some(WorkerMessage::Good(until))) = self.worker.word() {
            return Event::Good(until);
        }
        let is_said = self.wait(Duration::from_millis(deadline.saturating_sub(now())));
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None) | Err(Errno::INTR))
        {
            return Event::Ended;
        }
        if is_said && !matches!(self.worker.heard.listen(&self.worker.socket), Ok(true)) {
            self.worker.is_over = true;
            return Event::Over;
        }
        Event::Nothing
    }

    /// Waits until the command has ended or the worker has sent something. True if the worker has.
    fn wait(&self, patience: Duration) -> bool {
        let patience = patience.min(if self.ending.is_some() { lease::CLOCK_POLL } else { POLL });
        let mut awaited: Vec<PollFd<'_>> = Vec::with_capacity(2);
        awaited.extend(self.ending.iter().map(|ending| PollFd::new(ending, PollFlags::IN)));
        if !self.worker.is_over {
            awaited.push(PollFd::new(&self.worker.socket, PollFlags::IN));
        }
        let polled = Timespec::try_from(patience).map(|patience| poll(&mut awaited, Some(&patience)));
        if !matches!(polled, Ok(Ok(_) | Err(Errno::INTR))) {
            thread::sleep(POLL);
        }
        !self.worker.is_over && awaited.last().is_some_and(|socket| !socket.revents().is_empty())
    }
}

/// Ends and reaps all children until none is left. The children of a process that ends become children of this one.
fn end_children(kill_at: u64) {
    let mut asked = HashSet::new();
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(None) => break,
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
        for child in process::children() {
            if now() >= kill_at {
                let _ = kill_process(child, Signal::KILL);
            } else if asked.insert(child) {
                terminate(child, kill_process);
            }
        }
        thread::sleep(POLL);
    }
}

/// Asks a process or group to end. SIGCONT, because a suspended process would not handle SIGTERM.
fn terminate(target: Pid, signal: fn(Pid, Signal) -> rustix::io::Result<()>) {
    let _ = signal(target, Signal::TERM);
    let _ = signal(target, Signal::CONT);
}

fn end_of(status: ExitStatus) -> ProcessEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessEnd::Code(code),
        (None, signal) => ProcessEnd::Signal(signal.unwrap_or_default()),
    }
}

/// All processes must be gone when the lease expires, so a grace that ends later is shortened.
fn kill_at(now: u64, until: u64, grace: u64) -> u64 {
    until.min(now.saturating_add(grace))
}

/// When to begin to end a command whose worker is silent. The command gets at most a quarter of the remaining lease to end, so
/// that a renewal that is a little late still arrives in time.
fn silent_at(heard: u64, until: u64, grace: u64) -> u64 {
    until.saturating_sub(grace.min(until.saturating_sub(heard) / 4))
}

fn now() -> u64 {
    milliseconds(since_boot())
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_with_the_lease_and_its_grace_is_part_of_it() {
        let table = [
            // heard, until, grace, silent at, killed at
            (1_000, 28_000, 5_000, 23_000, 28_000),
            (1_000, 1_900, 5_000, 1_675, 1_900),
            (1_000, 1_000, 5_000, 1_000, 1_000),
            (1_000, 500, 5_000, 500, 500),
            (1_000, 28_000, 0, 28_000, 28_000),
        ];
        for (heard, until, grace, silent, killed) in table {
            let at = silent_at(heard, until, grace);
            assert_eq!((at, kill_at(at, until, grace)), (silent, killed), "{heard} {until} {grace}");
        }
        assert_eq!(kill_at(2_000, 28_000, 5_000), 7_000, "a command that is told to end has its grace");
        assert_eq!(kill_at(26_000, 28_000, 5_000), 28_000, "but no longer than the lease");
    }
}
