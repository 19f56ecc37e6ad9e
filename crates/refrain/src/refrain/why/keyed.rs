//! Reads everything that is recorded under a key.

use refrain_core::why::{EffectFacts, KeyFacts, UnitFacts, WhyFacts, why};
use refrain_core::{JobName, Key};

use super::super::{EffectRecord, Refrain, RunRecord, Trace};
use super::{RunSubject, Why};
use crate::error::Error;
use crate::ledger::UnitRecord;
use crate::store::{jobs, show, why as read};

/// The most runs of one key that are explained.
const RUNS_MAX: usize = 10;
/// How many of the newest runs of a job are searched for a unit that they skipped.
const RUNS_LOOKED_AT: usize = 100;
/// The most of them that are listed.
const LEFT_ALONE_MAX: usize = 3;

impl Refrain {
    pub(super) async fn why_key(&self, key: &Key) -> Result<Why, Error> {
        let Trace { units, effects, enqueued, .. } = self.trace(key.as_str()).await?;
        let mut facts = KeyFacts {
            key: key.to_string(),
            units: Vec::new(),
            effects: Vec::new(),
            runs: enqueued.len(),
            databases: self.engine.destinations.relayed().len(),
            job: self.newest(key.as_str()).await?,
        };
        for unit in &units {
            facts.units.push(self.unit_facts(key, unit).await?);
        }
        for effect in &effects {
            facts.effects.push(self.effect_facts(effect).await?);
        }
        let mut causes = why(&WhyFacts::Key(facts));
        for run in enqueued.iter().take(RUNS_MAX) {
            causes.extend(self.causes_of(&run.record).await?);
        }
        Ok(Why { subject: key.to_string(), causes })
    }

    async fn causes_of(&self, run: &RunRecord) -> Result<Vec<refrain_core::why::Cause>, Error> {
        let job = JobName::parse(&run.job)?;
        let (number, _) = self.recorded_job(job.as_str()).await?;
        let view = self.view(job.as_str()).await?;
        let context = self.context(&job, Some(number), &view).await?;
        let facts = self.recorded_facts(&RunSubject { number, view, context }, run.number()).await?;
        Ok(facts.map_or_else(Vec::new, |facts| why(&WhyFacts::Recorded(facts.into()))))
    }

    /// If this is the name of a job: that, and the newest of its runs.
    async fn newest(&self, text: &str) -> Result<Option<Option<String>>, Error> {
        let Ok(name) = JobName::parse(text) else { return Ok(None) };
        if self.recorded_job(name.as_str()).await.is_err() {
            return Ok(None);
        }
        let newest = self.latest(name.as_str(), None, 1).await?.pop();
        Ok(Some(match newest {
            Some(run) => Some(self.name_of(&run).await?),
            None => None,
        }))
    }

    async fn unit_facts(&self, key: &Key, unit: &UnitRecord) -> Result<UnitFacts, Error> {
        let mut ledger = unit.job.clone();
        if !unit.window_start.is_empty() {
            ledger = format!("{ledger}@{}", unit.window_start);
        }
        if !unit.scope.is_empty() {
            ledger = format!("{ledger}/{}", unit.scope);
        }
        let run = self.named_by(Some(&unit.job), unit.run.as_deref()).await?;
        Ok(UnitFacts {
            ledger,
            status: unit.status,
            run,
            attempt: unit.attempt,
            version: unit.version,
            at: unit.at,
            message: unit.message.clone(),
            in_doubt_since: unit.in_doubt_since,
            left_alone: self.left_alone(&unit.job, key).await?,
        })
    }

    async fn effect_facts(&self, effect: &EffectRecord) -> Result<EffectFacts, Error> {
        Ok(EffectFacts {
            name: effect.name.clone(),
            version: effect.version,
            state: effect.state,
            run: self.named_by(effect.job.as_deref(), effect.run.as_deref()).await?,
            at: effect.arrived_at,
            dedupes: effect.dedupes,
        })
    }

    /// A run by its job and key, as users write it.
    async fn named_by(&self, job: Option<&str>, key: Option<&str>) -> Result<Option<String>, Error> {
        let (Some(job), Some(key)) = (job, key) else { return Ok(None) };
        let found = match jobs::find(self.store(), &JobName::parse(job)?).await? {
            Some(row) => show::find(self.store(), row.id, key).await?,
            None => None,
        };
        let record = match found {
            Some(id) => self.record(id).await?,
            None => None,
        };
        Ok(Some(match record {
            Some(record) => self.name_of(&record).await?,
            None => format!("{job}#{key}"),
        }))
    }

    /// The newest runs of a job that met a unit and skipped it for a reason that the operator should know.
    async fn left_alone(&self, job: &str, key: &Key) -> Result<Vec<(String, String)>, Error> {
        if self.recorded_job(job).await.is_err() {
            return Ok(Vec::new());
        }
        let runs = self.latest(job, None, RUNS_LOOKED_AT).await?;
        let ids: Vec<i64> = runs.iter().map(RunRecord::number).collect();
        let view = self.view(job).await?;
        let mut left_alone = Vec::new();
        for (run, reason, keys) in read::unit_dedupes(self.store(), &ids).await? {
            let keys: Vec<String> = serde_json::from_str(&keys).unwrap_or_default();
            let is_told = reason != "already-applied" && keys.iter().any(|one| one == key.as_str());
            if let Some(record) = runs.iter().find(|record| record.number() == run).filter(|_| is_told) {
                left_alone.push((view.name_of(record), reason));
            }
        }
        left_alone.truncate(LEFT_ALONE_MAX);
        Ok(left_alone)
    }
}
