//! What a command finds in its environment: what its run is about. There is no clock in it.

use std::path::Path;

use refrain_core::{IdempotencyKey, Values, key};

use crate::run::Run;

/// The variables of a run. Those that have no value in it are empty, so that a script under `set -u` can name them.
pub(crate) fn of(run: &Run, values: &Values, root: &Path) -> Vec<(String, String)> {
    let text = |name: &str| values.text(name).unwrap_or_default();
    [
        ("PROJECT", root.display().to_string()),
        ("JOB", run.job().to_string()),
        ("RUN", name(run)),
        ("SCOPE", text("scope")),
        ("DS", text("ds")),
        ("WINDOW_START", text("window_start")),
        ("WINDOW_END", text("window_end")),
        ("ATTEMPT", run.attempt().to_string()),
        ("IDEMPOTENCY_KEY", idempotency_key(run)),
        ("CURSOR", text("cursor")),
        ("WATERMARK", text("watermark")),
        ("PAYLOAD", run.payload().unwrap_or_default().to_owned()),
    ]
    .map(|(name, value)| (format!("REFRAIN_{name}"), value))
    .to_vec()
}

/// The run as every command takes it, with the start of its window as an instant.
fn name(run: &Run) -> String {
    let mark = if run.window().is_some() { '@' } else { '#' };
    format!("{}{mark}{}", run.job(), run.key())
}

/// What a script may hand to a provider: the same for every attempt and every rerun of this run, and another one for another
/// version of the job, which is meant to do it anew.
fn idempotency_key(run: &Run) -> String {
    let fact = key!("run", run.facts.identity.as_str(), run.key());
    fact.map(|fact| IdempotencyKey::of(&run.facts.project, &fact, run.facts.version).to_string())
        .unwrap_or_else(|_| run.id().to_string())
}
