//! `refrain runs`: runs of all jobs, newest first.

use std::collections::HashMap;

use clap::Args;
use refrain::JobView;

use crate::context::Context;
use crate::exit::{Exit, Fault};
use crate::run_line::{Mark, RunLine};

/// How many runs are looked at for those that are in a state; nothing indexes states.
const LOOKED_AT_MAX: usize = 100_000;
const PAGE: usize = 500;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain runs\n  refrain runs --state failed\n  refrain runs --job export --limit 5 --json"
)]
pub(crate) struct Arguments {
    /// Only runs of this job.
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<String>,
    /// Only runs that stand so: due, running, done, waiting, partial, failed, skipped, cancelled, late, outdated.
    #[arg(long, value_name = "STATE", value_parser = mark)]
    pub(crate) state: Option<Mark>,
    /// How many.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
}

fn mark(text: &str) -> Result<Mark, String> {
    let words = Mark::ALL.map(Mark::word).join(", ");
    let found = Mark::ALL.into_iter().find(|mark| mark.word() == text);
    found.ok_or_else(|| format!("`{text}` is no state; there are {words}"))
}

pub(crate) async fn runs(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = context.output;
    let Some(opened) = context.look_if_any().await? else {
        return context.nothing_of(arguments.job.as_deref());
    };
    let refrain = &opened.refrain;
    let now = refrain.now().await?;
    let mut views: HashMap<String, JobView> = HashMap::new();
    let (mut before, mut looked_at, mut left) = (None, 0, arguments.limit);
    if let Some(job) = &arguments.job {
        views.insert(job.clone(), refrain.view(job).await?);
    }
    'pages: while left > 0 && looked_at < LOOKED_AT_MAX {
        let page = refrain.recent(before, PAGE).await?;
        let Some(last) = page.last() else { break };
        before = Some(last.number());
        looked_at += page.len();
        for run in page {
            if arguments.job.as_ref().is_some_and(|job| *job != run.job) {
                continue;
            }
            if !views.contains_key(&run.job) {
                views.insert(run.job.clone(), refrain.view(&run.job).await?);
            }
            let Some(view) = views.get(&run.job) else { continue };
            let line = RunLine::of(&run, view, now);
            if arguments.state.is_none_or(|state| state == line.mark) {
                left -= 1;
                if !output.line(&line)? || left == 0 {
                    break 'pages;
                }
            }
        }
    }
    opened.close().await;
    if looked_at >= LOOKED_AT_MAX {
        output.say(format_args!("the newest {LOOKED_AT_MAX} runs were looked at"));
    }
    if left == arguments.limit {
        output.say("there is no such run; all that is known: refrain status");
    } else {
        output.say("one of them: refrain show RUN; why it stands so: refrain why RUN");
    }
    Ok(Exit::Done)
}
