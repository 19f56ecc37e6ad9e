//! How a run last ended.

use jiff::Timestamp;

use super::{Told, UnitLeft, listed, on, quoted, typed};

/// How a run last ended, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It is done.
    Done {
        /// The run.
        run: String,
        /// The attempt that did it.
        attempt: u64,
        /// When.
        at: Option<Timestamp>,
        /// Under which version.
        version: Option<u32>,
    },
    /// It is done, but for effects.
    WaitsForEffects {
        /// The run.
        run: String,
        /// The attempt that did it.
        attempt: u64,
    },
    /// It failed for good.
    Failed {
        /// The run.
        run: String,
        /// The last attempt.
        attempt: u64,
        /// When.
        at: Option<Timestamp>,
        /// What it said.
        message: Option<String>,
        /// The first of its units that are in doubt.
        doubtful: Vec<String>,
    },
    /// Its command was cut off, and is not executed again before a person has looked.
    Held {
        /// The run.
        run: String,
        /// The last attempt.
        attempt: u64,
        /// When.
        at: Option<Timestamp>,
        /// What it said.
        message: Option<String>,
    },
    /// Some of its units are not applied.
    Partial {
        /// The run.
        run: String,
        /// What it said.
        message: Option<String>,
        /// The first of those units.
        units: Vec<UnitLeft>,
    },
    /// A person called it off.
    Cancelled {
        /// The run.
        run: String,
        /// When.
        at: Option<Timestamp>,
    },
    /// It was passed over.
    Skipped {
        /// The run.
        run: String,
        /// When.
        at: Option<Timestamp>,
        /// The rule that passed it over.
        reason: String,
    },
}

impl Ended {
    pub(super) fn told(&self) -> Told {
        match self {
            Ended::Done { run, attempt, at, version } => {
                let version = version.map_or_else(String::new, |version| format!(" under version {version}"));
                let said = format!("{run} is done, by attempt {attempt}{}{version}", on(*at));
                Told::new("done", said)
                    .next(format!("run it again anyway: refrain run {} --again", typed(run)))
            }
            Ended::WaitsForEffects { run, attempt } => {
                let said = format!("{run} is complete with attempt {attempt}, and waits for its effects");
                Told::new("waits-for-effects", said).next("refrain effects")
            }
            Ended::Failed { run, attempt, at, message, doubtful } => {
                let message = quoted(message.as_deref().unwrap_or("no message"));
                let said = format!("{run} failed for good with attempt {attempt}{}: {message}", on(*at));
                match doubtful.first() {
                    Some(key) => Told::new("failed", format!("{said}; in doubt: {}", listed(doubtful)))
                        .next(decide(run, key)),
                    None => Told::new("failed", said).next(format!("refrain retry {}", typed(run))),
                }
            }
            Ended::Held { run, attempt, at, message } => {
                let message = quoted(message.as_deref().unwrap_or("no message"));
                let said = format!(
                    "{run} waits for an operator: its command was interrupted in attempt {attempt}{}: {message}",
                    on(*at)
                );
                let run = typed(run);
                Told::new("held", said).next(format!(
                    "if it was done: refrain retry {run} --done; to execute it again: refrain retry {run}"
                ))
            }
            Ended::Partial { run, message, units } => partial(run, message.as_deref(), units),
            Ended::Cancelled { run, at } => {
                let said = format!("{run} was cancelled{} by an operator", on(*at));
                Told::new("cancelled", said).next(format!("refrain retry {}", typed(run)))
            }
            Ended::Skipped { run, at, reason } => {
                let said = format!("{run} was skipped{}: {reason}", on(*at));
                Told::new("skipped", said).next(format!("run it anyway: refrain run {}", typed(run)))
            }
        }
    }
}

fn partial(run: &str, message: Option<&str>, units: &[UnitLeft]) -> Told {
    let said = message.map_or_else(String::new, |said| format!(": {}", quoted(said)));
    let keys = |is: fn(&&UnitLeft) -> bool| -> Vec<String> {
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
    let told = Told::new("partial", format!("{run} is partial{waits}{said}{left}"));
    match (doubtful.first(), parked.first()) {
        (Some(key), _) => told.next(decide(run, key)),
        (None, Some(key)) => told.next(format!("refrain retry {} --unit {}", typed(run), typed(key))),
        (None, None) => told.next(format!("refrain retry {}", typed(run))),
    }
}

/// The two words that settle a unit in doubt.
fn decide(run: &str, key: &str) -> String {
    let (run, key) = (typed(run), typed(key));
    format!(
        "if it was done: refrain retry {run} --unit {key} --done; to send it again: refrain retry {run} --unit {key}; \
         what is known of it: refrain trace {key}"
    )
}
