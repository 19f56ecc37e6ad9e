//! A PgBouncer in front of a PostgreSQL, in transaction mode: after each transaction a client may
//! get another server connection, without the settings and prepared statements of the former one.
//!
//! Of the startup parameters only one that sqlx always sends is ignored (`extra_float_digits`); a
//! program that sends more is refused, as in production.

use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use super::address::{ServerUrl, unused_port};
use super::children::{ChildProcess, unprivileged};

pub struct PgBouncer {
    address: ServerUrl,
    process: ChildProcess,
    _directory: TempDir,
}

impl PgBouncer {
    /// Starts in front of the server of this URL, for all of its databases.
    pub async fn in_front_of(url: &str) -> PgBouncer {
        let server = ServerUrl::of(url);
        let address = server.behind(unused_port());
        let directory = tempfile::Builder::new().prefix("refrain-pgbouncer-").tempdir().unwrap();
        std::fs::write(directory.path().join("settings"), settings(&server, address.port)).unwrap();
        let user = format!("\"{}\" \"{}\"\n", server.user, server.password);
        std::fs::write(directory.path().join("users"), user).unwrap();
        let program = std::env::var_os("REFRAIN_TEST_PGBOUNCER")
            .expect("this test needs PgBouncer: run ./test, which finds or installs it");
        let mut pgbouncer = Command::new(program);
        pgbouncer.arg("settings");
        let mut process = ChildProcess::spawn(unprivileged(&mut pgbouncer, directory.path()));
        process.wait_for_line("process up").await;
        PgBouncer { address, process, _directory: directory }
    }

    pub fn url(&self, database: &str) -> String {
        self.address.url(database)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.process.end(Signal::TERM);
    }
}

fn settings(server: &ServerUrl, port: u16) -> String {
    format!(
        "[databases]\n\
         * = host={} port={}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = md5\n\
         auth_file = users\n\
         pool_mode = transaction\n\
         max_client_conn = 400\n\
         ignore_startup_parameters = extra_float_digits\n",
        server.host, server.port
    )
}
