//! Registers jobs: gives each its number, and puts its timetable in force.
//!
//! Everything stored is read in two statements and compared here, so that a process with ten thousand jobs starts
//! without ten thousand transactions; only what has changed is written.

use std::collections::BTreeSet;

use jiff::Timestamp;
use refrain_core::{CatchUp, JobName, WhileRunning};

use super::Refrain;
use crate::error::Error;
use crate::job::{Definition, Registry};
use crate::project::{JobFiles, Project};
use crate::store::Store;
use crate::store::jobs::{self, Registered};
use crate::store::schedules;
use crate::store::tick::Scheduled;

/// Registers jobs. `files` says which of them a project's files describe: a job that a file described, and none does any
/// more, has no timetable any more.
pub(super) async fn register(
    store: &Store,
    definitions: Vec<Definition>,
    files: Option<&JobFiles>,
    now: Timestamp,
) -> Result<Registry, Error> {
    let mut registry = Registry::default();
    if definitions.is_empty() && files.is_none() {
        return Ok(registry);
    }
    let known = jobs::all(store).await?;
    let timetables = schedules::in_force(store).await?;
    let former = |definition: &Definition| {
        definition.formerly.iter().any(|former| known.contains_key(former.as_str()))
    };
    let mut newly_from_files = Vec::new();
    for mut definition in definitions {
        let row = match known.get(definition.name.as_str()) {
            Some(row) if !former(&definition) => row.clone(),
            _ => {
                let (name, identity) = (&definition.name, definition.identity());
                match jobs::register(store, name, identity, &definition.formerly).await? {
                    Registered::As(row) => row,
                    Registered::Refused(taken) => return Err(taken.into()),
                }
            }
        };
        let number = row.id;
        if !row.from_file && files.is_some_and(|files| files.names.contains(&definition.name)) {
            newly_from_files.push(number);
        }
        definition.first_name = Some(JobName::parse(&row.identity)?);
        let scheduled =
            Scheduled { job: number, catch_up: definition.catch_up, while_running: definition.while_running };
        match (&definition.timetable, timetables.get(&number)) {
            (Some(timetable), Some(in_force)) if timetable == in_force => {}
            (Some(timetable), _) => {
                store.believes(now)?;
                schedules::set(store, scheduled, timetable, now).await?;
            }
            (None, Some(_)) => {
                store.believes(now)?;
                schedules::retire(store, scheduled, now).await?;
            }
            (None, None) => {}
        }
        registry.insert(number, definition);
    }
    jobs::are_from_files(store, &newly_from_files).await?;
    if let Some(files) = files.filter(|files| files.is_whole) {
        retire_removed(store, &files.names, now).await?;
    }
    Ok(registry)
}

/// Takes the timetables of jobs out of force whose files are gone.
async fn retire_removed(store: &Store, files: &BTreeSet<JobName>, now: Timestamp) -> Result<(), Error> {
    let in_force = schedules::in_force(store).await?;
    for (name, row) in jobs::all(store).await? {
        let has_file = files.iter().any(|file| file.as_str() == name);
        if row.from_file && !has_file && in_force.contains_key(&row.id) {
            tracing::warn!(job = name, "its file is gone: what is due is opened, and nothing after that");
            store.believes(now)?;
            let scheduled = Scheduled {
                job: row.id,
                catch_up: CatchUp::default(),
                while_running: WhileRunning::default(),
            };
            schedules::retire(store, scheduled, now).await?;
        }
    }
    Ok(())
}

/// The jobs that the store knows, and nothing is written: for whoever only looks.
pub(super) async fn recognise(store: &Store, definitions: Vec<Definition>) -> Result<Registry, Error> {
    let known = jobs::all(store).await?;
    let mut registry = Registry::default();
    for mut definition in definitions {
        if let Some(row) = known.get(definition.name.as_str()) {
            definition.first_name = Some(JobName::parse(&row.identity)?);
            registry.insert(row.id, definition);
        }
    }
    Ok(registry)
}

impl Refrain {
    /// Puts other jobs in place of those that this process knows, and their timetables in force, while it goes on serving.
    /// An attempt that is under way ends as it began. If anything is refused, all stays as it was here.
    pub async fn replace_jobs(&self, definitions: Vec<Definition>) -> Result<(), Error> {
        self.replace(definitions, None).await
    }

    /// The same with the jobs of a project. A job whose file is gone opens nothing any more; one whose file cannot be
    /// read stays in the store as it is, and does nothing here. A database that is new is relayed from as soon as it answers.
    pub async fn replace_project(&self, project: &Project) -> Result<(), Error> {
        self.replace(project.definitions()?, Some(&project.job_files())).await?;
        for database in project.written() {
            self.engine.away.add(database);
            if !database.is_postgres() {
                self.engine.destinations.are_beside_a_file();
            }
        }
        self.bell.ring();
        Ok(())
    }

    async fn replace(&self, definitions: Vec<Definition>, files: Option<&JobFiles>) -> Result<(), Error> {
        let now = self.store().schedule_time().await?;
        let registry = Box::pin(register(self.store(), definitions, files, now)).await?;
        self.engine.jobs.replace(registry);
        self.bell.ring();
        Ok(())
    }
}
