//! Everything that is recorded about one key, in the store and in the ledgers.

use std::collections::HashMap;

use refrain_core::state::UnitStatus;
use refrain_core::{JobName, Key};

use super::{DecisionRecord, EffectRecord, Refrain, RunRecord, RunSummary};
use crate::error::Error;
use crate::ledger::{UnitRecord, trace};
use crate::store::jobs::{self, JobRow};
use crate::store::{effects, show};

/// The most runs and effects of one key that are listed.
const LISTED: i64 = 100;

/// The jobs of a store: the name of each, and its first name, under which its ledgers are kept.
pub(super) struct FirstNames(HashMap<String, JobRow>);

impl FirstNames {
    /// The first name of a job; one that the store does not know has only one.
    pub(super) fn first<'n>(&'n self, name: &'n str) -> &'n str {
        self.0.get(name).map_or(name, |row| &row.identity)
    }

    /// The present name of the job with this first name.
    pub(super) fn present<'n>(&'n self, first: &'n str) -> &'n str {
        self.0.values().find(|row| row.identity == first).map_or(first, |row| &row.name)
    }
}

/// Everything that is recorded about a key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Trace {
    /// The key.
    pub key: String,
    /// Units with this key, of every job and in every database that was named when the store was opened.
    pub units: Vec<UnitRecord>,
    /// Effects that are about it, the newest version first.
    pub effects: Vec<EffectRecord>,
    /// The runs that tried those units last.
    pub tried_by: Vec<RunSummary>,
    /// Runs that were enqueued under it.
    pub enqueued: Vec<RunSummary>,
    /// The decisions about such units, oldest first.
    pub decisions: Vec<DecisionRecord>,
}

impl Trace {
    /// Whether nothing is recorded about it.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty() && self.effects.is_empty() && self.enqueued.is_empty()
    }

    /// A parked unit that an operator must decide about, and the run that tried it last. One that is in doubt comes
    /// first.
    pub fn parked(&self) -> Option<(&UnitRecord, &RunSummary)> {
        let parked = self.units.iter().filter(|unit| unit.status == UnitStatus::Parked);
        let unit = parked.max_by_key(|unit| unit.in_doubt_since.is_some())?;
        let run = self.tried_by.iter().find(|run| unit.run.as_ref() == Some(&run.record.key))?;
        Some((unit, run))
    }
}

impl Refrain {
    /// Everything that is recorded about a key of a unit, an effect, or an enqueued run.
    ///
    /// ```
    /// use refrain::{Definition, Job, JobError, Refrain, Run};
    ///
    /// # struct Welcome;
    /// # impl Job for Welcome {
    /// #     const NAME: &'static str = "welcome";
    /// #     async fn run(&self, _: &mut Run) -> Result<(), JobError> {
    /// #         Ok(())
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
    /// let refrain = Refrain::at(&address, "shop")?.job(Definition::of(Welcome)?).open().await?;
    /// refrain.enqueue("welcome", "42", &()).await?;
    /// let trace = refrain.trace("42").await?;
    /// assert_eq!(trace.enqueued[0].name, "welcome#42");
    /// assert!(refrain.trace("43").await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn trace(&self, key: &str) -> Result<Trace, Error> {
        let key = Key::parse(key)?;
        let project = &self.engine.project;
        let names = self.first_names().await?;
        let mut units = Vec::new();
        for destination in self.engine.destinations.relayed().iter() {
            for job in trace::jobs(&destination.database, project).await? {
                let traced = trace::trace(&destination.database, project, &job, &key).await?;
                let job = names.present(&job);
                units.extend(traced.into_iter().map(|unit| UnitRecord { job: job.to_owned(), ..unit }));
            }
        }
        let rows = effects::of_key(self.store(), key.as_str(), LISTED).await?;
        let effects = rows.into_iter().map(EffectRecord::of).collect::<Result<_, _>>()?;
        let mut enqueued = Self::records(show::of_key(self.store(), key.as_str(), LISTED).await?);
        enqueued.retain(|run| run.window.is_none());
        let decisions = self.decisions_about_unit(key.as_str()).await?;
        let enqueued = self.summaries(enqueued).await?;
        let tried_by = self.summaries(self.tried(&units).await?).await?;
        Ok(Trace { key: key.to_string(), tried_by, units, effects, enqueued, decisions })
    }

    pub(super) async fn first_names(&self) -> Result<FirstNames, Error> {
        Ok(FirstNames(jobs::all(self.store()).await?))
    }

    /// The runs that tried these units last, each once.
    async fn tried(&self, units: &[UnitRecord]) -> Result<Vec<RunRecord>, Error> {
        let mut named: Vec<(&str, &str)> =
            units.iter().filter_map(|unit| Some((unit.job.as_str(), unit.run.as_deref()?))).collect();
        named.sort_unstable();
        named.dedup();
        let mut runs = Vec::new();
        for (job, key) in named.into_iter().take(usize::try_from(LISTED).unwrap_or_default()) {
            let Some(row) = jobs::find(self.store(), &JobName::parse(job)?).await? else { continue };
            let Some(id) = show::find(self.store(), row.id, key).await? else { continue };
            runs.extend(self.record(id).await?);
        }
        Ok(runs)
    }
}
