//! Makes tables and applies migrations when an operator asks for it.
//!
//! The operator's name is recorded afterwards: before the migration there is no table for it. A crash in
//! between loses the name; the tables themselves record which migrations were applied, and when.

use refrain_core::Person;
use refrain_core::person::Verb;

use super::{OpenOptions, Refrain};
use crate::database::{Address, Database};
use crate::engine::settings::Settings;
use crate::error::Error;
use crate::store::audit::{self, Decision};
use crate::store::migrate;

impl Refrain {
    /// Makes the tables of a store, or migrates them. Returns the names of the applied migrations.
    pub async fn migrate(address: &str) -> Result<Vec<&'static str>, Error> {
        migrated(&Address::parse(address)?, None).await
    }

    /// The statements that [`migrate`](Self::migrate) executes on PostgreSQL, as a script.
    pub fn migration_script() -> String {
        migrate::script_for_postgres()
    }
}

impl OpenOptions {
    /// Makes the tables of the store, or migrates them, like [`Refrain::migrate`].
    pub async fn migrate(&self) -> Result<Vec<&'static str>, Error> {
        migrated(&self.address, self.person.as_ref()).await
    }

    /// Records that tables of ledgers beside the store were migrated, as
    /// [`Project::migrate`](crate::project::Project::migrate) returns it: the applied migrations of each database.
    pub async fn record_migrations(&self, taken: &[(String, Vec<&'static str>)]) -> Result<(), Error> {
        let decisions = taken.iter().filter(|(_, steps)| !steps.is_empty()).map(|(database, steps)| {
            Decision::new(self.person.as_ref(), Verb::Migrate, database.as_str()).detailed(steps.join(", "))
        });
        let decisions: Vec<Decision> = decisions.collect();
        if decisions.is_empty() {
            return Ok(());
        }
        let database = Box::pin(Database::open(&self.address, 1, self.settings.idle())).await?;
        audit::record_alone(&database, &decisions).await?;
        database.close().await;
        Ok(())
    }
}

async fn migrated(address: &Address, person: Option<&Person>) -> Result<Vec<&'static str>, Error> {
    let database = Box::pin(Database::open(address, 1, Settings::default().idle())).await?;
    let taken = Box::pin(migrate::migrate(&database)).await?;
    if !taken.is_empty() {
        let decision = Decision::new(person, Verb::Migrate, address.to_string()).detailed(taken.join(", "));
        audit::record_alone(&database, &[decision]).await?;
    }
    database.close().await;
    Ok(taken)
}
