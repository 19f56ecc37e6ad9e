//! `refrain runs`: runs of all jobs, newest first.

use clap::Args;
use refrain::admin::{LISTED_RUNS_MAX, RunStatus};

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::run_line::RunLine;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain runs\n  refrain runs --state failed\n  refrain runs --job export --limit 5 --json"
)]
pub(crate) struct Arguments {
    /// Only runs of this job.
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<String>,
    /// Only runs of this status: due, running, done, waiting, partial, failed, skipped, cancelled, late, outdated.
    #[arg(long, value_name = "STATUS", value_parser = status)]
    pub(crate) state: Option<RunStatus>,
    /// How many runs.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
}

fn status(text: &str) -> Result<RunStatus, String> {
    let words = RunStatus::ALL.map(RunStatus::name).join(", ");
    text.parse().map_err(|_| format!("`{text}` is not a status; write one of: {words}"))
}

pub(crate) async fn runs(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let Some(opened) = context.look_if_any().await? else {
        return context.nothing_of(arguments.job.as_deref());
    };
    let mut list = opened.refrain.list_runs(arguments.job.as_deref(), arguments.state).await?;
    let mut left = arguments.limit;
    'pages: while let Some(page) = list.next_page().await? {
        for run in &page {
            left -= 1;
            if !output.line(&RunLine(run))? || left == 0 {
                break 'pages;
            }
        }
    }
    opened.close().await;
    if list.is_cut() {
        output.say(format_args!("only the newest {LISTED_RUNS_MAX} runs were read"));
    }
    if left == arguments.limit {
        output.say("no such run; all jobs: refrain status");
    } else {
        output.say("one of them: refrain show RUN; the rule behind its state: refrain why RUN");
    }
    Ok(Exit::Done)
}
