//! A watermark: the time up to which a source was read; reading begins some overlap before it.
//!
//! It moves to the latest time that was seen, and never past the time at which this attempt began to read, by the store's
//! clock: a unit dated 2099 would hide everything before it. A run of a window that lies behind it reads that window again
//! and leaves the watermark where it is.
//!
//! Each page proves its units when it is done; the move proves in its own transaction that none of them has become unsettled
//! since. A settled unit becomes unsettled when another run fails it and cannot keep its input; such entries are few: they are
//! read when the reading begins, and no new one may exist when it ends. Keeping every key that was read would take memory for
//! the whole source.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::checkpoint::{Checkpoint, Proof, Unsettled};
use super::judge::Arrival;
use super::page::{Of, Page, not_done};
use super::units::{Per, Units};
use super::{LedgerError, Result};
use crate::user_database::Backend;

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
    /// `None`: it stays.
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
                // All of its window, too: a redo of the window must see it whole.
                let start = window.map(|(start, _)| start);
                let from = mark.map(|mark| start.map_or(mark, |start| start.min(mark)));
                Plan { mark, from: from.map(back), cap: Some(now) }
            }
        }
    }

    /// The position of the watermark after the latest time that was seen; `None` if it stays.
    fn target(&self, highest: Option<Timestamp>) -> Option<Timestamp> {
        let target = highest?.min(self.cap?);
        (self.mark.is_none_or(|mark| mark < target)).then_some(target)
    }
}

impl<DB: Backend, T: Serialize> Units<DB, T> {
    /// Continues a source from the time up to which the last attempt of any run of this job and scope has read it.
    ///
    /// `overlap` is how far before that to read again, for rows that were written late; `time` is what the source orders by.
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
    /// The time from which to read; `None` for the beginning.
    pub fn from(&self) -> Option<Timestamp> {
        self.plan.from
    }

    /// The units that were read, or some of them, in any order.
    pub fn page(&mut self, units: Vec<T>) -> Result<Page<'_, 'u, DB, T>> {
        self.pages += 1;
        Page::new(self.units, self.ledger, units, Of::Watermark(self))
    }

    /// Moves the watermark after everything was read and every page is done. Returns its position.
    pub async fn advance(mut self) -> Result<Option<Timestamp>> {
        if self.done < self.pages {
            return Err(not_done(&self.checkpoint.name));
        }
        let Some(target) = self.plan.target(self.highest) else { return Ok(self.plan.mark) };
        if self.highest.is_some_and(|highest| highest > target) {
            tracing::warn!(
                checkpoint = self.checkpoint.name,
                "a unit has a timestamp after the time it was read; the watermark stays before that"
            );
        }
        let raised = &self.units.fence.raised;
        let proof = Proof::of_all(self.ledger, self.units.judge(), &self.unsettled);
        self.checkpoint.advance(raised, &target.to_string(), &proof).await?;
        Ok(Some(target))
    }
}

impl<DB: Backend, T> Watermark<'_, DB, T> {
    /// Records that a page is done and its units are settled.
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
    fn m6_a_watermark_moves_to_the_latest_time_but_not_past_now() {
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
    fn m6_reading_an_older_window_again_moves_no_watermark() {
        let hour = Some((at("09:00"), at("10:00")));
        let plan = Plan::of(Some(at("14:00")), hour, Duration::from_mins(10), at("15:05"));
        assert_eq!(plan.from, Some(at("08:50")));
        assert_eq!(plan.target(Some(at("09:59"))), None);
        assert_eq!(plan.target("2099-01-01T00:00Z".parse().ok()), None);
    }
}
