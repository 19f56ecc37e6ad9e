//! Alarms, for readers.

use jiff::Timestamp;
use refrain_core::AlarmKind;

use super::Refrain;
use crate::error::Error;
use crate::store::{StoreError, alarms, instant};

/// The most alarms that are listed.
const ALARMS_MAX: i64 = 1_000;

/// Something that an operator should know. It is raised once, however many engines notice it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct AlarmRecord {
    /// The kind of alarm.
    pub kind: AlarmKind,
    /// When it happened: for a spike, the minute in which it began.
    pub at: Timestamp,
    /// The job, if it concerns one.
    pub job: Option<String>,
    /// What it concerns, by name: a run, a job.
    pub subject: String,
    /// What happened, in a sentence.
    pub message: String,
}

impl Refrain {
    /// The last thousand alarms, the newest first.
    ///
    /// A serving engine checks every minute that is over, and [`tick`](Self::tick) those since the day before. A job with
    /// far more dedupes than usual raises a `dedupe-spike`: [`core::spike`](crate::core::spike) has the rule.
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
    /// refrain.enqueue("welcome", "42", &()).await?;
    /// refrain.tick().await?;
    ///
    /// for alarm in refrain.alarms().await? {
    ///     println!("{} {} {}: {}", alarm.at, alarm.kind, alarm.subject, alarm.message);
    /// }
    /// # assert_eq!(refrain.alarms().await?, [], "an occasional duplicate raises no alarm");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn alarms(&self) -> Result<Vec<AlarmRecord>, Error> {
        let rows = alarms::list(self.store(), ALARMS_MAX).await?;
        let records = rows.into_iter().map(|row| {
            let broken = |error| StoreError::Broken(format!("an alarm about {}: {error}", row.subject));
            Ok(AlarmRecord {
                kind: row.kind.parse().map_err(broken)?,
                at: instant(row.at)?,
                job: row.job,
                subject: row.subject,
                message: row.message,
            })
        });
        records.collect()
    }
}
