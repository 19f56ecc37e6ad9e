//! What was mended at its source, behind the checkpoint.
//!
//! A person wants a unit tried again that failed. The source may say something else of it by now, but the
//! checkpoint has passed it. So the source is read once more from where it was read when the unit was met, until it has shown
//! the unit, and whatever it shows on the way is applied or deduplicated. The checkpoint stays where it is. A line that was no
//! unit is looked for in the same manner: to the end of its page, for nobody knows what it says now.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::bulk_write::{self, PagePlace};
use super::ingest::{How, Ingest, LINE, Progress, unreadable};
use super::parts::Part;
use crate::job::JobError;
use crate::ledger::RetryRequest;
use crate::publish::table::Publishes;

/// Units that are looked for from one position of the source on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Where the source is read from.
    pub(super) place: String,
    /// Keys of units that it has not shown yet.
    keys: BTreeSet<String>,
    /// The beginnings of the keys of lines whose page it has not shown yet.
    lines: BTreeSet<String>,
    /// The number of the last part.
    part: u64,
}

impl<DB: Publishes> Progress<'_, DB> {
    /// Whether what was met after this position is not shown by this attempt anyway.
    fn has_passed(&self, place: &str) -> bool {
        match self {
            Progress::Window => false,
            Progress::Cursor(cursor, _) => cursor.position().is_some_and(|position| position != place),
            Progress::Watermark(mark) => mark.from().is_some_and(|from| {
                // No time is the beginning of everything.
                place.parse().map_or(true, |place: Timestamp| place < from)
            }),
        }
    }
}

impl<DB: Publishes> Ingest<'_, '_, DB> {
    /// What is to be looked for at the source, by the position from which it is read.
    pub(super) fn maybe_mended(&self, asked: Vec<RetryRequest>) -> Vec<Wanted> {
        let mut all: BTreeMap<String, Wanted> = BTreeMap::new();
        for RetryRequest { key, place } in asked {
            if !self.progress.has_passed(&place) {
                continue;
            }
            let wanted = all.entry(place).or_default();
            match key.rsplit_once(':') {
                Some((beginning, _)) if key.starts_with(LINE) => wanted.lines.insert(beginning.to_owned()),
                _ => wanted.keys.insert(key),
            };
        }
        all.into_iter().map(|(place, wanted)| Wanted { place, ..wanted }).collect()
    }

    /// Applies a part of the source that is read once more. Gives whether nothing is left to look for.
    pub(super) async fn settle_again(&self, wanted: &mut Wanted, part: Part) -> Result<bool, JobError> {
        let Part { units, odd, cursor, .. } = part;
        let place = Some(wanted.place.as_str());
        for beginning in &wanted.lines {
            self.units.park(&unreadable(beginning, odd.clone(), self.redactor)?, place).await?;
        }
        match &self.apply {
            How::Bulk(rows) => {
                wanted.part += 1;
                let (place, position) = (self.part_at(&wanted.place), Some(wanted.place.clone()));
                let at = PagePlace { place, number: wanted.part, position, skips: false };
                bulk_write::settle(rows, self.units, &units, &at).await?;
            }
            How::Rows(_) | How::Each(_) => {
                self.apply.list(self.units, &units, Some(wanted.place.clone())).await?;
            }
        }
        for unit in &units {
            wanted.keys.remove(unit.key());
        }
        if cursor.is_some() {
            self.clear_again(wanted).await?;
        }
        let is_all = wanted.keys.is_empty() && wanted.lines.is_empty();
        // From here on it is shown to this attempt anyway.
        Ok(is_all || (cursor.is_some() && cursor == self.progress.position()))
    }

    /// The source has nothing more to show.
    pub(super) async fn shown_again(&self, mut wanted: Wanted) -> Result<(), JobError> {
        self.clear_again(&mut wanted).await?;
        for key in &wanted.keys {
            tracing::warn!(job = %self.units.fence.raised.facts.job, key, "the source does not show this unit any more");
        }
        Ok(())
    }

    /// All of a page was read: a line that was not met in it is mended.
    async fn clear_again(&self, wanted: &mut Wanted) -> Result<(), JobError> {
        for beginning in std::mem::take(&mut wanted.lines) {
            self.units.clear(&beginning, Some(&wanted.place)).await?;
        }
        Ok(())
    }
}
