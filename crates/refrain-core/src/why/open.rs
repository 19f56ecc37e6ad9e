//! What the open attempt of a run waits for, or which worker runs it.

use jiff::Timestamp;

use super::{Explanation, LaneHolder, at, listed, quoted, typed};

/// The state of an open attempt and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenCause {
    /// The job is paused.
    Paused {
        /// The run.
        run: String,
        /// The name of the job.
        job: String,
        /// The time since when.
        since: Timestamp,
    },
    /// The run is queued, and no worker is alive.
    NoWorker {
        /// The run.
        run: String,
        /// When an attempt of any job last ended in this store.
        last_seen: Option<Timestamp>,
    },
    /// As many runs of its job are running as `concurrency` allows.
    SlotsTaken {
        /// The run.
        run: String,
        /// The limit.
        limit: u32,
        /// The running runs.
        holders: Vec<String>,
    },
    /// The run is queued, and workers are busy with others.
    Queued {
        /// The run.
        run: String,
        /// How many runs of its job are queued before it.
        ahead: u64,
        /// The number of live workers.
        workers: u64,
        /// The number of runs that they hold.
        running: u64,
    },
    /// Another run holds its lane.
    LaneHeld {
        /// The run.
        run: String,
        /// The other run; `None` if it has just left the lane.
        holder: Option<LaneHolder>,
    },
    /// The run failed and waits for its retry.
    BackingOff {
        /// The run.
        run: String,
        /// The number of the next attempt.
        attempt: u64,
        /// The earliest time at which it begins.
        until: Timestamp,
        /// The message of the previous attempt.
        message: Option<String>,
    },
    /// A worker runs it.
    Running {
        /// The run.
        run: String,
        /// The number of the attempt.
        attempt: u64,
        /// The number of the worker.
        worker: i64,
        /// The process of the worker.
        process: String,
        /// The time since when.
        since: Timestamp,
        /// The time until which the worker counts as alive.
        alive_until: Timestamp,
    },
    /// The worker that holds it has stopped sending heartbeats.
    WorkerSilent {
        /// The run.
        run: String,
        /// The number of the worker.
        worker: i64,
        /// The process of the worker.
        process: String,
        /// When the worker claimed the run.
        since: Timestamp,
    },
}

impl OpenCause {
    pub(super) fn explain(&self) -> Explanation {
        match self {
            OpenCause::Paused { run, job, since } => {
                let text = format!(
                    "{run} is queued, and {job} is paused since {}: none of its runs begins",
                    at(*since)
                );
                Explanation::new("paused", text).advise(format!("refrain resume {job}"))
            }
            OpenCause::NoWorker { run, last_seen } => no_worker(run, *last_seen),
            OpenCause::SlotsTaken { run, limit, holders } => {
                let holders = listed(holders);
                let text = format!(
                    "{run} is queued: its job has concurrency = {limit}, and these are running: {holders}"
                );
                Explanation::new("slots-taken", text).advise("it begins when one of them ends")
            }
            OpenCause::Queued { run, ahead, workers, running } => {
                let text = format!(
                    "{run} is queued behind {ahead} other runs of its job; live workers: {workers}, running runs: {running}"
                );
                Explanation::new("queued", text).advise(format!("do it here: refrain run {}", typed(run)))
            }
            OpenCause::LaneHeld { run, holder } => lane_held(run, holder.as_ref()),
            OpenCause::BackingOff { run, attempt, until, message } => {
                let after =
                    message.as_deref().map_or_else(String::new, |text| format!(" after {}", quoted(text)));
                let text = format!(
                    "{run} waits for its retry{after}: attempt {attempt} begins at {} at the earliest",
                    at(*until)
                );
                Explanation::new("backing-off", text)
                    .advise(format!("do not wait: refrain run {}", typed(run)))
            }
            OpenCause::Running { run, attempt, worker, process, since, alive_until } => {
                let text = format!(
                    "{run} is running: worker {worker} ({process}) runs attempt {attempt} since {}, and counts as alive until {}",
                    at(*since),
                    at(*alive_until)
                );
                Explanation::new("running", text).advise(format!("cancel it: refrain cancel {}", typed(run)))
            }
            OpenCause::WorkerSilent { run, worker, process, since } => {
                let text = format!(
                    "{run} is held since {} by worker {worker} ({process}), which has stopped sending heartbeats",
                    at(*since)
                );
                let advice = "a serving worker takes it over soon; without one: refrain tick";
                Explanation::new("worker-silent", text).advise(advice)
            }
        }
    }
}

fn no_worker(run: &str, last_seen: Option<Timestamp>) -> Explanation {
    let seen = last_seen.map_or_else(
        || "nothing has ever run in this store".to_owned(),
        |seen| format!("the last attempt in this store ended at {}", at(seen)),
    );
    let text = format!("{run} is queued, and no worker is alive: {seen}");
    Explanation::new("no-worker", text)
        .advise(format!("refrain serve, or for this run: refrain run {}", typed(run)))
}

fn lane_held(run: &str, holder: Option<&LaneHolder>) -> Explanation {
    let Some(LaneHolder { run: other, standing, since, worker }) = holder else {
        return Explanation::new(
            "lane-held",
            format!("{run} waits for its lane, which has just become free"),
        );
    };
    let by = worker.as_ref().map_or_else(String::new, |worker| format!(" by {worker}"));
    let text = format!(
        "{run} waits for {other}, which holds their lane (while-running = \"queue\") and is {standing}{by} since {}",
        at(*since)
    );
    Explanation::new("lane-held", text).advise(format!("refrain why {}", typed(other)))
}
