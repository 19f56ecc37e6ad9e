//! Writes rows to a table: stages them, checks them, then replaces or adds rows. The caller has the transaction, which holds
//! the fence.

mod append;
mod view;

use std::marker::PhantomData;

use refrain_core::Values;
use refrain_core::project::Sql;
use refrain_core::publish::target::{ColumnMapping, LANDED, Target};
use refrain_core::publish::text::names::OWN;
use refrain_core::publish::{Mode, TablePublish};
use sqlx::Pool;

use super::comparison::Difference;
use super::error::{WriteError, of};
use crate::bind::context::About;
use crate::database::begun_in;
use crate::failpoint;
use crate::user_database::{Backend, BoundQuery, Row, UserDatabase};

/// How many columns of a result are named in the advice for a missing table.
const ADVISED_MAX: usize = 20;

/// How much of a wrong row is shown as an example.
const EXAMPLE_BYTES_MAX: usize = 300;

const STAGING: &str = "the rows cannot be staged";

/// Writes rows to one table, for one run.
pub(crate) struct Writer<DB> {
    publish: TablePublish,
    target: Target,
    owns: Option<BoundQuery>,
    checks: Vec<BoundQuery>,
    version: u32,
    database: PhantomData<fn() -> DB>,
}

/// Where the ledger records rows that are appended, and amounts that are added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LedgerEntry<'e> {
    pub(crate) ledger: i64,
    pub(crate) fence: i64,
    pub(crate) attempt: i32,
    pub(crate) nonce: i64,
    /// The key of a run without a window: its amounts are recorded under its own name.
    pub(crate) run: Option<&'e str>,
}

/// How many staged rows were written.
#[derive(Debug, Default)]
pub(crate) struct SwapCounts {
    /// How many rows of the table were written.
    pub(crate) written: u64,
    /// Rows that were appended before with the same content.
    pub(crate) known: Difference,
    /// Rows whose keys were appended before with other content, which is kept.
    pub(crate) kept_out: Difference,
}

/// Rows that are staged and checked.
pub(crate) struct StagedRows {
    fitting: ColumnMapping,
    pub(crate) rows: u64,
}

fn plain(text: String) -> BoundQuery {
    BoundQuery { text, arguments: Vec::new() }
}

impl<DB: Backend> Writer<DB> {
    /// Reads the definition of the table, and creates the view beside it that the job may name.
    pub(crate) async fn open(
        pool: &Pool<DB>,
        publish: &TablePublish,
        about: &About,
        values: &Values,
        database: &UserDatabase,
    ) -> Result<Writer<DB>, WriteError> {
        let writer = Writer::read_table(pool, publish, about, values, database).await?;
        writer.create_view(pool).await?;
        Ok(writer)
    }

    /// Reads the definition of the table.
    pub(crate) async fn read_table(
        pool: &Pool<DB>,
        publish: &TablePublish,
        about: &About,
        values: &Values,
        database: &UserDatabase,
    ) -> Result<Writer<DB>, WriteError> {
        let texts: Vec<&Sql> = publish.owns.iter().chain(&publish.checks).collect();
        let mut bound = about.bound::<DB>(texts, values, database.time()).await?;
        let checks = bound.split_off(usize::from(publish.owns.is_some()));
        let what = "the definition of the table cannot be read";
        let mut transaction = of(what, begun_in(pool).await)?;
        let target = of(what, DB::target(&mut transaction, &publish.table).await)?;
        of(what, transaction.rollback().await)?;
        let (publish, version) = (publish.clone(), values.version.unwrap_or(1));
        Ok(Writer { publish, target, owns: bound.pop(), checks, version, database: PhantomData })
    }

    /// Whether the table exists and has what the mode needs, such as a unique key.
    pub(crate) fn is_ready(&self) -> Result<(), WriteError> {
        if self.target.columns.is_empty() {
            return Err(WriteError::Refused(self.missing(&[])));
        }
        self.target.is_ready(&self.publish).map_err(WriteError::Refused)
    }

    /// The table, if it exists, and the condition for owned rows, to compare them with a source.
    pub(crate) fn compared(self) -> (Result<Target, WriteError>, Option<BoundQuery>) {
        let is_there = !self.target.columns.is_empty();
        let missing = WriteError::Refused(self.missing(&[]));
        (is_there.then_some(self.target).ok_or(missing), self.owns)
    }

    /// Maps rows with these columns to the table. `number` distinguishes the stages of one transaction.
    fn fit(&self, columns: &[String], number: usize) -> Result<ColumnMapping, WriteError> {
        if self.target.columns.is_empty() {
            return Err(WriteError::Refused(self.missing(columns)));
        }
        let stage = format!("{OWN}stage:{number}");
        let fitting = self.target.fit(&self.publish, columns, DB::DIALECT, self.version, &stage);
        fitting.map_err(WriteError::Refused)
    }

    /// Creates a stage for rows with these columns.
    pub(crate) async fn make(
        &self,
        connection: &mut DB::Connection,
        columns: &[String],
        number: usize,
    ) -> Result<StagedRows, WriteError> {
        let fitting = self.fit(columns, number)?;
        for text in fitting.texts.clear().into_iter().chain([fitting.texts.make()]) {
            of(STAGING, DB::execute_bound(connection, &plain(text)).await)?;
        }
        Ok(StagedRows { fitting, rows: 0 })
    }

    /// Stages the rows of a query of the same database, and checks them.
    pub(crate) async fn query(
        &self,
        connection: &mut DB::Connection,
        query: &BoundQuery,
        number: usize,
    ) -> Result<StagedRows, WriteError> {
        let (columns, kinds) = of("the query", DB::columns(connection, query).await)?;
        let filled = |text: String| BoundQuery { text, arguments: query.arguments.clone() };
        let fitting = self.fit(&columns, number)?;
        let at_once = fitting.texts.make_filled(&query.text);
        let staged = if let Some(text) = at_once.filter(|_| self.target.has_types(&columns, &kinds)) {
            let rows = of("the query", DB::execute_bound(connection, &filled(text)).await)?;
            StagedRows { fitting, rows }
        } else {
            let mut staged = self.make(connection, &columns, number).await?;
            let text = staged.fitting.texts.fill(&query.text);
            staged.rows = of("the query", DB::execute_bound(connection, &filled(text)).await)?;
            staged
        };
        self.conclude(connection, &staged).await?;
        Ok(staged)
    }

    /// Adds rows to a stage. For `land`, each row ends with its source and content hash.
    pub(crate) async fn load(
        &self,
        connection: &mut DB::Connection,
        staged: &mut StagedRows,
        rows: &[Row],
    ) -> Result<(), WriteError> {
        let texts = &staged.fitting.texts;
        staged.rows += of(STAGING, DB::load(connection, &texts.stage, &texts.columns, rows).await)?;
        Ok(())
    }

    /// Fills in derived columns after all rows are staged, and checks the rows.
    pub(crate) async fn conclude(
        &self,
        connection: &mut DB::Connection,
        staged: &StagedRows,
    ) -> Result<(), WriteError> {
        let StagedRows { fitting, rows } = staged;
        let texts = &fitting.texts;
        for (column, parts) in &fitting.filled {
            of("ids cannot be derived", DB::identify(connection, texts, column, parts).await)?;
        }
        // Only these modes join the stage. Counting the rows of a large stage takes as long as filling half of it.
        let is_joined =
            self.publish.delete_missing || matches!(self.publish.mode, Mode::AppendOnce | Mode::ApplyDelta);
        if let Some(text) = texts.count_rows().filter(|_| is_joined) {
            of(STAGING, DB::execute_bound(connection, &plain(text)).await)?;
        }
        self.check(connection, fitting, *rows).await
    }

    /// The type of a column, as the database names it.
    pub(crate) fn kind(&self, name: &str) -> Option<&str> {
        self.target.columns.iter().find(|column| column.name == name).map(|column| column.kind.as_str())
    }

    /// Whether each row is written with its source and content hash.
    pub(crate) fn lands(&self) -> bool {
        self.publish.mode == Mode::Land
    }

    /// Checks staged rows.
    async fn check(
        &self,
        connection: &mut DB::Connection,
        fitting: &ColumnMapping,
        rows: u64,
    ) -> Result<(), WriteError> {
        let (texts, publish) = (&fitting.texts, &self.publish);
        if let (Some(owns), Some(written)) = (&self.owns, &publish.owns)
            && !failpoint::is_weakened("publish.outside")
        {
            let bound = BoundQuery { text: texts.outside(&owns.text), arguments: owns.arguments.clone() };
            let (count, example) = of("`owns`", DB::finding(connection, &bound).await)?;
            if count > 0 {
                return Err(unfit(
                    format!("{count} of {rows} rows lie outside of `owns` ({})", written.text()),
                    example,
                ));
            }
        }
        for (check, written) in self.checks.iter().zip(&publish.checks) {
            let bound = BoundQuery { text: texts.failing(&check.text), arguments: check.arguments.clone() };
            let (count, _) =
                of(&format!("`check` ({})", written.text()), DB::finding(connection, &bound).await)?;
            if count > 0 {
                return Err(unfit(format!("`check` does not hold: {} ({rows} rows)", written.text()), None));
            }
        }
        if texts.key.is_empty() || self.lands() {
            return Ok(());
        }
        let names = publish.key.join(", ");
        let (count, example) = of("the keys", DB::finding(connection, &plain(texts.keyless())).await)?;
        if count > 0 {
            return Err(unfit(format!("{count} of {rows} rows have an incomplete key ({names})"), example));
        }
        let (count, example) = of("the keys", DB::finding(connection, &plain(texts.twins())).await)?;
        if count > 0 {
            return Err(unfit(
                format!("{count} keys ({names}) occur more than once in {rows} rows"),
                example,
            ));
        }
        if publish.mode == Mode::ApplyDelta {
            let nothing = plain(texts.empty(&publish.columns));
            let (count, example) = of("the amounts", DB::finding(connection, &nothing).await)?;
            if count > 0 {
                let columns = publish.columns.join(", ");
                return Err(unfit(format!("{count} of {rows} rows have no number ({columns})"), example));
            }
        }
        Ok(())
    }

    /// Drops the stage. A connection to SQLite would keep it until it is used again.
    pub(crate) async fn clear(
        &self,
        connection: &mut DB::Connection,
        staged: &StagedRows,
    ) -> Result<(), WriteError> {
        for text in staged.fitting.texts.clear() {
            of(STAGING, DB::execute_bound(connection, &plain(text)).await)?;
        }
        Ok(())
    }

    /// Writes the staged rows to the table. The transaction holds the fence and the lock of the table.
    pub(crate) async fn swap(
        &self,
        connection: &mut DB::Connection,
        staged: &StagedRows,
        entry: LedgerEntry<'_>,
    ) -> Result<SwapCounts, WriteError> {
        let StagedRows { fitting, rows } = staged;
        let texts = &fitting.texts;
        let what = format!("`{}`", self.publish.table);
        let mut written = 0;
        let statements = match self.publish.mode {
            Mode::Overwrite => {
                if let Some(owned) = self.owning(|owns| texts.delete_owned(owns)) {
                    of(&what, DB::execute_bound(connection, &owned).await)?;
                }
                failpoint::reach("publish.deleted");
                vec![plain(texts.insert())]
            }
            Mode::Merge => {
                if self.publish.delete_missing
                    && let Some(missing) = self.owning(|owns| texts.delete_missing(owns))
                {
                    if let Some(index) = texts.index_missing() {
                        of(STAGING, DB::execute_bound(connection, &plain(index)).await)?;
                    }
                    written += of(&what, DB::execute_bound(connection, &missing).await)?;
                }
                vec![plain(texts.upsert(&fitting.incomparable))]
            }
            Mode::AppendOnce => return self.append(connection, fitting, *rows, entry).await,
            Mode::ApplyDelta => {
                let written = self.apply_delta(connection, fitting, entry).await?;
                return Ok(SwapCounts { written, ..SwapCounts::default() });
            }
            Mode::Land => vec![plain(texts.insert_absent())],
        };
        for statement in statements {
            written += of(&what, DB::execute_bound(connection, &statement).await)?;
        }
        Ok(SwapCounts { written, ..SwapCounts::default() })
    }

    /// Writes staged units to the table. Each unit has a ledger entry of its own, so appended rows need none. A batch is only a
    /// part of a window, so nothing is locked, and rows that are not in the batch are not deleted.
    pub(crate) async fn swap_units(
        &self,
        connection: &mut DB::Connection,
        staged: &StagedRows,
    ) -> Result<u64, WriteError> {
        let texts = &staged.fitting.texts;
        let text = match self.publish.mode {
            Mode::Merge => texts.upsert(&staged.fitting.incomparable),
            Mode::Land => texts.insert_absent(),
            Mode::AppendOnce if !self.publish.has_ledger => {
                self.check_existing(connection, &staged.fitting).await?;
                texts.insert_absent()
            }
            Mode::AppendOnce | Mode::Overwrite | Mode::ApplyDelta => texts.insert(),
        };
        of(&format!("`{}`", self.publish.table), DB::execute_bound(connection, &plain(text)).await)
    }

    fn owning(&self, text: impl Fn(&str) -> String) -> Option<BoundQuery> {
        let owns = self.owns.as_ref()?;
        Some(BoundQuery { text: text(&owns.text), arguments: owns.arguments.clone() })
    }

    /// The error for a missing table, with the columns it needs.
    fn missing(&self, columns: &[String]) -> String {
        let table = &self.publish.table;
        let mut names: Vec<&str> = columns.iter().map(String::as_str).take(ADVISED_MAX).collect();
        let landed = if self.publish.mode == Mode::Land { &LANDED[..] } else { &[] };
        names.extend(landed);
        let missing = format!("there is no table `{table}` in the database `{}`", self.publish.database);
        match names.as_slice() {
            [] => format!("{missing}\n  create it with a column for each field of a unit"),
            names => format!("{missing}\n  create it with the columns {}", names.join(", ")),
        }
    }
}

fn unfit(message: String, example: Option<String>) -> WriteError {
    WriteError::Unfit(with_example(message, example))
}

fn with_example(message: String, example: Option<String>) -> String {
    match example {
        Some(example) => {
            let end = example.floor_char_boundary(EXAMPLE_BYTES_MAX);
            let dots = if end < example.len() { "…" } else { "" };
            format!("{message}, for example {}{dots}", example.get(..end).unwrap_or_default())
        }
        None => message,
    }
}
