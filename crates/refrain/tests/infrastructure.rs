//! The tools of the tests work: a server that restarts, a pooler, a network that loses replies,
//! processes that stop, continue, and end with their test.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::path::Path;
use std::process::Command;

use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::pgbouncer::PgBouncer;
use refrain_harness::proxy::Proxy;
use refrain_harness::server::PrivateServer;
use rustix::process::Signal;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection};

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.unwrap()
}

async fn with_table(url: &str) -> PgConnection {
    let mut connection = connect(url).await;
    connection.execute("create table notes (note text not null)").await.unwrap();
    connection
}

async fn notes(url: &str) -> Vec<String> {
    sqlx::query_scalar("select note from notes order by note")
        .fetch_all(&mut connect(url).await)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_stopped_server_restarts_with_every_committed_row() {
    let mut server = PrivateServer::create().await;
    let url = server.url(&server.create_database().await);
    let mut connection = with_table(&url).await;
    connection.execute("insert into notes values ('committed')").await.unwrap();
    connection.execute("begin").await.unwrap();
    connection.execute("insert into notes values ('open')").await.unwrap();

    server.stop_immediately();
    connection.execute("commit").await.unwrap_err();
    PgConnection::connect(&url).await.unwrap_err();
    server.start().await;
    assert_eq!(notes(&url).await, ["committed"]);
    server.restart().await;
    assert_eq!(notes(&url).await, ["committed"]);
}

#[tokio::test]
async fn the_server_ends_the_connections_of_one_database_and_of_no_other() {
    let server = PrivateServer::create().await;
    let (one, other) = (server.create_database().await, server.create_database().await);
    let mut ended = [connect(&server.url(&one)).await, connect(&server.url(&one)).await];
    let mut spared = connect(&server.url(&other)).await;

    assert_eq!(server.terminate_backends(&one).await, 2);
    for connection in &mut ended {
        connection.execute("select 1").await.unwrap_err();
    }
    spared.execute("select 1").await.unwrap();
    connect(&server.url(&one)).await.execute("select 1").await.unwrap();
}

#[tokio::test]
async fn a_server_ends_with_its_test() {
    let server = PrivateServer::create().await;
    let (url, directory) = (server.url("postgres"), server.directory().to_owned());
    connect(&url).await;
    let panicked = tokio::spawn(async move {
        assert!(!server.directory().exists(), "a test that fails");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    PgConnection::connect(&url).await.unwrap_err();
    assert!(!directory.exists());
}

/// The answer to a statement in a transaction of its own, and the server connection that gave it.
async fn backend(client: &mut PgConnection, is_named: bool) -> Result<(i32, String), sqlx::Error> {
    let mut transaction = client.begin().await?;
    let statement = "select pg_backend_pid(), $1 || current_database()";
    let query = sqlx::query_as(statement).bind("in ").persistent(is_named);
    let answer = query.fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(answer)
}

#[tokio::test]
async fn clients_of_pgbouncer_share_one_server_connection() {
    let server = PrivateServer::create().await;
    let database = server.create_database().await;
    let pooler = PgBouncer::in_front_of(&server.url(&database)).await;
    let options: PgConnectOptions = pooler.url(&database).parse().unwrap();
    let options = options.statement_cache_capacity(0);
    let (mut one, mut other) = (options.connect().await.unwrap(), options.connect().await.unwrap());
    let (first, answer) = backend(&mut one, false).await.unwrap();
    assert_eq!(answer, format!("in {database}"));
    assert_eq!(backend(&mut other, false).await.unwrap(), (first, answer));

    // A statement cache of size zero does not make statements nameless; both clients begin to count at one.
    backend(&mut one, true).await.unwrap();
    let refused = backend(&mut other, true).await.unwrap_err();
    let code = refused.as_database_error().and_then(|error| error.code().map(String::from));
    assert_eq!(code.as_deref(), Some("42P05"), "{refused}");

    let gone = pooler.url(&database);
    drop(pooler);
    PgConnection::connect(&gone).await.unwrap_err();
}

#[tokio::test]
async fn the_proxy_loses_the_reply_to_a_commit_that_happened() {
    let server = PrivateServer::create().await;
    let database = server.create_database().await;
    with_table(&server.url(&database)).await;
    let proxy = Proxy::in_front_of(&server.url(&database)).await;
    let insert = "insert into notes values ($1)";

    let mut connection = connect(&proxy.url(&database)).await;
    proxy.cut_after_forwarding(b"COMMIT");
    let mut transaction = connection.begin().await.unwrap();
    sqlx::query(insert).bind("lost").execute(&mut *transaction).await.unwrap();
    assert_eq!(proxy.cuts(), 0);
    transaction.commit().await.unwrap_err();
    assert_eq!((proxy.cuts(), notes(&server.url(&database)).await), (1, vec!["lost".to_owned()]));

    let mut connection = connect(&proxy.url(&database)).await;
    let mut transaction = connection.begin().await.unwrap();
    sqlx::query(insert).bind("log").execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!((proxy.cuts(), notes(&server.url(&database)).await.len()), (1, 2));
}

#[tokio::test]
async fn the_proxy_cuts_before_the_reply_while_the_server_commits() {
    let server = PrivateServer::create().await;
    let database = server.create_database().await;
    let url = server.url(&database);
    let mut locking = with_table(&url).await;
    // A commit waits for the holder of this lock.
    let trigger = "create function wait() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock(1); return null; end $$;
        create constraint trigger waits after insert on notes deferrable initially deferred
        for each row execute function wait()";
    locking.execute(trigger).await.unwrap();
    locking.execute("select pg_advisory_lock(1)").await.unwrap();
    let proxy = Proxy::in_front_of(&url).await;
    proxy.delay(std::time::Duration::from_millis(1));

    let mut connection = connect(&proxy.url(&database)).await;
    proxy.cut_at_once(b"COMMIT");
    let mut transaction = connection.begin().await.unwrap();
    transaction.execute("insert into notes values ('late')").await.unwrap();
    transaction.commit().await.unwrap_err();
    assert_eq!((proxy.cuts(), notes(&url).await), (1, Vec::new()));
    locking.execute("select pg_advisory_unlock(1)").await.unwrap();
    eventually("the commit has landed", DEADLINE, async || notes(&url).await == ["late"]).await;

    let mut connection = connect(&proxy.url(&database)).await;
    proxy.swallow(true);
    let asked = connection.execute("select 1");
    let answered = tokio::time::timeout(std::time::Duration::from_millis(50), asked).await;
    assert!(answered.is_err(), "something got through");
    proxy.swallow(false);
    connect(&proxy.url(&database)).await.execute("select 1").await.unwrap();
}

#[tokio::test]
async fn the_proxy_cuts_open_connections_and_lets_later_ones_pass() {
    let server = PrivateServer::create().await;
    let proxy = Proxy::in_front_of(&server.url("postgres")).await;
    let mut open = [connect(&proxy.url("postgres")).await, connect(&proxy.url("postgres")).await];
    proxy.cut_all().await;
    assert_eq!(proxy.cuts(), 2);
    for connection in &mut open {
        connection.execute("select 1").await.unwrap_err();
    }
    connect(&proxy.url("postgres")).await.execute("select 1").await.unwrap();
}

fn shell(script: &str) -> ChildProcess {
    ChildProcess::spawn(Command::new("sh").args(["-c", script]))
}

/// The state of the process in `/proc`: `R` runs, `S` waits, `T` is stopped, `Z` has ended; none if there is no such
/// process.
fn state(process: u32) -> Option<char> {
    let line = std::fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    line.rsplit(") ").next()?.chars().next()
}

fn lives(process: u32) -> bool {
    state(process).is_some_and(|state| state != 'Z')
}

#[tokio::test]
async fn a_stopped_child_receives_a_signal_only_when_it_is_continued() {
    let mut child =
        shell("trap 'echo heard; echo sorry >&2; exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    child.wait_for_line("ready").await;
    child.signal(Signal::STOP);
    child.signal(Signal::TERM);
    assert_eq!(state(child.id()), Some('T'));
    child.signal(Signal::CONT);
    assert_eq!(child.wait_for_line("heard").await, "heard");
    assert_eq!(child.wait().await.code(), Some(7));
    let output = child.finish().await;
    assert_eq!((output.stdout, output.stderr), (b"ready\nheard\n".to_vec(), b"sorry\n".to_vec()));
}

#[tokio::test]
async fn a_killed_child_leaves_its_own_children_until_it_is_dropped() {
    let mut child = shell("sleep 1000 & echo child $!; wait");
    let line = child.wait_for_line("child").await;
    let grandchild: u32 = line.trim_start_matches("child ").parse().unwrap();
    child.signal(Signal::KILL);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().await), Some(9));
    assert!(lives(grandchild));
    drop(child);
    eventually("the grandchild is gone", DEADLINE, async || !lives(grandchild)).await;
}

/// The variable makes this test its own child: it then starts a process, prints its number, and waits to be killed.
#[tokio::test]
async fn a_child_does_not_outlive_a_test_program_that_was_killed() {
    const KILLED: &str = "REFRAIN_TEST_TO_BE_KILLED";
    if std::env::var_os(KILLED).is_some() {
        let mut sleeper = shell("sleep 1000");
        eprintln!("sleeper {}", sleeper.id());
        sleeper.wait().await;
        return;
    }
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["a_child_does_not_outlive_a_test_program_that_was_killed", "--nocapture"]).env(KILLED, "1");
    let mut program = ChildProcess::spawn(&mut program);
    let line = program.wait_for_line("sleeper").await;
    let sleeper: u32 = line.trim_start_matches("sleeper ").parse().unwrap();
    assert!(lives(sleeper));
    program.signal(Signal::KILL);
    eventually("the sleeper is gone", DEADLINE, async || !lives(sleeper)).await;
}
