//! Reads a source once more and compares it with the table that its units went to. Nothing is applied, no checkpoint is read
//! or moved: the source is asked for everything that it has.

use std::process::Stdio;

use refrain_core::feed::{Apply, FeedSource};
use refrain_core::publish::TablePublish;
use refrain_core::publish::target::CONTENT_HASH;
use refrain_core::{ContentError, Fingerprint, Values};
use sqlx::Pool;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command as Process};
use tokio::sync::oneshot;

use super::Feeding;
use super::bulk_write::PAGE_LINES_MAX;
use super::parts::{Pages, Part};
use super::source::Reading;
use super::unit::{Shape, Unit};
use super::unit_rows::{Alike, alike};
use crate::action::command_failure;
use crate::action::environment::{inherited, name_of};
use crate::action::output_capture::{LastWords, Stream};
use crate::action::supervisor_protocol::{End, Fault};
use crate::database::begun_in;
use crate::job::JobError;
use crate::leaving::Seen;
use crate::project::databases::{Connected, Database};
use crate::publish::comparison::{Comparison, Differences, Staged};
use crate::publish::error::{WriteError, of};
use crate::publish::rows::{Cell, Row};
use crate::publish::table::Publishes;
use crate::publish::writer::Writer;
use crate::run::Run;
use crate::store::outputs::OutputStream;

const BUFFER: usize = 16 * 1_024;

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciled {
    /// The run whose source it is.
    pub run: String,
    /// The table.
    pub table: String,
    /// How many units the source has.
    pub units: u64,
    /// How many of its lines are no units.
    pub unreadable: u64,
    /// Where they differ.
    pub differences: Differences,
}

impl Feeding {
    /// Compares all that the source has with the table.
    pub(crate) async fn reconcile(&self, run: &Run) -> Result<Reconciled, JobError> {
        let Apply::Publish(publish) = &self.feed.apply else {
            let told =
                "the units of this job are no rows of a table\n  only those of [publish] can be compared";
            return Err(JobError::for_good(told));
        };
        let database = self.about.database(&publish.database)?;
        let compared = match database.connect().await? {
            Connected::Sqlite(pool) => self.compared(run, publish, pool, database).await,
            Connected::Postgres(pool) => self.compared(run, publish, pool, database).await,
        };
        compared.map_err(|error| error.told(&self.about.redactor))
    }

    async fn compared<DB: Publishes>(
        &self,
        run: &Run,
        publish: &TablePublish,
        pool: &Pool<DB>,
        database: &Database,
    ) -> Result<Reconciled, WriteError> {
        let everything = Values {
            cursor: self.feed.cursor.as_ref().map(|_| String::new()),
            watermark: self.feed.watermark.as_ref().map(|_| String::new()),
            ..self.about.values(run)
        };
        let writer = Writer::look(pool, publish, &self.about, &everything, database).await?;
        let mut transaction = of("the table cannot be compared", begun_in(pool).await)?;
        let mut comparison = Comparison::<DB>::begin(&mut transaction, publish, writer).await?;
        let shape = Shape::of(&self.feed, &everything);
        let pages = Pages::new(shape, self.feed.cursor.is_some(), PAGE_LINES_MAX);
        let mut reading = match &self.feed.source {
            FeedSource::Query(query) => self.asking(query, &everything, pages).await?,
            FeedSource::Command(_) => self.executing(run, &everything, pages)?,
        };
        let (mut number, mut unreadable) = (0, 0);
        let unhashed = |error| WriteError::Unfit(format!("a unit cannot be read: {error}"));
        while let Some(part) = reading.next().await? {
            unreadable += part.odd.len() as u64;
            for staged in staged(&part, comparison.lands(), number).map_err(unhashed)? {
                comparison.add(&mut transaction, staged).await?;
            }
            number += part.units.len() as u64;
        }
        reading.end().await?;
        let (units, differences) = comparison.conclude(&mut transaction, &name_of(run)).await?;
        of("the table cannot be compared", transaction.rollback().await)?;
        let (run, table) = (name_of(run), publish.table.to_string());
        Ok(Reconciled { run, table, units, unreadable, differences })
    }

    /// Executes the command of the source outside of any attempt: it is ended by closing its pipe.
    fn executing(&self, run: &Run, values: &Values, pages: Pages) -> Result<Reading, JobError> {
        let command = self.command(run, values)?;
        let nothing = || JobError::for_good("there is no program to execute");
        let (program, arguments) = command.argv.split_first().ok_or_else(nothing)?;
        let path = if program.contains('/') { command.directory.join(program) } else { program.into() };
        let (texts, others) = inherited(&command.inherit);
        let mut process = Process::new(path);
        process.args(arguments).current_dir(&command.directory).env_clear().envs(texts).envs(others);
        process.env("REFRAIN_PROJECT", &command.directory).envs(command.environment.clone());
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let not_started = |error: std::io::Error| {
            let directory = command.directory.display().to_string();
            command_failure::not_started(
                program,
                &directory,
                Fault::Program,
                error.raw_os_error(),
                &error.to_string(),
            )
        };
        let mut child = process.spawn().map_err(not_started)?;
        let (sender, stdout) = oneshot::channel();
        let unread = |error: std::io::Error| JobError::new(format!("its output cannot be read: {error}"));
        if let Some(pipe) = child.stdout.take() {
            // Whoever does not wait any more has called it off.
            let _ = sender.send(pipe.into_owned_fd().map_err(unread)?);
        }
        let lines = Stream::new(&command.redactor, OutputStream::Stderr);
        Ok(Reading::of_command(stdout, tokio::spawn(ended(child, lines)), pages))
    }
}

/// Waits for the end of a command, and hears its last words.
async fn ended(mut child: Child, mut lines: Stream) -> Seen {
    let mut last_words = LastWords::default();
    if let Some(mut stderr) = child.stderr.take() {
        let mut buffer = vec![0; BUFFER];
        while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
            for line in lines.read(buffer.get(..length).unwrap_or_default()) {
                last_words.push(&line);
            }
        }
        for line in lines.end() {
            last_words.push(&line);
        }
    }
    let end = match child.wait().await {
        Ok(status) => match (status.code(), std::os::unix::process::ExitStatusExt::signal(&status)) {
            (Some(code), _) => End::Code(code),
            (None, signal) => End::Signal(signal.unwrap_or_default()),
        },
        Err(error) => return Some(Err(JobError::new(format!("its end is not known: {error}")))),
    };
    Some(command_failure::ended(end, &last_words.shown()))
}

/// The units of a part as rows, those of the same fields together, each with its key and what tells the newer of two.
fn staged(part: &Part, lands: bool, before: u64) -> Result<Vec<Staged>, ContentError> {
    let told = |(place, unit, mut row): (u64, &Unit, Row)| {
        let order = unit.read.as_ref().and_then(|read| read.order).unwrap_or_default();
        let key = unit.key().to_owned();
        let number = before + place;
        row.extend([
            Cell::Text(key.clone()),
            Cell::Number(order.to_string()),
            Cell::Number(number.to_string()),
        ]);
        (key, row)
    };
    if lands {
        let hash = |(place, unit): (u64, &'_ Unit)| {
            Ok(told((place, unit, vec![Cell::Text(Fingerprint::of_json(&unit.text)?.to_string())])))
        };
        let rows = (0..).zip(&part.units).map(hash).collect::<Result<_, ContentError>>()?;
        return Ok(vec![Staged { columns: vec![CONTENT_HASH.to_owned()], rows }]);
    }
    let alike = alike(&part.units)?.into_iter();
    Ok(alike
        .map(|Alike { columns, units }| Staged { columns, rows: units.into_iter().map(told).collect() })
        .collect())
}
