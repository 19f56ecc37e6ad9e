//! A page of units between two positions of a checkpoint. If it is dropped, the checkpoint does not move.

use super::apply::Batches;
use super::checkpoint::Proof;
use super::cursor::Cursor;
use super::external_work::{Circumstances, ExternalWork};
use super::judge::Arrival;
use super::unit_list::List;
use super::units::Units;
use super::watermark::Watermark;
use super::{LedgerError, Result};
use crate::user_database::Backend;

/// Units that were read together. It comes from [`Cursor::next`] or [`Watermark::page`].
///
/// [`done`](Self::done) is the only way to advance, and it fails while a unit of the page is unsettled.
#[must_use = "apply its units, then call `done`: a page that is dropped does not advance"]
pub struct Page<'p, 'u, DB: Backend, T> {
    units: &'u Units<DB, T>,
    ledger: i64,
    items: Vec<T>,
    list: List,
    /// The position that the source was read from.
    place: String,
    of: Of<'p, 'u, DB, T>,
}

/// The checkpoint that a page belongs to.
pub(super) enum Of<'p, 'u, DB: Backend, T> {
    Cursor(&'p mut Cursor<'u, DB, T>, Option<String>),
    /// A part of a page: more follows before the next token.
    Part(&'p mut Cursor<'u, DB, T>),
    Watermark(&'p mut Watermark<'u, DB, T>),
}

impl<DB: Backend, T> std::fmt::Debug for Page<'_, '_, DB, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page").field("units", &self.items.len()).finish_non_exhaustive()
    }
}

impl<'p, 'u, DB: Backend, T: serde::Serialize> Page<'p, 'u, DB, T> {
    pub(super) fn new(
        units: &'u Units<DB, T>,
        ledger: i64,
        items: Vec<T>,
        of: Of<'p, 'u, DB, T>,
    ) -> Result<Page<'p, 'u, DB, T>> {
        let place = match &of {
            Of::Cursor(cursor, _) | Of::Part(cursor) => cursor.position().map(str::to_owned),
            Of::Watermark(watermark) => watermark.from().map(|from| from.to_string()),
        };
        Ok(Page { units, ledger, list: units.list(&items)?, items, place: place.unwrap_or_default(), of })
    }

    /// The units that were read.
    pub fn units(&self) -> &[T] {
        &self.items
    }

    /// Applies the units of the page, in batches.
    pub fn apply(&self) -> Batches<'_, DB, T> {
        let place = Some(self.place.clone());
        Batches::new(self.units, self.ledger, &self.items, self.list.clone(), place)
    }

    /// The units, for work outside of any transaction.
    pub(crate) async fn outside(&self) -> Result<ExternalWork<'_, DB, T>> {
        let place = Some(self.place.clone());
        ExternalWork::of(
            self.units,
            self.ledger,
            &self.items,
            self.list.clone(),
            Circumstances { again: None, place },
        )
        .await
    }

    /// Advances the checkpoint; all units must be settled.
    pub async fn done(self) -> Result<()> {
        let list = self.list.clone();
        self.proven(list.distinct()).await
    }

    /// Advances the checkpoint if these entries, which stand for the units, are settled.
    pub(crate) async fn done_by(self, arrivals: &[Arrival]) -> Result<()> {
        self.proven(arrivals.iter().collect()).await
    }

    async fn proven(self, arrivals: Vec<&Arrival>) -> Result<()> {
        let raised = &self.units.fence.raised;
        let proof = Proof::of(self.ledger, self.units.judge(), arrivals);
        match self.of {
            Of::Cursor(cursor, Some(next)) => {
                cursor.checkpoint.advance(raised, &next, &proof).await?;
                cursor.is_anew = false;
                cursor.is_open = false;
            }
            Of::Cursor(cursor, None) => {
                proof.check(raised).await?;
                cursor.is_open = false;
                cursor.is_over = true;
            }
            Of::Part(cursor) => {
                proof.check(raised).await?;
                cursor.is_open = false;
            }
            Of::Watermark(watermark) => {
                proof.check(raised).await?;
                watermark.passed(&self.items, &proof.arrivals);
            }
        }
        Ok(())
    }
}

/// The error after a page was dropped: reading on would skip its units.
pub(super) fn not_done(name: &str) -> LedgerError {
    LedgerError::NotDone { name: name.to_owned() }
}
