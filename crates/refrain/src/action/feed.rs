//! Jobs that process units: records that a command prints or a query returns.
//!
//! An attempt works in this order. Failed units that the operator wants retried are looked for at the source, also behind
//! the checkpoint. Units that failed in earlier attempts are retried from their stored input, because the source need not
//! return them again. Then the source is read part by part; each part is applied before a checkpoint passes it. A malformed
//! line is stored under the place it was read from and counts as one failure; when that place is read again without it, the
//! record is cleared.
//!
//! All of this is one task that is always awaited: nothing it starts outlives the attempt.

mod bulk_write;
mod commands;
mod ingest;
mod parts;
mod per_unit;
pub(crate) mod reconcile;
mod reread;
mod source;
mod unit;
mod unit_rows;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use refrain_core::feed::{Apply, Feed, FeedCursor, FeedSource};
use refrain_core::project::Sql;
use refrain_core::publish::Mode;
use refrain_core::state::InDoubtPolicy;
use refrain_core::{Per, Values};
use sqlx::{Pool, Postgres, Sqlite};
use tokio::sync::oneshot;

use self::bulk_write::PAGE_LINES_MAX;
use self::commands::AttemptCommands;
use self::ingest::{Ingest, SourceCheckpoint, UnitHandler};
use self::parts::{PART_LINES_MAX, PartBuilder};
use self::per_unit::{PerUnit, UnitAction};
use self::reread::Reread;
use self::source::SourceReader;
use self::unit::{Unit, UnitReader};
use self::unit_rows::UnitRows;
use super::command::Command;
use super::command_template::CommandTemplate;
use super::http::HttpCaller;
use crate::bind::context::About;
use crate::job::Job;
use crate::ledger::{Fence, Units};
use crate::run::awaited_task::TaskResult;
use crate::run::{JobError, Run};
use crate::user_database::{Backend, UserDatabase, on_pool};

/// The name of a job's watermark in the ledger.
const WATERMARK: &str = "watermark";
/// A timestamp before any that a source may hold.
const BEGINNING: &str = "0001-01-01T00:00:00Z";

/// A job that processes each unit of a source.
#[derive(Clone)]
pub(crate) struct UnitsJob {
    pub(crate) feed: Arc<Feed>,
    /// The database to query, if the source is a query.
    pub(crate) source: Option<Arc<UserDatabase>>,
    /// The command that lists units, if the source is a command; else what commands of this job have in common.
    pub(crate) command: CommandTemplate,
    pub(crate) about: About,
}

impl fmt::Debug for UnitsJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitsJob").field("feed", &self.feed).finish_non_exhaustive()
    }
}

impl Job for UnitsJob {
    const NAME: &'static str = "units";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        run.tally.about_units();
        let (job, attempt) = (self.clone(), run.clone());
        run.awaited.run_awaited(|cancelled| job.attend(attempt, cancelled)).await
    }
}

impl UnitsJob {
    /// Processes all units. When the attempt is cancelled, ends commands and waits for calls in flight.
    async fn attend(self, run: Run, cancelled: oneshot::Receiver<()>) -> TaskResult {
        let commands = AttemptCommands::begin(&run, &self.about.redactor);
        let processed = {
            let mut processing = Box::pin(self.process(&run, &commands));
            tokio::select! {
                biased;
                _ = cancelled => {
                    commands.cancel();
                    tokio::select! {
                        biased;
                        () = commands.calls_are_over() => None,
                        processed = &mut processing => Some(processed),
                    }
                }
                processed = &mut processing => Some(processed),
            }
        };
        commands.end().await;
        processed.filter(|processed| !processed.as_ref().is_err_and(JobError::is_lost))
    }

    /// Chooses the database that holds the ledger of the units: the one that rows are written to, else the source's, else
    /// the store's.
    async fn process(&self, run: &Run, commands: &AttemptCommands) -> Result<(), JobError> {
        let named = match &self.feed.apply {
            Apply::Publish(publish) => Some(self.about.database(&publish.database)?),
            Apply::Command { .. } | Apply::Http { .. } => self.source.as_ref(),
        };
        match named {
            Some(database) => on_pool!(database.connect().await?, |pool| self
                .process_in(run, commands, Some((pool, database)))
                .await),
            None if run.surroundings.store.database.is_sqlite() => {
                self.process_in::<Sqlite>(run, commands, None).await
            }
            None => self.process_in::<Postgres>(run, commands, None).await,
        }
    }

    /// Processes the units with their ledger in a database of the user, or in the store's if there is none.
    async fn process_in<DB: Backend>(
        &self,
        run: &Run,
        commands: &AttemptCommands,
        user_database: Option<(&Pool<DB>, &UserDatabase)>,
    ) -> Result<(), JobError> {
        let fence = match user_database {
            Some((pool, _)) => run.fence(pool).await?,
            None => run.fence_at_the_store().await?,
        };
        let rows = match (&self.feed.apply, user_database) {
            (Apply::Publish(publish), Some((pool, database))) => {
                Some(UnitRows::open(pool, publish, &self.about, run, database).await?)
            }
            _ => None,
        };
        let values = self.about.values(run);
        let reader = UnitReader::of(&self.feed, &values);
        let units = self.units(&fence, &reader);
        let checkpoint = self.checkpoint(&units).await?;
        let values = checkpoint.values(values);
        let handler = self.handler(run, commands, rows, &values)?;
        let mut ingest = Ingest::begin(run, &units, handler, checkpoint, &self.about.redactor).await?;
        if let Apply::Http { in_doubt, provider_ttl, call, .. } = &self.feed.apply {
            ingest.resend_doubtful(&reader, *in_doubt, *provider_ttl, call.timeout).await?;
        }
        for reread in ingest.rereads(units.retry_requests().await?) {
            self.read_again(run, commands, &ingest, &reader, reread).await?;
        }
        ingest.retry_failed(&reader).await?;
        let mut source = self.read_source(run, commands, &values, self.part_builder(&reader)).await?;
        while let Some(part) = source.next().await? {
            ingest.apply_part(part).await?;
        }
        source.end().await?;
        ingest.end().await
    }

    async fn checkpoint<'u, DB: Backend>(
        &self,
        units: &'u Units<DB, Unit>,
    ) -> Result<SourceCheckpoint<'u, DB>, JobError> {
        Ok(match (&self.feed.cursor, &self.feed.watermark) {
            (Some(FeedCursor { name, per }), _) => {
                SourceCheckpoint::Cursor(units.cursor_per(*per, name).await?, *per)
            }
            (None, Some(mark)) => {
                let time =
                    |unit: &Unit| unit.parsed.as_ref().and_then(|parsed| parsed.time).unwrap_or_default();
                SourceCheckpoint::Watermark(units.watermark(WATERMARK, mark.overlap, time).await?)
            }
            (None, None) => SourceCheckpoint::None,
        })
    }

    fn handler<'f, DB: Backend>(
        &'f self,
        run: &'f Run,
        commands: &'f AttemptCommands,
        rows: Option<UnitRows<DB>>,
        values: &Values,
    ) -> Result<UnitHandler<'f, DB>, JobError> {
        let (action, parallel) = match (&self.feed.apply, rows) {
            (_, Some(rows)) if self.is_bulk() => return Ok(UnitHandler::Bulk(Box::new(rows))),
            (_, Some(rows)) => return Ok(UnitHandler::Rows(Box::new(rows))),
            (Apply::Command { argv, parallel }, None) => {
                (UnitAction::Command(argv, Box::new(self.command(run, values)?)), *parallel)
            }
            (Apply::Http { call, parallel, .. }, None) => {
                let caller = HttpCaller::new(&self.about.redactor, call.timeout, &run.lease)?;
                (UnitAction::Http(call, caller), *parallel)
            }
            (Apply::Publish(_), None) => return Err(JobError::for_good("there is no table to write to")),
        };
        Ok(UnitHandler::PerUnit(Box::new(PerUnit {
            run,
            commands,
            action,
            parallel: usize::try_from(parallel).unwrap_or(1).max(1),
            values: values.clone(),
            is_by_window: self.feed.per == Per::Window,
            doubts: AtomicUsize::new(0),
            holds_doubts: matches!(&self.feed.apply, Apply::Http { in_doubt: InDoubtPolicy::Hold, .. }),
        })))
    }

    /// Reads the source once more from the position at which units were met that the operator wants retried, until it has
    /// returned them. No checkpoint moves. If the source cannot be read from there any more, that is logged, and the units
    /// are retried from their stored input.
    async fn read_again<DB: Backend>(
        &self,
        run: &Run,
        commands: &AttemptCommands,
        ingest: &Ingest<'_, '_, DB>,
        reader: &UnitReader,
        mut reread: Reread,
    ) -> Result<(), JobError> {
        let values = ingest.checkpoint.values_at(reread.position.clone(), self.about.values(run));
        let separate = commands.separate();
        let mut source = self.read_source(run, &separate, &values, self.part_builder(reader)).await?;
        let mut is_over = false;
        let ended = loop {
            match source.next().await {
                Ok(Some(part)) => is_over = ingest.apply_reread_part(&mut reread, part).await?,
                Ok(None) => break source.end().await,
                Err(error) => break Err(error),
            }
            if is_over {
                drop(source);
                break Ok(());
            }
        };
        separate.end().await;
        match ended {
            Ok(()) if is_over => Ok(()),
            Ok(()) => ingest.finish_reread(reread).await,
            Err(error) if error.is_lost() => Err(error),
            Err(error) => {
                let (job, position) = (&run.facts.job, reread.position);
                tracing::warn!(%job, position, %error, "the source cannot be read again from this position");
                Ok(())
            }
        }
    }

    fn part_builder(&self, reader: &UnitReader) -> PartBuilder {
        let lines_max = if self.is_bulk() { PAGE_LINES_MAX } else { PART_LINES_MAX };
        PartBuilder::new(reader.clone(), self.feed.cursor.is_some(), lines_max)
    }

    /// Whether the ledger has entries for pages only, and none for single units.
    fn is_bulk(&self) -> bool {
        matches!(&self.feed.apply, Apply::Publish(publish) if !publish.has_ledger)
    }

    fn units<DB: Backend>(&self, fence: &Fence<DB>, reader: &UnitReader) -> Units<DB, Unit> {
        let keys = reader.clone();
        let units = fence.units(self.feed.per, move |unit: &Unit| keys.key_of(unit));
        let adds = matches!(&self.feed.apply, Apply::Publish(publish) if publish.mode == Mode::AppendOnce);
        let units = units.on_change(self.feed.on_change).only_added(adds && !self.is_bulk());
        let units = units.keyed_by_the_run(reader.is_keyed_by_the_run());
        let units = units.content(|unit| unit.parsed.as_ref().map(|parsed| parsed.fingerprint));
        if self.feed.order.is_none() {
            return units;
        }
        units.order(|unit| unit.parsed.as_ref().and_then(|parsed| parsed.order).unwrap_or_default())
    }

    /// A command of this job, with the position to continue from in its environment.
    fn command(&self, run: &Run, values: &Values) -> Result<Command, JobError> {
        let mut command = self.command.command(run, values)?;
        for (name, value) in [("CURSOR", &values.cursor), ("WATERMARK", &values.watermark)] {
            command.environment.push((format!("REFRAIN_{name}"), value.clone().unwrap_or_default()));
        }
        Ok(command)
    }

    async fn read_source(
        &self,
        run: &Run,
        commands: &AttemptCommands,
        values: &Values,
        parts: PartBuilder,
    ) -> Result<SourceReader, JobError> {
        match &self.feed.source {
            FeedSource::Query(query) => self.read_query(query, values, parts, false).await,
            FeedSource::Command(_) => {
                let command = self.command(run, values)?;
                command.may_begin(run).await?;
                let (sender, stdout) = oneshot::channel();
                let ended = commands.execute(command, "", Some(sender));
                Ok(SourceReader::of_command(stdout, ended, parts))
            }
        }
    }

    async fn read_query(
        &self,
        query: &Sql,
        values: &Values,
        parts: PartBuilder,
        only_looks: bool,
    ) -> Result<SourceReader, JobError> {
        let missing = || JobError::for_good("this job names no database for its query");
        let database = self.source.as_ref().ok_or_else(missing)?;
        SourceReader::of_query(query, database, &self.about, values, parts, only_looks).await
    }
}
