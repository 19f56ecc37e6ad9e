//! Reads what a command prints, both streams beside each other, and keeps it in the store while it goes on.
//!
//! Reading never waits for the store: what cannot be stored yet is held in the capture, which is bounded.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::redact::Redactor;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::capture::Capture;
use crate::run::Run;
use crate::store::Result;
use crate::store::outputs::{OutputStream, Piece, append};

/// How long output may wait for more of it before it is stored.
const PAUSE: Duration = Duration::from_secs(1);
/// How long to read on after the end: somebody outside may hold the other end of a pipe for ever.
const LAST_READ: Duration = Duration::from_secs(5);
/// How often storing the last of it is tried, a pause apart, before it is given up.
const LAST_TRIES: u32 = 5;
const BUFFER: usize = 32 * 1_024;

/// The output of an attempt while it is being read.
pub(super) struct Recording {
    desk: Arc<Desk>,
    readers: [JoinHandle<()>; 2],
    keeper: JoinHandle<()>,
}

/// Where the readers and the keeper meet.
struct Desk {
    capture: Mutex<Capture>,
    /// There is something to store.
    news: Notify,
    /// There is enough for a batch.
    full: Notify,
    over: AtomicBool,
}

impl Desk {
    fn capture(&self) -> MutexGuard<'_, Capture> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    /// Begins to read, for an attempt of a run.
    pub(super) fn begin(
        run: &Run,
        redactor: &Redactor,
        stdout: ChildStdout,
        stderr: ChildStderr,
    ) -> io::Result<Recording> {
        let desk = Arc::new(Desk {
            capture: Mutex::new(Capture::new(redactor)),
            news: Notify::new(),
            full: Notify::new(),
            over: AtomicBool::new(false),
        });
        let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?;
        let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;
        let readers = [
            tokio::spawn(read(Arc::clone(&desk), OutputStream::Stdout, stdout)),
            tokio::spawn(read(Arc::clone(&desk), OutputStream::Stderr, stderr)),
        ];
        let keeper = tokio::spawn(keep(Arc::clone(&desk), run.clone()));
        Ok(Recording { desk, readers, keeper })
    }

    /// All that wrote have ended: reads and stores the rest. Gives the end of standard error, for people.
    pub(super) async fn end(self) -> String {
        for mut reader in self.readers {
            if timeout(LAST_READ, &mut reader).await.is_err() {
                reader.abort();
            }
        }
        self.desk.capture().end(now());
        self.desk.over.store(true, Ordering::Release);
        self.desk.news.notify_one();
        self.desk.full.notify_one();
        let _ = self.keeper.await;
        self.desk.capture().last_words()
    }
}

async fn read(desk: Arc<Desk>, which: OutputStream, mut stream: pipe::Receiver) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let is_full = {
            let mut capture = desk.capture();
            capture.push(which, buffer.get(..length).unwrap_or_default(), now());
            capture.is_full()
        };
        desk.news.notify_one();
        if is_full {
            desk.full.notify_one();
        }
    }
}

async fn keep(desk: Arc<Desk>, run: Run) {
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
        while let Err(error) = store_all(&run, first, &pieces).await {
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

fn now() -> i64 {
    Timestamp::now().as_microsecond()
}
