//! The parts of a round: a store and a destination, and the proxies in front of them that inject faults.

use std::fmt;
use std::process::Command;

use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::destination::Rows;
use crate::support::children::ChildProcess;
use crate::support::proxy::Proxy;
use crate::support::server::PrivateServer;
use crate::worker::Surroundings;

/// Which database the round uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Sqlite => "SQLite",
            Kind::Postgres => "PostgreSQL",
        })
    }
}

/// A store and a destination.
pub(crate) struct Arena {
    pub(crate) kind: Kind,
    /// For the oracle, without a proxy.
    pub(crate) own: Surroundings,
    /// For the processes that get the faults.
    theirs: Surroundings,
    pub(crate) hurt: Option<Hurt>,
    _directory: TempDir,
}

/// A server of our own, and a network in front of it that fails.
pub(crate) struct Hurt {
    pub(crate) server: Mutex<PrivateServer>,
    pub(crate) proxy: Proxy,
    pub(crate) databases: [String; 2],
}

impl Arena {
    pub(crate) async fn make(kind: Kind) -> Arena {
        let directory = tempfile::tempdir().unwrap();
        let own = |store: String, destination: String| Surroundings {
            store,
            destination,
            directory: directory.path().to_owned(),
        };
        let (own, theirs, hurt) = match kind {
            Kind::Sqlite => {
                let [store, destination] = ["store", "destination"].map(|name| {
                    format!("sqlite:{}", directory.path().join(name).with_extension("db").display())
                });
                (own(store.clone(), destination.clone()), own(store, destination), None)
            }
            Kind::Postgres => {
                let server = PrivateServer::create().await;
                let databases = [server.create_database().await, server.create_database().await];
                let proxy = Proxy::in_front_of(&server.url("postgres")).await;
                let [store, destination] = databases.each_ref();
                let direct = own(server.url(store), server.url(destination));
                let through = own(proxy.url(store), proxy.url(destination));
                (direct, through, Some(Hurt { server: Mutex::new(server), proxy, databases }))
            }
        };
        Arena { kind, own, theirs, hurt, _directory: directory }
    }

    pub(crate) async fn store(&self) -> Rows {
        Rows::open(&self.own.store).await
    }

    pub(crate) async fn destination(&self) -> Rows {
        Rows::open(&self.own.destination).await
    }

    /// Starts this program again, as a worker.
    pub(crate) fn start(&self, role: &str, variables: &[(&str, &str)]) -> ChildProcess {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(role).env("SOAK_STORE", &self.theirs.store);
        command
            .env("SOAK_DESTINATION", &self.theirs.destination)
            .env("SOAK_DIRECTORY", &self.theirs.directory);
        command.env("REFRAIN_FAILPOINT_LOG", self.own.directory.join("struck"));
        ChildProcess::spawn(command.envs(variables.iter().copied()))
    }

    /// The failpoints at which a process was killed.
    pub(crate) fn struck(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.own.directory.join("struck")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
