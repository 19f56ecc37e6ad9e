//! The throughput of enqueuing and draining runs that do nothing, against the same writes in the baseline.

use crate::raw::Raw;
use crate::report::{Pairs, Report};
use crate::scratch::Server;
use crate::subject::{Subject, keys};
use crate::{Plan, Result};

/// Enough runs to hide the cost of starting and stopping an engine; they take seconds.
const RUNS: u32 = 50_000;
/// How many runs are enqueued in one transaction.
const ENQUEUED: usize = 5_000;
/// The most runs that are claimed, and recorded, in one transaction.
const CLAIMED: usize = 2_000;
/// The limit: Refrain may use half of the database's throughput for its records.
const ENOUGH: f64 = 0.5;

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let (count, keys) = (RUNS, keys(RUNS));
    let each = |seconds: f64| f64::from(count) / seconds;
    let (mut enqueue, mut drain) = (Pairs::default(), Pairs::default());
    for _ in 0..plan.repetitions {
        let scratch = server.database().await?;
        let mut raw = Raw::open(server, &scratch).await?;
        let by_hand = raw.enqueue(&keys, ENQUEUED).await?;
        let drained = raw.drain(CLAIMED).await?;
        raw.close().await?;
        server.remove(scratch).await?;
        let scratch = server.database().await?;
        let subject = Subject::open(&scratch.address, CLAIMED).await?;
        let ours = subject.enqueue(&keys, ENQUEUED).await?;
        let our_drain = subject.drain(count).await?;
        subject.close().await;
        server.remove(scratch).await?;
        if drained.runs != count || our_drain.runs != count {
            return Err(format!("{} and {} of {count} were drained", drained.runs, our_drain.runs).into());
        }
        enqueue.push(each(ours.as_secs_f64()), each(by_hand.as_secs_f64()));
        drain.push(each(our_drain.took.as_secs_f64()), each(drained.took.as_secs_f64()));
    }
    report.add(server.name(), enqueue.figure(format!("enqueue of {count}, against by hand"), ENOUGH));
    report.add(server.name(), drain.figure(format!("drain of {count}, against by hand"), ENOUGH));
    Ok(())
}
