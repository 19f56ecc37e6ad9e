//! Brings rows into a table: staged, checked, then in the place of what is there. The caller has the transaction, and the
//! fence in it.

mod adding;
mod view;

use std::marker::PhantomData;

use refrain_core::Values;
use refrain_core::project::Sql;
use refrain_core::publish::target::{Fitting, LANDED, Target};
use refrain_core::publish::text::names::OWN;
use refrain_core::publish::{Mode, TablePublish};
use sqlx::Pool;

use super::comparison::Difference;
use super::error::{WriteError, of};
use super::rows::Row;
use super::table::Publishes;
use crate::action::about::About;
use crate::action::binds::Bound;
use crate::database::begun_in;
use crate::failpoint;
use crate::project::databases::Database;

/// How many columns of a result are named in the advice for a table that is not there.
const ADVISED_MAX: usize = 20;

/// How much of a row is shown that is not as it should be.
const EXAMPLE_BYTES_MAX: usize = 300;

const STAGING: &str = "the rows cannot be staged";

/// Brings rows into one table, for one run.
pub(crate) struct Writer<DB> {
    publish: TablePublish,
    target: Target,
    owns: Option<Bound>,
    checks: Vec<Bound>,
    version: u32,
    database: PhantomData<fn() -> DB>,
}

/// Where the ledger writes down what is appended or added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'e> {
    pub(crate) ledger: i64,
    pub(crate) fence: i64,
    pub(crate) attempt: i32,
    pub(crate) nonce: i64,
    /// The key of a run that has no window: its amounts are its own, and not those of its neighbours.
    pub(crate) run: Option<&'e str>,
}

/// What became of staged rows.
#[derive(Debug, Default)]
pub(crate) struct Swapped {
    /// How many rows of the table were written.
    pub(crate) written: u64,
    /// Rows that were appended before, and said the same.
    pub(crate) known: Difference,
    /// Rows whose keys were appended before with other content, which stays.
    pub(crate) kept_out: Difference,
}

/// Rows that are staged, and may take their place.
pub(crate) struct Staged {
    fitting: Fitting,
    pub(crate) rows: u64,
}

fn plain(text: String) -> Bound {
    Bound { text, arguments: Vec::new() }
}

impl<DB: Publishes> Writer<DB> {
    /// Looks at the table.
    pub(crate) async fn look(
        pool: &Pool<DB>,
        publish: &TablePublish,
        about: &About,
        values: &Values,
        database: &Database,
    ) -> Result<Writer<DB>, WriteError> {
        let texts: Vec<&Sql> = publish.owns.iter().chain(&publish.checks).collect();
        let mut bound = about.bound::<DB>(texts, values, database.time()).await?;
        let checks = bound.split_off(usize::from(publish.owns.is_some()));
        let mut transaction = of("the table cannot be looked at", begun_in(pool).await)?;
        let target = of("the table cannot be looked at", DB::target(&mut transaction, &publish.table).await)?;
        of("the table cannot be looked at", transaction.rollback().await)?;
        let (publish, version) = (publish.clone(), values.version.unwrap_or(1));
        Ok(Writer { publish, target, owns: bound.pop(), checks, version, database: PhantomData })
    }

    /// Whether the table is there, and what the mode relies on; whatever the rows are.
    pub(crate) fn is_ready(&self) -> Result<(), WriteError> {
        if self.target.columns.is_empty() {
            return Err(WriteError::Refused(self.missing(&[])));
        }
        self.target.is_ready(&self.publish).map_err(WriteError::Refused)
    }

    /// The table, if it is there, and the rows that are owned: for whoever compares.
    pub(crate) fn compared(self) -> (Result<Target, WriteError>, Option<Bound>) {
        let is_there = !self.target.columns.is_empty();
        let missing = WriteError::Refused(self.missing(&[]));
        (is_there.then_some(self.target).ok_or(missing), self.owns)
    }

    /// Fits rows with these columns into the table. `number` tells the stages of one transaction apart.
    fn fit(&self, columns: &[String], number: usize) -> Result<Fitting, WriteError> {
        if self.target.columns.is_empty() {
            return Err(WriteError::Refused(self.missing(columns)));
        }
        let stage = format!("{OWN}stage:{number}");
        let fitting = self.target.fit(&self.publish, columns, DB::DIALECT, self.version, &stage);
        fitting.map_err(WriteError::Refused)
    }

    /// Makes a stage for rows with these columns.
    pub(crate) async fn make(
        &self,
        connection: &mut DB::Connection,
        columns: &[String],
        number: usize,
    ) -> Result<Staged, WriteError> {
        let fitting = self.fit(columns, number)?;
        for text in fitting.texts.clear().into_iter().chain([fitting.texts.make()]) {
            of(STAGING, DB::execute(connection, &plain(text)).await)?;
        }
        Ok(Staged { fitting, rows: 0 })
    }

    /// Stages what a query of the same database gives, and checks it.
    pub(crate) async fn query(
        &self,
        connection: &mut DB::Connection,
        query: &Bound,
        number: usize,
    ) -> Result<Staged, WriteError> {
        let (columns, kinds) = of("the query", DB::columns(connection, query).await)?;
        let filled = |text: String| Bound { text, arguments: query.arguments.clone() };
        let fitting = self.fit(&columns, number)?;
        let at_once = fitting.texts.make_filled(&query.text);
        let staged = if let Some(text) = at_once.filter(|_| self.target.has_types(&columns, &kinds)) {
            let rows = of("the query", DB::execute(connection, &filled(text)).await)?;
            Staged { fitting, rows }
        } else {
            let mut staged = self.make(connection, &columns, number).await?;
            let text = staged.fitting.texts.fill(&query.text);
            staged.rows = of("the query", DB::execute(connection, &filled(text)).await)?;
            staged
        };
        self.conclude(connection, &staged).await?;
        Ok(staged)
    }

    /// Adds rows to a stage; what `land` writes beside them comes last in each.
    pub(crate) async fn load(
        &self,
        connection: &mut DB::Connection,
        staged: &mut Staged,
        rows: &[Row],
    ) -> Result<(), WriteError> {
        let texts = &staged.fitting.texts;
        staged.rows += of(STAGING, DB::load(connection, &texts.stage, &texts.columns, rows).await)?;
        Ok(())
    }

    /// All rows are staged: fills in what is derived from them, and checks them.
    pub(crate) async fn conclude(
        &self,
        connection: &mut DB::Connection,
        staged: &Staged,
    ) -> Result<(), WriteError> {
        let Staged { fitting, rows } = staged;
        let texts = &fitting.texts;
        for (column, parts) in &fitting.filled {
            of("ids cannot be derived", DB::identify(connection, texts, column, parts).await)?;
        }
        // Only these are joined; to count the rows of a large stage takes as long as to fill half of it.
        let is_joined =
            self.publish.delete_missing || matches!(self.publish.mode, Mode::AppendOnce | Mode::ApplyDelta);
        if let Some(text) = texts.count_rows().filter(|_| is_joined) {
            of(STAGING, DB::execute(connection, &plain(text)).await)?;
        }
        self.check(connection, fitting, *rows).await
    }

    /// The type of a column, as the database writes it.
    pub(crate) fn kind(&self, name: &str) -> Option<&str> {
        self.target.columns.iter().find(|column| column.name == name).map(|column| column.kind.as_str())
    }

    /// Whether a row is written with where it comes from and what it says.
    pub(crate) fn lands(&self) -> bool {
        self.publish.mode == Mode::Land
    }

    /// What can be wrong with staged rows.
    async fn check(
        &self,
        connection: &mut DB::Connection,
        fitting: &Fitting,
        rows: u64,
    ) -> Result<(), WriteError> {
        let (texts, publish) = (&fitting.texts, &self.publish);
        if let (Some(owns), Some(written)) = (&self.owns, &publish.owns)
            && !failpoint::is_weakened("publish.outside")
        {
            let bound = Bound { text: texts.outside(&owns.text), arguments: owns.arguments.clone() };
            let (count, example) = of("`owns`", DB::finding(connection, &bound).await)?;
            if count > 0 {
                return Err(unfit(
                    format!("{count} of {rows} rows lie outside of `owns` ({})", written.text()),
                    example,
                ));
            }
        }
        for (check, written) in self.checks.iter().zip(&publish.checks) {
            let bound = Bound { text: texts.failing(&check.text), arguments: check.arguments.clone() };
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
            return Err(unfit(format!("{count} of {rows} rows have no whole key ({names})"), example));
        }
        let (count, example) = of("the keys", DB::finding(connection, &plain(texts.twins())).await)?;
        if count > 0 {
            return Err(unfit(
                format!("{count} keys ({names}) stand for more than one of {rows} rows"),
                example,
            ));
        }
        if publish.mode == Mode::ApplyDelta {
            let nothing = plain(texts.empty(&publish.columns));
            let (count, example) = of("the amounts", DB::finding(connection, &nothing).await)?;
            if count > 0 {
                let columns = publish.columns.join(", ");
                return Err(unfit(format!("{count} of {rows} rows hold no number ({columns})"), example));
            }
        }
        Ok(())
    }

    /// Removes the stage: a file's connection would keep it until it is used again.
    pub(crate) async fn clear(
        &self,
        connection: &mut DB::Connection,
        staged: &Staged,
    ) -> Result<(), WriteError> {
        for text in staged.fitting.texts.clear() {
            of(STAGING, DB::execute(connection, &plain(text)).await)?;
        }
        Ok(())
    }

    /// Lets the staged rows take their place. The transaction holds the fence, and the lock of the table.
    pub(crate) async fn swap(
        &self,
        connection: &mut DB::Connection,
        staged: &Staged,
        entry: Entry<'_>,
    ) -> Result<Swapped, WriteError> {
        let Staged { fitting, rows } = staged;
        let texts = &fitting.texts;
        let what = format!("`{}`", self.publish.table);
        let mut written = 0;
        let statements = match self.publish.mode {
            Mode::Overwrite => {
                if let Some(owned) = self.owning(|owns| texts.delete_owned(owns)) {
                    of(&what, DB::execute(connection, &owned).await)?;
                }
                failpoint::reach("publish.deleted");
                vec![plain(texts.insert())]
            }
            Mode::Merge => {
                if self.publish.delete_missing
                    && let Some(missing) = self.owning(|owns| texts.delete_missing(owns))
                {
                    if let Some(index) = texts.index_missing() {
                        of(STAGING, DB::execute(connection, &plain(index)).await)?;
                    }
                    written += of(&what, DB::execute(connection, &missing).await)?;
                }
                vec![plain(texts.upsert(&fitting.incomparable))]
            }
            Mode::AppendOnce => return self.append(connection, fitting, *rows, entry).await,
            Mode::ApplyDelta => {
                let written = self.apply_delta(connection, fitting, entry).await?;
                return Ok(Swapped { written, ..Swapped::default() });
            }
            Mode::Land => vec![plain(texts.insert_absent())],
        };
        for statement in statements {
            written += of(&what, DB::execute(connection, &statement).await)?;
        }
        Ok(Swapped { written, ..Swapped::default() })
    }

    /// The same for rows that are units: each has an entry of its own, so what is appended needs no other. Some units of a
    /// window are no reason to lock others out, or to delete what is not among them.
    pub(crate) async fn swap_units(
        &self,
        connection: &mut DB::Connection,
        staged: &Staged,
    ) -> Result<u64, WriteError> {
        let texts = &staged.fitting.texts;
        let text = match self.publish.mode {
            Mode::Merge => texts.upsert(&staged.fitting.incomparable),
            Mode::Land => texts.insert_absent(),
            Mode::AppendOnce if !self.publish.has_ledger => {
                self.is_not_there_otherwise(connection, &staged.fitting).await?;
                texts.insert_absent()
            }
            Mode::AppendOnce | Mode::Overwrite | Mode::ApplyDelta => texts.insert(),
        };
        of(&format!("`{}`", self.publish.table), DB::execute(connection, &plain(text)).await)
    }

    fn owning(&self, text: impl Fn(&str) -> String) -> Option<Bound> {
        let owns = self.owns.as_ref()?;
        Some(Bound { text: text(&owns.text), arguments: owns.arguments.clone() })
    }

    /// There is no such table, and what it could look like.
    fn missing(&self, columns: &[String]) -> String {
        let table = &self.publish.table;
        let mut names: Vec<&str> = columns.iter().map(String::as_str).take(ADVISED_MAX).collect();
        let landed = if self.publish.mode == Mode::Land { &LANDED[..] } else { &[] };
        names.extend(landed);
        let told = format!("there is no table `{table}` in the database `{}`", self.publish.database);
        match names.as_slice() {
            [] => format!("{told}\n  make it, with a column for each field of a unit"),
            names => format!("{told}\n  make it, with the columns {}", names.join(", ")),
        }
    }
}

fn unfit(told: String, example: Option<String>) -> WriteError {
    WriteError::Unfit(with_example(told, example))
}

fn with_example(told: String, example: Option<String>) -> String {
    match example {
        Some(example) => {
            let end = example.floor_char_boundary(EXAMPLE_BYTES_MAX);
            let dots = if end < example.len() { "…" } else { "" };
            format!("{told}, for example {}{dots}", example.get(..end).unwrap_or_default())
        }
        None => told,
    }
}
