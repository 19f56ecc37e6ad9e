//! Enqueue: a key is done once, however often it is enqueued.

use refrain_core::{Key, RunKey};

use super::Refrain;
use crate::error::Error;
use crate::store::enqueue::{Offer, enqueue};
use crate::store::payload::fault;
use crate::store::queue_line::{Line, Priority};

/// Whether a key was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// The run is queued.
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

impl Refrain {
    /// Queues a run, once: a key that was ever offered to this job before is a dedupe. The payload is JSON.
    pub async fn enqueue(&self, job: &str, key: &str, payload: Option<&str>) -> Result<Enqueued, Error> {
        let one = self.enqueue_many(job, [(key, payload)]).await?;
        Ok(one.first().copied().unwrap_or(Enqueued::Deduplicated))
    }

    /// Queues many runs, each once, in batches that are each written whole or not at all. Gives what became of each.
    pub async fn enqueue_many<K: AsRef<str>, P: AsRef<str>>(
        &self,
        job: &str,
        offers: impl IntoIterator<Item = (K, Option<P>)>,
    ) -> Result<Vec<Enqueued>, Error> {
        let (number, definition) = self.job(job)?;
        if definition.timetable.is_some() {
            return Err(Error::NoKeys(definition.name.clone()));
        }
        let offers: Result<Vec<Offer>, Error> = offers
            .into_iter()
            .map(|(key, payload)| offer(key.as_ref(), payload.as_ref().map(P::as_ref)))
            .collect();
        let line = Line::of(Priority::Live, number);
        let news = enqueue(self.store(), number, line, &offers?, "enqueue").await?;
        self.notifier.notify_line(line);
        Ok(news.into_iter().map(|new| if new { Enqueued::New } else { Enqueued::Deduplicated }).collect())
    }
}

fn offer(key: &str, payload: Option<&str>) -> Result<Offer, Error> {
    if let Some(reason) = payload.and_then(fault) {
        return Err(Error::Payload { key: key.to_owned(), reason });
    }
    let key = Key::parse(key)?;
    Ok(Offer { key: RunKey::queued(key), payload: payload.map(str::to_owned) })
}
