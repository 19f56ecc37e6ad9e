//! A store, a working directory for commands, and what a test can observe of them from outside.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use refrain::action::command::{self, CommandJob};
use refrain::action::environment::environment_of;
use refrain::admin::{OutputPlace, OutputRecord, RunRecord};
use refrain::core::{Backoff, Retry, Zone};
use refrain::{Ask, Definition, Refrain, RunReport};
use rustix::process::{Pid, Signal, kill_process};

use refrain_harness::TestDatabase;
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::programs::program;
use refrain_harness::work::SETTINGS;

/// Appends to a file all the time while it runs: if two attempts run at once, their
/// lines are mixed. It ends when there is a file `gate`.
pub(crate) const TICKING: &str =
    r#"until [ -e gate ]; do echo "$REFRAIN_ATTEMPT" >> ticks; sleep 0.01; done; echo done"#;

/// A command with descendants: one in its group, one in a session of its own, one whose parent has ended. All of them ignore
/// SIGTERM.
pub(crate) const FAMILY: &str = r#"
trap '' TERM
sleep 1000 &
setsid sh -c "trap '' TERM; touch apart; sleep 1000; sleep 1000" &
(setsid sh -c 'touch orphan; sleep 1000; sleep 1000' &)
until [ -e apart ] && [ -e orphan ]; do sleep 0.01; done
touch family
while :; do sleep 1; done
"#;

pub(crate) fn probe() -> PathBuf {
    program("probe")
}

pub(crate) struct Workspace {
    pub(crate) database: TestDatabase,
    directory: tempfile::TempDir,
}

impl Workspace {
    pub(crate) fn of(database: TestDatabase) -> Workspace {
        Workspace { database, directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) async fn sqlite() -> Workspace {
        Workspace::of(TestDatabase::sqlite().await)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn touch(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) async fn appears(&self, name: &str) {
        eventually(&format!("{name} is there"), DEADLINE, async || self.path(name).exists()).await;
    }

    /// A job of this process that executes these arguments literally.
    pub(crate) fn job(&self, name: &str, argv: &[&str]) -> Definition {
        self.job_within(name, argv, Duration::from_millis(200))
    }

    /// Such a job with this grace period.
    pub(crate) fn job_within(&self, name: &str, argv: &[&str], grace: Duration) -> Definition {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let directory = self.directory.path().to_owned();
        let make = move |run: &refrain::Run| {
            let (argv, directory) = (argv.clone(), directory.clone());
            let environment = environment_of(run, &Zone::utc());
            Ok(command::Command { argv, environment, directory, ..command::Command::default() })
        };
        let job = CommandJob::new(make).supervisor(probe()).grace(grace);
        let backoff = Backoff { min: Duration::from_millis(1), max: Duration::from_millis(2) };
        job.definition(name).unwrap().retry(Retry { attempts: 2, backoff })
    }

    pub(crate) fn shell(&self, script: &str) -> Definition {
        self.job("shell", &["sh", "-c", script, "sh"])
    }

    pub(crate) async fn open(&self, jobs: impl IntoIterator<Item = Definition>) -> Refrain {
        Refrain::migrate(&self.database.url()).await.unwrap();
        // The project of the probes.
        let options = Refrain::at(&self.database.url(), "crash").unwrap().settings(SETTINGS);
        jobs.into_iter().fold(options, refrain::OpenOptions::job).open().await.unwrap()
    }

    /// Executes a script once in this process. Returns its report and its output.
    pub(crate) async fn executed(&self, job: Definition) -> (RunReport, Vec<OutputRecord>) {
        let name = format!("{}#k", job.name());
        let refrain = self.open([job]).await;
        let report = refrain.run(&name, Ask::Once).await.unwrap();
        let output = all(&refrain, &report.run).await;
        (report, output)
    }

    /// Starts a worker in a process of its own; its variables may arm failpoints.
    pub(crate) fn worker(&self, arguments: &[&str], variables: &[(&str, &str)]) -> ChildProcess {
        let mut command = Command::new(probe());
        command.args(arguments).envs(variables.iter().copied());
        command.env("PROBE_STORE", self.database.url()).env("PROBE_DIRECTORY", self.directory.path());
        ChildProcess::spawn(&mut command)
    }

    /// Runs such a process to its end.
    pub(crate) async fn done(&self, arguments: &[&str]) {
        let output = self.worker(arguments, &[]).finish().await;
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?} ended with {}: {reported}", output.status);
    }

    /// Requests a run of a probe's job that executes this script.
    pub(crate) async fn ask(&self, job: &str, key: &str, script: &str) {
        let refrain = self.open([self.job(job, &[])]).await;
        let payload = serde_json::to_string(&["sh", "-c", script, "sh"]).unwrap();
        refrain.enqueue_json(job, key, Some(&payload)).await.unwrap();
        refrain.close().await;
    }

    /// A run of a probe's job: its outcome, its attempt, and its message.
    pub(crate) async fn outcome_of(&self, job: &str, key: &str) -> (String, u64, String) {
        let refrain = self.open([self.job(job, &[])]).await;
        let run = refrain.show(&format!("{job}#{key}")).await.unwrap().unwrap();
        refrain.close().await;
        let outcome = run.standing.outcome.map(|outcome| outcome.to_string()).unwrap_or_default();
        (outcome, run.attempt, run.message.unwrap_or_default())
    }

    /// The living processes of commands of this directory, with their command lines.
    pub(crate) fn alive(&self) -> Vec<(Pid, String)> {
        let mark = format!("REFRAIN_PROJECT={}\0", self.directory.path().display());
        let found = processes().into_iter().filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|part| part == mark.as_bytes()) && !is_dead(*pid)
        });
        let named = found.map(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (Pid::from_raw(pid).unwrap(), String::from_utf8_lossy(&words).replace('\0', " "))
        });
        named.collect()
    }

    pub(crate) async fn no_process_is_left(&self) {
        eventually("no process is left", DEADLINE, async || self.alive().is_empty()).await;
    }

    /// Whether an earlier attempt was running after a later one had begun.
    pub(crate) fn is_mixed(&self) -> bool {
        let ticks: Vec<u32> = self.lines("ticks").iter().map(|tick| tick.parse().unwrap()).collect();
        !ticks.is_sorted()
    }

    /// Waits until an attempt has written its first line.
    pub(crate) async fn ticks(&self, attempt: u32) {
        let (what, tick) = (format!("attempt {attempt} is there"), attempt.to_string());
        eventually(&what, DEADLINE, async || self.lines("ticks").contains(&tick)).await;
    }
}

impl Drop for Workspace {
    /// A test of a removed guard leaves processes behind.
    fn drop(&mut self) {
        for (pid, _) in self.alive() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The whole output of a run.
pub(crate) async fn all(refrain: &Refrain, run: &RunRecord) -> Vec<OutputRecord> {
    let mut output: Vec<OutputRecord> = Vec::new();
    loop {
        let after = output.last().map_or_else(OutputPlace::default, |last| last.place);
        let page = refrain.output(run, after).await.unwrap();
        if page.is_empty() {
            return output;
        }
        output.extend(page);
    }
}

/// The supervisors that a worker has.
pub(crate) fn supervisors(worker: u32) -> BTreeSet<i32> {
    let is_one = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.starts_with(b"refrain\0supervise\0") && parent(*pid) == Some(worker)
    };
    processes().into_iter().filter(is_one).collect()
}

pub(crate) fn is_dead(pid: i32) -> bool {
    stat(pid).is_none_or(|fields| fields.starts_with(['Z', 'X']))
}

fn parent(pid: i32) -> Option<u32> {
    stat(pid)?.split(' ').nth(1)?.parse().ok()
}

/// The fields after the name in `/proc/PID/stat`: the state, the parent and so on.
pub(crate) fn stat(pid: i32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.to_owned())
}

fn processes() -> Vec<i32> {
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}
