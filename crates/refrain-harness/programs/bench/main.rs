//! The cost of Refrain, as ratios that are measured within one run.
//!
//! Seconds say more about the machine than about the program, so every figure here is a quotient of two measurements
//! that were made one after the other, several times in turn: Refrain against a hand-written loop that makes the same
//! writes, a full store against an empty one, short runs with long ones among them against short ones alone. The time
//! behind each quotient is printed as context. `./bench` runs this with a PostgreSQL of its own.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the report is the result, progress is talk")]
#![expect(clippy::cast_precision_loss, reason = "counts and medians of a few million at most")]

mod cpu;
mod raw;
mod report;
mod scratch;
mod subject;
mod workload {
    //! One file per question.
    pub(crate) mod commands;
    pub(crate) mod disk;
    pub(crate) mod drain;
    pub(crate) mod flat;
    pub(crate) mod idle;
    pub(crate) mod killed;
    pub(crate) mod lines;
    pub(crate) mod mixed;
    pub(crate) mod publish;
    pub(crate) mod units;
}

use std::process::ExitCode;

use report::Report;
use scratch::Server;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const WORKLOADS: [&str; 10] =
    ["disk", "drain", "units", "lines", "killed", "publish", "commands", "flat", "mixed", "idle"];
const USAGE: &str =
    "bench [--quick] [--json] [--repetitions N] [disk] [drain] [units] [lines] [killed] [publish] \
     [commands] [flat] [mixed] [idle]
DATABASE_URL: a PostgreSQL server on which databases may be made; without it, SQLite alone is measured";

/// The parsed command line.
pub(crate) struct Plan {
    is_quick: bool,
    is_json: bool,
    repetitions: usize,
    workloads: Vec<String>,
}

impl Plan {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Plan> {
        let mut plan = Plan { is_quick: false, is_json: false, repetitions: 3, workloads: Vec::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => plan.is_quick = true,
                "--json" => plan.is_json = true,
                "--repetitions" => {
                    let number =
                        words.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
                    plan.repetitions = number.ok_or("--repetitions takes a number")?;
                }
                name if WORKLOADS.contains(&name) => plan.workloads.push(word),
                _ => return Err(format!("`{word}` is not known\n{USAGE}").into()),
            }
        }
        if plan.workloads.is_empty() {
            plan.workloads = WORKLOADS.map(str::to_owned).to_vec();
        }
        Ok(plan)
    }

    /// A tenth of it with `--quick`.
    pub(crate) fn scaled(&self, count: u32) -> u32 {
        if self.is_quick { count / 10 } else { count }
    }

    /// The second value with `--quick`.
    pub(crate) fn either<T>(&self, quick: T, thorough: T) -> T {
        if self.is_quick { quick } else { thorough }
    }
}

fn main() -> ExitCode {
    refrain::host::supervise();
    measured()
}

#[tokio::main]
async fn measured() -> ExitCode {
    match Box::pin(measure()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<()> {
    if let Some(folder) = std::env::args().skip(1).skip_while(|word| word != workload::killed::VICTIM).nth(1)
    {
        return workload::killed::sync(&folder).await;
    }
    let plan = Plan::parse(std::env::args().skip(1))?;
    let mut servers = vec![Server::sqlite()?];
    match std::env::var("DATABASE_URL") {
        Ok(url) => servers.push(Server::postgres(&url)?),
        Err(_) => eprintln!("== no DATABASE_URL: SQLite alone"),
    }
    let mut report = Report::new(plan.is_json);
    for server in &servers {
        report.setting(server.name(), &server.settings().await?);
    }
    for workload in &plan.workloads {
        for server in &servers {
            eprintln!("== {workload} on {}", server.name());
            match workload.as_str() {
                "disk" => workload::disk::measure(&plan, server, &mut report).await?,
                "drain" => workload::drain::measure(&plan, server, &mut report).await?,
                "units" => workload::units::measure(&plan, server, &mut report).await?,
                "lines" => workload::lines::measure(&plan, server, &mut report).await?,
                "killed" => workload::killed::measure(&plan, server, &mut report).await?,
                "publish" => workload::publish::measure(&plan, server, &mut report).await?,
                "commands" => workload::commands::measure(&plan, server, &mut report).await?,
                "flat" => workload::flat::measure(&plan, server, &mut report).await?,
                "mixed" => workload::mixed::measure(&plan, server, &mut report).await?,
                _ => workload::idle::measure(&plan, server, &mut report).await?,
            }
        }
    }
    report.print();
    Ok(())
}
