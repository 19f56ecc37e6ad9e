//! A probe is killed before and after every commit, or loses every reply to a commit; then the same program runs
//! again.
//!
//! The commits are read from the sources: a commit without a test here is a failure.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::Pin;

use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::world::{World, numbered, written_once};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

/// How many stories run at once: each of them waits for its processes, most of the time.
const AT_ONCE: usize = 4;

const AT_A_UNIT: &str = "unit-apply.before-commit=return(kill)";

/// How a probe reaches a commit.
struct Story {
    place: String,
    /// Failpoints of earlier probes, which die.
    before: &'static [&'static str],
    /// Failpoints that lead there.
    way: &'static str,
}

/// The names of all commits.
fn places() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
    assert!(names.len() > 20, "only {} commits were found", names.len());
    names
}

fn read(directory: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, names);
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            let found = text.split("place!(\"").skip(1).filter_map(|rest| rest.split('"').next());
            names.extend(found.map(str::to_owned));
        }
    }
}

/// A story for each commit of a normal day. Left out are those that have a story of their own, in `tests/feed`
/// (`audit`, `confirm`, `page-apply`, `set-checkpoint`, `unit-clear`, `unit-doubt`, `unit-late`, `unit-reserve`,
/// `unit-restore`), in `tests/project` (`adopt`, `doubt`, `remember`, `settle`, `state`), in `tests/publish`
/// (`publish`), in `tests/files` (`files`), in `effects` (`answer`, `decide-effect`, `effect-dedupe`, `give-up`,
/// `reserve`) and below (`alarm`, `beat`, `enqueue-alone`, `finish-alone`, `simulate`),
/// and the weakened forms.
fn stories() -> Vec<Story> {
    let own = [
        "adopt",
        "set-checkpoint",
        "alarm",
        "answer",
        "audit",
        "beat",
        "confirm",
        "decide-effect",
        "doubt",
        "effect-dedupe",
        "enqueue-alone",
        "files",
        "finish-alone",
        "give-up",
        "page-apply",
        "publish",
        "remember",
        "reserve",
        "settle",
        "simulate",
        "state",
        "tick-weakened",
        "unit-clear",
        "unit-doubt",
        "unit-late",
        "unit-reserve",
        "unit-restore",
        "unit-weakened",
    ];
    let places = places().into_iter().filter(|place| !own.contains(&place.as_str()));
    places.map(|place| story(&place)).collect()
}

fn story(place: &str) -> Story {
    let (before, way): (&[&str], &str) = match place {
        "attach" | "begun" | "cancel" | "checkpoint" | "claim" | "claims" | "dedupe" | "enqueue"
        | "expand" | "fence-raise" | "finish" | "found" | "ledger-open" | "line-up" | "migrate"
        | "migrate-ledger" | "open" | "output" | "pause" | "prune" | "pull" | "register"
        | "register-worker" | "relay-copy" | "relay-forget" | "reopen" | "retire" | "schedule"
        | "set-place" | "tick" | "unit-apply" | "unit-fail" | "unpark" | "wake" => (&[], ""),
        // If its answer was lost, the members of a batch are tried one by one, and the remaining lease is removed
        // separately.
        "finish-leases" => (&[], "finish.reply=1*return(lost);"),
        "take-over" => (&["claim.after-commit=return(kill)"], ""),
        // A unit is on trial when a worker has died at it, and guilty when a second one has.
        "unit-blame" => (&[AT_A_UNIT], ""),
        "unit-convict" => (&[AT_A_UNIT, AT_A_UNIT], ""),
        unknown => panic!("the commit {unknown:?} has no story: say how a probe gets there"),
    };
    Story { place: place.to_owned(), before, way }
}

/// All runs of a day that must be done in the end.
async fn expected(world: &World) -> BTreeSet<String> {
    let mut expected: BTreeSet<String> = numbered("noop#n", 6).collect();
    expected.extend(numbered("flaky#f", 2).chain(numbered("limited#l", 4)));
    expected.extend(
        ["again#a0", "flaky#pulled", "held#h0", "noop#intended0", "script#c0", "sync#s0"].map(str::to_owned),
    );
    // Windows of hourly jobs; another one may end during the test.
    let windows = world.runs().await.into_iter().map(|run| run.run);
    let windows: BTreeSet<String> = windows
        .filter(|run| ["hourly#", "scoped#", "uneven#"].iter().any(|job| run.starts_with(job)))
        .collect();
    assert!(windows.len() >= 3 + 3 * 3 + 3, "{windows:?}");
    expected.extend(windows);
    expected
}

async fn finish_and_judge(world: World, place: &str) {
    let start = world.start();
    world.done(&["day"], &[("PROBE_START", start)]).await;
    let cancelled = world.runs().await.into_iter().find(|run| run.run == "cancelled#c0").unwrap();
    assert_eq!((cancelled.outcome.as_str(), cancelled.is_open), ("cancelled", false), "{place}");
    assert_eq!(world.invoices().await, written_once(), "{place}");
    let faults = world.verdict(&expected(&world).await).await;
    assert!(
        faults.is_empty(),
        "{place}: {} faults\n{}\n{}",
        faults.len(),
        faults.join("\n"),
        world.effects_text()
    );
    // Dropping a database takes a moment, during which the other stories continue.
    tokio::task::spawn_blocking(move || drop(world)).await.unwrap();
}

type Tale = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs the story of each commit, several at a time. Each world is made when its turn has come: on a server it reuses
/// the database of an earlier story.
async fn all(database: &TestDatabase, tell: fn(World, Story) -> Tale) {
    let mut printed = JoinSet::new();
    for story in stories() {
        if printed.len() >= AT_ONCE {
            printed.join_next().await.unwrap().unwrap();
        }
        printed.spawn(tell(World::like(database).await, story));
    }
    printed.join_all().await;
}

/// A lease that does not expire while its worker waits for its turn on a busy machine.
const LEASE: (&str, &str) = ("PROBE_LEASE", "60000");

/// Expires the lease of a killed worker; it may have been killed before it was registered.
async fn expire(world: &World) {
    let _ = world.execute("update refrain_workers set expires_at = 1").await;
}

async fn go_before(world: &World, story: &Story) {
    for failpoints in story.before {
        let variables = [("PROBE_START", world.start()), ("FAILPOINTS", failpoints), LEASE];
        let status = world.probe(&["day"], &variables).wait().await;
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{}", story.place);
        expire(world).await;
    }
}

async fn killed(world: World, story: Story, when: &'static str) {
    go_before(&world, &story).await;
    let place = format!("{}.{when}", story.place);
    let failpoints = format!("{}{place}=return(kill)", story.way);
    let variables = [("PROBE_START", world.start()), ("FAILPOINTS", &failpoints), LEASE];
    let mut victim = world.probe(&["day"], &variables);
    let output = victim.finish().await;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(Signal::KILL.as_raw()), "{place} was not reached: {message}");
    assert_eq!(world.struck().last(), Some(&place));
    expire(&world).await;
    finish_and_judge(world, &place).await;
}

async fn lost(world: World, story: Story) {
    go_before(&world, &story).await;
    let place = format!("{}.reply", story.place);
    let once = format!("{place}=1*return(lost)");
    let failpoints = if story.way.starts_with(&once) { once } else { format!("{}{once}", story.way) };
    let variables = [("PROBE_START", world.start()), ("FAILPOINTS", &failpoints), LEASE];
    world.done(&["day"], &variables).await;
    assert!(world.struck().contains(&place), "{place} was not lost");
    finish_and_judge(world, &place).await;
}

/// One of several runs that end together was taken over meanwhile: the others are ended separately, and the probe is
/// killed there.
async fn killed_when_ending_alone(world: World, when: &str) {
    let place = format!("finish-alone.{when}");
    let failpoints = format!("{place}=return(kill)");
    world.done(&["enqueue", "slow", "s", "6"], &[]).await;
    let mut victim = world.probe(&["serve"], &[("PROBE_LEASE", "60000"), ("FAILPOINTS", &failpoints)]);
    for _ in 0..6 {
        victim.wait_for_line("begun slow#s").await;
    }
    world.take_over("s1", 2).await;
    // While the ending of the first run cannot be written, those of the others are collected. A run reports that it
    // ended before its ending is handed over: the handover is done when no thread is busy any more.
    let hold = world.hold().await;
    for run in 0..6 {
        world.touch(&format!("gate-s{run}"));
        victim.wait_for_line(&format!("ended slow#s{run}")).await;
        if run == 0 {
            eventually("the first ending waits to be written", DEADLINE, async || victim.is_idle()).await;
        }
    }
    eventually("every ending was handed on", DEADLINE, async || victim.is_idle()).await;
    hold.release().await;
    assert_eq!(victim.wait().await.signal(), Some(Signal::KILL.as_raw()), "{}", world.effects_text());
    assert_eq!(world.struck(), [place]);
    // Its lease is long, so that nothing else is lost on a slow machine; the test expires it now.
    world.execute("update refrain_workers set expires_at = 1").await.unwrap();
    world.done(&["work"], &[]).await;
    world.assert_settled(numbered("slow#s", 6)).await;
}

/// A worker renews its lease while a run executes, which lasts until the kill.
async fn struck_at_a_beat(world: World, ending: &str) {
    world.done(&["enqueue", "slow", "s", "1"], &[]).await;
    let failpoints = format!("beat.{ending}");
    let mut victim = world.probe(&["serve"], &[("PROBE_LEASE", "10000"), ("FAILPOINTS", &failpoints)]);
    eventually("a beat was struck", DEADLINE, async || world.struck().len() == 1).await;
    world.touch("gate-s0");
    world.touch("drain");
    let is_killed = victim.wait().await.signal() == Some(Signal::KILL.as_raw());
    assert_eq!(is_killed, ending.contains("kill"), "{ending}");
    expire(&world).await;
    world.done(&["work"], &[]).await;
    world.assert_settled(numbered("slow#s", 1)).await;
}

#[both_databases]
async fn f1_a_run_killed_at_a_heartbeat_with_a_lost_reply_is_done_once(database: TestDatabase) {
    for ending in ["before-commit=return(kill)", "after-commit=return(kill)", "reply=1*return(lost)"] {
        struck_at_a_beat(World::like(&database).await, ending).await;
    }
}

#[both_databases]
async fn f1_killed_while_the_rest_of_a_batch_is_ended_separately(database: TestDatabase) {
    killed_when_ending_alone(World::like(&database).await, "before-commit").await;
    killed_when_ending_alone(World::of(database), "after-commit").await;
}

#[both_databases]
async fn f1_killed_before_any_commit_every_run_is_done_once(database: TestDatabase) {
    all(&database, |world, story| Box::pin(killed(world, story, "before-commit"))).await;
}

#[both_databases]
async fn f2_killed_after_any_commit_every_run_is_done_once(database: TestDatabase) {
    all(&database, |world, story| Box::pin(killed(world, story, "after-commit"))).await;
}

#[both_databases]
async fn f4_with_the_reply_to_any_commit_lost_every_run_is_done_once(database: TestDatabase) {
    all(&database, |world, story| Box::pin(lost(world, story))).await;
}

#[both_databases]
async fn f4_an_end_reported_twice_is_recorded_once(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "flaky", "f", "1"], &[]).await;
    world.done(&["work"], &[("FAILPOINTS", "finish.reply=1*return(lost)")]).await;
    assert_eq!(world.struck(), ["finish.reply"]);
    assert_eq!(world.history().await, ["flaky#f0 1 errored"]);
    world.assert_settled(numbered("flaky#f", 1)).await;
}

#[both_databases]
async fn f4_a_command_marked_as_begun_twice_begins_once(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["run", "held#h0"], &[("FAILPOINTS", "begun.reply=1*return(lost)")]).await;
    assert_eq!(world.struck(), ["begun.reply"]);
    assert_eq!(world.history().await, Vec::<String>::new());
    world.assert_settled(numbered("held#h", 1)).await;
}

#[both_databases]
async fn f2_a_store_stays_simulated_after_a_kill(database: TestDatabase) {
    let open = ["enqueue", "noop", "n", "0"];
    for ending in ["before-commit=return(kill)", "after-commit=return(kill)", "reply=1*return(lost)"] {
        let world = World::like(&database).await;
        world.done(&open, &[]).await;
        let failpoints = format!("simulate.{ending}");
        let variables = [("PROBE_SIMULATED", "yes"), ("FAILPOINTS", failpoints.as_str())];
        world.probe(&open, &variables).wait().await;
        assert_eq!(world.struck().len(), 1, "{ending}");
        world.done(&open, &[("PROBE_SIMULATED", "yes")]).await;
    }
}

#[both_databases]
async fn f2_an_alarm_is_raised_once_despite_a_kill(database: TestDatabase) {
    for ending in ["before-commit=return(kill)", "after-commit=return(kill)", "reply=1*return(lost)"] {
        let world = World::like(&database).await;
        for _ in 0..2 {
            world.done(&["enqueue", "noop", "n", "30"], &[]).await;
        }
        let ago = "update refrain_dedupes set at = at - 600000000";
        world.execute(ago).await.unwrap();
        let look = ["tick", "2026-06-09T00:00:00Z"];
        let failpoints = format!("alarm.{ending}");
        world.probe(&look, &[("FAILPOINTS", &failpoints)]).wait().await;
        assert_eq!(world.struck().len(), 1, "{ending}");
        for _ in 0..2 {
            world.done(&look, &[]).await;
        }
        assert_eq!(world.texts("select subject from refrain_alarms").await, ["noop"], "{ending}");
        world.assert_settled(numbered("noop#n", 30)).await;
    }
}

/// On PostgreSQL only: there one run is opened and queued by one statement, which is its own transaction.
#[tokio::test]
async fn f4_a_run_is_offered_once_despite_a_lost_message() {
    let offer = ["enqueue", "noop", "n", "1"];
    for (ending, dedupes) in
        [("before-commit=return(kill)", 0), ("after-commit=return(kill)", 1), ("reply=1*return(lost)", 1)]
    {
        let world = World::of(TestDatabase::postgres().await);
        let failpoints = format!("enqueue-alone.{ending}");
        world.probe(&offer, &[("FAILPOINTS", failpoints.as_str())]).wait().await;
        assert_eq!(world.struck().len(), 1, "{ending}");
        world.done(&offer, &[]).await;
        assert_eq!(world.dedupes().await, dedupes, "{ending}: only who asked again counts");
        world.done(&["work"], &[]).await;
        world.assert_settled(numbered("noop#n", 1)).await;
    }
}
