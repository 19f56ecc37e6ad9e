//! Raises an alarm for each window that should be done by now and is not.
//!
//! When a window is late follows from its timetable and the grace of its job, so it is not stored: this loop looks only at windows
//! whose time has just run out, each once. When it starts it looks at those of the last day. A window has one alarm, however many
//! of its scopes are late and however many engines look: the alarm is identified by the name of the window and the time at which
//! the window should have been done.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use refrain_core::{AlarmKind, Revisions, RunKey, Scope, Window, duration};

use super::service::{Next, Service};
use crate::job::{Definition, Jobs};
use crate::store::alarms::{Alarm, raise};
use crate::store::queue_line::JobNumber;
use crate::store::run_row::RunRow;
use crate::store::show::awaited;
use crate::store::{Result, Store, StoreError, instant, schedules};

const EVERY: Duration = Duration::from_mins(1);
/// How far back the first look goes.
const MEMORY: SignedDuration = SignedDuration::from_hours(24);
/// The most windows of a job that are looked at together; a day has no more.
const WINDOWS_MAX: usize = 2_000;
/// The most runs of a job that are read together.
const RUNS_MAX: i64 = 1_000;

pub(crate) struct Lateness {
    store: Store,
    jobs: Jobs,
    /// Until when the windows of each job have been looked at.
    seen: HashMap<JobNumber, Timestamp>,
}

impl Lateness {
    pub(crate) fn new(store: Store, jobs: Jobs) -> Lateness {
        Lateness { store, jobs, seen: HashMap::new() }
    }

    /// Looks at all windows whose time has run out since the last look.
    pub(crate) async fn look_at(&mut self, now: Timestamp) -> Result<()> {
        let known = self.jobs.now();
        self.seen.retain(|number, _| known.get(*number).is_some());
        for (number, definition) in known.iter() {
            let Some(grace) = definition.grace.and_then(|grace| SignedDuration::try_from(grace).ok()) else {
                continue;
            };
            let seen = self.seen.get(&number).copied();
            let from = seen.or_else(|| now.checked_sub(MEMORY).ok()).unwrap_or(now);
            if from < now {
                self.look(number, definition, grace, (from, now)).await?;
            }
            // Also when it is earlier than before: the clock may have been set back.
            self.seen.insert(number, now);
        }
        Ok(())
    }

    async fn look(
        &self,
        number: JobNumber,
        definition: &Definition,
        grace: SignedDuration,
        (from, until): (Timestamp, Timestamp),
    ) -> Result<()> {
        let Some(revisions) = schedules::read(&self.store, number).await? else { return Ok(()) };
        let (Ok(from), Ok(until)) = (from.checked_sub(grace), until.checked_sub(grace)) else {
            return Ok(());
        };
        let Some((first, above)) = keys(&revisions, from, until) else { return Ok(()) };
        let rows = awaited(&self.store, number, &first, &above, RUNS_MAX).await?;
        let mut late: BTreeMap<Window, Vec<RunRow>> = BTreeMap::new();
        for row in rows {
            let (Some(start), Some(end)) = (row.window_start, row.window_end) else { continue };
            let Ok(window) = Window::stored(instant(start)?, instant(end)?) else { continue };
            late.entry(window).or_default().push(row);
        }
        for (window, rows) in late {
            if let Some(alarm) = alarm(number, definition, grace, &revisions, window, &rows)
                && raise(&self.store, &alarm).await?
            {
                tracing::warn!(kind = %alarm.kind, subject = alarm.subject, "{}", alarm.message);
            }
        }
        Ok(())
    }
}

/// The first key of the windows that open in a period, and a text above all their keys.
fn keys(revisions: &Revisions, after: Timestamp, until: Timestamp) -> Option<(String, String)> {
    let mut windows = revisions.windows_that_open(after, until).take(WINDOWS_MAX).map(|(window, _)| window);
    let first = windows.next()?;
    let last = windows.last().unwrap_or(first);
    let key = |window: Window| RunKey::windowed(window.start(), &Scope::default()).to_string();
    // The key of a window may be followed by `/` and a scope, and `0` sorts after `/`.
    Some((key(first), format!("{}0", key(last))))
}

fn alarm(
    number: JobNumber,
    definition: &Definition,
    grace: SignedDuration,
    revisions: &Revisions,
    window: Window,
    rows: &[RunRow],
) -> Option<Alarm> {
    let late_at = revisions.expectation(window).tick()?.checked_add(grace).ok()?;
    let first = rows.first()?;
    let subject = format!("{}@{}", definition.name, revisions.name_of(window));
    let state = match (first.open, first.outcome.as_deref()) {
        (true, _) => "open",
        (false, outcome) => outcome.unwrap_or("open"),
    };
    let scope = match crate::store::claim::scope_of(&first.key) {
        "" => String::new(),
        scope => format!("/{scope}"),
    };
    let others = match rows.len() {
        1 => String::new(),
        count => format!(", like {} more of this window", count - 1),
    };
    let grace = duration::format(grace.unsigned_abs());
    let message = format!(
        "{subject}{scope} is {state}{others}: it should have been done by {late_at}, {grace} after its tick"
    );
    let at = late_at.as_microsecond();
    Some(Alarm { kind: AlarmKind::RunLate, job: Some(number), at, subject, message })
}

impl Service for Lateness {
    const NAME: &'static str = "lateness";
    type Error = StoreError;

    async fn tick(&mut self) -> Result<Next> {
        let now = self.store.schedule_time().await?;
        self.look_at(now).await?;
        Ok(Next::After(EVERY))
    }
}
