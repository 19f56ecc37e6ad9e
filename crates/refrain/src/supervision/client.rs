//! The worker's side of a supervisor: starts it, sends it a command, passes on renewals of the lease, and waits until no
//! process of the command is left.
//!
//! It runs in a task of its own, independent of the job's future, and the end of the attempt is recorded only after it. If the
//! supervisor dies before its answer, the processes of the command are found and killed here: by session, by parent, and by a
//! mark in their environment, for those that have left both.

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

use super::protocol::{Answer, EndReason, Inbox, Orders, line, say};
use super::supervisor::{SUPERVISE, can_supervise, milliseconds};
use crate::lease::{Lease, since_boot};
use crate::process;

/// The environment variable that marks every process of a command.
pub(crate) const MARK: &str = "REFRAIN_SUPERVISOR";

/// How often to start a supervisor that ends before its first answer: a signal of the terminal may have ended it.
const STARTS: u32 = 3;
/// How long a supervisor may take beyond the grace of its command before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between tries to kill a process that does not end.
const PAUSE: Duration = Duration::from_secs(1);
/// The variables that the supervisor itself inherits: to load libraries, and for failpoints of tests.
const PASSED_ON: [&str; 3] = ["LD_LIBRARY_PATH", "FAILPOINTS", "REFRAIN_FAILPOINT_LOG"];

/// A supervisor that is ready.
pub(crate) struct SupervisorProcess {
    child: Child,
    /// Shared with the thread that renews the lease.
    socket: Arc<UnixStream>,
    inbox: Inbox,
    mark: String,
}

/// The result of sending a command to a supervisor.
pub(crate) enum Executed {
    /// The command has ended, and the supervisor is ready for the next one.
    Ready(Answer),
    /// The command has ended, and the supervisor takes no other.
    Over(Answer),
    /// The supervisor had died before it received the command, which was not started.
    Unheard,
    /// The supervisor died before it reported the end of the command.
    Died,
}

/// The name of this process, which identifies its supervisors and the processes of its commands.
fn worker() -> String {
    process::Process::this().map_or_else(|_| "unknown".to_owned(), |this| this.to_string())
}

/// Whether any process is left of the commands of a worker: a supervisor, which outlives its worker until it has ended its
/// command, or processes of a supervisor that was killed as well. A supervisor names its worker in its arguments, which every
/// user may read.
pub(crate) fn has_commands_left(worker: &process::Process) -> bool {
    let worker = worker.to_string();
    let mark = format!("{MARK}={worker}/");
    let supervises = |arguments: &[&[u8]]| match arguments {
        [_, word, whose, ..] => *word == SUPERVISE.as_bytes() && *whose == worker.as_bytes(),
        _ => false,
    };
    process::is_running(supervises, mark.as_bytes())
}

/// The default program of a supervisor: the running program, even if its file has been replaced.
fn this_program() -> io::Result<PathBuf> {
    if !can_supervise() {
        return Err(io::Error::other(
            "this program cannot supervise commands: call `refrain::host::supervise()` first in its `main`",
        ));
    }
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

impl SupervisorProcess {
    /// Starts a supervisor.
    pub(crate) async fn start(program: Option<&Path>) -> io::Result<SupervisorProcess> {
        let program = program.map_or_else(this_program, |program| Ok(program.to_owned()))?;
        for _ in 0..STARTS {
            if let Some(ready) = started(program.clone()).await? {
                return Ok(ready);
            }
        }
        Err(io::Error::other(format!("{} did not answer as a supervisor", program.display())))
    }

    /// The value of [`MARK`] in the environment of its command.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Has a command executed that writes to these pipes, and waits until no process of it is left. The pipes are passed on;
    /// they are kept if the supervisor did not receive the command.
    pub(crate) async fn execute(
        &mut self,
        orders: &Orders,
        pipes: &mut Vec<OwnedFd>,
        lease: (&Lease, Duration),
        cancelled: &mut oneshot::Receiver<()>,
    ) -> Executed {
        let sent = tokio::select! {
            biased;
            _ = &mut *cancelled => return Executed::Over(Answer::TooLate),
            sent = self.send_orders(orders, pipes) => sent,
        };
        if sent.is_err() {
            return Executed::Unheard;
        }
        // From here on only the command holds the pipes, so its output ends with it.
        pipes.clear();
        let (lease, known) = lease;
        let socket = Arc::clone(&self.socket);
        let _listener = lease.on_renewal(known, move |until| send_lease(&socket, until));
        let mut end_by = None;
        loop {
            tokio::select! {
                answer = self.next_answer() => return match answer {
                    Some(answer @ (Answer::Ended { why: EndReason::Itself, .. } | Answer::NotStarted { .. }))
                        if end_by.is_none() => Executed::Ready(answer),
                    Some(answer) => Executed::Over(answer),
                    None => Executed::Died,
                },
                _ = &mut *cancelled, if end_by.is_none() => {
                    self.close_writing();
                    end_by = Some(Instant::now() + Duration::from_millis(orders.grace) + END_TIMEOUT);
                }
                () = sleep_until(end_by.unwrap_or_else(Instant::now)), if end_by.is_some() => {
                    let _ = self.child.kill();
                    return Executed::Died;
                }
            }
        }
    }

    /// Nothing else is sent meanwhile: the listener for renewals starts after this, and stops before the next command.
    async fn send_orders(&self, orders: &Orders, pipes: &[OwnedFd]) -> io::Result<()> {
        let line = line(orders)?;
        let mut along: Vec<_> = pipes.iter().map(AsFd::as_fd).collect();
        let mut said = 0;
        while let Some(rest) = line.get(said..).filter(|rest| !rest.is_empty()) {
            said += self.socket.async_io(Interest::WRITABLE, || say(&self.socket, rest, &along)).await?;
            along.clear();
        }
        Ok(())
    }

    /// The next answer; none if the supervisor has died. Cancel-safe.
    async fn next_answer(&mut self) -> Option<Answer> {
        loop {
            if let Some(line) = self.inbox.line() {
                return serde_json::from_slice(&line).ok();
            }
            let (inbox, socket) = (&mut self.inbox, &self.socket);
            if !socket.async_io(Interest::READABLE, || inbox.listen(socket)).await.ok()? {
                return None;
            }
        }
    }

    /// Kills the supervisor and every process of its command. It is reaped last, so that its session id stays its own.
    pub(crate) async fn kill_all(mut self) {
        let session = self.child.id();
        let _ = self.child.kill();
        // A process that was started during one pass has lost its parent by the next, but not its session.
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
                    tracing::error!(session, %error, "processes of a command cannot be killed");
                    sleep(PAUSE).await;
                }
            }
        }
        self.stop().await;
    }

    /// Stops a supervisor that has no command.
    pub(crate) async fn stop(self) {
        let _ = spawn_blocking(move || self.stop_blocking()).await;
    }

    /// Stops a supervisor that has no command, and blocks the thread. It is killed: a suspended process would not react to
    /// anything else.
    pub(crate) fn stop_blocking(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Tells the supervisor to end its command.
    fn close_writing(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }
}

/// Sends the end of the lease. If the socket is full, the supervisor is not reading, and would notice it too late anyway.
fn send_lease(socket: &UnixStream, until: Duration) {
    let _ = say(socket, format!("{}\n", milliseconds(until)).as_bytes(), &[]);
}

/// Starts a supervisor; none if it ended before its first answer.
async fn started(program: PathBuf) -> io::Result<Option<SupervisorProcess>> {
    let spawned = spawn_blocking(move || spawned(&program)).await;
    let (child, socket) = spawned.map_err(io::Error::other)??;
    socket.set_nonblocking(true)?;
    let socket = Arc::new(UnixStream::from_std(socket)?);
    let mark = format!("{}/{}-{}", worker(), child.id(), since_boot().as_nanos());
    let mut supervisor = SupervisorProcess { child, socket, inbox: Inbox::default(), mark };
    if supervisor.next_answer().await == Some(Answer::Ready) {
        return Ok(Some(supervisor));
    }
    supervisor.stop().await;
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
