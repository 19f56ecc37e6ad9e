//! A job as the engine sees it: a name, code to run, and policies.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use refrain_core::feed::FeedCursor;
use refrain_core::project::TIMEOUT;
use refrain_core::{CatchUp, JobName, ParseError, Retry, Scope, Timetable, WhileRunning, Window};

use crate::run::{JobError, Run};
use crate::store::queue_line::JobNumber;

/// Work with a name.
///
/// A run may be executed again after a crash: write through a [`Ledger`](crate::Ledger) or [`Units`](crate::ledger::Units), or make
/// writes that may happen twice.
///
/// ```
/// use refrain::{Job, JobError, Run};
///
/// struct Greeting;
///
/// impl Job for Greeting {
///     const NAME: &'static str = "greeting";
///
///     async fn run(&self, run: &mut Run) -> Result<(), JobError> {
///         println!("hello, {}", run.key());
///         Ok(())
///     }
/// }
/// ```
pub trait Job: Send + Sync + 'static {
    /// The name. Runs are stored under it, so a job must declare its former names when it is renamed.
    const NAME: &'static str;

    /// Executes one attempt.
    fn run(&self, run: &mut Run) -> impl Future<Output = Result<(), JobError>> + Send;
}

type Attempt<'a> = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send + 'a>>;
type Found<'a> = Pin<Box<dyn Future<Output = Result<Vec<Scope>, JobError>> + Send + 'a>>;

trait Handler: Send + Sync {
    fn run<'a>(&'a self, run: &'a mut Run) -> Attempt<'a>;
}

impl<J: Job> Handler for J {
    fn run<'a>(&'a self, run: &'a mut Run) -> Attempt<'a> {
        Box::pin(Job::run(self, run))
    }
}

type Scopes = dyn Fn(Window) -> Found<'static> + Send + Sync;

/// A job with its policies.
///
/// ```
/// use refrain::core::{Dst, Grid, Schedule, Timetable, Zone};
/// use refrain::{CatchUp, Definition, Job, JobError, Run};
///
/// # struct Revenue;
/// # impl Job for Revenue {
/// #     const NAME: &'static str = "revenue-daily";
/// #     async fn run(&self, _: &mut Run) -> Result<(), JobError> { Ok(()) }
/// # }
/// let nightly = Timetable {
///     schedule: Schedule::parse("0 2 * * *")?,
///     zone: Zone::parse("Europe/Berlin")?,
///     grid: Grid::parse("day")?,
///     dst: Dst::default(),
///     start: None,
/// };
/// let job = Definition::of(Revenue)?.timetable(nightly).catch_up(CatchUp::All).version(1);
/// # Ok::<(), refrain::core::ParseError>(())
/// ```
#[derive(Clone)]
pub struct Definition {
    pub(crate) name: JobName,
    pub(crate) formerly: Vec<JobName>,
    /// The first name of the job, if the store knows one.
    pub(crate) first_name: Option<JobName>,
    handler: Arc<dyn Handler>,
    pub(crate) timetable: Option<Timetable>,
    pub(crate) catch_up: CatchUp,
    pub(crate) while_running: WhileRunning,
    pub(crate) concurrency: Option<u32>,
    pub(crate) retry: Retry,
    pub(crate) timeout: Duration,
    pub(crate) version: u32,
    pub(crate) grace: Option<Duration>,
    scopes: Option<Arc<Scopes>>,
    /// Whether a run without the payload of its key could do nothing.
    pub(crate) needs_payload: bool,
    /// The cursor by which its units are read, if it has one.
    pub(crate) cursor: Option<FeedCursor>,
}

impl Definition {
    /// A job with default policies and no timetable: its runs are enqueued by key.
    pub fn of<J: Job>(job: J) -> Result<Definition, ParseError> {
        Ok(Definition {
            name: JobName::parse(J::NAME)?,
            formerly: Vec::new(),
            first_name: None,
            handler: Arc::new(job),
            timetable: None,
            catch_up: CatchUp::default(),
            while_running: WhileRunning::default(),
            concurrency: None,
            retry: Retry::default(),
            timeout: TIMEOUT,
            version: 1,
            grace: None,
            scopes: None,
            needs_payload: false,
            cursor: None,
        })
    }

    /// Another name than [`Job::NAME`], for several jobs of one type.
    pub fn named(self, name: &str) -> Result<Definition, ParseError> {
        Ok(Definition { name: JobName::parse(name)?, ..self })
    }

    /// When the job ticks, and how time is divided into windows.
    #[must_use]
    pub fn timetable(self, timetable: Timetable) -> Definition {
        Definition { timetable: Some(timetable), ..self }
    }

    /// What happens to missed windows.
    #[must_use]
    pub fn catch_up(self, catch_up: CatchUp) -> Definition {
        Definition { catch_up, ..self }
    }

    /// What happens to a window while another run of its lane is active.
    #[must_use]
    pub fn while_running(self, while_running: WhileRunning) -> Definition {
        Definition { while_running, ..self }
    }

    /// How many runs of the job may execute at once, over all machines.
    #[must_use]
    pub fn concurrency(self, runs: u32) -> Definition {
        Definition { concurrency: Some(runs.max(1)), ..self }
    }

    /// How many attempts a run has, and the pauses between them.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Definition {
        Definition { retry, ..self }
    }

    /// How long an attempt may take.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Definition {
        Definition { timeout, ..self }
    }

    /// The version of its logic: finished windows of a lower one are outdated.
    #[must_use]
    pub fn version(self, version: u32) -> Definition {
        Definition { version, ..self }
    }

    /// How long after its tick a window must be done. A window that is not raises an alarm.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Definition {
        Definition { grace: Some(grace), ..self }
    }

    /// One run per window *and scope*: the window's own run evaluates this, and the result is stored.
    #[must_use]
    pub fn scopes<F>(self, find: impl Fn(Window) -> F + Send + Sync + 'static) -> Definition
    where
        F: Future<Output = Result<Vec<Scope>, JobError>> + Send + 'static,
    {
        Definition { scopes: Some(Arc::new(move |window| Box::pin(find(window)))), ..self }
    }

    /// Refuses to run a key that was never enqueued: such a run would have no payload, and its key would be spent.
    #[must_use]
    pub fn needs_payload(self) -> Definition {
        Definition { needs_payload: true, ..self }
    }

    /// Former names, newest first: runs and units of a former name belong to this job.
    #[must_use]
    pub fn formerly(self, names: Vec<JobName>) -> Definition {
        Definition { formerly: names, ..self }
    }

    /// The name.
    pub fn name(&self) -> &JobName {
        &self.name
    }

    /// The name under which its units are recorded: the first one it had.
    pub(crate) fn identity(&self) -> &JobName {
        self.first_name.as_ref().or(self.formerly.last()).unwrap_or(&self.name)
    }

    /// Whether its runs have lanes, in which the windows of one scope run one after another.
    pub(crate) fn has_lanes(&self) -> bool {
        self.timetable.is_some() && self.while_running != WhileRunning::Allow
    }

    pub(crate) fn has_scopes(&self) -> bool {
        self.scopes.is_some()
    }

    pub(crate) fn scopes_of(&self, window: Window) -> Option<Found<'static>> {
        self.scopes.as_ref().map(|find| find(window))
    }

    pub(crate) fn attempt<'a>(&'a self, run: &'a mut Run) -> Attempt<'a> {
        self.handler.run(run)
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The jobs of an engine. They may be replaced while it serves; a running attempt keeps the definition it began with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jobs(Arc<RwLock<Arc<Registry>>>);

impl Jobs {
    pub(crate) fn of(registry: Registry) -> Jobs {
        Jobs(Arc::new(RwLock::new(Arc::new(registry))))
    }

    pub(crate) fn now(&self) -> Arc<Registry> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, registry: Registry) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    pub(crate) fn get(&self, number: JobNumber) -> Option<Arc<Definition>> {
        self.now().get(number).cloned()
    }

    pub(crate) fn find(&self, name: &JobName) -> Option<(JobNumber, Arc<Definition>)> {
        self.now().find(name).map(|(number, definition)| (number, Arc::clone(definition)))
    }
}

/// The jobs at one moment, by name and by number.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    by_number: HashMap<JobNumber, Arc<Definition>>,
    by_name: HashMap<JobName, JobNumber>,
}

impl Registry {
    pub(crate) fn insert(&mut self, number: JobNumber, definition: Definition) {
        self.by_name.insert(definition.name.clone(), number);
        self.by_number.insert(number, Arc::new(definition));
    }

    pub(crate) fn get(&self, number: JobNumber) -> Option<&Arc<Definition>> {
        self.by_number.get(&number)
    }

    pub(crate) fn find(&self, name: &JobName) -> Option<(JobNumber, &Arc<Definition>)> {
        let number = *self.by_name.get(name)?;
        Some((number, self.by_number.get(&number)?))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (JobNumber, &Arc<Definition>)> {
        self.by_number.iter().map(|(number, definition)| (*number, definition))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &JobName> {
        self.by_name.keys()
    }

    pub(crate) fn retry_of(&self, number: JobNumber) -> Retry {
        self.get(number).map_or_else(Retry::default, |job| job.retry)
    }
}
