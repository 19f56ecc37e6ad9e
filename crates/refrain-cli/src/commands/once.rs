//! `refrain once`: any command, at most once for a key.
//!
//! Its stdout belongs to the command; what `once` itself reports goes to stderr, with `--json` too.

use std::fmt;
use std::time::Duration;

use clap::Args;
use refrain::core::duration;
use refrain::core::state::{EffectState, Hold, InDoubtPolicy};
use refrain::core::terminal::typed;
use refrain::core::{Key, Word as _};
use refrain::effects::{Once, OnceReport};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::signals::{Finished, Signals, StopStep};

#[derive(Args)]
#[command(
    override_usage = "refrain once [OPTIONS] KEY -- COMMAND...",
    after_help = "The command ends with      and the key is    so the next call\n  \
      0                        confirmed         executes nothing, exits with 0\n  \
      75, or one of --not-done free              executes its command\n  \
      anything else, a signal  in doubt          executes nothing, exits with 4\n\n\
    In doubt: the command may have done its work. Look, then decide: refrain effects. The exit code of the command is passed on. A call \
    that finds another one at work waits for it, and exits with 75 after --wait.\n\n\
    The command has the streams and variables of the caller, and REFRAIN_EFFECT_KEY, REFRAIN_EFFECT_VERSION and \
    REFRAIN_IDEMPOTENCY_KEY.\n\nExamples:\n  \
    refrain once notify:new-invoice:INV-7 -- ./notify.sh INV-7\n  \
    refrain once ticket:INV-7 --not-done 6,7 -- curl --fail -d id=INV-7 $TICKETS_URL     6, 7: no connection\n  \
    refrain once mail:2026-06-09 --version 2 -- ./mail.sh                                once more, on purpose"
)]
pub(crate) struct Arguments {
    /// The fact that the command makes true, as in notify:new-invoice:INV-7. The project remembers it for ever.
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// Raise it to have the command executed once more for the same key.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) version: u32,
    #[arg(
        long,
        value_name = "POLICY",
        default_value = "hold",
        value_parser = policy,
        help = "What this call does if the key is in doubt: hold (exit with 4), provider-key (execute it again while the receiver \
                remembers $REFRAIN_IDEMPOTENCY_KEY), at-most-once (give it up) or at-least-once (execute it again)"
    )]
    pub(crate) in_doubt: InDoubtPolicy,
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = time,
        help = "How long the receiver remembers $REFRAIN_IDEMPOTENCY_KEY from the first send on, for --in-doubt provider-key"
    )]
    pub(crate) provider_ttl: Option<Duration>,
    /// Exit codes, besides 75, that prove that the command did nothing, as in 6,7.
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) not_done: Vec<u8>,
    /// How long to wait while another caller executes its command; then exit with 75.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = time)]
    pub(crate) wait: Duration,
    /// The command and its arguments, without a shell.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

fn policy(text: &str) -> Result<InDoubtPolicy, String> {
    match text.parse() {
        Ok(InDoubtPolicy::Probe) => {
            Err("a command has no probe; use hold, provider-key, at-most-once or at-least-once".to_owned())
        }
        policy => policy.map_err(|error| error.to_string()),
    }
}

/// The result, as it is printed.
#[derive(Serialize)]
struct Reported<'r> {
    key: &'r str,
    #[serde(flatten)]
    report: &'r OnceReport,
}

impl fmt::Display for Reported<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = harmless(self.key);
        let name = typed(self.key);
        match self.report {
            OnceReport::Executed { state: EffectState::Confirmed, .. } => write!(f, "{key}: confirmed"),
            OnceReport::Executed { state: EffectState::Pending, message, .. } => {
                write!(f, "{key}: {}; the key is free", message.as_deref().map(harmless).unwrap_or_default())
            }
            OnceReport::Executed { did_nothing: true, .. } => {
                write!(
                    f,
                    "{key} is in doubt: this execution did nothing, and an earlier one may have\n{}",
                    decide(&name)
                )
            }
            OnceReport::Executed { state, message, .. } => {
                let message = message.as_deref().map(harmless).unwrap_or_default();
                write!(f, "{key} is {}: {message}\n{}", in_words(*state), decide(&name))
            }
            OnceReport::NotStarted { message } => {
                write!(f, "{key}: {}; nothing was executed", harmless(message))
            }
            OnceReport::Unrecorded { exit_code, message } => {
                write!(f, "{key}: the command was executed")?;
                if let Some(code) = exit_code {
                    write!(f, " and ended with exit code {code}")?;
                }
                write!(
                    f,
                    ", and that could not be recorded: {}\nthe key will be in doubt; look: refrain effects show {name}",
                    harmless(message)
                )
            }
            OnceReport::Deduplicated { state: EffectState::Confirmed, version, since } => {
                write!(
                    f,
                    "{key}: already confirmed since {since:.0} (version {version}); nothing was executed"
                )
            }
            OnceReport::Deduplicated { state, version, since } => write!(
                f,
                "{key}: version {version} is {} since {since:.0}; nothing was executed. Look: refrain effects show {name}",
                in_words(*state)
            ),
            OnceReport::InDoubt { version, since, hold, message } => {
                write!(f, "{key} is in doubt since {since:.0} (version {version})")?;
                if let Some(message) = message {
                    write!(f, ": {}", harmless(message))?;
                }
                if *hold != Hold::Policy {
                    write!(f, "\n{}", hold.meaning())?;
                }
                write!(f, "\nnothing was executed. {}", decide(&name))
            }
            OnceReport::Waiting { since } => {
                write!(f, "{key} waits for approval since {since:.0}; nothing was executed")
            }
            OnceReport::Busy { since } => {
                write!(f, "{key} is executed by another caller since {since:.0}; try the same command later")
            }
            report => write!(f, "{key}: {report:?}"),
        }
    }
}

fn in_words(state: EffectState) -> String {
    state.name().replace('-', " ")
}

/// What to type about a doubt.
fn decide(name: &str) -> String {
    format!(
        "If it was done: refrain effects confirm {name}; to have the next call execute it: refrain effects resend {name}; never again: \
         refrain effects abandon {name}"
    )
}

pub(crate) async fn once(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let key = Key::parse(&arguments.key)?;
    if arguments.in_doubt == InDoubtPolicy::ProviderKey && arguments.provider_ttl.is_none() {
        let why = "--in-doubt provider-key needs --provider-ttl\n  write how long the provider remembers the key, as in --provider-ttl 24h";
        return Err(CliError::Refused(why.to_owned()));
    }
    let directory = std::env::current_dir().map_err(|error| {
        CliError::Refused(format!(
            "the current directory cannot be used: {error}\n  change to one that exists"
        ))
    })?;
    let signals = Signals::listen()?;
    let opened = context.guard().await?;
    let mut once = Once::new(key, arguments.command.clone(), directory);
    once.version = arguments.version;
    once.in_doubt = arguments.in_doubt;
    once.provider_ttl = arguments.provider_ttl;
    once.not_done = arguments.not_done.iter().map(|code| i32::from(*code)).collect();
    once.wait = arguments.wait;
    let stop = opened.refrain.stop_handle();
    let work = Box::pin(opened.refrain.once(&once));
    let Finished { result, is_interrupted } =
        signals.see_through(work, &stop, &[StopStep::EndCommand], output).await;
    let Some(report) = result.transpose()? else { return Ok(Exit::Interrupted) };
    opened.close().await;
    let is_quiet = matches!(report, OnceReport::Executed { state: EffectState::Confirmed, .. });
    output.aside(&Reported { key: &arguments.key, report: &report }, is_quiet);
    Ok(exit_of(&report, is_interrupted))
}

fn exit_of(report: &OnceReport, is_interrupted: bool) -> Exit {
    let passed_on = |code: i32| u8::try_from(code).map_or(Exit::Failed, Exit::of_command);
    match report {
        OnceReport::Executed { state: EffectState::Confirmed, .. }
        | OnceReport::Deduplicated {
            state: EffectState::Confirmed | EffectState::Abandoned | EffectState::Undone,
            ..
        } => Exit::Done,
        OnceReport::Busy { .. } | OnceReport::NotStarted { .. } if is_interrupted => Exit::Interrupted,
        OnceReport::NotStarted { .. } => Exit::Usage,
        // Its 0 or 75 would say that it was done, or that the key is free.
        OnceReport::Executed { state: EffectState::InDoubt, exit_code: Some(0), .. } if is_interrupted => {
            Exit::Interrupted
        }
        OnceReport::Executed { state: EffectState::InDoubt, exit_code: Some(0), .. }
        | OnceReport::Executed { state: EffectState::InDoubt, did_nothing: true, .. } => Exit::Waits,
        OnceReport::Executed { exit_code: Some(code), .. } => passed_on(*code),
        OnceReport::Executed { signal: Some(signal), .. } => passed_on(128 + signal),
        OnceReport::Executed { state: EffectState::InDoubt, .. }
        | OnceReport::Unrecorded { .. }
        | OnceReport::Deduplicated { .. }
        | OnceReport::InDoubt { .. }
        | OnceReport::Waiting { .. } => Exit::Waits,
        _ => Exit::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_of_the_command_is_passed_on() {
        let executed = |exit_code, signal, state| {
            let did_nothing = exit_code == Some(75);
            OnceReport::Executed { state, exit_code, signal, did_nothing, message: None }
        };
        let before =
            |state| OnceReport::Deduplicated { state, version: 1, since: jiff::Timestamp::UNIX_EPOCH };
        for (report, code) in [
            (executed(Some(0), None, EffectState::Confirmed), 0),
            (executed(Some(75), None, EffectState::Pending), 75),
            (executed(Some(7), None, EffectState::InDoubt), 7),
            (executed(Some(0), None, EffectState::InDoubt), 4),
            (executed(Some(75), None, EffectState::InDoubt), 4),
            (executed(None, Some(15), EffectState::InDoubt), 143),
            (executed(None, None, EffectState::InDoubt), 4),
            (executed(None, None, EffectState::Pending), 75),
            (OnceReport::Unrecorded { exit_code: Some(0), message: String::new() }, 4),
            (before(EffectState::Confirmed), 0),
            (before(EffectState::Abandoned), 0),
            (before(EffectState::Suppressed), 4),
            (before(EffectState::Pending), 4),
        ] {
            assert_eq!(exit_of(&report, false).code(), code, "{report:?}");
        }
    }
}
