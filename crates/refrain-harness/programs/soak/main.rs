//! The soak test: processes that do real work are killed, stopped and cut off again and again, and in the end the
//! rows are compared with the sources.
//!
//! A round has sources that Refrain never writes (`source.rs`), a destination whose rows count their writes
//! (`destination.rs`), processes that run jobs through the library (`worker.rs`), a loop that injects faults
//! (`round.rs`, from `fault.rs`), and an oracle that compares sources and rows (`oracle.rs`). The seed decides which
//! faults come, and in which order; timing decides what they hit.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a harness: a panic is its report of a failure, the table its result"
)]

use refrain_harness as support;

mod arena;
mod destination;
mod fault;
mod feeder;
mod oracle;
mod report;
mod round;
mod source;
mod worker;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use arena::Kind;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "soak [--kills N] [--seed S] [--store sqlite|postgres|both]";
const KILLS: usize = 200;

struct Asked {
    kills: usize,
    seed: u64,
    stores: Vec<Kind>,
}

impl Asked {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Asked> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let mut asked =
            Asked { kills: KILLS, seed: now.as_secs(), stores: vec![Kind::Sqlite, Kind::Postgres] };
        while let Some(word) = words.next() {
            let value = words.next()?;
            match word.as_str() {
                "--kills" => asked.kills = value.parse().ok()?,
                "--seed" => asked.seed = value.parse().ok()?,
                "--store" => {
                    asked.stores = match value.as_str() {
                        "sqlite" => vec![Kind::Sqlite],
                        "postgres" => vec![Kind::Postgres],
                        "both" => asked.stores,
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
        Some(asked)
    }
}

/// Prints a line at once: the parent process waits for it.
pub(crate) fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdout.flush());
}

async fn soak(asked: &Asked) -> ExitCode {
    eprintln!("seed {}", asked.seed);
    let mut is_sound = true;
    let mut reports = Vec::new();
    for kind in &asked.stores {
        let report = round::round(*kind, asked.kills, asked.seed).await;
        is_sound &= report.is_sound();
        report.print();
        reports.push(report);
    }
    report::print(&reports);
    if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    refrain::failpoint::arm();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Some(role @ ("work" | "finish")) = words.first().map(String::as_str) {
        return match runtime.block_on(worker::work(role == "finish")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{role}: {error}");
                ExitCode::from(75)
            }
        };
    }
    let Some(asked) = Asked::parse(words.into_iter()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    runtime.block_on(soak(&asked))
}
