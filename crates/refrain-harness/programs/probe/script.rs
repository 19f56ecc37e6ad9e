//! Jobs that execute a command: the one in the payload, or a few lines of shell that record what they do.

use std::time::Duration;

use refrain::Run;
use refrain::action::command::{Command, CommandJob, Interrupted};
use refrain::action::environment::environment_of;
use refrain::core::Zone;

use super::{directory, number};

/// Reports outside of the store that it began and that it ended, and prints a line to each stream.
const TOLD: &str = r#"
echo "begun $REFRAIN_RUN $REFRAIN_ATTEMPT $$" >> effects
echo "to be kept"; echo "and this" >&2
echo "ended $REFRAIN_RUN $REFRAIN_ATTEMPT $$" >> effects
"#;

pub(crate) fn script(interrupted: Interrupted) -> CommandJob {
    let make = move |run: &Run| {
        let argv: Option<Vec<String>> = run.payload()?;
        let argv = argv.unwrap_or_else(|| ["sh", "-c", TOLD].map(str::to_owned).to_vec());
        let environment = environment_of(run, &Zone::utc());
        Ok(Command { argv, environment, interrupted, directory: directory(), ..Command::default() })
    };
    CommandJob::new(make).grace(Duration::from_millis(number("PROBE_GRACE", 1_000)))
}
