//! A worker process that is killed while it does ordinary jobs through the unchanged library.
//!
//! It is this same program, started with `work` (for ever) or `finish` (until no work is left). Its environment has
//! the locations: `SOAK_STORE`, `SOAK_DESTINATION`, `SOAK_DIRECTORY`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use refrain::core::{Backoff, Key, Retry};
use refrain::ledger::{BatchError, Batches, FetchedPage, Intent, LedgerError, Per, Units};
use refrain::{Definition, Job, JobError, OpenOptions, Refrain, Run, Settings, key};
use sqlx::{Pool, Postgres, Sqlite};

use crate::Failure;
use crate::destination::Destination;
use crate::source::{Change, FEEDS, MARKED, ORDERS, first_since, read};

pub(crate) const PROJECT: &str = "soak";
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// The lease of a process that finishes the remaining work: faults have ended, and a slow machine must not make it
/// look dead.
const LAST_LEASE: Duration = Duration::from_secs(15);
/// How many changes a page has, and how many pages a run reads while faults continue.
const PAGE: usize = 25;
const PAGES: usize = 6;
/// The overlap of the watermark.
const OVERLAP: Duration = Duration::from_millis(50);
pub(crate) const PACKING: &str = "packing";
const STEPS: [&str; 3] = ["fetch", "sum", "tell"];
const BACKOFF: Backoff = Backoff { min: Duration::from_millis(5), max: Duration::from_millis(50) };
/// How often a run with refused contents is tried, and how often such a content is tried before it is parked.
const TRIES: u32 = 4;
/// How often a run is tried that only a fault can fail: as often as there are faults.
const FOR_EVER: u32 = 1_000_000;
const LOOK: Duration = Duration::from_millis(20);

/// The locations of all parts.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) store: String,
    pub(crate) destination: String,
    pub(crate) directory: PathBuf,
}

impl Surroundings {
    fn of_this_process() -> Surroundings {
        let [store, destination, directory] = ["SOAK_STORE", "SOAK_DESTINATION", "SOAK_DIRECTORY"]
            .map(|name| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set")));
        Surroundings { store, destination, directory: directory.into() }
    }

    /// Faults have ended: all contents are accepted, and sources are read to their end.
    fn is_mended(&self) -> bool {
        self.directory.join("mended").exists()
    }
}

/// The jobs of the worker.
struct Work<DB: Destination> {
    what: What,
    pool: Pool<DB>,
    surroundings: Arc<Surroundings>,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// Reads a source page by page.
    Feed,
    /// Reads a source by time.
    Marked,
    /// Applies the one order that its key names.
    Order,
    /// Executes several steps, one after another.
    Steps,
    /// Runs only because of the intent of an order.
    Packing,
}

impl<DB: Destination> Job for Work<DB> {
    const NAME: &'static str = "work";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        crate::say(&format!("begun {}#{}", run.job(), run.key()));
        match self.what {
            What::Feed => Ok(self.feed(run).await?),
            What::Marked => Ok(self.marked(run).await?),
            What::Order => self.order(run).await,
            What::Steps => Ok(self.steps(run).await?),
            What::Packing => Ok(()),
        }
    }
}

impl<DB: Destination> Work<DB> {
    async fn units(&self, run: &Run) -> Result<Units<DB, Change>, LedgerError> {
        let key_of = |change: &Change| key!("item", change.source, change.id);
        Ok(run.fence(&self.pool).await?.units(Per::Ever, key_of).order(|change: &Change| change.seq))
    }

    /// Applies the pending units: rows first, then everything else that belongs to the same commit.
    async fn apply(&self, run: &Run, mut batches: Batches<'_, DB, Change>) -> Result<(), LedgerError> {
        let who = format!("{}#{}/{}", run.job(), run.key(), run.attempt());
        while let Some(mut batch) = batches.next().await? {
            let mut went: Result<(), BatchError> = Ok(());
            for change in batch.all() {
                if change.is_bad && !self.surroundings.is_mended() {
                    went = went.and(Err(BatchError::new("this content is refused")));
                }
                if went.is_ok() {
                    went = DB::write(batch.tx(), change, &who).await.map_err(BatchError::from);
                }
            }
            let intents: Vec<Intent> = batch.all().into_iter().flat_map(intents).collect();
            if went.is_ok() {
                went = batch.intend(intents).await.map_err(BatchError::from);
            }
            batch.settle(went).await?;
        }
        Ok(())
    }

    async fn feed(&self, run: &Run) -> Result<(), LedgerError> {
        let units = self.units(run).await?;
        let failed = units.failed().await?;
        self.apply(run, units.apply(&failed).await?).await?;
        let name = FEEDS.into_iter().find(|name| run.key().starts_with(name)).unwrap_or_default();
        let mut pages = units.cursor(name).await?;
        let limit = if self.surroundings.is_mended() { usize::MAX } else { PAGES };
        for _ in 0..limit {
            let next = pages.next(async |at: Option<String>| {
                let from = at.map_or(0, |at| at.parse().unwrap_or_default());
                let changes = read(&self.surroundings.directory, name, from, PAGE);
                let next = (!changes.is_empty()).then(|| (from + changes.len()).to_string());
                Ok::<_, LedgerError>(FetchedPage { units: changes, next })
            });
            let Some(page) = next.await? else { break };
            self.apply(run, page.apply()).await?;
            page.done().await?;
        }
        Ok(())
    }

    async fn marked(&self, run: &Run) -> Result<(), LedgerError> {
        let units = self.units(run).await?;
        let failed = units.failed().await?;
        self.apply(run, units.apply(&failed).await?).await?;
        let time = |change: &Change| Timestamp::UNIX_EPOCH + SignedDuration::from_micros(change.at);
        let directory = self.surroundings.directory.clone();
        loop {
            let mut watermark = units.watermark(MARKED, OVERLAP, time).await?;
            let from =
                watermark.from().map_or(0, |from| first_since(&directory, MARKED, from.as_microsecond()));
            let changes = read(&directory, MARKED, from, PAGE * PAGES);
            let is_all = changes.len() < PAGE * PAGES;
            for page in changes.chunks(PAGE) {
                let page = watermark.page(page.to_vec())?;
                self.apply(run, page.apply()).await?;
                page.done().await?;
            }
            watermark.advance().await?;
            if is_all || !self.surroundings.is_mended() {
                return Ok(());
            }
        }
    }

    async fn order(&self, run: &Run) -> Result<(), JobError> {
        let order = [Change::order(run.key().parse()?)];
        let units = self.units(run).await?;
        let failed = units.failed().await?;
        self.apply(run, units.apply(&failed).await?).await?;
        self.apply(run, units.apply(&order).await?).await?;
        Ok(())
    }

    async fn steps(&self, run: &Run) -> Result<(), LedgerError> {
        for name in STEPS {
            if let Some(step) = run.step(name).await? {
                self.note("begun", run, name);
                step.done().await?;
                self.note("done", run, name);
            }
        }
        Ok(())
    }

    /// One write, so that lines of many processes do not mix.
    fn note(&self, word: &str, run: &Run, step: &str) {
        let path = self.surroundings.directory.join("steps");
        let mut file = File::options().append(true).create(true).open(path).unwrap();
        file.write_all(format!("{word} {} {step} {}\n", run.key(), run.attempt()).as_bytes()).unwrap();
    }
}

/// The store with all jobs. Orders are applied in the store's own database, the others in the destination.
pub(crate) async fn open_options(
    surroundings: &Surroundings,
    lease: Duration,
) -> Result<OpenOptions, Failure> {
    if surroundings.store.starts_with("sqlite:") {
        typed::<Sqlite>(surroundings, lease).await
    } else {
        typed::<Postgres>(surroundings, lease).await
    }
}

async fn typed<DB: Destination>(
    surroundings: &Surroundings,
    lease: Duration,
) -> Result<OpenOptions, Failure> {
    let (beside, inside) = (DB::open(&surroundings.destination).await?, DB::open(&surroundings.store).await?);
    let surroundings = Arc::new(surroundings.clone());
    let job = |what: What, name: &str, pool: &Pool<DB>, attempts: u32| {
        let work = Work { what, pool: pool.clone(), surroundings: Arc::clone(&surroundings) };
        Definition::of(work)?.named(name).map(|job| job.retry(Retry { attempts, backoff: BACKOFF }))
    };
    let settings = Settings::new().slots(3).lease(lease).poll(Duration::from_millis(50));
    let open_options = Refrain::at(&surroundings.store, PROJECT)?
        .settings(settings)
        .connections(4)
        .job(job(What::Feed, "feed", &beside, TRIES)?)
        .job(job(What::Marked, "marked", &beside, TRIES)?)
        .job(job(What::Order, "order", &inside, FOR_EVER)?)
        .job(job(What::Steps, "steps", &beside, FOR_EVER)?)
        .job(job(What::Packing, PACKING, &beside, FOR_EVER)?)
        .destination(&beside)
        .destination(&inside);
    Ok(open_options)
}

/// Serves: for ever, or until nothing is open.
pub(crate) async fn work(is_last: bool) -> Result<(), Failure> {
    let surroundings = Surroundings::of_this_process();
    let lease = if is_last { LAST_LEASE } else { LEASE };
    let refrain = open_options(&surroundings, lease).await?.open().await?;
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    crate::say("serving");
    let until = async {
        while !is_last || !matches!(refrain.open_runs().await, Ok(0)) {
            tokio::time::sleep(if is_last { LOOK } else { LEASE }).await;
        }
        stop.drain();
    };
    let (served, ()) = tokio::join!(serving.into_future(), until);
    served?;
    Ok(())
}

/// The key of an item, as stored in the ledger.
pub(crate) fn key_of(source: &str, id: i64) -> Key {
    key!("item", source, id).unwrap()
}

/// The key of the effect that a content has.
pub(crate) fn effect_of(source: &str, id: i64, seq: i64) -> Key {
    key!("told", source, id, seq).unwrap()
}

/// The intents of a content, once: a notification, and the packing of an order.
fn intents(change: &Change) -> Vec<Intent> {
    let recorded_steps = Intent::effect("tell", effect_of(&change.source, change.id, change.seq), 1);
    let packed = (change.source == ORDERS).then(|| Intent::run(PACKING, key!(change.id)?));
    [recorded_steps].into_iter().chain(packed).map(Result::unwrap).collect()
}

/// The lines in which steps report what they did.
pub(crate) fn recorded_steps(directory: &Path) -> Vec<String> {
    std::fs::read_to_string(directory.join("steps")).unwrap_or_default().lines().map(str::to_owned).collect()
}
