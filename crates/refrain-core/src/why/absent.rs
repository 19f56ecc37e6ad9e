//! Why there is no run: its time has not come, nobody expects it, or nobody was there to open it.

use jiff::Timestamp;

use super::{Cause, Setting, Told, at, typed};
use crate::expectation::Expectation;
use crate::state::RunNode;

/// What was read about a run that has no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentFacts {
    /// The run, as it was asked for.
    pub run: String,
    /// What is known around it.
    pub setting: Setting,
    /// What it lacks.
    pub lack: Lack,
}

/// What there is instead of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// No job has this name, neither here nor in the store.
    Job {
        /// Names that are like it.
        near: Vec<String>,
    },
    /// A window of the grid without a record.
    Window {
        /// When it ends.
        end: Timestamp,
        /// Whether it must exist.
        expectation: Expectation,
    },
    /// No window begins then.
    NoWindow {
        /// What was asked for.
        window: String,
        /// Why it is none.
        reason: String,
        /// The runs of the windows around it.
        beside: Vec<String>,
    },
    /// A scope that the window does not have.
    Scope {
        /// The window's own run.
        window: String,
        /// Where that run stands.
        standing: RunNode,
        /// What it found, once it has.
        frozen: Option<Frozen>,
        /// Runs of this window whose scopes are like it.
        near: Vec<String>,
    },
    /// A key that nobody has enqueued.
    Key {
        /// The key.
        key: String,
    },
}

/// The scopes of a window, as its own run found them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frozen {
    /// How many there are.
    pub scopes: u64,
    /// When that run ended.
    pub at: Option<Timestamp>,
}

/// Why there is no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// There is no such job.
    UnknownJob {
        /// What was asked for.
        job: String,
        /// Names that are like it.
        near: Vec<String>,
    },
    /// The window is not over.
    NotOver {
        /// The run.
        run: String,
        /// When it ends.
        end: Timestamp,
        /// When it opens.
        opens_at: Option<Timestamp>,
    },
    /// The window is over, and its tick has not come.
    NotDue {
        /// The run.
        run: String,
        /// When it ended.
        end: Timestamp,
        /// When it opens; none if there is no tick any more.
        opens_at: Option<Timestamp>,
    },
    /// The window lies before the time that its timetable cares for.
    LeftOut {
        /// The run.
        run: String,
        /// The number of the revision that left it out.
        revision: u32,
        /// Where the windows of that revision begin.
        from: Timestamp,
    },
    /// No window of the grid begins then.
    NoSuchWindow {
        /// The job.
        job: String,
        /// What was asked for.
        window: String,
        /// Why it is none.
        reason: String,
        /// The runs of the windows around it.
        beside: Vec<String>,
    },
    /// Its tick has come, and nobody has opened it.
    NeverOpened {
        /// The run.
        run: String,
        /// When it was due.
        due_at: Timestamp,
        /// How many workers are heard of.
        workers: u64,
        /// When an attempt last ended in this store.
        last_seen: Option<Timestamp>,
    },
    /// The window has no such scope.
    UnknownScope {
        /// The run.
        run: String,
        /// The window's own run.
        window: String,
        /// The scopes that it has.
        frozen: Frozen,
        /// Runs of this window whose scopes are like it.
        near: Vec<String>,
    },
    /// The scopes of the window are not known yet.
    NotExpanded {
        /// The run.
        run: String,
        /// The window's own run.
        window: String,
        /// Where that run stands.
        standing: RunNode,
    },
    /// Nobody has enqueued the key.
    NeverEnqueued {
        /// The run.
        run: String,
        /// The job.
        job: String,
        /// The key.
        key: String,
    },
}

impl AbsentFacts {
    pub(super) fn causes(&self) -> Vec<Cause> {
        vec![Cause::Absent(self.cause())]
    }

    fn cause(&self) -> Absent {
        let AbsentFacts { run, setting, lack } = self;
        let (run, job) = (run.clone(), setting.job.clone());
        match lack.clone() {
            Lack::Job { near } => Absent::UnknownJob { job, near },
            Lack::Window { expectation: Expectation::LeftOut { revision, from }, .. } => {
                Absent::LeftOut { run, revision, from }
            }
            Lack::Window { end, expectation: Expectation::Opens { tick, .. } } => match tick {
                tick if end > setting.now => Absent::NotOver { run, end, opens_at: tick },
                Some(due_at) if due_at <= setting.now => {
                    let Setting { workers, last_seen, .. } = *setting;
                    Absent::NeverOpened { run, due_at, workers, last_seen }
                }
                tick => Absent::NotDue { run, end, opens_at: tick },
            },
            Lack::NoWindow { window, reason, beside } => Absent::NoSuchWindow { job, window, reason, beside },
            Lack::Scope { window, frozen: Some(frozen), near, .. } => {
                Absent::UnknownScope { run, window, frozen, near }
            }
            Lack::Scope { window, standing, frozen: None, .. } => {
                Absent::NotExpanded { run, window, standing }
            }
            Lack::Key { key } => Absent::NeverEnqueued { run, job, key },
        }
    }
}

impl Absent {
    pub(super) fn told(&self) -> Told {
        match self {
            Absent::UnknownJob { job, near } => unknown_job(job, near),
            Absent::NotOver { run, end, opens_at } => {
                let said =
                    format!("{run} is not over: the window ends at {}, and {}", at(*end), opens(*opens_at));
                Told::new("not-over", said)
                    .next("wait: if it ran now, it would count as done without the rest of the window")
            }
            Absent::NotDue { run, end, opens_at } => {
                let said =
                    format!("{run} is not due: the window ended at {}, and {}", at(*end), opens(*opens_at));
                Told::new("not-due", said).next(format!("do it now: refrain run {}", typed(run)))
            }
            Absent::LeftOut { run, revision, from } => {
                let said = format!(
                    "{run} is not expected: the windows of revision {revision} of the timetable begin at {}",
                    at(*from)
                );
                Told::new("left-out", said).next(format!(
                    "run it anyway: refrain run {}; before the job's `start`, write an earlier one first",
                    typed(run)
                ))
            }
            Absent::NoSuchWindow { job, window, reason, beside } => {
                no_such_window(job, window, reason, beside)
            }
            Absent::NeverOpened { run, due_at, workers, last_seen } => {
                never_opened(run, *due_at, *workers, *last_seen)
            }
            Absent::UnknownScope { run, window, frozen, near } => unknown_scope(run, window, *frozen, near),
            Absent::NotExpanded { run, window, standing } => {
                let said = format!(
                    "{run} does not exist yet: the run {window} finds the scopes of its window, and is {standing}"
                );
                Told::new("not-expanded", said).next(format!("refrain why {}", typed(window)))
            }
            Absent::NeverEnqueued { run, job, key } => {
                let said = format!("{run} does not exist: this key was never enqueued");
                let enqueue = format!("refrain enqueue {job} --key {}", typed(key));
                Told::new("never-enqueued", said).next(enqueue)
            }
        }
    }
}

fn opens(tick: Option<Timestamp>) -> String {
    match tick {
        Some(tick) => format!("it opens at {}, the first tick at or after its end", at(tick)),
        None => "no later tick opens it".to_owned(),
    }
}

fn unknown_job(job: &str, near: &[String]) -> Told {
    let said = format!("There is no job `{job}`: it is known neither to this process nor to the store");
    Told::new("unknown-job", said).next(match near {
        [] => "refrain status".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    })
}

fn no_such_window(job: &str, window: &str, reason: &str, beside: &[String]) -> Told {
    let told = Told::new("no-such-window", format!("{job} has no window `{window}`: {reason}"));
    told.next(match beside {
        [] => format!("refrain next {job}"),
        beside => format!("the windows around it: {}", beside.join(", ")),
    })
}

fn never_opened(run: &str, due_at: Timestamp, workers: u64, last_seen: Option<Timestamp>) -> Told {
    let seen = last_seen.map_or_else(
        || "nothing has ever run in this store".to_owned(),
        |seen| format!("the last attempt in this store ended at {}", at(seen)),
    );
    let who = match workers {
        0 => format!("no worker is alive, and {seen}"),
        workers => {
            format!("workers are alive ({workers}), but no scheduler has opened it; {seen}")
        }
    };
    let said = format!("{run} was due at {} and was never opened: {who}", at(due_at));
    Told::new("never-opened", said).next("refrain serve, or to open all due windows: refrain tick")
}

fn unknown_scope(run: &str, window: &str, frozen: Frozen, near: &[String]) -> Told {
    let when = frozen.at.map_or_else(String::new, |when| format!(" at {}", at(when)));
    let said = format!(
        "{run} does not exist: the scopes of {window} were frozen{when}, {} of them, and this is not one of them",
        frozen.scopes
    );
    Told::new("unknown-scope", said).next(match near {
        [] => "a scope that appeared later gets earlier windows only by a backfill".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    })
}
