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

use super::capture::{Capture, LastWords, Stream};
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
    log: Log,
    readers: [JoinHandle<()>; 2],
}

/// What is kept of an attempt's output. Several commands may print into it.
pub(super) struct Log {
    desk: Arc<Desk>,
    redactor: Redactor,
    keeper: JoinHandle<()>,
}

/// One of several commands that print into one log, while it is being heard.
pub(super) struct Voice(Vec<JoinHandle<String>>);

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

    fn keep(&self, line: Piece) {
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
}

impl Recording {
    /// Begins to read, for an attempt of a run.
    pub(super) fn begin(
        run: &Run,
        redactor: &Redactor,
        stdout: ChildStdout,
        stderr: ChildStderr,
    ) -> io::Result<Recording> {
        let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?;
        let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;
        let log = Log::begin(run, redactor);
        let readers = [
            tokio::spawn(read(Arc::clone(&log.desk), OutputStream::Stdout, stdout)),
            tokio::spawn(read(Arc::clone(&log.desk), OutputStream::Stderr, stderr)),
        ];
        Ok(Recording { log, readers })
    }

    /// All that wrote have ended: reads and stores the rest. Gives the end of standard error, for people.
    pub(super) async fn end(self) -> String {
        for mut reader in self.readers {
            if timeout(LAST_READ, &mut reader).await.is_err() {
                reader.abort();
            }
        }
        self.log.end().await
    }
}

impl Log {
    pub(super) fn begin(run: &Run, redactor: &Redactor) -> Log {
        let desk = Arc::new(Desk {
            capture: Mutex::new(Capture::new(redactor)),
            news: Notify::new(),
            full: Notify::new(),
            over: AtomicBool::new(false),
        });
        let keeper = tokio::spawn(keep(Arc::clone(&desk), run.clone()));
        Log { desk, redactor: redactor.clone(), keeper }
    }

    /// Hears a command of which others are beside: each line begins with its name. Its standard output may be for
    /// somebody else.
    pub(super) fn hear(
        &self,
        name: &str,
        stdout: Option<ChildStdout>,
        stderr: ChildStderr,
    ) -> io::Result<Voice> {
        let hear = |which, pipe| {
            let pipe = pipe::Receiver::from_owned_fd(pipe)?;
            let lines = Stream::new(&self.redactor, which);
            let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
            Ok::<_, io::Error>(tokio::spawn(heard(Arc::clone(&self.desk), which, name, lines, pipe)))
        };
        let stdout = stdout.map(|stdout| hear(OutputStream::Stdout, OwnedFd::from(stdout))).transpose()?;
        let stderr = hear(OutputStream::Stderr, OwnedFd::from(stderr))?;
        Ok(Voice(stdout.into_iter().chain([stderr]).collect()))
    }

    /// Nothing more is said: stores the rest. Gives the end of standard error.
    pub(super) async fn end(self) -> String {
        self.desk.capture().end(now());
        self.desk.over.store(true, Ordering::Release);
        self.desk.news.notify_one();
        self.desk.full.notify_one();
        let _ = self.keeper.await;
        self.desk.capture().last_words()
    }
}

impl Voice {
    /// It has ended: reads the rest. Gives the end of its standard error, for people.
    pub(super) async fn end(self) -> String {
        let mut last_words = String::new();
        for mut reader in self.0 {
            match timeout(LAST_READ, &mut reader).await {
                Ok(words) => last_words = words.unwrap_or_default(),
                Err(_) => reader.abort(),
            }
        }
        last_words
    }
}

async fn heard(
    desk: Arc<Desk>,
    which: OutputStream,
    name: String,
    mut lines: Stream,
    mut pipe: pipe::Receiver,
) -> String {
    let (mut buffer, mut last_words) = (vec![0; BUFFER], LastWords::default());
    let mut is_over = false;
    while !is_over {
        let length = pipe.read(&mut buffer).await.unwrap_or(0);
        is_over = length == 0;
        let read = if is_over { lines.end() } else { lines.read(buffer.get(..length).unwrap_or_default()) };
        for line in read {
            last_words.push(&line);
            let end = if line.ends_with('\n') { "" } else { "\n" };
            desk.keep(Piece { stream: which, at: now(), text: format!("{name}{line}{end}") });
        }
    }
    last_words.shown()
}

async fn read(desk: Arc<Desk>, which: OutputStream, mut stream: pipe::Receiver) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        desk.take(|capture| capture.push(which, buffer.get(..length).unwrap_or_default(), now()));
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
