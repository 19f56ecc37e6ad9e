//! The same history ends in the same state on both databases.
//!
//! A history is drawn from a seed: enqueues, ticks, runs, cancellations, pauses; the key and the number of an attempt
//! decide how it ends. Any difference between the databases (an order, a lost row, a flag that is not a boolean) is
//! reported with the seed of its history.
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is the failure report")]

use std::fmt::Write as _;
use std::time::Duration;

use refrain::admin::QueuePosition;
use refrain::core::{Random, SeededRandom, Word};
use refrain::{Ask, CatchUp, Definition, JobError, Refrain, Run, WhileRunning};
use refrain_harness::TestDatabase;
use refrain_harness::history::replay;
use refrain_harness::work::{daily, job, june, open, short};

const STEPS: usize = 30;

fn seeds() -> u64 {
    if std::env::var_os("REFRAIN_FULL").is_some() { 400 } else { 24 }
}

/// Decided by key and attempt alone. Delays are so long that no attempt begins by itself.
fn attempted(run: &Run) -> Result<(), JobError> {
    let bytes =
        run.key().bytes().fold(run.attempt(), |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    match bytes % 5 {
        0 => Err(JobError::new("not yet").not_before(Duration::from_hours(24))),
        1 => Err(JobError::for_good("never")),
        _ => Ok(()),
    }
}

/// Jobs of every kind, with names of their own, so that histories can share a database.
fn jobs(seed: u64) -> [Definition; 4] {
    let work = |name: &str| job(&format!("{name}-{seed}"), |run| async move { attempted(&run) });
    [
        work("queued"),
        work("lane").timetable(daily()).catch_up(CatchUp::All),
        work("skip").timetable(daily()).catch_up(CatchUp::Latest).while_running(WhileRunning::Skip),
        work("beside").timetable(daily()).catch_up(CatchUp::None).while_running(WhileRunning::Allow),
    ]
}

#[derive(Debug, Clone)]
enum Step {
    Enqueue(Vec<String>),
    Open(u64),
    Tick(u64),
    Run(String, Ask),
    Cancel(String),
    Pause(String),
    Resume(String),
}

/// A history; the time of its ticks only increases.
fn history(seed: u64) -> Vec<Step> {
    let mut random = SeededRandom::new(seed);
    let mut draw = move |below: u64| random.next_u64() % below;
    let mut day = 2;
    (0..STEPS)
        .map(|_| {
            let windowed = ["lane", "skip", "beside"].map(|name| format!("{name}-{seed}"));
            let job = windowed.get(usize::try_from(draw(3)).unwrap()).cloned().unwrap();
            let run = match draw(2) {
                0 => format!("queued-{seed}#{}", draw(12)),
                _ => format!("{job}@2020-06-{:02}", 1 + draw(8)),
            };
            match draw(12) {
                0 | 1 => Step::Enqueue((0..=draw(5)).map(|_| draw(12).to_string()).collect()),
                2 => {
                    day += draw(3);
                    Step::Open(day)
                }
                3 | 4 => {
                    day += draw(2);
                    Step::Tick(day)
                }
                5 | 6 => Step::Run(run, Ask::Once),
                7 => Step::Run(run, Ask::Again),
                8 | 9 => Step::Cancel(run),
                10 => Step::Pause(job),
                _ => Step::Resume(job),
            }
        })
        .collect()
}

/// Does one step, and describes its result.
async fn take(refrain: &Refrain, seed: u64, step: &Step) -> String {
    let at = |day: &u64| june(&format!("{day:02}T06:00"));
    match step {
        Step::Enqueue(keys) => {
            let offers = keys.iter().map(|key| (key, ()));
            format!("{:?}", refrain.enqueue_many(&format!("queued-{seed}"), offers).await.unwrap())
        }
        Step::Open(day) => format!("{:?}", refrain.open_due(at(day)).await.unwrap()),
        Step::Tick(day) => format!("{:?}", refrain.tick_at(at(day)).await.unwrap()),
        // A caller that requests a window waits for its lane, and here no other worker runs.
        Step::Run(run, _) if is_behind(refrain, run).await => "behind its lane".to_owned(),
        Step::Run(run, ask) => match refrain.run(run, *ask).await {
            Ok(report) => format!("{:?} {}", report.did, report.run.standing.node().name()),
            Err(error) => error.to_string(),
        },
        Step::Cancel(run) => match refrain.cancel(run).await {
            Ok(cancelling) => format!("{cancelling:?}"),
            Err(error) => error.to_string(),
        },
        Step::Pause(job) => refrain.pause(job).await.unwrap().to_string(),
        Step::Resume(job) => refrain.resume(job).await.unwrap().to_string(),
    }
}

/// Whether another run holds the lane of this one, or will when it is opened.
async fn is_behind(refrain: &Refrain, run: &str) -> bool {
    let Some((job, _)) = run.split_once('@').filter(|(job, _)| !job.starts_with("beside")) else {
        return false;
    };
    let own = refrain.show(run).await.unwrap().map(|run| run.key);
    let runs = refrain.runs(job, "").await.unwrap();
    runs.iter().any(|other| {
        let holds = other.place.is_some_and(|place| place != QueuePosition::BehindItsLane);
        holds && own.as_ref() != Some(&other.key)
    })
}

/// Everything that is recorded of these jobs, except what depends on the time or on numbers inside a store.
async fn state(refrain: &Refrain) -> String {
    let mut state = String::new();
    for job in refrain.jobs() {
        for run in refrain.runs(job.as_str(), "").await.unwrap() {
            let place = match run.place {
                Some(QueuePosition::Delayed(_)) => "delayed".to_owned(),
                other => format!("{other:?}"),
            };
            let standing = (run.standing.outcome, run.attempt, run.version, place);
            writeln!(state, "{job} {} {standing:?} {:?}", short(&run.key), run.message).unwrap();
            let attempts = refrain.attempts(&run).await.unwrap();
            replay(&run, &attempts).unwrap_or_else(|fault| panic!("{}: {fault}: {attempts:?}", run.key));
            for past in attempts {
                writeln!(state, "    {} {} {:?}", past.number, past.ended, past.message).unwrap();
            }
            let dedupes = refrain.dedupes(&run).await.unwrap();
            let asked: Vec<String> = dedupes.iter().map(|dedupe| dedupe.asked.to_string()).collect();
            writeln!(state, "    asked again by {asked:?}").unwrap();
        }
    }
    state
}

/// Lanes and the runs that wait for them.
async fn lanes(database: &TestDatabase) -> Vec<String> {
    let lanes = "select 'held ' || jobs.name || ' ' || runs.key as line from refrain_lanes as lanes
        join refrain_jobs as jobs on jobs.id = lanes.job join refrain_runs as runs on runs.id = lanes.run
        union all
        select 'waits ' || jobs.name || ' ' || waits.key from refrain_lane_waits as waits
        join refrain_jobs as jobs on jobs.id = waits.job";
    let mut lanes = database.store_texts(lanes).await;
    lanes.sort();
    lanes
}

#[tokio::test]
async fn the_same_history_ends_in_the_same_state_on_both_databases() {
    let (here, there) = (TestDatabase::sqlite().await, TestDatabase::postgres().await);
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..seeds() {
        let (sqlite, postgres) = (open(&here, jobs(seed)).await, open(&there, jobs(seed)).await);
        let mut text = String::new();
        for (number, step) in history(seed).iter().enumerate() {
            let (one, other) = (take(&sqlite, seed, step).await, take(&postgres, seed, step).await);
            writeln!(text, "{number}: {step:?}: {one}").unwrap();
            assert_eq!(one, other, "left SQLite, right PostgreSQL; seed {seed}:\n{text}");
        }
        let (one, other) = (state(&sqlite).await, state(&postgres).await);
        assert_eq!(one, other, "left SQLite, right PostgreSQL; seed {seed}:\n{text}");
        assert_eq!(lanes(&here).await, lanes(&there).await, "seed {seed}:\n{text}");
        for refrain in [&sqlite, &postgres] {
            assert_eq!(refrain.fsck().await.unwrap(), [], "seed {seed}:\n{text}");
        }
        let words = one.split([' ', '(', ')', ',']).filter(|word| word.starts_with(char::is_alphabetic));
        kinds.extend(words.map(str::to_owned));
        sqlite.close().await;
        postgres.close().await;
    }
    for kind in ["Done", "Failed", "Skipped", "Cancelled", "BehindItsLane"] {
        assert!(kinds.contains(kind), "no history came to {kind}: {kinds:?}");
    }
}

#[tokio::test]
async fn i20_a_recorded_transition_that_is_not_in_the_table_is_found() {
    let database = TestDatabase::sqlite().await;
    let refrain = open(&database, [job("export", |_| async { Err(JobError::for_good("never")) })]).await;
    for ask in [Ask::Once, Ask::Again, Ask::Again] {
        refrain.enqueue("export", "one", &()).await.unwrap();
        refrain.run("export#one", ask).await.unwrap();
    }
    let run = refrain.show("export#one").await.unwrap().unwrap();
    let recorded = refrain.attempts(&run).await.unwrap();
    assert_eq!(replay(&run, &recorded), Ok(()));
    for (change, found) in [
        ("update refrain_attempts set ended = 'skipped' where number = 2", "possible now"),
        ("update refrain_attempts set ended = 'reopened' where number = 2", "possible now"),
        ("update refrain_attempts set number = 0 where number = 1", "should have the number"),
    ] {
        assert_eq!(database.store(change).await, 1, "{change}");
        let planted = refrain.attempts(&run).await.unwrap();
        let fault = replay(&run, &planted).unwrap_err();
        assert!(fault.contains(found), "{change}: {fault}");
    }
}
