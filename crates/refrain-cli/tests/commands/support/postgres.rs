//! A database of its own in the scratch PostgreSQL.

use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::address::ServerUrl;

/// A database of one test, which is dropped with this value.
pub(crate) struct Scratch {
    server: String,
    pub(crate) address: ServerUrl,
    pub(crate) name: String,
}

impl Scratch {
    pub(crate) async fn create() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("REFRAIN_TEST_POSTGRES")
            .expect("this test needs a PostgreSQL server: run ./test, which starts one");
        let name = format!("cli_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut connection = PgConnection::connect(&server).await.unwrap();
        connection.execute(AssertSqlSafe(format!("create database {name}"))).await.unwrap();
        Scratch { address: ServerUrl::of(&server), server, name }
    }

    pub(crate) fn url(&self) -> String {
        self.address.url(&self.name)
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // The test's own runtime is on this thread and cannot be waited for here.
        let thread = std::thread::spawn(move || {
            tokio::runtime::Runtime::new().unwrap().block_on(async {
                let mut connection = PgConnection::connect(&server).await?;
                connection.execute(AssertSqlSafe(format!("drop database {name} with (force)"))).await
            })
        });
        if !matches!(thread.join(), Ok(Ok(_))) {
            eprintln!("the database {} could not be dropped", self.name);
        }
    }
}
