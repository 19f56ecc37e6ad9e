//! Reads both output streams of a command, and stores them while it runs.
//!
//! Reading never waits for the store: what cannot be stored yet stays in the capture, which is bounded. Everything happens in
//! the task that waits for the command: a task per stream would cost more than most output does.

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

use super::output_capture::OutputCapture;
use crate::run::Run;
use crate::store::Result;
use crate::store::outputs::{OutputStream, Piece, append};

/// How long output is collected before it is stored.
const PAUSE: Duration = Duration::from_secs(1);
/// How long to read on after the end of the command: another process may hold the other end of a pipe for ever.
pub(super) const LAST_READ: Duration = Duration::from_secs(5);
/// How often to try to store the last of the output, with a pause between tries.
const LAST_TRIES: u32 = 5;
pub(super) const BUFFER: usize = 16 * 1_024;

/// The output of a command that is about to start.
pub(super) struct OutputRecorder {
    buffer: OutputBuffer,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

/// The output that was read and is not stored yet, shared by the readers and the task that stores it.
pub(super) struct OutputBuffer {
    capture: Mutex<OutputCapture>,
    /// Notified when there is something to store.
    news: Notify,
    /// Notified when there is enough for a batch.
    full: Notify,
    over: AtomicBool,
}

impl OutputBuffer {
    pub(super) fn new(redactor: &Redactor) -> OutputBuffer {
        OutputBuffer {
            capture: Mutex::new(OutputCapture::new(redactor)),
            news: Notify::new(),
            full: Notify::new(),
            over: AtomicBool::new(false),
        }
    }

    /// Adds a whole line.
    pub(super) fn add_line(&self, line: Piece) {
        self.add(|capture| capture.add_line(line));
    }

    fn add(&self, add: impl FnOnce(&mut OutputCapture)) {
        let is_full = {
            let mut capture = self.capture();
            add(&mut capture);
            capture.is_full()
        };
        self.news.notify_one();
        if is_full {
            self.full.notify_one();
        }
    }

    fn capture(&self) -> MutexGuard<'_, OutputCapture> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the end of the output.
    pub(super) fn end(&self) {
        self.capture().end(now());
        self.over.store(true, Ordering::Release);
        self.news.notify_one();
        self.full.notify_one();
    }
}

impl OutputRecorder {
    /// Returns a recorder, and the ends of the pipes that the command writes to.
    pub(super) fn new(redactor: &Redactor) -> io::Result<(OutputRecorder, Vec<OwnedFd>)> {
        let (stdout, to_stdout) = io::pipe()?;
        let (stderr, to_stderr) = io::pipe()?;
        let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?;
        let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;
        Ok((
            OutputRecorder { buffer: OutputBuffer::new(redactor), stdout, stderr },
            vec![to_stdout.into(), to_stderr.into()],
        ))
    }

    /// Reads and stores output until the work has ended, then the rest. Returns the result of the work, and the end of standard
    /// error to show with a failure.
    pub(super) async fn during<T>(self, run: &Run, work: impl Future<Output = T>) -> (T, String) {
        let OutputRecorder { buffer, stdout, stderr } = self;
        let working = async {
            let mut reading = pin!(async {
                tokio::join!(
                    read(&buffer, OutputStream::Stdout, stdout),
                    read(&buffer, OutputStream::Stderr, stderr)
                )
            });
            let mut work = pin!(work);
            let result = tokio::select! {
                biased;
                result = &mut work => {
                    let _ = timeout(LAST_READ, reading).await;
                    result
                }
                _ = &mut reading => work.await,
            };
            buffer.end();
            result
        };
        let (result, ()) = tokio::join!(working, store_output(&buffer, run));
        let last_words = buffer.capture().last_words();
        (result, last_words)
    }
}

async fn read(buffer: &OutputBuffer, which: OutputStream, stream: pipe::Receiver) {
    while stream.readable().await.is_ok() {
        match read_once(buffer, which, &stream) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return,
        }
    }
}

/// Reads the available output. The byte buffer lives only here, not for as long as the command runs.
fn read_once(output: &OutputBuffer, which: OutputStream, stream: &pipe::Receiver) -> io::Result<usize> {
    let mut buffer = [0; BUFFER];
    let length = stream.try_read(&mut buffer)?;
    if length > 0 {
        output.add(|capture| capture.push(which, buffer.get(..length).unwrap_or_default(), now()));
    }
    Ok(length)
}

/// Stores output until its end.
pub(super) async fn store_output(buffer: &OutputBuffer, run: &Run) {
    let mut first = 1;
    loop {
        buffer.news.notified().await;
        if !buffer.over.load(Ordering::Acquire) {
            // After the pause a batch is stored even if it is not full.
            let _ = timeout(PAUSE, buffer.full.notified()).await;
        }
        let is_over = buffer.over.load(Ordering::Acquire);
        let pieces = buffer.capture().take();
        let mut failures = 0;
        while let Err(error) = store_all(run, first, &pieces).await {
            failures += u32::from(buffer.over.load(Ordering::Acquire));
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
