//! Reads what a command prints, both streams beside each other, and keeps it in the store while it goes on.
//!
//! Reading never waits for the store: what cannot be stored yet is held in the capture, which is bounded. All of it is part of
//! the task that waits for the command: a task for each would cost more than most output does.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::redact::Redactor;
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::output_capture::Capture;
use crate::run::Run;
use crate::store::Result;
use crate::store::outputs::{OutputStream, Piece, append};

/// How long output may wait for more of it before it is stored.
const PAUSE: Duration = Duration::from_secs(1);
/// How long to read on after the end: somebody outside may hold the other end of a pipe for ever.
pub(super) const LAST_READ: Duration = Duration::from_secs(5);
/// How often storing the last of it is tried, a pause apart, before it is given up.
const LAST_TRIES: u32 = 5;
pub(super) const BUFFER: usize = 16 * 1_024;

/// The output of an attempt, about to be read.
pub(super) struct Recording {
    desk: Desk,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

/// Where the readers and the keeper meet.
pub(super) struct Desk {
    capture: Mutex<Capture>,
    /// There is something to store.
    news: Notify,
    /// There is enough for a batch.
    full: Notify,
    over: AtomicBool,
}

impl Desk {
    pub(super) fn new(redactor: &Redactor) -> Desk {
        Desk {
            capture: Mutex::new(Capture::new(redactor)),
            news: Notify::new(),
            full: Notify::new(),
            over: AtomicBool::new(false),
        }
    }

    /// Takes a whole line.
    pub(super) fn keep(&self, line: Piece) {
        self.take(|capture| capture.keep(line));
    }

    fn take(&self, take: impl FnOnce(&mut Capture)) {
        let is_full = {
            let mut capture = self.capture();
            take(&mut capture);
            capture.is_full()
        };
        self.news.notify_one();
        if is_full {
            self.full.notify_one();
        }
    }

    fn capture(&self) -> MutexGuard<'_, Capture> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more is read.
    pub(super) fn end(&self) {
        self.capture().end(now());
        self.over.store(true, Ordering::Release);
        self.news.notify_one();
        self.full.notify_one();
    }
}

impl Recording {
    /// Gives it with the ends to which the command is to print.
    pub(super) fn new(redactor: &Redactor) -> io::Result<(Recording, Vec<OwnedFd>)> {
        let (stdout, to_stdout) = io::pipe()?;
        let (stderr, to_stderr) = io::pipe()?;
        let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?;
        let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;
        Ok((
            Recording { desk: Desk::new(redactor), stdout, stderr },
            vec![to_stdout.into(), to_stderr.into()],
        ))
    }

    /// Reads and stores what is printed until the work is over, and the rest of it then. Gives what the work came to, and the end
    /// of standard error, for people.
    pub(super) async fn during<T>(self, run: &Run, work: impl Future<Output = T>) -> (T, String) {
        let Recording { desk, stdout, stderr } = self;
        let seen = async {
            let mut reading = pin!(async {
                tokio::join!(
                    read(&desk, OutputStream::Stdout, stdout),
                    read(&desk, OutputStream::Stderr, stderr)
                )
            });
            let mut work = pin!(work);
            let came_to = tokio::select! {
                biased;
                came_to = &mut work => {
                    let _ = timeout(LAST_READ, reading).await;
                    came_to
                }
                _ = &mut reading => work.await,
            };
            desk.end();
            came_to
        };
        let (came_to, ()) = tokio::join!(seen, keep(&desk, run));
        let last_words = desk.capture().last_words();
        (came_to, last_words)
    }
}

async fn read(desk: &Desk, which: OutputStream, stream: pipe::Receiver) {
    while stream.readable().await.is_ok() {
        match read_once(desk, which, &stream) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return,
        }
    }
}

/// Reads what is there. A buffer is only ever needed here, not for as long as a command goes on.
fn read_once(desk: &Desk, which: OutputStream, stream: &pipe::Receiver) -> io::Result<usize> {
    let mut buffer = [0; BUFFER];
    let length = stream.try_read(&mut buffer)?;
    if length > 0 {
        desk.take(|capture| capture.push(which, buffer.get(..length).unwrap_or_default(), now()));
    }
    Ok(length)
}

/// Stores what is there, until nothing more is read.
pub(super) async fn keep(desk: &Desk, run: &Run) {
    let mut first = 1;
    loop {
        desk.news.notified().await;
        if !desk.over.load(Ordering::Acquire) {
            // Whether it came or not: it is time.
            let _ = timeout(PAUSE, desk.full.notified()).await;
        }
        let is_over = desk.over.load(Ordering::Acquire);
        let pieces = desk.capture().take();
        let mut failures = 0;
        while let Err(error) = store_all(run, first, &pieces).await {
            failures += u32::from(desk.over.load(Ordering::Acquire));
            let (job, key, attempt) = (run.job(), run.key(), run.facts.attempt);
            tracing::warn!(%job, key, attempt, %error, "output could not be stored");
            if failures >= LAST_TRIES {
                return;
            }
            sleep(PAUSE).await;
        }
        first += i64::try_from(pieces.len()).unwrap_or_default();
        if is_over {
            return;
        }
    }
}

async fn store_all(run: &Run, first: i64, pieces: &[Piece]) -> Result<()> {
    if pieces.is_empty() {
        return Ok(());
    }
    append(&run.surroundings.store, run.row, run.facts.attempt, first, pieces).await
}

pub(super) fn now() -> i64 {
    Timestamp::now().as_microsecond()
}
