//! `refrain effects`: what an operator must decide, and the decisions about effects.
//!
//! A line is one decision: an effect, as `KEY@VERSION`; a unit in doubt, as `RUN unit KEY`; or a command that was cut off, as `RUN`.

mod verbs;

use std::fmt;

use clap::Args;
use jiff::Timestamp;
use refrain::Refrain;
use refrain::admin::{DoubtRecord, JobRecord};
use refrain::core::Word as _;
use refrain::core::state::EffectState;
use refrain::core::terminal::typed;
use refrain::effects::EffectRecord;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::harmless;

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Without a command and options it lists what is in doubt, was refused or waits for approval. Look at the receiver \
    first: did it arrive? Then confirm, resend or abandon it. These commands only record the decision; the next `refrain once` or the \
    next call of the program sends. A unit (RUN unit KEY) can be confirmed or resent, the command of a run (RUN) confirmed; `refrain retry RUN` makes \
    the next attempt.\n\n\
    An effect whose sender was killed is in doubt when its command has ended too.\n\n\
    Examples:\n  refrain effects\n  refrain effects --in-doubt --job sync --json\n  \
    refrain effects show notify:INV-7\n  refrain effects confirm notify:INV-7 --why 'it is in the outbox'\n  \
    refrain effects abandon --all"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Option<verbs::InboxVerb>,
    /// Only doubts: calls and effects without an answer, and commands that were cut off.
    #[arg(long)]
    pub(crate) in_doubt: bool,
    /// Only effects that wait for approval.
    #[arg(long)]
    pub(crate) waiting: bool,
    /// Only effects that were refused.
    #[arg(long)]
    pub(crate) refused: bool,
    /// Only effects that are suppressed, because a higher version exists for example. They need no decision.
    #[arg(long)]
    pub(crate) suppressed: bool,
    /// Only those of this job.
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<String>,
}

impl Arguments {
    /// The states of the effects to list: by default those that need an operator.
    fn states(&self) -> Vec<EffectState> {
        let wanted = [
            (self.in_doubt, EffectState::InDoubt),
            (self.waiting, EffectState::Waiting),
            (self.refused, EffectState::Refused),
            (self.suppressed, EffectState::Suppressed),
        ];
        let is_any = wanted.iter().any(|(is_wanted, _)| *is_wanted);
        let is_listed = |is_wanted: bool, state| is_wanted || (!is_any && state != EffectState::Suppressed);
        wanted
            .into_iter()
            .filter(|(is_wanted, state)| is_listed(*is_wanted, *state))
            .map(|(_, state)| state)
            .collect()
    }
}

#[derive(Serialize)]
struct Line {
    /// `effect`, `unit` or `command`.
    kind: &'static str,
    run: Option<String>,
    unit: Option<String>,
    /// Of an effect.
    key: Option<String>,
    version: Option<u32>,
    name: Option<String>,
    state: &'static str,
    since: Option<Timestamp>,
    message: Option<String>,
}

impl Line {
    fn of_run(run: &str, doubt: DoubtRecord) -> Line {
        let DoubtRecord { unit, since, message, .. } = doubt;
        let (kind, state) = (if unit.is_some() { "unit" } else { "command" }, "in-doubt");
        let run = Some(run.to_owned());
        Line { kind, run, unit, key: None, version: None, name: None, state, since, message }
    }

    /// A reserved effect whose sender is gone: it is in doubt as soon as another process takes over.
    fn without_sender(effect: EffectRecord) -> Line {
        let message = Some("its sender is gone, and may have sent it".to_owned());
        Line { state: EffectState::InDoubt.name(), message, ..Line::of_effect(effect) }
    }

    fn of_effect(effect: EffectRecord) -> Line {
        let (state, since) = (effect.state.name(), Some(effect.unanswered_at.unwrap_or(effect.since)));
        let (key, version, name) = (Some(effect.key), Some(effect.version), Some(effect.name));
        Line {
            kind: "effect",
            run: None,
            unit: None,
            key,
            version,
            name,
            state,
            since,
            message: effect.message,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.run, &self.unit, &self.key) {
            (Some(run), Some(unit), _) => write!(f, "{} unit {}  in doubt", harmless(run), typed(unit))?,
            (Some(run), None, _) => write!(f, "{}  its command was cut off", harmless(run))?,
            (None, _, key) => {
                let (key, version) = (key.as_deref().unwrap_or_default(), self.version.unwrap_or_default());
                let name = self.name.as_deref().unwrap_or_default();
                write!(
                    f,
                    "{}  effect {}  {}",
                    typed(&format!("{key}@{version}")),
                    harmless(name),
                    in_words(self.state)
                )?;
            }
        }
        if let Some(since) = self.since {
            write!(f, " since {since:.0}")?;
        }
        match &self.message {
            Some(message) => write!(f, ": {}", harmless(message)),
            None => Ok(()),
        }
    }
}

fn in_words(state: &str) -> String {
    state.replace('-', " ")
}

pub(crate) async fn effects(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    if let Some(verb) = &arguments.verb {
        return verbs::perform(context, verb).await;
    }
    let output = context.output;
    let opened = match context.look_around().await {
        Err(CliError::NoStore(_)) if context.store.is_none() => {
            return context.nothing_of(arguments.job.as_deref());
        }
        opened => opened?,
    };
    let refrain = &opened.refrain;
    let mut jobs = refrain.job_records(arguments.job.as_deref()).await?;
    let states = arguments.states();
    let first_effect = list_effects(context, refrain, &states, arguments.job.as_deref()).await?;
    if !states.contains(&EffectState::InDoubt) {
        jobs.clear();
    }
    let mut first = None;
    for JobRecord { name: job, .. } in jobs {
        let (view, mut after) = (refrain.view(&job).await?, String::new());
        while let Some((last, waiting)) = refrain.waiting_runs(&job, &after).await? {
            after = last;
            for (run, doubts) in waiting {
                let run = view.name_of(&run);
                for doubt in doubts {
                    output.line(&Line::of_run(&run, doubt))?;
                }
                first.get_or_insert(run);
            }
        }
    }
    opened.close().await;
    if let Some(name) = &first_effect {
        output.say(format_args!(
            "what is recorded about an effect, and what settles it: refrain effects show {}",
            typed(name)
        ));
    }
    match first {
        Some(run) => output.say(format_args!(
            "the commands that settle it: refrain show {}; by name: refrain effects confirm NAME",
            typed(&run)
        )),
        None if first_effect.is_none() => output.say("nothing waits for a decision of an operator"),
        None => {}
    }
    Ok(Exit::Done)
}

/// Prints the effects in these states. Returns the name of the first one.
async fn list_effects(
    context: &Context,
    refrain: &Refrain,
    states: &[EffectState],
    job: Option<&str>,
) -> Result<Option<String>, CliError> {
    let mut first = None;
    let left = if states.contains(&EffectState::InDoubt) {
        refrain.effects_without_sender().await?
    } else {
        Vec::new()
    };
    for effect in left.into_iter().filter(|effect| job.is_none() || effect.job.as_deref() == job) {
        first.get_or_insert_with(|| format!("{}@{}", effect.key, effect.version));
        context.output.line(&Line::without_sender(effect))?;
    }
    for state in states {
        let mut page = refrain.effects_in(*state, None).await?;
        while let Some(last) = page.last().cloned() {
            for effect in page {
                if job.is_some() && effect.job.as_deref() != job {
                    continue;
                }
                first.get_or_insert_with(|| format!("{}@{}", effect.key, effect.version));
                context.output.line(&Line::of_effect(effect))?;
            }
            page = refrain.effects_in(*state, Some(&last)).await?;
        }
    }
    Ok(first)
}
