//! A small program that tests kill: it opens the store that its environment names and does one thing.
//!
//! Its jobs report what they do outside of the store, in a file that is only ever appended to: a line when a handler
//! begins and one when it has ended. Tests compare that file with the store.
//!
//! | variable | meaning |
//! |---|---|
//! | `PROBE_STORE` | the address of the store |
//! | `PROBE_DIRECTORY` | where `effects` and `batches` are written, and `gate-KEY[-ATTEMPT]`, `begin`, `drain[-PID]`, `stop` are waited for |
//! | `PROBE_LEASE`, `PROBE_GRACE`, `PROBE_BUSY` | milliseconds: of a lease, for a command to end, and for which `hog` keeps every thread busy |
//! | `PROBE_SLOTS` | how many runs at once |
//! | `PROBE_START` | the first window of `hourly` and `scoped`; without it there are none |
//! | `PROBE_GATED` | if it is set, the scopes of `scoped` are known only when there is a file `scopes`, and the receiver of `perform` answers when there is `gate-KEY` |
//! | `PROBE_SHOP` | a SQLite file to which `sync` writes, instead of the store |
//! | `PROBE_MINUTES` | the first window of `minutely`; without it there is none |
//! | `PROBE_POLICY`, `PROBE_ANSWER` | what `once` and `perform` do about a doubt, and what the receiver answers to `perform` |
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a probe: a panic is its report of a failure")]

mod effect;
mod intent;
mod script;
mod sync;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use refrain::action::command::Interrupted;
use refrain::core::{Backoff, Dst, Grid, Retry, Schedule, Scope, Timetable, Zone, window_name};
use refrain::{
    Ask, CatchUp, Definition, Did, Error, Job, JobError, OpenOptions, Refrain, Run, Settings, StopHandle,
    WhileRunning,
};
use rustix::process::{Signal, getpid, kill_process};

/// How often a file or the store is polled, and how many threads drive the jobs.
const LOOK: Duration = Duration::from_millis(10);
const THREADS: usize = 2;
const BACKOFF: Backoff = Backoff { min: Duration::from_millis(50), max: Duration::from_millis(100) };

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(name: &str, default: u64) -> u64 {
    variable(name).map_or(default, |text| text.parse().unwrap())
}

fn directory() -> PathBuf {
    variable("PROBE_DIRECTORY").unwrap().into()
}

async fn appears(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(LOOK).await;
    }
}

/// The kinds of handlers.
enum Probe {
    /// Nothing.
    Noop,
    /// Takes a moment.
    Brief(Duration),
    /// Fails at first.
    Flaky,
    /// Kills its own process when its key begins with `kill`.
    Poison,
    /// Waits until its gate is open, or that of this attempt.
    Slow,
    /// Keeps every thread of the runtime busy, so that no other task runs.
    Hog,
}

impl Job for Probe {
    const NAME: &'static str = "probe";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        note("begun", run);
        match self {
            Probe::Brief(moment) => tokio::time::sleep(*moment).await,
            Probe::Flaky if run.attempt() == 1 => return Err(JobError::new("fails at first")),
            Probe::Flaky | Probe::Noop => {}
            Probe::Poison if run.key().starts_with("kill") => kill_process(getpid(), Signal::KILL).unwrap(),
            Probe::Poison => tokio::task::yield_now().await,
            Probe::Slow => {
                let gate = directory().join(format!("gate-{}", run.key()));
                let own = directory().join(format!("gate-{}-{}", run.key(), run.attempt()));
                let _left = Left(format!("left {}#{} {}", run.job(), run.key(), run.attempt()));
                tokio::select! {
                    () = appears(&gate) => {}
                    () = appears(&own) => {}
                }
            }
            Probe::Hog => {
                let busy = Duration::from_millis(number("PROBE_BUSY", 0));
                for _ in 1..THREADS {
                    tokio::spawn(async move { std::thread::sleep(busy) });
                }
                std::thread::sleep(busy);
            }
        }
        note("ended", run);
        Ok(())
    }
}

/// Reports when a handler is dropped, whether it had ended or not.
struct Left(String);

impl Drop for Left {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}

/// One write, so that lines of many processes do not mix.
fn note(word: &str, run: &Run) {
    let line = format!("{word} {}#{} {} {}\n", run.job(), run.key(), run.attempt(), std::process::id());
    let mut effects =
        fs::OpenOptions::new().append(true).create(true).open(directory().join("effects")).unwrap();
    effects.write_all(line.as_bytes()).unwrap();
    print!("{line}");
}

fn job(probe: impl Job, name: &str) -> Definition {
    Definition::of(probe).unwrap().named(name).unwrap().retry(Retry { attempts: 2, backoff: BACKOFF })
}

fn timetable(schedule: &str, grid: &str, start: &str) -> Timetable {
    Timetable {
        schedule: Schedule::parse(schedule).unwrap(),
        zone: Zone::utc(),
        grid: Grid::parse(grid).unwrap(),
        dst: Dst::default(),
        start: Some(window_name::parse(start, &Zone::utc()).unwrap()),
    }
}

async fn options() -> OpenOptions {
    let settings = Settings::new()
        .slots(usize::try_from(number("PROBE_SLOTS", 8)).unwrap())
        .lease(Duration::from_millis(number("PROBE_LEASE", 5_000)))
        .poll(Duration::from_millis(100));
    let queued = [
        job(Probe::Noop, "noop"),
        job(Probe::Brief(Duration::from_millis(250)), "limited").concurrency(2),
        job(Probe::Brief(Duration::from_millis(20)), "brief").retry(Retry { attempts: 50, backoff: BACKOFF }),
        job(Probe::Flaky, "flaky"),
        job(Probe::Noop, "again"),
        job(Probe::Noop, "cancelled"),
        job(Probe::Poison, "poison"),
        job(Probe::Slow, "slow"),
        job(Probe::Slow, "gated").retry(Retry { attempts: 50, backoff: BACKOFF }),
        job(Probe::Hog, "hog"),
        job(script::script(Interrupted::Again), "script").retry(Retry { attempts: 50, backoff: BACKOFF }),
        job(script::script(Interrupted::Hold), "held"),
        job(script::script(Interrupted::Again), "hasty").timeout(Duration::from_secs(2)),
    ];
    let store = variable("PROBE_STORE").unwrap();
    let options = Refrain::at(&store, "crash").unwrap().settings(settings).connections(3);
    let mut options = queued.into_iter().fold(options, OpenOptions::job).job(sync::job().await);
    if let Some(shop) = sync::shop().await {
        options = options.destination(&shop);
    }
    if let Some(start) = variable("PROBE_START") {
        let hourly = timetable("0 * * * *", "hour", &start);
        let regions = |_| async {
            if variable("PROBE_GATED").is_some() {
                println!("asked for scopes");
                appears(&directory().join("scopes")).await;
            }
            Ok(["north", "south"].map(|scope| Scope::parse(scope).unwrap()).to_vec())
        };
        let scoped =
            job(Probe::Noop, "scoped").timetable(hourly.clone()).catch_up(CatchUp::All).scopes(regions);
        // Its windows fail at first, so they give their lane up and return to it later.
        if std::env::args().nth(1).as_deref() == Some("day") {
            let uneven = job(Probe::Flaky, "uneven").timetable(hourly.clone()).catch_up(CatchUp::All);
            options = options.job(uneven);
        }
        let brief = Probe::Brief(Duration::from_millis(5));
        options = options.job(job(brief, "hourly").timetable(hourly).catch_up(CatchUp::All)).job(scoped);
    }
    if variable("PROBE_SIMULATED").is_some() {
        options = options.simulated("2026-06-09T00:00:00Z".parse().unwrap());
    }
    if let Some(start) = variable("PROBE_MINUTES") {
        let minutes = timetable("* * * * *", "1m", &start);
        let minutely = job(Probe::Noop, "minutely").timetable(minutes).catch_up(CatchUp::All);
        options = options.job(minutely.while_running(WhileRunning::Allow));
    }
    options
}

async fn enqueue(refrain: &Refrain, job: &str, prefix: &str, count: usize) -> Result<(), Error> {
    let keys = (0..count).map(|at| (format!("{prefix}{at}"), ()));
    let news = refrain.enqueue_many(job, keys).await?;
    println!("new {}", news.iter().filter(|one| one.is_new()).count());
    Ok(())
}

/// Executes one run after another.
async fn offer(refrain: &Refrain, job: &str, prefix: &str, count: usize) -> Result<(), Error> {
    for at in 0..count {
        refrain.enqueue(job, &format!("{prefix}{at}"), &()).await?;
    }
    Ok(())
}

/// Serves until nothing is open. A window may be opened after the last check, so the runs that remain after serving
/// are executed as well.
async fn work(refrain: &Refrain) -> Result<(), Error> {
    work_once(refrain).await?;
    while matches!(refrain.open_runs().await, Ok(1..)) {
        work_once(&options().await.open().await?).await?;
    }
    Ok(())
}

async fn work_once(refrain: &Refrain) -> Result<(), Error> {
    serve(refrain, async |stop: &StopHandle| {
        while !matches!(refrain.open_runs().await, Ok(0)) {
            tokio::time::sleep(LOOK).await;
        }
        stop.drain();
    })
    .await
}

/// Serves until the file `end` exists.
async fn serve_until_told(refrain: &Refrain) -> Result<(), Error> {
    let (drain, stop_now) = (directory().join("drain"), directory().join("stop"));
    let drain_this = directory().join(format!("drain-{}", std::process::id()));
    serve(refrain, async |stop: &StopHandle| {
        tokio::select! {
            () = appears(&drain) => stop.drain(),
            () = appears(&drain_this) => stop.drain(),
            () = appears(&stop_now) => stop.stop_now(),
        }
        println!("told to end");
    })
    .await
}

async fn serve(refrain: &Refrain, until: impl AsyncFn(&StopHandle)) -> Result<(), Error> {
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    println!("serving");
    let mut serving = std::pin::pin!(serving.into_future());
    let counts = tokio::select! {
        counts = &mut serving => counts?,
        () = until(&stop) => serving.await?,
    };
    println!("ended={} again={} lost={}", counts.ended, counts.again, counts.lost);
    Ok(())
}

async fn run(refrain: &Refrain, name: &str, ask: Ask) -> Result<(), Error> {
    println!("asking");
    let report = refrain.run(name, ask).await?;
    println!("did {:?} {}", report.did, report.run.attempt);
    Ok(())
}

/// All attempts of a run, one after another.
async fn run_to_its_end(refrain: &Refrain, name: &str) -> Result<(), Error> {
    while refrain.run(name, Ask::Once).await?.run.standing.is_open() {}
    Ok(())
}

/// Runs it until it is done, and decides at once where the operator has to decide.
async fn run_until_done(refrain: &Refrain, name: &str) -> Result<(), Error> {
    let mut report = refrain.run(name, Ask::Once).await?;
    while !report.is_done() {
        let ask = if report.did == Did::Held { Ask::Retry } else { Ask::Once };
        report = refrain.run(name, ask).await?;
    }
    Ok(())
}

/// Runs several schedulers at once, each with a clock of its own that advances in steps.
async fn schedule(
    refrain: &Refrain,
    from: Timestamp,
    minutes: i64,
    step: i64,
    tasks: i64,
) -> Result<(), Error> {
    let schedulers = (0..tasks).map(|task| {
        let refrain = refrain.clone();
        tokio::spawn(async move {
            let mut opened = 0;
            let nows = (0..minutes).step_by(usize::try_from(step).unwrap()).map(|at| at + task % step);
            for minute in nows.chain([minutes]) {
                let now = from + SignedDuration::from_mins(minute.min(minutes));
                opened += refrain.open_due(now).await?.opened;
            }
            Ok::<u64, Error>(opened)
        })
    });
    let mut opened = 0;
    for scheduler in schedulers.collect::<Vec<_>>() {
        opened += scheduler.await.unwrap()?;
    }
    println!("opened {opened}");
    Ok(())
}

/// A day with a bit of everything, which can be repeated from the beginning.
async fn day(refrain: &Refrain) -> Result<(), Error> {
    enqueue(refrain, "noop", "n", 6).await?;
    enqueue(refrain, "flaky", "f", 2).await?;
    enqueue(refrain, "limited", "l", 4).await?;
    refrain.pause("noop").await?;
    refrain.resume("noop").await?;
    enqueue(refrain, "cancelled", "c", 1).await?;
    match refrain.cancel("cancelled#c0").await {
        Ok(_) | Err(Error::Refused(_)) => {}
        Err(error) => return Err(error),
    }
    run(refrain, &format!("hourly@{}", variable("PROBE_START").unwrap()), Ask::Once).await?;
    run(refrain, "again#a0", Ask::Once).await?;
    run(refrain, "again#a0", Ask::Again).await?;
    run(refrain, "flaky#pulled", Ask::Once).await?;
    run(refrain, "flaky#pulled", Ask::Once).await?;
    run_to_its_end(refrain, &format!("uneven@{}", variable("PROBE_START").unwrap())).await?;
    // A unit fails until it is corrected, and is parked meanwhile; then it is retried.
    let mended = directory().join("mended");
    if !mended.exists() {
        run_to_its_end(refrain, "sync#s0").await?;
        fs::write(mended, "").unwrap();
    }
    sync::unpark().await.unwrap();
    run_to_its_end(refrain, "sync#s0").await?;
    run_until_done(refrain, "script#c0").await?;
    run_until_done(refrain, "held#h0").await?;
    intent::write("noop", "intended", 1).await;
    run(refrain, "noop#intended0", Ask::Once).await?;
    work(refrain).await
}

async fn act(arguments: &[&str]) -> Result<(), Error> {
    let store = variable("PROBE_STORE").unwrap();
    Refrain::migrate(&store).await?;
    let refrain = options().await.open().await?;
    match *arguments {
        ["enqueue", job, prefix, count] => enqueue(&refrain, job, prefix, count.parse().unwrap()).await,
        ["offer", job, prefix, count] => offer(&refrain, job, prefix, count.parse().unwrap()).await,
        ["intend", job, prefix, count] => {
            intent::write(job, prefix, count.parse().unwrap()).await;
            Ok(())
        }
        ["work"] => work(&refrain).await,
        ["work", "together"] => {
            println!("ready");
            appears(&directory().join("begin")).await;
            work(&refrain).await
        }
        ["serve"] => serve_until_told(&refrain).await,
        ["run", name] => run(&refrain, name, Ask::Once).await,
        ["run", name, "--again"] => run(&refrain, name, Ask::Again).await,
        ["tick", now] => refrain.tick_at(now.parse().unwrap()).await.map(|report| println!("{report:?}")),
        ["schedule", from, minutes, step, tasks] => {
            let [minutes, step, tasks] = [minutes, step, tasks].map(|text| text.parse().unwrap());
            schedule(&refrain, from.parse().unwrap(), minutes, step, tasks).await
        }
        ["day"] => day(&refrain).await,
        ["once", key, version, script] => effect::once(&refrain, key, version, script).await,
        ["perform", key, version] => {
            let performed = effect::perform(&refrain, key, version).await;
            refrain.close().await;
            performed
        }
        ["decide", verb, name] => effect::decide(&refrain, verb, name).await,
        _ => {
            eprintln!(
                "unknown command: {arguments:?}; commands: enqueue, offer, intend, work, serve, run, tick, \
                 schedule, day, once, perform, decide"
            );
            std::process::exit(2);
        }
    }
}

fn main() {
    refrain::host::supervise();
    refrain::failpoint::arm();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    if let Err(error) = runtime.unwrap().block_on(act(&arguments)) {
        eprintln!("probe: {error}");
        std::process::exit(if error.is_transient() { 75 } else { 1 });
    }
}
