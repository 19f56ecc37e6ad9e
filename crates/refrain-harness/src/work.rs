//! Jobs for tests: closures that record when they begin, and that end when the test lets them.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use refrain::admin::RunRecord;
use refrain::core::{Dst, Grid, Schedule, Timetable, Word, Zone, window_name};
use refrain::{Definition, Job, JobError, Refrain, Run, Settings};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::TestDatabase;
use super::eventually::DEADLINE;

type Attempt = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;

struct Work(Box<dyn Fn(Run) -> Attempt + Send + Sync>);

impl Job for Work {
    const NAME: &'static str = "work";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        (self.0)(run.clone()).await
    }
}

/// A job with this handler.
pub fn job<F>(name: &str, work: impl Fn(Run) -> F + Send + Sync + 'static) -> Definition
where
    F: Future<Output = Result<(), JobError>> + Send + 'static,
{
    Definition::of(Work(Box::new(move |run| Box::pin(work(run))))).unwrap().named(name).unwrap()
}

/// A job that does nothing, at once.
pub fn nothing(name: &str) -> Definition {
    job(name, |_| async { Ok(()) })
}

/// A list of observations, in their order.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    pub fn push(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// A job that only records its key.
    pub fn job(&self, name: &str) -> Definition {
        let seen = self.clone();
        job(name, move |run| {
            seen.push(short(run.key()));
            async { Ok(()) }
        })
    }
}

/// Runs that have begun and wait to be let through.
#[derive(Clone)]
pub struct Gate {
    began: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    pub fn closed() -> Gate {
        Gate { began: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    /// A job whose runs wait here.
    pub fn job(&self, name: &str) -> Definition {
        let gate = self.clone();
        job(name, move |_| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok(())
            }
        })
    }

    /// A run has begun, and goes on when it is let through.
    pub async fn pass(&self) {
        self.began.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }

    /// Waits until as many more have begun.
    pub async fn have_begun(&self, runs: u32) {
        let began = timeout(DEADLINE, self.began.acquire_many(runs)).await;
        assert!(began.is_ok(), "{runs} runs did not begin");
        began.unwrap().unwrap().forget();
    }

    /// How many have begun that no test has awaited.
    pub fn waiting(&self) -> usize {
        self.began.available_permits()
    }

    pub fn let_through(&self, runs: usize) {
        self.open.add_permits(runs);
    }
}

/// Polls often and notices a cancellation soon; the lease is so long that only a stalled machine loses it.
pub const SETTINGS: Settings = Settings::new()
    .slots(16)
    // No worker of a test may lose its lease because the machine is busy; a test that needs that expires the lease.
    .lease(Duration::from_mins(1))
    .poll(Duration::from_millis(20))
    .grace(Duration::from_mins(1))
    .keep(Duration::from_hours(24));

/// A store in this database, created if it does not exist, with these jobs.
pub async fn open<J: IntoIterator<Item = Definition>>(database: &TestDatabase, jobs: J) -> Refrain {
    open_with(database, SETTINGS, jobs).await
}

pub async fn open_with(
    database: &TestDatabase,
    settings: Settings,
    jobs: impl IntoIterator<Item = Definition>,
) -> Refrain {
    Refrain::migrate(&database.url()).await.unwrap();
    let options = Refrain::at(&database.url(), "shop").unwrap().settings(settings);
    jobs.into_iter().fold(options, refrain::OpenOptions::job).open().await.unwrap()
}

/// Windows of a day that open at midnight, from the first of June on.
pub fn daily() -> Timetable {
    timetable("0 0 * * *", "day", "2020-06-01")
}

pub fn timetable(schedule: &str, grid: &str, start: &str) -> Timetable {
    Timetable {
        schedule: Schedule::parse(schedule).unwrap(),
        zone: Zone::utc(),
        grid: Grid::parse(grid).unwrap(),
        dst: Dst::default(),
        start: Some(window_name::parse(start, &Zone::utc()).unwrap()),
    }
}

/// An instant of June 2020: `june("02T00:01")`.
pub fn june(time: &str) -> Timestamp {
    format!("2020-06-{time}:00Z").parse().unwrap()
}

/// `06-01` of `2020-06-01T00:00:00Z`; other keys as they are.
pub fn short(key: &str) -> String {
    key.replace("2020-", "").replace("T00:00:00Z", "")
}

/// Every run of a job: its key, its state, and the number of its attempt.
pub async fn run_states(refrain: &Refrain, job: &str) -> Vec<String> {
    refrain.runs(job, "").await.unwrap().iter().map(line).collect()
}

pub fn line(run: &RunRecord) -> String {
    format!("{} {} {}", short(&run.key), run.standing.node().name(), run.attempt)
}

/// An existing run.
pub async fn shown(refrain: &Refrain, run: &str) -> RunRecord {
    let shown = refrain.show(run).await.unwrap();
    assert!(shown.is_some(), "there is no {run}");
    shown.unwrap()
}

/// Its past attempts: their numbers and how they ended.
pub async fn history(refrain: &Refrain, run: &str) -> Vec<String> {
    let run = shown(refrain, run).await;
    let past = refrain.attempts(&run).await.unwrap();
    past.iter().map(|attempt| format!("{} {}", attempt.number, attempt.ended)).collect()
}

/// `fsck` finds nothing, and the history of every run is a path of the table of states.
pub async fn is_sound(refrain: &Refrain) {
    assert_eq!(refrain.fsck().await.unwrap(), []);
    assert_eq!(crate::history::illegal(refrain).await, Vec::<String>::new());
}
