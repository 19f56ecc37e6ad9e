//! How a run last ended.

use jiff::Timestamp;

use super::{Explanation, UnappliedUnit, listed, on, quoted, typed};

/// How a run last ended, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedCause {
    /// The run is done.
    Done {
        /// The run.
        run: String,
        /// The attempt that completed it.
        attempt: u64,
        /// The time.
        at: Option<Timestamp>,
        /// The job version of that attempt.
        version: Option<u32>,
    },
    /// The run is done except for its effects.
    WaitsForEffects {
        /// The run.
        run: String,
        /// The attempt that completed it.
        attempt: u64,
    },
    /// The run failed and is not retried.
    Failed {
        /// The run.
        run: String,
        /// The last attempt.
        attempt: u64,
        /// The time.
        at: Option<Timestamp>,
        /// The message of the attempt.
        message: Option<String>,
        /// The first of its units that are in doubt.
        doubtful: Vec<String>,
    },
    /// Its command was interrupted and waits for a decision of the operator.
    Held {
        /// The run.
        run: String,
        /// The last attempt.
        attempt: u64,
        /// The time.
        at: Option<Timestamp>,
        /// The message of the attempt.
        message: Option<String>,
    },
    /// Some units of the run are not applied.
    Partial {
        /// The run.
        run: String,
        /// The message of the attempt.
        message: Option<String>,
        /// The first of those units.
        units: Vec<UnappliedUnit>,
    },
    /// An operator cancelled the run.
    Cancelled {
        /// The run.
        run: String,
        /// The time.
        at: Option<Timestamp>,
    },
    /// The run was skipped.
    Skipped {
        /// The run.
        run: String,
        /// The time.
        at: Option<Timestamp>,
        /// The rule that skipped it.
        reason: String,
    },
}

impl EndedCause {
    pub(super) fn explain(&self) -> Explanation {
        match self {
            EndedCause::Done { run, attempt, at, version } => {
                let version = version.map_or_else(String::new, |version| format!(" under version {version}"));
                let text = format!("{run} is done, by attempt {attempt}{}{version}", on(*at));
                Explanation::new("done", text)
                    .advise(format!("run it again anyway: refrain run {} --again", typed(run)))
            }
            EndedCause::WaitsForEffects { run, attempt } => {
                let text = format!("{run} is complete with attempt {attempt}, and waits for its effects");
                Explanation::new("waits-for-effects", text)
                    .advise(format!("its details: refrain show {}", typed(run)))
            }
            EndedCause::Failed { run, attempt, at, message, doubtful } => {
                let message = quoted(message.as_deref().unwrap_or("no message"));
                let text = format!("{run} failed for good with attempt {attempt}{}: {message}", on(*at));
                match doubtful.first() {
                    Some(key) => {
                        Explanation::new("failed", format!("{text}; in doubt: {}", listed(doubtful)))
                            .advise(decide(run, key))
                    }
                    None => Explanation::new("failed", text).advise(format!("refrain retry {}", typed(run))),
                }
            }
            EndedCause::Held { run, attempt, at, message } => {
                let message = quoted(message.as_deref().unwrap_or("no message"));
                let text = format!(
                    "{run} waits for an operator: its command was interrupted in attempt {attempt}{}: {message}",
                    on(*at)
                );
                let run = typed(run);
                Explanation::new("held", text).advise(format!(
                    "if it was done: refrain retry {run} --done; to execute it again: refrain retry {run}"
                ))
            }
            EndedCause::Partial { run, message, units } => partial(run, message.as_deref(), units),
            EndedCause::Cancelled { run, at } => {
                let text = format!("{run} was cancelled{} by an operator", on(*at));
                Explanation::new("cancelled", text).advise(format!("refrain retry {}", typed(run)))
            }
            EndedCause::Skipped { run, at, reason } => {
                let text = format!("{run} was skipped{}: {reason}", on(*at));
                Explanation::new("skipped", text).advise(format!("run it anyway: refrain run {}", typed(run)))
            }
        }
    }
}

fn partial(run: &str, message: Option<&str>, units: &[UnappliedUnit]) -> Explanation {
    let text = message.map_or_else(String::new, |text| format!(": {}", quoted(text)));
    let keys = |is: fn(&&UnappliedUnit) -> bool| -> Vec<String> {
        units.iter().filter(is).map(|unit| unit.key.clone()).collect()
    };
    let doubtful = keys(|unit| unit.is_in_doubt);
    let parked = keys(|unit| unit.is_parked && !unit.is_in_doubt);
    let failed = keys(|unit| !unit.is_parked && !unit.is_in_doubt);
    let named = |word: &str, keys: &[String]| match keys {
        [] => String::new(),
        keys => format!("; {word}: {}", listed(keys)),
    };
    let left = named("in doubt", &doubtful) + &named("parked", &parked) + &named("failed", &failed);
    let waits = if doubtful.is_empty() { "" } else { ", and waits for an operator" };
    let explanation = Explanation::new("partial", format!("{run} is partial{waits}{text}{left}"));
    match (doubtful.first(), parked.first()) {
        (Some(key), _) => explanation.advise(decide(run, key)),
        (None, Some(key)) => {
            explanation.advise(format!("refrain retry {} --unit {}", typed(run), typed(key)))
        }
        (None, None) => explanation.advise(format!("refrain retry {}", typed(run))),
    }
}

/// The two commands that decide a unit in doubt.
fn decide(run: &str, key: &str) -> String {
    let (run, key) = (typed(run), typed(key));
    format!(
        "if it was done: refrain retry {run} --unit {key} --done; to send it again: refrain retry {run} --unit {key}; \
         what is known of it: refrain trace {key}"
    )
}
