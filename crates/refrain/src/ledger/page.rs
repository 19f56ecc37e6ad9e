//! A page of units that stands between two positions of a checkpoint. Applied, it is done; dropped, it never was.

use super::apply::Applying;
use super::backend::Backend;
use super::checkpoint::Proof;
use super::cursor::Cursor;
use super::external_work::{Circumstances, ExternalWork};
use super::judge::Arrival;
use super::unit_list::List;
use super::units::Units;
use super::watermark::Watermark;
use super::{LedgerError, Result};

/// Units that were read together. It comes from [`Cursor::next`] or [`Watermark::page`].
///
/// [`done`](Self::done) is the only way to advance, and it is refused while a unit of the page is unsettled.
#[must_use = "apply its units, then say `done`: a page that is dropped does not advance"]
pub struct Page<'p, 'u, DB: Backend, T> {
    units: &'u Units<DB, T>,
    ledger: i64,
    items: Vec<T>,
    list: List,
    /// Where the source was read from.
    place: String,
    of: Of<'p, 'u, DB, T>,
}

/// What a page moves on.
pub(super) enum Of<'p, 'u, DB: Backend, T> {
    Cursor(&'p mut Cursor<'u, DB, T>, Option<String>),
    /// More of it follows before there is a token.
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

    /// What was read.
    pub fn units(&self) -> &[T] {
        &self.items
    }

    /// Applies the units of the page, in batches.
    pub fn apply(&self) -> Applying<'_, DB, T> {
        let place = Some(self.place.clone());
        Applying::new(self.units, self.ledger, &self.items, self.list.clone(), place)
    }

    /// Its units, for work that is done outside of any transaction.
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

    /// All of it is settled: the checkpoint may move on.
    pub async fn done(self) -> Result<()> {
        let list = self.list.clone();
        self.proven(list.distinct()).await
    }

    /// The same where these stand for its units.
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

/// A page was dropped, and whoever goes on without it would leave it out.
pub(super) fn not_done(name: &str) -> LedgerError {
    LedgerError::NotDone { name: name.to_owned() }
}
