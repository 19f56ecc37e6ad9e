//! The worker's side of a supervisor: starts one, gives it orders, passes on that the lease was renewed, and stays until
//! everything is over.
//!
//! Whatever becomes of the job's future, this is in a task of its own and sees it through; only then is the ending recorded.
//! Should the supervisor die before its word, what it stood over is found and ended here: by its session, by its parents, and
//! by a mark in its environment, for whoever has left both.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

use super::supervisor::{SUPERVISE, can_supervise, milliseconds};
use super::supervisor_protocol::{Answer, Heard, Orders, Why, line, say};
use crate::lease::{Lease, since_boot};
use crate::process;

/// The variable by which whoever a command has started is known.
pub(super) const MARK: &str = "REFRAIN_SUPERVISOR";

/// How often a supervisor that ends before its first word is started anew: a key of the terminal may have reached it.
const STARTS: u32 = 3;
/// How long a supervisor may take beyond the grace of its command, before it is ended itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before looking again at a process that does not end.
const PAUSE: Duration = Duration::from_secs(1);
/// What a supervisor itself may need: to be loaded, and to be hurt by tests.
const PASSED_ON: [&str; 3] = ["LD_LIBRARY_PATH", "FAILPOINTS", "REFRAIN_FAILPOINT_LOG"];

/// A supervisor that is ready.
pub(super) struct Attendant {
    child: Child,
    /// Shared with the thread that renews the lease.
    socket: Arc<UnixStream>,
    heard: Heard,
    mark: String,
}

/// What became of orders.
pub(super) enum Executed {
    /// All is over, and the supervisor waits for the next ones.
    Ready(Answer),
    /// All is over, and the supervisor has nothing more to do.
    Over(Answer),
    /// The supervisor had died before it got them. Nothing has begun.
    Unheard,
    /// It died before it could say that all was over.
    Died,
}

/// The name of this process, by which a supervisor and whoever a command has started are known as this worker's.
fn worker() -> String {
    process::Process::this().map_or_else(|_| "unknown".to_owned(), |this| this.to_string())
}

/// Whether anything is left of the commands of this worker: a supervisor, which a worker that is dead has for as long as it
/// takes to end what it stands over, or what a supervisor that was killed as well has left. A supervisor names the worker in
/// its arguments, which every user may read.
pub(crate) fn is_left_of(worker: &process::Process) -> bool {
    let worker = worker.to_string();
    let mark = format!("{MARK}={worker}/");
    let supervises = |arguments: &[&[u8]]| match arguments {
        [_, word, whose, ..] => *word == SUPERVISE.as_bytes() && *whose == worker.as_bytes(),
        _ => false,
    };
    process::is_running(supervises, mark.as_bytes())
}

/// Where a supervisor's program is found, unless it is said: this very program, even if its file was replaced since.
fn this_program() -> io::Result<PathBuf> {
    if !can_supervise() {
        return Err(io::Error::other(
            "this program cannot supervise a command: let its `main` begin with `refrain::supervise()`",
        ));
    }
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

impl Attendant {
    /// Starts a supervisor.
    pub(super) async fn start(program: Option<&Path>) -> io::Result<Attendant> {
        let program = program.map_or_else(this_program, |program| Ok(program.to_owned()))?;
        for _ in 0..STARTS {
            if let Some(ready) = started(program.clone()).await? {
                return Ok(ready);
            }
        }
        Err(io::Error::other(format!("{} did not answer as a supervisor", program.display())))
    }

    /// What it stands over has this in its environment, as the value of [`MARK`].
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// Has a command executed that prints to these pipes, and waits until all of it is over. The pipes are handed on; they are
    /// still there if nobody has heard of them.
    pub(super) async fn execute(
        &mut self,
        orders: &Orders,
        pipes: &mut Vec<OwnedFd>,
        lease: (&Lease, Duration),
        called_off: &mut oneshot::Receiver<()>,
    ) -> Executed {
        let sent = tokio::select! {
            biased;
            _ = &mut *called_off => return Executed::Over(Answer::TooLate),
            sent = self.order(orders, pipes) => sent,
        };
        if sent.is_err() {
            return Executed::Unheard;
        }
        // From here on only the command holds them: what it prints ends when it does.
        pipes.clear();
        let (lease, known) = lease;
        let socket = Arc::clone(&self.socket);
        let _telling = lease.told(known, move |until| say_good(&socket, until));
        let mut end_by = None;
        loop {
            tokio::select! {
                answer = self.answer() => return match answer {
                    Some(answer @ (Answer::Ended { why: Why::Itself, .. } | Answer::NotStarted { .. }))
                        if end_by.is_none() => Executed::Ready(answer),
                    Some(answer) => Executed::Over(answer),
                    None => Executed::Died,
                },
                _ = &mut *called_off, if end_by.is_none() => {
                    self.say_no_more();
                    end_by = Some(Instant::now() + Duration::from_millis(orders.grace) + PATIENCE);
                }
                () = sleep_until(end_by.unwrap_or_else(Instant::now)), if end_by.is_some() => {
                    let _ = self.child.kill();
                    return Executed::Died;
                }
            }
        }
    }

    /// Nobody else says anything meanwhile: who listens to the lease begins after this, and ends before the next.
    async fn order(&self, orders: &Orders, pipes: &[OwnedFd]) -> io::Result<()> {
        let line = line(orders)?;
        let mut along: Vec<_> = pipes.iter().map(AsFd::as_fd).collect();
        let mut said = 0;
        while let Some(rest) = line.get(said..).filter(|rest| !rest.is_empty()) {
            said += self.socket.async_io(Interest::WRITABLE, || say(&self.socket, rest, &along)).await?;
            along.clear();
        }
        Ok(())
    }

    /// What it says next; none if it says no more. It may be dropped and asked again.
    async fn answer(&mut self) -> Option<Answer> {
        loop {
            if let Some(line) = self.heard.line() {
                return serde_json::from_slice(&line).ok();
            }
            let (heard, socket) = (&mut self.heard, &self.socket);
            if !socket.async_io(Interest::READABLE, || heard.listen(socket)).await.ok()? {
                return None;
            }
        }
    }

    /// Ends the supervisor, and whatever it has left: it is not reaped before, so its session is its own.
    pub(super) async fn bury(mut self) {
        let session = self.child.id();
        let _ = self.child.kill();
        // One that was begun behind the look's back has lost its parent by the next one, and not its session.
        let mut sessions = HashSet::from([session]);
        let mark = format!("{MARK}={}", self.mark);
        loop {
            let (mut known, mark) = (sessions.clone(), mark.clone());
            let left = spawn_blocking(move || {
                let ended = process::descendants(&mut known, &mark).and_then(|left| {
                    let ended: io::Result<Vec<_>> = left.iter().map(process::Process::end).collect();
                    ended.map(|ended| ended.len())
                });
                (ended, known)
            });
            let Ok((ended, known)) = left.await else { break };
            sessions = known;
            match ended {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(session, %error, "what a command has started cannot be ended");
                    sleep(PAUSE).await;
                }
            }
        }
        self.leave().await;
    }

    /// Ends a supervisor that stands over nobody.
    pub(super) async fn leave(self) {
        let _ = spawn_blocking(move || self.end()).await;
    }

    /// The same, and keeps the thread waiting. It is not asked: it might be stopped, and hear nothing.
    pub(super) fn end(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// It ends when nothing of its command is left.
    fn say_no_more(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }
}

/// Says up to when the lease is good. A supervisor that does not read would only ever miss what comes too late.
fn say_good(socket: &UnixStream, until: Duration) {
    let _ = say(socket, format!("{}\n", milliseconds(until)).as_bytes(), &[]);
}

/// None if it ended before its first word.
async fn started(program: PathBuf) -> io::Result<Option<Attendant>> {
    let spawned = spawn_blocking(move || spawned(&program)).await;
    let (child, socket) = spawned.map_err(io::Error::other)??;
    socket.set_nonblocking(true)?;
    let socket = Arc::new(UnixStream::from_std(socket)?);
    let mark = format!("{}/{}-{}", worker(), child.id(), since_boot().as_nanos());
    let mut attendant = Attendant { child, socket, heard: Heard::default(), mark };
    if attendant.answer().await == Some(Answer::Ready) {
        return Ok(Some(attendant));
    }
    attendant.leave().await;
    Ok(None)
}

fn spawned(program: &Path) -> io::Result<(Child, Socket)> {
    let (ours, theirs) = Socket::pair()?;
    let mut command = std::process::Command::new(program);
    command.arg0("refrain").arg(SUPERVISE).arg(worker()).current_dir("/");
    command.env_clear().envs(PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn()?;
    Ok((child, ours))
}
