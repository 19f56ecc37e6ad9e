//! A project whose store was filled by an earlier release: see `releases/fill.sh`.

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection};

use super::Desk;
use super::postgres::Scratch;

const FILES: [(&str, &str); 14] = [
    ("refrain.toml", include_str!("../releases/project/refrain.toml")),
    ("export.sh", include_str!("../releases/project/export.sh")),
    ("invoices.sh", include_str!("../releases/project/invoices.sh")),
    ("book.sh", include_str!("../releases/project/book.sh")),
    ("letter.sh", include_str!("../releases/project/letter.sh")),
    ("payment.sh", include_str!("../releases/project/payment.sh")),
    ("jobs/customers.toml", include_str!("../releases/project/jobs/customers.toml")),
    ("jobs/digest.toml", include_str!("../releases/project/jobs/digest.toml")),
    ("jobs/export.toml", include_str!("../releases/project/jobs/export.toml")),
    ("jobs/invoices.toml", include_str!("../releases/project/jobs/invoices.toml")),
    ("jobs/letter.toml", include_str!("../releases/project/jobs/letter.toml")),
    ("jobs/payment.toml", include_str!("../releases/project/jobs/payment.toml")),
    ("jobs/revenue.toml", include_str!("../releases/project/jobs/revenue.toml")),
    ("jobs/stock.toml", include_str!("../releases/project/jobs/stock.toml")),
];

const SQLITE: [(&str, &str); 2] = [
    ("store.db", include_str!("../releases/schema-4/store.sqlite.dump")),
    ("shop.db", include_str!("../releases/schema-4/shop.sqlite.dump")),
];

const POSTGRES: [&str; 2] = [
    include_str!("../releases/schema-4/store.postgres.dump"),
    include_str!("../releases/schema-4/shop.postgres.dump"),
];

/// A project, and the databases on a server that it uses.
pub(crate) struct Filled {
    pub(crate) desk: Desk,
    pub(crate) servers: Vec<Scratch>,
}

/// The files of the project, and the locations of its databases.
pub(crate) fn of(store: &str, shop: &str) -> Desk {
    Desk::of(&FILES).with_variable("STORE_URL", store).with_variable("SHOP_URL", shop)
}

impl Filled {
    /// The project alone, before any run.
    pub(crate) fn nothing() -> Filled {
        Filled { desk: of("sqlite:store.db", "sqlite:shop.db"), servers: Vec::new() }
    }

    /// In two SQLite files.
    pub(crate) async fn sqlite() -> Filled {
        let filled = Filled::nothing();
        for (name, text) in SQLITE {
            let mut connection = filled.connect(name).await;
            connection.execute(sqlx::raw_sql(text)).await.unwrap();
            connection.close().await.unwrap();
        }
        filled
    }

    /// In two databases of a server.
    pub(crate) async fn postgres() -> Filled {
        let servers = [Scratch::create().await, Scratch::create().await];
        for (server, text) in servers.iter().zip(POSTGRES) {
            server.connect().await.execute(sqlx::raw_sql(text)).await.unwrap();
        }
        let [store, shop] = &servers;
        Filled { desk: of(&store.url(), &shop.url()), servers: Vec::from(servers) }
    }

    /// A connection to a file in WAL mode, as any program would open it.
    pub(crate) async fn connect(&self, name: &str) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.desk.file(name)).create_if_missing(true);
        SqliteConnection::connect_with(&options.journal_mode(SqliteJournalMode::Wal)).await.unwrap()
    }

    /// Runs a statement about the tables of the store, written as for SQLite.
    pub(crate) async fn store(&self, text: &str) {
        match self.servers.first() {
            None => {
                let mut connection = self.connect("store.db").await;
                connection.execute(AssertSqlSafe(text)).await.unwrap();
                connection.close().await.unwrap();
            }
            Some(server) => {
                let text = text.replace("refrain_", "refrain.");
                server.connect().await.execute(AssertSqlSafe(text)).await.unwrap();
            }
        }
    }
}
