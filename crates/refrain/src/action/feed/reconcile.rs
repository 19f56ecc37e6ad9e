//! Compares a source with the table that its units are written to. Nothing is applied, and no checkpoint is read or moved: the
//! source is read from its beginning.

use std::process::Stdio;

use refrain_core::feed::{Apply, FeedSource};
use refrain_core::publish::TablePublish;
use refrain_core::publish::target::CONTENT_HASH;
use refrain_core::{ContentError, Fingerprint, Values};
use serde::{Serialize, Serializer};
use sqlx::Pool;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command as Process};
use tokio::sync::oneshot;

use super::UnitsJob;
use super::bulk_write::PAGE_LINES_MAX;
use super::parts::{PartBuilder, SourcePart};
use super::source::SourceReader;
use super::unit::{Unit, UnitReader};
use super::unit_rows::{RowGroup, group_by_columns};
use crate::action::command_failure;
use crate::action::environment::inherited;
use crate::action::output_capture::{LastWords, LineReader};
use crate::database::begun_in;
use crate::publish::comparison::{Comparison, Differences, StagedUnits};
use crate::publish::error::{WriteError, of};
use crate::publish::writer::Writer;
use crate::run::awaited_task::TaskResult;
use crate::run::{JobError, Run};
use crate::store::outputs::OutputStream;
use crate::supervision::protocol::{ProcessEnd, StartFault};
use crate::user_database::{Backend, Cell, Row, UserDatabase, on_pool};

const BUFFER: usize = 16 * 1_024;

/// The result of comparing a source with its table.
///
/// It serializes to the object that `refrain reconcile --json` prints, without the advice.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconciled {
    /// The run whose source was read.
    pub run: String,
    /// The table.
    pub table: String,
    /// How many units the source has.
    pub units: u64,
    /// How many of its lines are malformed.
    pub unreadable: u64,
    /// Where the two differ.
    pub differences: Differences,
    /// What to do about it, one step each.
    pub advice: Vec<String>,
}

impl Reconciled {
    /// Whether the table has exactly the units of the source.
    pub fn agrees(&self) -> bool {
        self.unreadable == 0 && self.differences.is_empty()
    }
}

impl Serialize for Reconciled {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Json<'r> {
            run: &'r str,
            table: &'r str,
            units: u64,
            unreadable: u64,
            agrees: bool,
            #[serde(flatten)]
            differences: &'r Differences,
        }
        let Reconciled { run, table, units, unreadable, differences, .. } = self;
        let (units, unreadable, agrees) = (*units, *unreadable, self.agrees());
        Json { run, table, units, unreadable, agrees, differences }.serialize(serializer)
    }
}

impl UnitsJob {
    /// Compares everything the source returns with the table.
    pub(crate) async fn reconcile(&self, run: &Run) -> Result<Reconciled, JobError> {
        let Apply::Publish(publish) = &self.feed.apply else {
            let message =
                "this job does not write its units to a table\n  only units of [publish] can be compared";
            return Err(JobError::for_good(message));
        };
        let database = self.about.database(&publish.database)?;
        let compared =
            on_pool!(database.connect().await?, |pool| self.compare(run, publish, pool, database).await);
        compared.map_err(|error| error.into_job_error(&self.about.redactor))
    }

    async fn compare<DB: Backend>(
        &self,
        run: &Run,
        publish: &TablePublish,
        pool: &Pool<DB>,
        database: &UserDatabase,
    ) -> Result<Reconciled, WriteError> {
        let everything = Values {
            cursor: self.feed.cursor.as_ref().map(|_| String::new()),
            watermark: self.feed.watermark.as_ref().map(|_| String::new()),
            ..self.about.values(run)
        };
        let writer = Writer::read_table(pool, publish, &self.about, &everything, database).await?;
        let mut transaction = of("the table cannot be compared", begun_in(pool).await)?;
        let mut comparison = Comparison::<DB>::begin(&mut transaction, publish, writer).await?;
        let reader = UnitReader::of(&self.feed, &everything);
        let parts = PartBuilder::new(reader, self.feed.cursor.is_some(), PAGE_LINES_MAX);
        let mut source = match &self.feed.source {
            FeedSource::Query(query) => self.read_query(query, &everything, parts, true).await?,
            FeedSource::Command(_) => self.execute_unsupervised(run, &everything, parts)?,
        };
        let (mut number, mut unreadable) = (0, 0);
        let unhashed = |error| WriteError::Unfit(format!("a unit cannot be read: {error}"));
        while let Some(part) = source.next().await? {
            unreadable += part.malformed.len() as u64;
            for staged in staged(&part, comparison.lands(), number).map_err(unhashed)? {
                comparison.add(&mut transaction, staged).await?;
            }
            number += part.units.len() as u64;
        }
        source.end().await?;
        let (units, differences) = comparison.conclude(&mut transaction, &run.name()).await?;
        of("the table cannot be compared", transaction.rollback().await)?;
        let (run, table) = (run.name(), publish.table.to_string());
        Ok(Reconciled { run, table, units, unreadable, differences, advice: Vec::new() })
    }

    /// Executes the command of the source outside of any attempt. Dropping the reader ends it.
    fn execute_unsupervised(
        &self,
        run: &Run,
        values: &Values,
        parts: PartBuilder,
    ) -> Result<SourceReader, JobError> {
        let command = self.command(run, values)?;
        let nothing = || JobError::for_good("the command is empty");
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
                StartFault::Program,
                error.raw_os_error(),
                &error.to_string(),
            )
        };
        let mut child = process.spawn().map_err(not_started)?;
        let (sender, stdout) = oneshot::channel();
        let unread = |error: std::io::Error| JobError::new(format!("its output cannot be read: {error}"));
        if let Some(pipe) = child.stdout.take() {
            // A receiver that is gone has cancelled the reading.
            let _ = sender.send(pipe.into_owned_fd().map_err(unread)?);
        }
        let lines = LineReader::new(&command.redactor, OutputStream::Stderr);
        Ok(SourceReader::of_command(stdout, tokio::spawn(ended(child, lines)), parts))
    }
}

/// Waits for the end of a command, and collects the end of its standard error.
async fn ended(mut child: Child, mut lines: LineReader) -> TaskResult {
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
            (Some(code), _) => ProcessEnd::Code(code),
            (None, signal) => ProcessEnd::Signal(signal.unwrap_or_default()),
        },
        Err(error) => return Some(Err(JobError::new(format!("waiting for the command failed: {error}")))),
    };
    Some(command_failure::ended(end, &last_words.shown()))
}

/// The units of a part as rows to stage, grouped by their fields, each with its key and the values that tell the newer of two.
fn staged(part: &SourcePart, lands: bool, before: u64) -> Result<Vec<StagedUnits>, ContentError> {
    let keyed = |(place, unit, mut row): (u64, &Unit, Row)| {
        let order = unit.parsed.as_ref().and_then(|parsed| parsed.order).unwrap_or_default();
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
            Ok(keyed((place, unit, vec![Cell::Text(Fingerprint::of_json(&unit.text)?.to_string())])))
        };
        let rows = (0..).zip(&part.units).map(hash).collect::<Result<_, ContentError>>()?;
        return Ok(vec![StagedUnits { columns: vec![CONTENT_HASH.to_owned()], rows }]);
    }
    let groups = group_by_columns(&part.units)?.into_iter();
    Ok(groups
        .map(|RowGroup { columns, units }| StagedUnits {
            columns,
            rows: units.into_iter().map(keyed).collect(),
        })
        .collect())
}
