//! The parts of the URL of a PostgreSQL server, or of a proxy in front of one: host, port and credentials.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::TcpListener;

#[derive(Debug, Clone)]
pub struct ServerUrl {
    pub user: String,
    pub password: String,
    pub host: String,
    pub port: u16,
}

impl ServerUrl {
    /// An unused URL on this machine, for a server that is not started yet.
    pub fn unused() -> ServerUrl {
        let password = format!("{:016x}{:016x}", random(), random());
        ServerUrl { user: "refrain".into(), password, host: "127.0.0.1".into(), port: unused_port() }
    }

    /// The parts of `postgres://user:password@host:port/database`, without the database.
    pub fn of(url: &str) -> ServerUrl {
        let parts = || {
            let (who, place) = url.strip_prefix("postgres://")?.split_once('@')?;
            let (user, password) = who.split_once(':')?;
            let (host, port) = place.split('/').next()?.split_once(':')?;
            let port = port.parse().ok()?;
            Some(ServerUrl { user: user.into(), password: password.into(), host: host.into(), port })
        };
        parts().expect("a URL postgres://user:password@host:port/database")
    }

    /// The same server, reached through another port of this machine.
    #[must_use]
    pub fn behind(&self, port: u16) -> ServerUrl {
        ServerUrl { host: "127.0.0.1".into(), port, ..self.clone() }
    }

    pub fn url(&self, database: &str) -> String {
        let ServerUrl { user, password, host, port } = self;
        format!("postgres://{user}:{password}@{host}:{port}/{database}")
    }
}

/// A port below those of outgoing connections, so that it stays unused while its server is down.
pub fn unused_port() -> u16 {
    let mut ports = std::iter::repeat_with(|| 10_000 + u16::try_from(random() % 20_000).unwrap());
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
