//! What an operator types about an entry of the inbox: show, confirm, resend, abandon, send.

use std::fmt;

use clap::{Args, Subcommand};
use refrain::Refrain;
use refrain::core::Word as _;
use refrain::core::state::EffectState;
use refrain::core::terminal::typed;
use refrain::effects::{DecidedEntry, EffectRecord, EffectVerb, InboxEntry};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::harmless;
use crate::person::Deciding;

#[derive(Subcommand)]
pub(crate) enum InboxVerb {
    /// Show what is recorded about a key, and what settles it.
    Show {
        /// KEY for all its versions, or KEY@VERSION.
        name: String,
    },
    /// It happened: record that. It is never sent again.
    Confirm(Decided),
    /// It did not happen: the next call, or attempt of the run, sends it. A doubtful effect waits for a minute after its last send.
    Resend(Decided),
    /// Give it up, whether it happened or not. It is never sent again.
    Abandon(Decided),
    /// Have a suppressed one sent after all, by the next call.
    Send(Decided),
}

/// About which effects, and on whose behalf.
#[derive(Args)]
pub(crate) struct Decided {
    /// As `refrain effects` lists it. An effect: KEY for its highest version, or KEY@VERSION. A unit: RUN unit KEY. The command of a run: RUN.
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// All effects to which this verb applies, instead of names. You are asked first.
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// With --all: only effects of this job.
    #[arg(long, value_name = "JOB", requires = "all")]
    job: Option<String>,
    #[command(flatten)]
    deciding: Deciding,
}

impl InboxVerb {
    /// The options that name the operator, if something is decided.
    pub(crate) fn deciding(&self) -> Option<&Deciding> {
        self.decided().map(|(_, decided)| &decided.deciding)
    }

    fn decided(&self) -> Option<(EffectVerb, &Decided)> {
        match self {
            InboxVerb::Show { .. } => None,
            InboxVerb::Confirm(decided) => Some((EffectVerb::Confirm, decided)),
            InboxVerb::Resend(decided) => Some((EffectVerb::Resend, decided)),
            InboxVerb::Abandon(decided) => Some((EffectVerb::Abandon, decided)),
            InboxVerb::Send(decided) => Some((EffectVerb::Send, decided)),
        }
    }
}

/// The states in which `--all` finds effects.
fn states_of(verb: EffectVerb) -> &'static [EffectState] {
    match verb {
        EffectVerb::Resend => &[EffectState::InDoubt, EffectState::Refused],
        EffectVerb::Send => &[EffectState::Suppressed],
        _ => &[EffectState::InDoubt],
    }
}

/// What a verb does, for questions.
fn in_words(verb: EffectVerb) -> &'static str {
    match verb {
        EffectVerb::Confirm => "record as done",
        EffectVerb::Resend => "send again",
        EffectVerb::Abandon => "never send again",
        _ => "send",
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct EffectLines<'e>(&'e EffectRecord);

impl fmt::Display for EffectLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = self.0;
        let state = super::in_words(effect.state.name());
        write!(f, "{}@{}  {state}", harmless(&effect.key), effect.version)?;
        write!(f, " since {:.0}, effect {}", effect.since, harmless(&effect.name))?;
        if let (Some(job), Some(run)) = (&effect.job, &effect.run) {
            write!(f, ", requested by {}#{}", harmless(job), harmless(run))?;
        }
        write!(f, "\n  arrived {:.0}, {} deduplicated", effect.arrived_at, effect.dedupes)?;
        for (what, at) in [
            ("first send", effect.first_sent_at),
            ("last send", effect.last_sent_at.filter(|_| effect.sends > 1)),
            ("no answer since", effect.unanswered_at.filter(|_| effect.state == EffectState::InDoubt)),
        ] {
            if let Some(at) = at {
                write!(f, "\n  {what} {at:.0}")?;
            }
        }
        if effect.sends > 1 {
            write!(f, "\n  {} sends", effect.sends)?;
        }
        for (what, text) in [("receipt", &effect.receipt), ("message", &effect.message)] {
            if let Some(text) = text {
                write!(f, "\n  {what}: {}", harmless(text))?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct DecidedLine<'d>(&'d DecidedEntry);

impl fmt::Display for DecidedLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DecidedEntry::Effect { key, version, state } => write!(f, "{}@{version}: {state}", harmless(key)),
            DecidedEntry::Unit { run, key, done: true } => {
                write!(f, "{} unit {}: recorded as done", harmless(run), typed(key))
            }
            DecidedEntry::Unit { run, key, .. } => {
                write!(f, "{} unit {}: has all its tries again", harmless(run), typed(key))
            }
            DecidedEntry::Command { run } => write!(f, "{}: its command is recorded as done", harmless(run)),
            other => write!(f, "{other:?}"),
        }
    }
}

pub(super) async fn perform(context: &Context, verb: &InboxVerb) -> Result<Exit, CliError> {
    let Some((what, decided)) = verb.decided() else {
        let InboxVerb::Show { name } = verb else { return Ok(Exit::Done) };
        return show(context, name).await;
    };
    let opened = context.decide_around().await?;
    let entries = if decided.all {
        all(&opened.refrain, what, decided.job.as_deref()).await?
    } else {
        named(&opened.refrain, &decided.names).await?
    };
    if decided.all {
        let (count, what) = (entries.len(), in_words(what));
        let plural = if count == 1 { "effect" } else { "effects" };
        if count > 0 && !context.output.ask(format_args!("{what}: {count} {plural}. Do it?")) {
            opened.close().await;
            return Err(CliError::Undecided(format!(
                "nothing was done; it would be decided about {count} {plural}: {what}\n  to confirm, add --yes"
            )));
        }
    }
    let mut done = Ok(Exit::Done);
    let mut next = None;
    for entry in &entries {
        match opened.refrain.decide(entry, what).await {
            Ok(decided) => {
                next = next_of(&decided).or(next);
                context.output.line(&DecidedLine(&decided))?;
            }
            // The others are decided all the same: each is a decision of its own.
            Err(error) if decided.all => {
                context.output.say(format_args!("{error}"));
                done = Ok(Exit::Failed);
            }
            Err(error) => {
                done = Err(error.into());
                break;
            }
        }
    }
    opened.close().await;
    if decided.all && entries.is_empty() {
        context.output.say("there is no such effect");
    }
    if let Some(next) = next {
        context.output.say(next);
    }
    done
}

/// What to type after a decision.
fn next_of(decided: &DecidedEntry) -> Option<String> {
    match decided {
        DecidedEntry::Effect { state: EffectState::Pending, .. } => {
            Some("a key of `refrain once` is executed by its next call".to_owned())
        }
        DecidedEntry::Unit { run, .. } => {
            Some(format!("its run counts that in the next attempt: refrain retry {}", typed(run)))
        }
        _ => None,
    }
}

/// The entries that names mean. `RUN unit KEY` is one.
async fn named(refrain: &Refrain, names: &[String]) -> Result<Vec<InboxEntry>, CliError> {
    if let [run, word, key] = names
        && word == "unit"
    {
        return Ok(vec![InboxEntry::Unit { run: run.clone(), key: key.clone() }]);
    }
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        entries.push(refrain.inbox_entry(name).await?);
    }
    Ok(entries)
}

/// The names of all effects that this can be decided about.
async fn all(refrain: &Refrain, verb: EffectVerb, job: Option<&str>) -> Result<Vec<InboxEntry>, CliError> {
    let mut names = Vec::new();
    for state in states_of(verb) {
        let mut page = refrain.effects_in(*state, None).await?;
        while let Some(last) = page.last().cloned() {
            let of_job = page.iter().filter(|one| job.is_none() || one.job.as_deref() == job);
            names.extend(
                of_job.map(|one| InboxEntry::Effect { key: one.key.clone(), version: Some(one.version) }),
            );
            page = refrain.effects_in(*state, Some(&last)).await?;
        }
    }
    Ok(names)
}

async fn show(context: &Context, name: &str) -> Result<Exit, CliError> {
    let opened = context.look().await?;
    let versions = opened.refrain.effects_named(name).await?;
    opened.close().await;
    let mut open = None;
    for effect in &versions {
        if matches!(effect.state, EffectState::InDoubt | EffectState::Refused) {
            open = Some(typed(&format!("{}@{}", effect.key, effect.version)));
        }
        context.output.line(&EffectLines(effect))?;
    }
    if let Some(name) = open {
        context.output.say(format_args!(
            "if it was done: refrain effects confirm {name}; to send it again: refrain effects resend {name}; never again: \
             refrain effects abandon {name}"
        ));
    }
    Ok(Exit::Done)
}
