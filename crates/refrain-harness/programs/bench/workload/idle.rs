//! The cost of ten thousand schedules while none is due, and whether a tick costs per due schedule or per
//! schedule.
//!
//! All schedules are hourly. Most tick well after the measurement; nine groups of ten tick a minute after one
//! another, and the scheduler gets a clock that shows these times.

use std::time::{Duration, Instant};

use jiff::{Timestamp, ToSpan as _};
use refrain::core::{Dst, Grid, Schedule, Timetable, Zone};
use refrain::{Definition, Job, JobError, Refrain, Run, WhileRunning};

use crate::cpu::Processes;
use crate::report::{Figure, Report, Target, Unit, median};
use crate::scratch::{Scratch, Server};
use crate::{Plan, Result};

const MANY: u32 = 10_000;
const FEW: u32 = 100;
const DUE: u32 = 10;
const GROUPS: u32 = 9;
/// Minutes until the first group is due, and until all others are.
const FIRST: u32 = 30;
const OTHERS: u32 = 55;
/// How long an engine runs before its idle cost is measured.
const WARM: Duration = Duration::from_secs(3);
const HARDLY: f64 = 0.01;
const FLAT: f64 = 1.3;

struct Nothing;

impl Job for Nothing {
    const NAME: &'static str = "nothing";

    async fn run(&self, _: &mut Run) -> std::result::Result<(), JobError> {
        Ok(())
    }
}

/// A store with schedules, the nth group of which is due `FIRST + n` minutes after its first instant.
struct Scheduled {
    scratch: Scratch,
    refrain: Refrain,
    begun: Timestamp,
    took: Duration,
}

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let count = plan.scaled(MANY);
    let many = Scheduled::register(server, count).await?;
    rest(plan, server, &many, count, report).await?;
    let few = Scheduled::register(server, FEW).await?;
    let (mut with_many, mut with_few) = (Vec::new(), Vec::new());
    for group in 0..GROUPS {
        with_few.push(few.tick(group).await?);
        with_many.push(many.tick(group).await?);
    }
    let values = with_many.iter().zip(&with_few).map(|(many, few)| many / few).collect();
    let context = format!("{:.2} ms, {:.2} ms", median(&with_many) * 1e3, median(&with_few) * 1e3);
    let what = format!("a tick with {DUE} due among {count}, against among {FEW}");
    report.add(
        server.name(),
        Figure { what, unit: Unit::Times, values, target: Target::AtMost(FLAT), context },
    );
    many.close(server).await?;
    few.close(server).await
}

/// The processor time of the engine and the server while nothing is due.
async fn rest(
    asked: &Plan,
    server: &Server,
    many: &Scheduled,
    count: u32,
    report: &mut Report,
) -> Result<()> {
    let mut plain = server.connect(&many.scratch).await?;
    plain.tidy_up().await?;
    let processes = Processes::of(&mut plain).await?;
    let serving = many.refrain.serve();
    let stop = serving.stop_handle();
    let engine = tokio::spawn(serving.into_future());
    tokio::time::sleep(WARM).await;
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for _ in 0..asked.repetitions {
        let (before, begun) = (processes.used()?, Instant::now());
        tokio::time::sleep(Duration::from_secs(asked.either(10, 20))).await;
        let (after, took) = (processes.used()?, begun.elapsed().as_secs_f64());
        here.push((after.here - before.here) / took);
        let server = after.server.zip(before.server).map(|(after, before)| (after - before) / took);
        there.extend(server);
    }
    stop.drain();
    engine.await??;
    plain.close().await?;
    let mut context = format!("{count} schedules registered in {:.1} s", many.took.as_secs_f64());
    if !there.is_empty() {
        context = format!("server {:.2} %; {context}", median(&there) * 100.0);
    }
    let values =
        here.iter().enumerate().map(|(at, here)| here + there.get(at).copied().unwrap_or(0.0)).collect();
    let what = format!("idle with {count} schedules, process and server");
    report.add(
        server.name(),
        Figure { what, unit: Unit::Core, values, target: Target::AtMost(HARDLY), context },
    );
    Ok(())
}

impl Scheduled {
    async fn register(server: &Server, count: u32) -> Result<Scheduled> {
        let scratch = server.database().await?;
        let begun = Timestamp::now();
        let mut options = Refrain::at(&scratch.address, "bench")?;
        for at in 0..count {
            let group = at / DUE;
            let wait = if group < GROUPS { FIRST + group } else { OTHERS };
            let minute = (begun + i64::from(wait).minutes()).strftime("%M").to_string();
            let timetable = Timetable {
                schedule: Schedule::parse(&format!("{minute} * * * *"))?,
                zone: Zone::parse("UTC")?,
                grid: Grid::parse("tick")?,
                dst: Dst::default(),
                start: None,
            };
            let job = Definition::of(Nothing)?.named(&format!("job-{at:05}"))?.timetable(timetable);
            options = options.job(job.while_running(WhileRunning::Allow));
        }
        let registering = Instant::now();
        let refrain = options.open().await?;
        Ok(Scheduled { scratch, refrain, begun, took: registering.elapsed() })
    }

    /// Opens the due windows of one group; returns seconds.
    async fn tick(&self, group: u32) -> Result<f64> {
        let now = self.begun + i64::from(FIRST + group).minutes();
        let begun = Instant::now();
        let opened = self.refrain.open_due(now).await?;
        let took = begun.elapsed().as_secs_f64();
        if opened.opened == u64::from(DUE) {
            Ok(took)
        } else {
            Err(format!("{opened:?} in group {group}").into())
        }
    }

    async fn close(self, server: &Server) -> Result<()> {
        self.refrain.close().await;
        server.remove(self.scratch).await
    }
}
