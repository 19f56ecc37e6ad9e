//! Arguments that several commands take, and how their text is read.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use refrain::Patience;

use crate::exit::CliError;
use crate::output::Output;

/// Reads a timestamp.
pub(crate) fn timestamp(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "write a timestamp, as in 2026-06-09T14:00:00Z".to_owned())
}

/// How long to wait for a run that another process has.
#[derive(Args)]
pub(crate) struct Wait {
    /// How long to wait while another process has the run, or a run before it; then exit with 75. The run stays queued.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(crate) wait: Duration,
}

fn duration(text: &str) -> Result<Duration, String> {
    refrain::core::duration::parse(text).map_err(|error| error.to_string())
}

impl Wait {
    /// Prints to stderr what the run waits for, and again when that changes.
    pub(crate) fn patience(&self, output: Output) -> Patience {
        Patience::of(self.wait)
            .telling(move |cause| output.say(format_args!("waiting: {}", cause.explain().text)))
    }
}

/// The name of the run that the arguments name: `JOB@WINDOW/SCOPE` or `JOB#KEY`.
pub(crate) fn run_name(
    run: &str,
    window: Option<&str>,
    scope: Option<&str>,
    key: Option<&str>,
) -> Result<String, CliError> {
    let is_whole = run.contains(['@', '#']);
    if is_whole && (window.is_some() || scope.is_some() || key.is_some()) {
        let said = format!("`{run}` is a full name already\n  omit --window, --scope and --key");
        return Err(CliError::Refused(said));
    }
    Ok(match (window, scope, key) {
        (Some(window), Some(scope), _) => format!("{run}@{window}/{scope}"),
        (Some(window), None, _) => format!("{run}@{window}"),
        (None, _, Some(key)) => format!("{run}#{key}"),
        (None, Some(_), None) => {
            return Err(CliError::Refused("--scope needs --window\n  add --window W".to_owned()));
        }
        (None, None, None) => run.to_owned(),
    })
}
