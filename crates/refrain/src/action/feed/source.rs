//! Reads a source of units: the output of a command, or the rows of a query.
//!
//! A task of its own reads the source, at most one part ahead of the task that applies it; then it waits, and a command
//! waits on its pipe. A query of a SQLite file is read to its end before anything is applied, into an unnamed file: a reader
//! blocks writers of a SQLite file, and the units may be written to the same file.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use refrain_core::Values;
use refrain_core::project::{Dialect, Sql};
use refrain_core::random::{Random as _, SystemRandom};
use refrain_core::redact::Redactor;
use sqlx::Pool;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::BEGINNING;
use super::parts::{LineSplitter, PartBuilder, SourceLine, SourcePart};
use crate::bind::context::About;
use crate::database::begun_to_look_in;
use crate::run::JobError;
use crate::run::awaited_task::TaskResult;
use crate::user_database::{Backend, BoundQuery, UserDatabase, message_of, on_pool};

/// How long to read on after a command has ended: another process may hold the other end of its pipe for ever.
const LAST_READ: Duration = Duration::from_secs(5);
const BUFFER: usize = 64 * 1_024;
/// How many rows of a query are buffered.
const ROWS_AHEAD: usize = 64;

/// A source that is being read.
pub(super) struct SourceReader {
    parts: mpsc::Receiver<Result<SourcePart, JobError>>,
    task: JoinHandle<TaskResult>,
}

/// The receiver of parts was dropped.
struct ReceiverGone;

impl SourceReader {
    /// Reads the output of a command, and waits for its end.
    pub(super) fn of_command(
        stdout: oneshot::Receiver<OwnedFd>,
        ended: JoinHandle<TaskResult>,
        builder: PartBuilder,
    ) -> SourceReader {
        let (sender, parts) = mpsc::channel(1);
        SourceReader { parts, task: tokio::spawn(read_output(stdout, ended, PartSender { builder, sender })) }
    }

    /// Reads the rows of a query.
    pub(super) async fn of_query(
        query: &Sql,
        database: &UserDatabase,
        about: &About,
        values: &Values,
        builder: PartBuilder,
        only_looks: bool,
    ) -> Result<SourceReader, JobError> {
        let mut values = values.clone();
        values.watermark =
            values.watermark.map(|mark| if mark.is_empty() { BEGINNING.to_owned() } else { mark });
        on_pool!(database.connect().await?, |pool| SourceReader::of_pool(
            query, pool, database, about, &values, builder, only_looks
        )
        .await)
    }

    async fn of_pool<DB: Backend>(
        query: &Sql,
        pool: &Pool<DB>,
        database: &UserDatabase,
        about: &About,
        values: &Values,
        builder: PartBuilder,
        only_looks: bool,
    ) -> Result<SourceReader, JobError> {
        let missing = || JobError::for_good("this job has no query");
        let bound = about.bound::<DB>([query], values, database.time()).await?;
        let bound = bound.into_iter().next().ok_or_else(missing)?;
        let (pool, redactor) = (pool.clone(), about.redactor.clone());
        let (sender, parts) = mpsc::channel(1);
        let sender = PartSender { builder, sender };
        let task =
            tokio::spawn(async move { Some(read_rows(&pool, &bound, &redactor, sender, only_looks).await) });
        Ok(SourceReader { parts, task })
    }

    /// The next part; none at the end of the source, or when reading has failed.
    pub(super) async fn next(&mut self) -> Result<Option<SourcePart>, JobError> {
        self.parts.recv().await.transpose()
    }

    /// How the source ended.
    pub(super) async fn end(self) -> Result<(), JobError> {
        match self.task.await {
            Ok(Some(ended)) => ended,
            Ok(None) => Err(JobError::lost()),
            Err(error) => Err(JobError::new(format!("panicked: {error}"))),
        }
    }
}

/// Makes parts of lines, and sends them to the task that applies them.
struct PartSender {
    builder: PartBuilder,
    sender: mpsc::Sender<Result<SourcePart, JobError>>,
}

impl PartSender {
    async fn send(&mut self, line: &SourceLine) -> Result<(), ReceiverGone> {
        match self.builder.push(line) {
            Ok(None) => Ok(()),
            Ok(Some(part)) => self.sender.send(Ok(part)).await.map_err(|_| ReceiverGone),
            Err(error) => {
                // The receiver may be gone; then it needs no error.
                let _ = self.sender.send(Err(error)).await;
                Err(ReceiverGone)
            }
        }
    }

    /// Sends what is left after the last line.
    async fn finish(mut self) {
        let part = self.builder.rest();
        if !part.is_empty() {
            // A receiver that is gone has reported its own error.
            let _ = self.sender.send(Ok(part)).await;
        }
    }
}

fn unread(error: &io::Error) -> JobError {
    JobError::of_system("its output cannot be read", error)
}

async fn read_output(
    stdout: oneshot::Receiver<OwnedFd>,
    mut ended: JoinHandle<TaskResult>,
    mut sender: PartSender,
) -> TaskResult {
    let pipe = match stdout.await {
        Ok(stdout) => pipe::Receiver::from_owned_fd(stdout),
        // The command was not started; its result has the reason.
        Err(_) => return seen(ended.await),
    };
    let mut pipe = match pipe {
        Ok(pipe) => pipe,
        Err(error) => return Some(Err(unread(&error))),
    };
    let (mut buffer, mut lines, mut end) = (vec![0; BUFFER], LineSplitter::default(), None);
    loop {
        let length = tokio::select! {
            biased;
            read = pipe.read(&mut buffer) => match read {
                Ok(length) => length,
                Err(error) => return Some(Err(unread(&error))),
            },
            ended = &mut ended, if end.is_none() => {
                end = Some(seen(ended));
                continue;
            }
            () = sleep(LAST_READ), if end.is_some() => 0,
        };
        if length == 0 {
            break;
        }
        for line in lines.push(buffer.get(..length).unwrap_or_default()) {
            if sender.send(&line).await.is_err() {
                return None;
            }
        }
    }
    let end = match end {
        Some(end) => end,
        None => seen(ended.await),
    };
    // A command that was killed may have stopped in the middle of a line.
    if let (Some(Ok(())), Some(line)) = (&end, lines.rest())
        && sender.send(&line).await.is_err()
    {
        return None;
    }
    sender.finish().await;
    end
}

fn seen(ended: Result<TaskResult, tokio::task::JoinError>) -> TaskResult {
    ended.unwrap_or_else(|error| Some(Err(JobError::new(format!("panicked: {error}")))))
}

async fn read_rows<DB: Backend>(
    pool: &Pool<DB>,
    bound: &BoundQuery,
    redactor: &Redactor,
    mut sender: PartSender,
    only_looks: bool,
) -> Result<(), JobError> {
    let failed =
        |error: sqlx::Error| JobError::new(redactor.redact(&format!("the query: {}", message_of(&error))));
    let (columns, _) =
        DB::columns(&mut *pool.acquire().await.map_err(failed)?, bound).await.map_err(failed)?;
    let mut sorted = columns.clone();
    sorted.sort();
    if let Some((twice, _)) = sorted.iter().zip(sorted.iter().skip(1)).find(|(one, next)| one == next) {
        let what = format!("two columns of the query are named `{twice}`\n  give each column its own name");
        return Err(JobError::for_good(what));
    }
    let (row_sender, mut rows) = mpsc::channel(ROWS_AHEAD);
    let asking = async { ask(pool, bound, &columns, row_sender, only_looks).await.map_err(failed) };
    if DB::DIALECT == Dialect::Sqlite {
        let not_spooled = |error: io::Error| {
            JobError::new(format!("the rows of the query cannot be written to a temporary file: {error}"))
        };
        let spooling = async { spooled(&mut rows).await.map_err(not_spooled) };
        let (queried, spooled) = tokio::join!(asking, spooling);
        queried?;
        return send_spooled(spooled?, sender).await.map_err(not_spooled);
    }
    let sending = async {
        while let Some(row) = rows.recv().await {
            if sender.send(&SourceLine::from(row)).await.is_err() {
                rows.close();
                return;
            }
        }
        sender.finish().await;
    };
    tokio::join!(asking, sending).0
}

/// Executes the query. A look does so in a transaction that must not write: a query can call functions that do.
async fn ask<DB: Backend>(
    pool: &Pool<DB>,
    bound: &BoundQuery,
    columns: &[String],
    rows: mpsc::Sender<String>,
    only_looks: bool,
) -> Result<(), sqlx::Error> {
    if !only_looks {
        return DB::objects(&mut *pool.acquire().await?, bound, columns, rows).await;
    }
    let mut looking = begun_to_look_in(pool).await?;
    DB::objects(&mut looking, bound, columns, rows).await?;
    looking.rollback().await
}

/// Writes rows to a file that is already unlinked.
async fn spooled(rows: &mut mpsc::Receiver<String>) -> io::Result<File> {
    let name = format!("refrain-{}-{:016x}", std::process::id(), SystemRandom::new().next_u64());
    let path = std::env::temp_dir().join(name);
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    let mut writer = BufWriter::new(file);
    while let Some(row) = rows.recv().await {
        writer.write_all(row.as_bytes())?;
        writer.write_all(b"\n")?;
    }
    let mut file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

async fn send_spooled(mut file: File, mut sender: PartSender) -> io::Result<()> {
    let (mut buffer, mut lines) = (vec![0; BUFFER], LineSplitter::default());
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        for line in lines.push(buffer.get(..length).unwrap_or_default()) {
            if sender.send(&line).await.is_err() {
                return Ok(());
            }
        }
    }
    sender.finish().await;
    Ok(())
}
