//! The log of an attempt with several commands: each is a voice in it, and each line begins with whose it is.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use refrain_core::redact::Redactor;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::output_capture::{LastWords, Stream};
use super::output_recorder::{BUFFER, Desk, LAST_READ, keep, now};
use crate::run::Run;
use crate::store::outputs::{OutputStream, Piece};

/// What is kept of an attempt's output. Several commands may print into it.
pub(super) struct Log {
    desk: Arc<Desk>,
    redactor: Redactor,
    keeper: JoinHandle<()>,
}

/// One of several commands that print into one log, while it is being heard.
pub(super) struct Voice(Vec<JoinHandle<String>>);

impl Log {
    pub(super) fn begin(run: &Run, redactor: &Redactor) -> Log {
        let desk = Arc::new(Desk::new(redactor));
        let (kept, run) = (Arc::clone(&desk), run.clone());
        let keeper = tokio::spawn(async move { keep(&kept, &run).await });
        Log { desk, redactor: redactor.clone(), keeper }
    }

    /// Hears a command of which others are beside: each line begins with its name. Its standard output may be for
    /// somebody else.
    pub(super) fn hear(&self, name: &str, stdout: Option<OwnedFd>, stderr: OwnedFd) -> io::Result<Voice> {
        let hear = |which, pipe| {
            let pipe = pipe::Receiver::from_owned_fd(pipe)?;
            let lines = Stream::new(&self.redactor, which);
            let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
            Ok::<_, io::Error>(tokio::spawn(heard(Arc::clone(&self.desk), which, name, lines, pipe)))
        };
        let stdout = stdout.map(|stdout| hear(OutputStream::Stdout, stdout)).transpose()?;
        let stderr = hear(OutputStream::Stderr, stderr)?;
        Ok(Voice(stdout.into_iter().chain([stderr]).collect()))
    }

    /// Nothing more is said: stores the rest.
    pub(super) async fn end(self) {
        self.desk.end();
        let _ = self.keeper.await;
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
