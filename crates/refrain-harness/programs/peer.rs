//! Refrain in the benchmark of job queues: the same work as the drivers of other queues, one JSON object on stdout.
//!
//! `peer w1`: enqueue and drain; `peer w2`: enqueue known keys; `peer w3`: runs of recorded steps; `peer w4`: pickup
//! latency. `DATABASE_URL` names an empty PostgreSQL database, or a SQLite file; `N` the number of runs.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a driver: a panic is its report of a failure")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use refrain::{Definition, Job, JobError, Refrain, Run, Settings};

static EXECUTED: AtomicU64 = AtomicU64::new(0);

/// Does nothing, and reports how long it waited if its payload says when it was enqueued.
struct Noop {
    since: Instant,
    waits: Arc<Mutex<Vec<f64>>>,
}

impl Job for Noop {
    const NAME: &'static str = "noop";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        if let Some(asked) = run.payload::<Option<f64>>()?.filter(|at| *at > 0.0) {
            let wait = self.since.elapsed().as_secs_f64() - asked;
            self.waits.lock().unwrap().push(wait * 1e3);
        }
        EXECUTED.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Three steps that do nothing, each recorded.
struct Stepped;

impl Job for Stepped {
    const NAME: &'static str = "stepped";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        for name in ["one", "two", "three"] {
            if let Some(step) = run.step(name).await? {
                EXECUTED.fetch_add(1, Ordering::Relaxed);
                step.done().await?;
            }
        }
        Ok(())
    }
}

async fn step_through(refrain: &Refrain, count: usize, message: &str) {
    let keys = keys(count, count);
    let begun = Instant::now();
    refrain.enqueue_many("stepped", keys.iter().map(|key| (key, ()))).await.unwrap();
    let enqueue = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let served = tokio::spawn(serving.into_future());
    drained(refrain).await;
    let took = begun.elapsed().as_secs_f64();
    stop.drain();
    served.await.unwrap().unwrap();
    let steps = EXECUTED.load(Ordering::Relaxed);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let rate = steps as f64 / took;
    println!(
        r#"{{"workload":"w3","instances":{count},"steps":{steps},"enqueue_s":{enqueue},"run_s":{took},"steps_per_s":{rate},"settings":"{message}"}}"#
    );
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Waits until the store has no open run.
async fn drained(refrain: &Refrain) {
    while refrain.open_runs().await.unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn keys(count: usize, distinct: usize) -> Vec<String> {
    (0..count).map(|at| format!("k{:08}", at % distinct)).collect()
}

async fn offer(refrain: &Refrain, keys: &[String]) {
    for chunk in keys.chunks(1_000) {
        refrain.enqueue_many("noop", chunk.iter().map(|key| (key, ()))).await.unwrap();
    }
}

fn percentile(sorted: &[f64], part: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a few hundred samples"
    )]
    let at = (part * sorted.len() as f64) as usize;
    sorted.get(at.min(sorted.len() - 1)).copied().unwrap_or(f64::NAN)
}

async fn enqueue_and_drain(refrain: &Refrain, count: usize, message: &str) {
    let keys = keys(count, count);
    let begun = Instant::now();
    for chunk in keys.chunks(5_000) {
        refrain.enqueue_many("noop", chunk.iter().map(|key| (key, 0))).await.unwrap();
    }
    let enqueue = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let served = tokio::spawn(serving.into_future());
    while EXECUTED.load(Ordering::Relaxed) < count as u64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let handlers = begun.elapsed().as_secs_f64();
    drained(refrain).await;
    let drain = begun.elapsed().as_secs_f64();
    stop.drain();
    served.await.unwrap().unwrap();
    let executed = EXECUTED.load(Ordering::Relaxed);
    println!(
        r#"{{"workload":"w1","n":{count},"enqueue_s":{enqueue},"drain_s":{drain},"handlers_s":{handlers},"executed":{executed},"settings":"{message}"}}"#
    );
}

async fn offer_known_keys(refrain: &Refrain, count: usize) {
    let begun = Instant::now();
    offer(refrain, &keys(count, count / 2)).await;
    let one = begun.elapsed().as_secs_f64();
    let rows = refrain.open_runs().await.unwrap();
    let four_keys: Vec<String> = keys(count / 2, count / 4).iter().map(|key| format!("four-{key}")).collect();
    let begun = Instant::now();
    tokio::join!(
        offer(refrain, &four_keys),
        offer(refrain, &four_keys),
        offer(refrain, &four_keys),
        offer(refrain, &four_keys)
    );
    let four = begun.elapsed().as_secs_f64();
    let four_rows = refrain.open_runs().await.unwrap() - rows;
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let served = tokio::spawn(serving.into_future());
    drained(refrain).await;
    let first = EXECUTED.load(Ordering::Relaxed);
    offer(refrain, four_keys.get(..1_000).unwrap_or(&four_keys)).await;
    drained(refrain).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let again = EXECUTED.load(Ordering::Relaxed) - first;
    stop.drain();
    served.await.unwrap().unwrap();
    println!(
        r#"{{"workload":"w2","n":{count},"distinct":{},"offer_s":{one},"rows":{rows},"four_offers":{},"four_s":{four},"four_rows":{four_rows},"four_distinct":{},"executed_first":{first},"reoffered":1000,"executed_again":{again},"settings":"enqueue_many x1000"}}"#,
        count / 2,
        count * 2,
        count / 4
    );
}

async fn pick_up(refrain: &Refrain, since: Instant, waits: &Mutex<Vec<f64>>, message: &str) {
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let served = tokio::spawn(serving.into_future());
    tokio::time::sleep(Duration::from_secs(1)).await;
    for at in 0..200 {
        let asked = since.elapsed().as_secs_f64();
        refrain.enqueue("noop", &format!("one-{at}"), &asked).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drained(refrain).await;
    stop.drain();
    served.await.unwrap().unwrap();
    let mut waits = waits.lock().unwrap().clone();
    waits.sort_by(f64::total_cmp);
    let (p50, p99, max) = (percentile(&waits, 0.5), percentile(&waits, 0.99), percentile(&waits, 1.0));
    println!(
        r#"{{"workload":"w4","n":{},"p50_ms":{p50},"p99_ms":{p99},"max_ms":{max},"settings":"{message}"}}"#,
        waits.len()
    );
}

#[tokio::main]
async fn main() {
    let workload = std::env::args().nth(1).unwrap_or_else(|| "w1".to_owned());
    let url = std::env::var("DATABASE_URL").unwrap();
    let count = number("N", 50_000);
    let slots = number("SLOTS", 2_000);
    let since = Instant::now();
    let waits = Arc::new(Mutex::new(Vec::new()));
    Refrain::migrate(&url).await.unwrap();
    let settings = Settings::new().slots(slots);
    let job = Definition::of(Noop { since, waits: Arc::clone(&waits) }).unwrap();
    let options = Refrain::at(&url, "bench").unwrap().settings(settings).job(job);
    let refrain = options.job(Definition::of(Stepped).unwrap()).open().await.unwrap();
    let message = format!("enqueue_many x5000; {slots} slots, 8 connections");
    match workload.as_str() {
        "w1" => enqueue_and_drain(&refrain, count, &message).await,
        "w2" => offer_known_keys(&refrain, count).await,
        "w3" => step_through(&refrain, number("N", 2_000), &message).await,
        "w4" => pick_up(&refrain, since, &waits, &message).await,
        other => {
            eprintln!("unknown workload {other}: w1, w2, w3 or w4");
            std::process::exit(2);
        }
    }
}
