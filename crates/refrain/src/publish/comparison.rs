//! A source beside the table that its rows went to. The source is staged in a temporary table, page by page, so that memory
//! does not depend on how much there is; the table is only read.

use std::collections::{BTreeSet, VecDeque};
use std::marker::PhantomData;

use refrain_core::publish::target::Fitting;
use refrain_core::publish::text::reconcile::{OF_A_UNIT, spoken};
use refrain_core::publish::{Mode, TablePublish};

use super::error::{WriteError, of};
use super::rows::{Cell, Row};
use super::table::Publishes;
use super::writer::Writer;
use crate::action::binds::{Argument, Bound};
use crate::ledger::BatchError;

const STAGE: &str = "refrain:compared";
const STAGING: &str = "the source cannot be staged";
/// How many keys are listed.
const LISTED: usize = 20;

/// Units or rows of which something is not as it should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// How many there are.
    pub count: u64,
    /// The first of them, twenty at most.
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

/// Where a source and a table differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Units of the source that the table has not.
    pub lost: Difference,
    /// Units of the source that the table has more than once.
    pub duplicated: Difference,
    /// Units of which the table says something else.
    pub changed: Difference,
    /// Rows that the job owns, and that the source has not; none is known if it does not say what it owns.
    pub extra: Difference,
    /// Units that no row of the table can be.
    pub unfit: Difference,
}

impl Differences {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        let Differences { lost, duplicated, changed, extra, unfit } = self;
        [lost, duplicated, changed, extra, unfit].iter().all(|difference| difference.count == 0)
    }
}

/// A source that is being compared.
pub(crate) struct Comparison<DB> {
    fitting: Fitting,
    owns: Option<Bound>,
    lands: bool,
    /// The columns that the source has shown.
    shown: BTreeSet<String>,
    unfit: Difference,
    database: PhantomData<fn() -> DB>,
}

/// Rows of a page, with the keys of their units.
pub(crate) struct Staged {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<(String, Row)>,
}

fn plain(text: String) -> Bound {
    Bound { text, arguments: Vec::new() }
}

impl<DB: Publishes> Comparison<DB> {
    /// Makes a place for the source, in a transaction that is never committed.
    pub(crate) async fn begin(
        connection: &mut DB::Connection,
        publish: &TablePublish,
        writer: Writer<DB>,
    ) -> Result<Comparison<DB>, WriteError> {
        let (target, owns) = writer.compared();
        let fitting = target?.compared(publish, DB::DIALECT, STAGE).map_err(WriteError::Refused)?;
        let texts = &fitting.texts;
        for text in texts.clear().into_iter().chain([texts.make_compared()]) {
            of(STAGING, DB::execute(connection, &plain(text)).await)?;
        }
        let lands = publish.mode == Mode::Land;
        let (shown, unfit) = (BTreeSet::new(), Difference::default());
        Ok(Comparison { fitting, owns, lands, shown, unfit, database: PhantomData })
    }

    /// Whether only what a row says is compared.
    pub(crate) fn lands(&self) -> bool {
        self.lands
    }

    /// Adds a page. What no row of the table can be is found by halves.
    pub(crate) async fn add(
        &mut self,
        connection: &mut DB::Connection,
        staged: Staged,
    ) -> Result<(), WriteError> {
        let Staged { columns, mut rows } = staged;
        let places: Option<Vec<usize>> = columns
            .iter()
            .map(|name| self.fitting.texts.columns.iter().position(|one| one == name))
            .collect();
        // What has a field that the table has not is refused there.
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

    /// All of it is there. `source` is what `land` calls it.
    pub(crate) async fn conclude(
        self,
        connection: &mut DB::Connection,
        source: &str,
    ) -> Result<(u64, Differences), WriteError> {
        let Fitting { texts, incomparable, filled } = &self.fitting;
        for (column, parts) in filled {
            of("ids cannot be derived", DB::identify(connection, texts, column, parts).await)?;
        }
        let by_key = (!self.lands).then(|| texts.replaced());
        let prepared = texts.derive().into_iter().chain(texts.index_compared());
        let prepared = prepared.chain(texts.count_rows()).chain([texts.told_again()]);
        for text in prepared {
            of(STAGING, DB::execute(connection, &plain(text)).await)?;
        }
        let (units, _) = of(STAGING, DB::finding(connection, &plain(texts.staged())).await)?;
        if let Some(text) = by_key {
            of(STAGING, DB::execute(connection, &plain(text)).await)?;
        }
        let mut differences = Differences { unfit: self.unfit.clone(), ..Differences::default() };
        if self.lands {
            let asked = |text: String| Bound { text, arguments: vec![Argument::Text(source.to_owned())] };
            let place = "cast($1 as text)";
            differences.lost = found::<DB>(connection, &asked(texts.not_landed(place))).await?;
            differences.duplicated = found::<DB>(connection, &asked(texts.landed_again(place))).await?;
        } else {
            differences.lost = found::<DB>(connection, &plain(texts.lost())).await?;
            differences.duplicated = found::<DB>(connection, &plain(texts.duplicated())).await?;
            let derived = texts.derived.iter().map(|(column, _)| column.clone());
            let columns: Vec<String> = self.shown.iter().cloned().chain(derived).collect();
            if let Some(text) = texts.changed(&columns, incomparable) {
                differences.changed = found::<DB>(connection, &plain(text)).await?;
            }
            if let Some(owns) = &self.owns {
                let extra = Bound { text: texts.extra(&owns.text), arguments: owns.arguments.clone() };
                differences.extra = found::<DB>(connection, &extra).await?;
            }
        }
        Ok((u64::try_from(units).unwrap_or_default() + differences.unfit.count, differences))
    }
}

async fn savepoint<DB: Publishes>(connection: &mut DB::Connection, verb: &str) -> Result<(), WriteError> {
    of(STAGING, DB::execute(connection, &plain(format!("{verb} refrain_page"))).await).map(drop)
}

/// What a statement finds: how many there are, and the first of them.
pub(super) async fn found<DB: Publishes>(
    connection: &mut DB::Connection,
    bound: &Bound,
) -> Result<Difference, WriteError> {
    let (count, first) = of("the table cannot be compared", DB::finding(connection, bound).await)?;
    let first = first.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    Ok(Difference { count: u64::try_from(count).unwrap_or_default(), first })
}
