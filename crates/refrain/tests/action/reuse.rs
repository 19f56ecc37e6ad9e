//! One supervisor executes many commands in turn; none can observe the one before.

use std::collections::BTreeSet;
use std::process::Stdio;

use refrain::action::command::{Command, CommandJob};
use refrain::{Definition, Refrain};
use rustix::process::{Pid, Signal, kill_process};

use crate::workspace::{Workspace, all, is_dead, probe, supervisors};
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{SETTINGS, shown};

/// Prints its supervisor, its directory, and its open descriptors and variables.
const LOOK_AROUND: &str = r#"
echo "$PPID"; pwd; echo "${ONLY_FIRST-unset}"
for held in /proc/$$/fd/*; do readlink "$held" || :; done
"#;

/// Leaves a daemon behind that continues to write, and ends.
const DAEMON: &str = r#"
echo "$PPID" >> parents
(setsid sh -c 'while :; do echo 1 >> ticks; sleep 0.01; done' &)
until [ -s ticks ]; do sleep 0.01; done
"#;

/// Writes for long enough to overlap with a daemon that is still there.
const SUCCESSOR: &str =
    r#"echo "$PPID" >> parents; for _ in 1 2 3 4 5 6 7 8 9 10; do echo 2 >> ticks; sleep 0.02; done"#;

/// A job of this process with a directory, a variable and a supervisor of its own.
fn job(name: &str, script: &str, directory: &str, environment: &[(&str, &str)], program: &str) -> Definition {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment: Vec<(String, String)> = environment.collect();
    let directory = directory.to_owned();
    let make = move |_: &refrain::Run| {
        let (argv, environment) = (argv.clone(), environment.clone());
        Ok(Command { argv, environment, directory: directory.clone().into(), ..Command::default() })
    };
    CommandJob::new(make).supervisor(program).definition(name).unwrap()
}

/// Runs jobs in one worker, one after another. Returns the lines that each has printed.
async fn one_after_another(workspace: &Workspace, jobs: Vec<Definition>) -> Vec<Vec<String>> {
    let names: Vec<String> = jobs.iter().map(|job| job.name().to_string()).collect();
    Refrain::migrate(&workspace.database.url()).await.unwrap();
    let settings = SETTINGS.slots(1);
    let options = Refrain::at(&workspace.database.url(), "crash").unwrap().settings(settings);
    let refrain = jobs.into_iter().fold(options, refrain::OpenOptions::job).open().await.unwrap();
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(serving.into_future());
    // Of queued runs of two jobs, either may begin first.
    for name in &names {
        refrain.enqueue(name, "k", &()).await.unwrap();
        let has_ended = async || !shown(&refrain, &format!("{name}#k")).await.standing.is_open();
        eventually("it has ended", DEADLINE, has_ended).await;
    }
    stop.drain();
    serving.await.unwrap().unwrap();
    let mut printed = Vec::new();
    for name in &names {
        let run = shown(&refrain, &format!("{name}#k")).await;
        assert!(run.standing.is_done(), "{run:?}");
        let text: String = all(&refrain, &run).await.into_iter().map(|piece| piece.text).collect();
        printed.push(text.lines().map(str::to_owned).collect());
    }
    refrain.close().await;
    printed
}

/// A worker that has executed as many commands at once as it can, and waits.
async fn waiting(workspace: &Workspace) -> (ChildProcess, BTreeSet<i32>) {
    let script = "touch there-$REFRAIN_IDEMPOTENCY_KEY; until [ -e gate ]; do sleep 0.01; done";
    for key in ["k1", "k2"] {
        workspace.ask("script", key, script).await;
    }
    let worker = workspace.worker(&["serve"], &[("PROBE_SLOTS", "2")]);
    let are_there = async || std::fs::read_dir(workspace.path("")).unwrap().count() >= 2;
    eventually("both are there", DEADLINE, are_there).await;
    workspace.touch("gate");
    for key in ["k1", "k2"] {
        eventually("it is done", DEADLINE, async || workspace.outcome_of("script", key).await.0 == "done")
            .await;
    }
    let idle = supervisors(worker.id());
    assert_eq!(idle.len(), 2);
    (worker, idle)
}

/// Two commands under one supervisor, the first of which leaves a daemon. Returns whether the second ran beside it.
pub(crate) async fn met_a_daemon(workspace: &Workspace, variables: &[(&str, &str)]) -> bool {
    workspace.ask("script", "k1", DAEMON).await;
    workspace.ask("script", "k2", SUCCESSOR).await;
    let variables = [variables, &[("PROBE_SLOTS", "1")]].concat();
    let mut worker = workspace.worker(&["work"], &variables);
    assert!(worker.wait().await.success());
    assert_eq!(
        workspace.lines("parents").iter().collect::<BTreeSet<_>>().len(),
        1,
        "one supervisor for both"
    );
    assert_eq!(workspace.lines("ticks").iter().filter(|tick| *tick == "2").count(), 10);
    workspace.is_mixed()
}

#[tokio::test]
async fn s20_a_reused_supervisor_shows_nothing_of_the_first_command() {
    let workspace = Workspace::sqlite().await;
    let (program, directory) = (probe(), workspace.path(""));
    let (program, directory) = (program.to_str().unwrap(), directory.to_str().unwrap());
    let first = job("first", LOOK_AROUND, directory, &[("ONLY_FIRST", "set")], program);
    let second = job("second", LOOK_AROUND, "/usr", &[], program);
    let printed = one_after_another(&workspace, vec![first, second]).await;
    let [first, second] = printed.as_slice() else { panic!("{printed:?}") };
    assert_eq!(first[0], second[0], "one supervisor for both");
    let directory = std::fs::canonicalize(directory).unwrap().display().to_string();
    assert_eq!((first[1].as_str(), first[2].as_str()), (directory.as_str(), "set"));
    assert_eq!((second[1].as_str(), second[2].as_str()), ("/usr", "unset"));
    // The variables that every child of this test inherits.
    let plain =
        std::process::Command::new("sh").args(["-c", LOOK_AROUND]).stdin(Stdio::null()).output().unwrap();
    let plain: Vec<String> = String::from_utf8(plain.stdout).unwrap().lines().map(str::to_owned).collect();
    assert!(plain.len() == first.len() && first.len() == second.len(), "{plain:?} {printed:?}");
    let held =
        [&plain[3..], &first[3..], &second[3..]].map(|all| all.iter().cloned().collect::<BTreeSet<_>>());
    let [plain, first, second] = &held;
    let usual: BTreeSet<&String> = plain.intersection(first).collect();
    assert_eq!(usual, first.intersection(second).collect(), "{held:?}");
    assert!(held.iter().all(|all| all.len() == usual.len() + 2), "two pipes of its own: {held:?}");
}

#[tokio::test]
async fn an_idle_supervisor_of_another_program_makes_room() {
    let workspace = Workspace::sqlite().await;
    let other = workspace.path("other");
    std::os::unix::fs::symlink(probe(), &other).unwrap();
    let directory = workspace.path("");
    let directory = directory.to_str().unwrap();
    let first = job("first", "echo $PPID > first", directory, &[], probe().to_str().unwrap());
    // Lines of the other stream may come before or after.
    let script = r#"kill -0 "$(cat first)" 2>/dev/null && echo both || echo alone"#;
    let second = job("second", script, directory, &[], other.to_str().unwrap());
    let printed = one_after_another(&workspace, vec![first, second]).await;
    assert_eq!(printed[1], ["alone"], "{printed:?}");
}

#[tokio::test]
async fn there_are_never_more_supervisors_than_slots() {
    let workspace = Workspace::sqlite().await;
    for run in 0..20 {
        workspace.ask("script", &format!("k{run}"), "echo $PPID >> parents; sleep 0.02").await;
    }
    let mut worker = workspace.worker(&["work"], &[("PROBE_SLOTS", "3")]);
    assert!(worker.wait().await.success());
    let parents = workspace.lines("parents");
    assert_eq!(parents.len(), 20);
    let distinct: BTreeSet<&String> = parents.iter().collect();
    assert!((1..=3).contains(&distinct.len()), "{parents:?}");
    assert!(distinct.iter().all(|parent| is_dead(parent.parse().unwrap())), "they went with their worker");
}

#[tokio::test]
async fn f43_killing_an_idle_supervisor_harms_no_run() {
    let workspace = Workspace::sqlite().await;
    let (worker, idle) = waiting(&workspace).await;
    for supervisor in &idle {
        kill_process(Pid::from_raw(*supervisor).unwrap(), Signal::KILL).unwrap();
    }
    eventually("they are dead", DEADLINE, async || idle.iter().all(|pid| is_dead(*pid))).await;
    for key in ["k3", "k4"] {
        workspace.ask("script", key, "true").await;
        eventually("it is done", DEADLINE, async || workspace.outcome_of("script", key).await.0 == "done")
            .await;
        assert_eq!(workspace.outcome_of("script", key).await, ("done".to_owned(), 1, String::new()));
    }
    let now = supervisors(worker.id());
    assert!(now.iter().any(|pid| !idle.contains(pid)), "{now:?}");
}

#[tokio::test]
async fn f42_a_killed_worker_leaves_no_idle_supervisor() {
    let workspace = Workspace::sqlite().await;
    let (worker, idle) = waiting(&workspace).await;
    worker.end(Signal::KILL);
    eventually("they are gone", DEADLINE, async || idle.iter().all(|pid| is_dead(*pid))).await;
}

#[tokio::test]
async fn f42_a_daemon_of_one_command_is_gone_before_the_next_begins() {
    let workspace = Workspace::sqlite().await;
    assert!(!met_a_daemon(&workspace, &[]).await, "{:?}", workspace.lines("ticks"));
    workspace.no_process_is_left().await;
}

#[tokio::test]
async fn a_supervisor_whose_command_was_cancelled_is_not_reused() {
    let workspace = Workspace::sqlite().await;
    workspace.ask("hasty", "k", "echo $PPID >> parents; [ $REFRAIN_ATTEMPT -gt 1 ] || sleep 1000").await;
    let mut worker = workspace.worker(&["work"], &[("PROBE_SLOTS", "1")]);
    assert!(worker.wait().await.success());
    let parents = workspace.lines("parents");
    assert!(parents.len() == 2 && parents[0] != parents[1], "{parents:?}");
}
