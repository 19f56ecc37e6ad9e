//! Recover: a store that is new or restored meets databases that another one has written to.
//!
//! It would take their work for undone. So it does nothing there until a person has seen both and says that this one goes
//! on. The units in those databases stay as they are: what was applied is a dedupe for the new store as it was for the old.

use refrain_core::person::Verb;

use super::Opening;
use crate::database::{Database, place, retried};
use crate::error::Error;
use crate::ledger::{LedgerError, catalog, migrate};
use crate::store::audit::{self, Decision};
use crate::store::{Reality, Store};

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

impl Opening {
    /// Which of the named databases belong to another store. Those among them that a person was shown are this store's from
    /// then on.
    pub async fn recover(&self, shown: Option<&[Adopted]>) -> Result<Vec<Adopted>, Error> {
        let (idle, reality) = (self.settings.idle(), Reality::Real);
        let store =
            Box::pin(Store::open(&self.address, &self.project, self.connections, idle, reality)).await?;
        let mut found = Vec::new();
        let named = self.destinations.iter().map(|named| (&named.database, named.spare.as_deref()));
        for (database, name) in std::iter::once((&store.database, None)).chain(named) {
            if let Some(adopted) = self.look(&store, database, name).await? {
                if shown.is_some_and(|shown| shown.contains(&adopted)) {
                    let subject = name.unwrap_or("the database of the store");
                    let decision = Decision::new(self.person.as_ref(), Verb::Recover, subject);
                    let detail = format!("it belonged to the store {}", adopted.was);
                    audit::record_alone(&store.database, &[decision.detailed(detail)]).await?;
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
        let find = catalog::PROJECT_FIND.bind(self.project.as_str());
        let owner: Option<(Option<String>, String)> = transaction.fetch_optional(find).await?;
        let Some((Some(was), _)) = owner else { return Ok(None) };
        if *was == *store.id {
            return Ok(None);
        }
        let stranded = catalog::INTENT_STRANDED.bind(self.project.as_str()).bind(&*store.id);
        let stranded: Option<(i64,)> = transaction.fetch_optional(stranded).await?;
        let stranded = stranded.map_or(0, |(count,)| u64::try_from(count).unwrap_or_default());
        Ok(Some(Adopted { database: name.map(str::to_owned), was, now: store.id.to_string(), stranded }))
    }

    async fn adopt(&self, database: &Database, adopted: &Adopted) -> Result<(), LedgerError> {
        let given = retried(|| async {
            let mut transaction = database.write().await?;
            let adopt = catalog::PROJECT_ADOPT.bind(self.project.as_str());
            transaction.execute(adopt.bind(adopted.now.as_str()).bind(adopted.was.as_str())).await?;
            transaction.commit(place!("adopt")).await
        });
        Ok(given.await?)
    }
}
