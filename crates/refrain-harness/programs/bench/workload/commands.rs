//! What a command costs beyond its process, how soon a new process claims its first run, and how much memory a long
//! list of windows takes.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use refrain::action::command::{Command, CommandJob};
use refrain::{Ask, Definition, Job, JobError, Refrain, Run, Settings};
use sqlx::Connection as _;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::units::resident;
use crate::report::{Figure, Report, Target, Unit};
use crate::scratch::{Scratch, Server};
use crate::{Plan, Result};

const RUNS: u32 = 2_000;
/// How many processes run at once, in the baseline and in Refrain.
const AT_ONCE: usize = 8;
const STARTS: usize = 20;
const WINDOWS: u32 = 100_000;
const FEW_WINDOWS: u32 = 1_000;

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let count = plan.scaled(RUNS);
    let mut ratios = Vec::new();
    let mut context = String::new();
    for _ in 0..plan.repetitions {
        let by_hand = spawned(count).await?;
        let ours = executed(server, count).await?;
        ratios.push(ours.as_secs_f64() / by_hand.as_secs_f64());
        let each = |took: Duration| took.as_secs_f64() * 1_000.0 / f64::from(count);
        context = format!("{:.2} ms a run, {:.2} ms by hand", each(ours), each(by_hand));
    }
    let what = format!("{count} commands, {AT_ONCE} at once, against spawning them");
    report.add(
        server.name(),
        Figure { what, unit: Unit::Times, values: ratios, target: Target::AtMost(1.5), context },
    );
    start(server, report).await?;
    list(plan, server, report).await
}

/// The baseline: a loop that only runs the processes and reads their output.
async fn spawned(count: u32) -> Result<Duration> {
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..count {
        if running.len() >= AT_ONCE {
            running.join_next().await;
        }
        running.spawn(async {
            let mut command = tokio::process::Command::new("true");
            command.stdin(Stdio::null()).kill_on_drop(true).output().await.is_ok()
        });
    }
    if !running.join_all().await.iter().all(|is_well| *is_well) {
        return Err("`true` could not be started".into());
    }
    Ok(begun.elapsed())
}

async fn executed(server: &Server, count: u32) -> Result<Duration> {
    let scratch = server.database().await?;
    let job = CommandJob::new(|_: &Run| {
        Ok(Command { argv: vec!["true".to_owned()], directory: "/".into(), ..Command::default() })
    });
    let settings = Settings::new().slots(AT_ONCE);
    let options = Refrain::at(&scratch.address, "bench")?.settings(settings);
    let refrain = options.job(job.definition("true")?).open().await?;
    let offers = (0..count).map(|at| (format!("{at:08}"), ()));
    refrain.enqueue_many("true", offers).await?;
    let begun = Instant::now();
    let counts = refrain.tick().await?;
    let took = begun.elapsed();
    refrain.close().await;
    server.remove(scratch).await?;
    if counts.ended != u64::from(count) || counts.failed > 0 {
        return Err(format!("{counts:?} instead of {count} that went well").into());
    }
    Ok(took)
}

struct First(Arc<Notify>);

impl Job for First {
    const NAME: &'static str = "first";

    async fn run(&self, _: &mut Run) -> std::result::Result<(), JobError> {
        self.0.notify_one();
        Ok(())
    }
}

/// The time from the start of a process to the first line of a job, against a connection and one query.
async fn start(server: &Server, report: &mut Report) -> Result<()> {
    let scratch = server.database().await?;
    let (mut ratios, mut ours, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..STARTS {
        let begun = Instant::now();
        count_jobs(server, &scratch).await?;
        let empty = begun.elapsed();
        let (begins, begun) = (Arc::new(Notify::new()), Instant::now());
        let job = Definition::of(First(Arc::clone(&begins)))?;
        let refrain = Refrain::at(&scratch.address, "bench")?.job(job).open().await?;
        let run = format!("first#{number}");
        let (done, took) = tokio::join!(refrain.run(&run, Ask::Once), async {
            begins.notified().await;
            begun.elapsed()
        });
        done?;
        refrain.close().await;
        ratios.push(took.as_secs_f64() / empty.as_secs_f64());
        ours.push(took.as_secs_f64() * 1_000.0);
        bare.push(empty.as_secs_f64() * 1_000.0);
    }
    server.remove(scratch).await?;
    let median = crate::report::median;
    let context = format!("{:.1} ms, {:.1} ms for a connection and a query", median(&ours), median(&bare));
    let what = "from start to the first claim, against a connection and a query".to_owned();
    report.add(
        server.name(),
        Figure { what, unit: Unit::Times, values: ratios, target: Target::Open, context },
    );
    Ok(())
}

async fn count_jobs(server: &Server, scratch: &Scratch) -> Result<()> {
    match server {
        Server::Sqlite(_) => {
            let mut connection = sqlx::SqliteConnection::connect(&scratch.address).await?;
            sqlx::query("select count(*) from refrain_jobs").execute(&mut connection).await?;
            connection.close().await?;
        }
        Server::Postgres(_) => {
            let mut connection = sqlx::PgConnection::connect(&scratch.address).await?;
            sqlx::query("select count(*) from refrain.jobs").execute(&mut connection).await?;
            connection.close().await?;
        }
    }
    Ok(())
}

/// Memory while windows are listed page by page, as `status --json` does.
async fn list(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let scratch = server.database().await?;
    let job = Definition::of(First(Arc::default()))?;
    let refrain = Refrain::at(&scratch.address, "bench")?.job(job).open().await?;
    let mut sizes = Vec::new();
    let mut from = 0;
    for many in [FEW_WINDOWS, plan.scaled(WINDOWS)] {
        let offers = (from..many).map(|at| (format!("{at:08}"), ()));
        refrain.enqueue_many(First::NAME, offers).await?;
        from = many;
        let (mut after, mut seen) = (String::new(), 0);
        loop {
            let page = refrain.runs(First::NAME, &after).await?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.key);
            seen += page.len();
        }
        if seen != usize::try_from(many)? {
            return Err(format!("{seen} of {many} runs were listed").into());
        }
        sizes.push(resident()?);
    }
    refrain.close().await;
    server.remove(scratch).await?;
    let (Some(before), Some(after)) = (sizes.first(), sizes.last()) else { return Ok(()) };
    let what = format!("memory after a list of {} runs, against one of {FEW_WINDOWS}", plan.scaled(WINDOWS));
    let context = format!("{:.0} MiB, {:.0} MiB", after / 1_048_576.0, before / 1_048_576.0);
    let values = vec![after / before];
    report
        .add(server.name(), Figure { what, unit: Unit::Times, values, target: Target::AtMost(1.3), context });
    Ok(())
}
