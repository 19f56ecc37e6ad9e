//! A cursor: an opaque token of the source that says where to continue reading.

use std::future::Future;

use serde::Serialize;

use super::checkpoint::Checkpoint;
use super::page::{Of, Page, not_done};
use super::units::{Per, Units};
use super::{LedgerError, Result};
use crate::user_database::Backend;

/// A page of the source: units, and the token for the next page.
#[derive(Debug, Clone)]
pub struct FetchedPage<T> {
    /// The units of this page.
    pub units: Vec<T>,
    /// The token of the next page; `None` on the last page, which is then read again the next time.
    pub next: Option<String>,
}

/// A cursor over a source, page by page. It comes from [`Units::cursor`].
///
/// The token must come from the source, or from a key of the last unit: a page counted by an offset shifts when a row is
/// inserted before it, and then a unit is never seen.
pub struct Cursor<'u, DB: Backend, T> {
    units: &'u Units<DB, T>,
    ledger: i64,
    pub(super) checkpoint: Checkpoint,
    /// Whether the source is read from the beginning once more, although the cursor is further on.
    pub(super) is_anew: bool,
    /// Whether a page was returned and is not done.
    pub(super) is_open: bool,
    pub(super) is_over: bool,
}

impl<DB: Backend, T> std::fmt::Debug for Cursor<'_, DB, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("checkpoint", &self.checkpoint).finish_non_exhaustive()
    }
}

impl<DB: Backend, T: Serialize> Units<DB, T> {
    /// Continues a source where the last attempt of any run of this job and scope stopped.
    ///
    /// ```
    /// # use refrain::ledger::{FetchedPage, Per};
    /// # use refrain::{Job, JobError, Run, key};
    /// # #[derive(serde::Serialize)] struct Invoice { id: i64, total: i64 }
    /// # struct Api;
    /// # impl Api { async fn page(&self, at: Option<String>) -> Result<FetchedPage<Invoice>, JobError> {
    /// #     Ok(FetchedPage { units: Vec::new(), next: None }) } }
    /// # struct InvoiceSync { api: Api, shop: sqlx::SqlitePool }
    /// impl Job for InvoiceSync {
    ///     const NAME: &'static str = "invoice-sync";
    ///
    ///     async fn run(&self, run: &mut Run) -> Result<(), JobError> {
    ///         let shop = run.fence(&self.shop).await?;
    ///         let invoices = shop.units(Per::Ever, |invoice: &Invoice| key!("invoice", invoice.id));
    ///         let mut pages = invoices.cursor("billing").await?;
    ///         while let Some(page) = pages.next(|at| self.api.page(at)).await? {
    ///             let mut batches = page.apply();
    ///             while let Some(mut batch) = batches.next().await? {
    ///                 let (tx, invoices) = batch.parts();
    ///                 let went = upsert(tx, &invoices).await;
    ///                 batch.settle(went).await?;
    ///             }
    ///             page.done().await?;
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// async fn upsert(tx: &mut sqlx::SqliteConnection, invoices: &[&Invoice]) -> Result<(), sqlx::Error> {
    ///     for invoice in invoices {
    ///         let upsert = "insert into invoices (id, total) values ($1, $2)
    ///             on conflict (id) do update set total = excluded.total";
    ///         sqlx::query(upsert).bind(invoice.id).bind(invoice.total).execute(&mut *tx).await?;
    ///     }
    ///     Ok(()) // and stop at the first error
    /// }
    /// ```
    pub async fn cursor<'u>(&'u self, name: &str) -> Result<Cursor<'u, DB, T>> {
        self.cursor_per(Per::Ever, name).await
    }

    /// Like [`cursor`](Self::cursor), remembered for ever or for the window of this run: with [`Per::Window`] each window
    /// begins at the beginning of the source, and a later attempt of the same window continues where the last one stopped. A
    /// run without a window cannot have such a cursor.
    pub async fn cursor_per<'u>(&'u self, per: Per, name: &str) -> Result<Cursor<'u, DB, T>> {
        let raised = &self.fence.raised;
        let checkpoint = Checkpoint::read(raised, raised.ledger(per).await?, name).await?;
        let ledger = self.ledger().await?;
        // A redo of a window begins where the window does; what it has done again before is recorded.
        let is_anew = per == Per::Window && raised.facts.redo.is_some();
        Ok(Cursor { units: self, ledger, checkpoint, is_anew, is_open: false, is_over: false })
    }
}

impl<'u, DB: Backend, T: Serialize> Cursor<'u, DB, T> {
    /// The position to continue from; `None` at the beginning.
    pub fn position(&self) -> Option<&str> {
        self.checkpoint.position.as_deref().filter(|_| !self.is_anew)
    }

    /// A part of a page that is too long for memory. It does not move the cursor: only the page that ends with a token does.
    pub(crate) fn part(&mut self, units: Vec<T>) -> Result<Page<'_, 'u, DB, T>> {
        if self.is_open {
            return Err(not_done(&self.checkpoint.name));
        }
        self.is_open = true;
        Page::new(self.units, self.ledger, units, Of::Part(self))
    }

    /// Reads the next page; `None` at the end of the source. The previous page must be done.
    ///
    /// ```compile_fail,E0499
    /// # async fn example(mut pages: refrain::ledger::Cursor<'_, sqlx::Sqlite, u32>) -> Result<(), refrain::ledger::LedgerError> {
    /// # async fn read(_: Option<String>) -> Result<refrain::ledger::FetchedPage<u32>, refrain::ledger::LedgerError> { Err(refrain::ledger::LedgerError::Contended) }
    /// let one = pages.next(read).await?;
    /// let two = pages.next(read).await?; // while the first is not done
    /// drop((one, two));
    /// # Ok(()) }
    /// ```
    pub async fn next<F, E>(
        &mut self,
        read: impl FnOnce(Option<String>) -> F,
    ) -> std::result::Result<Option<Page<'_, 'u, DB, T>>, E>
    where
        F: Future<Output = std::result::Result<FetchedPage<T>, E>>,
        E: From<LedgerError>,
    {
        if self.is_open {
            return Err(not_done(&self.checkpoint.name).into());
        }
        if self.is_over {
            return Ok(None);
        }
        let FetchedPage { units, next } = read(self.position().map(str::to_owned)).await?;
        if units.is_empty() && next.is_none() {
            self.is_over = true;
            return Ok(None);
        }
        self.is_open = true;
        Ok(Some(Page::new(self.units, self.ledger, units, Of::Cursor(self, next))?))
    }
}
