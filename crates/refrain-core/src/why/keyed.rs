//! What became of a key: as a unit beside somebody's rows, as an effect, or as the name of a job that was meant.

use jiff::Timestamp;

use super::{Cause, Told, at, quoted, times, typed};
use crate::state::{EffectState, UnitStatus};

/// What was read about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFacts {
    /// The key.
    pub key: String,
    /// Units with it.
    pub units: Vec<UnitFacts>,
    /// Effects about it.
    pub effects: Vec<EffectFacts>,
    /// How many runs were enqueued under it.
    pub runs: usize,
    /// How many databases were looked at.
    pub databases: usize,
    /// If it is the name of a job: that, and the newest of its runs.
    pub job: Option<Option<String>>,
}

/// A unit with this key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFacts {
    /// Of which job, in which scope and window: `invoice-sync`, `digest/acme`, `digest@2026-06-09T00:00:00Z`.
    pub ledger: String,
    /// What became of it.
    pub status: UnitStatus,
    /// The run that last tried it, as people write it.
    pub run: Option<String>,
    /// The attempt of that run.
    pub attempt: Option<u64>,
    /// The version of the job that tried it.
    pub version: u32,
    /// When.
    pub at: Timestamp,
    /// What its failure said.
    pub message: Option<String>,
    /// Since when it is in doubt, if it is.
    pub in_doubt_since: Option<Timestamp>,
    /// Runs that met it later and left it alone, with the reason of each: `stale`, `first-wins`, `already-applied`.
    pub left_alone: Vec<(String, String)>,
}

/// An effect about this key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectFacts {
    /// Which effect it is.
    pub name: String,
    /// The version of its rule.
    pub version: u32,
    /// Where it stands.
    pub state: EffectState,
    /// Who wished for it first, as people write it.
    pub run: Option<String>,
    /// When it arrived.
    pub at: Timestamp,
    /// How often it was wished for again.
    pub dedupes: u64,
}

/// What became of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keyed {
    /// A unit, and what became of it.
    Unit {
        /// The key.
        key: String,
        /// The unit.
        unit: UnitFacts,
    },
    /// A run met the unit and left it alone.
    UnitLeftAlone {
        /// The key.
        key: String,
        /// The run.
        run: String,
        /// The rule: `stale`, `first-wins`, `already-applied`, `many-contents`.
        reason: String,
    },
    /// An effect, and where it stands.
    Effect {
        /// The key.
        key: String,
        /// The effect.
        effect: EffectFacts,
    },
    /// It is a job, and no run.
    Job {
        /// The job.
        job: String,
        /// The newest of its runs.
        newest: Option<String>,
    },
    /// Nothing is known of it.
    Nothing {
        /// The key.
        key: String,
        /// How many databases were looked at.
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
            causes.push(Keyed::Unit { key: key(), unit });
            causes.extend(left_alone.into_iter().map(|(run, reason)| Keyed::UnitLeftAlone {
                key: key(),
                run,
                reason,
            }));
        }
        causes.extend(self.effects.iter().cloned().map(|effect| Keyed::Effect { key: key(), effect }));
        if causes.is_empty() && self.runs == 0 {
            causes.push(match self.job.clone() {
                Some(newest) => Keyed::Job { job: key(), newest },
                None => Keyed::Nothing { key: key(), databases: self.databases },
            });
        }
        causes.into_iter().map(Cause::Keyed).collect()
    }
}

impl Keyed {
    pub(super) fn told(&self) -> Told {
        match self {
            Keyed::Unit { key, unit } => unit_told(key, unit),
            Keyed::UnitLeftAlone { key, run, reason } => left_alone(key, run, reason),
            Keyed::Effect { key, effect } => effect_told(key, effect),
            Keyed::Job { job, newest } => {
                let said = format!("{job} is a job, and not one of its runs");
                let advice = newest.as_deref().map_or_else(
                    || format!("it has no run yet: refrain status {job}"),
                    |newest| format!("its newest run: refrain why {}", typed(newest)),
                );
                Told::new("a-job", said).next(advice)
            }
            Keyed::Nothing { key, databases } => {
                let said = format!(
                    "Nothing is known of `{key}`: no unit in the searched databases ({databases}), no effect, no run"
                );
                Told::new("nothing-known", said).next(
                    "a run is written JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY; a key as its job makes it",
                )
            }
        }
    }
}

fn unit_told(key: &str, unit: &UnitFacts) -> Told {
    let UnitFacts { ledger, status, run, attempt, version, at: when, message, .. } = unit;
    let by = match (run, attempt) {
        (Some(run), Some(attempt)) => format!(" by {run}, attempt {attempt},"),
        (Some(run), None) => format!(" by {run},"),
        _ => String::new(),
    };
    let message = message.as_deref().map_or_else(String::new, |said| format!(": {}", quoted(said)));
    let retry = run.as_deref().map(|run| format!("refrain retry {} --unit {}", typed(run), typed(key)));
    let tail = format!("{by} at {} under version {version}", at(*when));
    if let Some(since) = unit.in_doubt_since {
        let said = format!("`{key}` of {ledger} is in doubt since {}, last tried{tail}{message}", at(since));
        let told = Told::new("in-doubt", said);
        return match retry {
            Some(retry) => {
                told.next(format!("check with the receiver; if it was done: {retry} --done; if not: {retry}"))
            }
            None => told,
        };
    }
    let (rule, said) = match status {
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
    let told = Told::new(rule, said);
    match (status, retry) {
        (UnitStatus::Applied, _) => told.next(format!("refrain trace {}", typed(key))),
        (_, Some(retry)) => told.next(retry),
        (_, None) => told,
    }
}

fn left_alone(key: &str, run: &str, reason: &str) -> Told {
    let why = match reason {
        "stale" => "newer content was recorded before, and a lower order never overwrites",
        "first-wins" => "other content came first, and on-change = \"first\" keeps it",
        "many-contents" => "it had several contents in one attempt, so the key may be too wide",
        _ => "it was applied before, in this version and content",
    };
    let said = format!("`{key}` was seen again by {run} and deduplicated ({reason}): {why}");
    Told::new("unit-deduplicated", said).next(format!("refrain show {}", typed(run)))
}

fn effect_told(key: &str, effect: &EffectFacts) -> Told {
    let EffectFacts { name, version, state, run, at: when, dedupes } = effect;
    let by = run.as_deref().map_or_else(String::new, |run| format!(" by {run}"));
    let again = match dedupes {
        0 => String::new(),
        dedupes => format!(", and deduplicated {} since", times(*dedupes)),
    };
    let said = format!(
        "The effect `{name}` about `{key}`, version {version}, is {state}: requested{by} at {}{again}",
        at(*when)
    );
    Told::new("effect", said).next(format!("refrain trace {}", typed(key)))
}
