//! A watermark: the time up to which a source was read, read back with some overlap.
//!
//! It moves to the latest time that was seen, and never past the moment at which this attempt began to read, by the store's
//! clock: a unit dated 2099 would blind it for everything before. A run of a window that lies behind it reads that window
//! again and leaves it where it is.
//!
//! Each page proves its units when it is done; the move proves in its own transaction that none of them has come undone since. What
//! undoes a settled unit is another run whose try of it failed and whose input could not be kept, and such rows are few: they are
//! noted when the reading begins, and no new one may be there when it ends. To keep every key that was read instead would take
//! memory for all of the source.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::backend::Backend;
use super::checkpoint::{Checkpoint, Proof, Unsettled};
use super::judge::Arrival;
use super::page::{Of, Page, not_done};
use super::units::{Per, Units};
use super::{LedgerError, Result};

type TimeOf<T> = Box<dyn Fn(&T) -> Timestamp + Send + Sync>;

/// A watermark over a source. It comes from [`Units::watermark`].
pub struct Watermark<'u, DB: Backend, T> {
    units: &'u Units<DB, T>,
    ledger: i64,
    checkpoint: Checkpoint,
    time: TimeOf<T>,
    plan: Plan,
    highest: Option<Timestamp>,
    pages: usize,
    done: usize,
    /// Units that were unsettled when the reading began, and that no page has settled since.
    unsettled: Unsettled,
}

impl<DB: Backend, T> std::fmt::Debug for Watermark<'_, DB, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watermark").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// What to read, and how far the watermark may move after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    mark: Option<Timestamp>,
    from: Option<Timestamp>,
    /// None: it stays.
    cap: Option<Timestamp>,
}

impl Plan {
    fn of(
        mark: Option<Timestamp>,
        window: Option<(Timestamp, Timestamp)>,
        overlap: Duration,
        now: Timestamp,
    ) -> Plan {
        let back = |time: Timestamp| {
            let overlap = SignedDuration::try_from(overlap).unwrap_or(SignedDuration::MAX);
            time.checked_sub(overlap).unwrap_or(Timestamp::MIN)
        };
        match (mark, window) {
            (Some(mark), Some((start, end))) if end <= mark => {
                Plan { mark: Some(mark), from: Some(back(start)), cap: None }
            }
            (mark, window) => {
                // All of its window, too: an attempt that does it again must see it whole.
                let start = window.map(|(start, _)| start);
                let from = mark.map(|mark| start.map_or(mark, |start| start.min(mark)));
                Plan { mark, from: from.map(back), cap: Some(now) }
            }
        }
    }

    /// Where the watermark goes after the latest time that was seen; none if it stays.
    fn target(&self, highest: Option<Timestamp>) -> Option<Timestamp> {
        let target = highest?.min(self.cap?);
        (self.mark.is_none_or(|mark| mark < target)).then_some(target)
    }
}

impl<DB: Backend, T: Serialize> Units<DB, T> {
    /// Up to which time the last attempt of any run of this job and scope has read a source.
    ///
    /// `overlap` is how far before that to read again, for what was written late; `time` is what the source orders by.
    pub async fn watermark<'u>(
        &'u self,
        name: &str,
        overlap: Duration,
        time: impl Fn(&T) -> Timestamp + Send + Sync + 'static,
    ) -> Result<Watermark<'u, DB, T>> {
        let raised = &self.fence.raised;
        let now = raised.now().await?;
        let checkpoint = Checkpoint::read(raised, raised.ledger(Per::Ever).await?, name).await?;
        let unsettled = Unsettled::read(raised, self.ledger().await?).await?;
        let broken = |reason: &dyn std::fmt::Display| LedgerError::Position {
            name: name.to_owned(),
            reason: reason.to_string(),
        };
        let mark =
            checkpoint.position.as_deref().map(str::parse).transpose().map_err(|error| broken(&error))?;
        let window = raised.facts.window.map(|window| (window.start().timestamp(), window.end().timestamp()));
        Ok(Watermark {
            units: self,
            ledger: self.ledger().await?,
            checkpoint,
            time: Box::new(time),
            plan: Plan::of(mark, window, overlap, now),
            highest: None,
            pages: 0,
            done: 0,
            unsettled,
        })
    }
}

impl<'u, DB: Backend, T: Serialize> Watermark<'u, DB, T> {
    /// Read everything from here on; none: from the beginning.
    pub fn from(&self) -> Option<Timestamp> {
        self.plan.from
    }

    /// What was read, or a part of it, in any order.
    pub fn page(&mut self, units: Vec<T>) -> Result<Page<'_, 'u, DB, T>> {
        self.pages += 1;
        Page::new(self.units, self.ledger, units, Of::Watermark(self))
    }

    /// Everything was read, and every page is done: the watermark may move on. Gives where it stands.
    pub async fn advance(mut self) -> Result<Option<Timestamp>> {
        if self.done < self.pages {
            return Err(not_done(&self.checkpoint.name));
        }
        let Some(target) = self.plan.target(self.highest) else { return Ok(self.plan.mark) };
        if self.highest.is_some_and(|highest| highest > target) {
            tracing::warn!(
                checkpoint = self.checkpoint.name,
                "a unit is dated after the moment it was read; the watermark stays before that"
            );
        }
        let raised = &self.units.fence.raised;
        let proof = Proof::of_all(self.ledger, self.units.judge(), &self.unsettled);
        self.checkpoint.advance(raised, &target.to_string(), &proof).await?;
        Ok(Some(target))
    }
}

impl<DB: Backend, T> Watermark<'_, DB, T> {
    /// A page is done: these are settled.
    pub(super) fn passed(&mut self, items: &[T], settled: &[&Arrival]) {
        self.done += 1;
        self.unsettled.settle(settled);
        let latest = items.iter().map(|item| (self.time)(item)).max();
        self.highest = self.highest.max(latest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: &str) -> Timestamp {
        format!("2026-06-09T{hour}:00Z").parse().unwrap_or_default()
    }

    #[test]
    fn m6_it_reads_back_and_moves_to_what_was_seen_but_never_past_the_moment_of_reading() {
        let overlap = Duration::from_mins(10);
        let first = Plan::of(None, None, overlap, at("14:05"));
        assert_eq!((first.from, first.target(Some(at("13:58")))), (None, Some(at("13:58"))));
        let next = Plan::of(Some(at("13:58")), None, overlap, at("15:05"));
        assert_eq!(next.from, Some(at("13:48")));
        for (seen, target) in [
            (None, None),
            (Some(at("13:50")), None),
            (Some(at("13:58")), None),
            (Some(at("14:59")), Some(at("14:59"))),
            ("2099-01-01T00:00Z".parse().ok(), Some(at("15:05"))),
        ] {
            assert_eq!(next.target(seen), target, "{seen:?}");
        }
    }

    #[test]
    fn m6_a_window_behind_it_is_read_again_and_moves_nothing() {
        let hour = Some((at("09:00"), at("10:00")));
        let plan = Plan::of(Some(at("14:00")), hour, Duration::from_mins(10), at("15:05"));
        assert_eq!(plan.from, Some(at("08:50")));
        assert_eq!(plan.target(Some(at("09:59"))), None);
        assert_eq!(plan.target("2099-01-01T00:00Z".parse().ok()), None);
    }
}
