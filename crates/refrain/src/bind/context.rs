//! The project and the job that an action belongs to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_core::project::{Sql, TimeForm};
use refrain_core::redact::Redactor;
use refrain_core::{Timetable, Values};
use sqlx::Pool;

use super::arguments::bound;
use super::values::{of_any_window, values};
use crate::run::{JobError, Run};
use crate::user_database::{Backend, BoundQuery, UserDatabase, on_pool};

/// What actions need of their project and their job.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// The folder of the project.
    pub(crate) root: PathBuf,
    /// The databases of the project, by name.
    pub(crate) databases: BTreeMap<String, Arc<UserDatabase>>,
    pub(crate) timetable: Option<Timetable>,
    /// The query whose column has the type of the scopes, and its database.
    pub(crate) scopes: Option<(Sql, Arc<UserDatabase>)>,
    /// Removes secrets from errors and output before they are stored.
    pub(crate) redactor: Redactor,
}

impl About {
    /// The values of a run.
    pub(crate) fn values(&self, run: &Run) -> Values {
        values(run, self.timetable.as_ref())
    }

    pub(crate) fn database(&self, name: &str) -> Result<&Arc<UserDatabase>, JobError> {
        let missing = || JobError::for_good(format!("there is no database `{name}` in refrain.toml"));
        self.databases.get(name).ok_or_else(missing)
    }

    /// Statements with the values of a run, for a database that stores timestamps in this form.
    pub(crate) async fn bound<DB: Backend>(
        &self,
        texts: impl IntoIterator<Item = &Sql>,
        values: &Values,
        time: TimeForm,
    ) -> Result<Vec<BoundQuery>, JobError> {
        let texts: Vec<&Sql> = texts.into_iter().collect();
        let needs_scope = texts.iter().any(|sql| sql.names().contains(&"scope"));
        let scope = match &self.scopes {
            Some((query, database)) if needs_scope => {
                Some(on_pool!(database.connect().await?, |pool| scope_kind(query, pool, database.time())
                    .await?))
            }
            _ => None,
        };
        let bind = |sql: &&Sql| bound(sql, values, DB::DIALECT, time, scope.as_deref());
        texts.iter().map(|sql| bind(sql).map_err(JobError::for_good)).collect()
    }
}

/// The type of the column of scopes, as the database names it.
async fn scope_kind<DB: Backend>(query: &Sql, pool: &Pool<DB>, time: TimeForm) -> Result<String, JobError> {
    let nothing = of_any_window();
    let query = bound(query, &nothing, DB::DIALECT, time, None).map_err(JobError::for_good)?;
    let (_, kinds) = DB::columns(&mut *pool.acquire().await?, &query).await?;
    Ok(kinds.into_iter().next().unwrap_or_default())
}
