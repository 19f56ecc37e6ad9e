//! How people write a run, and the key under which it is stored.
//!
//! People write `revenue-daily@2026-06-09`, `audit-digest@2026-06-09T14:00/acme` or `welcome-email#42`: the
//! job, then the window (and scope) or the caller's key. Which window a name means depends on the job's
//! timetable, so a [`RunName`] only takes the text apart.
//!
//! The store identifies a run by its job and a [`RunKey`]: the window's start in UTC, then the scope; or the caller's key
//! unchanged. A start always has twenty characters, so the windows of a job are one range of the index, ordered by time,
//! with all scopes of a window together.

use std::{fmt, str};

use crate::key::Key;
use crate::name::{JobName, Scope};
use crate::window::LogicalTime;
use crate::{KeyPart, ParseError};

const WHAT: &str = "run";
const ADVICE: &str =
    "a run is written JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY, as in revenue-daily@2026-06-09";

/// The name of a run as people write it.
///
/// ```
/// use refrain_core::RunName;
///
/// for text in ["revenue-daily@2026-06-09", "audit-digest@2026-06-09T14:00/acme", "welcome-email#42"] {
///     assert_eq!(text.parse::<RunName>()?.to_string(), text);
/// }
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunName {
    /// The run of a window and scope.
    Windowed {
        /// The job.
        job: JobName,
        /// The window's name; see [`window_name`](crate::window_name).
        window: String,
        /// The scope.
        scope: Scope,
    },
    /// The run of a caller's key.
    Queued {
        /// The job.
        job: JobName,
        /// The key.
        key: Key,
    },
}

impl RunName {
    /// The job's name.
    pub fn job(&self) -> &JobName {
        match self {
            RunName::Windowed { job, .. } | RunName::Queued { job, .. } => job,
        }
    }
}

impl str::FromStr for RunName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<RunName, ParseError> {
        let Some(at) = text.find(['@', '#']) else {
            return Err(ParseError::whole(WHAT, text, "it contains neither `@` nor `#`").help(ADVICE));
        };
        let (job, rest) = text.split_at(at);
        let job = JobName::parse(job).map_err(|error| error.inside(WHAT, text, 0))?;
        if let Some(key) = rest.strip_prefix('#') {
            let key = Key::parse(key).map_err(|error| error.inside(WHAT, text, at + 1))?;
            return Ok(RunName::Queued { job, key });
        }
        let rest = rest.get(1..).unwrap_or_default();
        let (window, scope) = match rest.split_once('/') {
            Some((_, "")) => {
                return Err(ParseError::new(
                    WHAT,
                    text,
                    text.len() - 1..text.len(),
                    "the scope is missing after `/`",
                )
                .help(ADVICE));
            }
            Some(both) => both,
            None => (rest, ""),
        };
        let scope = Scope::parse(scope).map_err(|error| error.inside(WHAT, text, at + 2 + window.len()))?;
        if window.is_empty() {
            return Err(
                ParseError::new(WHAT, text, at..at + 1, "the window is missing after `@`").help(ADVICE)
            );
        }
        Ok(RunName::Windowed { job, window: window.to_owned(), scope })
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunName::Windowed { job, window, scope } if scope.as_str().is_empty() => {
                write!(f, "{job}@{window}")
            }
            RunName::Windowed { job, window, scope } => write!(f, "{job}@{window}/{scope}"),
            RunName::Queued { job, key } => write!(f, "{job}#{key}"),
        }
    }
}

/// The key under which a job's run is stored; with the job it is unique.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey(Key);

impl RunKey {
    /// The run of a window and scope: a pure function of both.
    ///
    /// ```
    /// use refrain_core::{RunKey, Scope, Zone, window_name};
    ///
    /// let start = window_name::parse("2026-06-09T14:00", &Zone::utc())?;
    /// assert_eq!(RunKey::windowed(start, &Scope::default()).to_string(), "2026-06-09T14:00:00Z");
    /// assert_eq!(RunKey::windowed(start, &Scope::parse("acme")?).to_string(), "2026-06-09T14:00:00Z/acme");
    /// # Ok::<(), refrain_core::ParseError>(())
    /// ```
    #[expect(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "a start has 20 bytes, a scope at most 256 on one line: always a key"
    )]
    pub fn windowed(start: LogicalTime, scope: &Scope) -> RunKey {
        let text = match scope.as_str() {
            "" => start.to_string(),
            scope => format!("{start}/{scope}"),
        };
        RunKey(Key::parse(&text).expect("a start and a scope are a key"))
    }

    /// The run of a caller's key.
    pub fn queued(key: Key) -> RunKey {
        RunKey(key)
    }

    /// The key as it is stored.
    pub fn as_key(&self) -> &Key {
        &self.0
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl KeyPart for RunKey {
    fn key_part(&self) -> std::borrow::Cow<'_, str> {
        self.0.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grid, Zone};
    use proptest::prelude::*;

    #[test]
    fn each_fault_is_reported_with_its_position_in_the_name() {
        for (text, span, reason) in [
            ("revenue-daily", 0..13, "neither `@` nor `#`"),
            ("@2026-06-09", 0..0, "empty"),
            ("../etc@2026-06-09", 0..1, ""),
            ("revenue-daily@", 13..14, "the window is missing after `@`"),
            ("revenue-daily@2026-06-09/", 24..25, "the scope is missing after `/`"),
            ("revenue-daily@/acme", 13..14, "the window is missing after `@`"),
            ("welcome-email#", 14..14, "empty"),
        ] {
            let error = text.parse::<RunName>().unwrap_err();
            assert!(error.reason().contains(reason), "{text}: {error}");
            assert_eq!(error.span().start, span.start, "{text}: {error}");
        }
    }

    #[test]
    fn a_scope_may_contain_separators() {
        let name: RunName = "audit@2026-06-09/a/b@c#d".parse().unwrap();
        assert!(matches!(&name, RunName::Windowed { scope, .. } if scope.as_str() == "a/b@c#d"));
        assert_eq!(name.to_string(), "audit@2026-06-09/a/b@c#d");
    }

    #[test]
    fn the_windows_of_a_job_are_one_range_of_the_index_in_the_order_of_time() {
        let hours = Grid::parse("hour").unwrap();
        let from = "0999-12-31T00:00:00Z".parse().unwrap();
        let until = "1000-01-02T00:00:00Z".parse().unwrap();
        let keys: Vec<RunKey> = hours
            .windows(&Zone::utc(), from, until)
            .map(|window| RunKey::windowed(window.start(), &Scope::default()))
            .collect();
        assert!(keys.len() > 40 && keys.is_sorted());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[a-z]{1,5}[@#][0-9T:/a-z-]{0,20}") {
            if let Ok(name) = text.parse::<RunName>() {
                prop_assert_eq!(name.to_string(), text);
            }
        }

        #[test]
        fn i13_different_windows_and_scopes_have_different_keys(
            one in (-30_000_000_000_i64..30_000_000_000, "[a/#@: ]{0,4}"),
            other in (-30_000_000_000_i64..30_000_000_000, "[a/#@: ]{0,4}"),
        ) {
            let key = |(second, scope): &(i64, String)| {
                let at = jiff::Timestamp::from_second(*second).unwrap();
                let start = LogicalTime::new(at).unwrap();
                (RunKey::windowed(start, &Scope::parse(scope).unwrap()), (start, scope.clone()))
            };
            let ((one_key, one), (other_key, other)) = (key(&one), key(&other));
            prop_assert_eq!(one_key == other_key, one == other);
        }
    }
}
