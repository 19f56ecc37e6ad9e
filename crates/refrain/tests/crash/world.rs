//! One store, the probes that use it, and what must be true of it after any fault.
//!
//! The oracle reads three independent things: the rows of the store by plain SQL, the file of
//! effects that handlers write, and `fsck`. Its verdict is a value, because a test of a removed
//! guard expects a bad one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::{SignedDuration, Timestamp, Unit};
use refrain::Refrain;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgPool, Postgres, Sqlite, SqlitePool, Transaction};

use refrain_harness::TestDatabase;
use refrain_harness::children::ChildProcess;
use refrain_harness::programs::program;
use refrain_harness::proxy::Proxy;

/// The project of the probes.
const PROJECT: &str = "crash";

/// A line that a handler has written outside of the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Effect {
    pub(crate) has_ended: bool,
    pub(crate) run: String,
    pub(crate) attempt: u32,
    pub(crate) process: u32,
}

/// A run as the store records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) run: String,
    pub(crate) outcome: String,
    pub(crate) attempt: u32,
    pub(crate) is_open: bool,
}

enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// A transaction of another program, during which no run can be ended.
pub(crate) enum Hold {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

impl Hold {
    pub(crate) async fn release(self) {
        match self {
            Hold::Sqlite(transaction) => transaction.rollback().await.unwrap(),
            Hold::Postgres(transaction) => transaction.rollback().await.unwrap(),
        }
    }
}

pub(crate) struct World {
    pool: Pool,
    url: String,
    directory: tempfile::TempDir,
    start: String,
    _database: Option<TestDatabase>,
}

impl World {
    /// A database without a store in it.
    pub(crate) fn of(database: TestDatabase) -> World {
        let (pool, url) = match &database {
            TestDatabase::Sqlite { pool, .. } => {
                let url = format!("sqlite:{}", pool.connect_options().get_filename().display());
                (Pool::Sqlite(pool.clone()), url)
            }
            TestDatabase::Postgres { pool, .. } => {
                (Pool::Postgres(pool.clone()), pool.connect_options().to_url_lossy().to_string())
            }
        };
        World { _database: Some(database), ..World::with(pool, url) }
    }

    /// A database of a server that only this test uses.
    pub(crate) fn at(url: &str) -> World {
        World::with(Pool::Postgres(PgPool::connect_lazy(url).unwrap()), url.to_owned())
    }

    /// The same database; probes reach it through a proxy.
    pub(crate) async fn behind(database: TestDatabase) -> (World, Proxy) {
        let direct = database.url();
        let proxy = Proxy::in_front_of(&direct).await;
        let name = direct.rsplit('/').next().unwrap().to_owned();
        let world = World { url: proxy.url(&name), ..World::of(database) };
        (world, proxy)
    }

    fn with(pool: Pool, url: String) -> World {
        let hour = Timestamp::now().round((Unit::Hour, 1)).unwrap() - SignedDuration::from_hours(4);
        let start = hour.strftime("%Y-%m-%dT%H:%M").to_string();
        World { pool, url, directory: tempfile::tempdir().unwrap(), start, _database: None }
    }

    /// The same kind of database, empty.
    pub(crate) async fn like(other: &TestDatabase) -> World {
        World::of(TestDatabase::like(other).await)
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.pool, Pool::Sqlite(_))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The file of a SQLite store.
    pub(crate) fn file(&self) -> PathBuf {
        self.url.strip_prefix("sqlite:").unwrap().into()
    }

    /// The first window of the probes' hourly jobs; at least three have ended.
    pub(crate) fn start(&self) -> &str {
        &self.start
    }

    /// The command of a probe on this store.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("probe"));
        command.args(arguments).env("PROBE_STORE", &self.url).env("PROBE_DIRECTORY", self.directory.path());
        command.env("REFRAIN_FAILPOINT_LOG", self.path("struck"));
        command
    }

    /// Starts a probe; the variables may arm failpoints.
    pub(crate) fn probe(&self, arguments: &[&str], variables: &[(&str, &str)]) -> ChildProcess {
        // A test that weakens no statement itself uses those of its environment.
        let message = |(name, value): &(&str, &str)| *name != "REFRAIN_WEAKENED" || !value.is_empty();
        ChildProcess::spawn(self.command(arguments).envs(variables.iter().copied().filter(message)))
    }

    /// Runs a probe that must succeed, and returns its output.
    pub(crate) async fn done(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let output = self.probe(arguments, variables).finish().await;
        let (message, failed) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{arguments:?} ended with {}: {message}\n{failed}", output.status);
        message.into_owned()
    }

    pub(crate) fn touch(&self, name: &str) {
        std::fs::write(self.path(name), "").unwrap();
    }

    /// The failpoints that killed or stopped a probe.
    pub(crate) fn struck(&self) -> Vec<String> {
        lines(&self.path("struck"))
    }

    /// How many units each batch of a long list had, for each attempt.
    pub(crate) fn batches(&self, attempt: u32) -> Vec<usize> {
        let read = |line: &String| {
            let (by, units) = line.split_once(' ').unwrap();
            (by == attempt.to_string()).then(|| units.parse().unwrap())
        };
        lines(&self.path("batches")).iter().filter_map(read).collect()
    }

    pub(crate) fn effects(&self) -> Vec<Effect> {
        let read = |line: String| match *line.split(' ').collect::<Vec<_>>().as_slice() {
            [word, run, attempt, process] => Effect {
                has_ended: word == "ended",
                run: run.to_owned(),
                attempt: attempt.parse().unwrap(),
                process: process.parse().unwrap(),
            },
            _ => panic!("{line:?} is not an effect"),
        };
        lines(&self.path("effects")).into_iter().map(read).collect()
    }

    /// Texts from the store; tables are named as on SQLite.
    pub(crate) async fn texts(&self, query: &str) -> Vec<String> {
        let query = AssertSqlSafe(self.in_dialect(query));
        match &self.pool {
            Pool::Sqlite(pool) => sqlx::query_scalar(query).fetch_all(pool).await.unwrap(),
            Pool::Postgres(pool) => sqlx::query_scalar(query).fetch_all(pool).await.unwrap(),
        }
    }

    /// Writes to the store without its knowledge.
    pub(crate) async fn execute(&self, statement: &str) -> Result<(), sqlx::Error> {
        let statement = sqlx::raw_sql(AssertSqlSafe(self.in_dialect(statement)));
        match &self.pool {
            Pool::Sqlite(pool) => statement.execute(pool).await.map(|_| ()),
            Pool::Postgres(pool) => statement.execute(pool).await.map(|_| ()),
        }
    }

    /// Takes a run over from its worker, which is alive and is not notified; its next attempt begins after a while.
    pub(crate) async fn take_over(&self, key: &str, seconds: u32) {
        let taken_over = format!(
            "insert into refrain_attempts (run, number, ended, ended_at)
                select run, attempt, 'taken-over', (select now from refrain_clock) from refrain_queue
                where run = (select id from refrain_runs where key = '{key}');
            insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane)
                select run, (select now from refrain_clock) \
                + {seconds}000000, line, 2, 0, 0, lane from refrain_queue
                where run = (select id from refrain_runs where key = '{key}');
            delete from refrain_queue where run = (select id from refrain_runs where key = '{key}')"
        );
        self.execute(&taken_over).await.unwrap();
    }

    /// The statement after which every worker's process counts as one of this machine that has ended.
    pub(crate) async fn gone(&self) -> String {
        let processes = self.texts("select process from refrain_workers").await;
        let machine: Vec<&str> = processes.first().unwrap().split('/').take(2).collect();
        format!("update refrain_workers set process = '{}/0/1'", machine.join("/"))
    }

    /// The rows that syncs have written, as `id total writes`.
    pub(crate) async fn invoices(&self) -> Vec<String> {
        self.texts(
            "select cast(id as text) || ' ' || cast(total as text) || ' ' || cast(writes as text)
             from invoices order by id",
        )
        .await
    }

    /// Keeps every process from ending a run, until it is released.
    pub(crate) async fn hold(&self) -> Hold {
        match &self.pool {
            Pool::Sqlite(pool) => Hold::Sqlite(pool.begin_with("begin immediate").await.unwrap()),
            Pool::Postgres(pool) => {
                let mut transaction = pool.begin().await.unwrap();
                transaction.execute("select id from refrain.runs for update").await.unwrap();
                Hold::Postgres(transaction)
            }
        }
    }

    /// A transaction on a server, after a statement that locks something.
    pub(crate) async fn locked(&self, statement: &'static str) -> Transaction<'static, Postgres> {
        let Pool::Postgres(pool) = &self.pool else { panic!("a file has one lock for all") };
        let mut transaction = pool.begin().await.unwrap();
        transaction.execute(statement).await.unwrap();
        transaction
    }

    fn in_dialect(&self, statement: &str) -> String {
        if self.is_sqlite() { statement.to_owned() } else { statement.replace("refrain_", "refrain.") }
    }

    /// Whether a statement that begins like this waits for a lock; PostgreSQL can tell.
    pub(crate) async fn is_waiting(&self, beginning: &str) -> bool {
        let waiting = "select query from pg_stat_activity
            where wait_event_type = 'Lock' and datname = current_database()";
        self.texts(waiting).await.iter().any(|statement| statement.trim_start().starts_with(beginning))
    }

    pub(crate) async fn runs(&self) -> Vec<Recorded> {
        let rows = self
            .texts(
                "select jobs.name || '#' || runs.key || ' ' || coalesce(runs.outcome, '-') || ' '
                     || cast(runs.attempt as text) || ' ' || (case when runs.open then 'open' else \
                     'closed' end)
                 from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job order by \
                 runs.id",
            )
            .await;
        let read = |row: String| match *row.split(' ').collect::<Vec<_>>().as_slice() {
            [run, outcome, attempt, open] => Recorded {
                run: run.to_owned(),
                outcome: outcome.to_owned(),
                attempt: attempt.parse().unwrap(),
                is_open: open == "open",
            },
            _ => panic!("{row:?} is not a run"),
        };
        rows.into_iter().map(read).collect()
    }

    /// How past attempts ended, as `run number ended`.
    pub(crate) async fn history(&self) -> Vec<String> {
        self.texts(
            "select jobs.name || '#' || runs.key || ' ' || cast(attempts.number as text) \
             || ' ' || attempts.ended
             from refrain_attempts as attempts join refrain_runs as runs on runs.id = attempts.run
                 join refrain_jobs as jobs on jobs.id = runs.job
             order by runs.id, attempts.number",
        )
        .await
    }

    pub(crate) async fn dedupes(&self) -> usize {
        self.texts("select asked from refrain_dedupes").await.len()
    }

    /// Everything that is wrong after every probe has ended. Each of these runs must exist once and be done once;
    /// nothing may be open or in a wrong queue; no attempt may have begun twice; every run that the store calls done
    /// must have been done.
    pub(crate) async fn verdict(&self, expected: &BTreeSet<String>) -> Vec<String> {
        let mut faults = Vec::new();
        let runs = self.runs().await;
        let names: BTreeSet<String> = runs.iter().map(|run| run.run.clone()).collect();
        faults.extend(expected.difference(&names).map(|run| format!("{run} is missing")));
        if names.len() < runs.len() {
            faults.push(format!("{} runs have {} names", runs.len(), names.len()));
        }
        faults.extend(runs.iter().filter(|run| run.is_open).map(|run| format!("{} is open", run.run)));
        let effects = self.effects();
        for run in runs.iter().filter(|run| expected.contains(&run.run)) {
            if run.outcome != "done" {
                faults.push(format!("{} is {}", run.run, run.outcome));
            }
            let is_told =
                effects.iter().any(|one| one.has_ended && one.run == run.run && one.attempt == run.attempt);
            if !is_told && !is_expanded(&run.run) {
                faults
                    .push(format!("{} is said to be done by attempt {}, and was not", run.run, run.attempt));
            }
        }
        let done_before = self.history().await.into_iter().filter(|one| one.ends_with(" done"));
        faults
            .extend(done_before.filter(|one| !one.starts_with("again#")).map(|one| format!("{one} before")));
        faults.extend(begun_twice(&effects));
        let refrain = Refrain::at(&self.url, PROJECT).unwrap().open().await.unwrap();
        faults.extend(
            refrain.fsck().await.unwrap().into_iter().map(|found| format!("{} ({})", found.what, found.row)),
        );
        faults.extend(refrain_harness::history::illegal(&refrain).await);
        refrain.close().await;
        faults
    }

    /// Fails with the list of all faults.
    pub(crate) async fn assert_settled(&self, expected: impl IntoIterator<Item = String>) {
        let faults = self.verdict(&expected.into_iter().collect()).await;
        assert!(
            faults.is_empty(),
            "{} faults:\n{}\n{}",
            faults.len(),
            faults.join("\n"),
            self.effects_text()
        );
    }

    /// The file of effects, to print in a failure.
    pub(crate) fn effects_text(&self) -> String {
        std::fs::read_to_string(self.path("effects")).unwrap_or_default()
    }
}

/// The run of a window that has scopes: the engine executes it, and no handler records it.
fn is_expanded(run: &str) -> bool {
    run.starts_with("scoped#") && !run.contains('/')
}

/// An attempt begins only once, because its number is its fence.
fn begun_twice(effects: &[Effect]) -> Vec<String> {
    let mut begun: BTreeMap<(&str, u32), usize> = BTreeMap::new();
    for effect in effects.iter().filter(|effect| !effect.has_ended) {
        *begun.entry((&effect.run, effect.attempt)).or_default() += 1;
    }
    let twice = begun.into_iter().filter(|(_, times)| *times > 1);
    twice
        .map(|((run, attempt), times)| format!("attempt {attempt} of {run} was begun {times} times"))
        .collect()
}

/// All rows of a sync, each written once.
pub(crate) fn written_once() -> Vec<String> {
    (1..=12).map(|id| format!("{id} {} 1", id * 10)).collect()
}

/// `prefix0`, `prefix1` and so on.
pub(crate) fn numbered(prefix: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |at| format!("{prefix}{at}"))
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}
