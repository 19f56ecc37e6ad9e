//! What a job is to the engine: a name, something that can be run, and the policies that go with it.

mod error;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use refrain_core::{CatchUp, JobName, ParseError, Retry, Scope, Timetable, Window};

use crate::run::Run;
use crate::store::queue_line::JobNumber;
pub use error::JobError;
pub use refrain_core::WhileRunning;

/// How long a run may take unless its job says otherwise.
pub const TIMEOUT: Duration = Duration::from_hours(1);

/// Work with a name.
///
/// A run may be executed again after a crash: what it writes must go through something that knows what was
/// done, or must do no harm when done twice.
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
    /// What it is called. A name is for ever: runs are stored under it.
    const NAME: &'static str;

    /// Does the work of one attempt.
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
    /// The first name, if the store knows another one.
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
}

impl Definition {
    /// A job with the usual policies and no timetable: its runs are enqueued by key.
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
        })
    }

    /// Gives it another name, for one kind of work that several jobs do.
    pub fn named(self, name: &str) -> Result<Definition, ParseError> {
        Ok(Definition { name: JobName::parse(name)?, ..self })
    }

    /// When it ticks and how its time is cut into windows.
    #[must_use]
    pub fn timetable(self, timetable: Timetable) -> Definition {
        Definition { timetable: Some(timetable), ..self }
    }

    /// What becomes of missed windows.
    #[must_use]
    pub fn catch_up(self, catch_up: CatchUp) -> Definition {
        Definition { catch_up, ..self }
    }

    /// What a window does while another run of its lane is under way.
    #[must_use]
    pub fn while_running(self, while_running: WhileRunning) -> Definition {
        Definition { while_running, ..self }
    }

    /// How many of its runs may be under way at once, on all machines together.
    #[must_use]
    pub fn concurrency(self, runs: u32) -> Definition {
        Definition { concurrency: Some(runs.max(1)), ..self }
    }

    /// How often, and after what waits, it is tried.
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

    /// How long after its tick a window must be done; one that is not is late, and somebody hears of it.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Definition {
        Definition { grace: Some(grace), ..self }
    }

    /// One run per window *and scope*: the window's own run evaluates this and freezes what it finds.
    #[must_use]
    pub fn scopes<F>(self, find: impl Fn(Window) -> F + Send + Sync + 'static) -> Definition
    where
        F: Future<Output = Result<Vec<Scope>, JobError>> + Send + 'static,
    {
        Definition { scopes: Some(Arc::new(move |window| Box::pin(find(window)))), ..self }
    }

    /// What it was called before, newest name first: its runs and units are those of the old name.
    #[must_use]
    pub fn formerly(self, names: Vec<JobName>) -> Definition {
        Definition { formerly: names, ..self }
    }

    /// What it is called.
    pub fn name(&self) -> &JobName {
        &self.name
    }

    /// The name under which its units are remembered: the first one it had.
    pub(crate) fn identity(&self) -> &JobName {
        self.first_name.as_ref().or(self.formerly.last()).unwrap_or(&self.name)
    }

    /// Whether its runs stay in lanes: windows of one scope one after another.
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

/// The jobs that an engine knows. They may be replaced while it serves: whoever asks gets those of this moment, and an
/// attempt that is under way keeps the definition it began with.
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

/// The jobs that are known at one moment, by name and by number.
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
