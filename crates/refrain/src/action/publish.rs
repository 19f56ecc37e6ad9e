//! Queries whose rows are published: all that goes into one database is committed together, with the ledger's record of it.
//!
//! The fence is raised before anything is asked. The first result is computed and checked while nothing is locked; then the
//! fence is held, the tables are locked, and results take their places in the order of the steps, each of which sees those
//! before it, but for rows that pass through us: these are read first. A commit whose answer is lost is found again by the record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use refrain_core::publish::{Mode, Publish, Step, TablePublish};
use refrain_core::{Per, Values};
use sqlx::Pool;

use super::about::About;
use super::environment::name_of;
use crate::database::staging::Stage;
use crate::database::{DatabaseError, Transaction, pause, place, retried};
use crate::failpoint;
use crate::job::{Job, JobError};
use crate::ledger::fence::Raised;
use crate::ledger::tally::Reason;
use crate::ledger::{LedgerError, catalog};
use crate::project::databases::{Connected, Database};
use crate::publish::error::{WriteError, of};
use crate::publish::files;
use crate::publish::record::Published;
use crate::publish::source::Source;
use crate::publish::table::Publishes;
use crate::publish::writer::{Entry, Staged, Swapped, Writer};
use crate::run::Run;

/// How often a publish that met a lock, a conflict or a lost answer is done again.
const AGAIN_MAX: u32 = 5;

/// A job that publishes what queries give.
#[derive(Debug, Clone)]
pub(crate) struct Publishing {
    pub(crate) steps: Vec<Step>,
    /// The database that is asked.
    pub(crate) source: Option<Arc<Database>>,
    pub(crate) about: About,
}

/// Where an attempt writes down what it does.
struct Places<'p> {
    raised: &'p Raised,
    /// Of what was published.
    ledger: i64,
    /// Of what each step appends.
    books: &'p [i64],
}

/// What goes into one database.
type Group<'s> = Vec<(&'s Step, &'s TablePublish)>;

impl Job for Publishing {
    const NAME: &'static str = "publish";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        // How often it may fail, or take its worker with it, is for the run to count.
        run.facts.tries = i32::MAX.unsigned_abs();
        run.facts.suspicion = 0;
        for (name, group) in self.groups() {
            let database = self.about.database(name)?;
            match database.connect().await? {
                Connected::Sqlite(pool) => self.publish(run, pool, database, &group).await?,
                Connected::Postgres(pool) => self.publish(run, pool, database, &group).await?,
            }
        }
        for step in &self.steps {
            let Publish::Files(publish) = &step.publish else { continue };
            let Some(source) = &self.source else {
                return Err(JobError::for_good("there is no database to ask\n  add database = \"shop\""));
            };
            let written = files::rows(run, &self.about, source, &step.query, publish).await;
            written.map_err(|error| error.told(&self.about.redactor))?;
        }
        Ok(())
    }
}

impl Publishing {
    /// Steps by their database, each group at the place of its first.
    fn groups(&self) -> Vec<(&str, Group<'_>)> {
        let mut order: Vec<&str> = Vec::new();
        let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
        for step in &self.steps {
            let Publish::Table(publish) = &step.publish else { continue };
            let name = publish.database.as_str();
            if !order.contains(&name) {
                order.push(name);
            }
            groups.entry(name).or_default().push((step, publish));
        }
        order.into_iter().filter_map(|name| Some((name, groups.remove(name)?))).collect()
    }

    async fn publish<DB: Publishes>(
        &self,
        run: &Run,
        pool: &Pool<DB>,
        database: &Database,
        group: &Group<'_>,
    ) -> Result<(), JobError> {
        let told = |error: WriteError| error.told(&self.about.redactor);
        let fence = run.fence(pool).await?;
        let raised = &*fence.raised;
        let per = if run.window().is_some() { Per::Window } else { Per::Ever };
        let ledger = raised.ledger(per).await?;
        let mut books = Vec::new();
        for (_, publish) in group {
            let remembers = publish.mode == Mode::AppendOnce;
            books.push(if remembers { raised.ledger(publish.per).await? } else { ledger });
        }
        let places = Places { raised, ledger, books: &books };
        let (mut again, mut counted) = (0, Vec::new());
        loop {
            counted.clear();
            let attempt = self.once(run, pool, database, group, &places, &mut counted).await;
            let Err(error) = attempt else { break };
            let Some(fault) = error.transient().filter(|_| again < AGAIN_MAX) else {
                return Err(told(error));
            };
            if matches!(fault, DatabaseError::Unknown(_)) && has_published(raised, ledger, group).await? {
                break;
            }
            again += 1;
            pause(again).await;
        }
        for (rows, Swapped { known, kept_out, .. }) in &counted {
            let processed = rows.saturating_sub(known.count).saturating_sub(kept_out.count);
            run.tally.discovered(usize::try_from(*rows).unwrap_or_default());
            run.tally.processed(usize::try_from(processed).unwrap_or_default());
            run.tally.known(Reason::AlreadyApplied, known.count, &known.first);
            run.tally.known(Reason::FirstWins, kept_out.count, &kept_out.first);
        }
        Ok(())
    }

    /// All of it in one transaction. What became of the rows of each step is counted before it is committed: when the answer is
    /// lost, that is all there is to count.
    async fn once<DB: Publishes>(
        &self,
        run: &Run,
        pool: &Pool<DB>,
        database: &Database,
        group: &Group<'_>,
        places: &Places<'_>,
        counted: &mut Vec<(u64, Swapped)>,
    ) -> Result<(), WriteError> {
        let Places { raised, ledger, books } = *places;
        let values = self.about.values(run);
        let mut writers: Vec<Writer<DB>> = Vec::new();
        for (_, publish) in group {
            let writer = Writer::look(pool, publish, &self.about, &values, database).await?;
            writer.show(pool).await?;
            writers.push(writer);
        }
        let staging =
            Staging { about: &self.about, source: self.source.as_deref(), run, values: &values, database };
        let mut stage = raised.destination.database.stage().await?;
        let mut early = Vec::new();
        for (number, ((step, publish), writer)) in (1..).zip(group.iter().zip(&writers)) {
            let is_early = number == 1 || staging.passes_through(publish);
            let staged = if is_early {
                let connection = staged::<DB>(&mut stage)?;
                Some(staging.stage(connection, step, publish, writer, number).await?)
            } else {
                None
            };
            early.push(staged);
        }
        failpoint::reach("publish.staged");
        let mut transaction = stage.lock().await?;
        if !failpoint::is_weakened("publish.unfenced") {
            raised.hold(&mut transaction).await?;
        }
        lock_tables::<DB>(connection::<DB>(&mut transaction)?, group).await?;
        let parts = group.iter().zip(&writers).zip(books).zip(early);
        let own = run.window().is_none().then(|| run.key());
        for (number, ((((step, publish), writer), book), early)) in (1..).zip(parts) {
            let (attempt, nonce) = (raised.facts.attempt, raised.facts.nonce);
            let entry = Entry { ledger: *book, fence: raised.id, attempt, nonce, run: own };
            let connection = connection::<DB>(&mut transaction)?;
            let staged = match early {
                Some(staged) => staged,
                None => staging.stage(connection, step, publish, writer, number).await?,
            };
            let swapped = writer.swap(connection, &staged, entry).await?;
            writer.clear(connection, &staged).await?;
            let (job, table, rows, written) =
                (run.job(), publish.table.to_string(), staged.rows, swapped.written);
            tracing::info!(%job, run = run.key(), table, rows, written, "published");
            let (target, mode) = (publish.table.to_string(), publish.mode.to_string());
            let published = Published { target: &target, mode: &mode, rows };
            published.record(&mut transaction, ledger, raised.id, &raised.facts).await?;
            counted.push((rows, swapped));
        }
        transaction.is_sound().await?;
        transaction.commit(place!("publish")).await?;
        Ok(())
    }
}

/// In the order of their names, whichever steps they are of.
async fn lock_tables<DB: Publishes>(
    connection: &mut DB::Connection,
    group: &Group<'_>,
) -> Result<(), WriteError> {
    let mut tables: Vec<_> = group.iter().map(|(_, publish)| &publish.table).collect();
    tables.sort();
    tables.dedup();
    for table in tables.into_iter().filter(|_| !failpoint::is_weakened("publish.unlocked")) {
        of("the table cannot be locked", DB::lock(connection, table).await)?;
    }
    Ok(())
}

fn staged<DB: Publishes>(stage: &mut Stage) -> Result<&mut DB::Connection, WriteError> {
    DB::staged(stage).ok_or_else(other)
}

fn other() -> WriteError {
    WriteError::Refused("the transaction is not one of this database".to_owned())
}

fn connection<DB: Publishes>(transaction: &mut Transaction) -> Result<&mut DB::Connection, WriteError> {
    DB::narrowed(transaction).ok_or_else(other)
}

/// Whether this very attempt has published a group, although it was not told so.
async fn has_published(raised: &Raised, ledger: i64, group: &Group<'_>) -> Result<bool, LedgerError> {
    let (attempt, nonce) = (raised.facts.attempt, raised.facts.nonce);
    let find = || catalog::PUBLISH_FIND.bind(ledger).bind(raised.id).bind(attempt).bind(nonce);
    let found: Vec<(String, i64)> = retried(|| async {
        let mut transaction = raised.destination.database.write().await?;
        // The commit whose answer was lost may still be under way: what it has written is seen only after it.
        let wait = catalog::FENCE_WAIT.bind(raised.id).bind(attempt).bind(nonce);
        let _: Option<(i64,)> = transaction.fetch_optional(wait).await?;
        let found = transaction.fetch_all(find()).await?;
        transaction.rollback().await?;
        Ok(found)
    })
    .await?;
    let found: BTreeSet<String> = found.into_iter().map(|(target, _)| target).collect();
    Ok(group.iter().all(|(_, publish)| found.contains(&publish.table.to_string())))
}

/// What is needed to stage a result.
struct Staging<'a> {
    about: &'a About,
    source: Option<&'a Database>,
    run: &'a Run,
    values: &'a Values,
    database: &'a Database,
}

impl Staging<'_> {
    /// Whether its rows pass through us: these are read before anything is locked.
    fn passes_through(&self, publish: &TablePublish) -> bool {
        self.source.is_some_and(|source| source.name != self.database.name) || publish.mode.goes_through_us()
    }

    async fn stage<DB: Publishes>(
        &self,
        connection: &mut DB::Connection,
        step: &Step,
        publish: &TablePublish,
        writer: &Writer<DB>,
        number: usize,
    ) -> Result<Staged, WriteError> {
        if !self.passes_through(publish) {
            let time = self.database.time();
            let query = self.about.bound::<DB>([&step.query], self.values, time).await?;
            let Some(query) = query.first() else {
                return Err(WriteError::Refused("there is no query".to_owned()));
            };
            return writer.query(connection, query, number).await;
        }
        let source = self.source.unwrap_or(self.database);
        let source = Source::open(source, self.about, &step.query, self.values).await?;
        source.stage(connection, writer, &name_of(self.run), self.database.time(), number).await
    }
}
