//! Compares a source with the table that its rows were written to. The source is staged in a temporary table, page by page, so
//! that memory does not depend on its size; the table is only read.

use std::collections::{BTreeSet, VecDeque};
use std::marker::PhantomData;

use refrain_core::project::Dialect;
use refrain_core::publish::target::ColumnMapping;
use refrain_core::publish::text::reconcile::{OF_A_UNIT, spoken};
use refrain_core::publish::{Mode, TablePublish};

use super::error::{WriteError, of};
use super::writer::Writer;
use crate::ledger::BatchError;
use crate::user_database::{Backend, BoundQuery, Cell, QueryArgument, Row};

const STAGE: &str = "refrain:compared";
const STAGING: &str = "the source cannot be staged";
/// How many keys are listed.
const LISTED: usize = 20;

/// Units or rows that differ in one respect.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// How many there are.
    pub count: u64,
    /// The keys of the first twenty.
    pub first: Vec<String>,
}

impl Difference {
    fn add(&mut self, key: String) {
        self.count += 1;
        if self.first.len() < LISTED {
            self.first.push(key);
        }
    }
}

/// How a source and a table differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Differences {
    /// Units of the source that are missing in the table.
    pub lost: Difference,
    /// Units of the source that the table has more than once.
    pub duplicated: Difference,
    /// Units that have other content in the table.
    pub changed: Difference,
    /// Rows that the job owns and the source does not have. Empty if the job has no `owns`.
    pub extra: Difference,
    /// Units that cannot be written to the table.
    pub unfit: Difference,
}

impl Differences {
    /// Whether source and table are equal.
    pub fn is_empty(&self) -> bool {
        let Differences { lost, duplicated, changed, extra, unfit } = self;
        [lost, duplicated, changed, extra, unfit].iter().all(|difference| difference.count == 0)
    }
}

/// A comparison in progress.
pub(crate) struct Comparison<DB> {
    fitting: ColumnMapping,
    owns: Option<BoundQuery>,
    lands: bool,
    /// The columns that occurred in the source.
    shown: BTreeSet<String>,
    unfit: Difference,
    database: PhantomData<fn() -> DB>,
}

/// Units of a page with the same columns, as rows.
pub(crate) struct StagedUnits {
    pub(crate) columns: Vec<String>,
    /// Each row with the key of its unit.
    pub(crate) rows: Vec<(String, Row)>,
}

fn plain(text: String) -> BoundQuery {
    BoundQuery { text, arguments: Vec::new() }
}

impl<DB: Backend> Comparison<DB> {
    /// Creates the stage for the source, in a transaction that is never committed.
    pub(crate) async fn begin(
        connection: &mut DB::Connection,
        publish: &TablePublish,
        writer: Writer<DB>,
    ) -> Result<Comparison<DB>, WriteError> {
        let (target, owns) = writer.compared();
        let fitting = target?.compared(publish, DB::DIALECT, STAGE).map_err(WriteError::Refused)?;
        let texts = &fitting.texts;
        if DB::DIALECT == Dialect::Sqlite {
            // A connection that refuses to write refuses temporary tables as well; this one has only our own statements.
            of(STAGING, DB::execute_bound(connection, &plain("pragma query_only = 0".to_owned())).await)?;
        }
        for text in texts.clear().into_iter().chain([texts.make_compared()]) {
            of(STAGING, DB::execute_bound(connection, &plain(text)).await)?;
        }
        let lands = publish.mode == Mode::Land;
        let (shown, unfit) = (BTreeSet::new(), Difference::default());
        Ok(Comparison { fitting, owns, lands, shown, unfit, database: PhantomData })
    }

    /// Whether rows are compared by content hash alone.
    pub(crate) fn lands(&self) -> bool {
        self.lands
    }

    /// Adds a page. Units that cannot be written to the table are found by bisection.
    pub(crate) async fn add(
        &mut self,
        connection: &mut DB::Connection,
        staged: StagedUnits,
    ) -> Result<(), WriteError> {
        let StagedUnits { columns, mut rows } = staged;
        let places: Option<Vec<usize>> = columns
            .iter()
            .map(|name| self.fitting.texts.columns.iter().position(|one| one == name))
            .collect();
        // A unit with a field that the table does not have cannot be written.
        let Some(places) = places else {
            for (unit, _) in rows {
                self.unfit.add(unit);
            }
            return Ok(());
        };
        let spoken = spoken(places);
        for (_, row) in &mut rows {
            row.push(Cell::Text(spoken.clone()));
        }
        let names: Vec<String> =
            columns.iter().cloned().chain(OF_A_UNIT.iter().map(|name| (*name).to_owned())).collect();
        let mut todo = VecDeque::from([rows]);
        while let Some(mut some) = todo.pop_front() {
            let rows: Vec<Row> = some.iter().map(|(_, row)| row.clone()).collect();
            savepoint::<DB>(connection, "savepoint").await?;
            let loaded = DB::load(connection, STAGE, &names, &rows).await;
            if let Err(error) = loaded {
                savepoint::<DB>(connection, "rollback to savepoint").await?;
                BatchError::from(error).blamed()?;
                if let (true, Some((unit, _))) = (some.len() == 1, some.first()) {
                    self.unfit.add(unit.clone());
                } else {
                    let second = some.split_off(some.len() / 2);
                    todo.push_front(second);
                    todo.push_front(some);
                }
                continue;
            }
            savepoint::<DB>(connection, "release savepoint").await?;
            self.shown.extend(columns.iter().cloned());
        }
        Ok(())
    }

    /// Compares after the whole source was added. `source` is the name that `land` records with each row.
    pub(crate) async fn conclude(
        self,
        connection: &mut DB::Connection,
        source: &str,
    ) -> Result<(u64, Differences), WriteError> {
        let ColumnMapping { texts, incomparable, filled } = &self.fitting;
        for (column, parts) in filled {
            of("ids cannot be derived", DB::identify(connection, texts, column, parts).await)?;
        }
        let by_key = (!self.lands).then(|| texts.delete_replaced());
        let prepared = texts.derive().into_iter().chain(texts.index_compared());
        let prepared = prepared.chain(texts.count_rows()).chain([texts.delete_repeated()]);
        for text in prepared {
            of(STAGING, DB::execute_bound(connection, &plain(text)).await)?;
        }
        if DB::DIALECT == Dialect::Postgres {
            // The stage has its index. From here on only its rows are written, which the server allows in a temporary table.
            let read_only = plain("set local transaction_read_only = on".to_owned());
            of("the table cannot be compared", DB::execute_bound(connection, &read_only).await)?;
        }
        let (units, _) = of(STAGING, DB::finding(connection, &plain(texts.staged())).await)?;
        if let Some(text) = by_key {
            of(STAGING, DB::execute_bound(connection, &plain(text)).await)?;
        }
        let mut differences = Differences { unfit: self.unfit.clone(), ..Differences::default() };
        if self.lands {
            let with_source =
                |text: String| BoundQuery { text, arguments: vec![QueryArgument::Text(source.to_owned())] };
            let place = "cast($1 as text)";
            differences.lost = found::<DB>(connection, &with_source(texts.not_landed(place))).await?;
            differences.duplicated = found::<DB>(connection, &with_source(texts.landed_again(place))).await?;
        } else {
            differences.lost = found::<DB>(connection, &plain(texts.lost())).await?;
            differences.duplicated = found::<DB>(connection, &plain(texts.duplicated())).await?;
            let derived = texts.derived.iter().map(|(column, _)| column.clone());
            let columns: Vec<String> = self.shown.iter().cloned().chain(derived).collect();
            if let Some(text) = texts.changed(&columns, incomparable) {
                differences.changed = found::<DB>(connection, &plain(text)).await?;
            }
            if let Some(owns) = &self.owns {
                let extra = BoundQuery { text: texts.extra(&owns.text), arguments: owns.arguments.clone() };
                differences.extra = found::<DB>(connection, &extra).await?;
            }
        }
        Ok((u64::try_from(units).unwrap_or_default() + differences.unfit.count, differences))
    }
}

async fn savepoint<DB: Backend>(connection: &mut DB::Connection, verb: &str) -> Result<(), WriteError> {
    of(STAGING, DB::execute_bound(connection, &plain(format!("{verb} refrain_page"))).await).map(drop)
}

/// The number of keys that a statement finds, and the first of them.
pub(super) async fn found<DB: Backend>(
    connection: &mut DB::Connection,
    bound: &BoundQuery,
) -> Result<Difference, WriteError> {
    let (count, first) = of("the table cannot be compared", DB::finding(connection, bound).await)?;
    let first = first.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    Ok(Difference { count: u64::try_from(count).unwrap_or_default(), first })
}
