//! What else there is to know of a run: its version, its workers, who asked again, and keys that may be too wide.

use jiff::Timestamp;

use super::{AskedAgain, Suspect, Told, at, listed, times, typed};

/// Something beside where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aside {
    /// It is done under a lower version than the present one.
    Outdated {
        /// The run.
        run: String,
        /// Under which version it is done.
        version: u32,
        /// The version of its job.
        present: u32,
    },
    /// It was done under a higher version than this process has.
    WorkerTooOld {
        /// The run.
        run: String,
        /// Under which version it was done.
        version: u32,
        /// The version that this process has.
        present: u32,
    },
    /// A person has asked for its end.
    CalledOff {
        /// The run.
        run: String,
    },
    /// Workers died that held it.
    TakenOver {
        /// The run.
        run: String,
        /// How many.
        times: u64,
        /// Whether it is claimed alone.
        is_suspect: bool,
    },
    /// It should have been done by now.
    Late {
        /// The run.
        run: String,
        /// Since when.
        since: Timestamp,
    },
    /// Somebody asked again, and nothing was done for that.
    Deduplicated {
        /// The run.
        run: String,
        /// Who, and when.
        asked: AskedAgain,
    },
    /// What it was given is not kept any more.
    Forgotten {
        /// The run.
        run: String,
    },
    /// A key may be too wide: other content was swallowed under it.
    WideKey {
        /// The run.
        run: String,
        /// Which keys.
        suspect: Suspect,
    },
}

impl Aside {
    pub(super) fn told(&self) -> Told {
        match self {
            Aside::Outdated { run, version, present } => {
                let said = format!(
                    "{run} is outdated: it is done under version {version}, and its job has version {present}"
                );
                Told::new("outdated", said).next(format!("refrain run {} --again", typed(run)))
            }
            Aside::WorkerTooOld { run, version, present } => {
                let said = format!(
                    "This process is too old for {run}: it was done under version {version}, and the job here has version {present}"
                );
                let advice = "update it: rows written by a newer version are not overwritten";
                Told::new("worker-too-old", said).next(advice)
            }
            Aside::CalledOff { run } => {
                let said = format!(
                    "An operator has cancelled {run}; its worker learns of it with its next heartbeat"
                );
                Told::new("called-off", said)
            }
            Aside::TakenOver { run, times: count, is_suspect } => {
                let alone = if *is_suspect { "; it is a suspect, so it is claimed alone" } else { "" };
                let said = format!("{run} was taken over {} from workers that died{alone}", times(*count));
                Told::new("taken-over", said).next(format!("refrain show {}", typed(run)))
            }
            Aside::Late { run, since } => Told::new(
                "late",
                format!("{run} is late: with the grace of its job it was due to be done by {}", at(*since)),
            ),
            Aside::Deduplicated { run, asked } => {
                let AskedAgain { times: count, is_more, last, way } = asked;
                let more = if *is_more { " or more" } else { "" };
                let said = format!(
                    "{run} has been requested again {}{more} and deduplicated, last at {} by {way}",
                    times(*count),
                    at(*last)
                );
                Told::new("deduplicated", said).next(format!("refrain show {}", typed(run)))
            }
            Aside::Forgotten { run } => {
                let said = format!("The payload of {run} is no longer kept, so it is not attempted again");
                Told::new("forgotten", said).next("enqueue it under a new key")
            }
            Aside::WideKey { run, suspect } => wide_key(run, suspect),
        }
    }
}

fn wide_key(run: &str, suspect: &Suspect) -> Told {
    let Suspect { reason, count, keys } = suspect;
    let often = times(*count);
    let what = match reason.as_str() {
        "first-wins" => "other content arrived under applied keys, and on-change = \"first\" discarded it",
        _ => "one key had several contents in one attempt",
    };
    let said =
        format!("The key of units of {run} may be too wide ({reason}, {often}): {what}; {}", listed(keys));
    let told = Told::new("wide-key", said);
    match keys.first() {
        Some(key) => told.next(format!("refrain trace {}", typed(key))),
        None => told,
    }
}
