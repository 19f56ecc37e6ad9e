//! Recover: a store that is new or restored meets databases that another one has written to.
//!
//! It would take their work for undone. So it does nothing there until a person has seen both and says that this one goes
//! on. The units in those databases stay as they are: what was applied is a dedupe for the new store as it was for the old.

use refrain_core::person::Verb;

use super::OpenOptions;
use crate::database::{Database, place, retried};
use crate::error::Error;
use crate::ledger::{LedgerError, catalog as ledger, migrate};
use crate::store::audit::{self, Decision};
use crate::store::identity::IdentityDoubt;
use crate::store::{Reality, Store, catalog, new_id};

/// A database whose ledger belongs to another store, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// What the project calls it, if it does.
    pub database: Option<String>,
    /// The store that the ledger belongs to.
    pub was: String,
    /// The store that asks.
    pub now: String,
    /// Wishes that the other store has not taken, and nobody will: effects and runs to look at.
    pub stranded: u64,
}

/// What a person says that a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement {
    /// The same store, in another place or on another server; nothing that it has done is missing.
    Moved,
    /// The same store, older than what it has done.
    Restored,
    /// A copy; another store goes on where it was.
    Copied,
    /// One that was restored or copied, and a person has seen to all that it may have forgotten.
    Settled,
}

impl Statement {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Statement::Moved => "moved",
            Statement::Restored => "restored",
            Statement::Copied => "copied",
            Statement::Settled => "settled",
        }
    }
}

impl OpenOptions {
    /// Why a person must look at the store before anything runs; none if it is sure of itself.
    pub async fn doubt(&self) -> Result<Option<IdentityDoubt>, Error> {
        let store = self.store().await?;
        let doubt = store.doubt();
        store.database.close().await;
        Ok(doubt)
    }

    /// A person says what the store is, and it goes on as that. No process may serve it meanwhile.
    pub async fn state(&self, statement: Statement) -> Result<(), Error> {
        let store = self.store().await?;
        let id = if statement == Statement::Copied { new_id() } else { store.id.to_string() };
        let decision = Decision::new(self.person.as_ref(), Verb::Recover, "the store");
        let decision = decision.detailed(statement.name());
        if statement == Statement::Settled {
            remembered(&store, &decision).await?;
        } else {
            let forgets = matches!(statement, Statement::Restored | Statement::Copied);
            stated(&store, &id, forgets, Some(&decision)).await?;
        }
        store.database.close().await;
        Ok(())
    }

    async fn store(&self) -> Result<Store, Error> {
        let (idle, reality) = (self.settings.idle(), Reality::Real);
        Ok(Box::pin(Store::open(&self.address, &self.project, self.connections, idle, reality)).await?)
    }

    /// Which of the named databases belong to another store. Those among them that a person was shown are this store's from
    /// then on.
    pub async fn recover(&self, shown: Option<&[Adopted]>) -> Result<Vec<Adopted>, Error> {
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
                        // It does not know what the other one has done. Recorded first: a database that is this store's
                        // already is not found again, and a store killed in between would never learn that.
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
    ) -> Result<Option<Adopted>, LedgerError> {
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
        Ok(Some(Adopted { database: name.map(str::to_owned), was, now: store.id.to_string(), stranded }))
    }

    async fn adopt(&self, database: &Database, adopted: &Adopted) -> Result<(), LedgerError> {
        let given = retried(|| async {
            let mut transaction = database.write().await?;
            let adopt = ledger::PROJECT_ADOPT.bind(self.project.as_str());
            transaction.execute(adopt.bind(adopted.now.as_str()).bind(adopted.was.as_str())).await?;
            transaction.commit(place!("adopt")).await
        });
        Ok(given.await?)
    }
}

/// Writes down what a person has said: the store's name, its place, and whether it may have forgotten what was done.
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

/// Calls for units that the store does not know are made again.
async fn remembered(store: &Store, decision: &Decision) -> Result<(), Error> {
    let remembered = retried(|| async {
        let mut transaction = store.database.write().await?;
        transaction.execute(catalog::STORE_REMEMBER.bound()).await?;
        audit::record(&mut transaction, decision).await?;
        transaction.commit(place!("remember")).await
    });
    Ok(remembered.await?)
}
