//! A cursor: an opaque token of the source that says where to go on reading.

use std::future::Future;

use serde::Serialize;

use super::backend::Backend;
use super::checkpoint::Checkpoint;
use super::page::{Of, Page, not_done};
use super::units::{Per, Units};
use super::{LedgerError, Result};

/// What a source gave: units, and the token of what comes after them.
#[derive(Debug, Clone)]
pub struct Fetched<T> {
    /// The units of this page.
    pub units: Vec<T>,
    /// Where to go on; none on the last page, which is then read again the next time.
    pub next: Option<String>,
}

/// A cursor over a source, page by page. It comes from [`Units::cursor`].
///
/// The token must come from the source, or from a key of the last unit: a page counted by an offset shifts when something
/// is inserted before it, and then a unit is never seen.
pub struct Cursor<'u, DB: Backend, T> {
    units: &'u Units<DB, T>,
    ledger: i64,
    pub(super) checkpoint: Checkpoint,
    /// Whether the source is read from its beginning once more, although the cursor stands further on.
    pub(super) is_anew: bool,
    /// Whether a page was given and is not done.
    pub(super) is_open: bool,
    pub(super) is_over: bool,
}

impl<DB: Backend, T> std::fmt::Debug for Cursor<'_, DB, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("checkpoint", &self.checkpoint).finish_non_exhaustive()
    }
}

impl<DB: Backend, T: Serialize> Units<DB, T> {
    /// Where the last attempt of any run of this job and scope got to in a source.
    ///
    /// ```
    /// # use refrain::{Fetched, Job, JobError, Per, Run, key};
    /// # #[derive(serde::Serialize)] struct Invoice { id: i64, total: i64 }
    /// # struct Api;
    /// # impl Api { async fn page(&self, at: Option<String>) -> Result<Fetched<Invoice>, JobError> {
    /// #     Ok(Fetched { units: Vec::new(), next: None }) } }
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

    /// The same, remembered for ever or for the window of this run: with [`Per::Window`] each window begins at the beginning
    /// of the source, and a later attempt of the same window goes on where the last one got to. A run without a window has
    /// no such cursor.
    pub async fn cursor_per<'u>(&'u self, per: Per, name: &str) -> Result<Cursor<'u, DB, T>> {
        let raised = &self.fence.raised;
        let checkpoint = Checkpoint::read(raised, raised.ledger(per).await?, name).await?;
        let ledger = self.ledger().await?;
        // The work of a window that is done again begins where the window does; what was done again before is known.
        let is_anew = per == Per::Window && raised.facts.redo.is_some();
        Ok(Cursor { units: self, ledger, checkpoint, is_anew, is_open: false, is_over: false })
    }
}

impl<'u, DB: Backend, T: Serialize> Cursor<'u, DB, T> {
    /// Where to go on reading; none at the beginning of everything.
    pub fn position(&self) -> Option<&str> {
        self.checkpoint.position.as_deref().filter(|_| !self.is_anew)
    }

    /// A part of a page that is too long to be held at once. Done, it moves nothing: only the page that ends with a token
    /// does.
    pub(crate) fn part(&mut self, units: Vec<T>) -> Result<Page<'_, 'u, DB, T>> {
        if self.is_open {
            return Err(not_done(&self.checkpoint.name));
        }
        self.is_open = true;
        Page::new(self.units, self.ledger, units, Of::Part(self))
    }

    /// Reads the next page. None: the source has no more. The page before must be done.
    ///
    /// ```compile_fail,E0499
    /// # async fn example(mut pages: refrain::Cursor<'_, sqlx::Sqlite, u32>) -> Result<(), refrain::LedgerError> {
    /// # async fn read(_: Option<String>) -> Result<refrain::Fetched<u32>, refrain::LedgerError> { Err(refrain::LedgerError::Contended) }
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
        F: Future<Output = std::result::Result<Fetched<T>, E>>,
        E: From<LedgerError>,
    {
        if self.is_open {
            return Err(not_done(&self.checkpoint.name).into());
        }
        if self.is_over {
            return Ok(None);
        }
        let Fetched { units, next } = read(self.position().map(str::to_owned)).await?;
        if units.is_empty() && next.is_none() {
            self.is_over = true;
            return Ok(None);
        }
        self.is_open = true;
        Ok(Some(Page::new(self.units, self.ledger, units, Of::Cursor(self, next))?))
    }
}
