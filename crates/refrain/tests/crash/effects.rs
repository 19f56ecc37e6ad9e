//! Effects: killed at each step, answers lost, callers that race, senders that come back late.
//!
//! What counts is the file `sent`: a line for each message that has left the machine.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::weakened::weak;
use crate::world::World;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};

/// Leases that no test waits for.
const LONG: (&str, &str) = ("PROBE_LEASE", "3600000");
const KEY: &str = "mail:7";
/// A command that sends a message.
const SCRIPT: &str = r#"echo "$REFRAIN_EFFECT_KEY@$REFRAIN_EFFECT_VERSION $REFRAIN_IDEMPOTENCY_KEY" >> sent"#;

/// Who sends: a program, or a command of `once`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Performer {
    Program,
    Command,
}

impl Performer {
    /// Asks for the effect.
    fn asks(self, world: &World, variables: &[(&str, &str)]) -> ChildProcess {
        let variables = [&[LONG], variables].concat();
        match self {
            Performer::Program => world.probe(&["perform", KEY, "1"], &variables),
            Performer::Command => world.probe(&["once", KEY, "1", SCRIPT], &variables),
        }
    }
}

fn sent(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("sent")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

async fn state(world: &World) -> String {
    world.texts("select state from refrain_effects where key = 'mail:7' and version = 1").await.join(",")
}

/// The effect is as expected, and the store is sound.
async fn is_settled(world: &World, cell: &str, expected: (usize, &str)) {
    let sent = sent(world);
    assert_eq!((sent.len(), state(world).await.as_str()), expected, "{cell}: {sent:?}");
    let same = sent.first().is_none_or(|first| sent.iter().all(|line| line == first));
    assert!(same, "{cell}: each send has the same key and idempotency key: {sent:?}");
    assert_eq!(world.verdict(&[].into()).await, [""; 0], "{cell}");
}

/// A place at which the first caller dies, and what the receiver has got by then.
const PLACES: [(&str, usize); 6] = [
    ("reserve.before-commit", 0),
    ("reserve.after-commit", 0),
    ("reserved", 0),
    ("ended", 1),
    ("answer.before-commit", 1),
    ("answer.after-commit", 1),
];

/// What is known after the death at a place and two more calls: the number of messages, and the state.
fn expected(place: &str, sent: usize, policy: &str) -> (usize, &'static str) {
    match (place, policy) {
        ("reserve.before-commit" | "answer.after-commit", _) => (1, "confirmed"),
        (_, "hold") => (sent, "in-doubt"),
        (_, "at-most-once") => (sent, "abandoned"),
        _ => (sent + 1, "confirmed"),
    }
}

async fn cell(world: World, performer: Performer, policy: &'static str, (place, by_then): (&str, usize)) {
    let own = if performer == Performer::Program { "perform" } else { "once" };
    let place = if place.contains('.') { place.to_owned() } else { format!("{own}.{place}") };
    let cell = format!("{performer:?}, {policy}, killed at {place}");
    let policy_of = ("PROBE_POLICY", policy);
    let kill = format!("{place}=return(kill)");
    let status = performer.asks(&world, &[policy_of, ("FAILPOINTS", &kill)]).wait().await;
    assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{cell}");
    assert_eq!(sent(&world).len(), by_then, "{cell}");
    for _ in 0..2 {
        assert!(performer.asks(&world, &[policy_of]).finish().await.status.success(), "{cell}");
    }
    let place = place.strip_prefix(&format!("{own}.")).unwrap_or(&place);
    is_settled(&world, &cell, expected(place, by_then, policy)).await;
    // Dropping a database takes a moment, in which the other stories go on.
    tokio::task::spawn_blocking(move || drop(world)).await.unwrap();
}

/// Killed before the reservation, after it, after the send, before and after the record: under each policy.
async fn killed_at_each_step(database: &TestDatabase, performer: Performer) {
    let mut cells = JoinSet::new();
    for policy in ["hold", "at-least-once", "at-most-once", "provider-key"] {
        for place in PLACES {
            if cells.len() >= 4 {
                cells.join_next().await.unwrap().unwrap();
            }
            cells.spawn(cell(World::like(database).await, performer, policy, place));
        }
    }
    cells.join_all().await;
}

#[both_databases]
async fn f6_f7_a_program_killed_at_any_step_sends_twice_only_under_a_policy_that_says_so(
    database: TestDatabase,
) {
    killed_at_each_step(&database, Performer::Program).await;
}

#[both_databases]
async fn f6_f7_a_command_killed_at_any_step_is_executed_twice_only_under_a_policy_that_says_so(
    database: TestDatabase,
) {
    killed_at_each_step(&database, Performer::Command).await;
}

#[both_databases]
async fn f4_a_lost_answer_of_the_store_sends_nothing_twice_and_leaves_no_doubt(database: TestDatabase) {
    for performer in [Performer::Program, Performer::Command] {
        for place in ["reserve", "answer", "effect-dedupe"] {
            let world = World::like(&database).await;
            let lost = format!("{place}.reply=1*return(lost)");
            for _ in 0..2 {
                let output = performer.asks(&world, &[("FAILPOINTS", &lost)]).finish().await;
                assert!(output.status.success(), "{performer:?}, {place}: {output:?}");
            }
            assert!(!world.struck().is_empty(), "{place} was not reached");
            is_settled(&world, place, (1, "confirmed")).await;
        }
    }
}

#[both_databases]
async fn f2_a_policy_that_gives_up_survives_a_kill_and_a_lost_answer(database: TestDatabase) {
    for fault in ["before-commit=return(kill)", "after-commit=return(kill)", "reply=1*return(lost)"] {
        let world = World::like(&database).await;
        Performer::Program.asks(&world, &[("FAILPOINTS", "perform.reserved=return(kill)")]).wait().await;
        let (policy, fault) = (("PROBE_POLICY", "at-most-once"), format!("give-up.{fault}"));
        Performer::Program.asks(&world, &[policy, ("FAILPOINTS", &fault)]).wait().await;
        assert_eq!(world.struck().len(), 2, "{fault}");
        Performer::Program.asks(&world, &[policy]).wait().await;
        is_settled(&world, &fault, (0, "abandoned")).await;
    }
}

#[both_databases]
async fn f2_a_decision_about_an_effect_is_recorded_once_with_its_audit(database: TestDatabase) {
    for fault in ["before-commit=return(kill)", "after-commit=return(kill)", "reply=1*return(lost)"] {
        let world = World::like(&database).await;
        Performer::Program.asks(&world, &[("FAILPOINTS", "perform.ended=return(kill)")]).wait().await;
        Performer::Program.asks(&world, &[]).wait().await;
        let fault = format!("decide-effect.{fault}");
        world.probe(&["decide", "confirm", KEY], &[("FAILPOINTS", &fault)]).wait().await;
        assert_eq!(world.struck().len(), 2, "{fault}");
        // The operator types it again; it may be done already.
        world.probe(&["decide", "confirm", KEY], &[]).wait().await;
        assert_eq!(world.texts("select verb from refrain_audit").await, ["migrate", "confirm"], "{fault}");
        is_settled(&world, &fault, (1, "confirmed")).await;
    }
}

#[both_databases]
async fn f7_fifty_callers_race_for_a_key_and_some_are_killed(database: TestDatabase) {
    let world = World::of(database);
    let script = format!("{SCRIPT}; while [ ! -e go ]; do sleep 0.02; done");
    let call = || world.probe(&["once", KEY, "1", &script], &[LONG]);
    let mut first = call();
    eventually("the first one has sent", DEADLINE, async || sent(&world).len() == 1).await;
    let mut callers: Vec<ChildProcess> = (0..49).map(|_| call()).collect();
    // A caller that waits is killed as often as the one that executes the command.
    for caller in callers.iter().step_by(7) {
        caller.signal(Signal::KILL);
    }
    first.signal(Signal::KILL);
    first.wait().await;
    for caller in &mut callers {
        caller.wait().await;
    }
    is_settled(&world, "killed while it was sending", (1, "in-doubt")).await;

    world.touch("go");
    world.execute("update refrain_effects set changed_at = changed_at - 61000000").await.unwrap();
    world.done(&["decide", "resend", KEY], &[]).await;
    let mut callers: Vec<ChildProcess> = (0..20).map(|_| call()).collect();
    for caller in &mut callers {
        caller.wait().await;
    }
    is_settled(&world, "sent again by decision of the operator", (2, "confirmed")).await;
}

#[both_databases]
async fn a_caller_that_has_waited_longer_than_its_lease_executes_its_command(database: TestDatabase) {
    let world = World::of(database);
    let freed = format!("{SCRIPT}; while [ ! -e go ]; do sleep 0.02; done; exit 75");
    let mut first = world.probe(&["once", KEY, "1", &freed], &[LONG]);
    eventually("the first one has begun", DEADLINE, async || sent(&world).len() == 1).await;
    let stop = [("PROBE_LEASE", "2000"), ("FAILPOINTS", "reserve.decided=1*return(stop)")];
    let mut second = world.probe(&["once", KEY, "1", SCRIPT], &stop);
    eventually("the second one has asked", DEADLINE, async || world.struck().len() == 1).await;
    second.signal(Signal::CONT);
    let asked = world.texts("select cast((select now from refrain_clock) as text)").await.concat();
    let over = format!("select 'over' where (select now from refrain_clock) > {asked} + 2000000");
    let is_over = async || world.texts(&over).await == ["over"];
    eventually("a lease that began with its question is over", DEADLINE, is_over).await;
    world.touch("go");
    first.wait().await;
    let output = second.finish().await;
    assert!(String::from_utf8_lossy(&output.stdout).contains("Confirmed"), "{output:?}");
    is_settled(&world, "the second one was executed", (2, "confirmed")).await;
}

#[both_databases]
async fn f7_a_killed_supervisor_leaves_its_command_in_doubt(database: TestDatabase) {
    let world = World::of(database);
    let script = format!("echo $PPID > supervisor.part; mv supervisor.part supervisor; {SCRIPT}; sleep 600");
    let mut caller = world.probe(&["once", KEY, "1", &script], &[LONG]);
    eventually("the command has sent", DEADLINE, async || sent(&world).len() == 1).await;
    let supervisor = std::fs::read_to_string(world.path("supervisor")).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    let reported = caller.wait_for_line("once: ").await;
    assert!(reported.contains("InDoubt"), "{reported}");
    caller.wait().await;
    is_settled(&world, "its supervisor was killed", (1, "in-doubt")).await;
}

/// A sender is taken over while its message is on its way; then its answer arrives.
async fn answered_late(world: &World, answer: &str) -> String {
    let variables = [LONG, ("PROBE_GATED", "1"), ("PROBE_ANSWER", answer)];
    let variables = if answer.is_empty() { &variables[..2] } else { &variables[..] };
    let mut sender = world.probe(&["perform", KEY, "1"], variables);
    sender.wait_for_line("sent").await;
    // It is on another machine, and silent for too long.
    let silent = "update refrain_workers set expires_at = 0, process = 'elsewhere/1/1/1'";
    world.execute(silent).await.unwrap();
    world.done(&["perform", KEY, "1"], &[("PROBE_LEASE", "400")]).await;
    assert_eq!(state(world).await, "in-doubt", "its sender is taken over");
    world.touch(&format!("gate-{KEY}"));
    sender.wait().await;
    state(world).await
}

#[both_databases]
async fn f12_a_late_answer_may_confirm_an_effect_and_never_refuse_it(database: TestDatabase) {
    for (answer, expected) in
        [("", "confirmed"), ("refused", "in-doubt"), ("not-sent", "in-doubt"), ("lost", "in-doubt")]
    {
        let world = World::like(&database).await;
        assert_eq!(answered_late(&world, answer).await, expected, "{answer}");
        is_settled(&world, answer, (1, expected)).await;
    }
}

#[both_databases]
async fn f12_without_the_number_of_the_send_a_late_refusal_erases_a_doubt(database: TestDatabase) {
    let world = World::of(database);
    let weakened = weak(&[("sql/effect/answer.sql", "answer-of-anyone.sql")]);
    let variables =
        [LONG, ("PROBE_GATED", "1"), ("PROBE_ANSWER", "refused"), ("REFRAIN_WEAKENED", &weakened)];
    let mut sender = world.probe(&["perform", KEY, "1"], &variables);
    sender.wait_for_line("sent").await;
    world.execute("update refrain_workers set expires_at = 0, process = 'elsewhere/1/1/1'").await.unwrap();
    world.done(&["perform", KEY, "1"], &[("PROBE_LEASE", "400")]).await;
    world.touch(&format!("gate-{KEY}"));
    sender.wait().await;
    assert_eq!(state(&world).await, "refused", "the guard is gone, and the doubt with it");
}

/// Version 1 has been admitted and is not reserved yet when version 2 is requested. Gives the versions that were sent, in order.
async fn two_versions_at_once(world: &World, weakened: &str) -> Vec<String> {
    let stop = format!("reserve.decided=1*return(stop);{weakened}");
    let mut first = world.probe(&["perform", KEY, "1"], &[LONG, ("FAILPOINTS", &stop)]);
    eventually("version 1 is admitted", DEADLINE, async || world.struck().len() == 1).await;
    let mut second = world.probe(&["perform", KEY, "2"], &[LONG, ("FAILPOINTS", weakened)]);
    if !weakened.is_empty() {
        second.wait().await;
    } else if !world.is_sqlite() {
        let is_waiting = async || world.is_waiting("select cast(pg_advisory_xact_lock").await;
        eventually("version 2 waits", DEADLINE, is_waiting).await;
    }
    first.signal(Signal::CONT);
    first.wait().await;
    second.wait().await;
    sent(world).iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[both_databases]
async fn f33_two_versions_of_a_fact_are_sent_one_after_the_other(database: TestDatabase) {
    let world = World::of(database);
    assert_eq!(two_versions_at_once(&world, "").await, ["mail:7@1", "mail:7@2"]);
    assert_eq!(world.verdict(&[].into()).await, [""; 0]);
}

#[tokio::test]
async fn f33_without_the_lock_on_the_fact_a_lower_version_is_sent_after_a_higher_one() {
    let world = World::of(TestDatabase::postgres().await);
    let sent = two_versions_at_once(&world, "reserve.unguarded=return(weak)").await;
    assert_eq!(sent, ["mail:7@2", "mail:7@1"]);
}

/// Version 1 is being sent when version 2 is requested, by a caller that does not look. Gives the versions that were sent.
async fn requested_without_a_look(world: &World) -> usize {
    let mut first = world.probe(&["perform", KEY, "1"], &[LONG, ("PROBE_GATED", "1")]);
    first.wait_for_line("sent").await;
    let blind = weak(&[("sql/effect/fact.sql", "fact-of-one.sql")]);
    let blind = [LONG, ("REFRAIN_WEAKENED", blind.as_str())];
    let mut second = world.probe(&["perform", KEY, "2"], &blind);
    second.wait().await;
    let sent = sent(world).len();
    world.touch(&format!("gate-{KEY}"));
    first.wait().await;
    sent
}

#[both_databases]
async fn f33_an_index_allows_one_sender_for_a_fact(database: TestDatabase) {
    let world = World::like(&database).await;
    assert_eq!(requested_without_a_look(&world).await, 1, "the index refuses the second one");
    let world = World::of(database);
    world.done(&["enqueue", "noop", "n", "1"], &[]).await;
    world.execute("drop index refrain_effects_one_sender").await.unwrap();
    assert_eq!(requested_without_a_look(&world).await, 2, "without the index both are sent");
}

#[tokio::test]
async fn f7_a_program_that_stopped_sending_is_not_killed_by_others() {
    let world = World::of(TestDatabase::sqlite().await);
    let mut program = world.probe(&["perform", KEY, "1"], &[("PROBE_GATED", "1"), ("PROBE_LEASE", "400")]);
    program.wait_for_line("sent").await;
    program.signal(Signal::STOP);
    // Another process takes over from it, and leaves it alone: it is a user's program.
    let other = world.done(&["perform", KEY, "1"], &[("PROBE_LEASE", "400")]).await;
    assert!(other.contains("is in doubt"), "{other}");
    assert!(!program.has_ended());
    program.signal(Signal::CONT);
    program.wait_for_line("the lease of its worker expired").await;
    assert!(program.wait().await.success());
    is_settled(&world, "it stopped waiting for an answer", (1, "in-doubt")).await;
}
