//! What the open attempt of a run waits for, or who is at it.

use jiff::Timestamp;

use super::{Holder, Told, at, listed, quoted, typed};

/// Where an open attempt stands, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Open {
    /// Its job is paused.
    Paused {
        /// The run.
        run: String,
        /// The job.
        job: String,
        /// Since when.
        since: Timestamp,
    },
    /// It is queued, and no worker is alive.
    NoWorker {
        /// The run.
        run: String,
        /// When an attempt of whatever job last ended in the store.
        last_seen: Option<Timestamp>,
    },
    /// As many runs of its job are under way as may be.
    SlotsTaken {
        /// The run.
        run: String,
        /// How many may be.
        limit: u32,
        /// Those that are.
        holders: Vec<String>,
    },
    /// It is queued, and workers are at others.
    Queued {
        /// The run.
        run: String,
        /// How many of its job stand before it.
        ahead: u64,
        /// How many workers are heard of.
        workers: u64,
        /// How many runs they hold.
        under_way: u64,
    },
    /// Another run holds its lane.
    LaneHeld {
        /// The run.
        run: String,
        /// The other; it may have left this moment.
        holder: Option<Holder>,
    },
    /// It failed, and is tried again later.
    BackingOff {
        /// The run.
        run: String,
        /// The number of the attempt that follows.
        attempt: u64,
        /// When it may begin.
        until: Timestamp,
        /// What the attempt before said.
        message: Option<String>,
    },
    /// A worker is at it.
    Running {
        /// The run.
        run: String,
        /// The number of the attempt.
        attempt: u64,
        /// The number of the worker.
        worker: i64,
        /// The process that it is.
        process: String,
        /// Since when.
        since: Timestamp,
        /// Until when the worker counts as alive.
        alive_until: Timestamp,
    },
    /// The worker that has it is not heard of any more.
    WorkerSilent {
        /// The run.
        run: String,
        /// The number of the worker.
        worker: i64,
        /// The process that it is.
        process: String,
        /// Since when it has the run.
        since: Timestamp,
    },
}

impl Open {
    pub(super) fn told(&self) -> Told {
        match self {
            Open::Paused { run, job, since } => {
                let said = format!(
                    "{run} is queued, and {job} is paused since {}: none of its runs begins",
                    at(*since)
                );
                Told::new("paused", said).next(format!("refrain resume {job}"))
            }
            Open::NoWorker { run, last_seen } => no_worker(run, *last_seen),
            Open::SlotsTaken { run, limit, holders } => {
                let holders = listed(holders);
                let said = format!(
                    "{run} is queued: its job has concurrency = {limit}, and these are running: {holders}"
                );
                Told::new("slots-taken", said).next("it begins when one of them ends")
            }
            Open::Queued { run, ahead, workers, under_way } => {
                let said = format!(
                    "{run} is queued behind {ahead} other runs of its job; live workers: {workers}, running runs: {under_way}"
                );
                Told::new("queued", said).next(format!("do it here: refrain run {}", typed(run)))
            }
            Open::LaneHeld { run, holder } => lane_held(run, holder.as_ref()),
            Open::BackingOff { run, attempt, until, message } => {
                let after =
                    message.as_deref().map_or_else(String::new, |said| format!(" after {}", quoted(said)));
                let said = format!(
                    "{run} waits for its retry{after}: attempt {attempt} begins at {} at the earliest",
                    at(*until)
                );
                Told::new("backing-off", said).next(format!("do not wait: refrain run {}", typed(run)))
            }
            Open::Running { run, attempt, worker, process, since, alive_until } => {
                let said = format!(
                    "{run} is running: worker {worker} ({process}) runs attempt {attempt} since {}, and counts as alive until {}",
                    at(*since),
                    at(*alive_until)
                );
                Told::new("running", said).next(format!("cancel it: refrain cancel {}", typed(run)))
            }
            Open::WorkerSilent { run, worker, process, since } => {
                let said = format!(
                    "{run} is held since {} by worker {worker} ({process}), which has stopped sending heartbeats",
                    at(*since)
                );
                let advice = "a serving worker takes it over soon; without one: refrain tick";
                Told::new("worker-silent", said).next(advice)
            }
        }
    }
}

fn no_worker(run: &str, last_seen: Option<Timestamp>) -> Told {
    let seen = last_seen.map_or_else(
        || "nothing has ever run in this store".to_owned(),
        |seen| format!("the last attempt in this store ended at {}", at(seen)),
    );
    let said = format!("{run} is queued, and no worker is alive: {seen}");
    Told::new("no-worker", said).next(format!("refrain serve, or for this run: refrain run {}", typed(run)))
}

fn lane_held(run: &str, holder: Option<&Holder>) -> Told {
    let Some(Holder { run: other, standing, since, worker }) = holder else {
        return Told::new("lane-held", format!("{run} waits for its lane, which has just become free"));
    };
    let by = worker.as_ref().map_or_else(String::new, |worker| format!(" by {worker}"));
    let said = format!(
        "{run} waits for {other}, which holds their lane (while-running = \"queue\") and is {standing}{by} since {}",
        at(*since)
    );
    Told::new("lane-held", said).next(format!("refrain why {}", typed(other)))
}
