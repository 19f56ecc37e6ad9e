//! Reads what explains the state of a run.

use jiff::Timestamp;
use refrain_core::state::{RunEvent, RunOutcome};
use refrain_core::why::{AttemptState, LaneHolder, RecordedFacts, RepeatedRequests, UnappliedUnit, WideKeys};

use super::super::{AttemptEnd, Refrain, RunRecord};
use super::RunSubject;
use crate::error::Error;
use crate::ledger::trace;
use crate::store::queue_line::Priority;
use crate::store::show::{self, OpenAttempt, QueuePosition};
use crate::store::{instant, why};

/// The most runs before a run, and the most requests for it, that are counted.
const COUNTED: i64 = 1_000;
/// The most runs and keys that an answer lists.
const LISTED: i64 = 10;

impl Refrain {
    /// The facts about a run; none if there is no such run. The run and its open attempt are read in one snapshot:
    /// otherwise an attempt that ends meanwhile would be in no queue.
    pub(super) async fn recorded_facts(
        &self,
        subject: &RunSubject,
        run: i64,
    ) -> Result<Option<RecordedFacts>, Error> {
        let Some((row, open)) = show::show(self.store(), run).await? else { return Ok(None) };
        let record = &RunRecord::of(row, open)?;
        let place = match open {
            Some(open) => Some(self.attempt_state(subject, record, open).await?),
            None => None,
        };
        let past = self.attempts(record).await?;
        let was_taken = |ended: AttemptEnd| {
            matches!(ended, AttemptEnd::Event(RunEvent::TakenOver | RunEvent::CrashedAlone))
        };
        let units = self.units(record).await?;
        let wide_keys = units.iter().flat_map(|attempt| &attempt.dedupes).filter(|one| one.is_suspect);
        let late_at = subject.view.late_at(record).filter(|_| record.is_awaited());
        let now = self.schedule_now().await?;
        Ok(Some(RecordedFacts {
            run: subject.view.name_of(record),
            context: subject.context.clone(),
            standing: record.standing,
            open: place,
            attempt: record.attempt,
            ended_attempt: record.ended_attempt,
            version: record.version,
            opened_at: record.opened_at,
            ended_at: record.ended_at,
            message: record.message.clone(),
            reason: record.reason,
            last_message: past.last().and_then(|attempt| attempt.message.clone()),
            taken_over: past.iter().filter(|attempt| was_taken(attempt.ended)).count() as u64,
            is_suspect: open
                .is_some_and(|open| open.line.priority().is_ok_and(|one| one == Priority::Suspect)),
            is_cancel_requested: why::is_cancelled(self.store(), record.id).await?,
            is_forgotten: record.is_forgotten,
            repeated_requests: self.repeated_requests(record).await?,
            unapplied_units: self.unapplied_units(record).await?,
            wide_keys: wide_keys
                .map(|one| WideKeys { reason: one.reason.clone(), count: one.count, keys: one.keys.clone() })
                .collect(),
            late_since: late_at.filter(|late_at| *late_at <= now),
        }))
    }

    /// What the open attempt waits for.
    async fn attempt_state(
        &self,
        subject: &RunSubject,
        record: &RunRecord,
        open: OpenAttempt,
    ) -> Result<AttemptState, Error> {
        Ok(match open.place {
            QueuePosition::Queued => {
                let ahead = why::ahead(self.store(), open.line, record.id, COUNTED).await?;
                AttemptState::Queued { ahead, slots: self.slots(subject).await? }
            }
            QueuePosition::Running => match why::hold(self.store(), subject.number, record.id).await? {
                Some(hold) => AttemptState::Running {
                    worker: hold.worker,
                    process: hold.process.unwrap_or_else(|| "gone".to_owned()),
                    since: instant(hold.claimed_at)?,
                    alive_until: instant(hold.expires_at.unwrap_or_default())?,
                },
                // It has ended, or was taken over, between two reads.
                None => AttemptState::Queued { ahead: 0, slots: None },
            },
            QueuePosition::Delayed(until) => AttemptState::Delayed { until },
            QueuePosition::BehindItsLane => {
                AttemptState::WaitsForLane { holder: self.lane_holder(subject, record).await? }
            }
        })
    }

    /// The limit of a job and the runs that use it up, if it is reached.
    async fn slots(&self, subject: &RunSubject) -> Result<Option<(u32, Vec<String>)>, Error> {
        let limit = subject.view.definition.as_ref().and_then(|definition| definition.concurrency);
        let Some(limit) = limit else { return Ok(None) };
        let holders = why::slot_holders(self.store(), subject.number, i64::from(limit)).await?;
        if holders.len() < usize::try_from(limit).unwrap_or(usize::MAX) {
            return Ok(None);
        }
        let mut names = Vec::new();
        for holder in holders {
            names.extend(self.record(holder).await?.map(|record| subject.view.name_of(&record)));
        }
        Ok(Some((limit, names)))
    }

    async fn lane_holder(
        &self,
        subject: &RunSubject,
        record: &RunRecord,
    ) -> Result<Option<LaneHolder>, Error> {
        let holder = show::lane_holder(self.store(), subject.number, &record.key).await?;
        let Some(id) = holder.filter(|holder| *holder != record.id) else { return Ok(None) };
        let Some(holder) = self.record(id).await? else { return Ok(None) };
        let hold = why::hold(self.store(), subject.number, id).await?;
        let worker = hold
            .as_ref()
            .map(|hold| format!("worker {} ({})", hold.worker, hold.process.as_deref().unwrap_or("gone")));
        let claimed_at: Option<Timestamp> = hold.map(|hold| instant(hold.claimed_at)).transpose()?;
        Ok(Some(LaneHolder {
            run: subject.view.name_of(&holder),
            standing: holder.standing.node(),
            since: claimed_at.unwrap_or(holder.opened_at),
            worker,
        }))
    }

    async fn repeated_requests(&self, record: &RunRecord) -> Result<Option<RepeatedRequests>, Error> {
        let requests = why::repeated_requests(self.store(), record.id, COUNTED).await?;
        let times = requests.len();
        let Some((last, way)) = requests.into_iter().next() else { return Ok(None) };
        let is_more = i64::try_from(times).is_ok_and(|times| times >= COUNTED);
        Ok(Some(RepeatedRequests { times: times as u64, is_more, last: instant(last)?, way }))
    }

    /// The first units of a run that are not applied.
    async fn unapplied_units(&self, record: &RunRecord) -> Result<Vec<UnappliedUnit>, Error> {
        if !matches!(record.standing.outcome, Some(RunOutcome::Partial | RunOutcome::Failed)) {
            return Ok(Vec::new());
        }
        let names = self.first_names().await?;
        let start = record.window_start();
        let mut left = Vec::new();
        for destination in self.engine.destinations.relayed().iter() {
            let job = names.first(&record.job);
            let (run, scope) = (record.key.as_str(), record.scope());
            let keys =
                trace::left(&destination.database, &self.engine.project, job, (run, scope, &start), LISTED)
                    .await?;
            left.extend(keys.into_iter().map(|(key, status, is_in_doubt)| UnappliedUnit {
                key,
                is_parked: status == "parked",
                is_in_doubt,
            }));
        }
        Ok(left)
    }
}
