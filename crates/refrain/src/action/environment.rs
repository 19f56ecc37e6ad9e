//! The environment of a command: a few variables of the worker, those that the job names, and those of the run.

use std::env;
use std::ffi::{OsStr, OsString};

use refrain_core::{IdempotencyKey, Key, Zone};

use crate::run::Run;

/// The variables of the worker that every command inherits. A name that ends in `*` is a prefix.
pub const PASSED_ON: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR"];

/// The variables of a run for its command: `REFRAIN_JOB`, `_RUN`, `_SCOPE`, `_DS`, `_WINDOW_START`, `_WINDOW_END`, `_ATTEMPT`,
/// `_IDEMPOTENCY_KEY`, `_CURSOR`, `_WATERMARK` and `_PAYLOAD`. All are always set, and empty if the run has no such value. The
/// zone is that of the job, in which the day of a window is named. A cursor or a watermark is appended by the job that has
/// one; of two variables with one name the last counts.
pub fn environment_of(run: &Run, zone: &Zone) -> Vec<(String, String)> {
    let window = run.window();
    let instant =
        |at: Option<refrain_core::window::LogicalTime>| at.map(|at| at.to_string()).unwrap_or_default();
    let day = window.map(|window| zone.wall(window.start().timestamp()).date().to_string());
    let variables = [
        ("JOB", run.job().to_string()),
        ("RUN", run.name()),
        ("SCOPE", run.scope().to_string()),
        ("DS", day.unwrap_or_default()),
        ("WINDOW_START", instant(window.map(refrain_core::Window::start))),
        ("WINDOW_END", instant(window.map(refrain_core::Window::end))),
        ("ATTEMPT", run.attempt().to_string()),
        ("IDEMPOTENCY_KEY", idempotency_key(run)),
        ("CURSOR", String::new()),
        ("WATERMARK", String::new()),
        ("PAYLOAD", run.payload_json().unwrap_or_default().to_owned()),
    ];
    variables.into_iter().map(|(name, value)| (format!("REFRAIN_{name}"), value)).collect()
}

/// The idempotency key of a run: the same for every attempt until the job gets a new version.
fn idempotency_key(run: &Run) -> String {
    let fact = Key::parse(&format!("run:{}", run.id()));
    fact.map(|fact| IdempotencyKey::of(&run.facts.project, &fact, run.facts.version).to_string())
        .unwrap_or_default()
}

/// Names and values.
pub(super) type Variables<T> = Vec<(T, T)>;

/// The variables of this process that a command inherits. Those that are not valid UTF-8 are separate.
pub(super) fn inherited(names: &[String]) -> (Variables<String>, Variables<OsString>) {
    let (mut texts, mut others) = (Vec::new(), Vec::new());
    for (name, value) in env::vars_os().filter(|(name, _)| is_passed_on(name, names)) {
        match (name.to_str(), value.into_string()) {
            (Some(name), Ok(value)) => texts.push((name.to_owned(), value)),
            (_, Err(value)) => others.push((name, value)),
            (None, Ok(value)) => others.push((name, value.into())),
        }
    }
    (texts, others)
}

fn is_passed_on(name: &OsStr, names: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    let is_usual = |usual: &&str| match usual.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *usual,
    };
    PASSED_ON.iter().any(is_usual) || names.iter().any(|wanted| wanted == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s20_only_named_variables_are_inherited() {
        let names = ["API_URL".to_owned()];
        for (name, expected) in [
            ("PATH", true),
            ("LC_ALL", true),
            ("API_URL", true),
            ("LC", false),
            ("API_URL_SECRET", false),
            ("DATABASE_URL", false),
            ("PATHS", false),
            ("LD_PRELOAD", false),
        ] {
            assert_eq!(is_passed_on(OsStr::new(name), &names), expected, "{name}");
        }
    }
}
