//! Why did it run, or why not? What was read about a run or a key goes in; causes come out, the first of which is the answer.
//!
//! A cause names the run or the key, the rule that decided, and what to type next. Reading is the caller's: the same facts
//! give the same answer, so every cause is tested by table, and an answer can be repeated from what was written down.
//!
//! Rejected: one text that is put together while reading. What is known would then depend on the order of the reads, and
//! nobody could ask a program for the rule alone.

mod absent;
mod aside;
mod ended;
mod keyed;
mod open;
mod recorded;

use std::fmt;

use jiff::Timestamp;

pub use absent::{Absent, AbsentFacts, Frozen, Lack};
pub use aside::Aside;
pub use ended::Ended;
pub use keyed::{EffectFacts, KeyFacts, Keyed, UnitFacts};
pub use open::Open;
pub use recorded::{AskedAgain, Holder, RecordedFacts, Suspect, UnitLeft, Whereabouts};

use crate::parse_error::harmless;
use crate::terminal::typed;

/// The longest part of a message that an answer quotes, in characters.
const QUOTED_CHARACTERS: usize = 200;

/// The most names that one sentence lists.
const LISTED: usize = 5;

/// All that was read about what somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Facts {
    /// A run that has no record.
    Absent(AbsentFacts),
    /// A run that has one.
    Recorded(Box<RecordedFacts>),
    /// A key.
    Key(KeyFacts),
}

/// What is known around a run: its job, and who is at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The time by the clock of the store.
    pub now: Timestamp,
    /// The job.
    pub job: String,
    /// The version of its logic, if it is among the jobs of the process that was asked.
    pub version: Option<u32>,
    /// Since when the job is paused, if it is.
    pub paused_at: Option<Timestamp>,
    /// How many workers are heard of.
    pub workers: u64,
    /// How many runs they hold.
    pub under_way: u64,
    /// When an attempt of whatever job last ended in this store.
    pub last_seen: Option<Timestamp>,
    /// Whether the schedules of the store read a clock that was set.
    pub is_simulated: bool,
}

/// One cause. Those that follow the first are what else there is to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Why there is no run.
    Absent(Absent),
    /// What the open attempt of a run waits for.
    Open(Open),
    /// How a run last ended.
    Ended(Ended),
    /// What else happened to it.
    Aside(Aside),
    /// What became of a key.
    Keyed(Keyed),
    /// The process that was asked does not have the job.
    NotHere {
        /// The job.
        job: String,
    },
    /// The schedules of the store read a clock that was set.
    Simulated,
}

/// A cause in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The rule that decided, as a word that never changes.
    pub rule: &'static str,
    /// What is so.
    pub said: String,
    /// What to type next, or to do.
    pub advice: Option<String>,
}

/// Why it is so: the answer first, then what else there is to know.
///
/// ```
/// use refrain_core::why::{Absent, AbsentFacts, Cause, Facts, Lack, Setting, why};
///
/// let setting = Setting {
///     now: "2026-06-09T12:00:00Z".parse()?,
///     job: "welcome".to_owned(),
///     version: Some(1),
///     paused_at: None,
///     workers: 1,
///     under_way: 0,
///     last_seen: None,
///     is_simulated: false,
/// };
/// let facts = AbsentFacts { run: "welcome#42".to_owned(), setting, lack: Lack::Key { key: "42".to_owned() } };
/// let causes = why(&Facts::Absent(facts));
/// assert!(matches!(causes.as_slice(), [Cause::Absent(Absent::NeverEnqueued { .. })]));
/// assert_eq!(
///     causes[0].to_string(),
///     "welcome#42 does not exist: this key was never enqueued.\n  refrain enqueue welcome --key 42"
/// );
/// # Ok::<(), jiff::Error>(())
/// ```
pub fn why(facts: &Facts) -> Vec<Cause> {
    match facts {
        Facts::Absent(facts) => [facts.causes(), around(&facts.setting)].concat(),
        Facts::Recorded(facts) => [facts.causes(), around(&facts.setting)].concat(),
        Facts::Key(facts) => facts.causes(),
    }
}

fn around(setting: &Setting) -> Vec<Cause> {
    let not_here = setting.version.is_none().then(|| Cause::NotHere { job: setting.job.clone() });
    let simulated = setting.is_simulated.then_some(Cause::Simulated);
    not_here.into_iter().chain(simulated).collect()
}

impl Cause {
    /// The cause in words.
    pub fn told(&self) -> Told {
        match self {
            Cause::Absent(cause) => cause.told(),
            Cause::Open(cause) => cause.told(),
            Cause::Ended(cause) => cause.told(),
            Cause::Aside(cause) => cause.told(),
            Cause::Keyed(cause) => cause.told(),
            Cause::NotHere { job } => Told::new(
                "not-here",
                format!(
                    "{job} is not among the jobs of this process: its file was removed, or it is served elsewhere"
                ),
            )
            .next("refrain check"),
            Cause::Simulated => Told::new(
                "simulated",
                "The store is simulated: its schedules use a clock that was set, and no worker serves it",
            )
            .next("refrain tick --now TIME"),
        }
    }

    /// The rule that decided.
    pub fn rule(&self) -> &'static str {
        self.told().rule
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { said, advice, .. } = self.told();
        f.write_str(&said)?;
        advice.map_or(Ok(()), |advice| write!(f, "\n  {advice}"))
    }
}

impl Told {
    fn new(rule: &'static str, said: impl Into<String>) -> Told {
        let said: String = said.into();
        Told { rule, said: if said.ends_with(['.', '?']) { said } else { said + "." }, advice: None }
    }

    fn next(self, advice: impl Into<String>) -> Told {
        Told { advice: Some(advice.into()), ..self }
    }
}

/// An instant for people: in UTC, to the second.
fn at(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What a job has said, in quotes: it must not move the cursor of a terminal, nor fill the screen.
fn quoted(message: &str) -> String {
    let line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = harmless(&line).chars().take(QUOTED_CHARACTERS).collect();
    if line.chars().nth(QUOTED_CHARACTERS).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

/// When something ended, if that is known.
fn on(instant: Option<Timestamp>) -> String {
    instant.map_or_else(String::new, |instant| format!(" at {}", at(instant)))
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

/// A few of many.
fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    let more = names.len().saturating_sub(LISTED);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// The known names that are most like a wrong one, at most three.
///
/// ```
/// use refrain_core::why::near;
///
/// assert_eq!(near("revnue", ["revenue", "welcome", "avenue"]), ["revenue", "avenue"]);
/// assert!(near("x", ["revenue"]).is_empty());
/// ```
pub fn near<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let most = (name.chars().count() / 3).clamp(1, 3);
    let distances = known.into_iter().map(|one| (strsim::damerau_levenshtein(one, name), one));
    let mut like: Vec<(usize, &str)> = distances.filter(|(distance, _)| *distance <= most).collect();
    like.sort_unstable();
    like.into_iter().take(3).map(|(_, one)| one.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_means_itself_to_a_shell() {
        for (name, shown) in [
            ("welcome#42", "welcome#42"),
            ("digest@2026-06-09T14:00/acme", "digest@2026-06-09T14:00/acme"),
            ("digest@2026-06-09/Zürich", "digest@2026-06-09/Zürich"),
            ("digest@2026-06-09/a b", "'digest@2026-06-09/a b'"),
            ("w#$(rm -rf ~)", "'w#$(rm -rf ~)'"),
            ("w#it's", r"'w#it'\''s'"),
            ("--again", "'--again'"),
            ("#x", "'#x'"),
            ("", "''"),
        ] {
            assert_eq!(typed(name), shown);
        }
    }

    #[test]
    fn what_a_job_said_stays_on_one_line_and_is_cut() {
        assert_eq!(quoted("no such\n\ttable\u{1b}[2J"), "\"no such table\u{fffd}[2J\"");
        assert_eq!(quoted(&"ä".repeat(1_000)).chars().count(), QUOTED_CHARACTERS + 3);
    }
}
