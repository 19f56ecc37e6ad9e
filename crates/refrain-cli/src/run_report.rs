//! What became of runs that were asked for: what `run` and `retry` print, and the code they end with.

use std::fmt;

use jiff::Timestamp;
use refrain::core::Word as _;
use refrain::core::project::Action;
use refrain::core::state::{FailureReason, RunOutcome};
use refrain::core::terminal::typed;
use refrain::{Did, Project, QueuePosition, Refrain, RunRecord, RunReport};
use serde::Serialize;

use crate::context::{Context, Opened};
use crate::doubts::{Doubt, advice};
use crate::exit::{Exit, Fault};
use crate::output::{Four, harmless_lines};

/// A run that was asked for.
pub(crate) struct Ran {
    /// As it is called.
    pub(crate) name: String,
    pub(crate) report: RunReport,
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
    reason: Option<String>,
    needs_a_person: bool,
    /// What waits for one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<Doubt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<WaitsFor>,
    counts: Four,
}

/// What a run waits for that was given up, as `refrain why` says it.
#[derive(Serialize)]
struct WaitsFor {
    rule: &'static str,
    said: String,
}

impl Report {
    async fn of(refrain: &Refrain, Ran { name, report }: &Ran) -> Result<Report, Fault> {
        let RunReport { did, run, .. } = report;
        let (message, reason) = said_last(refrain, run).await?;
        let is_held = *did == Did::Held || reason.is_some_and(FailureReason::needs_a_person);
        let needs_a_person = is_held && !report.is_done();
        let doubts = if needs_a_person { refrain.doubts(run).await? } else { Vec::new() };
        Ok(Report {
            run: name.clone(),
            did: match did {
                Did::Ran => "ran",
                Did::Followed => "followed",
                Did::Deduplicated => "deduplicated",
                Did::Held => "held",
                Did::Settled => "settled",
                Did::GaveUp => "gave-up",
            },
            state: run.standing.node().to_string(),
            attempt: run.attempt,
            started_at: run.started_at,
            ended_at: run.ended_at,
            again_at: match run.place {
                Some(QueuePosition::Delayed(at)) => Timestamp::from_microsecond(at).ok(),
                _ => None,
            },
            message,
            reason: reason.map(|reason| reason.to_string()),
            needs_a_person,
            doubts: doubts.into_iter().map(Doubt::from).collect(),
            waits_for: report.waits_for.as_ref().map(|cause| {
                let told = cause.told();
                WaitsFor { rule: told.rule, said: told.said }
            }),
            counts: counted(refrain, report).await?,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { run, state, attempt, .. } = self;
        match (self.did, self.ended_at, self.again_at) {
            ("gave-up", ..) => {
                write!(f, "{run}: {state} (attempt {attempt}); not waited for any longer")?;
                return match &self.waits_for {
                    Some(WaitsFor { said, .. }) => write!(f, "\n  {}", harmless_lines(said, "  ")),
                    None => Ok(()),
                };
            }
            ("deduplicated", Some(at), _) => {
                write!(f, "{run}: {state} already, at {at:.0} (attempt {attempt})")?;
            }
            (_, _, Some(at)) => {
                let failed = attempt.saturating_sub(1);
                write!(f, "{run}: attempt {failed} failed; {state} again, not before {at:.0}")?;
            }
            ("held", ..) => write!(f, "{run}: {state} (attempt {attempt}); it waits for a person")?,
            ("followed", ..) => write!(f, "{run}: {state} (attempt {attempt}, made elsewhere)")?,
            _ => write!(f, "{run}: {state} (attempt {attempt})")?,
        }
        match &self.message {
            Some(message) => write!(f, "\n  {}", harmless_lines(message, "  ")),
            None => Ok(()),
        }
    }
}

/// The units of the attempt if it was made here and had any, else the run itself: what another process did is counted
/// there.
async fn counted(refrain: &Refrain, report: &RunReport) -> Result<Four, Fault> {
    let RunReport { did, attempt, run, .. } = report;
    let units = refrain.units(run).await?.into_iter().find(|units| units.attempt == *attempt);
    Ok(match units {
        Some(units) if *did == Did::Ran => units.counts.into(),
        _ => counts(*did, run),
    })
}

fn counts(did: Did, run: &RunRecord) -> Four {
    let none = Four::default();
    match (did, run.standing.outcome) {
        (Did::GaveUp | Did::Settled, _) => none,
        (Did::Deduplicated, _) => Four { deduplicated: 1, ..none },
        _ if matches!(run.place, Some(QueuePosition::Delayed(_))) => Four { failed: 1, ..none },
        _ if run.standing.is_open() => none,
        (Did::Followed, Some(RunOutcome::Done | RunOutcome::Waiting)) => Four { deduplicated: 1, ..none },
        (_, Some(RunOutcome::Done | RunOutcome::Waiting)) => Four { processed: 1, ..none },
        (_, Some(RunOutcome::Skipped)) => Four { skipped: 1, ..none },
        (_, Some(RunOutcome::Failed | RunOutcome::Partial)) => Four { failed: 1, ..none },
        (_, Some(RunOutcome::Cancelled) | None) => none,
    }
}

/// What the last attempt said that ended, and why it did not do its work; of an open run it stands with the attempts before.
async fn said_last(
    refrain: &Refrain,
    run: &RunRecord,
) -> Result<(Option<String>, Option<FailureReason>), Fault> {
    if !run.standing.is_open() {
        return Ok((run.message.clone(), run.reason));
    }
    let last = refrain.attempts(run).await?.pop();
    Ok(last.map_or((None, None), |attempt| (attempt.message, attempt.reason)))
}

/// Says what became of runs, and what to type next. The code is that of the worst.
pub(crate) async fn told(
    context: &Context,
    opened: Opened,
    ran: Vec<Ran>,
    is_interrupted: bool,
) -> Result<Exit, Fault> {
    let output = context.output;
    let mut total = Four::default();
    let mut worst: Option<(Exit, &Ran, Vec<Doubt>)> = None;
    for one in &ran {
        let report = Report::of(&opened.refrain, one).await?;
        total = total.with(report.counts);
        let exit = exit(&one.report, &report, is_interrupted);
        output.line(&report)?;
        if worst.as_ref().is_none_or(|(most, ..)| exit >= *most) {
            worst = Some((exit, one, report.doubts));
        }
    }
    if !output.json {
        output.text(total)?;
    }
    let Opened { refrain, project } = opened;
    if let Some((exit, one, doubts)) = &worst {
        output.say(next(*exit, one, doubts, &project));
    }
    Opened { refrain, project }.close().await;
    Ok(worst.map_or(Exit::Done, |(exit, ..)| exit))
}

/// Decided by values alone: what was said may quote a program or a server.
fn exit(report: &RunReport, told: &Report, is_interrupted: bool) -> Exit {
    match () {
        () if report.did == Did::GaveUp => Exit::Unavailable,
        () if report.did == Did::Deduplicated || report.is_done() => Exit::Done,
        () if report.did == Did::Held => Exit::Waits,
        () if is_interrupted => Exit::Interrupted,
        () if told.needs_a_person => Exit::Waits,
        () if told.reason.as_deref() == Some(FailureReason::TimedOut.name()) => Exit::TimedOut,
        () => Exit::Failed,
    }
}

/// What to type next.
fn next(exit: Exit, Ran { name, report }: &Ran, doubts: &[Doubt], project: &Project) -> String {
    if exit == Exit::Waits {
        return advice(name, doubts);
    }
    let name = typed(name);
    let is_command = project
        .jobs()
        .iter()
        .any(|job| job.name.as_str() == report.run.job && matches!(job.action, Action::Command(_)));
    let look = if is_command { "logs" } else { "show" };
    match exit {
        Exit::Done if report.did == Did::Deduplicated => {
            "nothing was done; add --again for another attempt".to_owned()
        }
        Exit::Done if report.did == Did::Settled => {
            format!("recorded as done; nothing was executed. Look: refrain show {name}")
        }
        Exit::Done => {
            format!("recorded; the same command finds it done from now on. Look: refrain {look} {name}")
        }
        Exit::Unavailable => format!(
            "it stays queued; wait longer: refrain run {name} --wait 10m; look: refrain why {name}; call it off: refrain cancel {name}"
        ),
        Exit::Interrupted => "it was given back; the same command goes on".to_owned(),
        _ if report.run.standing.is_open() => {
            "it is tried again by `refrain serve` or `refrain tick`, or by the same command at once"
                .to_owned()
        }
        // A unit that is parked is not tried again by itself; `why` names it and what to type.
        _ if report.run.standing.outcome == Some(RunOutcome::Partial) => {
            format!("which units, and what to type: refrain why {name}")
        }
        _ => format!("look: refrain {look} {name}; the same command tries it again"),
    }
}
