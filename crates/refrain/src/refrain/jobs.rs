//! Registers jobs: each gets its number, and its timetable comes into force.
//!
//! Everything stored is read in two statements and compared here, so that a process with ten thousand jobs starts
//! without ten thousand transactions; only what has changed is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use refrain_core::{CatchUp, JobName, WhileRunning};

use super::Refrain;
use crate::error::Error;
use crate::job::{Definition, Registry};
use crate::project::{JobFiles, Project};
use crate::store::Store;
use crate::store::jobs::{self, Registered};
use crate::store::queue_line::JobNumber;
use crate::store::schedules;
use crate::store::tick::Scheduled;

/// Registers jobs. `files` names those that the files of a project describe: a job whose file was removed loses its
/// timetable.
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

/// Retires the timetables of jobs whose files were removed.
async fn retire_removed(store: &Store, files: &BTreeSet<JobName>, now: Timestamp) -> Result<(), Error> {
    let in_force = schedules::in_force(store).await?;
    for (name, row) in jobs::all(store).await? {
        let has_file = files.iter().any(|file| file.as_str() == name);
        if row.from_file && !has_file && in_force.contains_key(&row.id) {
            tracing::warn!(
                job = name,
                "its file was removed: windows that are due are opened, later ones are not"
            );
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

/// The jobs that the store knows, for readers: nothing is written.
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
    pub(super) fn job(&self, name: &str) -> Result<(JobNumber, Arc<Definition>), Error> {
        let name = JobName::parse(name)?;
        self.engine.jobs.find(&name).ok_or_else(|| self.unknown(&name))
    }

    pub(super) fn unknown(&self, name: &JobName) -> Error {
        Error::UnknownJob { name: name.clone(), known: self.jobs() }
    }

    /// A job of this process, or at least of the store.
    pub(super) async fn recorded_job(
        &self,
        name: &str,
    ) -> Result<(JobNumber, Option<Arc<Definition>>), Error> {
        let unknown = match self.job(name) {
            Ok((number, definition)) => return Ok((number, Some(definition))),
            Err(error) => error,
        };
        let Error::UnknownJob { name, .. } = &unknown else { return Err(unknown) };
        let recorded = jobs::find(&self.engine.store, name).await?;
        recorded.map(|row| (row.id, None)).ok_or(unknown)
    }

    /// Replaces the jobs of this process and their timetables while it serves. A running attempt ends with the definition it
    /// began with. If anything is refused, the jobs stay as they were.
    pub async fn replace_jobs(&self, definitions: Vec<Definition>) -> Result<(), Error> {
        self.replace(definitions, None).await
    }

    /// Replaces the jobs of this process by those of a project. A job whose file was removed opens no more windows; one whose
    /// file is invalid stays in the store as it is, and does not run here. Intents in a new database are relayed as soon as
    /// it answers.
    pub async fn replace_project(&self, project: &Project) -> Result<(), Error> {
        self.replace(project.definitions()?, Some(&project.job_files())).await?;
        for database in project.written() {
            self.engine.unattached.add(database);
            if !database.is_postgres() {
                self.engine.destinations.are_beside_a_file();
            }
        }
        self.notifier.notify();
        Ok(())
    }

    async fn replace(&self, definitions: Vec<Definition>, files: Option<&JobFiles>) -> Result<(), Error> {
        let now = self.store().schedule_time().await?;
        let registry = Box::pin(register(self.store(), definitions, files, now)).await?;
        self.engine.jobs.replace(registry);
        self.notifier.notify();
        Ok(())
    }
}
