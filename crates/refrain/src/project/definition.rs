//! What a file says becomes a job that can be executed.

use std::sync::Arc;

use refrain_core::feed::{Feed, FeedSource};
use refrain_core::project::{Action, JobFile, Sql};
use refrain_core::{JobName, Scope, Timetable, Values, Window, Zone};

use super::Project;
use super::databases::{Connected, Database, Speaks};
use crate::action::about::About;
use crate::action::binds;
use crate::action::command::{Command, CommandJob};
use crate::action::command_files::WritingCommand;
use crate::action::environment::environment_of;
use crate::action::feed::Feeding;
use crate::action::publish::Publishing;
use crate::action::sql::{Statements, said};
use crate::action::values::of_window;
use crate::error::Error;
use crate::job::{Definition, JobError};
use crate::run::Run;

impl Project {
    /// Its jobs.
    pub fn definitions(&self) -> Result<Vec<Definition>, Error> {
        self.files.jobs.iter().map(|job| self.definition(job)).collect()
    }

    fn definition(&self, job: &JobFile) -> Result<Definition, Error> {
        let database = job.database.as_ref().and_then(|name| self.databases.get(name));
        let mut definition = match (&job.action, database) {
            (Action::Command(_), _) => {
                let (make, about) = (self.command_of(job), self.about(job));
                let make = move |run: &Run| make(run, &about.values(run));
                match &job.files {
                    None => Definition::of(CommandJob::new(make))?,
                    Some(files) => {
                        let (files, about) = (files.clone(), self.about(job));
                        Definition::of(WritingCommand { make: Arc::new(make), files, about })?
                    }
                }
            }
            (Action::Sql(statements), Some(database)) => Definition::of(Statements {
                database: Arc::clone(database),
                texts: statements.clone(),
                about: self.about(job),
            })?,
            (Action::Publish(steps), source) => Definition::of(Publishing {
                steps: steps.clone(),
                source: source.cloned(),
                about: self.about(job),
            })?,
            (Action::Units(feed), _) => Definition::of(self.feeding_of(job, feed))?,
            (Action::Sql(_), None) => return Err(Error::NoDatabase(job.name.clone())),
        };
        definition = definition
            .named(job.name.as_str())?
            .catch_up(job.catch_up)
            .while_running(job.while_running)
            .retry(job.retry)
            .timeout(job.timeout)
            .version(job.version)
            .formerly(job.formerly.clone());
        if let Some(timetable) = &job.timetable {
            definition = definition.timetable(timetable.clone());
        }
        if let Some(grace) = job.grace {
            definition = definition.grace(grace);
        }
        if let Some(concurrency) = job.concurrency {
            definition = definition.concurrency(concurrency);
        }
        if let (Some(query), Some(database), Some(timetable)) = (&job.scopes, database, &job.timetable) {
            definition = scoped(definition, query.clone(), Arc::clone(database), timetable.clone());
        }
        Ok(definition)
    }

    /// What a job does with units, if it is about units.
    pub(crate) fn feeding(&self, name: &JobName) -> Result<Option<Feeding>, Error> {
        let job = self.files.jobs.iter().find(|job| job.name == *name);
        let known = || self.files.jobs.iter().map(|job| job.name.clone()).collect();
        let job = job.ok_or_else(|| Error::UnknownJob { name: name.clone(), known: known() })?;
        Ok(match &job.action {
            Action::Units(feed) => Some(self.feeding_of(job, feed)),
            Action::Command(_) | Action::Sql(_) | Action::Publish(_) => None,
        })
    }

    fn feeding_of(&self, job: &JobFile, feed: &Feed) -> Feeding {
        let source = job.database.as_ref().and_then(|name| self.databases.get(name));
        Feeding {
            feed: Arc::new(feed.clone()),
            source: source.cloned(),
            command: Arc::new(self.command_of(job)),
            about: self.about(job),
        }
    }

    fn about(&self, job: &JobFile) -> About {
        let home = job.database.as_ref().and_then(|name| self.databases.get(name));
        About {
            root: self.root.clone(),
            databases: self.databases.clone(),
            timetable: job.timetable.clone(),
            scopes: job.scopes.clone().zip(home.cloned()),
            redactor: self.redactor(),
        }
    }

    fn command_of(
        &self,
        job: &JobFile,
    ) -> impl Fn(&Run, &Values) -> Result<Command, JobError> + Send + Sync + 'static {
        let (root, timetable, inherit) = (self.root.clone(), job.timetable.clone(), job.environment.clone());
        let templates = match &job.action {
            Action::Command(templates) => templates.clone(),
            Action::Units(feed) => match &feed.source {
                FeedSource::Command(templates) => templates.clone(),
                FeedSource::Query(_) => Vec::new(),
            },
            Action::Sql(_) | Action::Publish(_) => Vec::new(),
        };
        let interrupted = job.interrupted;
        let redactor = self.redactor();
        let zone = timetable.as_ref().map_or_else(Zone::utc, |timetable| timetable.zone.clone());
        move |run, values| {
            let argv = refrain_core::template::arguments(&templates, values)
                .map_err(|error| JobError::for_good(error.to_string()))?;
            Ok(Command {
                argv,
                environment: environment_of(run, &zone),
                inherit: inherit.clone(),
                directory: root.clone(),
                interrupted,
                redactor: redactor.clone(),
            })
        }
    }
}

/// A job with one run per window and scope.
fn scoped(definition: Definition, query: Sql, database: Arc<Database>, timetable: Timetable) -> Definition {
    let query = Arc::new(query);
    let timetable = Arc::new(timetable);
    definition.scopes(move |window| {
        let (query, database, timetable) =
            (Arc::clone(&query), Arc::clone(&database), Arc::clone(&timetable));
        async move {
            match database.connect().await? {
                Connected::Sqlite(pool) => scopes(&query, pool, &database, window, &timetable).await,
                Connected::Postgres(pool) => scopes(&query, pool, &database, window, &timetable).await,
            }
        }
    })
}

async fn scopes<DB: Speaks>(
    query: &Sql,
    pool: &sqlx::Pool<DB>,
    database: &Database,
    window: Window,
    timetable: &Timetable,
) -> Result<Vec<Scope>, JobError> {
    let values = of_window(window, &timetable.zone);
    let bound =
        binds::bound(query, &values, DB::DIALECT, database.time(), None).map_err(JobError::for_good)?;
    let told = |error: sqlx::Error| JobError::new(format!("the scopes cannot be found: {}", said(&error)));
    let kinds = DB::kinds(pool, &bound).await.map_err(told)?;
    if kinds.len() != 1 {
        let columns = kinds.len();
        return Err(JobError::for_good(format!(
            "`scopes` gives {columns} columns\n  a scope is one value: write a query of one column"
        )));
    }
    let texts = DB::texts(pool, &bound).await.map_err(told)?;
    let named = texts.into_iter().map(|text| match text.as_deref() {
        None => Err(JobError::for_good("a scope is null\n  leave such rows out of the query `scopes`")),
        Some("") => Err(JobError::for_good("a scope is empty\n  leave such rows out of the query `scopes`")),
        Some(text) => Scope::parse(text).map_err(|error| JobError::for_good(error.to_string())),
    });
    named.collect()
}
