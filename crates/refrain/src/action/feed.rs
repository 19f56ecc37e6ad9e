//! Units that come from a command or a query: read in parts, applied, and only then passed by a checkpoint.
//!
//! What a person wants tried again is looked for at the source, also behind the checkpoint. What failed in earlier attempts
//! comes next, from what was kept of it, for the source need not show it again. Then the source is read, a part at a time. A line that is no unit is kept under a place of its own and is one failure among units;
//! when its place has been read again and it was not met there, it is cleared.
//!
//! All of it is one task that is seen through, whatever becomes of the attempt: nothing that it has started outlives it.

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
use self::commands::Commands;
use self::ingest::{How, Ingest, Progress};
use self::parts::{PART_LINES_MAX, Pages};
use self::per_unit::{Each, UnitAction};
use self::reread::Wanted;
use self::source::Reading;
use self::unit::{Shape, Unit};
use self::unit_rows::Rows;
use super::about::About;
use super::command::Command;
use super::http::Caller;
use crate::job::{Job, JobError};
use crate::leaving::Seen;
use crate::ledger::{Fence, Units};
use crate::project::databases::{Connected, Database};
use crate::publish::table::Publishes;
use crate::run::Run;

/// What the watermark of a job is called.
const WATERMARK: &str = "watermark";
/// Before every time that a source may hold.
const BEGINNING: &str = "0001-01-01T00:00:00Z";

type Make = dyn Fn(&Run, &Values) -> Result<Command, JobError> + Send + Sync;

/// A job that does something with each unit of a source.
#[derive(Clone)]
pub(crate) struct Feeding {
    pub(crate) feed: Arc<Feed>,
    /// The database that is asked, if the source is a query.
    pub(crate) source: Option<Arc<Database>>,
    /// What is executed, if the source is a command.
    pub(crate) command: Arc<Make>,
    pub(crate) about: About,
}

impl fmt::Debug for Feeding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeding").field("feed", &self.feed).finish_non_exhaustive()
    }
}

impl Job for Feeding {
    const NAME: &'static str = "units";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        run.tally.about_units();
        let (feeding, attended) = (self.clone(), run.clone());
        run.leaving.see_through(|called_off| feeding.attend(attended, called_off)).await
    }
}

impl Feeding {
    async fn attend(self, run: Run, called_off: oneshot::Receiver<()>) -> Seen {
        let commands = Commands::begin(&run, &self.about.redactor);
        let fed = {
            let mut feeding = Box::pin(self.feed(&run, &commands));
            tokio::select! {
                biased;
                _ = called_off => {
                    commands.call_off();
                    tokio::select! {
                        biased;
                        () = commands.calls_are_over() => None,
                        fed = &mut feeding => Some(fed),
                    }
                }
                fed = &mut feeding => Some(fed),
            }
        };
        commands.end().await;
        fed.filter(|fed| !fed.as_ref().is_err_and(JobError::is_lost))
    }

    /// Finds the database in which the units are remembered.
    async fn feed(&self, run: &Run, commands: &Commands) -> Result<(), JobError> {
        let named = match &self.feed.apply {
            Apply::Publish(publish) => Some(self.about.database(&publish.database)?),
            Apply::Command { .. } | Apply::Http { .. } => self.source.as_ref(),
        };
        match named {
            Some(database) => match database.connect().await? {
                Connected::Sqlite(pool) => self.feed_into(run, commands, pool, database).await,
                Connected::Postgres(pool) => self.feed_into(run, commands, pool, database).await,
            },
            None if run.surroundings.store.database.is_sqlite() => {
                self.feed_through::<Sqlite>(run, commands, run.fence_at_the_store().await?, None).await
            }
            None => self.feed_through::<Postgres>(run, commands, run.fence_at_the_store().await?, None).await,
        }
    }

    async fn feed_into<DB: Publishes>(
        &self,
        run: &Run,
        commands: &Commands,
        pool: &Pool<DB>,
        database: &Database,
    ) -> Result<(), JobError> {
        let fence = run.fence(pool).await?;
        let rows = match &self.feed.apply {
            Apply::Publish(publish) => Some(Rows::look(pool, publish, &self.about, run, database).await?),
            Apply::Command { .. } | Apply::Http { .. } => None,
        };
        self.feed_through(run, commands, fence, rows).await
    }

    async fn feed_through<DB: Publishes>(
        &self,
        run: &Run,
        commands: &Commands,
        fence: Fence<DB>,
        rows: Option<Rows<DB>>,
    ) -> Result<(), JobError> {
        let values = self.about.values(run);
        let shape = Shape::of(&self.feed, &values);
        let units = self.units(&fence, &shape);
        let progress = match (&self.feed.cursor, &self.feed.watermark) {
            (Some(FeedCursor { name, per }), _) => {
                Progress::Cursor(units.cursor_per(*per, name).await?, *per)
            }
            (None, Some(mark)) => {
                let time = |unit: &Unit| unit.read.as_ref().and_then(|read| read.time).unwrap_or_default();
                Progress::Watermark(units.watermark(WATERMARK, mark.overlap, time).await?)
            }
            (None, None) => Progress::Window,
        };
        let values = progress.values(values);
        let apply = match (&self.feed.apply, rows) {
            (_, Some(rows)) if self.is_bulk() => How::Bulk(Box::new(rows)),
            (_, Some(rows)) => How::Rows(Box::new(rows)),
            (Apply::Command { argv, parallel }, None) => {
                let way = UnitAction::Command(argv, Box::new(self.command(run, &values)?));
                How::Each(Box::new(self.each(run, commands, way, *parallel, &values)))
            }
            (Apply::Http { call, parallel, .. }, None) => {
                let way =
                    UnitAction::Http(call, Caller::new(&self.about.redactor, call.timeout, &run.lease)?);
                How::Each(Box::new(self.each(run, commands, way, *parallel, &values)))
            }
            (Apply::Publish(_), None) => return Err(JobError::for_good("there is no table to write to")),
        };
        let mut course = Ingest::begin(run, &units, apply, progress, &self.about.redactor).await?;
        if let Apply::Http { in_doubt, provider_ttl, call, .. } = &self.feed.apply {
            course.doubted_before(&shape, *in_doubt, *provider_ttl, call.timeout).await?;
        }
        for wanted in course.maybe_mended(units.asked().await?) {
            self.read_again(run, commands, &course, &shape, wanted).await?;
        }
        course.failed_before(&shape).await?;
        let mut reading = self.reading(run, commands, &values, self.pages(&shape)).await?;
        while let Some(part) = reading.next().await? {
            course.settle(part).await?;
        }
        reading.end().await?;
        course.end().await
    }

    /// Reads the source once more from where units were met that a person wants tried again, until it has shown them. No
    /// checkpoint is moved. A source that cannot be read from there any more is told of: what was kept of them is tried then.
    async fn read_again<DB: Publishes>(
        &self,
        run: &Run,
        commands: &Commands,
        course: &Ingest<'_, '_, DB>,
        shape: &Shape,
        mut wanted: Wanted,
    ) -> Result<(), JobError> {
        let values = course.progress.values_at(wanted.place.clone(), self.about.values(run));
        let apart = commands.apart();
        let mut reading = self.reading(run, &apart, &values, self.pages(shape)).await?;
        let mut is_over = false;
        let ended = loop {
            match reading.next().await {
                Ok(Some(part)) => is_over = course.settle_again(&mut wanted, part).await?,
                Ok(None) => break reading.end().await,
                Err(error) => break Err(error),
            }
            if is_over {
                drop(reading);
                break Ok(());
            }
        };
        apart.end().await;
        match ended {
            Ok(()) if is_over => Ok(()),
            Ok(()) => course.shown_again(wanted).await,
            Err(error) if error.is_lost() => Err(error),
            Err(error) => {
                tracing::warn!(job = %run.facts.job, place = wanted.place, %error, "the source cannot be read again from there");
                Ok(())
            }
        }
    }

    fn pages(&self, shape: &Shape) -> Pages {
        let lines_max = if self.is_bulk() { PAGE_LINES_MAX } else { PART_LINES_MAX };
        Pages::new(shape.clone(), self.feed.cursor.is_some(), lines_max)
    }

    fn each<'f>(
        &self,
        run: &'f Run,
        commands: &'f Commands,
        way: UnitAction<'f>,
        parallel: u32,
        values: &Values,
    ) -> Each<'f> {
        let parallel = usize::try_from(parallel).unwrap_or(1).max(1);
        let (values, is_by_window) = (values.clone(), self.feed.per == Per::Window);
        let holds_doubts = matches!(&self.feed.apply, Apply::Http { in_doubt: InDoubtPolicy::Hold, .. });
        let doubts = AtomicUsize::new(0);
        Each { run, commands, way, parallel, values, is_by_window, doubts, holds_doubts }
    }

    /// Whether only pages have entries in the ledger.
    fn is_bulk(&self) -> bool {
        matches!(&self.feed.apply, Apply::Publish(publish) if !publish.has_ledger)
    }

    fn units<DB: Publishes>(&self, fence: &Fence<DB>, shape: &Shape) -> Units<DB, Unit> {
        let key = shape.clone();
        let units = fence.units(self.feed.per, move |unit: &Unit| key.key_of(unit));
        let adds = matches!(&self.feed.apply, Apply::Publish(publish) if publish.mode == Mode::AppendOnce);
        let units = units.on_change(self.feed.on_change).only_added(adds && !self.is_bulk());
        let units = units.keyed_by_the_run(shape.is_keyed_by_the_run());
        let units = units.content(|unit| unit.read.as_ref().map(|read| read.fingerprint));
        if self.feed.order.is_none() {
            return units;
        }
        units.order(|unit| unit.read.as_ref().and_then(|read| read.order).unwrap_or_default())
    }

    /// A command of this job; where it goes on reading is said in its environment.
    fn command(&self, run: &Run, values: &Values) -> Result<Command, JobError> {
        let mut command = (self.command)(run, values)?;
        for (name, value) in [("CURSOR", &values.cursor), ("WATERMARK", &values.watermark)] {
            command.environment.push((format!("REFRAIN_{name}"), value.clone().unwrap_or_default()));
        }
        Ok(command)
    }

    async fn reading(
        &self,
        run: &Run,
        commands: &Commands,
        values: &Values,
        pages: Pages,
    ) -> Result<Reading, JobError> {
        match &self.feed.source {
            FeedSource::Query(query) => self.asking(query, values, pages).await,
            FeedSource::Command(_) => {
                let command = self.command(run, values)?;
                command.may_begin(run).await?;
                let (stdout, read) = oneshot::channel();
                Ok(Reading::of_command(read, commands.execute(command, "", Some(stdout)), pages))
            }
        }
    }

    async fn asking(&self, query: &Sql, values: &Values, pages: Pages) -> Result<Reading, JobError> {
        let missing = || JobError::for_good("this job names no database for its query");
        let database = self.source.as_ref().ok_or_else(missing)?;
        let mut values = values.clone();
        values.watermark =
            values.watermark.map(|mark| if mark.is_empty() { BEGINNING.to_owned() } else { mark });
        match database.connect().await? {
            Connected::Sqlite(pool) => self.querying(query, &values, pool, database, pages).await,
            Connected::Postgres(pool) => self.querying(query, &values, pool, database, pages).await,
        }
    }

    async fn querying<DB: Publishes>(
        &self,
        query: &Sql,
        values: &Values,
        pool: &Pool<DB>,
        database: &Database,
        pages: Pages,
    ) -> Result<Reading, JobError> {
        let bound = self.about.bound::<DB>([query], values, database.time()).await?;
        let nothing = || JobError::for_good("this job has no query");
        let bound = bound.into_iter().next().ok_or_else(nothing)?;
        Ok(Reading::of_query(pool.clone(), bound, self.about.redactor.clone(), pages))
    }
}
