//! `refrain run`: one run, now and here.

use std::fmt;

use clap::Args;
use jiff::Timestamp;
use refrain::core::project::Action;
use refrain::core::state::RunOutcome;
use refrain::{Ask, Did, Place as Standing, Refrain, RunRecord, RunReport};
use serde::Serialize;

use crate::exit::{Exit, Fault};
use crate::output::{Four, harmless_lines};
use crate::place::{Opened, Place};
use crate::signals::{Ended, Signals, Step};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain run export                              the latest whole window\n  \
    refrain run export@2026-06-09\n  refrain run export --window 2026-06-09 --again\n  \
    refrain run digest@2026-06-09T14:00/acme        one scope of it\n  refrain run welcome#42"
)]
pub(crate) struct Arguments {
    /// JOB, JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The window, by its start: 2026-06-09, 2026-06-09T14:00, 2026-06-09T12:00:00Z.
    #[arg(long, value_name = "W", conflicts_with = "key")]
    pub(crate) window: Option<String>,
    /// The scope, for a job that has scopes.
    #[arg(long, value_name = "S", conflicts_with = "key")]
    pub(crate) scope: Option<String>,
    /// The key, for a job that is queued.
    #[arg(long, value_name = "K")]
    pub(crate) key: Option<String>,
    /// Make another attempt, even if it is done.
    #[arg(long)]
    pub(crate) again: bool,
}

#[derive(Serialize)]
struct Report {
    run: String,
    did: &'static str,
    state: String,
    attempt: u64,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    again_at: Option<Timestamp>,
    message: Option<String>,
    counts: Four,
}

impl Report {
    fn of(
        name: &str,
        RunReport { did, run, .. }: &RunReport,
        message: Option<String>,
        units: Four,
    ) -> Report {
        let again_at = match run.place {
            Some(Standing::Delayed(at)) => Timestamp::from_microsecond(at).ok(),
            _ => None,
        };
        Report {
            run: name.to_owned(),
            did: match did {
                Did::Ran => "ran",
                Did::Followed => "followed",
                Did::Deduplicated => "deduplicated",
            },
            state: run.standing.node().to_string(),
            attempt: run.attempt,
            started_at: run.started_at,
            ended_at: run.ended_at,
            again_at,
            message,
            counts: units,
        }
    }
}

fn counts(did: Did, run: &RunRecord) -> Four {
    let none = Four::default();
    match (did, run.standing.outcome) {
        (Did::Deduplicated, _) => Four { deduplicated: 1, ..none },
        _ if matches!(run.place, Some(Standing::Delayed(_))) => Four { failed: 1, ..none },
        _ if run.standing.is_open() => none,
        (_, Some(RunOutcome::Done | RunOutcome::Waiting)) => Four { processed: 1, ..none },
        (_, Some(RunOutcome::Skipped)) => Four { skipped: 1, ..none },
        (_, Some(RunOutcome::Failed | RunOutcome::Partial)) => Four { failed: 1, ..none },
        (_, Some(RunOutcome::Cancelled) | None) => none,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { run, state, attempt, .. } = self;
        match (self.did, self.ended_at, self.again_at) {
            ("deduplicated", Some(at), _) => {
                write!(f, "{run}: {state} already, at {at:.0} (attempt {attempt})")?;
            }
            (_, _, Some(at)) => {
                let failed = attempt.saturating_sub(1);
                write!(f, "{run}: attempt {failed} failed; {state} again, not before {at:.0}")?;
            }
            ("followed", ..) => write!(f, "{run}: {state} (attempt {attempt}, made elsewhere)")?,
            _ => write!(f, "{run}: {state} (attempt {attempt})")?,
        }
        if let Some(message) = &self.message {
            write!(f, "\n  {}", harmless_lines(message, "  "))?;
        }
        write!(f, "\n{}", self.counts)
    }
}

/// The run as it was typed, in one piece.
fn typed(arguments: &Arguments) -> Result<String, Fault> {
    let Arguments { run, window, scope, key, .. } = arguments;
    let is_whole = run.contains(['@', '#']);
    if is_whole && (window.is_some() || scope.is_some() || key.is_some()) {
        let said = format!("`{run}` names a run already\n  leave out --window, --scope and --key");
        return Err(Fault::Refused(said));
    }
    Ok(match (window, scope, key) {
        (Some(window), Some(scope), _) => format!("{run}@{window}/{scope}"),
        (Some(window), None, _) => format!("{run}@{window}"),
        (None, _, Some(key)) => format!("{run}#{key}"),
        (None, Some(_), None) => {
            return Err(Fault::Refused("a scope is of a window\n  add --window W".to_owned()));
        }
        (None, None, None) => run.clone(),
    })
}

pub(crate) async fn run(place: &Place, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = place.output;
    let mut name = typed(arguments)?;
    let signals = Signals::listen()?;
    let opened = place.open().await?;
    let refrain = &opened.refrain;
    if !name.contains(['@', '#']) {
        name = refrain.latest_window(&name).await?;
    }
    needs_no_payload(&opened, &name).await?;
    let ask = if arguments.again { Ask::Again } else { Ask::Once };
    let stop = refrain.stop_handle();
    let work = Box::pin(refrain.run(&name, ask));
    let Ended { result, is_interrupted } = signals.see_through(work, &stop, &[Step::StopNow], output).await;
    let Some(report) = result.transpose()? else { return Ok(Exit::Interrupted) };
    told(place, opened, &name, &report, is_interrupted).await
}

/// A queued run that was never offered has nothing to be about, and its key would be spent.
async fn needs_no_payload(opened: &Opened, name: &str) -> Result<(), Fault> {
    let Some((job, key)) = name.split_once('#') else { return Ok(()) };
    let file = opened.project.jobs().iter().find(|file| file.name.as_str() == job);
    let is_payload = |name: &str| name.starts_with("payload");
    let needs = file.is_some_and(|file| match &file.action {
        Action::Command(words) => words.iter().any(|word| word.names().any(is_payload)),
        Action::Sql(statements) => statements.iter().any(|sql| sql.names().into_iter().any(is_payload)),
    });
    if needs && opened.refrain.show(name).await?.is_none() {
        return Err(Fault::Refused(format!(
            "nobody has enqueued `{key}`, and `{job}` needs a payload\n  refrain enqueue {job} --key {key} --payload JSON"
        )));
    }
    Ok(())
}

/// Says what became of a run, and what to type next.
pub(super) async fn told(
    place: &Place,
    opened: Opened,
    name: &str,
    report: &RunReport,
    is_interrupted: bool,
) -> Result<Exit, Fault> {
    let output = place.output;
    let message = said_last(&opened.refrain, &report.run).await?;
    let counted = counted(&opened.refrain, report).await?;
    let is_held = opened.refrain.held_at(&report.run).await?.is_some();
    opened.close().await;
    let is_late = message.as_deref().is_some_and(|message| message.starts_with("timed out"));
    output.result(&Report::of(name, report, message, counted))?;
    Ok(match () {
        () if report.did == Did::Deduplicated => {
            output.say("nothing was done; add --again for another attempt");
            Exit::Done
        }
        () if report.is_done() => {
            output.say(format_args!(
                "recorded; the same command finds it done from now on. What it printed: refrain logs {name}"
            ));
            Exit::Done
        }
        () if is_held => {
            output
                .say(format_args!("it waits for a person: look what it has done, then refrain retry {name}"));
            Exit::Waits
        }
        () if is_interrupted => {
            output.say("it was given back; the same command goes on");
            Exit::Interrupted
        }
        () if report.run.standing.is_open() => {
            output.say(
                "it is tried again by `refrain serve` or `refrain tick`, or by the same command at once",
            );
            if is_late { Exit::TimedOut } else { Exit::Failed }
        }
        () => {
            output.say(format_args!("look: refrain logs {name}; the same command tries it again"));
            if is_late { Exit::TimedOut } else { Exit::Failed }
        }
    })
}

/// The units of the attempt if it had any, else the run itself.
async fn counted(refrain: &Refrain, report: &RunReport) -> Result<Four, Fault> {
    let RunReport { did, attempt, run } = report;
    let units = refrain.units(run).await?.into_iter().find(|units| units.attempt == *attempt);
    Ok(match units {
        Some(units) if *did != Did::Deduplicated => Four {
            processed: units.counts.processed,
            skipped: units.counts.skipped,
            deduplicated: units.counts.deduplicated,
            failed: units.counts.failed,
        },
        _ => counts(*did, run),
    })
}

/// What the last attempt said that ended; of an open run it stands with the attempts before.
async fn said_last(refrain: &Refrain, run: &RunRecord) -> Result<Option<String>, Fault> {
    if !run.standing.is_open() {
        return Ok(run.message.clone());
    }
    Ok(refrain.attempts(run).await?.pop().and_then(|attempt| attempt.message))
}
