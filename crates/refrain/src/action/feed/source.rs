//! Where units come from: what a command prints, or the rows of a query.
//!
//! A source is read by a task of its own, at most one part ahead of whoever applies it: then it waits, and a command waits on
//! its pipe. A SQLite file is read to its end before anything is applied, into a file without a name: whoever reads one keeps
//! others from writing to it, and what is written may lie in the same file.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use refrain_core::project::Dialect;
use refrain_core::random::{Random as _, SystemRandom};
use refrain_core::redact::Redactor;
use sqlx::Pool;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::parts::{Line, Lines, Pages, Part};
use crate::action::binds::Bound;
use crate::action::sql::said;
use crate::job::JobError;
use crate::leaving::Seen;
use crate::project::databases::Speaks;

/// How long to read on after the end of a command: somebody outside may hold the other end of its pipe for ever.
const LAST_READ: Duration = Duration::from_secs(5);
const BUFFER: usize = 64 * 1_024;
/// How many rows of a query wait to be read.
const ROWS_AHEAD: usize = 64;

/// A source that is being read.
pub(super) struct Reading {
    parts: mpsc::Receiver<Result<Part, JobError>>,
    source: JoinHandle<Seen>,
}

/// Nobody takes any more.
struct Gone;

impl Reading {
    /// Reads what a command prints, and waits for its end.
    pub(super) fn of_command(
        stdout: oneshot::Receiver<OwnedFd>,
        ended: JoinHandle<Seen>,
        pages: Pages,
    ) -> Reading {
        let (taker, parts) = mpsc::channel(1);
        Reading { parts, source: tokio::spawn(printed(stdout, ended, Taker { pages, taker })) }
    }

    /// Reads the rows of a query.
    pub(super) fn of_query<DB: Speaks>(
        pool: Pool<DB>,
        bound: Bound,
        redactor: Redactor,
        pages: Pages,
    ) -> Reading {
        let (taker, parts) = mpsc::channel(1);
        let taker = Taker { pages, taker };
        Reading {
            parts,
            source: tokio::spawn(async move { Some(queried(&pool, &bound, &redactor, taker).await) }),
        }
    }

    /// The next part; none when there is no more, whatever the reason.
    pub(super) async fn next(&mut self) -> Result<Option<Part>, JobError> {
        self.parts.recv().await.transpose()
    }

    /// How the source ended.
    pub(super) async fn end(self) -> Result<(), JobError> {
        match self.source.await {
            Ok(Some(ended)) => ended,
            Ok(None) => Err(JobError::lost()),
            Err(error) => Err(JobError::new(format!("panicked: {error}"))),
        }
    }
}

/// Hands on what was read, part by part.
struct Taker {
    pages: Pages,
    taker: mpsc::Sender<Result<Part, JobError>>,
}

impl Taker {
    async fn take(&mut self, line: &Line) -> Result<(), Gone> {
        match self.pages.push(line) {
            Ok(None) => Ok(()),
            Ok(Some(part)) => self.taker.send(Ok(part)).await.map_err(|_| Gone),
            Err(error) => {
                // Nobody who has gone need hear it.
                let _ = self.taker.send(Err(error)).await;
                Err(Gone)
            }
        }
    }

    async fn rest(mut self) {
        let part = self.pages.rest();
        if !part.is_empty() {
            // Whoever has gone has said why.
            let _ = self.taker.send(Ok(part)).await;
        }
    }
}

fn unread(error: &io::Error) -> JobError {
    JobError::of_system("its output cannot be read", error)
}

async fn printed(stdout: oneshot::Receiver<OwnedFd>, mut ended: JoinHandle<Seen>, mut taker: Taker) -> Seen {
    let pipe = match stdout.await {
        Ok(stdout) => pipe::Receiver::from_owned_fd(stdout),
        // It never began, and says why.
        Err(_) => return seen(ended.await),
    };
    let mut pipe = match pipe {
        Ok(pipe) => pipe,
        Err(error) => return Some(Err(unread(&error))),
    };
    let (mut buffer, mut lines, mut end) = (vec![0; BUFFER], Lines::default(), None);
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
            if taker.take(&line).await.is_err() {
                return None;
            }
        }
    }
    let end = match end {
        Some(end) => end,
        None => seen(ended.await),
    };
    // A command that was cut off was, perhaps, in the middle of a line.
    if let (Some(Ok(())), Some(line)) = (&end, lines.rest())
        && taker.take(&line).await.is_err()
    {
        return None;
    }
    taker.rest().await;
    end
}

fn seen(ended: Result<Seen, tokio::task::JoinError>) -> Seen {
    ended.unwrap_or_else(|error| Some(Err(JobError::new(format!("panicked: {error}")))))
}

async fn queried<DB: Speaks>(
    pool: &Pool<DB>,
    bound: &Bound,
    redactor: &Redactor,
    mut taker: Taker,
) -> Result<(), JobError> {
    let told = |error: sqlx::Error| JobError::new(redactor.redact(&format!("the query: {}", said(&error))));
    let columns = DB::names(pool, bound).await.map_err(told)?;
    let mut sorted = columns.clone();
    sorted.sort();
    if let Some((twice, _)) = sorted.iter().zip(sorted.iter().skip(1)).find(|(one, next)| one == next) {
        let what = format!("two columns of the query are called `{twice}`\n  give each a name of its own");
        return Err(JobError::for_good(what));
    }
    let (sender, mut rows) = mpsc::channel(ROWS_AHEAD);
    let asking = async { DB::objects(pool, bound, &columns, sender).await.map_err(told) };
    if DB::DIALECT == Dialect::Sqlite {
        let unwritten =
            |error: io::Error| JobError::new(format!("the rows cannot be kept meanwhile: {error}"));
        let keeping = async { kept(&mut rows).await.map_err(unwritten) };
        let (asked, kept) = tokio::join!(asking, keeping);
        asked?;
        return reread(kept?, taker).await.map_err(unwritten);
    }
    let handing_on = async {
        while let Some(row) = rows.recv().await {
            if taker.take(&Line::from(row)).await.is_err() {
                rows.close();
                return;
            }
        }
        taker.rest().await;
    };
    tokio::join!(asking, handing_on).0
}

/// Rows in a file that has no name any more.
async fn kept(rows: &mut mpsc::Receiver<String>) -> io::Result<File> {
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

async fn reread(mut file: File, mut taker: Taker) -> io::Result<()> {
    let (mut buffer, mut lines) = (vec![0; BUFFER], Lines::default());
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        for line in lines.push(buffer.get(..length).unwrap_or_default()) {
            if taker.take(&line).await.is_err() {
                return Ok(());
            }
        }
    }
    taker.rest().await;
    Ok(())
}
