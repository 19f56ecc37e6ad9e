//! The log of an attempt with several commands. Each line begins with the name of the command that printed it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use refrain_core::redact::Redactor;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::output_capture::{LastWords, LineReader};
use super::output_recorder::{BUFFER, LAST_READ, OutputBuffer, now, store_output};
use crate::run::Run;
use crate::store::outputs::{OutputStream, Piece};

/// The stored output of an attempt, which several commands write to.
pub(super) struct AttemptLog {
    buffer: Arc<OutputBuffer>,
    redactor: Redactor,
    keeper: JoinHandle<()>,
}

/// Copies the output of one command into the log while the command runs.
pub(super) struct LogWriter(Vec<JoinHandle<String>>);

impl AttemptLog {
    pub(super) fn begin(run: &Run, redactor: &Redactor) -> AttemptLog {
        let buffer = Arc::new(OutputBuffer::new(redactor));
        let (kept, run) = (Arc::clone(&buffer), run.clone());
        let keeper = tokio::spawn(async move { store_output(&kept, &run).await });
        AttemptLog { buffer, redactor: redactor.clone(), keeper }
    }

    /// Copies the output of a command into the log, each line with the name of the command. `stdout` is none if it goes to a
    /// reader in this process.
    pub(super) fn write(
        &self,
        name: &str,
        stdout: Option<OwnedFd>,
        stderr: OwnedFd,
    ) -> io::Result<LogWriter> {
        let copy = |which, pipe| {
            let pipe = pipe::Receiver::from_owned_fd(pipe)?;
            let lines = LineReader::new(&self.redactor, which);
            let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
            Ok::<_, io::Error>(tokio::spawn(copied(Arc::clone(&self.buffer), which, name, lines, pipe)))
        };
        let stdout = stdout.map(|stdout| copy(OutputStream::Stdout, stdout)).transpose()?;
        let stderr = copy(OutputStream::Stderr, stderr)?;
        Ok(LogWriter(stdout.into_iter().chain([stderr]).collect()))
    }

    /// Stores the rest of the log.
    pub(super) async fn end(self) {
        self.buffer.end();
        let _ = self.keeper.await;
    }
}

impl LogWriter {
    /// Reads the rest after the command has ended. Returns the end of its standard error, to show with a failure.
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

async fn copied(
    output: Arc<OutputBuffer>,
    which: OutputStream,
    name: String,
    mut lines: LineReader,
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
            output.add_line(Piece { stream: which, at: now(), text: format!("{name}{line}{end}") });
        }
    }
    last_words.shown()
}
