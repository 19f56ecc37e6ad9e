//! Registers jobs: gives each its number, and puts its timetable in force.
//!
//! Everything stored is read in two statements and compared here, so that a process with ten thousand jobs starts
//! without ten thousand transactions; only what has changed is written.

use jiff::Timestamp;
use refrain_core::JobName;

use super::Refrain;
use crate::error::Error;
use crate::job::{Definition, Registry};
use crate::store::Store;
use crate::store::jobs::{self, Registered};
use crate::store::schedules;
use crate::store::tick::Scheduled;

pub(super) async fn register(
    store: &Store,
    definitions: Vec<Definition>,
    now: Timestamp,
) -> Result<Registry, Error> {
    let mut registry = Registry::default();
    if definitions.is_empty() {
        return Ok(registry);
    }
    let known = jobs::all(store).await?;
    let timetables = schedules::in_force(store).await?;
    let former = |definition: &Definition| {
        definition.formerly.iter().any(|former| known.contains_key(former.as_str()))
    };
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
        definition.first_name = Some(JobName::parse(&row.identity)?);
        let scheduled =
            Scheduled { job: number, catch_up: definition.catch_up, while_running: definition.while_running };
        match (&definition.timetable, timetables.get(&number)) {
            (Some(timetable), Some(in_force)) if timetable == in_force => {}
            (Some(timetable), _) => {
                schedules::set(store, scheduled, timetable, now).await?;
            }
            (None, Some(_)) => schedules::retire(store, number).await?,
            (None, None) => {}
        }
        registry.insert(number, definition);
    }
    Ok(registry)
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
        let now = self.store().schedule_time().await?;
        let registry = Box::pin(register(self.store(), definitions, now)).await?;
        self.engine.jobs.replace(registry);
        self.bell.ring();
        Ok(())
    }
}
