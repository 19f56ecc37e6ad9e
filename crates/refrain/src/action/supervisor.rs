//! The process between a worker and a command: it ends the command, and all that the command has started, when the worker
//! says so, when the worker is dead, when the worker's lease was not renewed, and when the command itself has ended.
//!
//! It is the same program as the worker, started with one word before anything else is looked at. It is in a session of its
//! own, so no key of a terminal reaches it, and hears no signal but one that cannot be unheard; whoever of the command's
//! descendants loses its parent becomes its child, so nobody escapes by leaving the process group. A number is only ever
//! signalled while it cannot have been given to somebody else: that of a child of ours that has not been reaped.
//!
//! It has one command at a time. When nothing is left of one it says so, and only then hears of another, which finds nothing
//! of the first: directory, variables and pipes come with the orders.
//!
//! Rejected: a signal at the parent's death (it is tied to a thread, and a grandchild does not get it), a control group
//! (not everybody may make one), passing the output through (a pipe of the worker's own presses back by itself), and a
//! supervisor for each command (to start one costs more than most commands do).

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

use super::supervisor_protocol::{self, Answer, End, Fault, Heard, Orders, Why};
use crate::lease::{self, since_boot};
use crate::{failpoint, process};

/// The word after the program's name that makes a supervisor of it.
pub(super) const SUPERVISE: &str = "supervise";

/// How often to look whether those who were told to end have ended.
const LOOK: Duration = Duration::from_millis(5);

static CAN_SUPERVISE: AtomicBool = AtomicBool::new(false);

/// Makes a supervisor of this process if it was started as one, and then does not return. A program whose jobs are commands
/// calls it first of all in `main`; for others it does nothing.
///
/// ```
/// // The first line of `main`; the program itself follows.
/// refrain::supervise();
/// ```
pub fn supervise() {
    if env::args_os().nth(1).is_some_and(|word| word == SUPERVISE) {
        failpoint::arm();
        std::process::exit(i32::from(supervised().is_err()));
    }
    CAN_SUPERVISE.store(true, Ordering::Release);
}

/// Whether this program makes a supervisor of itself when it is started as one. Any other would start another worker.
pub(super) fn can_supervise() -> bool {
    CAN_SUPERVISE.load(Ordering::Acquire)
}

/// The worker, as its supervisor sees it.
struct Worker {
    socket: UnixStream,
    heard: Heard,
    /// Nothing more comes from it.
    is_over: bool,
}

/// What a worker says.
enum Word {
    /// The lease is good up to this, in milliseconds since the machine was started.
    Good(u64),
    Orders(Box<Orders>, [OwnedFd; 2]),
}

impl Worker {
    fn say(&self, answer: &Answer) -> io::Result<()> {
        let line = supervisor_protocol::line(answer)?;
        let mut said = 0;
        while let Some(rest) = line.get(said..).filter(|rest| !rest.is_empty()) {
            said += supervisor_protocol::say(&self.socket, rest, &[])?;
        }
        Ok(())
    }

    /// What it has said, as far as it was heard.
    fn word(&mut self) -> io::Result<Option<Word>> {
        let Some(line) = self.heard.line() else { return Ok(None) };
        if let Ok(until) = serde_json::from_slice(&line) {
            return Ok(Some(Word::Good(until)));
        }
        let orders = serde_json::from_slice(&line)?;
        let pipes = self.heard.pipes().ok_or_else(|| io::Error::other("orders without pipes"))?;
        Ok(Some(Word::Orders(orders, pipes)))
    }

    /// Waits for what it says next; none if it is gone.
    fn hear(&mut self) -> io::Result<Option<Word>> {
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
    let _deaf = deaf()?;
    setsid()?;
    process::adopt_orphans()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut worker = Worker { socket, heard: Heard::default(), is_over: false };
    worker.say(&Answer::Ready)?;
    while let Some(word) = worker.hear()? {
        // A lease that was renewed between two commands: the next orders know.
        let Word::Orders(orders, pipes) = word else { continue };
        let answer = execute(&mut worker, &orders, &pipes)?;
        env::set_current_dir("/")?;
        worker.say(&answer)?;
        // Held until now: the worker is woken once, and not by the end of each stream before.
        drop(pipes);
    }
    Ok(())
}

/// Executes a command, and returns when nothing of it is left.
fn execute(worker: &mut Worker, orders: &Orders, pipes: &[OwnedFd; 2]) -> io::Result<Answer> {
    if now() >= orders.until {
        return Ok(Answer::TooLate);
    }
    match begin(orders, pipes) {
        Ok(child) => Charge::new(worker, child, orders).see_through(),
        Err((fault, error)) => {
            let (errno, said) = (error.raw_os_error(), error.to_string());
            Ok(Answer::NotStarted { fault, errno, said })
        }
    }
}

/// Signals are for the worker and for the command. The one who stands between them must be there until both are done.
fn deaf() -> io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()] {
        drop(signal(kind)?);
    }
    drop(guard);
    Ok(runtime)
}

fn begin(orders: &Orders, [stdout, stderr]: &[OwnedFd; 2]) -> Result<Child, (Fault, io::Error)> {
    // Before the program is looked for, so that its path counts from there on every system.
    env::set_current_dir(&orders.directory).map_err(|error| (Fault::Directory, error))?;
    let (program, arguments) = orders.argv.split_first().ok_or_else(|| {
        (Fault::Program, io::Error::new(io::ErrorKind::InvalidInput, "there is no program to start"))
    })?;
    let start = |path: PathBuf| {
        let mut command = Command::new(path);
        command.arg0(program).args(arguments).stdin(Stdio::null()).process_group(0);
        command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        command.env_clear().envs(orders.inherited.iter().map(|(name, value)| (name, value)));
        command.envs(orders.environment.iter().map(|(name, value)| (name, value)));
        command.spawn()
    };
    // By its path it is started without a copy of this process; whatever is wrong with that, the system says the other way.
    let started = found(program, orders).and_then(|path| start(path).ok());
    started.map_or_else(|| start(program.into()), Ok).map_err(|error| (Fault::Program, error))
}

/// The path of a program that is named without one.
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

/// What happens while a command is under way.
enum Event {
    /// The lease is good up to this, in milliseconds since the machine was started.
    Good(u64),
    /// The worker is gone, or says no more.
    Over,
    /// The command has ended; it is not reaped yet.
    Ended,
    /// Nothing, for a while.
    Nothing,
}

/// A command under way.
struct Charge<'a> {
    worker: &'a mut Worker,
    child: Child,
    /// Can be read from when the command has ended; none if the system has no more of such.
    ending: Option<OwnedFd>,
    until: u64,
    grace: u64,
}

impl Charge<'_> {
    fn new<'a>(worker: &'a mut Worker, child: Child, orders: &Orders) -> Charge<'a> {
        let ending = process::ending(Pid::from_child(&child)).ok();
        Charge { worker, child, ending, until: orders.until, grace: orders.grace }
    }

    /// Waits for a reason to end, and ends everything.
    fn see_through(mut self) -> io::Result<Answer> {
        let why = self.reason();
        let kill_at = kill_at(now(), self.until, self.grace);
        if why != Why::Itself {
            self.end_group(kill_at);
        }
        // It has ended and is not reaped: its number is still that of its group, whoever is left of that.
        let group = Pid::from_child(&self.child);
        ask(group, kill_process_group);
        let status = self.child.wait()?;
        if !failpoint::is_weakened("supervise.group-alone") {
            bury(kill_at);
        }
        Ok(Answer::Ended { end: end_of(status), why })
    }

    fn reason(&mut self) -> Why {
        let mut heard = now();
        loop {
            let silent_at = silent_at(heard, self.until, self.grace);
            match self.event(silent_at) {
                Event::Good(until) => {
                    heard = now();
                    self.until = until;
                }
                Event::Ended => return Why::Itself,
                Event::Over if failpoint::is_weakened("supervise.orphan") => {}
                Event::Over => return Why::Told,
                Event::Nothing if now() < silent_at => {}
                Event::Nothing if failpoint::is_weakened("supervise.silence") => self.until = u64::MAX,
                Event::Nothing => return Why::Silence,
            }
        }
    }

    /// Asks the group to end, then makes it. Returns when the command has ended.
    fn end_group(&mut self, kill_at: u64) {
        let group = Pid::from_child(&self.child);
        ask(group, kill_process_group);
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

    /// Waits for something to happen, but not beyond a time.
    fn event(&mut self, deadline: u64) -> Event {
        if let Ok(Some(Word::Good(until))) = self.worker.word() {
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

    /// Waits until the command has ended or the worker says something. Gives whether that was it.
    fn wait(&self, patience: Duration) -> bool {
        let patience = patience.min(if self.ending.is_some() { lease::LOOK } else { LOOK });
        let mut awaited: Vec<PollFd<'_>> = Vec::with_capacity(2);
        awaited.extend(self.ending.iter().map(|ending| PollFd::new(ending, PollFlags::IN)));
        if !self.worker.is_over {
            awaited.push(PollFd::new(&self.worker.socket, PollFlags::IN));
        }
        let polled = Timespec::try_from(patience).map(|patience| poll(&mut awaited, Some(&patience)));
        if !matches!(polled, Ok(Ok(_) | Err(Errno::INTR))) {
            thread::sleep(LOOK);
        }
        !self.worker.is_over && awaited.last().is_some_and(|socket| !socket.revents().is_empty())
    }
}

/// Ends and reaps every child, until there is none: those of one that ends become ours, and are next.
fn bury(kill_at: u64) {
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
                ask(child, kill_process);
            }
        }
        thread::sleep(LOOK);
    }
}

/// Asks to end. One that is stopped would not hear it.
fn ask(whom: Pid, signal: fn(Pid, Signal) -> rustix::io::Result<()>) {
    let _ = signal(whom, Signal::TERM);
    let _ = signal(whom, Signal::CONT);
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code),
        (None, signal) => End::Signal(signal.unwrap_or_default()),
    }
}

/// Everything must be gone when the lease has run out; a grace that ends later is cut short.
fn kill_at(now: u64, until: u64, grace: u64) -> u64 {
    until.min(now.saturating_add(grace))
}

/// When to begin to end a command whose worker is silent. It gets a part of what the lease allows to end by itself, and no
/// more, so that a renewal that is a little late is still heard.
fn silent_at(heard: u64, until: u64, grace: u64) -> u64 {
    until.saturating_sub(grace.min(until.saturating_sub(heard) / 4))
}

fn now() -> u64 {
    milliseconds(since_boot())
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_over_when_the_lease_is_and_grace_is_taken_from_it() {
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
        assert_eq!(kill_at(2_000, 28_000, 5_000), 7_000, "told to end, it has its grace");
        assert_eq!(kill_at(26_000, 28_000, 5_000), 28_000, "but the lease is the lease");
    }
}
