//! Reads units again that were corrected at the source, behind the checkpoint.
//!
//! The operator wants a failed unit retried. The source may return other content for it by now, but the checkpoint has passed
//! it. So the source is read again from the position it was read from when the unit failed, until it has returned the unit;
//! everything it returns on the way is applied or deduplicated. The checkpoint stays. A malformed line is looked for in the
//! same way, to the end of its page, because its new content is unknown.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::bulk_write::{self, PageOrigin};
use super::ingest::{Ingest, LINE, SourceCheckpoint, UnitHandler, malformed_records};
use super::parts::SourcePart;
use crate::ledger::RetryRequest;
use crate::run::JobError;
use crate::user_database::Backend;

/// Units to look for when the source is read again from one position.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reread {
    /// The position to read from.
    pub(super) position: String,
    /// Keys of units that the source has not returned yet.
    keys: BTreeSet<String>,
    /// Places of malformed lines whose page the source has not returned yet.
    line_places: BTreeSet<String>,
    /// The number of the last part.
    part: u64,
}

impl<DB: Backend> SourceCheckpoint<'_, DB> {
    /// Whether this attempt does not read the source from this position anyway.
    fn has_passed(&self, position: &str) -> bool {
        match self {
            SourceCheckpoint::None => false,
            SourceCheckpoint::Cursor(cursor, _) => {
                cursor.position().is_some_and(|current| current != position)
            }
            SourceCheckpoint::Watermark(mark) => mark.from().is_some_and(|from| {
                // An empty position is before every timestamp.
                position.parse().map_or(true, |position: Timestamp| position < from)
            }),
        }
    }
}

impl<DB: Backend> Ingest<'_, '_, DB> {
    /// The units to look for at the source, grouped by the position to read from.
    pub(super) fn rereads(&self, requests: Vec<RetryRequest>) -> Vec<Reread> {
        let mut all: BTreeMap<String, Reread> = BTreeMap::new();
        for RetryRequest { key, place } in requests {
            if !self.checkpoint.has_passed(&place) {
                continue;
            }
            let reread = all.entry(place).or_default();
            match key.rsplit_once(':') {
                Some((beginning, _)) if key.starts_with(LINE) => {
                    reread.line_places.insert(beginning.to_owned())
                }
                _ => reread.keys.insert(key),
            };
        }
        all.into_iter().map(|(position, reread)| Reread { position, ..reread }).collect()
    }

    /// Applies a part of the source that is read again. Returns whether nothing is left to look for.
    pub(super) async fn apply_reread_part(
        &self,
        reread: &mut Reread,
        part: SourcePart,
    ) -> Result<bool, JobError> {
        let SourcePart { units, malformed, cursor, .. } = part;
        let position = Some(reread.position.as_str());
        for place in &reread.line_places {
            let records = malformed_records(place, malformed.clone(), self.redactor)?;
            self.units.park(&records, position).await?;
        }
        match &self.handler {
            UnitHandler::Bulk(rows) => {
                reread.part += 1;
                let (place, position) = (self.place_at(&reread.position), Some(reread.position.clone()));
                let origin = PageOrigin { place, number: reread.part, position, skips: false };
                bulk_write::write_page(rows, self.units, &units, &origin).await?;
            }
            UnitHandler::Rows(_) | UnitHandler::PerUnit(_) => {
                self.handler.apply_list(self.units, &units, Some(reread.position.clone())).await?;
            }
        }
        for unit in &units {
            reread.keys.remove(unit.key());
        }
        if cursor.is_some() {
            self.clear_reread_page(reread).await?;
        }
        let is_all = reread.keys.is_empty() && reread.line_places.is_empty();
        // This attempt reads the source from the checkpoint on anyway.
        Ok(is_all || (cursor.is_some() && cursor == self.checkpoint.position()))
    }

    /// The source was read to its end.
    pub(super) async fn finish_reread(&self, mut reread: Reread) -> Result<(), JobError> {
        self.clear_reread_page(&mut reread).await?;
        for key in &reread.keys {
            let job = &self.units.fence.raised.facts.job;
            tracing::warn!(%job, key, "the source no longer returns this unit");
        }
        Ok(())
    }

    /// A page was read to its end: clears its malformed lines that were not read again.
    async fn clear_reread_page(&self, reread: &mut Reread) -> Result<(), JobError> {
        for place in std::mem::take(&mut reread.line_places) {
            self.units.clear(&place, Some(&reread.position)).await?;
        }
        Ok(())
    }
}
