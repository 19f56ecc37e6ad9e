//! A source on its way into a database: each part of it applied, then passed by whatever remembers how far it was read.

use std::time::Duration;

use refrain_core::redact::Redactor;
use refrain_core::state::{Doubt, InDoubtPolicy, NextStep};
use refrain_core::{Fingerprint, Key, Per, Values};

use super::bulk_write::{self, PagePlace};
use super::parts::{Odd, Part};
use super::per_unit::Each;
use super::unit::{Shape, Unit};
use super::unit_rows::Rows;
use crate::job::JobError;
use crate::ledger::{
    Arrival, Cursor, ExternalWork, FAILED_MAX, Fetched, LedgerError, MalformedRecord, Page, Units, Watermark,
};
use crate::publish::table::Publishes;
use crate::run::Run;

/// How many units that failed are tried together. So few, that they are never taken for a sign that all would fail.
pub(super) const FAILED_TOGETHER: usize = 20;
/// How many of those that failed in earlier attempts are read and tried together, which are fewer: each may have a megabyte.
const FAILED_AT_ONCE: i64 = 8;
/// The longest key of a run that is a part of the place of a line.
const RUN_BYTES_MAX: usize = 400;
/// The beginning of the key of a line that is no unit.
pub(super) const LINE: &str = "$line";

/// What is remembered of how far the source was read.
pub(super) enum Progress<'u, DB: Publishes> {
    /// Nothing: each run reads all of what is its own.
    Window,
    /// A cursor, and for how long its position is remembered.
    Cursor(Cursor<'u, DB, Unit>, Per),
    Watermark(Watermark<'u, DB, Unit>),
}

impl<DB: Publishes> Progress<'_, DB> {
    /// Where the source is read from, if a checkpoint says so: empty at the beginning of everything.
    pub(super) fn position(&self) -> Option<String> {
        match self {
            Progress::Window => None,
            Progress::Cursor(cursor, _) => Some(cursor.position().unwrap_or_default().to_owned()),
            Progress::Watermark(mark) => Some(mark.from().map(|from| from.to_string()).unwrap_or_default()),
        }
    }

    /// Values with this as where to go on.
    pub(super) fn values_at(&self, position: String, values: Values) -> Values {
        match self {
            Progress::Window => values,
            Progress::Cursor(..) => Values { cursor: Some(position), ..values },
            Progress::Watermark(_) => Values { watermark: Some(position), ..values },
        }
    }

    /// Values with where to go on: empty at the beginning of everything.
    pub(super) fn values(&self, values: Values) -> Values {
        match self.position() {
            Some(position) => self.values_at(position, values),
            None => values,
        }
    }
}

/// What is done with units.
pub(super) enum How<'f, DB> {
    Rows(Box<Rows<DB>>),
    /// The same, page by page, with no entry for each.
    Bulk(Box<Rows<DB>>),
    Each(Box<Each<'f>>),
}

impl<DB: Publishes> How<'_, DB> {
    /// Does it. Gives what stands for the units in the ledger, if it is not they themselves.
    async fn page(
        &self,
        units: &Units<DB, Unit>,
        page: &Page<'_, '_, DB, Unit>,
        at: &PagePlace,
    ) -> Result<Option<Vec<Arrival>>, JobError> {
        match self {
            How::Rows(rows) => rows.apply(page.apply()).await?,
            How::Bulk(rows) => return bulk_write::settle(rows, units, page.units(), at).await.map(Some),
            How::Each(each) => each.run(page.outside().await?).await?,
        }
        Ok(None)
    }

    /// The same for units of no page; `place` is where the source was read from, if a checkpoint says so.
    pub(super) async fn list(
        &self,
        units: &Units<DB, Unit>,
        list: &[Unit],
        place: Option<String>,
    ) -> Result<(), JobError> {
        match self {
            How::Rows(rows) | How::Bulk(rows) => rows.apply(units.apply_from(place, list).await?).await,
            How::Each(each) => {
                let outside: ExternalWork<'_, DB, Unit> = units.outside_from(place, list).await?;
                each.run(outside).await
            }
        }
    }
}

async fn done<DB: Publishes>(
    page: Page<'_, '_, DB, Unit>,
    proof: Option<Vec<Arrival>>,
) -> Result<(), LedgerError> {
    match proof {
        Some(proof) => page.done_by(&proof).await,
        None => page.done().await,
    }
}

/// A source on its way into a database.
pub(super) struct Ingest<'c, 'u, DB: Publishes> {
    run: &'c Run,
    pub(super) units: &'u Units<DB, Unit>,
    pub(super) apply: How<'c, DB>,
    pub(super) progress: Progress<'u, DB>,
    pub(super) redactor: &'c Redactor,
    /// Whether something was read of which not all could be kept: nothing may pass it.
    has_gap: bool,
    /// Whether earlier readings have kept lines that were no units.
    has_odd: bool,
    /// The number of the last part, since the cursor moved.
    part: u64,
}

impl<'c, 'u, DB: Publishes> Ingest<'c, 'u, DB> {
    pub(super) async fn begin(
        run: &'c Run,
        units: &'u Units<DB, Unit>,
        apply: How<'c, DB>,
        progress: Progress<'u, DB>,
        redactor: &'c Redactor,
    ) -> Result<Self, JobError> {
        let has_odd = units.has_unreadable(LINE).await?;
        Ok(Ingest { run, units, apply, progress, redactor, has_gap: false, has_odd, part: 0 })
    }

    /// Units that failed in earlier attempts, from what was kept of them.
    pub(super) async fn failed_before(&self, shape: &Shape) -> Result<(), JobError> {
        let mut after = String::new();
        for _ in 0..FAILED_MAX / FAILED_AT_ONCE {
            let (failed, last) = self.units.failed_after(&after, FAILED_AT_ONCE).await?;
            let Some(last) = last else { break };
            let read: Vec<Unit> = failed.iter().filter_map(|unit| shape.unit(&unit.text)).collect();
            self.apply.list(self.units, &read, None).await?;
            after = last;
        }
        Ok(())
    }

    /// Units that earlier attempts of this run have left in doubt: those that may be sent again are.
    pub(super) async fn doubted_before(
        &self,
        shape: &Shape,
        policy: InDoubtPolicy,
        provider_ttl: Option<Duration>,
        horizon: Duration,
    ) -> Result<(), JobError> {
        let How::Each(each) = &self.apply else { return Ok(()) };
        let mut after = String::new();
        loop {
            let (doubtful, last) = self.units.doubtful(&after).await?;
            let Some(last) = last else { return Ok(()) };
            after = last;
            let again = doubtful.iter().filter(|doubtful| {
                let (since_first_send, since_last_send) = (doubtful.since, doubtful.since);
                let doubt = Doubt { since_first_send, since_last_send, horizon, provider_ttl, probe: None };
                matches!(policy.next(&doubt), NextStep::Apply(_))
            });
            let again: Vec<Unit> = again.filter_map(|doubtful| shape.unit(&doubtful.unit.text)).collect();
            self.units.fence.raised.tally.kept(again.iter().map(Unit::key));
            // The last of them is begun when the first have been answered: it is looked at again then.
            let since_max = match policy {
                InDoubtPolicy::ProviderKey => provider_ttl.unwrap_or_default().saturating_sub(horizon),
                _ => Duration::MAX,
            };
            each.run(self.units.outside_again(&again, since_max).await?).await?;
        }
    }

    /// Applies a part of the source, and moves on past it.
    pub(super) async fn settle(&mut self, part: Part) -> Result<(), JobError> {
        let place = self.place();
        self.has_gap |= part.odd.iter().any(|odd| !odd.is_whole);
        let position = self.progress.position();
        self.units.park(&unreadable(&place, part.odd, self.redactor)?, position.as_deref()).await?;
        let at = self.page_place();
        let (units, apply) = (self.units, &self.apply);
        match &mut self.progress {
            Progress::Window => match apply {
                How::Bulk(rows) => drop(bulk_write::settle(rows, units, &part.units, &at).await?),
                How::Rows(_) | How::Each(_) => apply.list(units, &part.units, None).await?,
            },
            Progress::Watermark(mark) => {
                let page = mark.page(part.units)?;
                let proof = apply.page(units, &page, &at).await?;
                done(page, proof).await?;
            }
            Progress::Cursor(cursor, _) => match part.cursor.filter(|_| !self.has_gap) {
                None => {
                    let page = cursor.part(part.units)?;
                    let proof = apply.page(units, &page, &at).await?;
                    done(page, proof).await?;
                }
                Some(token) => {
                    let fetched = Fetched { units: part.units, next: Some(token) };
                    let page = cursor.next(async |_| Ok::<_, LedgerError>(fetched)).await?;
                    let Some(page) = page else { return Ok(()) };
                    let proof = apply.page(units, &page, &at).await?;
                    if self.has_odd {
                        units.clear(&place, position.as_deref()).await?;
                    }
                    done(page, proof).await?;
                    self.part = 0;
                }
            },
        }
        Ok(())
    }

    /// Where the next part stands. What is read from a checkpoint on is another part of the source each time, so that nothing
    /// can be said of one by what is recorded of another.
    fn page_place(&mut self) -> PagePlace {
        self.part += 1;
        let is_whole = matches!(self.progress, Progress::Window);
        let place = if is_whole { String::new() } else { self.part_of_the_source() };
        PagePlace { place, number: self.part, position: self.progress.position(), skips: is_whole }
    }

    /// The source was read to its end, and all of it is settled.
    pub(super) async fn end(self) -> Result<(), JobError> {
        if self.has_odd {
            self.units.clear(&self.place(), self.progress.position().as_deref()).await?;
        }
        match self.progress {
            Progress::Watermark(mark) if !self.has_gap => {
                mark.advance().await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Where lines stand that are being read: in the source of this run, after a position of its own cursor, or after a
    /// position of the cursor of all runs, which any of them may read.
    fn place(&self) -> String {
        format!("{LINE}:{}", self.part_of_the_source())
    }

    fn part_of_the_source(&self) -> String {
        self.part_at(&self.progress.position().unwrap_or_default())
    }

    /// The part of the source that is read from a position on.
    pub(super) fn part_at(&self, position: &str) -> String {
        match &self.progress {
            Progress::Cursor(_, Per::Ever) => hashed(position),
            // The same token may stand for other lines in another window.
            Progress::Cursor(_, Per::Window) => format!("{}:{}", self.source_of_the_run(), hashed(position)),
            Progress::Window | Progress::Watermark(_) => self.source_of_the_run(),
        }
    }

    fn source_of_the_run(&self) -> String {
        match self.run.key() {
            // The place of `a` must not be the beginning of that of `a:b`.
            key if key.len() <= RUN_BYTES_MAX && (self.run.window().is_some() || !key.contains(':')) => {
                key.to_owned()
            }
            key => hashed(key),
        }
    }
}

fn hashed(text: &str) -> String {
    let text = serde_json::Value::from(text).to_string();
    let hash = Fingerprint::of_json(&text).map(|hash| hash.to_string()).unwrap_or_default();
    hash.get(..16).unwrap_or_default().to_owned()
}

/// A line that is no unit may be anything that a script prints by mistake: secrets are taken out before it is kept.
pub(super) fn unreadable(
    place: &str,
    odd: Vec<Odd>,
    redactor: &Redactor,
) -> Result<Vec<MalformedRecord>, JobError> {
    let of = |Odd { number, text, message, .. }: Odd| {
        let key = Key::parse(&format!("{place}:{number}"))?;
        let [input, message] = [&text, &message].map(|text| redactor.redact(text).into_owned());
        Ok(MalformedRecord { key, input, message })
    };
    odd.into_iter().map(of).collect()
}
