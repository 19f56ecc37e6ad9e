//! Applies a source part by part, and moves its checkpoint past each part that was applied.

use std::time::Duration;

use refrain_core::redact::Redactor;
use refrain_core::state::{Doubt, InDoubtPolicy, NextStep};
use refrain_core::{Fingerprint, Key, Per, Values};

use super::bulk_write::{self, PageOrigin};
use super::parts::{MalformedLine, SourcePart};
use super::per_unit::PerUnit;
use super::unit::{Unit, UnitReader};
use super::unit_rows::UnitRows;
use crate::ledger::{
    Arrival, Cursor, ExternalWork, FAILED_MAX, FetchedPage, LedgerError, MalformedRecord, Page, Units,
    Watermark,
};
use crate::run::{JobError, Run};
use crate::user_database::Backend;

/// How many failed units are retried together: few enough not to trip the limit on consecutive failures.
pub(super) const FAILED_TOGETHER: usize = 20;
/// How many units that failed in earlier attempts are read from the ledger together: each may have a megabyte.
const FAILED_AT_ONCE: i64 = 8;
/// The longest key of a run that is used in the place of a line; a longer one is hashed.
const RUN_BYTES_MAX: usize = 400;
/// The beginning of the key of a malformed line.
pub(super) const LINE: &str = "$line";

/// How far the source was read, as later runs will know it.
pub(super) enum SourceCheckpoint<'u, DB: Backend> {
    /// No checkpoint: each run reads its whole window or payload.
    None,
    /// A cursor, and whether it belongs to the job or to a window.
    Cursor(Cursor<'u, DB, Unit>, Per),
    Watermark(Watermark<'u, DB, Unit>),
}

impl<DB: Backend> SourceCheckpoint<'_, DB> {
    /// The position to read from, if there is a checkpoint; empty for the first run.
    pub(super) fn position(&self) -> Option<String> {
        match self {
            SourceCheckpoint::None => None,
            SourceCheckpoint::Cursor(cursor, _) => Some(cursor.position().unwrap_or_default().to_owned()),
            SourceCheckpoint::Watermark(mark) => {
                Some(mark.from().map(|from| from.to_string()).unwrap_or_default())
            }
        }
    }

    /// Values with this as the position to read from.
    pub(super) fn values_at(&self, position: String, values: Values) -> Values {
        match self {
            SourceCheckpoint::None => values,
            SourceCheckpoint::Cursor(..) => Values { cursor: Some(position), ..values },
            SourceCheckpoint::Watermark(_) => Values { watermark: Some(position), ..values },
        }
    }

    /// Values with the position to read from.
    pub(super) fn values(&self, values: Values) -> Values {
        match self.position() {
            Some(position) => self.values_at(position, values),
            None => values,
        }
    }
}

/// What the job does with its units.
pub(super) enum UnitHandler<'f, DB> {
    /// Writes rows, with a ledger entry per unit.
    Rows(Box<UnitRows<DB>>),
    /// Writes rows, with a ledger entry per page.
    Bulk(Box<UnitRows<DB>>),
    /// Runs a command or sends a request for each unit.
    PerUnit(Box<PerUnit<'f>>),
}

impl<DB: Backend> UnitHandler<'_, DB> {
    /// Applies a page. Returns the ledger entries that prove it, if they are not those of the units themselves.
    async fn apply_page(
        &self,
        units: &Units<DB, Unit>,
        page: &Page<'_, '_, DB, Unit>,
        origin: &PageOrigin,
    ) -> Result<Option<Vec<Arrival>>, JobError> {
        match self {
            UnitHandler::Rows(rows) => rows.apply(page.apply()).await?,
            UnitHandler::Bulk(rows) => {
                return bulk_write::write_page(rows, units, page.units(), origin).await.map(Some);
            }
            UnitHandler::PerUnit(each) => each.run(page.outside().await?).await?,
        }
        Ok(None)
    }

    /// Applies units that belong to no page. `position` is where the source was read from, if there is a checkpoint.
    pub(super) async fn apply_list(
        &self,
        units: &Units<DB, Unit>,
        list: &[Unit],
        position: Option<String>,
    ) -> Result<(), JobError> {
        match self {
            UnitHandler::Rows(rows) | UnitHandler::Bulk(rows) => {
                rows.apply(units.apply_from(position, list).await?).await
            }
            UnitHandler::PerUnit(each) => {
                let outside: ExternalWork<'_, DB, Unit> = units.outside_from(position, list).await?;
                each.run(outside).await
            }
        }
    }
}

async fn pass<DB: Backend>(
    page: Page<'_, '_, DB, Unit>,
    proof: Option<Vec<Arrival>>,
) -> Result<(), LedgerError> {
    match proof {
        Some(proof) => page.done_by(&proof).await,
        None => page.done().await,
    }
}

/// One reading of a source.
pub(super) struct Ingest<'c, 'u, DB: Backend> {
    run: &'c Run,
    pub(super) units: &'u Units<DB, Unit>,
    pub(super) handler: UnitHandler<'c, DB>,
    pub(super) checkpoint: SourceCheckpoint<'u, DB>,
    pub(super) redactor: &'c Redactor,
    /// Whether a line was too long to be stored: no checkpoint may pass it.
    has_gap: bool,
    /// Whether the ledger has malformed lines of earlier readings.
    has_malformed: bool,
    /// The number of the last part since the cursor moved.
    part: u64,
}

impl<'c, 'u, DB: Backend> Ingest<'c, 'u, DB> {
    pub(super) async fn begin(
        run: &'c Run,
        units: &'u Units<DB, Unit>,
        handler: UnitHandler<'c, DB>,
        checkpoint: SourceCheckpoint<'u, DB>,
        redactor: &'c Redactor,
    ) -> Result<Self, JobError> {
        let has_malformed = units.has_unreadable(LINE).await?;
        Ok(Ingest { run, units, handler, checkpoint, redactor, has_gap: false, has_malformed, part: 0 })
    }

    /// Retries units that failed in earlier attempts, from their stored input.
    pub(super) async fn retry_failed(&self, reader: &UnitReader) -> Result<(), JobError> {
        let mut after = String::new();
        for _ in 0..FAILED_MAX / FAILED_AT_ONCE {
            let (failed, last) = self.units.failed_after(&after, FAILED_AT_ONCE).await?;
            let Some(last) = last else { break };
            let read: Vec<Unit> = failed.iter().filter_map(|unit| reader.unit(&unit.text)).collect();
            self.handler.apply_list(self.units, &read, None).await?;
            after = last;
        }
        Ok(())
    }

    /// Sends requests again that earlier attempts of this run left in doubt, if the policy allows it.
    pub(super) async fn resend_doubtful(
        &self,
        reader: &UnitReader,
        policy: InDoubtPolicy,
        provider_ttl: Option<Duration>,
        horizon: Duration,
    ) -> Result<(), JobError> {
        let UnitHandler::PerUnit(each) = &self.handler else { return Ok(()) };
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
            let again: Vec<Unit> = again.filter_map(|doubtful| reader.unit(&doubtful.unit.text)).collect();
            self.units.fence.raised.tally.kept(again.iter().map(Unit::key));
            // The last request is sent after the first were answered: its age is checked once more then.
            let since_max = match policy {
                InDoubtPolicy::ProviderKey => provider_ttl.unwrap_or_default().saturating_sub(horizon),
                _ => Duration::MAX,
            };
            each.run(self.units.outside_again(&again, since_max).await?).await?;
        }
    }

    /// Applies a part of the source, and moves the checkpoint past it.
    pub(super) async fn apply_part(&mut self, part: SourcePart) -> Result<(), JobError> {
        let place = self.line_place();
        self.has_gap |= part.malformed.iter().any(|malformed| !malformed.is_whole);
        let position = self.checkpoint.position();
        let malformed = malformed_records(&place, part.malformed, self.redactor)?;
        self.units.park(&malformed, position.as_deref()).await?;
        let origin = self.page_origin();
        let (units, handler) = (self.units, &self.handler);
        match &mut self.checkpoint {
            SourceCheckpoint::None => match handler {
                UnitHandler::Bulk(rows) => {
                    bulk_write::write_page(rows, units, &part.units, &origin).await?;
                }
                UnitHandler::Rows(_) | UnitHandler::PerUnit(_) => {
                    handler.apply_list(units, &part.units, None).await?;
                }
            },
            SourceCheckpoint::Watermark(mark) => {
                let page = mark.page(part.units)?;
                let proof = handler.apply_page(units, &page, &origin).await?;
                pass(page, proof).await?;
            }
            SourceCheckpoint::Cursor(cursor, _) => match part.cursor.filter(|_| !self.has_gap) {
                None => {
                    let page = cursor.part(part.units)?;
                    let proof = handler.apply_page(units, &page, &origin).await?;
                    pass(page, proof).await?;
                }
                Some(token) => {
                    let fetched = FetchedPage { units: part.units, next: Some(token) };
                    let page = cursor.next(async |_| Ok::<_, LedgerError>(fetched)).await?;
                    let Some(page) = page else { return Ok(()) };
                    let proof = handler.apply_page(units, &page, &origin).await?;
                    if self.has_malformed {
                        units.clear(&place, position.as_deref()).await?;
                    }
                    pass(page, proof).await?;
                    self.part = 0;
                }
            },
        }
        Ok(())
    }

    /// Where the next part comes from. With a checkpoint each reading returns another part of the source, so that a recorded
    /// page says nothing about the page of the same number in a later reading.
    fn page_origin(&mut self) -> PageOrigin {
        self.part += 1;
        let is_whole = matches!(self.checkpoint, SourceCheckpoint::None);
        let place = if is_whole { String::new() } else { self.source_place() };
        PageOrigin { place, number: self.part, position: self.checkpoint.position(), skips: is_whole }
    }

    /// Concludes a source that was read and applied to its end.
    pub(super) async fn end(self) -> Result<(), JobError> {
        if self.has_malformed {
            self.units.clear(&self.line_place(), self.checkpoint.position().as_deref()).await?;
        }
        match self.checkpoint {
            SourceCheckpoint::Watermark(mark) if !self.has_gap => {
                mark.advance().await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The beginning of the keys of malformed lines read from here: a place in the source of this run, or, with a cursor of
    /// the job, a position that every run of the job shares.
    fn line_place(&self) -> String {
        format!("{LINE}:{}", self.source_place())
    }

    fn source_place(&self) -> String {
        self.place_at(&self.checkpoint.position().unwrap_or_default())
    }

    /// The place in the source that begins at a position.
    pub(super) fn place_at(&self, position: &str) -> String {
        match &self.checkpoint {
            SourceCheckpoint::Cursor(_, Per::Ever) => hashed(position),
            // The same cursor may mean other lines in another window.
            SourceCheckpoint::Cursor(_, Per::Window) => format!("{}:{}", self.run_place(), hashed(position)),
            SourceCheckpoint::None | SourceCheckpoint::Watermark(_) => self.run_place(),
        }
    }

    fn run_place(&self) -> String {
        match self.run.key() {
            // The place of `a` must not be a prefix of the place of `a:b`.
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

/// A malformed line may be anything that a script prints by mistake: secrets are removed before it is stored.
pub(super) fn malformed_records(
    place: &str,
    malformed: Vec<MalformedLine>,
    redactor: &Redactor,
) -> Result<Vec<MalformedRecord>, JobError> {
    let of = |MalformedLine { number, text, message, .. }: MalformedLine| {
        let key = Key::parse(&format!("{place}:{number}"))?;
        let [input, message] = [&text, &message].map(|text| redactor.redact(text).into_owned());
        Ok(MalformedRecord { key, input, message })
    };
    malformed.into_iter().map(of).collect()
}
