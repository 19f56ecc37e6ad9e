//! What the death of a worker costs a sync: the lines of a script are written to a table by a process that is killed
//! half-way, and by the one that takes over, against one process that is not killed.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use refrain::project::Project;

use super::lines::{TABLE, prepared, timed, written};
use crate::report::{Figure, Report, Target, Unit};
use crate::scratch::Server;
use crate::{Plan, Result};

/// The argument by which this program knows that it is the process that syncs.
pub(crate) const VICTIM: &str = "--sync-in";
const LINES: u32 = 200_000;
/// How often the rows are counted until half of them are written.
const LOOK: Duration = Duration::from_millis(5);

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let count = plan.scaled(LINES);
    let (mut values, mut context) = (Vec::new(), String::new());
    for _ in 0..plan.repetitions {
        let calm = synced(server, count, None).await?.as_secs_f64();
        let killed = synced(server, count, Some(i64::from(count / 2))).await?.as_secs_f64();
        values.push(killed / calm);
        context = format!("{killed:.1} s, without a kill {calm:.1} s");
    }
    let what = format!("{count} lines with one kill in the middle, against none");
    report.add(server.name(), Figure { what, unit: Unit::Times, values, target: Target::Open, context });
    Ok(())
}

/// How long it takes until all lines are written.
async fn synced(server: &Server, count: u32, killed_at: Option<i64>) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    for name in ["few", "many"] {
        written(&folder.path().join(name), count)?;
    }
    let scratch = server.database().await?;
    let mut plain = server.connect(&scratch).await?;
    plain.run(TABLE).await?;
    prepared(folder.path(), &scratch).await?.close().await;
    let begun = Instant::now();
    if let Some(enough) = killed_at {
        let mut victim = started(folder.path())?;
        while plain.number("select count(*) from invoices").await? < enough {
            if let Some(status) = victim.try_wait()? {
                return Err(format!("it ended before it was killed: {status}").into());
            }
            tokio::time::sleep(LOOK).await;
        }
        victim.kill()?;
        victim.wait()?;
    }
    let status = started(folder.path())?.wait()?;
    let took = begun.elapsed();
    if !status.success() || plain.number("select count(*) from invoices").await? != i64::from(count) {
        return Err(format!("not all lines are there: {status}").into());
    }
    plain.close().await?;
    server.remove(scratch).await?;
    Ok(took)
}

fn started(folder: &Path) -> Result<Child> {
    Ok(Command::new(std::env::current_exe()?).arg(VICTIM).arg(folder).spawn()?)
}

/// The work of such a process.
pub(crate) async fn sync(folder: &str) -> Result<()> {
    let project = Project::load(Path::new(folder))?;
    let refrain = project.opening(None).await?.open().await?;
    timed(&refrain, "many#1").await?;
    refrain.close().await;
    Ok(())
}
