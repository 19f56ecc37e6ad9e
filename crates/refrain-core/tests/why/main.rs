//! Every cause as a table: the facts that lead to it, its rule and its text.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test a panic is the failure report")]

mod keys;

use jiff::Timestamp;
use refrain_core::Expectation;
use refrain_core::state::{FailureReason, Open as OpenState, RunNode, RunOutcome, RunStanding};
use refrain_core::why::{
    AbsentFacts, AttemptState, FrozenScopes, JobContext, LaneHolder, Missing, RecordedFacts,
    RepeatedRequests, UnappliedUnit, WhyFacts, WideKeys, why,
};

fn at(time: &str) -> Timestamp {
    format!("2026-06-{time}:00Z").parse().unwrap()
}

/// Noon of the ninth, one worker that holds three runs.
fn context() -> JobContext {
    JobContext {
        now: at("09T12:00"),
        job: "sync".to_owned(),
        version: Some(2),
        paused_at: None,
        workers: 1,
        running: 3,
        last_seen: Some(at("09T11:00")),
        is_simulated: false,
    }
}

/// Done this morning, by its second attempt.
fn done() -> RecordedFacts {
    RecordedFacts {
        run: "sync#42".to_owned(),
        context: context(),
        standing: RunStanding { outcome: Some(RunOutcome::Done), open: None },
        open: None,
        attempt: 2,
        ended_attempt: 2,
        version: Some(2),
        opened_at: at("09T10:00"),
        ended_at: Some(at("09T10:05")),
        message: None,
        reason: None,
        last_message: None,
        taken_over: 0,
        is_suspect: false,
        is_cancel_requested: false,
        is_forgotten: false,
        repeated_requests: None,
        unapplied_units: Vec::new(),
        wide_keys: Vec::new(),
        late_since: None,
    }
}

fn open(open: AttemptState) -> RecordedFacts {
    let standing = RunStanding { outcome: None, open: Some(OpenState::Queued) };
    let last_message = Some("429\nslow down".to_owned());
    RecordedFacts { standing, open: Some(open), version: None, ended_at: None, last_message, ..done() }
}

fn queued() -> RecordedFacts {
    open(AttemptState::Queued { ahead: 7, slots: None })
}

fn ended(outcome: RunOutcome, message: &str) -> RecordedFacts {
    let standing = RunStanding { outcome: Some(outcome), open: None };
    RecordedFacts { standing, message: Some(message.to_owned()), ..done() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Checks that the facts lead to these rules, and the text of the first.
fn is_explained(facts: &WhyFacts, rules: &[&str], text: &str) {
    let causes = why(facts);
    assert_eq!(causes.iter().map(refrain_core::why::Cause::rule).collect::<Vec<_>>(), rules, "{facts:?}");
    assert_eq!(causes[0].to_string(), text);
}

fn recorded(facts: RecordedFacts, rules: &[&str], text: &str) {
    is_explained(&WhyFacts::Recorded(facts.into()), rules, text);
}

fn absent(run: &str, missing: Missing, rule: &str, text: &str) {
    is_explained(
        &WhyFacts::Absent(AbsentFacts { run: run.to_owned(), context: context(), missing }),
        &[rule],
        text,
    );
}

#[test]
fn a_window_without_a_record_is_not_over_not_due_left_out_or_never_opened() {
    let window = |end: &str, tick: Option<&str>| Missing::Window {
        end: at(end),
        expectation: Expectation::Opens { revision: 1, tick: tick.map(at) },
    };
    absent(
        "sync@2026-06-09",
        window("10T00:00", Some("10T02:00")),
        "not-over",
        "sync@2026-06-09 is not over: the window ends at 2026-06-10T00:00:00Z, and it opens at 2026-06-10T02:00:00Z, \
         the first tick at or after its end.\n  wait: if it ran now, it would count as done without the rest of the window",
    );
    absent(
        "sync@2026-06-08",
        window("09T00:00", Some("09T14:00")),
        "not-due",
        "sync@2026-06-08 is not due: the window ended at 2026-06-09T00:00:00Z, and it opens at 2026-06-09T14:00:00Z, \
         the first tick at or after its end.\n  do it now: refrain run sync@2026-06-08",
    );
    absent(
        "sync@2026-06-08/a b",
        window("09T00:00", None),
        "not-due",
        "sync@2026-06-08/a b is not due: the window ended at 2026-06-09T00:00:00Z, and no later tick opens it.\n  do it now: refrain run 'sync@2026-06-08/a b'",
    );
    absent(
        "sync@2026-06-07",
        window("08T00:00", Some("08T02:00")),
        "never-opened",
        "sync@2026-06-07 was due at 2026-06-08T02:00:00Z and was never opened: workers are alive (1), but \
         no scheduler has opened it; the last attempt in this store ended at 2026-06-09T11:00:00Z.\n  \
         refrain serve, or to open all due windows: refrain tick",
    );
    let expectation = Expectation::LeftOut { revision: 3, from: at("01T00:00") };
    absent(
        "sync@2026-05-30",
        Missing::Window { end: at("01T00:00"), expectation },
        "left-out",
        "sync@2026-05-30 is not expected: the windows of revision 3 of the timetable begin at 2026-06-01T00:00:00Z.\n  \
         run it anyway: refrain run sync@2026-05-30; before the job's `start`, write an earlier one first",
    );
}

#[test]
fn an_unknown_name_is_answered_with_similar_ones() {
    absent(
        "sync@2026-06-09T14:30",
        Missing::NoWindow {
            window: "2026-06-09T14:30".to_owned(),
            reason: "no window of this job begins then".to_owned(),
            beside: names(&["sync@2026-06-09T14:00", "sync@2026-06-09T15:00"]),
        },
        "no-such-window",
        "sync has no window `2026-06-09T14:30`: no window of this job begins then.\n  \
         the windows around it: sync@2026-06-09T14:00, sync@2026-06-09T15:00",
    );
    absent(
        "sync@2026-06-08/acne",
        Missing::Scope {
            window: "sync@2026-06-08".to_owned(),
            standing: RunNode::Done,
            frozen: Some(FrozenScopes { scopes: 12, at: Some(at("09T02:00")) }),
            near: names(&["sync@2026-06-08/acme"]),
        },
        "unknown-scope",
        "sync@2026-06-08/acne does not exist: the scopes of sync@2026-06-08 were frozen at 2026-06-09T02:00:00Z, 12 of \
         them, and this is not one of them.\n  did you mean sync@2026-06-08/acme?",
    );
    absent(
        "sync@2026-06-08/acme",
        Missing::Scope {
            window: "sync@2026-06-08".to_owned(),
            standing: RunNode::Failed,
            frozen: None,
            near: Vec::new(),
        },
        "not-expanded",
        "sync@2026-06-08/acme does not exist yet: the run sync@2026-06-08 finds the scopes of its window, and is \
         failed.\n  refrain why sync@2026-06-08",
    );
    let unknown = |near: &[&str]| {
        let context = JobContext { job: "snyc".to_owned(), ..context() };
        WhyFacts::Absent(AbsentFacts {
            run: "snyc#1".to_owned(),
            context,
            missing: Missing::Job { near: names(near) },
        })
    };
    let unknown_job = "There is no job `snyc`: it is known neither to this process nor to the store.\n  ";
    is_explained(&unknown(&["sync"]), &["unknown-job"], &format!("{unknown_job}did you mean sync?"));
    is_explained(&unknown(&[]), &["unknown-job"], &format!("{unknown_job}refrain status"));
}

#[test]
fn an_open_run_is_explained_by_what_it_waits_for() {
    recorded(
        queued(),
        &["queued"],
        "sync#42 is queued behind 7 other runs of its job; live workers: 1, running runs: 3.\n  \
         do it here: refrain run sync#42",
    );
    recorded(
        RecordedFacts { context: JobContext { workers: 0, last_seen: None, ..context() }, ..queued() },
        &["no-worker"],
        "sync#42 is queued, and no worker is alive: nothing has ever run in this store.\n  \
         refrain serve, or for this run: refrain run sync#42",
    );
    recorded(
        RecordedFacts { context: JobContext { paused_at: Some(at("08T09:00")), ..context() }, ..queued() },
        &["paused"],
        "sync#42 is queued, and sync is paused since 2026-06-08T09:00:00Z: none of its runs begins.\n  refrain resume sync",
    );
    recorded(
        open(AttemptState::Queued { ahead: 0, slots: Some((2, names(&["sync#1", "sync#2"]))) }),
        &["slots-taken"],
        "sync#42 is queued: its job has concurrency = 2, and these are running: sync#1, sync#2.\n  \
         it begins when one of them ends",
    );
    let holder = LaneHolder {
        run: "sync@2026-06-08".to_owned(),
        standing: RunNode::Running,
        since: at("09T02:00"),
        worker: Some("worker 7 (4711 on mail-1)".to_owned()),
    };
    recorded(
        open(AttemptState::WaitsForLane { holder: Some(holder) }),
        &["lane-held"],
        "sync#42 waits for sync@2026-06-08, which holds their lane (while-running = \"queue\") and is running by \
         worker 7 (4711 on mail-1) since 2026-06-09T02:00:00Z.\n  refrain why sync@2026-06-08",
    );
    recorded(
        open(AttemptState::Delayed { until: at("09T13:00") }),
        &["backing-off"],
        "sync#42 waits for its retry after \"429 slow down\": attempt 2 begins at 2026-06-09T13:00:00Z at the earliest.\n  \
         do not wait: refrain run sync#42",
    );
}

#[test]
fn a_run_that_a_worker_holds_is_explained_by_that_worker() {
    let running = |alive_until: &str| {
        let (process, since) = ("7f/1/4242/99".to_owned(), at("09T11:30"));
        open(AttemptState::Running { worker: 9, process, since, alive_until: at(alive_until) })
    };
    recorded(
        RecordedFacts { is_cancel_requested: true, taken_over: 2, is_suspect: true, ..running("09T12:01") },
        &["running", "cancel-requested", "taken-over"],
        "sync#42 is running: worker 9 (7f/1/4242/99) runs attempt 2 since 2026-06-09T11:30:00Z, and counts as alive until \
         2026-06-09T12:01:00Z.\n  cancel it: refrain cancel sync#42",
    );
    recorded(
        running("09T11:59"),
        &["worker-silent"],
        "sync#42 is held since 2026-06-09T11:30:00Z by worker 9 (7f/1/4242/99), which has stopped sending heartbeats.\n  \
         a serving worker takes it over soon; without one: refrain tick",
    );
}

#[test]
fn a_run_that_ended_is_explained_by_its_outcome() {
    recorded(
        done(),
        &["done"],
        "sync#42 is done, by attempt 2 at 2026-06-09T10:05:00Z under version 2.\n  \
         run it again anyway: refrain run sync#42 --again",
    );
    recorded(
        ended(RunOutcome::Failed, "no such table: orders"),
        &["failed"],
        "sync#42 failed for good with attempt 2 at 2026-06-09T10:05:00Z: \"no such table: orders\".\n  refrain retry sync#42",
    );
    recorded(
        ended(RunOutcome::Skipped, "missed; with catch-up = \"latest\" only the window from X runs"),
        &["skipped"],
        "sync#42 was skipped at 2026-06-09T10:05:00Z: missed; with catch-up = \"latest\" only the window from X runs.\n  \
         run it anyway: refrain run sync#42",
    );
    recorded(
        ended(RunOutcome::Cancelled, "cancelled before it began"),
        &["cancelled"],
        "sync#42 was cancelled at 2026-06-09T10:05:00Z by an operator.\n  refrain retry sync#42",
    );
    recorded(
        ended(RunOutcome::Waiting, ""),
        &["waits-for-effects"],
        "sync#42 is complete with attempt 2, and waits for its effects.\n  its details: refrain show sync#42",
    );
    let left = |key: &str, is_parked| UnappliedUnit { key: key.to_owned(), is_parked, is_in_doubt: false };
    let doubtful = UnappliedUnit { is_in_doubt: true, ..left("invoice:9", true) };
    recorded(
        RecordedFacts {
            unapplied_units: vec![left("invoice:2", true), doubtful],
            ..ended(RunOutcome::Partial, "2 of 9 units are not applied")
        },
        &["partial"],
        "sync#42 is partial, and waits for an operator: \"2 of 9 units are not applied\"; in doubt: invoice:9; parked: invoice:2.\n  \
         if it was done: refrain retry sync#42 --unit invoice:9 --done; to send it again: refrain retry sync#42 --unit invoice:9; \
         what is known of it: refrain trace invoice:9",
    );
    let doubtful = UnappliedUnit { is_in_doubt: true, ..left("invoice:9", true) };
    recorded(
        RecordedFacts { unapplied_units: vec![doubtful], ..ended(RunOutcome::Failed, "no table") },
        &["failed"],
        "sync#42 failed for good with attempt 2 at 2026-06-09T10:05:00Z: \"no table\"; in doubt: invoice:9.\n  \
         if it was done: refrain retry sync#42 --unit invoice:9 --done; to send it again: refrain retry sync#42 --unit invoice:9; \
         what is known of it: refrain trace invoice:9",
    );
    recorded(
        RecordedFacts {
            reason: Some(FailureReason::Held),
            ..ended(RunOutcome::Failed, "it was interrupted")
        },
        &["held"],
        "sync#42 waits for an operator: its command was interrupted in attempt 2 at 2026-06-09T10:05:00Z: \"it was interrupted\".\n  \
         if it was done: refrain retry sync#42 --done; to execute it again: refrain retry sync#42",
    );
    let unapplied_units = vec![left("invoice:2", true), left("invoice:3", false)];
    recorded(
        RecordedFacts { unapplied_units, ..ended(RunOutcome::Partial, "2 of 9 units are not applied") },
        &["partial"],
        "sync#42 is partial: \"2 of 9 units are not applied\"; parked: invoice:2; failed: invoice:3.\n  \
         refrain retry sync#42 --unit invoice:2",
    );
}

#[test]
fn additional_information_follows_the_answer() {
    let suspect = WideKeys { reason: "first-wins".to_owned(), count: 4, keys: names(&["day:1"]) };
    let asked =
        RepeatedRequests { times: 3, is_more: false, last: at("09T11:00"), way: "enqueue".to_owned() };
    let facts = RecordedFacts {
        context: JobContext { version: Some(3), is_simulated: true, ..context() },
        taken_over: 1,
        is_forgotten: true,
        repeated_requests: Some(asked),
        wide_keys: vec![suspect],
        late_since: Some(at("09T02:30")),
        ..done()
    };
    let causes = why(&WhyFacts::Recorded(facts.into()));
    let text: Vec<String> = causes.iter().skip(1).map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "sync#42 is outdated: it is done under version 2, and its job has version 3.\n  refrain run sync#42 --again",
            "sync#42 was taken over once from workers that died.\n  refrain show sync#42",
            "sync#42 is late: with the grace of its job it was due to be done by 2026-06-09T02:30:00Z.",
            "sync#42 has been requested again 3 times and deduplicated, last at 2026-06-09T11:00:00Z by enqueue.\n  refrain show sync#42",
            "The payload of sync#42 is no longer kept, so it is not attempted again.\n  enqueue it under a new key",
            "The key of units of sync#42 may be too wide (first-wins, 4 times): other content arrived under \
             applied keys, and on-change = \"first\" discarded it; day:1.\n  refrain trace day:1",
            "The store is simulated: its schedules use a clock that was set, and no worker serves it.\n  refrain tick --now TIME",
        ]
    );
    let older = RecordedFacts { context: JobContext { version: Some(1), ..context() }, ..done() };
    let [_, too_old] = &why(&WhyFacts::Recorded(older.into()))[..] else { unreachable!() };
    assert_eq!(
        too_old.to_string(),
        "This process is too old for sync#42: it was done under version 2, and the job here has version 1.\n  \
         update it: rows written by a newer version are not overwritten"
    );
    let elsewhere = RecordedFacts { context: JobContext { version: None, ..context() }, ..queued() };
    let causes = why(&WhyFacts::Recorded(elsewhere.into()));
    assert_eq!(causes.iter().map(refrain_core::why::Cause::rule).collect::<Vec<_>>(), ["queued", "not-here"]);
}

#[test]
fn a_done_run_with_another_attempt_is_open_first_and_still_done() {
    let standing = RunStanding { outcome: Some(RunOutcome::Done), open: Some(OpenState::Queued) };
    let causes = why(&WhyFacts::Recorded(RecordedFacts { standing, version: Some(2), ..queued() }.into()));
    assert_eq!(causes.iter().map(refrain_core::why::Cause::rule).collect::<Vec<_>>(), ["queued", "done"]);
}
