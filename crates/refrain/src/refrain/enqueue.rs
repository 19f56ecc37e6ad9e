//! Enqueue: a key is done once, however often it is enqueued.

use refrain_core::{Fingerprint, Key, RunKey};
use serde::Serialize;

use super::Refrain;
use super::show::RunRecord;
use crate::error::Error;
use crate::store::counts::UnitCounts;
use crate::store::enqueue::{Offer, enqueue};
use crate::store::payload::{fault, json_of};
use crate::store::queue_line::{JobNumber, Line, Priority};
use crate::store::show;

/// Whether a key was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Enqueued {
    /// The run is queued.
    #[serde(rename = "enqueued")]
    New,
    /// The key was enqueued before: its run is queued, running or done.
    Deduplicated,
}

impl Enqueued {
    /// Whether the key was new.
    pub fn is_new(self) -> bool {
        self == Enqueued::New
    }
}

/// What became of a key that was enqueued with its payload as JSON. It serializes to the object that `refrain enqueue --json`
/// prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EnqueueReport {
    /// The run: `job#key`.
    pub run: String,
    /// Whether the key was new.
    pub did: Enqueued,
    /// Whether the payload differs from the first one of this key, which is kept.
    pub payload_differs: bool,
    /// The key as one of the four counts.
    pub counts: UnitCounts,
}

impl Refrain {
    /// Queues a run, once: a key that was ever enqueued for this job before is a dedupe, and its first payload is kept. The
    /// payload is stored as JSON of at most [`PAYLOAD_BYTES_MAX`](crate::admin::PAYLOAD_BYTES_MAX) bytes, and `null` means no
    /// payload: `&()` and `&None::<T>`. The job reads it with [`Run::payload`](crate::Run::payload).
    ///
    /// ```
    /// # use refrain::{Definition, Job, JobError, Refrain, Run};
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Signup {
    ///     email: String,
    /// }
    /// # struct Welcome;
    /// # impl Job for Welcome {
    /// #     const NAME: &'static str = "welcome";
    /// #     async fn run(&self, run: &mut Run) -> Result<(), JobError> {
    /// #         let Signup { email } = run.payload()?;
    /// #         assert_eq!(email, "ada@example.org");
    /// #         Ok(())
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
    /// # let refrain = Refrain::at(&address, "shop")?.job(Definition::of(Welcome)?).open().await?;
    ///
    /// let ada = Signup { email: "ada@example.org".to_owned() };
    /// assert!(refrain.enqueue("welcome", "42", &ada).await?.is_new());
    /// assert!(!refrain.enqueue("welcome", "42", &ada).await?.is_new());
    /// # assert_eq!(refrain.tick().await?.failed, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue(&self, job: &str, key: &str, payload: &impl Serialize) -> Result<Enqueued, Error> {
        let one = self.enqueue_many(job, [(key, payload)]).await?;
        Ok(one.first().copied().unwrap_or(Enqueued::Deduplicated))
    }

    /// Queues many runs, each once, in batches that are each written whole or not at all. Returns for each whether it
    /// was new.
    ///
    /// ```
    /// # async fn example(refrain: refrain::Refrain) -> Result<(), refrain::Error> {
    /// refrain.enqueue_many("welcome", [("42", "ada@example.org"), ("43", "bob@example.org")]).await?;
    /// refrain.enqueue_many("export", ["acme", "globex"].map(|customer| (customer, ()))).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue_many<K: AsRef<str>, P: Serialize>(
        &self,
        job: &str,
        offers: impl IntoIterator<Item = (K, P)>,
    ) -> Result<Vec<Enqueued>, Error> {
        let number = self.queued_job(job)?;
        let offers = offers.into_iter().map(|(key, payload)| offer(key.as_ref(), json_of(&payload)));
        self.offered(number, &offers.collect::<Result<Vec<Offer>, Error>>()?).await
    }

    /// Queues a run once, with a payload that is JSON text already, as the command line and other languages have it. It is stored
    /// as it is written, and compared with the first one of its key.
    pub async fn enqueue_json(
        &self,
        job: &str,
        key: &str,
        payload: Option<&str>,
    ) -> Result<EnqueueReport, Error> {
        let number = self.queued_job(job)?;
        let checked = payload.and_then(fault).map_or(Ok(payload.map(str::to_owned)), Err);
        let offer = offer(key, checked)?;
        let did = self.offered(number, std::slice::from_ref(&offer)).await?;
        let did = did.first().copied().unwrap_or(Enqueued::Deduplicated);
        let payload_differs = !did.is_new() && self.differs_from_first(number, &offer).await?;
        let deduplicated = u64::from(!did.is_new());
        let counts = UnitCounts { deduplicated, ..UnitCounts::default() };
        Ok(EnqueueReport { run: format!("{job}#{key}"), did, payload_differs, counts })
    }

    /// The number of a job whose runs are enqueued.
    fn queued_job(&self, job: &str) -> Result<JobNumber, Error> {
        let (number, definition) = self.job(job)?;
        if definition.timetable.is_some() {
            return Err(Error::NoKeys(definition.name.clone()));
        }
        Ok(number)
    }

    async fn offered(&self, job: JobNumber, offers: &[Offer]) -> Result<Vec<Enqueued>, Error> {
        let line = Line::of(Priority::Live, job);
        let news = enqueue(self.store(), job, line, offers, "enqueue").await?;
        self.notifier.notify_line(line);
        Ok(news.into_iter().map(|new| if new { Enqueued::New } else { Enqueued::Deduplicated }).collect())
    }

    /// Whether a payload is not the one that was first enqueued with its key. One that was pruned cannot be compared.
    async fn differs_from_first(&self, job: JobNumber, offer: &Offer) -> Result<bool, Error> {
        let Some(payload) = &offer.payload else { return Ok(false) };
        let Some((row, open)) = show::of_job(self.store(), job, &offer.key.to_string()).await? else {
            return Ok(false);
        };
        let first = RunRecord::of(row, open)?;
        Ok(!first.is_forgotten && !is_same_json(payload, first.payload.as_deref()))
    }
}

fn offer(key: &str, payload: Result<Option<String>, String>) -> Result<Offer, Error> {
    let payload = payload.map_err(|reason| Error::Payload { key: key.to_owned(), reason })?;
    Ok(Offer { key: RunKey::queued(Key::parse(key)?), payload })
}

/// Whether two payloads are the same JSON, however it is written.
fn is_same_json(one: &str, other: Option<&str>) -> bool {
    let content = |text: &str| Fingerprint::of_json(text).ok();
    other.is_some_and(|other| one == other || content(one).is_some_and(|one| content(other) == Some(one)))
}
