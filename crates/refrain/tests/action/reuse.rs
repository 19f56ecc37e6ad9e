//! One supervisor for many commands, one after another: none finds anything of the one before.

use std::collections::BTreeSet;
use std::process::Stdio;

use refrain::action::command::{Command, CommandJob};
use refrain::{Definition, Refrain, Settings};
use rustix::process::{Pid, Signal, kill_process};

use crate::desk::{Desk, all, is_dead, probe, supervisors};
use crate::support::children::ChildProcess;
use crate::support::eventually::{DEADLINE, eventually};
use crate::support::work::{SETTINGS, shown};

/// Says who its supervisor is, where it is, and everything that it holds.
const LOOK_AROUND: &str = r#"
echo "$PPID"; pwd; echo "${ONLY_FIRST-unset}"
for held in /proc/$$/fd/*; do readlink "$held" || :; done
"#;

/// Leaves a daemon behind that goes on writing, and ends.
const DAEMON: &str = r#"
echo "$PPID" >> parents
(setsid sh -c 'while :; do echo 1 >> ticks; sleep 0.01; done' &)
until [ -s ticks ]; do sleep 0.01; done
"#;

/// Writes for long enough to be seen by a daemon that is still there.
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

/// Runs jobs in one worker, each when the one before is done. Gives the lines that each has printed.
async fn one_after_another(desk: &Desk, jobs: Vec<Definition>) -> Vec<Vec<String>> {
    let names: Vec<String> = jobs.iter().map(|job| job.name().to_string()).collect();
    Refrain::migrate(&desk.database.url()).await.unwrap();
    let settings = Settings { slots: 1, ..SETTINGS };
    let opening = Refrain::at(&desk.database.url(), "crash").unwrap().settings(settings);
    let refrain = jobs.into_iter().fold(opening, refrain::OpenOptions::job).open().await.unwrap();
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(serving.into_future());
    // Of runs of two jobs that wait at once, either may begin first.
    for name in &names {
        refrain.enqueue(name, "k", None).await.unwrap();
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
async fn waiting(desk: &Desk) -> (ChildProcess, BTreeSet<i32>) {
    let script = "touch there-$REFRAIN_IDEMPOTENCY_KEY; until [ -e gate ]; do sleep 0.01; done";
    for key in ["k1", "k2"] {
        desk.ask("script", key, script).await;
    }
    let worker = desk.worker(&["serve"], &[("PROBE_SLOTS", "2")]);
    let are_there = async || std::fs::read_dir(desk.path("")).unwrap().count() >= 2;
    eventually("both are there", DEADLINE, are_there).await;
    desk.touch("gate");
    for key in ["k1", "k2"] {
        eventually("it is done", DEADLINE, async || desk.told("script", key).await.0 == "done").await;
    }
    let idle = supervisors(worker.id());
    assert_eq!(idle.len(), 2);
    (worker, idle)
}

/// Two commands under one supervisor, the first of which leaves a daemon. Gives whether the second met it.
pub(crate) async fn met_a_daemon(desk: &Desk, variables: &[(&str, &str)]) -> bool {
    desk.ask("script", "k1", DAEMON).await;
    desk.ask("script", "k2", SUCCESSOR).await;
    let variables = [variables, &[("PROBE_SLOTS", "1")]].concat();
    let mut worker = desk.worker(&["work"], &variables);
    assert!(worker.wait().await.success());
    assert_eq!(desk.lines("parents").iter().collect::<BTreeSet<_>>().len(), 1, "one supervisor for both");
    assert_eq!(desk.lines("ticks").iter().filter(|tick| *tick == "2").count(), 10);
    desk.is_mixed()
}

#[tokio::test]
async fn s20_the_second_command_of_a_supervisor_finds_nothing_of_the_first() {
    let desk = Desk::sqlite().await;
    let (program, directory) = (probe(), desk.path(""));
    let (program, directory) = (program.to_str().unwrap(), directory.to_str().unwrap());
    let first = job("first", LOOK_AROUND, directory, &[("ONLY_FIRST", "set")], program);
    let second = job("second", LOOK_AROUND, "/usr", &[], program);
    let printed = one_after_another(&desk, vec![first, second]).await;
    let [first, second] = printed.as_slice() else { panic!("{printed:?}") };
    assert_eq!(first[0], second[0], "one supervisor for both");
    let directory = std::fs::canonicalize(directory).unwrap().display().to_string();
    assert_eq!((first[1].as_str(), first[2].as_str()), (directory.as_str(), "set"));
    assert_eq!((second[1].as_str(), second[2].as_str()), ("/usr", "unset"));
    // Whatever everybody gets who is started from here.
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
async fn a_supervisor_that_is_another_program_makes_way_so_that_there_are_never_more_than_slots() {
    let desk = Desk::sqlite().await;
    let other = desk.path("other");
    std::os::unix::fs::symlink(probe(), &other).unwrap();
    let directory = desk.path("");
    let directory = directory.to_str().unwrap();
    let first = job("first", "echo $PPID > first", directory, &[], probe().to_str().unwrap());
    // What goes to the other stream may come before or after.
    let script = r#"kill -0 "$(cat first)" 2>/dev/null && echo both || echo alone"#;
    let second = job("second", script, directory, &[], other.to_str().unwrap());
    let printed = one_after_another(&desk, vec![first, second]).await;
    assert_eq!(printed[1], ["alone"], "{printed:?}");
}

#[tokio::test]
async fn there_are_never_more_supervisors_than_slots_however_many_commands() {
    let desk = Desk::sqlite().await;
    for run in 0..20 {
        desk.ask("script", &format!("k{run}"), "echo $PPID >> parents; sleep 0.02").await;
    }
    let mut worker = desk.worker(&["work"], &[("PROBE_SLOTS", "3")]);
    assert!(worker.wait().await.success());
    let parents = desk.lines("parents");
    assert_eq!(parents.len(), 20);
    let distinct: BTreeSet<&String> = parents.iter().collect();
    assert!((1..=3).contains(&distinct.len()), "{parents:?}");
    assert!(distinct.iter().all(|parent| is_dead(parent.parse().unwrap())), "they went with their worker");
}

#[tokio::test]
async fn f43_a_supervisor_that_is_killed_while_it_waits_harms_no_run() {
    let desk = Desk::sqlite().await;
    let (worker, idle) = waiting(&desk).await;
    for supervisor in &idle {
        kill_process(Pid::from_raw(*supervisor).unwrap(), Signal::KILL).unwrap();
    }
    eventually("they are dead", DEADLINE, async || idle.iter().all(|pid| is_dead(*pid))).await;
    for key in ["k3", "k4"] {
        desk.ask("script", key, "true").await;
        eventually("it is done", DEADLINE, async || desk.told("script", key).await.0 == "done").await;
        assert_eq!(desk.told("script", key).await, ("done".to_owned(), 1, String::new()));
    }
    let now = supervisors(worker.id());
    assert!(now.iter().any(|pid| !idle.contains(pid)), "{now:?}");
}

#[tokio::test]
async fn f42_a_worker_that_is_killed_while_its_supervisors_wait_leaves_nobody() {
    let desk = Desk::sqlite().await;
    let (worker, idle) = waiting(&desk).await;
    worker.end(Signal::KILL);
    eventually("they are gone", DEADLINE, async || idle.iter().all(|pid| is_dead(*pid))).await;
}

#[tokio::test]
async fn f42_a_daemon_of_one_command_is_gone_before_the_next_begins() {
    let desk = Desk::sqlite().await;
    assert!(!met_a_daemon(&desk, &[]).await, "{:?}", desk.lines("ticks"));
    desk.nobody_is_left().await;
}

#[tokio::test]
async fn a_supervisor_whose_command_was_called_off_has_no_other() {
    let desk = Desk::sqlite().await;
    desk.ask("hasty", "k", "echo $PPID >> parents; [ $REFRAIN_ATTEMPT -gt 1 ] || sleep 1000").await;
    let mut worker = desk.worker(&["work"], &[("PROBE_SLOTS", "1")]);
    assert!(worker.wait().await.success());
    let parents = desk.lines("parents");
    assert!(parents.len() == 2 && parents[0] != parents[1], "{parents:?}");
}
