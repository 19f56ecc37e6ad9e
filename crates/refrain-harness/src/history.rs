//! Replays the recorded histories of runs through the table of their states.
//!
//! A recorded history must be a path of the table, with the attempt numbers that the table gives, and must end at the recorded
//! outcome. The record does not say of every attempt whether a worker had claimed it, so both are tried.

use refrain::Refrain;
use refrain::admin::{AttemptRecord, RunRecord};
use refrain::core::Word as _;
use refrain::core::state::{Attempts, RunEvent, RunStanding};

/// A run as the table has it.
#[derive(Debug, Clone, Copy, Default)]
struct History {
    standing: RunStanding,
    attempts: Attempts,
}

impl History {
    fn after(self, event: RunEvent) -> Result<History, String> {
        let transition = self.standing.apply(event).map_err(|refusal| refusal.to_string())?;
        Ok(History { standing: transition.standing(), attempts: self.attempts.then(transition.attempt()) })
    }

    /// After an attempt of this number that ended by this event.
    fn after_attempt(self, number: u64, event: RunEvent, is_claimed: bool) -> Result<History, String> {
        let mut history = self;
        if !history.standing.is_open() && event != RunEvent::Skipped {
            let is_first = history.standing == RunStanding::ABSENT;
            history = history.after(if is_first { RunEvent::Opened } else { RunEvent::Reopened })?;
        }
        if is_claimed {
            history = history.after(RunEvent::Claimed)?;
        }
        let expected = history.attempts.number;
        if expected != number {
            return Err(format!("attempt {number} should have the number {expected}"));
        }
        history.after(event)
    }
}

/// What is wrong with the recorded history of a run, if anything.
pub fn replay(run: &RunRecord, past: &[AttemptRecord]) -> Result<(), String> {
    let is_last_in_row = past.last().is_none_or(|last| last.number != run.attempt);
    let outcome = run.standing.outcome.filter(|_| is_last_in_row && !run.standing.is_open());
    let last = outcome.map(|outcome| (run.attempt, outcome.name()));
    let mut histories = vec![History::default()];
    for (number, ended) in past.iter().map(|one| (one.number, one.ended.name())).chain(last) {
        let event = match ended {
            "done" => RunEvent::Succeeded,
            "waiting" => RunEvent::Waits,
            "partial" => RunEvent::PartlyFailed,
            event => event.parse().map_err(|_| format!("{event} ends no attempt"))?,
        };
        let tried = histories.iter().flat_map(|history| {
            [true, false].map(|is_claimed| history.after_attempt(number, event, is_claimed))
        });
        let (possible, refused): (Vec<_>, Vec<_>) = tried.partition(Result::is_ok);
        histories = possible.into_iter().flatten().collect();
        if histories.is_empty() {
            return Err(refused.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; or "));
        }
    }
    let ends = |history: &History| history.standing.outcome == run.standing.outcome;
    if histories.iter().any(ends) {
        return Ok(());
    }
    Err(format!("its history ends at {:?}", histories.first().and_then(|one| one.standing.outcome)))
}

const PAGE: usize = 500;

/// Every run whose recorded history is not a path of the table.
pub async fn illegal(refrain: &Refrain) -> Vec<String> {
    let mut faults = Vec::new();
    let mut before = None;
    loop {
        let page = refrain.recent(before, PAGE).await.unwrap();
        let Some(last) = page.last() else { return faults };
        before = Some(last.number());
        // The attempts of a run whose payload is pruned may be pruned as well.
        for run in page.iter().filter(|run| !run.is_forgotten) {
            let past = refrain.attempts(run).await.unwrap();
            if let Err(fault) = replay(run, &past) {
                faults.push(format!("{} {}: {fault}: {past:?}", run.job, run.key));
            }
        }
    }
}
