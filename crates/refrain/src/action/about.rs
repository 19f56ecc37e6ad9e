//! What every action of a job file may need to know of its project and its job.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use refrain_core::project::{Sql, TimeForm};
use refrain_core::redact::Redactor;
use refrain_core::{Timetable, Values};

use super::binds::{Bound, bound};
use super::sql::scope_kind;
use super::values::values;
use crate::job::JobError;
use crate::project::databases::{Connected, Database, Speaks};
use crate::run::Run;

/// A project and a job of it.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// The folder of the project.
    pub(crate) root: PathBuf,
    /// Its databases, by name.
    pub(crate) databases: BTreeMap<String, Arc<Database>>,
    pub(crate) timetable: Option<Timetable>,
    /// The query whose column says of which type a scope is, and the database that it is asked of.
    pub(crate) scopes: Option<(Sql, Arc<Database>)>,
    /// Hides secrets in what a database says, before it is kept.
    pub(crate) redactor: Redactor,
}

impl About {
    /// The values of a run.
    pub(crate) fn values(&self, run: &Run) -> Values {
        values(run, self.timetable.as_ref())
    }

    pub(crate) fn database(&self, name: &str) -> Result<&Arc<Database>, JobError> {
        let missing = || JobError::for_good(format!("there is no database `{name}` in refrain.toml"));
        self.databases.get(name).ok_or_else(missing)
    }

    /// Statements with the values of a run, for a database that holds moments in this form.
    pub(crate) async fn bound<DB: Speaks>(
        &self,
        texts: impl IntoIterator<Item = &Sql>,
        values: &Values,
        time: TimeForm,
    ) -> Result<Vec<Bound>, JobError> {
        let texts: Vec<&Sql> = texts.into_iter().collect();
        let needs_scope = texts.iter().any(|sql| sql.names().contains(&"scope"));
        let scope = match &self.scopes {
            Some((query, database)) if needs_scope => Some(match database.connect().await? {
                Connected::Sqlite(pool) => scope_kind(query, pool, database.time()).await?,
                Connected::Postgres(pool) => scope_kind(query, pool, database.time()).await?,
            }),
            _ => None,
        };
        let bind = |sql: &&Sql| bound(sql, values, DB::DIALECT, time, scope.as_deref());
        texts.iter().map(|sql| bind(sql).map_err(JobError::for_good)).collect()
    }
}
