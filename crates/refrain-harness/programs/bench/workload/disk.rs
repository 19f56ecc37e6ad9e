//! What the disk and the databases can do: durable commits of one row. Context for all other figures, and the cost of
//! an enqueue.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use crate::raw::Raw;
use crate::report::{Figure, Report, Target, Unit};
use crate::scratch::Server;
use crate::subject::{Subject, keys};
use crate::{Plan, Result};

const SPAN: Duration = Duration::from_secs(2);

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let count = plan.scaled(5_000);
    let keys = keys(count);
    let (mut commits, mut ratios, mut enqueues, mut disks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.repetitions {
        let scratch = server.database().await?;
        let mut raw = Raw::open(server, &scratch).await?;
        let by_hand = raw.enqueue(&keys, 1).await?.as_secs_f64();
        raw.close().await?;
        server.remove(scratch).await?;
        let scratch = server.database().await?;
        let subject = Subject::open(&scratch.address, 1).await?;
        let ours = subject.enqueue(&keys, 1).await?.as_secs_f64();
        subject.close().await;
        server.remove(scratch).await?;
        ratios.push(by_hand / ours);
        commits.push(f64::from(count) / by_hand);
        enqueues.push(f64::from(count) / ours);
        if let Server::Sqlite(directory) = server {
            disks.push(flushes(&directory.path().join("flushed"))?);
        }
    }
    let figure = |what: &str, unit, values, context: &str| Figure {
        what: what.to_owned(),
        unit,
        values,
        target: Target::Open,
        context: context.to_owned(),
    };
    if !disks.is_empty() {
        let (what, context) = ("disk: writes of 8 KiB, each flushed", "fdatasync in the same directory");
        report.add(server.name(), figure(what, Unit::PerSecond, disks, context));
    }
    let context = "a run and its place in the queue, by hand";
    report.add(server.name(), figure("one run a commit", Unit::PerSecond, commits, context));
    let context = format!("{:.0}/s", crate::report::median(&enqueues));
    report.add(server.name(), figure("enqueue one by one, against by hand", Unit::Times, ratios, &context));
    Ok(())
}

/// Durable writes per second, of one page over and over.
fn flushes(path: &std::path::Path) -> Result<f64> {
    let file = File::create(path)?;
    file.write_all_at(&vec![1; 1 << 20], 0)?;
    file.sync_all()?;
    let begun = Instant::now();
    let mut count = 0_u32;
    while begun.elapsed() < SPAN {
        file.write_all_at(&[2; 8192], u64::from(count % 128) * 8192)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}
