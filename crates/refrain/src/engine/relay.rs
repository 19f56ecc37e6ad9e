//! Relays intents from the databases beside the rows to the store: copies them, then forgets them.
//!
//! In this order, whatever happens in between copies them again, and that does no harm; the other way round it would lose
//! them. Any number of relays may do it at once. What cannot be copied (for another store, for a job that is not known
//! here, no JSON) is left where it is and said once; whatever is behind it goes on.

use std::collections::HashSet;

use refrain_core::{JobName, Key, ParseError, ProjectName, RunKey};

use super::Engine;
use super::bell::Bell;
use super::service::{Next, Service};
use crate::failpoint;
use crate::job::Jobs;
use crate::ledger::LedgerError;
use crate::ledger::destination::{Destination, Destinations};
use crate::ledger::pending_intents::{PAGE, PendingIntent, forget, look};
use crate::payload;
use crate::store::Store;
use crate::store::effects::Wanted;
use crate::store::enqueue::Offer;
use crate::store::intents::{Arriving, Wish, arrive};

/// The most intents that are remembered as having been spoken of, for each database.
const TOLD_MAX: usize = 10_000;
/// The most pages of one pass, so that it ends although somebody keeps writing.
const PAGES_MAX: usize = 10_000;

type Result<T> = std::result::Result<T, LedgerError>;

pub(crate) struct Relay {
    store: Store,
    project: ProjectName,
    jobs: Jobs,
    bell: Bell,
    destinations: Destinations,
    sources: Vec<Source>,
}

/// A database from which intents come.
struct Source {
    destination: Destination,
    /// Where to go on behind what cannot be copied.
    after: i64,
    /// What was left on the way through, and spoken of.
    left: HashSet<i64>,
    /// The same, on the way before.
    told: HashSet<i64>,
    strangers: HashSet<String>,
}

/// What a look or a pass came to.
#[derive(Debug, Default)]
pub(crate) struct Relayed {
    /// How many runs were opened.
    pub(crate) runs: usize,
    /// Whether there may be more.
    is_full: bool,
    /// Whether nobody else was faster.
    is_needed: bool,
    /// What went wrong at one of the databases; the others were looked at all the same.
    pub(crate) failed: Option<LedgerError>,
}

/// Why an intent is not copied.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("it is for another store; this database was copied or restored")]
    OtherStore,
    #[error("there is no such job here; it waits for a process that knows it")]
    UnknownJob,
    #[error("the job has a timetable: its runs are windows, not keys")]
    NoKeys,
    #[error("{0}")]
    Text(#[from] ParseError),
    #[error("its payload cannot be taken: {0}")]
    Payload(String),
    #[error("{0} is not a version: a version is a number from 0 to 2147483647")]
    Version(i64),
    #[error("one of its columns is not UTF-8 text")]
    NotText,
    #[error("there is no such kind")]
    Kind,
}

/// An intent that is not copied.
struct Refused {
    id: i64,
    /// None if the row cannot be decoded.
    intent: Option<PendingIntent>,
    why: Refusal,
}

impl Relay {
    pub(crate) fn new(engine: &Engine, destinations: &[Destination]) -> Relay {
        let sources = destinations.iter().map(|destination| Source {
            destination: destination.clone(),
            after: 0,
            left: HashSet::new(),
            told: HashSet::new(),
            strangers: HashSet::new(),
        });
        Relay {
            store: engine.store.clone(),
            project: engine.project.clone(),
            jobs: engine.jobs.clone(),
            bell: Bell::new(engine.store.clone(), engine.wake.clone(), engine.hints.clone()),
            destinations: engine.destinations.clone(),
            sources: sources.collect(),
        }
    }

    /// Everything that is there.
    pub(crate) async fn all(&mut self) -> Relayed {
        let mut total = Relayed::default();
        for _ in 0..PAGES_MAX {
            let looked = self.look().await;
            total.runs += looked.runs;
            total.failed = looked.failed.or(total.failed);
            if !looked.is_full {
                break;
            }
        }
        total
    }

    /// The same where a failure must not stand in the way: what was not copied is copied another time.
    pub(crate) async fn all_or_later(&mut self) -> Relayed {
        let relayed = self.all().await;
        if let Some(error) = &relayed.failed {
            tracing::warn!("intents stay where they are until they can be relayed: {error}");
        }
        relayed
    }

    /// A page of each database.
    async fn look(&mut self) -> Relayed {
        let mut total = Relayed::default();
        let mut sources = std::mem::take(&mut self.sources);
        for source in &mut sources {
            source.destination = self.destinations.at_present(&source.destination);
            // In a box: it is large, and everything that waits for it would be as large.
            match Box::pin(self.relay(source)).await {
                Ok(relayed) => {
                    total.runs += relayed.runs;
                    total.is_full |= relayed.is_full;
                    total.is_needed |= relayed.is_full && relayed.is_needed;
                }
                Err(error) => {
                    source.after = 0;
                    total.failed = Some(error);
                }
            }
        }
        self.sources = sources;
        total
    }

    async fn relay(&self, source: &mut Source) -> Result<Relayed> {
        let page = look(&source.destination, self.project.as_str(), source.after).await?;
        source.tell_strangers(page.strangers);
        let is_full = page.length >= PAGE;
        let mut arriving = Vec::new();
        let mut refused: Vec<Refused> = page
            .undecodable
            .into_iter()
            .map(|id| Refused { id, intent: None, why: Refusal::NotText })
            .collect();
        for intent in page.intents {
            match self.judge(&intent) {
                Ok(wish) => arriving.push(Arriving { intent: intent.id, wish }),
                Err(why) => refused.push(Refused { id: intent.id, intent: Some(intent), why }),
            }
        }
        let copied: Vec<i64> = arriving.iter().map(|one| one.intent).collect();
        if failpoint::is_weakened("relay.forget-first") {
            forget(&source.destination, &copied).await?;
        }
        let arrived = arrive(&self.store, &source.destination.id, &arriving).await?;
        arrived.lines.iter().for_each(|line| self.bell.ring_for(*line));
        forget(&source.destination, &copied).await?;
        // Copied ones are gone, so the way begins at the front again, where one of a lower number may have come.
        source.after = if is_full && !refused.is_empty() { page.last } else { 0 };
        let is_needed = arrived.fresh > 0 || !refused.is_empty();
        source.tell(&refused, is_full);
        Ok(Relayed { runs: arrived.runs, is_full, is_needed, failed: None })
    }

    /// What an intent wishes for, or why it cannot be copied.
    fn judge(&self, intent: &PendingIntent) -> std::result::Result<Wish, Refusal> {
        if intent.store.as_deref().is_some_and(|store| store != &*self.store.id) {
            return Err(Refusal::OtherStore);
        }
        let name = JobName::parse(&intent.name)?;
        let key = Key::parse(&intent.key)?;
        let longest = i64::try_from(payload::PAYLOAD_BYTES_MAX).unwrap_or(i64::MAX);
        if let Some(bytes) = intent.bytes.filter(|bytes| *bytes > longest) {
            return Err(Refusal::Payload(payload::too_long(usize::try_from(bytes).unwrap_or(usize::MAX))));
        }
        if let Some(fault) = intent.payload.as_deref().and_then(payload::fault) {
            return Err(Refusal::Payload(fault));
        }
        match intent.kind.as_str() {
            "effect" => Ok(Wish::Effect(Wanted {
                key: intent.key.clone(),
                version: version(intent.version)?,
                name: intent.name.clone(),
                job: intent.job.clone(),
                run: intent.run.clone(),
                payload: intent.payload.clone(),
            })),
            "run" => {
                let (number, definition) = self.jobs.find(&name).ok_or(Refusal::UnknownJob)?;
                if definition.timetable.is_some() {
                    return Err(Refusal::NoKeys);
                }
                let offer = Offer { key: RunKey::queued(key), payload: intent.payload.clone() };
                Ok(Wish::Run(number, offer))
            }
            _ => Err(Refusal::Kind),
        }
    }
}

/// The version of an effect's rule.
fn version(number: i64) -> std::result::Result<i32, Refusal> {
    i32::try_from(number).ok().filter(|version| *version >= 0).ok_or(Refusal::Version(number))
}

impl Source {
    fn tell(&mut self, refused: &[Refused], is_full: bool) {
        for Refused { id, intent, why } in refused {
            // So many speak for the rest.
            if self.left.len() >= TOLD_MAX || !self.left.insert(*id) || self.told.contains(id) {
                continue;
            }
            let (kind, name, key) = intent.as_ref().map_or(("", "", ""), |intent| {
                (intent.kind.as_str(), intent.name.as_str(), intent.key.as_str())
            });
            tracing::error!(intent = id, kind, name, key, "an intent is left where it is: {why}");
        }
        if !is_full {
            self.told = std::mem::take(&mut self.left);
        }
    }

    fn tell_strangers(&mut self, strangers: Vec<String>) {
        for project in strangers {
            if self.strangers.insert(project.clone()) {
                tracing::error!(
                    project,
                    "there are intents of a project that has no ledger here; they are left where they are"
                );
            }
        }
    }
}

impl Service for Relay {
    const NAME: &'static str = "relay";
    type Error = LedgerError;

    async fn tick(&mut self) -> Result<Next> {
        let looked = self.look().await;
        match looked.failed {
            Some(error) => Err(error),
            // Where another relay is at the same page, one of them is enough.
            None => Ok(if looked.is_needed { Next::Now } else { Next::Idle }),
        }
    }
}
