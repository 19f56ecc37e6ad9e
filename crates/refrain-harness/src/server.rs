//! A PostgreSQL of its own, for tests that stop the server at any moment or end its connections.
//!
//! It has PostgreSQL's default durability, so that every commit survives any stop. It keeps its
//! port while it is down, so that its URL stays valid.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tempfile::TempDir;

use super::address::ServerUrl;
use super::children::{ChildProcess, unprivileged};

pub struct PrivateServer {
    address: ServerUrl,
    process: Option<ChildProcess>,
    databases: AtomicU32,
    directory: TempDir,
}

impl PrivateServer {
    /// A new server, running.
    pub async fn create() -> PrivateServer {
        let directory = tempfile::Builder::new().prefix("refrain-server-").tempdir().unwrap();
        let address = ServerUrl::unused();
        let password = directory.path().join("password");
        std::fs::write(&password, &address.password).unwrap();
        let mut initdb = Command::new(programs().join("initdb"));
        initdb.args(["-D", "data", "-U", &address.user, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]);
        initdb.args(["-A", "scram-sha-256", "--pwfile=password"]);
        let made = unprivileged(&mut initdb, directory.path()).output().unwrap();
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        let mut server = PrivateServer { address, process: None, databases: AtomicU32::new(0), directory };
        server.start().await;
        server
    }

    /// Starts it again, and returns when it accepts clients.
    pub async fn start(&mut self) {
        self.start_until("database system is ready to accept connections").await;
    }

    /// Starts it again as a replica of another server.
    pub async fn restart_as_replica(&mut self) {
        self.stop_immediately();
        std::fs::write(self.directory.path().join("data/standby.signal"), "").unwrap();
        self.start_until("database system is ready to accept read-only connections").await;
    }

    /// A replica of this server is promoted under the same address, with a timeline of its own.
    pub async fn fail_over(&mut self) {
        self.restart_as_replica().await;
        let promoted: bool =
            sqlx::query_scalar("select pg_promote()").fetch_one(&mut self.connect().await).await.unwrap();
        assert!(promoted, "the server was not promoted");
    }

    async fn start_until(&mut self, line: &str) {
        assert!(self.process.is_none(), "the server is running");
        let mut postgres = Command::new(programs().join("postgres"));
        postgres.args(["-D", "data", "-p", &self.address.port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=100",
            "shared_buffers=16MB",
        ] {
            postgres.args(["-c", setting]);
        }
        let mut process = ChildProcess::spawn(unprivileged(&mut postgres, self.directory.path()));
        process.wait_for_line(line).await;
        self.process = Some(process);
    }

    /// As in a crash: no work is finished or recorded, and every connection is cut.
    pub fn stop_immediately(&mut self) {
        if let Some(process) = self.process.take() {
            process.end(Signal::QUIT);
        }
    }

    pub async fn restart(&mut self) {
        self.stop_immediately();
        self.start().await;
    }

    pub fn url(&self, database: &str) -> String {
        self.address.url(database)
    }

    /// A new, empty database; its name.
    pub async fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let statement = AssertSqlSafe(format!("create database {name}"));
        self.connect().await.execute(statement).await.unwrap();
        name
    }

    /// Ends every connection to a database from the server's side. Returns how many; one may have ended by itself.
    pub async fn terminate_backends(&self, database: &str) -> usize {
        let statement = "select pg_terminate_backend(pid, 60000) from pg_stat_activity
            where datname = $1 and backend_type = 'client backend'";
        let ended: Vec<bool> =
            sqlx::query_scalar(statement).bind(database).fetch_all(&mut self.connect().await).await.unwrap();
        ended.into_iter().filter(|has_ended| *has_ended).count()
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A connection to a database that no test uses.
    async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url("postgres")).await.unwrap()
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.stop_immediately();
    }
}

fn programs() -> PathBuf {
    std::env::var_os("REFRAIN_TEST_POSTGRES_PROGRAMS")
        .expect("this test needs PostgreSQL's programs: run ./test, which finds or installs them")
        .into()
}
