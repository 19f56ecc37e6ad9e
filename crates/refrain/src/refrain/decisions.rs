//! The decisions of operators: who, when, and why.

use jiff::Timestamp;
use refrain_core::Person;
use refrain_core::person::Verb;

use super::{Refrain, RunRecord};
use crate::error::Error;
use crate::store::audit::{self, AuditRow, Decision};
use crate::store::instant;

/// A decision of an operator.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct DecisionRecord {
    /// When it was made, by the clock of the store.
    pub at: Timestamp,
    /// The operator; none if a program decided and named no operator.
    pub who: Option<String>,
    /// What was decided: the name of a [`Verb`].
    #[serde(rename = "decided")]
    pub verb: String,
    /// What it is about: a run, a job, a store.
    pub subject: String,
    /// The key of the unit that it is about, if it is about one.
    pub unit: Option<String>,
    /// More about it: how far a checkpoint was moved, for example.
    pub detail: Option<String>,
    /// The reason that the operator gave.
    pub why: Option<String>,
}

impl Refrain {
    /// The same store on behalf of an operator: decisions made through it are recorded under that name.
    ///
    /// ```
    /// use refrain::core::Person;
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
    /// let ada = refrain.by(Person::named("ada@office")?.because("the mail server is being moved")?);
    /// ada.pause("welcome").await?;
    ///
    /// let last = &refrain.decisions(1).await?[0];
    /// assert_eq!((last.who.as_deref(), last.verb.as_str()), (Some("ada@office"), "pause"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn by(&self, person: Person) -> Refrain {
        Refrain { person: Some(person), ..self.clone() }
    }

    /// The last decisions, newest first.
    pub async fn decisions(&self, limit: u32) -> Result<Vec<DecisionRecord>, Error> {
        records(audit::list(self.store(), limit.into()).await?)
    }

    /// The decisions about a run and its units, oldest first.
    pub async fn decisions_about(&self, run: &RunRecord) -> Result<Vec<DecisionRecord>, Error> {
        records(audit::of_run(self.store(), run.id).await?)
    }

    /// The decisions about units of this key, oldest first.
    pub(super) async fn decisions_about_unit(&self, key: &str) -> Result<Vec<DecisionRecord>, Error> {
        records(audit::of_unit(self.store(), key).await?)
    }

    /// A decision of the operator who opened this store.
    pub(super) fn decision(&self, verb: Verb, subject: impl Into<String>) -> Decision {
        Decision::new(self.person.as_ref(), verb, subject)
    }
}

fn records(rows: Vec<AuditRow>) -> Result<Vec<DecisionRecord>, Error> {
    let records = rows.into_iter().map(|row| {
        let AuditRow { at, who, verb, subject, unit, detail, why } = row;
        Ok(DecisionRecord { at: instant(at)?, who, verb, subject, unit, detail, why })
    });
    records.collect()
}
