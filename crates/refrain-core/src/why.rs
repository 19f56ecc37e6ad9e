//! Why a run happened or not: facts about a run or a key go in, causes come out; the first cause is the answer.
//!
//! A cause names the run or the key, the rule that decided, and what to type next. The caller reads the facts: the same facts
//! give the same answer, so every cause is tested by table, and an answer can be repeated from recorded facts.
//!
//! Rejected: one text that is assembled while reading. It would depend on the order of the reads, and a program could not
//! ask for the rule alone.

mod absent;
mod ended;
mod key;
mod note;
mod open;
mod recorded;

use std::fmt;

use jiff::Timestamp;

pub use absent::{AbsentCause, AbsentFacts, FrozenScopes, Missing};
pub use ended::EndedCause;
pub use key::{EffectFacts, KeyCause, KeyFacts, UnitFacts};
pub use note::Note;
pub use open::OpenCause;
pub use recorded::{AttemptState, LaneHolder, RecordedFacts, RepeatedRequests, UnappliedUnit, WideKeys};

use crate::parse_error::message_text;
use crate::terminal::typed;

/// The longest part of a message that an answer quotes, in characters.
const QUOTED_CHARACTERS: usize = 200;

/// The most names that one sentence lists.
const LISTED: usize = 5;

/// The facts about a run or a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyFacts {
    /// The facts about a run without a record.
    Absent(AbsentFacts),
    /// The facts about a run with a record.
    Recorded(Box<RecordedFacts>),
    /// The facts about a key.
    Key(KeyFacts),
}

/// The job of a run and the workers of its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobContext {
    /// The time by the store's clock.
    pub now: Timestamp,
    /// The name of the job.
    pub job: String,
    /// The version of its logic; `None` if this process does not have the job.
    pub version: Option<u32>,
    /// When the job was paused, if it is paused.
    pub paused_at: Option<Timestamp>,
    /// The number of live workers.
    pub workers: u64,
    /// The number of runs that they hold.
    pub running: u64,
    /// When an attempt of any job last ended in this store.
    pub last_seen: Option<Timestamp>,
    /// Whether the store is simulated: its schedules use a clock that was set.
    pub is_simulated: bool,
}

/// One cause of an answer; causes after the first are additional information.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Why a run does not exist.
    Absent(AbsentCause),
    /// What the open attempt of a run waits for.
    Open(OpenCause),
    /// How a run last ended.
    Ended(EndedCause),
    /// What else happened to the run.
    Note(Note),
    /// The outcome of a key.
    Key(KeyCause),
    /// This process does not have the job.
    NotHere {
        /// The name of the job.
        job: String,
    },
    /// The store is simulated: its schedules use a clock that was set.
    Simulated,
}

/// The text of a cause.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The rule that decided: a word that never changes.
    pub rule: &'static str,
    /// The statement.
    pub text: String,
    /// What to type or to do next.
    pub advice: Option<String>,
}

/// The causes that follow from the facts: the answer first, then additional information.
///
/// ```
/// use refrain_core::why::{AbsentCause, AbsentFacts, Cause, WhyFacts, Missing, JobContext, why};
///
/// let context = JobContext {
///     now: "2026-06-09T12:00:00Z".parse()?,
///     job: "welcome".to_owned(),
///     version: Some(1),
///     paused_at: None,
///     workers: 1,
///     running: 0,
///     last_seen: None,
///     is_simulated: false,
/// };
/// let facts = AbsentFacts { run: "welcome#42".to_owned(), context, missing: Missing::Key { key: "42".to_owned() } };
/// let causes = why(&WhyFacts::Absent(facts));
/// assert!(matches!(causes.as_slice(), [Cause::Absent(AbsentCause::NeverEnqueued { .. })]));
/// assert_eq!(
///     causes[0].to_string(),
///     "welcome#42 does not exist: this key was never enqueued.\n  refrain enqueue welcome --key 42"
/// );
/// # Ok::<(), jiff::Error>(())
/// ```
pub fn why(facts: &WhyFacts) -> Vec<Cause> {
    match facts {
        WhyFacts::Absent(facts) => [facts.causes(), around(&facts.context)].concat(),
        WhyFacts::Recorded(facts) => [facts.causes(), around(&facts.context)].concat(),
        WhyFacts::Key(facts) => facts.causes(),
    }
}

fn around(context: &JobContext) -> Vec<Cause> {
    let not_here = context.version.is_none().then(|| Cause::NotHere { job: context.job.clone() });
    let simulated = context.is_simulated.then_some(Cause::Simulated);
    not_here.into_iter().chain(simulated).collect()
}

impl Cause {
    /// The text of the cause.
    pub fn explain(&self) -> Explanation {
        match self {
            Cause::Absent(cause) => cause.explain(),
            Cause::Open(cause) => cause.explain(),
            Cause::Ended(cause) => cause.explain(),
            Cause::Note(cause) => cause.explain(),
            Cause::Key(cause) => cause.explain(),
            Cause::NotHere { job } => Explanation::new(
                "not-here",
                format!(
                    "{job} is not among the jobs of this process: its file was removed, or it is served elsewhere"
                ),
            )
            .advise("refrain check"),
            Cause::Simulated => Explanation::new(
                "simulated",
                "The store is simulated: its schedules use a clock that was set, and no worker serves it",
            )
            .advise("refrain tick --now TIME"),
        }
    }

    /// The rule that decided.
    pub fn rule(&self) -> &'static str {
        self.explain().rule
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { text, advice, .. } = self.explain();
        f.write_str(&text)?;
        advice.map_or(Ok(()), |advice| write!(f, "\n  {advice}"))
    }
}

impl Explanation {
    fn new(rule: &'static str, text: impl Into<String>) -> Explanation {
        let text: String = text.into();
        Explanation { rule, text: if text.ends_with(['.', '?']) { text } else { text + "." }, advice: None }
    }

    fn advise(self, advice: impl Into<String>) -> Explanation {
        Explanation { advice: Some(advice.into()), ..self }
    }
}

/// An instant in UTC, to the second.
fn at(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A message of a job, in quotes: it must not move the cursor of a terminal or fill the screen.
fn quoted(message: &str) -> String {
    let line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = message_text(&line).chars().take(QUOTED_CHARACTERS).collect();
    if line.chars().nth(QUOTED_CHARACTERS).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

/// The time at which something ended, if known.
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

/// The first few names of many.
fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    let more = names.len().saturating_sub(LISTED);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// The known names that are most similar to a wrong one, at most three.
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
    fn a_typed_name_is_one_word_to_a_shell() {
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
    fn a_message_of_a_job_stays_on_one_line_and_is_cut() {
        assert_eq!(quoted("no such\n\ttable\u{1b}[2J"), "\"no such table\u{fffd}[2J\"");
        assert_eq!(quoted(&"ä".repeat(1_000)).chars().count(), QUOTED_CHARACTERS + 3);
    }
}
