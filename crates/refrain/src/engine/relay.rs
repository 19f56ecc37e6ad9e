//! Relays intents from the databases of the jobs to the store: copies them, then deletes them.
//!
//! In this order a crash in between copies them again, which does no harm; in the other order it would lose them. Any number of
//! relays may run at once. An intent that cannot be copied (it is for another store, its job is not known here, its payload is not
//! JSON) stays where it is and is logged once; the intents behind it are copied.

use std::collections::HashSet;

use refrain_core::{JobName, Key, ParseError, ProjectName, RunKey};

use super::Engine;
use super::notify::Notifier;
use super::service::{Next, Service};
use crate::failpoint;
use crate::job::Jobs;
use crate::ledger::LedgerError;
use crate::ledger::destination::{Destination, Destinations};
use crate::ledger::pending_intents::{PAGE, PendingIntent, forget, look};
use crate::store::Store;
use crate::store::effects::NewEffect;
use crate::store::enqueue::Offer;
use crate::store::intents::{IntentRequest, RelayedIntent, arrive};
use crate::store::payload;

/// The most intents of each database that are remembered as logged.
const LOGGED_MAX: usize = 10_000;
/// The most pages of one pass, so that it ends although programs keep writing.
const PAGES_MAX: usize = 10_000;

type Result<T> = std::result::Result<T, LedgerError>;

pub(crate) struct Relay {
    store: Store,
    project: ProjectName,
    jobs: Jobs,
    notifier: Notifier,
    destinations: Destinations,
    sources: Vec<Source>,
}

/// A database that intents are relayed from.
struct Source {
    destination: Destination,
    /// The last intent that was read; those that cannot be copied stay behind it.
    after: i64,
    /// Intents that were left in this pass through the database, and logged.
    left: HashSet<i64>,
    /// The same of the pass before.
    logged: HashSet<i64>,
    /// Projects without a ledger here whose intents were logged.
    strangers: HashSet<String>,
}

/// The result of reading a page of each database, or of a whole pass.
#[derive(Debug, Default)]
pub(crate) struct Relayed {
    /// How many runs were opened.
    pub(crate) runs: usize,
    /// Whether there may be more.
    is_full: bool,
    /// Whether no other relay was faster.
    is_needed: bool,
    /// An error of one of the databases; the others were read all the same.
    pub(crate) failed: Option<LedgerError>,
}

/// Why an intent is not copied.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("it is for another store; this database was copied or restored")]
    OtherStore,
    #[error("there is no such job here; it stays until a process with that job relays it")]
    UnknownJob,
    #[error("the job has a timetable: its runs are named by windows, not keys")]
    NoKeys,
    #[error("{0}")]
    Text(#[from] ParseError),
    #[error("invalid payload: {0}")]
    Payload(String),
    #[error("{0} is not a valid version: a version is a number from 0 to 2147483647")]
    Version(i64),
    #[error("one of its columns is not UTF-8 text")]
    NotText,
    #[error("unknown kind")]
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
            logged: HashSet::new(),
            strangers: HashSet::new(),
        });
        Relay {
            store: engine.store.clone(),
            project: engine.project.clone(),
            jobs: engine.jobs.clone(),
            notifier: Notifier::new(engine.store.clone(), engine.wake.clone(), engine.hints.clone()),
            destinations: engine.destinations.clone(),
            sources: sources.collect(),
        }
    }

    /// Copies all intents.
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

    /// Copies all intents; logs an error instead of returning it: what was not copied is copied later.
    pub(crate) async fn all_or_later(&mut self) -> Relayed {
        let relayed = self.all().await;
        if let Some(error) = &relayed.failed {
            tracing::warn!("intents could not be relayed, and stay where they are: {error}");
        }
        relayed
    }

    /// Copies a page of each database.
    async fn look(&mut self) -> Relayed {
        let mut total = Relayed::default();
        let mut sources = std::mem::take(&mut self.sources);
        for source in &mut sources {
            source.destination = self.destinations.at_present(&source.destination);
            // In a box: this future is large, and every future that awaits it would be as large.
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
        source.log_strangers(page.strangers);
        let is_full = page.length >= PAGE;
        let mut arriving = Vec::new();
        let mut refused: Vec<Refused> = page
            .undecodable
            .into_iter()
            .map(|id| Refused { id, intent: None, why: Refusal::NotText })
            .collect();
        for intent in page.intents {
            match self.request(&intent) {
                Ok(request) => arriving.push(RelayedIntent { intent: intent.id, request }),
                Err(why) => refused.push(Refused { id: intent.id, intent: Some(intent), why }),
            }
        }
        let copied: Vec<i64> = arriving.iter().map(|one| one.intent).collect();
        if failpoint::is_weakened("relay.forget-first") {
            forget(&source.destination, &copied).await?;
        }
        let arrived = arrive(&self.store, &source.destination.id, &arriving).await?;
        arrived.lines.iter().for_each(|line| self.notifier.notify_line(*line));
        forget(&source.destination, &copied).await?;
        // Copied intents are deleted, so reading begins at the front again, where one with a lower number may have come.
        source.after = if is_full && !refused.is_empty() { page.last } else { 0 };
        let is_needed = arrived.fresh > 0 || !refused.is_empty();
        source.log(&refused, is_full);
        Ok(Relayed { runs: arrived.runs, is_full, is_needed, failed: None })
    }

    /// What an intent requests, or why it cannot be copied.
    fn request(&self, intent: &PendingIntent) -> std::result::Result<IntentRequest, Refusal> {
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
            "effect" => Ok(IntentRequest::Effect(NewEffect {
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
                Ok(IntentRequest::Run(number, offer))
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
    fn log(&mut self, refused: &[Refused], is_full: bool) {
        for Refused { id, intent, why } in refused {
            // Enough of them are logged.
            if self.left.len() >= LOGGED_MAX || !self.left.insert(*id) || self.logged.contains(id) {
                continue;
            }
            let (kind, name, key) = intent.as_ref().map_or(("", "", ""), |intent| {
                (intent.kind.as_str(), intent.name.as_str(), intent.key.as_str())
            });
            tracing::error!(intent = id, kind, name, key, "intent not relayed: {why}");
        }
        if !is_full {
            self.logged = std::mem::take(&mut self.left);
        }
    }

    fn log_strangers(&mut self, strangers: Vec<String>) {
        for project in strangers {
            if self.strangers.insert(project.clone()) {
                tracing::error!(project, "intents of a project that has no ledger here are not relayed");
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
            // When another relay copies the same pages, one of them is enough.
            None => Ok(if looked.is_needed { Next::Now } else { Next::Idle }),
        }
    }
}
