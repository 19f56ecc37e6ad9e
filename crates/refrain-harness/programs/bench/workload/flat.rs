//! Whether a full store costs more than an empty one: the cost of a run with many more queued behind it, and with
//! millions that are done.

use crate::report::{Figure, Report, Target, Unit, median};
use crate::scratch::Server;
use crate::subject::{Subject, keys};
use crate::{Plan, Result};

/// Small batches, so that many claims are needed.
const SLOTS: usize = 500;
const ENQUEUED: usize = 1_000;
const FLAT: f64 = 1.3;

/// How many runs the store has.
struct Fill {
    finished: u32,
    queued: u32,
}

/// Seconds per run, one value for each repetition.
#[derive(Default)]
struct Cost {
    enqueue: Vec<f64>,
    drain: Vec<f64>,
}

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let drained = plan.scaled(20_000);
    let little = plan.scaled(50_000);
    let fills = [
        Fill { finished: 0, queued: little },
        Fill { finished: 0, queued: plan.scaled(1_000_000) },
        Fill { finished: plan.scaled(3_000_000), queued: little },
    ];
    let mut costs: [Cost; 3] = Default::default();
    for _ in 0..plan.repetitions {
        for (fill, cost) in fills.iter().zip(&mut costs) {
            let (enqueue, drain) = cost_of(server, fill, drained).await?;
            cost.enqueue.push(enqueue);
            cost.drain.push(drain);
        }
    }
    let [base, queued, finished] = costs;
    let [_, Fill { queued: many_queued, .. }, Fill { finished: many_finished, .. }] = fills;
    for (full, against) in [
        (queued, format!("{many_queued} queued against {little}")),
        (finished, format!("{many_finished} finished against none")),
    ] {
        report.add(server.name(), figure(format!("drain: {against}"), &full.drain, &base.drain));
        report.add(server.name(), figure(format!("enqueue: {against}"), &full.enqueue, &base.enqueue));
    }
    Ok(())
}

/// Enqueues at the end of the line, then drains from its front; returns seconds per run.
async fn cost_of(server: &Server, fill: &Fill, drained: u32) -> Result<(f64, f64)> {
    let scratch = server.database().await?;
    let mut plain = server.connect(&scratch).await?;
    let job = plain.job("noop").await?;
    if fill.finished > 0 {
        plain.finished(job, fill.finished).await?;
    }
    plain.queued(job, fill.queued).await?;
    plain.tidy_up().await?;
    plain.close().await?;
    let subject = Subject::open(&scratch.address, SLOTS).await?;
    let enqueue = subject.enqueue(&keys(drained), ENQUEUED).await?.as_secs_f64() / f64::from(drained);
    let drain = subject.drain(drained).await?.seconds_each();
    subject.close().await;
    server.remove(scratch).await?;
    Ok((enqueue, drain))
}

fn figure(what: String, full: &[f64], base: &[f64]) -> Figure {
    let context = format!("{:.1} µs a run, {:.1} µs", median(full) * 1e6, median(base) * 1e6);
    let values = full.iter().zip(base).map(|(full, base)| full / base).collect();
    Figure { what, unit: Unit::Times, values, target: Target::AtMost(FLAT), context }
}
