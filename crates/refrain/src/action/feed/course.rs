//! A source on its way into a database: each part of it applied, then passed by whatever remembers how far it was read.

use refrain_core::{Fingerprint, Key, Values};

use super::each::Each;
use super::pages::{Odd, Part};
use super::rows::Rows;
use super::unit::{Said, Shape, Unit};
use crate::job::JobError;
use crate::ledger::{Applying, Cursor, Fetched, LedgerError, Outside, Page, Units, Unreadable, Watermark};
use crate::publish::table::Publishes;
use crate::run::Run;

/// How many units that failed are tried together. So few, that they are never taken for a sign that all would fail.
const FAILED_TOGETHER: usize = 20;
/// The longest key of a run that is a part of the place of a line.
const RUN_BYTES_MAX: usize = 400;
/// The beginning of the key of a line that is no unit.
const LINE: &str = "$line";

/// What is remembered of how far the source was read.
pub(super) enum Progress<'u, DB: Publishes> {
    /// Nothing: each run reads all of what is its own.
    Window,
    Cursor(Cursor<'u, DB, Unit>),
    Watermark(Watermark<'u, DB, Unit>),
}

impl<DB: Publishes> Progress<'_, DB> {
    /// Values with where to go on: empty at the beginning of everything.
    pub(super) fn values(&self, values: Values) -> Values {
        match self {
            Progress::Window => values,
            Progress::Cursor(cursor) => {
                Values { cursor: Some(cursor.position().unwrap_or_default().to_owned()), ..values }
            }
            Progress::Watermark(mark) => {
                let from = mark.from().map(|from| from.to_string()).unwrap_or_default();
                Values { watermark: Some(from), ..values }
            }
        }
    }
}

/// What is done with units.
pub(super) enum How<'f, DB> {
    Rows(Box<Rows<DB>>),
    Each(Box<Each<'f>>),
}

impl<DB: Publishes> How<'_, DB> {
    async fn rows(rows: &Rows<DB>, mut batches: Applying<'_, DB, Unit>) -> Result<(), JobError> {
        while let Some(mut batch) = batches.next().await? {
            let (connection, due) = batch.parts();
            let went = rows.write(connection, &due).await;
            batch.settle(went).await?;
        }
        Ok(())
    }

    async fn page(&self, page: &Page<'_, '_, DB, Unit>) -> Result<(), JobError> {
        match self {
            How::Rows(rows) => How::rows(rows, page.apply()).await,
            How::Each(each) => each.execute(page.outside().await?).await,
        }
    }

    async fn list(&self, units: &Units<DB, Unit>, list: &[Unit]) -> Result<(), JobError> {
        match self {
            How::Rows(rows) => How::rows(rows, units.apply(list).await?).await,
            How::Each(each) => {
                let outside: Outside<'_, DB, Unit> = units.outside(list).await?;
                each.execute(outside).await
            }
        }
    }
}

/// A source on its way into a database.
pub(super) struct Course<'c, 'u, DB: Publishes> {
    run: &'c Run,
    units: &'u Units<DB, Unit>,
    apply: How<'c, DB>,
    progress: Progress<'u, DB>,
    /// Whether something was read of which not all could be kept: nothing may pass it.
    has_gap: bool,
    /// Whether earlier readings have kept lines that were no units.
    has_odd: bool,
}

impl<'c, 'u, DB: Publishes> Course<'c, 'u, DB> {
    pub(super) async fn begin(
        run: &'c Run,
        units: &'u Units<DB, Unit>,
        apply: How<'c, DB>,
        progress: Progress<'u, DB>,
    ) -> Result<Self, JobError> {
        let has_odd = units.has_unreadable(LINE).await?;
        Ok(Course { run, units, apply, progress, has_gap: false, has_odd })
    }

    /// Units that failed in earlier attempts, from what was kept of them.
    pub(super) async fn failed_before(&self, shape: &Shape) -> Result<(), JobError> {
        let failed = self.units.failed().await?;
        let read = failed.iter().filter_map(|unit| match shape.read(&unit.text) {
            Ok(Said::Unit(unit)) => Some(unit),
            Ok(Said::Cursor(_)) | Err(_) => None,
        });
        let read: Vec<Unit> = read.collect();
        for some in read.chunks(FAILED_TOGETHER) {
            self.apply.list(self.units, some).await?;
        }
        Ok(())
    }

    /// Applies a part of the source, and moves on past it.
    pub(super) async fn settle(&mut self, part: Part) -> Result<(), JobError> {
        let place = self.place();
        self.has_gap |= part.odd.iter().any(|odd| !odd.is_whole);
        self.units.park(&unreadable(&place, part.odd)?).await?;
        match &mut self.progress {
            Progress::Window => self.apply.list(self.units, &part.units).await?,
            Progress::Watermark(mark) => {
                let page = mark.page(part.units)?;
                self.apply.page(&page).await?;
                page.done().await?;
            }
            Progress::Cursor(cursor) => match part.cursor.filter(|_| !self.has_gap) {
                None => {
                    let page = cursor.part(part.units)?;
                    self.apply.page(&page).await?;
                    page.done().await?;
                }
                Some(token) => {
                    let fetched = Fetched { units: part.units, next: Some(token) };
                    let page = cursor.next(async |_| Ok::<_, LedgerError>(fetched)).await?;
                    let Some(page) = page else { return Ok(()) };
                    self.apply.page(&page).await?;
                    if self.has_odd {
                        self.units.clear(&place).await?;
                    }
                    page.done().await?;
                }
            },
        }
        Ok(())
    }

    /// The source was read to its end, and all of it is settled.
    pub(super) async fn end(self) -> Result<(), JobError> {
        if self.has_odd {
            self.units.clear(&self.place()).await?;
        }
        match self.progress {
            Progress::Watermark(mark) if !self.has_gap => {
                mark.advance().await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Where lines stand that are being read: in the source of this run, or after a position of the cursor, which any run may
    /// read.
    fn place(&self) -> String {
        let place = match &self.progress {
            Progress::Cursor(cursor) => hashed(cursor.position().unwrap_or_default()),
            Progress::Window | Progress::Watermark(_) => match self.run.key() {
                key if key.len() <= RUN_BYTES_MAX => key.to_owned(),
                key => hashed(key),
            },
        };
        format!("{LINE}:{place}")
    }
}

fn hashed(text: &str) -> String {
    let text = serde_json::Value::from(text).to_string();
    let hash = Fingerprint::of_json(&text).map(|hash| hash.to_string()).unwrap_or_default();
    hash.get(..16).unwrap_or_default().to_owned()
}

fn unreadable(place: &str, odd: Vec<Odd>) -> Result<Vec<Unreadable>, JobError> {
    let of = |Odd { number, text, message, .. }| {
        let key = Key::parse(&format!("{place}:{number}"))?;
        Ok(Unreadable { key, input: text, message })
    };
    odd.into_iter().map(of).collect()
}
