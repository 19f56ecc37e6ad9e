//! The worker's side of a supervisor: starts one, passes on that the lease was renewed, and stays until everything is over.
//!
//! Whatever becomes of the job's future, this is a task of its own and sees it through; only then is the ending recorded.
//! Should the supervisor die before its word, what it stood over is found by its session and ended here.

use std::collections::HashSet;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

use super::protocol::{Answer, Orders};
use super::supervisor::{SUPERVISE, can_supervise, milliseconds};
use crate::lease::Lease;
use crate::process;

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
    answers: Lines<BufReader<OwnedReadHalf>>,
    words: OwnedWriteHalf,
    /// The same socket, for the thread that renews the lease.
    socket: Arc<UnixStream>,
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
    /// Starts a supervisor. Gives it with the ends of the pipes to which its command will print.
    pub(super) async fn start(program: Option<&Path>) -> io::Result<(Attendant, ChildStdout, ChildStderr)> {
        let program = program.map_or_else(this_program, |program| Ok(program.to_owned()))?;
        for _ in 1..STARTS {
            if let Some(ready) = started(program.clone()).await? {
                return Ok(ready);
            }
        }
        let last = started(program.clone()).await?;
        last.ok_or_else(|| io::Error::other(format!("{} did not answer as a supervisor", program.display())))
    }

    /// Has a command executed, and waits until all of it is over. None if the supervisor died before it could say so.
    pub(super) async fn execute(
        &mut self,
        orders: &Orders,
        lease: &Lease,
        mut called_off: oneshot::Receiver<()>,
    ) -> Option<Answer> {
        let mut line = serde_json::to_vec(orders).ok()?;
        line.push(b'\n');
        self.words.write_all(&line).await.ok()?;
        let socket = Arc::clone(&self.socket);
        let _telling = lease.told(move |until| say_good(&socket, until));
        let mut end_by = None;
        loop {
            tokio::select! {
                line = self.answers.next_line() => match serde_json::from_str(&line.ok()??).ok()? {
                    Answer::Ready => {}
                    Answer::Started { process } => tracing::debug!(process, "a command has begun"),
                    answer => return Some(answer),
                },
                _ = &mut called_off, if end_by.is_none() => {
                    let _ = self.socket.shutdown(Shutdown::Write);
                    end_by = Some(Instant::now() + Duration::from_millis(orders.grace) + PATIENCE);
                }
                () = sleep_until(end_by.unwrap_or_else(Instant::now)), if end_by.is_some() => {
                    let _ = self.child.kill();
                    return None;
                }
            }
        }
    }

    /// Ends the supervisor, and whatever it has left: it is not reaped before, so its session is its own.
    pub(super) async fn bury(mut self) {
        let session = self.child.id();
        let _ = self.child.kill();
        // One that was begun behind the look's back has lost its parent by the next one, and not its session.
        let mut sessions = HashSet::from([session]);
        loop {
            let mut known = sessions.clone();
            let left = spawn_blocking(move || {
                let ended = process::descendants(&mut known).and_then(|left| {
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

    /// Reaps a supervisor that has nothing more to do.
    pub(super) async fn leave(mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = spawn_blocking(move || self.child.wait()).await;
    }
}

/// Says up to when the lease is good. A supervisor that does not read would only ever miss what comes too late.
fn say_good(mut socket: &UnixStream, until: Duration) {
    let _ = socket.write_all(format!("{}\n", milliseconds(until)).as_bytes());
}

/// None if it ended before its first word.
async fn started(program: PathBuf) -> io::Result<Option<(Attendant, ChildStdout, ChildStderr)>> {
    let spawned = spawn_blocking(move || spawned(&program)).await;
    let (mut child, socket) = spawned.map_err(io::Error::other)??;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("a supervisor without output"));
    };
    socket.set_nonblocking(true)?;
    let ours = tokio::net::UnixStream::from_std(socket.try_clone()?)?;
    let (answers, words) = ours.into_split();
    let answers = BufReader::new(answers).lines();
    let mut attendant = Attendant { child, answers, words, socket: Arc::new(socket) };
    let first = attendant.answers.next_line().await.ok().flatten();
    if first.and_then(|line| serde_json::from_str(&line).ok()) == Some(Answer::Ready) {
        return Ok(Some((attendant, stdout, stderr)));
    }
    let _ = attendant.child.kill();
    attendant.leave().await;
    Ok(None)
}

fn spawned(program: &Path) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = std::process::Command::new(program);
    command.arg0("refrain").arg(SUPERVISE).current_dir("/");
    command.env_clear().envs(PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn()?;
    Ok((child, ours))
}
