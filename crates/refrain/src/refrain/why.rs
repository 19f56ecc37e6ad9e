//! Why did a run happen, or why not? Reads what may explain it; [`core::why`](crate::core::why) decides what does.

mod keyed;
mod recorded;

use jiff::Timestamp;
use refrain_core::why::{
    AbsentFacts, Cause, Explanation, FrozenScopes, JobContext, Missing, WhyFacts, near, why,
};
use refrain_core::{JobName, Key, Revisions, RunKey, RunName, Scope};
use serde::{Serialize, Serializer};

use super::job_view::JobView;
use super::run_target::RunTarget;
use super::{Refrain, RunRecord};
use crate::error::Error;
use crate::store::queue_line::JobNumber;
use crate::store::{Reality, instant, jobs, show};

/// The most scopes of a window among which a similar name is searched.
const SCOPES_LOOKED_AT: i64 = 1_000;
/// How many runs are read to see when a worker was last active.
const RECENT: usize = 20;

/// The explanation of a run or a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Why {
    /// The run or key that it is about.
    pub subject: String,
    /// The causes: the first is the answer, the others are further facts.
    pub causes: Vec<Cause>,
}

impl Why {
    /// Whether a cause of this rule is among them.
    pub fn names(&self, rule: &str) -> bool {
        self.causes.iter().any(|cause| cause.rule() == rule)
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Json<'w> {
            subject: &'w str,
            causes: Vec<CauseJson>,
        }
        #[derive(Serialize)]
        struct CauseJson {
            rule: &'static str,
            said: String,
            next: Option<String>,
        }
        let causes = self.causes.iter().map(Cause::explain);
        let causes =
            causes.map(|Explanation { rule, text, advice, .. }| CauseJson { rule, said: text, next: advice });
        Json { subject: &self.subject, causes: causes.collect() }.serialize(serializer)
    }
}

/// A job with its setting.
struct RunSubject {
    number: JobNumber,
    view: JobView,
    context: JobContext,
}

impl Refrain {
    /// Why a run did or did not happen, or the state of a key: `job@window`, `job@window/scope`, `job#key`, or a key of a
    /// unit, an effect or an enqueued run.
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
    /// assert!(refrain.why("welcome#42").await?.names("never-enqueued"));
    /// refrain.enqueue("welcome", "42", &()).await?;
    /// assert!(refrain.why("welcome#42").await?.names("no-worker"));
    /// refrain.tick().await?;
    /// assert!(refrain.why("welcome#42").await?.causes[0].to_string().starts_with("welcome#42 is done, by attempt 1"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn why(&self, text: &str) -> Result<Why, Error> {
        let name = match text.parse::<RunName>() {
            Ok(name) => name,
            Err(error) => match Key::parse(text) {
                Ok(key) => return self.why_key(&key).await,
                Err(_) => return Err(error.into()),
            },
        };
        match self.recorded_job(name.job().as_str()).await {
            Ok((number, _)) => self.why_run(text, number, &name).await,
            Err(unknown @ Error::UnknownJob { .. }) => self.why_no_job(text, &name, unknown).await,
            Err(error) => Err(error),
        }
    }

    /// A name of an unknown job may be a key of this form.
    async fn why_no_job(&self, text: &str, name: &RunName, unknown: Error) -> Result<Why, Error> {
        if let Ok(key) = Key::parse(text) {
            let of_key = self.why_key(&key).await?;
            if !of_key.names("nothing-known") {
                return Ok(of_key);
            }
        }
        let Error::UnknownJob { name: job, .. } = &unknown else { return Err(unknown) };
        let known = jobs::all(self.store()).await?;
        let names = known.keys().map(String::as_str);
        let missing = Missing::Job { near: near(job.as_str(), names) };
        let mut context =
            self.context(name.job(), None, &JobView { definition: None, revisions: None }).await?;
        // The store does not know the job either, so the answer needs no hint that only this process lacks it.
        context.version = Some(0);
        Ok(answered(text, &WhyFacts::Absent(AbsentFacts { run: text.to_owned(), context, missing })))
    }

    async fn why_run(&self, text: &str, number: JobNumber, name: &RunName) -> Result<Why, Error> {
        let view = self.view(name.job().as_str()).await?;
        let context = self.context(name.job(), Some(number), &view).await?;
        let subject = RunSubject { number, view, context };
        if let RunName::Windowed { job, window, scope } = name {
            let Some(revisions) = &subject.view.revisions else { return Err(Error::NoWindows(job.clone())) };
            if let (Err(error), None) =
                (revisions.find(window), self.opened_window(number, window, scope).await?)
            {
                let beside = revisions.beside(window).into_iter().map(|window| run_name(job, &window, scope));
                let (reason, beside) = (error.reason().to_owned(), beside.collect());
                let missing = Missing::NoWindow { window: window.clone(), reason, beside };
                return Ok(absent(text, subject, missing));
            }
        }
        let RunTarget { window, key, .. } = self.target(text).await?;
        if let Some(id) = show::find(self.store(), number, &key.to_string()).await?
            && let Some(facts) = self.recorded_facts(&subject, id).await?
        {
            return Ok(answered(&facts.run.clone(), &WhyFacts::Recorded(facts.into())));
        }
        let missing = match (window, name) {
            (Some(window), RunName::Windowed { scope, .. }) => {
                let own = RunKey::windowed(window.start(), &Scope::default()).to_string();
                let of_scope = match show::find(self.store(), number, &own).await? {
                    Some(own) if !scope.as_str().is_empty() => self.lacks_scope(&subject, own, scope).await?,
                    _ => None,
                };
                let revisions = subject.view.revisions.as_ref();
                let expectation = revisions.map(|revisions: &Revisions| revisions.expectation(window));
                let end = window.end().timestamp();
                let of_window = expectation.map(|expectation| Missing::Window { end, expectation });
                of_scope.or(of_window).unwrap_or(Missing::Job { near: Vec::new() })
            }
            _ => Missing::Key { key: key.to_string() },
        };
        Ok(absent(text, subject, missing))
    }

    /// Why a scope has no run although its window has one.
    async fn lacks_scope(
        &self,
        subject: &RunSubject,
        own: i64,
        scope: &Scope,
    ) -> Result<Option<Missing>, Error> {
        let Some(record) = self.record(own).await? else { return Ok(None) };
        let has_scopes = subject.view.definition.as_ref().is_none_or(|definition| definition.has_scopes());
        let scopes = crate::store::why::frozen_scopes(self.store(), own).await?;
        let frozen = match scopes {
            Some(scopes) => Some(FrozenScopes { scopes, at: record.ended_at }),
            None if has_scopes => None,
            None => Some(FrozenScopes { scopes: 0, at: None }),
        };
        let rows = show::list(self.store(), subject.number, &record.key, SCOPES_LOOKED_AT).await?;
        let prefix = format!("{}/", record.key);
        let scopes: Vec<&str> = rows.iter().filter_map(|(row, _)| row.key.strip_prefix(&prefix)).collect();
        let window = subject.view.name_of(&record);
        let near = near(scope.as_str(), scopes).into_iter().map(|scope| format!("{window}/{scope}"));
        let (near, standing) = (near.collect(), record.standing.node());
        Ok(Some(Missing::Scope { window, standing, frozen, near }))
    }

    /// The facts about a run of a job.
    async fn context(
        &self,
        job: &JobName,
        number: Option<JobNumber>,
        view: &JobView,
    ) -> Result<JobContext, Error> {
        let present = self.store().now().await?;
        let workers = self.workers().await?;
        let alive = workers.iter().filter(|worker| worker.is_alive(present));
        let recent = self.recent(None, RECENT).await?;
        let paused_at = match number {
            Some(number) => jobs::paused_at(self.store(), number).await?.map(instant).transpose()?,
            None => None,
        };
        Ok(JobContext {
            now: self.simulated.unwrap_or(present),
            job: job.to_string(),
            version: view.definition.as_ref().map(|definition| definition.version),
            paused_at,
            workers: alive.clone().count() as u64,
            running: alive.map(|worker| worker.runs).sum(),
            last_seen: recent.iter().filter_map(|run: &RunRecord| run.ended_at).max(),
            is_simulated: self.store().reality == Reality::Simulated,
        })
    }

    /// The time for schedules.
    pub(super) async fn schedule_now(&self) -> Result<Timestamp, Error> {
        match self.simulated {
            Some(now) => Ok(now),
            None => Ok(self.store().now().await?),
        }
    }
}

fn run_name(job: &JobName, window: &str, scope: &Scope) -> String {
    RunName::Windowed { job: job.clone(), window: window.to_owned(), scope: scope.clone() }.to_string()
}

fn absent(run: &str, subject: RunSubject, missing: Missing) -> Why {
    answered(run, &WhyFacts::Absent(AbsentFacts { run: run.to_owned(), context: subject.context, missing }))
}

fn answered(subject: &str, facts: &WhyFacts) -> Why {
    Why { subject: subject.to_owned(), causes: why(facts) }
}
