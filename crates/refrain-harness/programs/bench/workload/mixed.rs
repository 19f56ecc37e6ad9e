//! Whether long runs make short ones wait: one in a hundred takes long, all arrive at a steady rate, and the figure
//! is how long a short one waits from before it is enqueued until it begins.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use refrain::{Definition, Job, JobError, Refrain, Run, Settings};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::report::{Figure, Report, Target, Unit, median, percentile};
use crate::scratch::Server;
use crate::{Plan, Result};

const EVERY: Duration = Duration::from_millis(5);
const SHORT: Duration = Duration::from_millis(5);
/// One run in this many is long.
const LONG_ONE_IN: u32 = 100;
/// Slots for all long runs that execute at once, and for the short ones beside them.
const SLOTS: usize = 100;
const BEARABLE: f64 = 2.0;

/// How many runs are enqueued, and in which time.
#[derive(Clone, Copy)]
struct Load {
    arrivals: u32,
    long: Duration,
    has_long: bool,
}

/// How long each short run waited, in seconds.
struct Waits {
    since: Instant,
    seconds: Mutex<Vec<f64>>,
    more: Notify,
}

struct Timed(Arc<Waits>);

impl Job for Timed {
    const NAME: &'static str = "timed";

    async fn run(&self, run: &mut Run) -> std::result::Result<(), JobError> {
        let begun = self.0.since.elapsed();
        let (asked, work): (Duration, Duration) = run.payload()?;
        if work == SHORT {
            let wait = begun.saturating_sub(asked).as_secs_f64();
            self.0.seconds.lock().unwrap_or_else(PoisonError::into_inner).push(wait);
            self.0.more.notify_one();
        }
        tokio::time::sleep(work).await;
        Ok(())
    }
}

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let long = Duration::from_secs(plan.either(3, 30));
    let load = Load { arrivals: plan.either(1_200, 6_000), long, has_long: true };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..plan.repetitions {
        without.push(pickups(server, Load { has_long: false, ..load }).await?);
        with.push(pickups(server, load).await?);
    }
    for (part, name) in [(0.5, "median"), (0.99, "p99")] {
        let of = |waits: &[Vec<f64>]| waits.iter().map(|waits| percentile(waits, part)).collect::<Vec<f64>>();
        let (with, without) = (of(&with), of(&without));
        let values = with.iter().zip(&without).map(|(with, without)| with / without).collect();
        let context = format!("{:.1} ms, {:.1} ms without", median(&with) * 1e3, median(&without) * 1e3);
        let what =
            format!("pickup {name} of short runs, 1 % of {} s among them, against none", long.as_secs());
        let figure = Figure { what, unit: Unit::Times, values, target: Target::AtMost(BEARABLE), context };
        report.add(server.name(), figure);
    }
    Ok(())
}

/// Enqueues a load to an idle engine, and returns how long the short runs waited.
async fn pickups(server: &Server, load: Load) -> Result<Vec<f64>> {
    let scratch = server.database().await?;
    let waits = Arc::new(Waits { since: Instant::now(), seconds: Mutex::default(), more: Notify::new() });
    let settings = Settings::new().slots(SLOTS);
    let job = Definition::of(Timed(Arc::clone(&waits)))?;
    let refrain = Refrain::at(&scratch.address, "bench")?.settings(settings).job(job).open().await?;
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let engine = tokio::spawn(serving.into_future());
    let short = offer(&refrain, &waits, load).await?;
    loop {
        let more = waits.more.notified();
        if waits.seconds.lock().unwrap_or_else(PoisonError::into_inner).len() >= short {
            break;
        }
        more.await;
    }
    stop.stop_now();
    engine.await??;
    refrain.close().await;
    server.remove(scratch).await?;
    let seconds = waits.seconds.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(seconds.clone())
}

/// Enqueues at a steady rate, however long an enqueue takes. Returns how many short runs were enqueued.
async fn offer(refrain: &Refrain, waits: &Waits, load: Load) -> Result<usize> {
    let mut ticks = tokio::time::interval(EVERY);
    let mut offers = JoinSet::new();
    let mut short = 0;
    for at in 0..load.arrivals {
        ticks.tick().await;
        let is_long = at % LONG_ONE_IN == LONG_ONE_IN / 2;
        if is_long && !load.has_long {
            continue;
        }
        short += usize::from(!is_long);
        let payload = (waits.since.elapsed(), if is_long { load.long } else { SHORT });
        let refrain = refrain.clone();
        offers.spawn(async move { refrain.enqueue(Timed::NAME, &format!("{at:08}"), &payload).await });
    }
    while let Some(offered) = offers.join_next().await {
        offered??;
    }
    Ok(short)
}
