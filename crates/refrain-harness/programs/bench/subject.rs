//! The measured engine: a store, an engine, and a job that does nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use refrain::{Definition, Job, JobError, Refrain, Run, Settings};
use tokio::sync::Notify;

use crate::Result;

/// Counts runs, and signals when enough have begun.
#[derive(Default)]
struct Counter {
    begun: AtomicU32,
    enough: AtomicU32,
    reached: Notify,
}

struct Noop(Arc<Counter>);

impl Job for Noop {
    const NAME: &'static str = "noop";

    async fn run(&self, _: &mut Run) -> std::result::Result<(), JobError> {
        let begun = self.0.begun.fetch_add(1, Ordering::Relaxed) + 1;
        if begun == self.0.enough.load(Ordering::Relaxed) {
            self.0.reached.notify_one();
        }
        Ok(())
    }
}

pub(crate) struct Subject {
    refrain: Refrain,
    counter: Arc<Counter>,
}

/// How many runs were drained, and how long that took.
pub(crate) struct Drained {
    pub(crate) runs: u32,
    pub(crate) took: Duration,
}

impl Drained {
    pub(crate) fn seconds_each(&self) -> f64 {
        self.took.as_secs_f64() / f64::from(self.runs)
    }
}

impl Subject {
    pub(crate) async fn open(address: &str, slots: usize) -> Result<Subject> {
        let counter = Arc::new(Counter::default());
        let settings = Settings::new().slots(slots);
        let job = Definition::of(Noop(Arc::clone(&counter)))?;
        let refrain = Refrain::at(address, "bench")?.settings(settings).job(job).open().await?;
        Ok(Subject { refrain, counter })
    }

    /// Enqueues keys in batches.
    pub(crate) async fn enqueue(&self, keys: &[String], batch: usize) -> Result<Duration> {
        let begun = Instant::now();
        for chunk in keys.chunks(batch) {
            let news = self.refrain.enqueue_many(Noop::NAME, chunk.iter().map(|key| (key, 0))).await?;
            if !news.iter().all(|one| one.is_new()) {
                return Err("a key was there already".into());
            }
        }
        Ok(begun.elapsed())
    }

    /// Serves until this many runs have begun, and until their ends are recorded.
    pub(crate) async fn drain(&self, enough: u32) -> Result<Drained> {
        self.counter.begun.store(0, Ordering::Relaxed);
        self.counter.enough.store(enough, Ordering::Relaxed);
        let begun = Instant::now();
        let serving = self.refrain.serve();
        let stop = serving.stop_handle();
        let served = tokio::spawn(serving.into_future());
        self.counter.reached.notified().await;
        stop.drain();
        let counts = served.await??;
        let runs = u32::try_from(counts.ended)?;
        if counts.lost + counts.again > 0 || runs < enough {
            return Err(format!("{counts:?} instead of {enough} runs that ended").into());
        }
        Ok(Drained { runs, took: begun.elapsed() })
    }

    pub(crate) async fn close(self) {
        self.refrain.close().await;
    }
}

pub(crate) fn keys(count: u32) -> Vec<String> {
    (0..count).map(|at| format!("k{at:08}")).collect()
}
