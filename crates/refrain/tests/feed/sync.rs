//! A shop whose invoices come from a script, and what a test can observe of them.

use refrain::Ask;

use refrain_harness::TestDatabase;
use refrain_harness::project::{TestProject, stopped_clock};

pub(crate) const RUN: &str = "sync@2020-06-09";
/// Long, so that a process reaches the place where it is killed; the test expires it afterwards.
pub(crate) const LEASE: (&str, &str) = ("PROJECT_LEASE", "60000");

const WHEN: &str = r#"
    schedule = "@daily"
    window = "day"
    start = 2020-06-01
    catch-up = "all"
"#;
const INTO: &str = r#"
    [publish]
    database = "shop"
    table = "invoices"
    mode = "merge"
    key = ["id"]
"#;
/// A source that prints a file.
const LIST: &str = "#!/bin/sh\ncat source\n";

/// The parts of a job file: its top, its `[unit]` section, and further sections.
#[derive(Clone, Copy, Default)]
pub(crate) struct Says<'s> {
    pub(crate) top: &'s str,
    pub(crate) unit: &'s str,
    pub(crate) more: &'s str,
}

pub(crate) struct Sync {
    pub(crate) shop: TestProject,
}

impl Sync {
    /// A shop with a table of invoices, and one that records each write of an invoice.
    pub(crate) async fn of(database: TestDatabase) -> Sync {
        let shop = TestProject::of(database);
        shop.execute(
            "create table customers (id integer primary key);
             create table invoices (id bigint primary key, total integer not null, at text,
                 customer integer references customers (id));
             create table writes (id bigint)",
        )
        .await;
        shop.execute(shop.either(
            "create trigger inserted after insert on invoices begin insert into writes values (new.id); end;
             create trigger updated after update on invoices begin insert into writes values (new.id); end",
            "create function written() returns trigger language plpgsql as
                 $$ begin insert into writes values (new.id); return new; end $$;
             create trigger written after insert or update on invoices for each row execute function \
             written()",
        ))
        .await;
        let sync = Sync { shop };
        sync.shop.program("list", LIST);
        sync
    }

    /// A shop with a job whose units are rows of invoices.
    pub(crate) async fn into_table(database: TestDatabase, says: Says<'_>) -> Sync {
        let sync = Sync::of(database).await;
        sync.says(says);
        sync
    }

    /// Replaces the job file.
    pub(crate) fn says(&self, Says { top, unit, more }: Says<'_>) {
        self.job("command = [\"./list\"]\noutput = \"units\"", top, unit, &format!("{more}{INTO}"));
    }

    pub(crate) fn job(&self, source: &str, top: &str, unit: &str, more: &str) {
        let key = if unit.contains("key =") { "" } else { "key = \"invoice:{id}\"\n" };
        self.shop.job("sync", &format!("{WHEN}{top}\n{source}\n[unit]\n{key}{unit}\n{more}"));
    }

    pub(crate) fn source<L: AsRef<str>>(&self, lines: impl IntoIterator<Item = L>) {
        let text: Vec<String> = lines.into_iter().map(|line| format!("{}\n", line.as_ref())).collect();
        self.shop.write("source", &text.concat());
    }

    /// Opens the store once, so that several processes can open it at the same time.
    pub(crate) async fn prepare(&self) {
        self.shop.open().await.close().await;
    }

    /// Requests the run in a process of its own. Returns the result, as `Ran done 1` with the number of the last
    /// attempt, or of the open one; and the message, with the log.
    pub(crate) async fn run(&self) -> (String, String) {
        self.ask(&["run", RUN]).await
    }

    pub(crate) async fn again(&self) -> (String, String) {
        self.ask(&["run", RUN, "--again"]).await
    }

    /// Requests it in a process whose lease does not expire on a slow machine.
    pub(crate) async fn ask(&self, arguments: &[&str]) -> (String, String) {
        self.ask_with(arguments, &[LEASE]).await
    }

    pub(crate) async fn ask_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (String, String) {
        self.shop.prepare().await;
        let reported = self.shop.done_with(arguments, variables).await;
        let (first, rest) = reported.split_once('\n').unwrap();
        (first.strip_prefix("did ").unwrap().to_owned(), rest.to_owned())
    }

    /// Processed, skipped, deduplicated and failed, for each attempt of the run.
    pub(crate) async fn counts(&self) -> Vec<[u64; 4]> {
        let refrain = self.shop.open().await;
        let run = refrain.show(RUN).await.unwrap().unwrap();
        let units = refrain.units(&run).await.unwrap();
        refrain.close().await;
        let counts = units.iter().map(|one| one.counts);
        counts.map(|one| [one.processed, one.skipped, one.deduplicated, one.failed]).collect()
    }

    /// The message of the last failed attempt.
    pub(crate) async fn last_message(&self) -> String {
        let refrain = self.shop.open().await;
        let run = refrain.show(RUN).await.unwrap().unwrap();
        let attempts = refrain.attempts(&run).await.unwrap();
        refrain.close().await;
        let last = attempts.last().and_then(|attempt| attempt.message.clone());
        if run.standing.is_open() { last } else { run.message }.unwrap_or_default()
    }

    /// Invoices as `id total`, in the order of their ids.
    pub(crate) async fn invoices(&self) -> Vec<String> {
        let query =
            "select cast(id as text) || ' ' || cast(total as text) from invoices order by invoices.id";
        self.shop.rows(query).await
    }

    /// Which invoices were written, each as often as it was.
    pub(crate) async fn writes(&self) -> Vec<String> {
        self.shop.rows("select cast(id as text) from writes order by writes.id").await
    }

    /// The position of the checkpoint.
    pub(crate) async fn position(&self) -> Vec<String> {
        let refrain = self.shop.open().await;
        let checkpoints = refrain.checkpoints(Some("sync")).await.unwrap();
        refrain.close().await;
        checkpoints.into_iter().map(|checkpoint| checkpoint.position).collect()
    }

    /// Units that are not applied, as `key status message`.
    pub(crate) async fn left(&self) -> Vec<String> {
        let query = "select key || ' ' || status || ' ' || message from refrain_units where status <> \
             'applied' order by key";
        let query = if self.shop.database.is_sqlite() {
            query.to_owned()
        } else {
            query.replace("refrain_", "refrain.")
        };
        self.shop.rows(&query).await
    }

    /// Requests the run in a process that is killed at these failpoints.
    pub(crate) async fn killed(&self, failpoints: &str) {
        use std::os::unix::process::ExitStatusExt;
        self.shop.prepare().await;
        let mut process = self.shop.process(&["run", RUN], &[("FAILPOINTS", failpoints), LEASE]);
        let output = process.finish().await;
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        let killed = Some(rustix::process::Signal::KILL.as_raw());
        assert_eq!(output.status.signal(), killed, "{failpoints} was not reached: {reported}");
        self.shop.expire().await;
    }
}

/// Lines of invoices whose totals are ten times their ids.
pub(crate) fn lines(ids: impl IntoIterator<Item = u32>) -> Vec<String> {
    ids.into_iter().map(|id| format!("{{\"id\":{id},\"total\":{}}}", id * 10)).collect()
}

/// The rows of such lines.
pub(crate) fn rows(ids: impl IntoIterator<Item = u32>) -> Vec<String> {
    ids.into_iter().map(|id| format!("{id} {}", id * 10)).collect()
}

pub(crate) fn texts(ids: impl IntoIterator<Item = u32>) -> Vec<String> {
    ids.into_iter().map(|id| id.to_string()).collect()
}

/// Helpers that not every test program uses.
const _: () = {
    let _ = (
        TestProject::daily,
        TestProject::remove,
        TestProject::prepare,
        TestProject::run,
        stopped_clock,
        Ask::Once,
    );
};
