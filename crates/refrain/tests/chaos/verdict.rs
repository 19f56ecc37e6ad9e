//! What must be true when the clock has stopped and no run is open: the schedules, the rows of the store and the
//! lines of the commands agree. None of the three is derived from another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jiff::Timestamp;
use refrain::Refrain;
use refrain::admin::RunRecord;
use refrain::core::state::RunNode;
use refrain::core::{Revisions, WhileRunning, Word as _};
use refrain::project::Project;

use crate::files::Weekend;

/// A line of a command.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) word: String,
    pub(crate) run: String,
    pub(crate) attempt: u64,
    pub(crate) server: u32,
}

/// All lines of the commands, in the order in which they were written.
pub(crate) fn lines(root: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(root.join("log")).unwrap_or_default();
    let read = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [word, run, attempt, server] = *words.as_slice() else {
            panic!("{line:?} is not a line of a command")
        };
        let (attempt, server) = (attempt.parse().unwrap(), server.parse().unwrap());
        Line { word: word.to_owned(), run: run.replace("old-name@", "new-name@"), attempt, server }
    };
    text.lines().map(read).collect()
}

/// From the first to the last line of an attempt, and its output.
#[derive(Debug, Default)]
struct Attempt {
    first: usize,
    last: usize,
    begun: usize,
    ended: usize,
}

type Attempts = BTreeMap<(String, u64), Attempt>;

fn attempts(root: &Path) -> Attempts {
    let mut attempts = Attempts::new();
    for (at, line) in lines(root).into_iter().enumerate() {
        let attempt = attempts
            .entry((line.run, line.attempt))
            .or_insert_with(|| Attempt { first: at, ..Attempt::default() });
        attempt.last = at;
        attempt.begun += usize::from(line.word == "begun");
        attempt.ended += usize::from(line.word == "ended");
    }
    attempts
}

pub(crate) struct Verdict {
    faults: Vec<String>,
    /// How many windows of a job ended in each state.
    counts: BTreeMap<(String, &'static str), usize>,
    attempts: usize,
    /// The windows whose statements are done.
    written: Vec<String>,
}

impl Verdict {
    pub(crate) async fn of(refrain: &Refrain, root: &Path, weekend: &Weekend) -> Verdict {
        let attempts = attempts(root);
        let mut verdict = Verdict {
            faults: Vec::new(),
            counts: BTreeMap::new(),
            attempts: attempts.len(),
            written: Vec::new(),
        };
        let mut known = BTreeSet::new();
        for job in Project::load(root).unwrap().jobs() {
            let name = job.name.as_str();
            let in_force = refrain::testing::revisions(refrain, name).await.unwrap().unwrap();
            let first = Revisions::first(job.timetable.clone().unwrap(), weekend.from).unwrap();
            let expected = if name == "edited" { in_force } else { first };
            if name == "edited" && expected.iter().count() < 2 {
                verdict.faults.push("the edit of `edited` is not among its timetables".to_owned());
            }
            let runs = runs(refrain, name).await;
            verdict.windows(name, &runs, &expected, weekend.until());
            for run in &runs {
                known.insert(format!("{name}@{}", run.key));
                verdict.run(name, run, &attempts);
                verdict.history(refrain, run).await;
            }
            if job.while_running != WhileRunning::Allow {
                let prefix = format!("{name}@");
                let of_job = attempts.iter().filter(|((run, _), _)| run.starts_with(&prefix));
                verdict.apart(&format!("runs of {name}"), of_job.map(|(_, attempt)| attempt));
            }
        }
        let summary: BTreeSet<&String> = attempts.keys().map(|(run, _)| run).collect();
        verdict.faults.extend(
            summary
                .iter()
                .filter(|run| !known.contains(**run))
                .map(|run| format!("{run} was executed and has no row")),
        );
        for run in summary {
            let of_run = attempts.iter().filter(|((one, _), _)| one == run);
            verdict.apart(&format!("attempts of {run}"), of_run.map(|(_, attempt)| attempt));
        }
        verdict
    }

    /// The windows that must exist have rows, and no others; they have no gap and do not overlap.
    fn windows(&mut self, job: &str, runs: &[RunRecord], timetables: &Revisions, until: Timestamp) {
        let expected: Vec<String> = timetables
            .windows_that_open(Timestamp::MIN, until)
            .map(|(window, _)| window.to_string())
            .collect();
        let rows: Vec<String> = runs.iter().map(|run| run.window.unwrap().to_string()).collect();
        let missing = expected.iter().filter(|window| !rows.contains(window));
        self.faults.extend(missing.map(|window| format!("{job}: {window} has no row")));
        let unexpected = rows.iter().filter(|window| !expected.contains(window));
        self.faults.extend(unexpected.map(|window| format!("{job}: {window} is unexpected")));
        if rows.len() != expected.len() || rows.len() < 2 && job != "nightly" {
            self.faults.push(format!("{job}: {} rows for {} windows", rows.len(), expected.len()));
        }
        for (one, next) in runs.iter().zip(runs.iter().skip(1)) {
            let (one, next) = (one.window.unwrap(), next.window.unwrap());
            if one.end() != next.start() {
                self.faults.push(format!("{job}: {next} does not follow on {one}"));
            }
        }
    }

    fn run(&mut self, job: &str, run: &RunRecord, attempts: &Attempts) {
        let (name, node) = (format!("{job}@{}", run.key), run.standing.node());
        *self.counts.entry((job.to_owned(), node.name())).or_default() += 1;
        let mut fault = |what: &str| self.faults.push(format!("{name} {what}"));
        let of_run: Vec<(u64, &Attempt)> = attempts
            .iter()
            .filter(|((one, _), _)| *one == name)
            .map(|((_, number), one)| (*number, one))
            .collect();
        for (number, attempt) in &of_run {
            if attempt.begun != 1 || attempt.ended > 1 || *number > run.attempt {
                fault(&format!("is at attempt {}, and {number} says {attempt:?}", run.attempt));
            }
        }
        match node {
            RunNode::Done if job == "rows" => self.written.push(run.window.unwrap().start().to_string()),
            RunNode::Done => {
                let last = of_run.iter().find(|(number, _)| *number == run.ended_attempt);
                if last.is_none_or(|(_, attempt)| attempt.ended != 1) {
                    fault(&format!("is done by attempt {}, which did not end", run.ended_attempt));
                }
            }
            RunNode::Skipped => {
                let may_be_skipped = ["ticks", "halves", "within"].contains(&job);
                let reason = run.message.clone().unwrap_or_default();
                let is_told = reason.contains("catch-up = ") || reason.contains("while-running = \"skip\"");
                if !may_be_skipped || !is_told || !of_run.is_empty() {
                    fault(&format!("is skipped, because {reason:?}; it has {} attempts", of_run.len()));
                }
            }
            other => fault(&format!("is {}: {:?}", other.name(), run.message)),
        }
    }

    /// Attempts before the last were ended by a kill or a stop, and nothing else.
    async fn history(&mut self, refrain: &Refrain, run: &RunRecord) {
        for past in refrain.attempts(run).await.unwrap() {
            if !["stopped", "taken-over", "crashed-alone"].contains(&past.ended.name()) {
                let (job, key) = (&run.job, &run.key);
                self.faults.push(format!("attempt {} of {job}@{key} ended: {past:?}", past.number));
            }
        }
    }

    /// No two of these ran at the same time.
    fn apart<'a>(&mut self, what: &str, attempts: impl Iterator<Item = &'a Attempt>) {
        let mut attempts: Vec<&Attempt> = attempts.collect();
        attempts.sort_by_key(|attempt| attempt.first);
        for (one, next) in attempts.iter().zip(attempts.iter().skip(1)) {
            if one.last > next.first {
                self.faults.push(format!("{what} overlapped: {one:?} and {next:?}"));
            }
        }
    }

    pub(crate) fn summary(&self) -> String {
        let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
        for ((_, node), count) in &self.counts {
            *nodes.entry(node).or_default() += count;
        }
        let nodes: Vec<String> = nodes.iter().map(|(node, count)| format!("{count} {node}")).collect();
        format!("windows: {}; {} attempts of commands", nodes.join(", "), self.attempts)
    }

    /// Fails with every fault that it finds; `rows` is what the statements have written.
    pub(crate) fn holds(&self, rows: &[String]) {
        assert!(self.faults.is_empty(), "{} faults:\n{}", self.faults.len(), self.faults.join("\n"));
        assert_eq!(rows, self.written, "each window once");
    }
}

/// A verdict without findings proves something only if it finds planted faults: windows without a row, a run without
/// one, an attempt that began twice, one that came back while its successor ran.
pub(crate) async fn notices(refrain: &Refrain, root: &Path, weekend: Weekend) {
    let mut summary = lines(root);
    let first = summary.iter().find(|line| line.word == "begun").unwrap().clone();
    summary.push(first.clone());
    summary.push(Line { run: "hourly@1999-01-01T00:00:00Z".to_owned(), ..first.clone() });
    summary.insert(1, Line { word: "alive".to_owned(), attempt: first.attempt + 1, ..first.clone() });
    let written = |line: &Line| format!("{} {} {} {}\n", line.word, line.run, line.attempt, line.server);
    std::fs::write(root.join("log"), summary.iter().map(written).collect::<String>()).unwrap();
    let verdict = Verdict::of(refrain, root, &weekend.longer(3)).await;
    let run = &first.run;
    for (subject, fault) in [
        ("hourly: ", "has no row"),
        ("hourly@1999-01-01T00:00:00Z", "was executed and has no row"),
        (run.as_str(), "is at attempt "),
        (&format!("attempts of {run}"), "overlapped"),
    ] {
        let is_it = |found: &String| found.starts_with(subject) && found.contains(fault);
        assert!(verdict.faults.iter().any(is_it), "not noticed: {subject} {fault}");
    }
}

async fn runs(refrain: &Refrain, job: &str) -> Vec<RunRecord> {
    let mut runs: Vec<RunRecord> = Vec::new();
    loop {
        let after = runs.last().map_or_else(String::new, |run| run.key.clone());
        let page = refrain.runs(job, &after).await.unwrap();
        if page.is_empty() {
            return runs;
        }
        runs.extend(page);
    }
}
