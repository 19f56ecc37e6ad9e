//! Two servers of one project, and the faults that the test injects into them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::{SignedDuration, Timestamp};
use refrain::Refrain;
use rustix::process::Signal;

use crate::clock::Clock;
use crate::verdict::{Line, lines};
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::programs::program;

/// How long a fault waits for a running command, by the clock of the schedules.
const PATIENCE: SignedDuration = SignedDuration::from_mins(60);
/// How often a server may end before it serves: it may be taken for dead while it starts.
const STARTS: usize = 5;

pub(crate) struct Servers {
    root: PathBuf,
    clock: String,
    running: [Option<(u32, ChildProcess)>; 2],
    started: u32,
    kills: usize,
    /// Kills while a command of the killed server was running.
    struck: usize,
    told_to_end: usize,
    /// Servers that were ended by the other one, which took them for dead.
    taken_for_dead: usize,
}

impl Servers {
    pub(crate) fn new(root: &Path, clock: &Clock) -> Servers {
        Servers {
            root: root.to_owned(),
            clock: clock.variable(),
            running: [None, None],
            started: 0,
            kills: 0,
            struck: 0,
            told_to_end: 0,
            taken_for_dead: 0,
        }
    }

    pub(crate) async fn start(&mut self, which: usize) {
        for _ in 0..STARTS {
            self.started += 1;
            let mut command = Command::new(program("project"));
            command.arg(&self.root).arg("serve").env("CHAOS_SERVER", self.started.to_string());
            command.env("REFRAIN_TEST_CLOCK", &self.clock);
            command.env("PROJECT_LEASE", "60000").env("PROJECT_POLL", "25");
            let mut server = ChildProcess::spawn(&mut command);
            if server.line_with("serving").await.is_some() {
                *self.slot(which) = Some((self.started, server));
                return;
            }
            let message = server.finish().await;
            println!("{} while it started: {}", message.status, String::from_utf8_lossy(&message.stderr));
        }
        panic!("a server fell {STARTS} times before it served");
    }

    fn slot(&mut self, which: usize) -> &mut Option<(u32, ChildProcess)> {
        self.running.get_mut(which).unwrap()
    }

    fn is_running(&self, server: u32) -> bool {
        let mut open = std::collections::BTreeSet::new();
        for Line { word, run, attempt, server: by } in lines(&self.root) {
            match word.as_str() {
                _ if by != server => {}
                "begun" => drop(open.insert((run, attempt))),
                "ended" => drop(open.remove(&(run, attempt))),
                _ => {}
            }
        }
        !open.is_empty()
    }

    /// Waits a while for a running command of this server.
    pub(crate) async fn is_at_work(&mut self, which: usize, clock: &Clock) {
        let Some((name, _)) = self.slot(which) else { return };
        let (name, until) = (*name, clock.now() + PATIENCE);
        eventually("a command is running", DEADLINE, async || self.is_running(name) || clock.now() >= until)
            .await;
    }

    pub(crate) fn signal(&mut self, which: usize, signal: Signal) {
        if let Some((_, server)) = self.slot(which) {
            server.signal(signal);
        }
    }

    /// Sends it a signal, and waits for its end.
    pub(crate) async fn end(&mut self, which: usize, signal: Signal) {
        let Some((name, mut server)) = self.slot(which).take() else { return };
        if server.has_ended() {
            self.taken_for_dead += 1;
            return;
        }
        if signal == Signal::KILL {
            server.end(signal);
            self.kills += 1;
            self.struck += usize::from(self.is_running(name));
            return;
        }
        server.signal(signal);
        self.told_to_end += 1;
        let ended = server.finish().await;
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        if ended.status.code().is_none() {
            self.taken_for_dead += 1;
        }
        assert!(ended.status.success() || ended.status.code().is_none(), "{}: {message}", ended.status);
    }

    /// Makes both read their files again.
    pub(crate) async fn reload(&mut self) {
        for which in 0..2 {
            self.signal(which, Signal::HUP);
            let Some((_, server)) = self.slot(which) else { continue };
            if server.line_with("reloaded").await.is_none() {
                self.taken_for_dead += 1;
                self.start(which).await;
            }
        }
    }

    /// Waits until nothing is open and nothing is due at the time of the stopped clock, and ends both.
    pub(crate) async fn drain(&mut self, refrain: &Refrain, until: Timestamp) {
        eventually("nothing is open or due", DEADLINE, async || {
            for which in 0..2 {
                if self.slot(which).as_ref().is_none_or(|(_, server)| server.has_ended()) {
                    self.taken_for_dead += 1;
                    self.start(which).await;
                }
            }
            let jobs = refrain.job_records(None).await.unwrap();
            let is_due = jobs.iter().any(|job| job.next_at.is_some_and(|next| next <= until));
            !is_due && refrain.open_runs().await.unwrap() == 0
        })
        .await;
        self.end(0, Signal::TERM).await;
        self.end(1, Signal::TERM).await;
    }

    pub(crate) fn summary(&self) -> String {
        let Servers { started, kills, struck, told_to_end, taken_for_dead, .. } = self;
        format!(
            "{started} servers, {kills} kills ({struck} while a command was running), \
             {told_to_end} told to end, \
             {taken_for_dead} taken for dead"
        )
    }

    /// A weekend without a single hit would prove nothing.
    pub(crate) fn were_hit(&self) {
        assert!(self.kills >= 3 && self.struck >= 1 && self.told_to_end >= 1, "{}", self.summary());
    }
}

/// The files of a project are removed when its servers have ended.
impl Drop for Servers {
    fn drop(&mut self) {
        self.running = [None, None];
        drop(fs::remove_file(self.root.join("part")));
    }
}
