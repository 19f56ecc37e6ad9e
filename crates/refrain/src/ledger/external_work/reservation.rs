//! Work that cannot be taken back and whose outcome may stay unknown, such as an HTTP call: reserved before it is begun, so
//! that the next attempt knows after a death that it may have been done.
//!
//! A reserved unit is parked, with the time of the reservation, and stays so until its outcome is recorded. It is in doubt from
//! the first moment on; a record that is written afterwards would be missing exactly when it is needed. If two runs reserve
//! the same unit, one row is written; the other run finds it changed and leaves it alone.

use std::time::Duration;

use refrain_core::state::UnitEvent;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Circumstances, ExternalWork, persistently};
use crate::database::statement::Bound;
use crate::database::{DatabaseError, Transaction, place, retried};
use crate::ledger::entry::{self, fenced, kept, shortened};
use crate::ledger::judge::{Arrival, Entry, UnitVerdict};
use crate::ledger::unit_list::key_of;
use crate::ledger::unit_state::{self, Reservation, ReservedUnit};
use crate::ledger::units::Units;
use crate::ledger::{Result, catalog};
use crate::user_database::Backend;

/// The message of a unit that is reserved.
const BEGUN: &str = "in doubt: a request was begun, and its outcome is not recorded";
/// The message of a unit that a restored store does not know.
const FORGOTTEN: &str = "in doubt: this store was restored or copied, and does not know whether the request was made before; \
     after checking all such requests: refrain recover --settled";
/// A time before anything was sent, in microseconds.
const SINCE_MAX: i64 = 1_000_000_000_000_000;
/// How many units in doubt are read at once, with their input: few enough that they never count as a sign that all would
/// fail.
const TOGETHER: i64 = 20;

/// A unit in doubt.
#[derive(Debug)]
pub(crate) struct Doubtful<T> {
    pub(crate) unit: T,
    /// When it was first sent.
    pub(crate) since: Duration,
}

impl<DB: Backend, T: Serialize + DeserializeOwned> Units<DB, T> {
    /// Units that earlier attempts of this run have left in doubt in this version, one page at a time: those after a key; and the
    /// last key of the page.
    pub(crate) async fn doubtful(&self, after: &str) -> Result<(Vec<Doubtful<T>>, Option<String>)> {
        let (ledger, raised) = (self.ledger().await?, &self.fence.raised);
        let found: Vec<(String, Option<String>, i64)> = retried(|| async {
            let mut transaction = raised.destination.database.read().await?;
            let doubts = catalog::UNIT_DOUBTS.bind(ledger).bind(raised.id).bind(after);
            transaction.fetch_all(doubts.bind(i64::from(self.judge().version)).bind(TOGETHER)).await
        })
        .await?;
        let last = found.last().map(|(key, ..)| key.clone());
        let read = found.into_iter().filter_map(|(_, input, since)| {
            let unit = serde_json::from_str(&input?).ok()?;
            Some(Doubtful { unit, since: Duration::from_micros(u64::try_from(since).unwrap_or_default()) })
        });
        Ok((read.collect(), last))
    }

    /// The same units, to be sent again; each only if it was first sent at most this long before.
    pub(crate) async fn outside_again<'u>(
        &'u self,
        units: &'u [T],
        since_max: Duration,
    ) -> Result<ExternalWork<'u, DB, T>> {
        let about = Circumstances { again: Some(since_max), place: None };
        ExternalWork::of(self, self.ledger().await?, units, self.list(units)?, about).await
    }
}

impl<DB: Backend, T: Serialize> ExternalWork<'_, DB, T> {
    /// Whether an earlier attempt of this run has left a unit in doubt.
    pub(super) fn is_doubtful(&self, arrival: &Arrival, entries: &[Entry]) -> bool {
        let judge = self.units.judge();
        let mut entries = entries.iter().filter(|entry| entry.key == arrival.key.as_str());
        entries.any(|entry| {
            let is_same =
                entry.fingerprint == arrival.fingerprint && entry.version == i64::from(judge.version);
            entry.sent && is_same && entry.fence == Some(judge.fence) && !entry.is_by(&judge)
        })
    }

    /// Reserves units before their work is begun, in one transaction. Returns the reserved ones, each with the time when the content
    /// that it replaces was applied; the others are reserved by another run, or done meanwhile.
    pub(crate) async fn reserve(&self, members: &[usize]) -> Result<Vec<(usize, Option<i64>)>> {
        let mut sorted = members.to_vec();
        sorted.sort_by_key(|member| self.arrivals.get(*member).map(|arrival| &arrival.key));
        let judged = retried(|| async {
            let mut transaction = match fenced(&self.units.fence.raised).await? {
                Ok(transaction) => transaction,
                Err(error) => return Ok(Err(error)),
            };
            let mut judged = Vec::new();
            for member in &sorted {
                match self.reserve_one(&mut transaction, *member).await? {
                    Ok((verdict, over)) => judged.push((*member, verdict, over)),
                    Err(error) => return Ok(Err(error)),
                }
            }
            transaction.commit(place!("unit-reserve")).await?;
            Ok::<_, DatabaseError>(Ok(judged))
        });
        let (tally, mut reserved) = (&self.units.fence.raised.tally, Vec::new());
        for (member, verdict, over) in judged.await?? {
            match verdict {
                UnitVerdict::Fresh | UnitVerdict::Changed => reserved.push((member, over)),
                UnitVerdict::Deduplicated(reason) => {
                    tally.deduplicated(reason, [key_of(&self.arrivals, member)]);
                }
                UnitVerdict::Landed | UnitVerdict::Parked => tally.skipped(key_of(&self.arrivals, member)),
            }
        }
        Ok(reserved)
    }

    /// Reserves a unit, if it is still due; returns its verdict, and the time when the content that it replaces was applied.
    async fn reserve_one(
        &self,
        transaction: &mut Transaction,
        member: usize,
    ) -> std::result::Result<Result<(UnitVerdict, Option<i64>)>, DatabaseError> {
        let (Some(arrival), Some(item)) = (self.arrivals.get(member), self.items.get(member)) else {
            return Ok(Ok((UnitVerdict::Parked, None)));
        };
        let judge = self.units.judge();
        let entry = entry::find(transaction, self.ledger, &[arrival]).await?.pop();
        // It was not reserved when it was judged: this very call has reserved it, and its answer was lost.
        let own = |entry: Option<&Entry>| {
            let own = entry.filter(|entry| judge.has_reserved(entry, arrival));
            own.map(|entry| Ok((UnitVerdict::Fresh, entry.over())))
        };
        if let Some(reserved) = own(entry.as_ref()) {
            return Ok(reserved);
        }
        let verdict = if self.about.again.is_some() {
            // If it is not in doubt any more, it is among those that failed, or done.
            if self.is_doubtful(arrival, entry.as_slice()) { UnitVerdict::Fresh } else { UnitVerdict::Parked }
        } else {
            match judge.judge(&[arrival], entry.as_slice(), false) {
                Ok(judgement) => judgement.verdicts.into_iter().next().unwrap_or(UnitVerdict::Parked),
                Err(error) => return Ok(Err(error)),
            }
        };
        if !verdict.is_applied() {
            return Ok(Ok((verdict, None)));
        }
        let input = match serde_json::to_string(item) {
            Ok(input) => input,
            Err(error) => return Ok(Err(error.into())),
        };
        if let Some(before) = self.forgets(entry.as_ref()) {
            let forgotten = match self.forgotten(arrival, &input, before) {
                Ok(forgotten) => forgotten,
                Err(error) => return Ok(Err(error)),
            };
            transaction.execute(forgotten).await?;
            return Ok(Ok((UnitVerdict::Parked, None)));
        }
        let reserve = match self.reservation(arrival, entry.as_ref(), &input) {
            Ok(reserve) => reserve,
            Err(error) => return Ok(Err(error)),
        };
        let reserved = transaction.execute(reserve).await?;
        if reserved == 1 {
            return Ok(Ok((verdict, entry.and_then(|entry| entry.over()))));
        }
        // The statement has waited for the holder of the row, which may have been this very call: its commit was still in flight when
        // its answer was lost, and only a read after the wait can see it.
        let entry = entry::find(transaction, self.ledger, &[arrival]).await?.pop();
        Ok(own(entry.as_ref()).unwrap_or(Ok((UnitVerdict::Parked, None))))
    }

    /// Handles a restored store that does not know a unit: its work may have been done before the restore.
    fn forgets(&self, entry: Option<&Entry>) -> Option<i64> {
        let raised = &self.units.fence.raised;
        let before = raised.store.forgets_before.filter(|_| raised.is_of_the_store)?;
        let is_known = entry.and_then(|entry| entry.at).is_some_and(|at| at >= before);
        (!is_known).then_some(before)
    }

    /// Parks such a unit. It is not a reservation of any attempt, so none takes it for its own and begins it.
    fn forgotten<'a>(&self, arrival: &'a Arrival, input: &str, before: i64) -> Result<Bound<'a>> {
        let (judge, raised) = (self.units.judge(), &self.units.fence.raised);
        let (said, times) = ((kept(input), FORGOTTEN), (raised.store.created_at, before));
        unit_state::forgotten(UnitEvent::Reserved, self.ledger, &judge, arrival, said, times)
    }

    fn reservation<'a>(
        &self,
        arrival: &'a Arrival,
        entry: Option<&'a Entry>,
        input: &str,
    ) -> Result<Bound<'a>> {
        let since_max =
            self.about.again.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(SINCE_MAX));
        let reserved = ReservedUnit {
            arrival,
            found: entry,
            input: kept(input),
            message: BEGUN,
            since_max: since_max.min(SINCE_MAX),
        };
        unit_state::reserve(UnitEvent::Reserved, self.ledger, &self.units.judge(), reserved)
    }

    /// A unit as this very attempt has reserved it.
    fn own<'r>(&self, arrival: &'r Arrival) -> Reservation<'r> {
        let (ledger, raised) = (self.ledger, &self.units.fence.raised);
        let (attempt, nonce) = (raised.facts.attempt, raised.facts.nonce);
        Reservation { ledger, arrival, fence: raised.id, attempt, nonce }
    }

    /// Records that the outcome of this unit's work is unknown: it stays in doubt, with this message.
    /// `is_held`: no later attempt sends it again by itself.
    pub(crate) async fn doubted(&self, member: usize, message: &str, is_held: bool) -> Result<()> {
        let Some(arrival) = self.arrivals.get(member) else { return Ok(()) };
        let (raised, key) = (&self.units.fence.raised, arrival.key.as_str());
        let message = format!("in doubt: {message}");
        let doubt = unit_state::doubt(UnitEvent::Reserved, self.own(arrival), shortened(&message))?;
        self.rewrite(&doubt).await?;
        tracing::warn!(job = %raised.facts.job, key, error = message, "a unit is in doubt");
        if is_held {
            raised.tally.doubted(key, &message);
        } else {
            raised.tally.failed(key, &message);
        }
        Ok(())
    }

    /// Records that the work of this unit was not done, through no fault of its own: it counts as not begun. A doubt from an
    /// earlier time stays.
    pub(crate) async fn unsent(&self, member: usize) -> Result<()> {
        let Some(arrival) = self.arrivals.get(member).filter(|_| self.about.again.is_none()) else {
            return Ok(());
        };
        self.rewrite(&unit_state::unsend(UnitEvent::Failed, self.own(arrival))?).await
    }

    /// Records that these units were done, according to an answer that arrived after a take-over. A reservation of this very
    /// attempt that is unchanged since is confirmed, whatever the fence says: the answer is evidence of what happened, and ends
    /// a doubt that nothing else can end. If the unit has changed since, the answer is only recorded.
    pub(super) async fn answered_late(&self, arrivals: &[&Arrival]) -> Result<()> {
        let (raised, judge) = (&self.units.fence.raised, self.units.judge());
        let attempt = raised.facts.attempt;
        let said =
            format!("attempt {attempt} of {} was answered late: its request was done, too", raised.facts.run);
        let confirmed = persistently(&raised.lease, || async {
            let (mut transaction, mut confirmed) = (raised.destination.database.write().await?, 0);
            for arrival in arrivals {
                let confirm = match unit_state::confirm_late(UnitEvent::Applied, &judge, self.own(arrival)) {
                    Ok(confirm) => confirm,
                    Err(error) => return Ok(Err(error)),
                };
                let one = transaction.execute(confirm).await?;
                if one == 0 {
                    let note = catalog::UNIT_NOTE_LATE.bind(self.ledger).bind(arrival.key.as_str());
                    let note = note.bind(raised.id).bind(attempt).bind(i64::from(judge.version));
                    let note = note.bind(arrival.fingerprint).bind(raised.facts.nonce).bind(shortened(&said));
                    transaction.execute(note).await?;
                }
                confirmed += one;
            }
            transaction.commit(place!("unit-late")).await?;
            Ok::<_, DatabaseError>(Ok(confirmed))
        });
        let (confirmed, heard) = (confirmed.await??, arrivals.len());
        tracing::warn!(job = %raised.facts.job, attempt, heard, confirmed, "answers came after a takeover");
        Ok(())
    }

    /// Writes to a reserved unit, under the fence.
    async fn rewrite(&self, write: &Bound<'_>) -> Result<()> {
        let rewritten = persistently(&self.units.fence.raised.lease, || async {
            let mut transaction = match fenced(&self.units.fence.raised).await? {
                Ok(transaction) => transaction,
                Err(error) => return Ok(Err(error)),
            };
            transaction.execute(write.clone()).await?;
            transaction.commit(place!("unit-doubt")).await?;
            Ok::<_, DatabaseError>(Ok(()))
        });
        rewritten.await?
    }
}
