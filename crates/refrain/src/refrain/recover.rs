//! Recover: a new or restored store finds databases that another store has written to.
//!
//! It would treat their work as undone. So it does nothing there until an operator has seen both and adopts the database.
//! The units in those databases stay as they are: what was applied is a dedupe for the new store as it was for the old.

use refrain_core::person::Verb;

use super::OpenOptions;
use crate::database::{Database, place, retried};
use crate::error::Error;
use crate::ledger::{LedgerError, catalog as ledger, migrate};
use crate::store::audit::{self, Decision};
use crate::store::identity::IdentityDoubt;
use crate::store::{Reality, Store, catalog, new_id};

/// A database whose ledger belongs to another store, or did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct ForeignLedger {
    /// Its name in the project; none if it is the database of the store.
    pub database: Option<String>,
    /// The store that the ledger belongs to.
    pub was: String,
    /// The store that is open.
    pub now: String,
    /// Intents that the other store has not taken and that will not be relayed: effects and runs to check.
    pub stranded: u64,
}

/// What an operator states a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreOrigin {
    /// The same store in another place or on another server; it has recorded everything that it has done.
    Moved,
    /// The same store, older than what it has done.
    Restored,
    /// A copy; the original continues.
    Copied,
    /// A restored or copied store, after an operator has checked everything that it may not know.
    Settled,
}

impl StoreOrigin {
    /// The name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            StoreOrigin::Moved => "moved",
            StoreOrigin::Restored => "restored",
            StoreOrigin::Copied => "copied",
            StoreOrigin::Settled => "settled",
        }
    }
}

impl OpenOptions {
    /// Why an operator must state what the store is before anything runs; none if that is certain.
    pub async fn doubt(&self) -> Result<Option<IdentityDoubt>, Error> {
        let store = self.store().await?;
        let doubt = store.doubt();
        store.database.close().await;
        Ok(doubt)
    }

    /// Records what the store is, as an operator states. No process may serve it meanwhile.
    pub async fn state(&self, statement: StoreOrigin) -> Result<(), Error> {
        let store = self.store().await?;
        let id = if statement == StoreOrigin::Copied { new_id() } else { store.id.to_string() };
        let decision = Decision::new(self.person.as_ref(), Verb::Recover, "the store");
        let decision = decision.detailed(statement.name());
        if statement == StoreOrigin::Settled {
            remembered(&store, &decision).await?;
        } else {
            let forgets = matches!(statement, StoreOrigin::Restored | StoreOrigin::Copied);
            stated(&store, &id, forgets, Some(&decision)).await?;
        }
        store.database.close().await;
        Ok(())
    }

    async fn store(&self) -> Result<Store, Error> {
        let (idle, reality) = (self.settings.idle(), Reality::Real);
        Ok(Box::pin(Store::open(&self.address, &self.project, self.connections, idle, reality)).await?)
    }

    /// The named databases that belong to another store. Those among them that an operator was `shown` are adopted.
    pub async fn recover(&self, shown: Option<&[ForeignLedger]>) -> Result<Vec<ForeignLedger>, Error> {
        let store = self.store().await?;
        let (mut found, mut is_adopting) = (Vec::new(), false);
        let named = self
            .destinations
            .iter()
            .map(|named| (&named.database, named.spare.as_ref().map(|one| one.name.as_str())));
        for (database, name) in std::iter::once((&store.database, None)).chain(named) {
            if let Some(adopted) = self.look(&store, database, name).await? {
                if shown.is_some_and(|shown| shown.contains(&adopted)) {
                    let subject = name.unwrap_or("the database of the store");
                    let decision = Decision::new(self.person.as_ref(), Verb::Recover, subject);
                    let detail = format!("it belonged to the store {}", adopted.was);
                    audit::record_alone(&store.database, &[decision.detailed(detail)]).await?;
                    if !is_adopting {
                        // It does not know what the other store has done. Recorded first: an adopted database is not found
                        // again, so a store killed in between would never learn that.
                        stated(&store, &store.id, true, None).await?;
                        is_adopting = true;
                    }
                    self.adopt(database, &adopted).await?;
                }
                found.push(adopted);
            }
        }
        store.database.close().await;
        Ok(found)
    }

    async fn look(
        &self,
        store: &Store,
        database: &Database,
        name: Option<&str>,
    ) -> Result<Option<ForeignLedger>, LedgerError> {
        migrate::check(database).await?;
        let mut transaction = database.read().await?;
        let find = ledger::PROJECT_FIND.bind(self.project.as_str());
        let owner: Option<(Option<String>, String)> = transaction.fetch_optional(find).await?;
        let Some((Some(was), _)) = owner else { return Ok(None) };
        if *was == *store.id {
            return Ok(None);
        }
        let stranded = ledger::INTENT_STRANDED.bind(self.project.as_str()).bind(&*store.id);
        let stranded: Option<(i64,)> = transaction.fetch_optional(stranded).await?;
        let stranded = stranded.map_or(0, |(count,)| u64::try_from(count).unwrap_or_default());
        Ok(Some(ForeignLedger {
            database: name.map(str::to_owned),
            was,
            now: store.id.to_string(),
            stranded,
        }))
    }

    async fn adopt(&self, database: &Database, adopted: &ForeignLedger) -> Result<(), LedgerError> {
        let given = retried(|| async {
            let mut transaction = database.write().await?;
            let adopt = ledger::PROJECT_ADOPT.bind(self.project.as_str());
            transaction.execute(adopt.bind(adopted.now.as_str()).bind(adopted.was.as_str())).await?;
            transaction.commit(place!("adopt")).await
        });
        Ok(given.await?)
    }
}

/// Records the id and the location of the store, and whether it may have forgotten finished work.
async fn stated(store: &Store, id: &str, forgets: bool, decision: Option<&Decision>) -> Result<(), Error> {
    let place = store.identity.to_string();
    let stated = retried(|| async {
        let mut transaction = store.database.write().await?;
        let state = catalog::STORE_STATE.bind(id).bind(place.as_str()).bind(forgets);
        transaction.execute(state).await?;
        if let Some(decision) = decision {
            audit::record(&mut transaction, decision).await?;
        }
        transaction.commit(place!("state")).await
    });
    Ok(stated.await?)
}

/// Lets calls for units that the store does not know be made again.
async fn remembered(store: &Store, decision: &Decision) -> Result<(), Error> {
    let remembered = retried(|| async {
        let mut transaction = store.database.write().await?;
        transaction.execute(catalog::STORE_REMEMBER.bound()).await?;
        audit::record(&mut transaction, decision).await?;
        transaction.commit(place!("remember")).await
    });
    Ok(remembered.await?)
}
