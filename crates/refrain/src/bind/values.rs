//! The values of a run, under the names that job files use.

use jiff::Timestamp;
use refrain_core::{Timetable, Values, Window, Zone};

use crate::run::Run;

/// The values of a run. The date is that of its window's start, in the zone of its job.
pub(crate) fn values(run: &Run, timetable: Option<&Timetable>) -> Values {
    let zone = timetable.map_or_else(Zone::utc, |timetable| timetable.zone.clone());
    Values {
        scope: Some(run.scope().to_string()),
        job: Some(run.job().to_string()),
        version: Some(run.facts.version),
        payload: run.payload_json().and_then(|payload| serde_json::from_str(payload).ok()),
        ..run.window().map(|window| of_window(window, &zone)).unwrap_or_default()
    }
}

/// The values that a window alone gives.
pub(crate) fn of_window(window: Window, zone: &Zone) -> Values {
    let (start, end) = (window.start().timestamp(), window.end().timestamp());
    Values {
        ds: Some(zone.wall(start).date().to_string()),
        window_start: Some(instant(start)),
        window_end: Some(instant(end)),
        ..Values::default()
    }
}

/// Placeholder values of the right form, to ask a database for the columns of a statement.
pub(crate) fn of_any_window() -> Values {
    let epoch = instant(Timestamp::UNIX_EPOCH);
    Values {
        ds: Some("1970-01-01".to_owned()),
        window_start: Some(epoch.clone()),
        window_end: Some(epoch),
        scope: Some(String::new()),
        job: Some(String::new()),
        version: Some(1),
        ..Values::default()
    }
}

/// RFC 3339 in UTC, with a fraction only if there is one.
fn instant(at: Timestamp) -> String {
    at.to_string()
}
