//! The process between a worker and a command: it ends the command, and all that the command has started, when the worker
//! says so, when the worker is dead, when the worker's lease was not renewed, and when the command itself has ended.
//!
//! It is the same program as the worker, started with one word before anything else is looked at. It is in a session of its
//! own, so no key of a terminal reaches it, and hears no signal but one that cannot be unheard; whoever of the command's
//! descendants loses its parent becomes its child, so nobody escapes by leaving the process group. A number is only ever
//! signalled while it cannot have been given to somebody else: that of a child of ours that has not been reaped.
//!
//! Rejected: a signal at the parent's death (it is tied to a thread, and a grandchild does not get it), a control group
//! (not everybody may make one), and passing the output through (a pipe of the worker's own presses back by itself).

use std::collections::HashSet;
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, setsid, wait, waitid,
};
use tokio::signal::unix::{SignalKind, signal};

use super::protocol::{Answer, End, Fault, Orders, Why};
use crate::lease::since_boot;
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

/// What happens while a command is under way.
enum Event {
    /// The lease is good up to this, in milliseconds since the machine was started.
    Good(u64),
    /// The worker is gone, or says no more.
    Over,
    /// The command has ended; it is not reaped yet.
    Ended,
}

fn supervised() -> io::Result<()> {
    let _deaf = deaf()?;
    setsid()?;
    process::adopt_orphans()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut worker = &socket;
    say(&mut worker, &Answer::Ready)?;
    let mut words = BufReader::new(socket.try_clone()?);
    let mut line = String::new();
    if words.read_line(&mut line)? == 0 {
        return Ok(());
    }
    let orders: Orders = serde_json::from_str(&line)?;
    if milliseconds(since_boot()) >= orders.until {
        return say(&mut worker, &Answer::TooLate);
    }
    let child = match begin(&orders) {
        Ok(child) => child,
        Err((fault, error)) => {
            let (errno, said) = (error.raw_os_error(), error.to_string());
            return say(&mut worker, &Answer::NotStarted { fault, errno, said });
        }
    };
    // Whoever cannot hear it is gone, and the end of its words says so too.
    let _ = say(&mut worker, &Answer::Started { process: child.id() });
    let (sender, events) = channel();
    listen(words, sender.clone())?;
    watch(Pid::from_child(&child), sender)?;
    let ended = Charge { child, events, until: orders.until, grace: orders.grace }.see_through()?;
    say(&mut worker, &ended)
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

fn say(worker: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    worker.write_all(line.as_bytes())
}

fn begin(orders: &Orders) -> Result<Child, (Fault, io::Error)> {
    // Before the program is looked for, so that its path counts from there on every system.
    env::set_current_dir(&orders.directory).map_err(|error| (Fault::Directory, error))?;
    let (program, arguments) = orders.argv.split_first().ok_or_else(|| {
        (Fault::Program, io::Error::new(io::ErrorKind::InvalidInput, "there is no program to start"))
    })?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(orders.inherited.iter().map(|(name, value)| (name, value)));
    command.envs(orders.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).process_group(0);
    command.spawn().map_err(|error| (Fault::Program, error))
}

/// Passes on what the worker says, from a thread of its own.
fn listen(mut words: BufReader<UnixStream>, events: Sender<Event>) -> io::Result<()> {
    let listening = move || {
        let mut line = String::new();
        while matches!(words.read_line(&mut line), Ok(1..)) {
            if let Ok(until) = line.trim().parse()
                && events.send(Event::Good(until)).is_err()
            {
                return;
            }
            line.clear();
        }
        let _ = events.send(Event::Over);
    };
    thread::Builder::new().name("words".to_owned()).spawn(listening)?;
    Ok(())
}

/// Says when the command has ended, and leaves it unreaped: until then its number is its own.
fn watch(child: Pid, events: Sender<Event>) -> io::Result<()> {
    let watching = move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(child), options), Err(Errno::INTR)) {}
        let _ = events.send(Event::Ended);
    };
    thread::Builder::new().name("child".to_owned()).spawn(watching)?;
    Ok(())
}

/// A command under way.
struct Charge {
    child: Child,
    events: Receiver<Event>,
    until: u64,
    grace: u64,
}

impl Charge {
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
            let patience = Duration::from_millis(silent_at.saturating_sub(now()));
            match self.events.recv_timeout(patience) {
                Ok(Event::Good(until)) => {
                    heard = now();
                    self.until = until;
                }
                Ok(Event::Ended) => return Why::Itself,
                Ok(Event::Over) if failpoint::is_weakened("supervise.orphan") => {}
                Ok(Event::Over) | Err(RecvTimeoutError::Disconnected) => return Why::Told,
                Err(RecvTimeoutError::Timeout) if now() < silent_at => {}
                Err(RecvTimeoutError::Timeout) if failpoint::is_weakened("supervise.silence") => {
                    self.until = u64::MAX;
                }
                Err(RecvTimeoutError::Timeout) => return Why::Silence,
            }
        }
    }

    /// Asks the group to end, then makes it. Returns when the command has ended.
    fn end_group(&self, kill_at: u64) {
        let group = Pid::from_child(&self.child);
        ask(group, kill_process_group);
        loop {
            let patience = Duration::from_millis(kill_at.saturating_sub(now()));
            match self.events.recv_timeout(patience) {
                Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Event::Good(_) | Event::Over) => {}
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        let _ = kill_process_group(group, Signal::KILL);
        while let Ok(event) = self.events.recv() {
            if matches!(event, Event::Ended) {
                return;
            }
        }
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

/// Everything must be gone when the lease has run out; whoever asks for the end earlier waits no longer than that.
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
