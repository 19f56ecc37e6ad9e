//! Additional information about a run: its version, its workers, repeated requests, and keys that may be too wide.

use jiff::Timestamp;

use super::{Explanation, RepeatedRequests, WideKeys, at, listed, times, typed};

/// Additional information about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The run is done under a lower version than the present one.
    Outdated {
        /// The run.
        run: String,
        /// The version under which it is done.
        version: u32,
        /// The present version of its job.
        present: u32,
    },
    /// The run was done under a higher version than this process has.
    WorkerTooOld {
        /// The run.
        run: String,
        /// The version under which it was done.
        version: u32,
        /// The version that this process has.
        present: u32,
    },
    /// An operator wants the run cancelled.
    CancelRequested {
        /// The run.
        run: String,
    },
    /// Workers died while they held the run.
    TakenOver {
        /// The run.
        run: String,
        /// How many times.
        times: u64,
        /// Whether it is now claimed alone.
        is_suspect: bool,
    },
    /// The run should be done by now.
    Late {
        /// The run.
        run: String,
        /// The time since when.
        since: Timestamp,
    },
    /// There was another request for the run, and it was deduplicated.
    Deduplicated {
        /// The run.
        run: String,
        /// The repeated requests.
        asked: RepeatedRequests,
    },
    /// The payload of the run is no longer kept.
    Forgotten {
        /// The run.
        run: String,
    },
    /// A key may be too wide: other content was discarded under it.
    WideKey {
        /// The run.
        run: String,
        /// The keys.
        wide_keys: WideKeys,
    },
}

impl Note {
    pub(super) fn explain(&self) -> Explanation {
        match self {
            Note::Outdated { run, version, present } => {
                let text = format!(
                    "{run} is outdated: it is done under version {version}, and its job has version {present}"
                );
                Explanation::new("outdated", text).advise(format!("refrain run {} --again", typed(run)))
            }
            Note::WorkerTooOld { run, version, present } => {
                let text = format!(
                    "This process is too old for {run}: it was done under version {version}, and the job here has version {present}"
                );
                let advice = "update it: rows written by a newer version are not overwritten";
                Explanation::new("worker-too-old", text).advise(advice)
            }
            Note::CancelRequested { run } => {
                let text = format!(
                    "An operator has cancelled {run}; its worker learns of it with its next heartbeat"
                );
                Explanation::new("cancel-requested", text)
            }
            Note::TakenOver { run, times: count, is_suspect } => {
                let alone = if *is_suspect { "; it is a suspect, so it is claimed alone" } else { "" };
                let text = format!("{run} was taken over {} from workers that died{alone}", times(*count));
                Explanation::new("taken-over", text).advise(format!("refrain show {}", typed(run)))
            }
            Note::Late { run, since } => Explanation::new(
                "late",
                format!("{run} is late: with the grace of its job it was due to be done by {}", at(*since)),
            ),
            Note::Deduplicated { run, asked } => {
                let RepeatedRequests { times: count, is_more, last, way } = asked;
                let more = if *is_more { " or more" } else { "" };
                let text = format!(
                    "{run} has been requested again {}{more} and deduplicated, last at {} by {way}",
                    times(*count),
                    at(*last)
                );
                Explanation::new("deduplicated", text).advise(format!("refrain show {}", typed(run)))
            }
            Note::Forgotten { run } => {
                let text = format!("The payload of {run} is no longer kept, so it is not attempted again");
                Explanation::new("forgotten", text).advise("enqueue it under a new key")
            }
            Note::WideKey { run, wide_keys } => wide_key(run, wide_keys),
        }
    }
}

fn wide_key(run: &str, wide_keys: &WideKeys) -> Explanation {
    let WideKeys { reason, count, keys } = wide_keys;
    let often = times(*count);
    let what = match reason.as_str() {
        "first-wins" => "other content arrived under applied keys, and on-change = \"first\" discarded it",
        _ => "one key had several contents in one attempt",
    };
    let text =
        format!("The key of units of {run} may be too wide ({reason}, {often}): {what}; {}", listed(keys));
    let explanation = Explanation::new("wide-key", text);
    match keys.first() {
        Some(key) => explanation.advise(format!("refrain trace {}", typed(key))),
        None => explanation,
    }
}
