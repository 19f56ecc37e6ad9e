//! Publishes the rows of queries. All tables of one database are written in one transaction, with the ledger's record of it.
//!
//! The fence is raised before the first query. The first result is computed and checked while nothing is locked; then the
//! fence is held, the tables are locked, and the results are written in the order of the steps. Each step sees the tables
//! that the steps before it wrote, except when its rows pass through this process: those are read before anything is locked.
//! If the answer to the commit is lost, the record tells whether it happened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use refrain_core::project::Sql;
use refrain_core::publish::{Mode, Publish, PublishStep, TablePublish};
use refrain_core::{Per, Values};
use sqlx::Pool;

use crate::bind::context::About;
use crate::database::staging::Stage;
use crate::database::{DatabaseError, Repeats, Transaction, place, retried};
use crate::failpoint;
use crate::job::Job;
use crate::ledger::fence::Raised;
use crate::ledger::{LedgerError, catalog};
use crate::publish::error::{WriteError, of};
use crate::publish::files;
use crate::publish::query_rows::QueryRows;
use crate::publish::record::PublishRecord;
use crate::publish::writer::{LedgerEntry, StagedRows, SwapCounts, Writer};
use crate::run::{JobError, Run};
use crate::store::counts::Reason;
use crate::user_database::{Backend, UserDatabase, on_pool};

/// How often a publish is repeated after a lock, a conflict or a lost answer.
const REPEATS_MAX: u32 = 5;

/// A job that publishes the rows of queries.
#[derive(Debug, Clone)]
pub(crate) struct PublishJob {
    pub(crate) steps: Vec<PublishStep>,
    /// The database to query.
    pub(crate) source: Option<Arc<UserDatabase>>,
    pub(crate) about: About,
}

impl Job for PublishJob {
    const NAME: &'static str = "publish";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        run.facts.fail_as_a_whole();
        for (name, tables) in self.tables_by_database() {
            let database = self.about.database(name)?;
            on_pool!(database.connect().await?, |pool| self.publish(run, pool, database, &tables).await?);
        }
        for step in &self.steps {
            let Publish::Files(publish) = &step.publish else { continue };
            let Some(source) = &self.source else {
                return Err(JobError::for_good("there is no database to query\n  add database = \"shop\""));
            };
            let written = files::publish_rows(run, &self.about, source, &step.query, publish).await;
            written.map_err(|error| error.into_job_error(&self.about.redactor))?;
        }
        Ok(())
    }
}

/// A step whose rows go into a table, with the ledger of what it appends.
struct TableStep<'s> {
    query: &'s Sql,
    publish: &'s TablePublish,
    ledger: i64,
}

/// The steps that write to one database, and what they have in common.
struct Group<'g, DB: Backend> {
    about: &'g About,
    source: Option<&'g UserDatabase>,
    run: &'g Run,
    values: Values,
    pool: &'g Pool<DB>,
    database: &'g UserDatabase,
    raised: &'g Raised,
    /// The ledger of what was published.
    ledger: i64,
    steps: Vec<TableStep<'g>>,
}

/// A step in one try to publish.
struct StagedStep<'g, DB: Backend> {
    /// Its number in its group, from 1.
    number: usize,
    step: &'g TableStep<'g>,
    writer: Writer<DB>,
    staged: Option<StagedRows>,
}

impl PublishJob {
    /// The steps that write to tables, by database, in the order in which the databases first occur.
    fn tables_by_database(&self) -> Vec<(&str, Vec<(&Sql, &TablePublish)>)> {
        let mut order: Vec<&str> = Vec::new();
        let mut tables: BTreeMap<&str, Vec<(&Sql, &TablePublish)>> = BTreeMap::new();
        for step in &self.steps {
            let Publish::Table(publish) = &step.publish else { continue };
            let name = publish.database.as_str();
            if !order.contains(&name) {
                order.push(name);
            }
            tables.entry(name).or_default().push((&step.query, publish));
        }
        order.into_iter().filter_map(|name| Some((name, tables.remove(name)?))).collect()
    }

    async fn publish<DB: Backend>(
        &self,
        run: &Run,
        pool: &Pool<DB>,
        database: &UserDatabase,
        tables: &[(&Sql, &TablePublish)],
    ) -> Result<(), JobError> {
        let fence = run.fence(pool).await?;
        let raised = &*fence.raised;
        let per = if run.window().is_some() { Per::Window } else { Per::Ever };
        let ledger = raised.ledger(per).await?;
        let mut steps = Vec::new();
        for (query, publish) in tables {
            let appends = publish.mode == Mode::AppendOnce;
            let ledger = if appends { raised.ledger(publish.per).await? } else { ledger };
            steps.push(TableStep { query, publish, ledger });
        }
        let (about, source, values) = (&self.about, self.source.as_deref(), self.about.values(run));
        let group = Group { about, source, run, values, pool, database, raised, ledger, steps };
        let (mut repeats, mut counts) = (Repeats::up_to(REPEATS_MAX), Vec::new());
        while let Err(error) = group.publish_once(&mut counts).await {
            let Some(fault) = error.transient() else {
                return Err(error.into_job_error(&self.about.redactor));
            };
            if matches!(fault, DatabaseError::Unknown(_)) && group.has_published().await? {
                break;
            }
            if !repeats.again().await {
                return Err(error.into_job_error(&self.about.redactor));
            }
        }
        for (rows, SwapCounts { known, kept_out, .. }) in &counts {
            let processed = rows.saturating_sub(known.count).saturating_sub(kept_out.count);
            run.tally.discovered(usize::try_from(*rows).unwrap_or_default());
            run.tally.processed(usize::try_from(processed).unwrap_or_default());
            run.tally.known(Reason::AlreadyApplied, known.count, &known.first);
            run.tally.known(Reason::FirstWins, kept_out.count, &kept_out.first);
        }
        Ok(())
    }
}

impl<DB: Backend> Group<'_, DB> {
    /// Publishes all steps in one transaction. The rows of each step are counted before the commit: if its answer is lost,
    /// these are the only counts.
    async fn publish_once(&self, counts: &mut Vec<(u64, SwapCounts)>) -> Result<(), WriteError> {
        counts.clear();
        let mut steps = Vec::new();
        for (number, step) in (1..).zip(&self.steps) {
            let writer =
                Writer::open(self.pool, step.publish, self.about, &self.values, self.database).await?;
            steps.push(StagedStep { number, step, writer, staged: None });
        }
        let mut stage = self.raised.destination.database.stage().await?;
        for step in &mut steps {
            if step.number == 1 || self.passes_through(step.step.publish) {
                step.staged = Some(self.stage(staged::<DB>(&mut stage)?, step).await?);
            }
        }
        failpoint::reach("publish.staged");
        let mut transaction = stage.lock().await?;
        if !failpoint::is_weakened("publish.unfenced") {
            self.raised.hold(&mut transaction).await?;
        }
        self.lock_tables(connection::<DB>(&mut transaction)?).await?;
        for mut step in steps {
            let connection = connection::<DB>(&mut transaction)?;
            let staged = match step.staged.take() {
                Some(staged) => staged,
                None => self.stage(connection, &step).await?,
            };
            let swapped = step.writer.swap(connection, &staged, self.entry(step.step.ledger)).await?;
            step.writer.clear(connection, &staged).await?;
            let (table, mode) = (step.step.publish.table.to_string(), step.step.publish.mode.to_string());
            let (job, run, rows, written) = (self.run.job(), self.run.key(), staged.rows, swapped.written);
            tracing::info!(%job, run, table, rows, written, "published");
            let published = PublishRecord { target: &table, mode: &mode, rows };
            published.record(&mut transaction, self.ledger, self.raised.id, &self.raised.facts).await?;
            counts.push((rows, swapped));
        }
        transaction.is_sound().await?;
        transaction.commit(place!("publish")).await?;
        Ok(())
    }

    fn entry(&self, ledger: i64) -> LedgerEntry<'_> {
        let Raised { id: fence, facts, .. } = self.raised;
        let run = self.run.window().is_none().then(|| self.run.key());
        LedgerEntry { ledger, fence: *fence, attempt: facts.attempt, nonce: facts.nonce, run }
    }

    /// Whether rows pass through this process: then they are read before anything is locked.
    fn passes_through(&self, publish: &TablePublish) -> bool {
        self.source.is_some_and(|source| source.name != self.database.name) || publish.mode.goes_through_us()
    }

    /// Stages the rows of a step, and checks them.
    async fn stage(
        &self,
        connection: &mut DB::Connection,
        StagedStep { number, step, writer, .. }: &StagedStep<'_, DB>,
    ) -> Result<StagedRows, WriteError> {
        let time = self.database.time();
        if self.passes_through(step.publish) {
            let source = self.source.unwrap_or(self.database);
            let rows = QueryRows::open(source, self.about, step.query, &self.values).await?;
            return rows.stage(connection, writer, &self.run.name(), time, *number).await;
        }
        let query = self.about.bound::<DB>([step.query], &self.values, time).await?;
        let Some(query) = query.first() else {
            return Err(WriteError::Refused("there is no query".to_owned()));
        };
        writer.query(connection, query, *number).await
    }

    /// Locks all tables of the group in the order of their names, so that two publishes cannot deadlock.
    async fn lock_tables(&self, connection: &mut DB::Connection) -> Result<(), WriteError> {
        let tables: BTreeSet<_> = self.steps.iter().map(|step| &step.publish.table).collect();
        for table in tables.into_iter().filter(|_| !failpoint::is_weakened("publish.unlocked")) {
            of("the table cannot be locked", DB::lock(connection, table).await)?;
        }
        Ok(())
    }

    /// Whether this claim of the attempt has published the group, although the answer to its commit was lost.
    async fn has_published(&self) -> Result<bool, LedgerError> {
        let Raised { id: fence, facts, destination, .. } = self.raised;
        let (attempt, nonce) = (facts.attempt, facts.nonce);
        let find = || catalog::PUBLISH_FIND.bind(self.ledger).bind(*fence).bind(attempt).bind(nonce);
        let found: Vec<(String, i64)> = retried(|| async {
            let mut transaction = destination.database.write().await?;
            // The commit may still be in flight: what it has written is visible only after it.
            let wait = catalog::FENCE_WAIT.bind(*fence).bind(attempt).bind(nonce);
            let _: Option<(i64,)> = transaction.fetch_optional(wait).await?;
            let found = transaction.fetch_all(find()).await?;
            transaction.rollback().await?;
            Ok(found)
        })
        .await?;
        let found: BTreeSet<String> = found.into_iter().map(|(target, _)| target).collect();
        Ok(self.steps.iter().all(|step| found.contains(&step.publish.table.to_string())))
    }
}

fn staged<DB: Backend>(stage: &mut Stage) -> Result<&mut DB::Connection, WriteError> {
    DB::staged(stage).ok_or_else(other)
}

fn connection<DB: Backend>(transaction: &mut Transaction) -> Result<&mut DB::Connection, WriteError> {
    DB::narrowed(transaction).ok_or_else(other)
}

fn other() -> WriteError {
    WriteError::Refused("the transaction belongs to another kind of database".to_owned())
}
