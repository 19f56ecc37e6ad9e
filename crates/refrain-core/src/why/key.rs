//! The outcome of a key: as a unit, as an effect, or as the name of a job that the caller meant.

use jiff::Timestamp;

use super::{Cause, Explanation, at, quoted, times, typed};
use crate::state::{EffectState, UnitStatus};

/// The facts about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFacts {
    /// The key.
    pub key: String,
    /// The units with this key.
    pub units: Vec<UnitFacts>,
    /// The effects about this key.
    pub effects: Vec<EffectFacts>,
    /// How many runs were enqueued under it.
    pub runs: usize,
    /// How many databases were searched.
    pub databases: usize,
    /// The newest run of the job of this name, if the key is the name of a job.
    pub job: Option<Option<String>>,
}

/// A unit with this key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFacts {
    /// The job, scope and window of its ledger: `invoice-sync`, `digest/acme`, `digest@2026-06-09T00:00:00Z`.
    pub ledger: String,
    /// The status of the unit.
    pub status: UnitStatus,
    /// The run that last tried it, as people write it.
    pub run: Option<String>,
    /// The attempt of that run.
    pub attempt: Option<u64>,
    /// The version of the job that tried it.
    pub version: u32,
    /// The time.
    pub at: Timestamp,
    /// The message of its failure.
    pub message: Option<String>,
    /// When it became in doubt, if it is.
    pub in_doubt_since: Option<Timestamp>,
    /// Later runs that deduplicated it, each with its reason: `stale`, `first-wins`, `already-applied`.
    pub left_alone: Vec<(String, String)>,
}

/// An effect about this key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectFacts {
    /// The name of the effect.
    pub name: String,
    /// The version of its rule.
    pub version: u32,
    /// Its state.
    pub state: EffectState,
    /// The run that first requested it, as people write it.
    pub run: Option<String>,
    /// When it arrived.
    pub at: Timestamp,
    /// The number of later requests for it.
    pub dedupes: u64,
}

/// The outcome of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyCause {
    /// A unit and its status.
    Unit {
        /// The key.
        key: String,
        /// The unit.
        unit: UnitFacts,
    },
    /// A run deduplicated the unit.
    UnitLeftAlone {
        /// The key.
        key: String,
        /// The run.
        run: String,
        /// The rule: `stale`, `first-wins`, `already-applied`, `many-contents`.
        reason: String,
    },
    /// An effect and its state.
    Effect {
        /// The key.
        key: String,
        /// The effect.
        effect: EffectFacts,
    },
    /// The key is the name of a job.
    Job {
        /// The name of the job.
        job: String,
        /// The newest of its runs.
        newest: Option<String>,
    },
    /// The key was not found.
    Nothing {
        /// The key.
        key: String,
        /// How many databases were searched.
        databases: usize,
    },
}

impl KeyFacts {
    pub(super) fn causes(&self) -> Vec<Cause> {
        let key = || self.key.clone();
        let mut units = self.units.clone();
        units.sort_by_key(|unit| matches!(unit.status, UnitStatus::Applied));
        let mut causes = Vec::new();
        for unit in units {
            let left_alone = unit.left_alone.clone();
            causes.push(KeyCause::Unit { key: key(), unit });
            causes.extend(left_alone.into_iter().map(|(run, reason)| KeyCause::UnitLeftAlone {
                key: key(),
                run,
                reason,
            }));
        }
        causes.extend(self.effects.iter().cloned().map(|effect| KeyCause::Effect { key: key(), effect }));
        if causes.is_empty() && self.runs == 0 {
            causes.push(match self.job.clone() {
                Some(newest) => KeyCause::Job { job: key(), newest },
                None => KeyCause::Nothing { key: key(), databases: self.databases },
            });
        }
        causes.into_iter().map(Cause::Key).collect()
    }
}

impl KeyCause {
    pub(super) fn explain(&self) -> Explanation {
        match self {
            KeyCause::Unit { key, unit } => explain_unit(key, unit),
            KeyCause::UnitLeftAlone { key, run, reason } => left_alone(key, run, reason),
            KeyCause::Effect { key, effect } => explain_effect(key, effect),
            KeyCause::Job { job, newest } => {
                let text = format!("{job} is a job, and not one of its runs");
                let advice = newest.as_deref().map_or_else(
                    || format!("it has no run yet: refrain status {job}"),
                    |newest| format!("its newest run: refrain why {}", typed(newest)),
                );
                Explanation::new("a-job", text).advise(advice)
            }
            KeyCause::Nothing { key, databases } => {
                let text = format!(
                    "Nothing is known of `{key}`: no unit in the searched databases ({databases}), no effect, no run"
                );
                Explanation::new("nothing-known", text).advise(
                    "a run is written JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY; a key as its job makes it",
                )
            }
        }
    }
}

fn explain_unit(key: &str, unit: &UnitFacts) -> Explanation {
    let UnitFacts { ledger, status, run, attempt, version, at: when, message, .. } = unit;
    let by = match (run, attempt) {
        (Some(run), Some(attempt)) => format!(" by {run}, attempt {attempt},"),
        (Some(run), None) => format!(" by {run},"),
        _ => String::new(),
    };
    let message = message.as_deref().map_or_else(String::new, |text| format!(": {}", quoted(text)));
    let retry = run.as_deref().map(|run| format!("refrain retry {} --unit {}", typed(run), typed(key)));
    let tail = format!("{by} at {} under version {version}", at(*when));
    if let Some(since) = unit.in_doubt_since {
        let text = format!("`{key}` of {ledger} is in doubt since {}, last tried{tail}{message}", at(since));
        let explanation = Explanation::new("in-doubt", text);
        return match retry {
            Some(retry) => explanation
                .advise(format!("check with the receiver; if it was done: {retry} --done; if not: {retry}")),
            None => explanation,
        };
    }
    let (rule, text) = match status {
        UnitStatus::Applied => ("applied", format!("`{key}` of {ledger} is applied,{tail}")),
        UnitStatus::Failed(count) => (
            "unit-failed",
            format!("`{key}` of {ledger} failed {}, last{tail}{message}", times((*count).into())),
        ),
        UnitStatus::Parked => (
            "parked",
            format!("`{key}` of {ledger} is parked: its attempts are used up, last{tail}{message}"),
        ),
    };
    let explanation = Explanation::new(rule, text);
    match (status, retry) {
        (UnitStatus::Applied, _) => explanation.advise(format!("refrain trace {}", typed(key))),
        (_, Some(retry)) => explanation.advise(retry),
        (_, None) => explanation,
    }
}

fn left_alone(key: &str, run: &str, reason: &str) -> Explanation {
    let why = match reason {
        "stale" => "newer content was recorded before, and a lower order never overwrites",
        "first-wins" => "other content came first, and on-change = \"first\" keeps it",
        "many-contents" => "it had several contents in one attempt, so the key may be too wide",
        _ => "it was applied before, in this version and content",
    };
    let text = format!("`{key}` was seen again by {run} and deduplicated ({reason}): {why}");
    Explanation::new("unit-deduplicated", text).advise(format!("refrain show {}", typed(run)))
}

fn explain_effect(key: &str, effect: &EffectFacts) -> Explanation {
    let EffectFacts { name, version, state, run, at: when, dedupes } = effect;
    let by = run.as_deref().map_or_else(String::new, |run| format!(" by {run}"));
    let again = match dedupes {
        0 => String::new(),
        dedupes => format!(", and deduplicated {} since", times(*dedupes)),
    };
    let text = format!(
        "The effect `{name}` about `{key}`, version {version}, is {state}: requested{by} at {}{again}",
        at(*when)
    );
    Explanation::new("effect", text).advise(format!("refrain trace {}", typed(key)))
}
