//! Runs tests: each in a process of its own, several at once, from all test programs.
//!
//! Most tests wait, for a lease to expire or for a child to end, and `cargo test` runs one program
//! after another, so the machine would be idle for most of the time. Here the tests of all programs
//! are one list, the slowest of the last time first (their times are stored beside MESSAGES). A
//! process per test keeps changes to the process from other tests, and gives a duration, which the
//! test harness of stable Rust does not report.
//!
//! `suite MESSAGES [NAME]`: the file holds the output of `cargo test --no-run
//! --message-format=json`; with a name, only tests run that contain it. `REFRAIN_TEST_JOBS` says
//! how many run at once. Each has a seat, `REFRAIN_TEST_SEAT`, which no other test has meanwhile:
//! the databases of a seat are reused.
//!
//! Exit code: 0 all passed, 101 some failed, 4 no test has the name, 2 usage error.
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How many tests for each core: they wait most of the time.
const JOBS_PER_CORE: usize = 4;
const SLOWEST: usize = 10;

/// What cargo has built.
struct Program {
    /// As in `refrain::crash`.
    name: String,
    executable: PathBuf,
    /// Where cargo would run it.
    directory: PathBuf,
}

struct Test<'p> {
    program: &'p Program,
    name: String,
}

struct Outcome {
    name: String,
    took: Duration,
    /// What it printed.
    failed: Option<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (messages, name) = match arguments.as_slice() {
        [messages] => (messages, None),
        [messages, name] => (messages, Some(name.as_str())),
        _ => return refused("usage: suite MESSAGES [NAME]"),
    };
    let read = fs::read_to_string(messages).map_err(|error| format!("{messages}: {error}"));
    let memory = Path::new(messages).with_extension("times");
    match read.and_then(|messages| run(&programs(&messages), name, &memory)) {
        Ok(code) => code,
        Err(error) => refused(&error),
    }
}

fn refused(why: &str) -> ExitCode {
    eprintln!("suite: {why}");
    ExitCode::from(2)
}

/// The test programs among the artifacts that cargo lists.
fn programs(messages: &str) -> Vec<Program> {
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests =
        artifacts.filter(|artifact| artifact.pointer("/profile/test").is_some_and(|is_test| is_test == true));
    let program = |artifact: Value| {
        let directory = Path::new(artifact.get("manifest_path")?.as_str()?).parent()?.to_owned();
        let package = directory.file_name()?.to_string_lossy().into_owned();
        let name = format!("{package}::{}", artifact.pointer("/target/name")?.as_str()?);
        Some(Program { name, executable: artifact.get("executable")?.as_str()?.into(), directory })
    };
    tests.filter_map(program).collect()
}

fn run(programs: &[Program], name: Option<&str>, memory: &Path) -> Result<ExitCode, String> {
    let mut tests = Vec::new();
    for program in programs {
        let names = program.tests(name).map_err(|error| format!("{}: {error}", program.name))?;
        tests.extend(names.into_iter().map(|name| Test { program, name }));
    }
    if tests.is_empty() {
        return Ok(ExitCode::from(4));
    }
    let begun = Instant::now();
    let outcomes = all(in_order(tests, &times(memory)))?;
    print_summary(&outcomes, begun.elapsed());
    if name.is_none() {
        remember(&outcomes, memory).map_err(|error| error.to_string())?;
    }
    let has_failed = outcomes.iter().any(|outcome| outcome.failed.is_some());
    Ok(if has_failed { ExitCode::from(101) } else { ExitCode::SUCCESS })
}

impl Program {
    /// Without the variables that cargo sets for a test: some build scripts depend on them, and a test that calls
    /// cargo would rebuild crates, here and again for the next caller with other variables.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    /// The names of its tests that contain this.
    fn tests(&self, name: Option<&str>) -> io::Result<Vec<String>> {
        let listed = self.command().args(name).args(["--list", "--format", "terse"]).output()?;
        if !listed.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&listed.stderr).into_owned()));
        }
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }
}

impl Test<'_> {
    fn name(&self) -> String {
        format!("{}::{}", self.program.name, self.name)
    }

    /// The output goes to a file: a process that the test leaves behind would keep a pipe open.
    fn run(&self, seat: usize) -> io::Result<Outcome> {
        let printed = tempfile::NamedTempFile::new()?;
        let begun = Instant::now();
        let mut command = self.program.command();
        command.args([self.name.as_str(), "--exact"]).env("REFRAIN_TEST_SEAT", seat.to_string());
        command.stdout(printed.reopen()?).stderr(append(printed.path())?);
        let status = command.status()?;
        let took = begun.elapsed();
        let printed = String::from_utf8_lossy(&fs::read(printed.path())?).into_owned();
        let has_passed = status.success() && printed.contains("test result: ok. 1 passed");
        let failed = (!has_passed).then(|| format!("{status}\n{printed}"));
        Ok(Outcome { name: self.name(), took, failed })
    }
}

fn append(path: &Path) -> io::Result<File> {
    File::options().append(true).open(path)
}

/// Runs them, as many at once as there are seats.
fn all(tests: VecDeque<Test<'_>>) -> Result<Vec<Outcome>, String> {
    let (count, seats) = (tests.len(), seats()?);
    println!("running {count} tests, {seats} at once");
    let (waiting, ended) = (Mutex::new(tests), Mutex::new(Vec::with_capacity(count)));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = |seat| {
        while let Some(test) = next() {
            let outcome = test.run(seat).map_err(|error| format!("{}: {error}", test.name()))?;
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            let word = if outcome.failed.is_some() { "FAILED" } else { "ok" };
            println!("test {} ... {word} ({:.1} s)", outcome.name, outcome.took.as_secs_f64());
            if let Some(printed) = &outcome.failed {
                println!("{printed}");
            }
            ended.push(outcome);
        }
        Ok(())
    };
    let worked: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..seats).map(|seat| scope.spawn(move || work(seat))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or(Err("a thread panicked".into()))).collect()
    });
    worked.into_iter().collect::<Result<Vec<()>, String>>()?;
    Ok(ended.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn seats() -> Result<usize, String> {
    match std::env::var("REFRAIN_TEST_JOBS") {
        Ok(jobs) => match jobs.parse() {
            Ok(jobs @ 1..) => Ok(jobs),
            _ => Err(format!("REFRAIN_TEST_JOBS is {jobs:?}, not a number from 1 on")),
        },
        Err(_) => Ok(JOBS_PER_CORE * std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// The slowest test of the last time begins first: it would delay the end otherwise. A new test may be slow too.
fn in_order<'p>(tests: Vec<Test<'p>>, times: &BTreeMap<String, f64>) -> VecDeque<Test<'p>> {
    let mut slowest: Vec<(f64, Test<'p>)> = tests
        .into_iter()
        .map(|test| (times.get(&test.name()).copied().unwrap_or(f64::INFINITY), test))
        .collect();
    slowest.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    slowest.into_iter().map(|(_, test)| test).collect()
}

/// How long tests took the last time, in seconds.
fn times(memory: &Path) -> BTreeMap<String, f64> {
    let text = fs::read_to_string(memory).unwrap_or_default();
    let times = text.lines().filter_map(|line| line.split_once(' '));
    times.filter_map(|(took, name)| Some((name.to_owned(), took.parse().ok()?))).collect()
}

fn remember(outcomes: &[Outcome], memory: &Path) -> io::Result<()> {
    let mut file = io::BufWriter::new(File::create(memory)?);
    for Outcome { name, took, .. } in outcomes {
        writeln!(file, "{:.3} {name}", took.as_secs_f64())?;
    }
    file.flush()
}

fn print_summary(outcomes: &[Outcome], took: Duration) {
    let failures = || outcomes.iter().filter(|outcome| outcome.failed.is_some());
    let mut slowest: Vec<&Outcome> = outcomes.iter().collect();
    slowest.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    println!("\nthe slowest:");
    for Outcome { name, took, .. } in slowest.into_iter().take(SLOWEST) {
        println!("  {:6.1} s  {name}", took.as_secs_f64());
    }
    let failed = failures().count();
    println!(
        "\n{} passed, {failed} failed, in {:.0} s ({:.0} s one after another)",
        outcomes.len() - failed,
        took.as_secs_f64(),
        outcomes.iter().map(|outcome| outcome.took).sum::<Duration>().as_secs_f64(),
    );
    for Outcome { name, .. } in failures() {
        println!("FAILED: {name}");
    }
}
