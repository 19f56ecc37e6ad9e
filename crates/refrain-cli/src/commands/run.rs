//! `refrain run`: one run, now and here.

use std::fmt;

use jiff::Timestamp;
use refrain::core::RunName;
use refrain::core::state::RunOutcome;
use refrain::{Ask, Did, Place, Refrain, RunRecord, RunReport};
use serde::Serialize;

use crate::cli::Run;
use crate::exit::{Exit, Fault};
use crate::output::{Four, harmless};
use crate::signals::{Ended, Signals, Step};
use crate::store::Named;

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
    fn of(name: &RunName, RunReport { did, run, .. }: &RunReport, message: Option<String>) -> Report {
        let again_at = match run.place {
            Some(Place::Delayed(at)) => Timestamp::from_microsecond(at).ok(),
            _ => None,
        };
        Report {
            run: name.to_string(),
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
            counts: counts(*did, run.standing.outcome, run.standing.is_open()),
        }
    }
}

fn counts(did: Did, outcome: Option<RunOutcome>, is_open: bool) -> Four {
    let none = Four::default();
    match (did, outcome) {
        (Did::Deduplicated, _) => Four { deduplicated: 1, ..none },
        _ if is_open => none,
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
            (_, _, Some(at)) => write!(f, "{run}: {state} again, not before {at:.0} (attempt {attempt})")?,
            ("followed", ..) => write!(f, "{run}: {state} (attempt {attempt}, made elsewhere)")?,
            _ => write!(f, "{run}: {state} (attempt {attempt})")?,
        }
        if let Some(message) = &self.message {
            write!(f, ": {}", harmless(message))?;
        }
        write!(f, "\n{}", self.counts)
    }
}

pub(crate) async fn run(named: &Named, arguments: &Run) -> Result<Exit, Fault> {
    let output = named.output;
    let name: RunName = arguments.run.parse()?;
    let signals = Signals::listen()?;
    let refrain = named.prepared()?.open().await?;
    let ask = if arguments.again { Ask::Again } else { Ask::Once };
    let stop = refrain.stop_handle();
    let work = Box::pin(refrain.run(&arguments.run, ask));
    let Ended { result, is_interrupted } = signals.see_through(work, &stop, &[Step::StopNow], output).await;
    let Some(report) = result.transpose()? else { return Ok(Exit::Interrupted) };
    let message = said_last(&refrain, &report.run).await?;
    refrain.close().await;
    output.result(&Report::of(&name, &report, message))?;
    Ok(match () {
        () if report.did == Did::Deduplicated => {
            output.say("nothing was done; add --again for another attempt");
            Exit::Done
        }
        () if report.is_done() => {
            output.say("recorded; the same command finds it done from now on");
            Exit::Done
        }
        () if is_interrupted => {
            output.say("it was given back; the same command goes on");
            Exit::Interrupted
        }
        () if report.run.standing.is_open() => {
            output.say(
                "it is tried again by `refrain serve` or `refrain tick`, or by the same command at once",
            );
            Exit::Failed
        }
        () => {
            output.say("the same command tries it again");
            Exit::Failed
        }
    })
}

/// What the last attempt said that ended; of an open run it stands with the attempts before.
async fn said_last(refrain: &Refrain, run: &RunRecord) -> Result<Option<String>, Fault> {
    if !run.standing.is_open() {
        return Ok(run.message.clone());
    }
    Ok(refrain.attempts(run).await?.pop().and_then(|attempt| attempt.message))
}
