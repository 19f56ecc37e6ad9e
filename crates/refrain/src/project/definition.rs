//! Makes the definition of a job from its file.

use std::sync::Arc;

use refrain_core::feed::{Feed, FeedSource};
use refrain_core::project::{Action, JobFile, Sql};
use refrain_core::{JobName, Scope, Timetable, Window, Zone};

use super::Project;
use crate::action::command::CommandJob;
use crate::action::command_files::FilesCommandJob;
use crate::action::command_template::CommandTemplate;
use crate::action::feed::UnitsJob;
use crate::action::publish::PublishJob;
use crate::action::sql::SqlJob;
use crate::bind::arguments;
use crate::bind::context::About;
use crate::bind::values::of_window;
use crate::error::Error;
use crate::job::Definition;
use crate::run::JobError;
use crate::user_database::{Backend, UserDatabase, message_of, on_pool};

impl Project {
    /// The definitions of its jobs.
    pub fn definitions(&self) -> Result<Vec<Definition>, Error> {
        self.files.jobs.iter().map(|job| self.definition(job)).collect()
    }

    fn definition(&self, job: &JobFile) -> Result<Definition, Error> {
        let database = job.database.as_ref().and_then(|name| self.databases.get(name));
        let mut definition = match (&job.action, database) {
            (Action::Command(_), _) => {
                let (template, about) = (self.command_template(job), self.about(job));
                match &job.files {
                    None => {
                        Definition::of(CommandJob::new(move |run| template.command(run, &about.values(run))))?
                    }
                    Some(files) => {
                        let files = files.clone();
                        Definition::of(FilesCommandJob { command: template, files, about })?
                    }
                }
            }
            (Action::Sql(statements), Some(database)) => Definition::of(SqlJob {
                database: Arc::clone(database),
                texts: statements.clone(),
                about: self.about(job),
            })?,
            (Action::Publish(steps), source) => Definition::of(PublishJob {
                steps: steps.clone(),
                source: source.cloned(),
                about: self.about(job),
            })?,
            (Action::Units(feed), _) => Definition::of(self.units_job(job, feed))?,
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
        if let Action::Units(feed) = &job.action {
            definition.cursor.clone_from(&feed.cursor);
        }
        if job.needs_payload() {
            definition = definition.needs_payload();
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

    /// The units job of this name; none if the job processes no units.
    pub(crate) fn units_job_of(&self, name: &JobName) -> Result<Option<UnitsJob>, Error> {
        let job = self.job(name)?;
        Ok(match &job.action {
            Action::Units(feed) => Some(self.units_job(job, feed)),
            Action::Command(_) | Action::Sql(_) | Action::Publish(_) => None,
        })
    }

    fn units_job(&self, job: &JobFile, feed: &Feed) -> UnitsJob {
        let source = job.database.as_ref().and_then(|name| self.databases.get(name));
        UnitsJob {
            feed: Arc::new(feed.clone()),
            source: source.cloned(),
            command: self.command_template(job),
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

    fn command_template(&self, job: &JobFile) -> CommandTemplate {
        let argv = match &job.action {
            Action::Command(templates) => templates.clone(),
            Action::Units(feed) => match &feed.source {
                FeedSource::Command(templates) => templates.clone(),
                FeedSource::Query(_) => Vec::new(),
            },
            Action::Sql(_) | Action::Publish(_) => Vec::new(),
        };
        CommandTemplate {
            argv,
            inherit: job.environment.clone(),
            directory: self.root.clone(),
            interrupted: job.interrupted,
            zone: job.timetable.as_ref().map_or_else(Zone::utc, |timetable| timetable.zone.clone()),
            redactor: self.redactor(),
        }
    }
}

/// A job with one run per window and scope.
fn scoped(
    definition: Definition,
    query: Sql,
    database: Arc<UserDatabase>,
    timetable: Timetable,
) -> Definition {
    let query = Arc::new(query);
    let timetable = Arc::new(timetable);
    definition.scopes(move |window| {
        let (query, database, timetable) =
            (Arc::clone(&query), Arc::clone(&database), Arc::clone(&timetable));
        async move {
            on_pool!(database.connect().await?, |pool| scopes(&query, pool, &database, window, &timetable)
                .await)
        }
    })
}

async fn scopes<DB: Backend>(
    query: &Sql,
    pool: &sqlx::Pool<DB>,
    database: &UserDatabase,
    window: Window,
    timetable: &Timetable,
) -> Result<Vec<Scope>, JobError> {
    let values = of_window(window, &timetable.zone);
    let bound =
        arguments::bound(query, &values, DB::DIALECT, database.time(), None).map_err(JobError::for_good)?;
    let failed =
        |error: sqlx::Error| JobError::new(format!("the query `scopes` failed: {}", message_of(&error)));
    let (columns, _) =
        DB::columns(&mut *pool.acquire().await.map_err(failed)?, &bound).await.map_err(failed)?;
    if columns.len() != 1 {
        let columns = columns.len();
        return Err(JobError::for_good(format!(
            "the query `scopes` returns {columns} columns\n  a scope is one value: select one column"
        )));
    }
    let texts = DB::texts(pool, &bound).await.map_err(failed)?;
    let named = texts.into_iter().map(|text| match text.as_deref() {
        None => Err(JobError::for_good("a scope is null\n  exclude such rows in the query `scopes`")),
        Some("") => Err(JobError::for_good("a scope is empty\n  exclude such rows in the query `scopes`")),
        Some(text) => Scope::parse(text).map_err(|error| JobError::for_good(error.to_string())),
    });
    named.collect()
}
