//! Every write of a unit's status.
//!
//! The statements that write `status` are private to this file. Its functions take an event, ask the table in
//! `refrain_core::state` for the state that follows, and bind that; a transition that the table does not allow is an error, and
//! nothing is written. Where an entry was read, its state decides; where a statement finds the entry itself, each state that its
//! conditions admit must allow the event.
//!
//! Other content, a higher version and a redo start a unit over, so the state of the entry does not count for them.

use refrain_core::ProjectName;
use refrain_core::Word as _;
use refrain_core::state::{Machine as _, Refusal, UnitEvent, UnitState};

use super::Result;
use super::judge::{Arrival, Entry, Judge};
use crate::database::statement::{Bound, Rows};

mod statements {
    use crate::database::statement::catalog;

    catalog! {
        UNIT_BLAME = "sql/unit/blame.sql",
        UNIT_CLAIM = "sql/unit/claim.sql",
        UNIT_CLAIM_MANY = "sql/unit/claim_many.sql",
        UNIT_CONFIRM = "sql/unit/confirm.sql",
        UNIT_CONFIRM_LATE = "sql/unit/confirm_late.sql",
        UNIT_DOUBT = "sql/unit/doubt.sql",
        UNIT_FAIL = "sql/unit/fail.sql",
        UNIT_FORGOTTEN = "sql/unit/forgotten.sql",
        UNIT_INSERT = "sql/unit/insert.sql",
        UNIT_KEEP_FIRST = "sql/unit/keep_first.sql",
        UNIT_PAGE = "sql/unit/page.sql",
        UNIT_RESERVE = "sql/unit/reserve.sql",
        UNIT_RESTORE = "sql/unit/restore.sql",
        UNIT_UNPARK = "sql/unit/unpark.sql",
        UNIT_UNSEND = "sql/unit/unsend.sql",
        UNIT_UPDATE = "sql/unit/update.sql",
    }
}

#[cfg(feature = "failpoints")]
pub(crate) use statements::ALL;

/// An entry that a statement finds unapplied.
const UNAPPLIED: [UnitState; 2] = [UnitState::Failed, UnitState::Parked];

/// The status after an event, if each of these states allows it. Each event leads to one state.
fn after(
    event: UnitEvent,
    from: impl IntoIterator<Item = UnitState>,
) -> std::result::Result<&'static str, Refusal> {
    let reached =
        from.into_iter().map(|state| state.apply(event)).collect::<std::result::Result<Vec<_>, _>>()?;
    let state = reached.first().map_or_else(|| UnitState::START.apply(event), |state| Ok(*state))?;
    Ok(state.name())
}

/// The status after an event of a unit that nothing is recorded of, or that starts over.
fn anew(event: UnitEvent) -> std::result::Result<&'static str, Refusal> {
    after(event, [UnitState::START])
}

/// The state of a unit that arrives, as this attempt judges its entry.
fn before(judge: &Judge, arrival: &Arrival, entry: Option<&Entry>) -> UnitState {
    let Some(entry) = entry else { return UnitState::START };
    let recorded = entry.recorded(judge);
    let is_same = recorded.fingerprint == arrival.fingerprint && recorded.version == judge.version;
    if !is_same || judge.redoes(entry) { UnitState::START } else { recorded.status.state() }
}

/// Units with their content, as rows of a statement.
pub(super) fn contents<'a>(arrivals: &[&'a Arrival]) -> Rows<'a> {
    Rows::default()
        .texts(arrivals.iter().map(|arrival| arrival.key.as_str()))
        .named("key")
        .integers(arrivals.iter().map(|arrival| arrival.fingerprint))
        .named("fingerprint")
        .integers(arrivals.iter().map(|arrival| arrival.ordinal))
        .named("ordinal")
}

/// Units, and the entry that was read of each.
fn compared<'a>(ledger: i64, present: &[(&'a Arrival, &'a Entry)]) -> Rows<'a> {
    Rows::default()
        .integers(present.iter().map(|_| ledger))
        .named("ledger")
        .texts(present.iter().map(|(arrival, _)| arrival.key.as_str()))
        .named("key")
        .integers(present.iter().map(|(arrival, _)| arrival.fingerprint))
        .named("fingerprint")
        .integers(present.iter().map(|(arrival, _)| arrival.ordinal))
        .named("ordinal")
        .integers(present.iter().map(|(_, entry)| entry.version))
        .named("was_version")
        .integers(present.iter().map(|(_, entry)| entry.fingerprint))
        .named("was_fingerprint")
        .integers(present.iter().map(|(_, entry)| entry.ordinal))
        .named("was_ordinal")
        .texts(present.iter().map(|(_, entry)| entry.status.as_str()))
        .named("was_status")
        .integers(present.iter().map(|(_, entry)| i64::from(entry.failures)))
        .named("was_failures")
}

/// Records units without an entry.
pub(super) fn insert<'a>(
    event: UnitEvent,
    ledger: i64,
    judge: &Judge,
    arrivals: &[&'a Arrival],
) -> Result<Bound<'a>> {
    let status = anew(event)?;
    let insert = statements::UNIT_INSERT.bind(ledger).bind(i64::from(judge.version)).bind(judge.fence);
    Ok(insert.bind(judge.attempt).bind(judge.nonce).bind(status).bind(contents(arrivals)))
}

/// Records units over the entries that were read.
pub(super) fn update<'a>(
    event: UnitEvent,
    ledger: i64,
    judge: &Judge,
    present: &[(&'a Arrival, &'a Entry)],
) -> Result<Bound<'a>> {
    let status = after(event, present.iter().map(|(arrival, entry)| before(judge, arrival, Some(entry))))?;
    let update = statements::UNIT_UPDATE.bind(i64::from(judge.version)).bind(judge.fence).bind(judge.attempt);
    Ok(update.bind(judge.nonce).bind(status).bind(compared(ledger, present)).planned_anew())
}

/// Removes failed tries from units whose applied content came again: their entries are about that content once more.
pub(super) fn restore<'a>(
    event: UnitEvent,
    ledger: i64,
    judge: &Judge,
    covered: &[(&'a Arrival, &'a Entry)],
) -> Result<Bound<'a>> {
    let restore = statements::UNIT_RESTORE.bind(i64::from(judge.version)).bind(anew(event)?);
    Ok(restore.bind(compared(ledger, covered)).planned_anew())
}

/// Removes failed tries of later content from units whose first content stays.
pub(super) fn keep_first<'a>(event: UnitEvent, ledger: i64, kept: &[&'a Arrival]) -> Result<Bound<'a>> {
    let rows = Rows::default()
        .integers(kept.iter().map(|_| ledger))
        .named("ledger")
        .texts(kept.iter().map(|arrival| arrival.key.as_str()))
        .named("key");
    Ok(statements::UNIT_KEEP_FIRST.bind(anew(event)?).bind(rows).planned_anew())
}

/// Claims a key in the transaction of the caller.
pub(super) fn claim(event: UnitEvent, ledger: i64, key: &str, fingerprint: Option<i64>) -> Result<Bound<'_>> {
    Ok(statements::UNIT_CLAIM.bind(ledger).bind(key).bind(fingerprint).bind(anew(event)?))
}

/// Claims keys for several callers.
pub(super) fn claim_many(event: UnitEvent, rows: Rows<'_>) -> std::result::Result<Bound<'_>, Refusal> {
    Ok(statements::UNIT_CLAIM_MANY.bind(anew(event)?).bind(rows))
}

/// Records a page whose units have no entries of their own. A page that comes again starts over.
pub(super) fn page<'a>(
    event: UnitEvent,
    ledger: i64,
    judge: &Judge,
    row: &'a Arrival,
    content: &'a str,
) -> Result<Bound<'a>> {
    let page = statements::UNIT_PAGE.bind(ledger).bind(row.key.as_str()).bind(i64::from(judge.version));
    let page = page.bind(judge.fence).bind(judge.attempt).bind(row.fingerprint).bind(content);
    Ok(page.bind(judge.nonce).bind(anew(event)?))
}

/// What is recorded about a unit that failed.
pub(super) struct FailedUnit<'f> {
    pub(super) arrival: &'f Arrival,
    /// The entry over which it is recorded.
    pub(super) found: Option<&'f Entry>,
    pub(super) failures: u32,
    pub(super) input: Option<String>,
    pub(super) message: String,
    /// The position that the source was read from, if a checkpoint has one.
    pub(super) place: Option<&'f str>,
}

/// Records that a unit failed. A redo is the attempt with which it began.
pub(super) fn fail<'a>(
    event: UnitEvent,
    ledger: i64,
    judge: &Judge,
    failed: FailedUnit<'a>,
    redo: Option<i32>,
) -> Result<Bound<'a>> {
    let FailedUnit { arrival, found, failures, input, message, place } = failed;
    let status = after(event, [before(judge, arrival, found)])?;
    let fail = statements::UNIT_FAIL.bind(ledger).bind(arrival.key.as_str()).bind(i64::from(judge.version));
    let fail = fail.bind(judge.fence).bind(judge.attempt).bind(arrival.fingerprint).bind(arrival.ordinal);
    let fail = fail.bind(i64::from(failures)).bind(status).bind(input).bind(message);
    Ok(fail.bind(redo.map(i64::from)).bind(place).bind(judge.nonce))
}

/// Parks units before they are tried together. What is applied is left alone, or starts over.
pub(super) fn blame<'a>(
    event: UnitEvent,
    ledger: i64,
    judge: &Judge,
    (mark, message, place): (i64, &'a str, Option<&'a str>),
    suspects: Rows<'a>,
) -> Result<Bound<'a>> {
    let status = after(event, [UnitState::START].into_iter().chain(UNAPPLIED))?;
    let blame = statements::UNIT_BLAME.bind(ledger).bind(i64::from(judge.version)).bind(judge.fence);
    let blame = blame.bind(judge.attempt).bind(mark).bind(message).bind(place);
    Ok(blame.bind(judge.redo.map(i64::from)).bind(judge.nonce).bind(status).bind(suspects))
}

/// What is recorded about a unit before work that cannot be taken back is begun.
pub(super) struct ReservedUnit<'r> {
    pub(super) arrival: &'r Arrival,
    /// The entry that was read.
    pub(super) found: Option<&'r Entry>,
    pub(super) input: Option<String>,
    pub(super) message: &'r str,
    /// The longest time since it was first sent, in microseconds.
    pub(super) since_max: i64,
}

/// Reserves a unit, if its entry is still the one that was read.
pub(super) fn reserve<'a>(
    event: UnitEvent,
    ledger: i64,
    judge: &Judge,
    reserved: ReservedUnit<'a>,
) -> Result<Bound<'a>> {
    let ReservedUnit { arrival, found, input, message, since_max } = reserved;
    let status = after(event, [before(judge, arrival, found)])?;
    let is_same = |entry: &&Entry| {
        entry.fingerprint == arrival.fingerprint && entry.version == i64::from(judge.version)
    };
    let failures = found.filter(is_same).map_or(0, |entry| entry.failures.max(0));
    let reserve = statements::UNIT_RESERVE.bind(ledger).bind(arrival.key.as_str());
    let reserve = reserve.bind(i64::from(judge.version)).bind(judge.fence).bind(judge.attempt);
    let reserve = reserve.bind(arrival.fingerprint).bind(arrival.ordinal).bind(i64::from(failures));
    let reserve = reserve.bind(input).bind(message);
    let reserve = reserve.bind(found.map_or(0, |entry| entry.version));
    let reserve = reserve.bind(found.and_then(|entry| entry.fingerprint));
    let reserve = reserve.bind(found.and_then(|entry| entry.ordinal));
    let reserve = reserve.bind(found.map_or(UnitState::START.name(), |entry| entry.status.as_str()));
    let reserve = reserve.bind(found.map_or(0, |entry| i64::from(entry.failures)));
    Ok(reserve.bind(since_max).bind(judge.nonce).bind(status))
}

/// A unit as one attempt of a run has reserved it.
#[derive(Clone, Copy)]
pub(super) struct Reservation<'r> {
    pub(super) ledger: i64,
    pub(super) arrival: &'r Arrival,
    pub(super) fence: i64,
    pub(super) attempt: i32,
    pub(super) nonce: i64,
}

/// Records what is known about a unit in doubt.
pub(super) fn doubt(event: UnitEvent, reservation: Reservation<'_>, message: String) -> Result<Bound<'_>> {
    let Reservation { ledger, arrival, fence, attempt, nonce } = reservation;
    let doubt = statements::UNIT_DOUBT.bind(ledger).bind(arrival.key.as_str()).bind(fence).bind(attempt);
    let doubt = doubt.bind(message).bind(arrival.fingerprint).bind(nonce);
    Ok(doubt.bind(after(event, UNAPPLIED)?))
}

/// Takes back the reservation of a unit with which nothing was done.
pub(super) fn unsend(event: UnitEvent, reservation: Reservation<'_>) -> Result<Bound<'_>> {
    let Reservation { ledger, arrival, fence, attempt, nonce } = reservation;
    let unsend = statements::UNIT_UNSEND.bind(ledger).bind(arrival.key.as_str()).bind(fence).bind(attempt);
    Ok(unsend.bind(arrival.fingerprint).bind(nonce).bind(after(event, UNAPPLIED)?))
}

/// Records an answer that arrived after a takeover.
pub(super) fn confirm_late<'a>(
    event: UnitEvent,
    judge: &Judge,
    reservation: Reservation<'a>,
) -> Result<Bound<'a>> {
    let Reservation { ledger, arrival, fence, attempt, nonce } = reservation;
    let late =
        statements::UNIT_CONFIRM_LATE.bind(ledger).bind(arrival.key.as_str()).bind(fence).bind(attempt);
    let late = late.bind(i64::from(judge.version)).bind(arrival.fingerprint).bind(nonce);
    Ok(late.bind(after(event, UNAPPLIED)?))
}

/// Parks a unit that a restored store does not know, as if nothing were recorded: its work may have been done after the copy was
/// made. `since` is the earliest time it may have been sent; entries from before `lost` are those of the copy.
pub(super) fn forgotten<'a>(
    event: UnitEvent,
    ledger: i64,
    judge: &Judge,
    arrival: &'a Arrival,
    (input, message): (Option<String>, &'a str),
    (since, lost): (i64, i64),
) -> Result<Bound<'a>> {
    let park = statements::UNIT_FORGOTTEN.bind(ledger).bind(arrival.key.as_str());
    let park = park.bind(i64::from(judge.version)).bind(judge.fence);
    let park = park.bind(arrival.fingerprint).bind(arrival.ordinal).bind(input).bind(message);
    Ok(park.bind(since).bind(lost).bind(anew(event)?))
}

/// Carries out the decision of an operator about a unit, in all ledgers of a job, or in those of one run: `(scope, start of its
/// window)`.
pub(super) fn decide<'a>(
    event: UnitEvent,
    (project, job, key): (&'a ProjectName, &'a str, &'a str),
    run: Option<(&'a str, &'a str)>,
) -> Result<Bound<'a>> {
    let (statement, status) = match event {
        UnitEvent::Retried => (&statements::UNIT_UNPARK, after(event, UNAPPLIED)?),
        _ => (&statements::UNIT_CONFIRM, after(event, [UnitState::Parked])?),
    };
    let decide = statement.bind(project.as_str()).bind(job).bind(key);
    let decide = decide.bind(run.map(|(scope, _)| scope)).bind(run.map_or("", |(_, start)| start));
    Ok(decide.bind(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_each_event_of_a_unit_leads_to_one_state() {
        for event in UnitEvent::ALL {
            let mut reached: Vec<_> =
                UnitState::ALL.iter().filter_map(|state| state.apply(*event).ok()).collect();
            reached.dedup();
            assert_eq!(reached.len(), 1, "{event}: {reached:?}");
        }
    }

    #[test]
    fn i20_a_status_is_bound_only_if_every_state_before_allows_the_event() {
        for event in UnitEvent::ALL {
            for one in UnitState::ALL {
                for other in UnitState::ALL {
                    let allowed = one.apply(*event).is_ok() && other.apply(*event).is_ok();
                    assert_eq!(after(*event, [*one, *other]).is_ok(), allowed, "{event}: {one}, {other}");
                }
            }
        }
    }

    #[test]
    fn i20_an_applied_unit_is_recorded_again_only_if_it_starts_over() {
        let arrival =
            Arrival { key: refrain_core::Key::parse("a").unwrap(), fingerprint: Some(5), ordinal: None };
        let applied = crate::ledger::judge::tests::applied();
        let judge = crate::ledger::judge::tests::judge();
        let update = |arrival: &Arrival, judge: &Judge| {
            update(UnitEvent::Applied, 1, judge, &[(arrival, &applied)])
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        let refused = update(&arrival, &judge).unwrap_err();
        assert!(refused.starts_with("the unit is applied, so `applied` is refused"), "{refused}");
        update(&Arrival { fingerprint: Some(6), ..arrival.clone() }, &judge).unwrap();
        update(&arrival, &Judge { version: 2, ..judge }).unwrap();
        update(&arrival, &Judge { redo: Some(5), ..judge }).unwrap();
    }

    #[cfg(feature = "failpoints")]
    #[test]
    fn i20_only_this_file_writes_the_status_of_a_unit() {
        let writes_status = |text: &str| {
            let set = text.split_once("update refrain_units").and_then(|(_, rest)| rest.split_once("set "));
            let set = set.map_or("", |(_, rest)| rest.split("\nwhere").next().unwrap_or_default());
            let is_set = set.split(',').any(|one| one.trim_start().starts_with("status ="));
            is_set || text.contains("insert into refrain_units")
        };
        let others = crate::ledger::catalog::ALL.iter().chain(crate::store::catalog::ALL);
        let stray: Vec<&str> = others.filter(|one| writes_status(one.sqlite())).map(|one| one.name).collect();
        assert_eq!(stray, Vec::<&str>::new(), "move these statements to ledger/unit_state.rs");
        for one in ALL {
            assert!(writes_status(one.sqlite()), "{} writes no status", one.name);
            let fixed = ["set status = '", ", status = '", "true, '", "false, '"];
            assert!(
                !fixed.iter().any(|fixed| one.sqlite().contains(fixed)),
                "{} has a fixed status",
                one.name
            );
        }
    }
}
