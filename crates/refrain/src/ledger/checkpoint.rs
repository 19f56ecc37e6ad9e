//! Checkpoints: durable progress, moved only under the fence, only from the position that was read, and only past settled units.

use std::collections::{BTreeSet, HashMap};

use super::entry;
use super::fence::Raised;
use super::judge::{Arrival, Entry, Judge};
use super::{LedgerError, Result, catalog};
use crate::database::{DatabaseError, Transaction, place, retried};
use crate::failpoint;

/// How many keys are looked up at once.
const LOOK: usize = 1_000;
/// The most units that may be unsettled while a watermark moves; with more of them it stays.
const UNSETTLED_MAX: usize = 10_000;

#[derive(sqlx_macros::FromRow)]
pub(super) struct StoredCheckpoint {
    pub(super) position: String,
    pub(super) fence: Option<i64>,
    attempt: Option<i32>,
    nonce: Option<i64>,
}

/// A checkpoint of a job in a scope.
#[derive(Debug, Clone)]
pub(super) struct Checkpoint {
    pub(super) ledger: i64,
    pub(super) name: String,
    /// The position that was read, or moved to since.
    pub(super) position: Option<String>,
}

impl Checkpoint {
    /// Reads the position.
    pub(super) async fn read(raised: &Raised, ledger: i64, name: &str) -> Result<Checkpoint> {
        let stored: Option<StoredCheckpoint> = retried(|| async {
            let mut transaction = raised.destination.database.read().await?;
            transaction.fetch_optional(catalog::CHECKPOINT_FIND.bind(ledger).bind(name)).await
        })
        .await?;
        let position = stored.map(|stored| stored.position);
        Ok(Checkpoint { ledger, name: name.to_owned(), position })
    }

    /// Moves the checkpoint, if every one of these units is settled.
    pub(super) async fn advance(&mut self, raised: &Raised, position: &str, proof: &Proof<'_>) -> Result<()> {
        let here = &*self;
        let moved = retried(|| async {
            match advanced(raised, here, position, proof).await {
                Err(LedgerError::Database(error)) => Err(error),
                settled => Ok(settled),
            }
        });
        moved.await??;
        self.position = Some(position.to_owned());
        Ok(())
    }
}

async fn advanced(raised: &Raised, from: &Checkpoint, position: &str, proof: &Proof<'_>) -> Result<()> {
    let mut transaction = raised.write().await?;
    proof.hold(&mut transaction).await?;
    let (fence, attempt, nonce) = (raised.id, raised.facts.attempt, raised.facts.nonce);
    let moved = match &from.position {
        None => {
            let begin = catalog::CHECKPOINT_BEGIN.bind(from.ledger).bind(from.name.as_str()).bind(position);
            transaction.execute(begin.bind(fence).bind(attempt).bind(nonce)).await?
        }
        Some(was) => {
            let advance =
                catalog::CHECKPOINT_ADVANCE.bind(from.ledger).bind(from.name.as_str()).bind(position);
            transaction.execute(advance.bind(fence).bind(attempt).bind(was.as_str()).bind(nonce)).await?
        }
    };
    if moved == 0 {
        // On a retry after a lost answer, the position is there already.
        let find = catalog::CHECKPOINT_FIND.bind(from.ledger).bind(from.name.as_str());
        let stored: Option<StoredCheckpoint> = transaction.fetch_optional(find).await?;
        let is_ours = stored.is_some_and(|stored| {
            stored.position == position
                && stored.fence == Some(fence)
                && stored.attempt == Some(attempt)
                && stored.nonce == Some(nonce)
        });
        return if is_ours { Ok(()) } else { Err(LedgerError::Moved { name: from.name.clone() }) };
    }
    transaction.commit(place!("checkpoint")).await?;
    Ok(())
}

/// Units of a ledger that are neither applied nor kept, so that a checkpoint must not pass them.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsettled(BTreeSet<String>);

impl Unsettled {
    pub(super) async fn read(raised: &Raised, ledger: i64) -> Result<Unsettled> {
        let found = retried(|| async {
            let mut transaction = raised.destination.database.read().await?;
            Unsettled::seen(&mut transaction, ledger).await
        });
        Ok(found.await?)
    }

    async fn seen(
        transaction: &mut Transaction,
        ledger: i64,
    ) -> std::result::Result<Unsettled, DatabaseError> {
        let limit = i64::try_from(UNSETTLED_MAX + 1).unwrap_or(i64::MAX);
        let found: Vec<(String,)> =
            transaction.fetch_all(catalog::UNIT_UNKEPT.bind(ledger).bind(limit)).await?;
        Ok(Unsettled(found.into_iter().map(|(key,)| key).collect()))
    }

    /// Marks these as settled: if they become unsettled again, that is new.
    pub(super) fn settle(&mut self, arrivals: &[&Arrival]) {
        if !self.0.is_empty() {
            for arrival in arrivals {
                self.0.remove(arrival.key.as_str());
            }
        }
    }
}

/// The units that a checkpoint is about to pass.
pub(super) struct Proof<'p> {
    ledger: i64,
    judge: Judge,
    pub(super) arrivals: Vec<&'p Arrival>,
    /// If they are too many to list: all were settled once, and only these may not be any more.
    known: Option<&'p Unsettled>,
}

impl<'p> Proof<'p> {
    pub(super) fn of(ledger: i64, judge: Judge, arrivals: Vec<&'p Arrival>) -> Proof<'p> {
        Proof { ledger, judge, arrivals, known: None }
    }

    /// For units that were proven page by page.
    pub(super) fn of_all(ledger: i64, judge: Judge, known: &'p Unsettled) -> Proof<'p> {
        Proof { ledger, judge, arrivals: Vec::new(), known: Some(known) }
    }
}

impl Proof<'_> {
    /// Checks in this transaction that all of them are settled.
    pub(super) async fn hold(&self, transaction: &mut Transaction) -> Result<()> {
        if failpoint::is_weakened("checkpoint.unproven") {
            return Ok(());
        }
        let mut unsettled = Vec::new();
        for arrivals in self.arrivals.chunks(LOOK) {
            let doubtful = entry::doubtful(transaction, self.ledger, &self.judge, arrivals).await?;
            let doubtful: HashMap<&str, &Entry> =
                doubtful.iter().map(|entry| (entry.key.as_str(), entry)).collect();
            let is_open = |arrival: &&&Arrival| {
                let entry = doubtful.get(arrival.key.as_str());
                entry.is_some_and(|entry| !self.judge.is_settled(arrival, entry.present()))
            };
            unsettled.extend(arrivals.iter().filter(is_open).map(|arrival| arrival.key.to_string()));
        }
        if let Some(Unsettled(known)) = self.known {
            let Unsettled(found) = Unsettled::seen(transaction, self.ledger).await?;
            if found.len() > UNSETTLED_MAX {
                // Too many to identify the new ones.
                unsettled.extend(found);
            } else {
                unsettled.extend(found.difference(known).cloned());
            }
        }
        match unsettled.first() {
            None => Ok(()),
            Some(first) => Err(LedgerError::Unsettled { count: unsettled.len(), first: first.clone() }),
        }
    }

    /// Checks it in a transaction of its own that holds the fence.
    pub(super) async fn check(&self, raised: &Raised) -> Result<()> {
        let mut transaction = raised.write().await?;
        self.hold(&mut transaction).await?;
        transaction.rollback().await.map_err(DatabaseError::into)
    }
}
