//! Why there is no run: it is not due, it is not expected, or no scheduler has opened it.

use jiff::Timestamp;

use super::{Cause, Explanation, JobContext, at, typed};
use crate::expectation::Expectation;
use crate::state::RunNode;

/// The facts about a run without a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentFacts {
    /// The run, as the caller wrote it.
    pub run: String,
    /// Its job and the workers of its store.
    pub context: JobContext,
    /// What is missing.
    pub missing: Missing,
}

/// What is missing, so that the run does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The job: neither this process nor the store has it.
    Job {
        /// Similar names.
        near: Vec<String>,
    },
    /// The record of a window.
    Window {
        /// The end of the window.
        end: Timestamp,
        /// Whether it must exist.
        expectation: Expectation,
    },
    /// The window: none begins at that time.
    NoWindow {
        /// The name that the caller wrote.
        window: String,
        /// Why it is not a window.
        reason: String,
        /// The runs of the windows around it.
        beside: Vec<String>,
    },
    /// The scope: the window does not have it.
    Scope {
        /// The window's own run.
        window: String,
        /// The state of that run.
        standing: RunNode,
        /// The scopes that it found, once it is done.
        frozen: Option<FrozenScopes>,
        /// Runs of this window with similar scopes.
        near: Vec<String>,
    },
    /// The key: it was never enqueued.
    Key {
        /// The key.
        key: String,
    },
}

/// The scopes that the run of a window found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrozenScopes {
    /// The number of scopes.
    pub scopes: u64,
    /// When that run ended.
    pub at: Option<Timestamp>,
}

/// Why a run does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbsentCause {
    /// There is no such job.
    UnknownJob {
        /// The name that the caller wrote.
        job: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// The window is not over.
    NotOver {
        /// The run.
        run: String,
        /// The end of the window.
        end: Timestamp,
        /// The tick that opens it, if any.
        opens_at: Option<Timestamp>,
    },
    /// The window is over, and its tick is in the future.
    NotDue {
        /// The run.
        run: String,
        /// The end of the window.
        end: Timestamp,
        /// The tick that opens it; `None` if there is no later tick.
        opens_at: Option<Timestamp>,
    },
    /// The window lies before the start of its timetable.
    LeftOut {
        /// The run.
        run: String,
        /// The number of the revision that left it out.
        revision: u32,
        /// The start of that revision's windows.
        from: Timestamp,
    },
    /// No window of the grid begins at that time.
    NoSuchWindow {
        /// The name of the job.
        job: String,
        /// The name that the caller wrote.
        window: String,
        /// Why it is not a window.
        reason: String,
        /// The runs of the windows around it.
        beside: Vec<String>,
    },
    /// The window is due, and no scheduler has opened it.
    NeverOpened {
        /// The run.
        run: String,
        /// The tick that should have opened it.
        due_at: Timestamp,
        /// The number of live workers.
        workers: u64,
        /// When an attempt of any job last ended in this store.
        last_seen: Option<Timestamp>,
    },
    /// The window has no such scope.
    UnknownScope {
        /// The run.
        run: String,
        /// The window's own run.
        window: String,
        /// The scopes that it has.
        frozen: FrozenScopes,
        /// Runs of this window with similar scopes.
        near: Vec<String>,
    },
    /// The run of the window has not found its scopes yet.
    NotExpanded {
        /// The run.
        run: String,
        /// The window's own run.
        window: String,
        /// The state of that run.
        standing: RunNode,
    },
    /// The key was never enqueued.
    NeverEnqueued {
        /// The run.
        run: String,
        /// The name of the job.
        job: String,
        /// The key.
        key: String,
    },
}

impl AbsentFacts {
    pub(super) fn causes(&self) -> Vec<Cause> {
        vec![Cause::Absent(self.cause())]
    }

    fn cause(&self) -> AbsentCause {
        let AbsentFacts { run, context, missing } = self;
        let (run, job) = (run.clone(), context.job.clone());
        match missing.clone() {
            Missing::Job { near } => AbsentCause::UnknownJob { job, near },
            Missing::Window { expectation: Expectation::LeftOut { revision, from }, .. } => {
                AbsentCause::LeftOut { run, revision, from }
            }
            Missing::Window { end, expectation: Expectation::Opens { tick, .. } } => match tick {
                tick if end > context.now => AbsentCause::NotOver { run, end, opens_at: tick },
                Some(due_at) if due_at <= context.now => {
                    let JobContext { workers, last_seen, .. } = *context;
                    AbsentCause::NeverOpened { run, due_at, workers, last_seen }
                }
                tick => AbsentCause::NotDue { run, end, opens_at: tick },
            },
            Missing::NoWindow { window, reason, beside } => {
                AbsentCause::NoSuchWindow { job, window, reason, beside }
            }
            Missing::Scope { window, frozen: Some(frozen), near, .. } => {
                AbsentCause::UnknownScope { run, window, frozen, near }
            }
            Missing::Scope { window, standing, frozen: None, .. } => {
                AbsentCause::NotExpanded { run, window, standing }
            }
            Missing::Key { key } => AbsentCause::NeverEnqueued { run, job, key },
        }
    }
}

impl AbsentCause {
    pub(super) fn explain(&self) -> Explanation {
        match self {
            AbsentCause::UnknownJob { job, near } => unknown_job(job, near),
            AbsentCause::NotOver { run, end, opens_at } => {
                let text =
                    format!("{run} is not over: the window ends at {}, and {}", at(*end), opens(*opens_at));
                Explanation::new("not-over", text)
                    .advise("wait: if it ran now, it would count as done without the rest of the window")
            }
            AbsentCause::NotDue { run, end, opens_at } => {
                let text =
                    format!("{run} is not due: the window ended at {}, and {}", at(*end), opens(*opens_at));
                Explanation::new("not-due", text).advise(format!("do it now: refrain run {}", typed(run)))
            }
            AbsentCause::LeftOut { run, revision, from } => {
                let text = format!(
                    "{run} is not expected: the windows of revision {revision} of the timetable begin at {}",
                    at(*from)
                );
                Explanation::new("left-out", text).advise(format!(
                    "run it anyway: refrain run {}; before the job's `start`, write an earlier one first",
                    typed(run)
                ))
            }
            AbsentCause::NoSuchWindow { job, window, reason, beside } => {
                no_such_window(job, window, reason, beside)
            }
            AbsentCause::NeverOpened { run, due_at, workers, last_seen } => {
                never_opened(run, *due_at, *workers, *last_seen)
            }
            AbsentCause::UnknownScope { run, window, frozen, near } => {
                unknown_scope(run, window, *frozen, near)
            }
            AbsentCause::NotExpanded { run, window, standing } => {
                let text = format!(
                    "{run} does not exist yet: the run {window} finds the scopes of its window, and is {standing}"
                );
                Explanation::new("not-expanded", text).advise(format!("refrain why {}", typed(window)))
            }
            AbsentCause::NeverEnqueued { run, job, key } => {
                let text = format!("{run} does not exist: this key was never enqueued");
                let enqueue = format!("refrain enqueue {job} --key {}", typed(key));
                Explanation::new("never-enqueued", text).advise(enqueue)
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

fn unknown_job(job: &str, near: &[String]) -> Explanation {
    let text = format!("There is no job `{job}`: it is known neither to this process nor to the store");
    Explanation::new("unknown-job", text).advise(match near {
        [] => "refrain status".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    })
}

fn no_such_window(job: &str, window: &str, reason: &str, beside: &[String]) -> Explanation {
    let explanation = Explanation::new("no-such-window", format!("{job} has no window `{window}`: {reason}"));
    explanation.advise(match beside {
        [] => format!("refrain next {job}"),
        beside => format!("the windows around it: {}", beside.join(", ")),
    })
}

fn never_opened(run: &str, due_at: Timestamp, workers: u64, last_seen: Option<Timestamp>) -> Explanation {
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
    let text = format!("{run} was due at {} and was never opened: {who}", at(due_at));
    Explanation::new("never-opened", text).advise("refrain serve, or to open all due windows: refrain tick")
}

fn unknown_scope(run: &str, window: &str, frozen: FrozenScopes, near: &[String]) -> Explanation {
    let when = frozen.at.map_or_else(String::new, |when| format!(" at {}", at(when)));
    let text = format!(
        "{run} does not exist: the scopes of {window} were frozen{when}, {} of them, and this is not one of them",
        frozen.scopes
    );
    Explanation::new("unknown-scope", text).advise(match near {
        [] => "the scopes of a window never change after it was expanded; a new scope begins with the next window".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    })
}
