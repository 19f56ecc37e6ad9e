//! Opens the store of a project, with the jobs that its files describe and the databases that they write to.

use super::OpenOptions;
use crate::error::Error;
use crate::project::Project;
use crate::user_database::on_pool;

/// What is reported about a database that does not answer when a store is opened.
const AWAY: &str =
    "this database does not answer; until it does, its jobs fail and nothing is relayed from it";

impl Project {
    /// The store of the project, not yet opened, with its jobs. Another store may be named.
    pub fn opening_alone(&self, store: Option<&str>) -> Result<OpenOptions, Error> {
        let address = self.store_address(store)?;
        let opening = OpenOptions::at(address, self.name().clone()).files(self.job_files());
        Ok(self.definitions()?.into_iter().fold(opening, OpenOptions::job))
    }

    /// The store of the project, not yet opened, with its jobs and the databases that they write to.
    pub async fn opening(&self, store: Option<&str>) -> Result<OpenOptions, Error> {
        let mut opening = self.opening_alone(store)?;
        for database in self.written() {
            if !database.is_postgres() {
                opening = opening.beside_a_file();
            }
            opening = match database.connect().await {
                Ok(pool) => on_pool!(pool, |pool| opening.spare_destination(pool, database)),
                Err(error) => {
                    let (name, error) = (database.name.as_str(), error.to_string());
                    tracing::warn!(database = name, error, "{AWAY}");
                    opening.unattached(database)
                }
            };
        }
        Ok(opening)
    }
}
